//! Live pieces for a key that is limited to a user. What is live may be faster than the log, so of some it is not known yet whose
//! they are: they are kept until the log tells, or the read model where their turn began before the stream did.

use std::{collections::VecDeque, sync::Arc};

use futures::{
    FutureExt, Stream, StreamExt,
    future::{BoxFuture, OptionFuture},
    stream::{self, BoxStream},
};
use kairo_core::record::Record;

use crate::{
    early::Early,
    live::Piece,
    ownership::Own,
    visibility::{Happened, owner},
};

/// Those of the pieces that are the user's. So many are kept while it is not known whose they are, and of more the newest.
pub fn of_user(
    pieces: BoxStream<'static, Piece>,
    own: Arc<Own>,
    most: usize,
) -> impl Stream<Item = Piece> + Send + 'static {
    let pieces = OwnPieces { pieces, own, early: Early::new(most), ready: VecDeque::new(), asking: None };
    stream::unfold(pieces, |mut pieces| async move { Some((pieces.next().await?, pieces)) })
}

struct OwnPieces {
    pieces: BoxStream<'static, Piece>,
    own: Arc<Own>,
    early: Early<Piece>,
    /// To be handed over.
    ready: VecDeque<Piece>,
    /// While the read model is asked, of everything that came up at once.
    asking: Option<BoxFuture<'static, ()>>,
}

impl OwnPieces {
    async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            let waited = tokio::select! {
                biased;
                () = self.own.learned() => true,
                Some(()) = OptionFuture::from(self.asking.as_mut()) => {
                    self.asking = None;
                    true
                }
                piece = self.pieces.next() => {
                    let piece = piece?;
                    self.early.keep(place_of(&piece.record), piece);
                    false
                }
            };
            self.settle(waited);
            self.ask();
        }
    }

    fn settle(&mut self, waited: bool) {
        let theirs = self.early.settled(|at| self.own.concern(at));
        // What waited until now can wait for a slow client, and there is a bounded amount of it.
        let waits = waited || theirs.len() > 1;
        self.ready.extend(theirs.into_iter().map(|piece| Piece { waits: waits || piece.waits, ..piece }));
    }

    fn ask(&mut self) {
        let places = match self.asking {
            Some(_) => return,
            None => self.own.unasked(self.early.places()),
        };
        if !places.is_empty() {
            let own = self.own.clone();
            self.asking = Some(async move { own.ask(&places).await }.boxed());
        }
    }
}

fn place_of(piece: &Record) -> Happened {
    let (envelope, agent) = (&piece.envelope, owner(&piece.subject));
    Happened::at(envelope.correlation_id, agent, envelope.thread_id.as_deref())
}
