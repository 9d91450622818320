//! Ids, and where new ones are made.

pub use kairo_events::ids::*;
use uuid::Uuid;

/// A new id, for what enters from outside.
pub fn generate() -> Uuid {
    Uuid::now_v7()
}
