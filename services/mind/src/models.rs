//! What an agent learns of its models from what its decisions say of their answers.

use std::collections::BTreeMap;

use kairo_proto::v1::{AgentDecision, Completion};
use serde::{Deserialize, Serialize};

/// As `CompletionError.kind`: a request is larger than its model takes.
pub(super) const TOO_MUCH: &str = "context_too_long";
/// A limit below is none of a context, whatever an endpoint says, in tokens.
const LEAST_CONTEXT: u64 = 256;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Models {
    /// Whether decisions say how answers ended: none did before epoch 10.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tell_endings: bool,
    /// What they take at once, by tier, where an endpoint has said it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    contexts: BTreeMap<String, Context>,
}

/// What the models of a tier take at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Context {
    tokens: u64,
    /// The basis of the decision: another one may have other models.
    basis: String,
}

impl Models {
    /// Takes in what a decision says of answers.
    pub(super) fn learn(&mut self, decision: &AgentDecision) {
        for completion in &decision.completions {
            self.tell_endings |= !completion.ending.is_empty();
            if let Some(tokens) = told_context(completion) {
                let context = Context { tokens, basis: decision.basis.clone() };
                self.contexts.insert(completion.tier.clone(), context);
            }
            // Whoever took more takes more.
            let is_more = |context: &Context| completion.input_tokens > context.tokens;
            if completion.error.is_none() && self.contexts.get(&completion.tier).is_some_and(is_more) {
                self.contexts.remove(&completion.tier);
            }
        }
    }

    /// Tokens that the models of a tier take at once, as an endpoint has said in decisions on this basis.
    pub(super) fn context(&self, tier: &str, basis: &str) -> Option<u64> {
        self.contexts.get(tier).filter(|context| context.basis == basis).map(|context| context.tokens)
    }

    /// Whether decisions say how answers ended.
    pub(super) fn tell_endings(&self) -> bool {
        self.tell_endings
    }

    /// Whether an answer is one of the steps that a turn may take. Builds before epoch 10 counted tries that failed.
    pub(super) fn is_step(&self, completion: &Completion) -> bool {
        completion.error.is_none() || !self.tell_endings
    }

    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Tokens that a model takes at once, as its endpoint says when a request is too large.
pub(super) fn told_context(completion: &Completion) -> Option<u64> {
    let error = completion.error.as_ref().filter(|error| error.kind == TOO_MUCH)?;
    Some(error.context_tokens).filter(|tokens| *tokens >= LEAST_CONTEXT)
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::CompletionError;

    use super::*;

    #[test]
    fn a_limit_holds_for_its_tier_and_basis_until_a_model_takes_more() {
        let failed = |context_tokens| {
            let error = CompletionError { kind: TOO_MUCH.into(), context_tokens, ..Default::default() };
            Completion { tier: "heavy".into(), error: Some(error), ..Default::default() }
        };
        let answered = |input_tokens| Completion { tier: "heavy".into(), input_tokens, ..Default::default() };
        let mut models = Models::default();
        let mut decided = |completion| {
            models.learn(&AgentDecision { basis: "b".into(), completions: vec![completion], ..Default::default() });
            (models.context("heavy", "b"), models.context("light", "b"), models.context("heavy", "c"))
        };
        let table = [
            (failed(0), None),
            (failed(12), None),
            (failed(2_048), Some(2_048)),
            (answered(2_000), Some(2_048)),
            (answered(2_100), None),
        ];
        for (completion, expected) in table {
            assert_eq!(decided(completion), (expected, None, None));
        }
    }
}
