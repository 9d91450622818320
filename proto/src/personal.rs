//! The personal values in the log: what users said, were told or had done. They can be sealed at rest, and go when the
//! user is forgotten. The protos mark these fields.

use crate::{body::Body, v1};

/// A personal value, to be read or replaced.
#[derive(Debug)]
pub enum Value<'m> {
    Text(&'m mut String),
    Bytes(&'m mut Vec<u8>),
}

/// A message with personal values.
pub trait Personal {
    /// Visits the values, always in the same order, empty ones included.
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>));
}

include!("generated/personal.rs");
