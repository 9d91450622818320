//! Facts about an agent's models, learned from the answers that its decisions record.

use std::collections::{BTreeMap, BTreeSet};

use kairo_proto::v1::{AgentDecision, Completion};
use serde::{Deserialize, Serialize};

/// As `CompletionError.kind`: a request is larger than its model takes.
pub(super) const TOO_MUCH: &str = "context_too_long";
/// A limit below is none of a context, whatever an endpoint says, in tokens.
const LEAST_CONTEXT: u64 = 256;
/// Maximum number of times that a pause doubles: it is 128 decisions at most.
const MOST_DOUBLINGS: u32 = 7;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelHealth {
    /// True if decisions record how answers ended: none did before epoch 10.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tell_endings: bool,
    /// Context sizes by tier, where an endpoint has reported one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    contexts: BTreeMap<String, ContextSize>,
    /// Tiers whose answers could not be used lately.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    failing: BTreeMap<String, FailingTier>,
}

/// A tier none of whose answers in the last decision that asked it could be used. What a turn can do without does not ask it, for a
/// number of decisions that doubles each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingTier {
    /// Decisions in a row.
    pub decisions: u32,
    /// Decisions that have to pass until it is asked again.
    pub pause: u32,
}

/// The context size of the models of a tier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ContextSize {
    tokens: u64,
    /// The basis of the decision: another one may have other models.
    basis: String,
}

impl ModelHealth {
    /// Takes in what a decision says of answers.
    pub fn apply_answers(&mut self, decision: &AgentDecision) {
        self.note_failing(decision);
        for completion in &decision.completions {
            self.tell_endings |= !completion.ending.is_empty();
            if let Some(tokens) = reported_context(completion) {
                let context = ContextSize { tokens, basis: decision.basis.clone() };
                self.contexts.insert(completion.tier.clone(), context);
            }
            // Whoever took more takes more.
            let is_more = |context: &ContextSize| completion.input_tokens > context.tokens;
            if completion.error.is_none() && self.contexts.get(&completion.tier).is_some_and(is_more) {
                self.contexts.remove(&completion.tier);
            }
        }
    }

    fn note_failing(&mut self, decision: &AgentDecision) {
        self.failing.values_mut().for_each(|failing| failing.pause = failing.pause.saturating_sub(1));
        let own: Vec<&Completion> = decision.completions.iter().filter(|it| it.module.is_empty()).collect();
        let tiers: BTreeSet<&str> = own.iter().map(|completion| completion.tier.as_str()).collect();
        self.note_failing_submodules(decision);
        for tier in tiers {
            let mut of_tier = own.iter().filter(|completion| completion.tier == tier);
            if !of_tier.all(|completion| is_failed(completion)) {
                self.failing.remove(tier);
                continue;
            }
            self.note_failure(tier.to_owned());
        }
    }

    /// A submodule whose calls fail rests like a tier, from when decisions say how answers ended. One with nothing to say answers.
    fn note_failing_submodules(&mut self, decision: &AgentDecision) {
        if !self.tell_endings {
            return;
        }
        let asked = decision.completions.iter().filter(|completion| !completion.module.is_empty());
        let failed: BTreeMap<&str, bool> = asked.fold(BTreeMap::new(), |mut failed, completion| {
            let all = failed.entry(completion.module.as_str()).or_insert(true);
            *all &= completion.error.is_some();
            failed
        });
        for (module, failed) in failed {
            match failed {
                true => self.note_failure(submodule_key(module)),
                false => _ = self.failing.remove(&submodule_key(module)),
            }
        }
    }

    fn note_failure(&mut self, what: String) {
        let failing = self.failing.entry(what).or_default();
        failing.decisions = failing.decisions.saturating_add(1);
        failing.pause = 1 << failing.decisions.min(MOST_DOUBLINGS);
    }

    /// Returns true if a submodule is not asked, since it failed lately.
    pub(super) fn is_submodule_paused(&self, module: &str) -> bool {
        self.failing.get(&submodule_key(module)).is_some_and(|failing| failing.pause > 0)
    }

    /// The tiers whose answers could not be used lately, and the submodules, as `submodule NAME`.
    pub fn failing(&self) -> &BTreeMap<String, FailingTier> {
        &self.failing
    }

