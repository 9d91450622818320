//! Copies that the server makes of stored messages. Whoever may read a stream says where the answer goes. The server does not ask whether
//! they may publish there, and if a stream takes that subject it stores the answer, as if somebody had published it.
//!
//! Two things tell an answer from a message that was published. A stored message that the server sends as an answer bears the header
//! `Nats-Stream`, which no publisher sets. Every other answer is JSON without any headers, so it is neither an event nor an entry of a
//! bucket. Messages that a consumer delivers keep their own subject, whatever subject they are delivered to.
//!
//! Readers of a stream mark a copy with [`COPY_OF`] in place of all its headers, so nobody takes it for an original,
//! wherever it is handed on to ([`Unreadable::Copy`](crate::record::UnreadableRecord::Copy)).

/// The header of a message that is a copy: the stream that the original is in.
pub const COPY_OF: &str = "Kairo-Copy-Of";
