//! The subscriptions of one connection, by the ids that the client chose.

use std::collections::HashMap;

use axum::extract::ws::Message;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::frames::ServerFrame;
use crate::{
    auth::Caller,
    fields::RequestFields,
    http::Gateway,
    problem::Problem,
    watch::{ClientWatch, WatchItem, WatchRequest},
};

/// They end with it.
pub struct SubscriptionSet {
    /// The most subscriptions at a time.
    most: usize,
    watches: HashMap<String, AbortOnDropHandle<()>>,
    /// Cancelled when the place of one is taken back: all end then, with the connection.
    crowded: CancellationToken,
}

impl SubscriptionSet {
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
        wish: WatchRequest,
    ) -> Result<(), Problem> {
        if self.watches.contains_key(&id) {
            return Err(id_problem(format!("an id that is not subscribed; unsubscribe {id} first")));
        }
        if self.watches.len() >= self.most {
            let expected = format!("at most {} subscriptions of a connection; unsubscribe one first", self.most);
            return Err(id_problem(expected));
        }
        let name = id.clone();
        let frame = move |shown: WatchItem<'_>| Message::Text(ServerFrame::from_watched(&name, shown).to_json().into());
        // It costs what a stream does, and counts as one.
        let permit = gateway.stream_permit(caller, None)?;
        let watch = ClientWatch::begin(gateway, caller, wish, frame).await?;
        let client = client.clone();
        let crowded = self.crowded.clone();
        let forwarding = async move {
            tokio::select! {
                () = permit.wait_until_revoked() => crowded.cancel(),
                () = watch.forward(client) => {}
            }
        };
        self.watches.insert(id, AbortOnDropHandle::new(tokio::spawn(forwarding)));
        Ok(())
    }

    /// Ends one. Nothing more comes of it afterwards.
    pub async fn remove(&mut self, id: &str) -> Result<(), Problem> {
        let watch = self.watches.remove(id).ok_or_else(|| id_problem("the id of a subscription of this connection"))?;
        watch.abort();
        // It ends with the error that it was aborted.
        drop(watch.await);
        Ok(())
    }
}

fn id_problem(expected: impl Into<String>) -> Problem {
    let mut fields = RequestFields::from_query(None);
    fields.reject("id", expected);
    fields.into_problem()
}
