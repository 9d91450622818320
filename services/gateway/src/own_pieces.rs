//! Live pieces for a key that is limited to a user. They may be faster than the log, so pieces with an unknown owner
//! are kept until the log names it, or the read model if their turn began before the stream.

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

/// Filters the pieces that concern the user. At most `most` pieces are kept while their owner is unknown: the newest.
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
    /// Pieces that are ready to be returned.
    ready: VecDeque<Piece>,
    /// The lookup in the read model in progress, if any; one at a time.
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
        // Pieces that waited until now can wait for a slow client too, as their number is bounded.
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
