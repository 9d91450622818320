//! What of the log is somebody's own: what they said, were told or had done. Where it is kept, it can be sealed, and it goes when
//! they are forgotten. The protos say which fields these are.

use crate::{body::Body, v1};

/// A value that is somebody's own, to be looked at or to be replaced.
#[derive(Debug)]
pub enum Value<'m> {
    Text(&'m mut String),
    Bytes(&'m mut Vec<u8>),
}

/// What has such values.
pub trait Personal {
    /// Goes through them, always in the same order, empty ones included.
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>));
}

include!("generated/personal.rs");