    /// Tokens that the models of a tier take at once, as an endpoint has said in decisions on this basis.
    pub(super) fn context_tokens(&self, tier: &str, basis: &str) -> Option<u64> {
        self.contexts.get(tier).filter(|context| context.basis == basis).map(|context| context.tokens)
    }

    /// Returns true if decisions record how answers ended.
    pub(super) fn records_endings(&self) -> bool {
        self.tell_endings
    }

    /// Returns true if an answer counts as a step of a turn. Builds before epoch 10 counted failed tries.
    pub(super) fn is_step(&self, completion: &Completion) -> bool {
        completion.error.is_none() || !self.tell_endings
    }

    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the name of a submodule among tiers: no tier has a space in its name.
fn submodule_key(module: &str) -> String {
    format!("submodule {module}")
}

/// Returns true if a call failed or its answer is empty. A request too large for the model is no such failure.
fn is_failed(completion: &Completion) -> bool {
    let is_too_much = completion.error.as_ref().is_some_and(|error| error.kind == TOO_MUCH);
    let is_empty = completion.text.trim().is_empty() && completion.tool_calls.is_empty();
    (completion.error.is_some() || is_empty) && !is_too_much
}

/// Tokens that a model takes at once, as its endpoint says when a request is too large.
pub(super) fn reported_context(completion: &Completion) -> Option<u64> {
    let error = completion.error.as_ref().filter(|error| error.kind == TOO_MUCH)?;
    Some(error.context_tokens).filter(|tokens| *tokens >= LEAST_CONTEXT)
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::CompletionError;

    use super::*;

    #[test]
    fn a_tier_that_fails_rests_longer_each_time_until_it_answers() {
        let decided = |completions: Vec<Completion>| AgentDecision { completions, ..Default::default() };
        let failed =
            || Completion { tier: "light".into(), error: Some(CompletionError::default()), ..Default::default() };
        let answered = || Completion { tier: "light".into(), text: "x".into(), ..Default::default() };
        let heavy = || Completion { tier: "heavy".into(), text: "x".into(), ..Default::default() };
        let mut models = ModelHealth::default();
        let mut asked = Vec::new();
        for at in 0..1_000 {
            let rests = models.failing().get("light").is_some_and(|failing| failing.pause > 0);
            if !rests {
                asked.push(at);
            }
            models.apply_answers(&decided(if rests { vec![heavy()] } else { vec![heavy(), failed(), failed()] }));
        }
        assert_eq!(asked[..8], [0, 3, 8, 17, 34, 67, 132, 261]);
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] <= 129));
        models.apply_answers(&decided(vec![failed(), answered()]));
        assert!(models.failing().is_empty());
    }

    #[test]
    fn a_submodule_that_fails_rests_and_one_with_nothing_to_say_does_not() {
        let said = |error: bool, ending: &str| Completion {
            module: "critic".into(),
            ending: ending.into(),
            error: error.then(CompletionError::default),
            ..Default::default()
        };
        for (error, endings, rests) in [(true, true, true), (false, true, false), (true, false, false)] {
            let mut models = ModelHealth::default();
            if endings {
                models
                    .apply_answers(&AgentDecision { completions: vec![said(false, "complete")], ..Default::default() });
            }
            models.apply_answers(&AgentDecision { completions: vec![said(error, "")], ..Default::default() });
            assert_eq!(models.is_submodule_paused("critic"), rests, "{error} {endings}");
        }
    }

    #[test]
    fn a_limit_holds_for_its_tier_and_basis_until_a_model_takes_more() {
        let failed = |context_tokens| {
            let error = CompletionError { kind: TOO_MUCH.into(), context_tokens, ..Default::default() };
            Completion { tier: "heavy".into(), error: Some(error), ..Default::default() }
        };
        let answered = |input_tokens| Completion { tier: "heavy".into(), input_tokens, ..Default::default() };
        let mut models = ModelHealth::default();
        let mut decided = |completion| {
            models.apply_answers(&AgentDecision {
                basis: "b".into(),
                completions: vec![completion],
                ..Default::default()
            });
            (
                models.context_tokens("heavy", "b"),
                models.context_tokens("light", "b"),
                models.context_tokens("heavy", "c"),
            )
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
