//! Reading what an invoke says.

use kairo_core::record::Record;
use kairo_proto::{Body, v1::ToolInvocation};
use uuid::Uuid;

/// Returns the invocation of an action from an invoke record.
pub fn invocation(record: &Record, action: Uuid) -> Option<&ToolInvocation> {
    let Body::ToolInvoke(invoke) = &record.body else { return None };
    invoke.actions.iter().find(|invocation| Uuid::parse_str(&invocation.action_id) == Ok(action))
}
