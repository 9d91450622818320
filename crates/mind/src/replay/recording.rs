//! The answers that the log has of a decision, given to what is asked when it is made again.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use kairo_proto::v1::{AgentDecision, Completion, RequestDigests};
use serde::{Deserialize, Serialize};

use super::digest_cache::DigestCache;
use crate::{
    deliberation::ModelQuestion,
    request::{ModelRequest, short_digest},
};

/// A request that is not the one that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestDrift {
    /// Number of the completion that answers it in the decision, counted from 1.
    pub request: usize,
    /// Parts that differ; none if the log does not say.
    pub parts: Vec<RequestPart>,
}

/// A part of a request that has a digest of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestPart {
    System,
    Tools,
    History,
    /// The work in progress.
    Facts,
}

impl fmt::Display for RequestPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}

/// A model call of a decision, made again.
#[derive(Clone, Debug)]
pub struct ReplayedCall {
    pub request: Arc<ModelRequest>,
    /// The answer that the log has of it.
    pub completion: Completion,
    /// In what the request differs from the one that was made then; none where it is the same.
    pub drift: Option<RequestDrift>,
}

/// The completions of a decision, as they answer what is asked again.
pub(super) struct RecordedAnswers<'d> {
    digesting: &'d mut DigestCache,
    /// With their numbers, counted from 1.
    left: VecDeque<(usize, &'d Completion)>,
    /// By the digest of the request, which of those that were asked it is: what is asked twice was paid for once.
    given: BTreeMap<String, usize>,
    pub(super) asked: Vec<ReplayedCall>,
    /// For each question in its order, which of those that were asked answers it.
    pub(super) answers: Vec<usize>,
}

impl<'d> RecordedAnswers<'d> {
    pub(super) fn from_decision(decision: &'d AgentDecision, digesting: &'d mut DigestCache) -> Self {
        let left = (1..).zip(&decision.completions).collect();
        Self { digesting, left, given: BTreeMap::new(), asked: Vec::new(), answers: Vec::new() }
    }

    pub(super) fn drifts(&self) -> Vec<RequestDrift> {
        self.asked.iter().filter_map(|asked| asked.drift.clone()).collect()
    }

    /// The answer to this very request or, where there is none, the next one that was not given yet.
    pub(super) fn next_answer(&mut self, question: &ModelQuestion) -> Option<Completion> {
        let digest = self.digesting.digest(&question.request);
        let at = self.left.iter().position(|(_, completion)| completion.request_digest == digest);
        let (completion, drift) = match at.and_then(|at| self.left.remove(at)) {
            Some((_, completion)) => (completion, None),
            None => match self.given.get(&digest) {
                Some(at) => {
                    self.answers.push(*at);
                    return self.asked.get(*at).map(|asked| asked.completion.clone());
                }
                None => {
                    let (request, completion) = self.left.pop_front()?;
                    let parts = match &completion.digests {
                        Some(recorded) => differing_parts(&part_digests(&question.request), recorded),
                        None => Vec::new(),
                    };
                    (completion, Some(RequestDrift { request, parts }))
                }
            },
        };
        self.given.insert(digest, self.asked.len());
        self.answers.push(self.asked.len());
        self.asked.push(ReplayedCall { request: question.request.clone(), completion: completion.clone(), drift });
        Some(completion.clone())
    }
}

/// The digests of a request's parts, but for what was sent.
pub fn part_digests(request: &ModelRequest) -> RequestDigests {
    request.part_digests(short_digest(&serde_json::to_vec(&request.tools).unwrap_or_default()))
}

/// The requests of one making that are not those of another; what only one of them asks is another request as a whole.
pub(super) fn drifts_between(one: &[ReplayedCall], other: &[ReplayedCall]) -> Vec<RequestDrift> {
    let asked = |all: &[ReplayedCall], at: usize| all.get(at).map(|asked| asked.request.clone());
    let drift = |at: usize| {
        let parts = match (asked(one, at), asked(other, at)) {
            (Some(one), Some(other)) if one.digest() == other.digest() => return None,
            (Some(one), Some(other)) => differing_parts(&part_digests(&one), &part_digests(&other)),
            _ => Vec::new(),
        };
        Some(RequestDrift { request: at + 1, parts })
    };
    (0..one.len().max(other.len())).filter_map(drift).collect()
}

/// The parts of which the digests are not the same.
fn differing_parts(one: &RequestDigests, other: &RequestDigests) -> Vec<RequestPart> {
    let compared = [
        (RequestPart::System, one.system, other.system),
        (RequestPart::Tools, one.tools, other.tools),
        (RequestPart::History, one.history, other.history),
        (RequestPart::Facts, one.facts, other.facts),
    ];
    compared.into_iter().filter(|(_, one, other)| one != other).map(|(part, ..)| part).collect()
}
