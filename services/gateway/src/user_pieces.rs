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
    early_pieces::EarlyPieces,
    live_pieces::LivePiece,
    ownership::StreamOwners,
    visibility::{EventOrigin, subject_owner},
};

/// Filters the pieces that concern the user. At most `most` pieces are kept while their owner is unknown: the newest.
pub fn filter_by_user(
    pieces: BoxStream<'static, LivePiece>,
    own: Arc<StreamOwners>,
    most: usize,
) -> impl Stream<Item = LivePiece> + Send + 'static {
    let pieces = UserPieces { pieces, own, early: EarlyPieces::new(most), ready: VecDeque::new(), asking: None };
    stream::unfold(pieces, |mut pieces| async move { Some((pieces.next().await?, pieces)) })
}

struct UserPieces {
    pieces: BoxStream<'static, LivePiece>,
    own: Arc<StreamOwners>,
    early: EarlyPieces<LivePiece>,
    /// Pieces that are ready to be returned.
    ready: VecDeque<LivePiece>,
    /// The lookup in the read model in progress, if any; one at a time.
    asking: Option<BoxFuture<'static, ()>>,
}

impl UserPieces {
    async fn next(&mut self) -> Option<LivePiece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            let waited = tokio::select! {
                biased;
                () = self.own.wait_for_update() => true,
                Some(()) = OptionFuture::from(self.asking.as_mut()) => {
                    self.asking = None;
                    true
                }
                piece = self.pieces.next() => {
                    let piece = piece?;
                    self.early.push(origin_of(&piece.record), piece);
                    false
                }
            };
            self.release_settled(waited);
            self.start_lookup();
        }
    }

    fn release_settled(&mut self, waited: bool) {
        let theirs = self.early.take_settled(|at| self.own.visibility_of(at));
        // Pieces that waited until now can wait for a slow client too, as their number is bounded.
        let waits = waited || theirs.len() > 1;
        self.ready.extend(theirs.into_iter().map(|piece| LivePiece { waits: waits || piece.waits, ..piece }));
    }

    fn start_lookup(&mut self) {
        let places = match self.asking {
            Some(_) => return,
            None => self.own.due_lookups(self.early.origins()),
        };
        if !places.is_empty() {
            let own = self.own.clone();
            self.asking = Some(async move { own.look_up_without_waiting(&places).await }.boxed());
        }
    }
}

fn origin_of(piece: &Record) -> EventOrigin {
    let envelope = &piece.envelope;
    let agent = subject_owner(&piece.subject);
    EventOrigin::new(envelope.correlation_id, agent, envelope.thread_id.as_deref())
}
