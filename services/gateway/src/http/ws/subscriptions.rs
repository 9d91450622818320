//! The subscriptions of one connection, by the ids that the client chose.

use std::collections::HashMap;

use axum::extract::ws::Message;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::frames::Sent;
use crate::{
    auth::Caller,
    fields::Fields,
    http::Gateway,
    problem::Problem,
    watch::{Shown, Watch, Wish},
};

/// They end with it.
pub struct Subscriptions {
    /// The most subscriptions at a time.
    most: usize,
    watches: HashMap<String, AbortOnDropHandle<()>>,
    /// Cancelled when the place of one is taken back: all end then, with the connection.
    crowded: CancellationToken,
}

impl Subscriptions {
    pub fn new(most: usize, crowded: CancellationToken) -> Self {
        Self { most, watches: HashMap::new(), crowded }
    }

    /// Begins to show what is wished for to the client, which is told first where that begins.
    pub async fn add(
        &mut self,
        gateway: &Gateway,
        caller: &Caller,
        client: &mpsc::Sender<Message>,
        id: String,
        wish: Wish,
    ) -> Result<(), Problem> {
        if self.watches.contains_key(&id) {
            return Err(refused(format!("an id that is not subscribed; unsubscribe {id} first")));
        }
        if self.watches.len() >= self.most {
            let expected = format!("at most {} subscriptions of a connection; unsubscribe one first", self.most);
            return Err(refused(expected));
        }
        let name = id.clone();
        let frame = move |shown: Shown<'_>| Message::Text(Sent::shown(&name, shown).to_json().into());
        // It costs what a stream does, and counts as one.
        let permit = gateway.stream_permit(caller, None)?;
        let watch = Watch::begin(gateway, caller, wish, frame).await?;
        let (client, crowded) = (client.clone(), self.crowded.clone());
        let forwarding = async move {
            tokio::select! {
                () = permit.revoked() => crowded.cancel(),
                () = watch.forward(client) => {}
            }
        };
        self.watches.insert(id, AbortOnDropHandle::new(tokio::spawn(forwarding)));
        Ok(())
    }

    /// Ends one. Nothing more comes of it afterwards.
    pub async fn remove(&mut self, id: &str) -> Result<(), Problem> {
        let watch = self.watches.remove(id).ok_or_else(|| refused("the id of a subscription of this connection"))?;
        watch.abort();
        // It ends with the error that it was aborted.
        drop(watch.await);
        Ok(())
    }
}

fn refused(expected: impl Into<String>) -> Problem {
    let mut fields = Fields::from_query(None);
    fields.reject("id", expected);
    fields.refuse()
}
