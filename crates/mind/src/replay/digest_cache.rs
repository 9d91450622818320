//! The digests of requests that are made again, one after the other. A digest is of the request as JSON. What is offered is the
//! same again and again, so that is written as JSON once, and the JSON of one request stands where that of the one before stood.

use std::collections::VecDeque;

use serde_json::value::{RawValue, to_raw_value};

use crate::request::{ModelRequest, Tool};

/// Lists of tools that are remembered, those offered last: agents are offered others, and so are the steps of one mind.
const REMEMBERED: usize = 8;

/// Values reused from one request to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct DigestCache {
    /// With their JSON, the latest first.
    offered: VecDeque<(Vec<Tool>, Box<RawValue>)>,
    json: Vec<u8>,
}

impl DigestCache {
    /// Returns the digest of a request, equal to [`ModelRequest::digest`], reusing the JSON of its tools.
    pub(super) fn digest(&mut self, request: &ModelRequest) -> String {
        let Self { offered, json } = self;
        let known = offered.iter().position(|(tools, _)| *tools == request.tools);
        let known = known.and_then(|at| offered.remove(at));
        let written = || Some((request.tools.clone(), to_raw_value(&request.tools).ok()?));
        // Strings and lists of them are always JSON.
        let Some(tools) = known.or_else(written) else { return request.digest() };
        let digest = request.digest_with_buffer(&tools.1, json);
        offered.push_front(tools);
        offered.truncate(REMEMBERED);
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::PromptMessage;

    fn tool(name: &str, description: &str) -> Tool {
        Tool {
            name: name.into(),
            description: description.into(),
            schema: "{}".into(),
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
        }
    }

    #[test]
    fn a_digest_is_the_same_whatever_was_asked_before() {
        let mut digesting = DigestCache::default();
        let mut seen = std::collections::BTreeSet::new();
        // More lists than are remembered, of which some differ in their last letter, and each of them again and again.
        for round in 0..3 {
            for at in 0..REMEMBERED + 4 {
                let all: Vec<Tool> = (0..at).map(|at| tool("tools.now", &format!("\"{at}\"\n"))).collect();
                for tools in [all.clone(), all.into_iter().chain([tool("http.get", "ü")]).collect()] {
                    let messages =
                        vec![PromptMessage::user("x".repeat(round * at)), PromptMessage::assistant("\u{1}\\")];
                    let request = ModelRequest { tools, ..ModelRequest::from_messages("heavy", messages) };
                    let digest = digesting.digest(&request);
                    assert_eq!(digest, request.digest());
                    seen.insert(digest);
                }
            }
        }
        assert_eq!(digesting.offered.len(), REMEMBERED);
        // Without tools of its own, a list is asked with the same words in each round.
        assert_eq!(seen.len(), 3 * 2 * (REMEMBERED + 4) - 4);
    }
}
