//! The model's calls of peers.

use serde_json::{Value, json};

use super::TO_BE_CANCELED;
use crate::chaos::{
    peers::{BOOK, PAY, Peer},
    plan::Wish,
};

/// The calls of a wish, all at once.
pub fn calls(wish: Wish) -> Vec<Value> {
    let peer = match wish {
        Wish::Shop => Peer::Shop,
        Wish::Desk => Peer::Desk,
        Wish::Bank => Peer::Bank,
        Wish::Clerk => Peer::Clerk,
        _ => {
            let stopped = |peer: Peer| call(peer, PAY, &format!("{}{TO_BE_CANCELED}", peer.name()));
            return Peer::ALL.map(stopped).into();
        }
    };
    vec![call(peer, PAY, "a"), call(peer, BOOK, "b")]
}

fn call(peer: Peer, tool: &str, part: &str) -> Value {
    json!({ "tool": peer.tool(tool), "arguments": { "effect": format!("{{{{ captures.id }}}}-{part}") } })
}
