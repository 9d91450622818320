//! Changes to a decision beside its events: leaves out words that are too large, and adds calls that were given up.

use kairo_events::vocabulary;
use kairo_proto::{
    v1::{AgentDecision, Completion, GivenUpCall, HashLink},
    words::AnswerEnding,
};

use crate::{prices::PriceList, team::Amount};

/// Returns the decision without the words of models, where even those are too large; the cost of the calls is kept.
pub fn without_words(decision: AgentDecision) -> AgentDecision {
    let wordless = |completion: Completion| Completion {
        text: String::new(),
        reasoning: String::new(),
        tool_calls: Vec::new(),
        passed_back: String::new(),
        ..completion
    };
    AgentDecision { completions: decision.completions.into_iter().map(wordless).collect(), ..decision }
}

/// The decision with the calls that were given up since the one before it, in an epoch that knows of them.
pub fn with_abandoned_calls(decision: AgentDecision, given_up: Vec<GivenUpCall>, epoch: u32) -> AgentDecision {
    let with = AgentDecision { given_up, ..decision };
    match vocabulary::decision_reader(&with) {
        reader if reader <= epoch => AgentDecision { reader, ..with },
        _ => AgentDecision { given_up: Vec::new(), ..with },
    }
}

/// The decision with what the calls cost that were given up before it, of an agent whose money is bounded.
pub fn with_cost_of_abandoned_calls(decision: AgentDecision, prices: &PriceList, epoch: u32) -> AgentDecision {
    if epoch < vocabulary::ANSWERS || decision.given_up.is_empty() {
        return decision;
    }
    let Amount { cost, unpriced, .. } = prices.bill_abandoned_calls(&decision.given_up);
    let with = AgentDecision { given_up_cost: cost, given_up_unpriced_tokens: unpriced, ..decision };
    AgentDecision { reader: vocabulary::decision_reader(&with), ..with }
}

/// The decision with what ties it to what stands before it, and what it takes to be read then. Whoever decides says whether the epoch
/// knows of links.
pub fn with_hash_link(decision: AgentDecision, link: HashLink) -> AgentDecision {
    let with = AgentDecision { link: Some(link), ..decision };
    AgentDecision { reader: vocabulary::decision_reader(&with), ..with }
}

/// Returns true if a completion lost its words. One whose ending is `Empty` had none, whatever tokens it cost.
pub fn has_lost_words(completion: &Completion) -> bool {
    let Completion { text, reasoning, tool_calls, output_tokens, error, .. } = completion;
    let has_nothing = text.is_empty() && reasoning.is_empty() && tool_calls.is_empty();
    *output_tokens > 0 && error.is_none() && has_nothing && completion.ending_word() != AnswerEnding::Empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_answer_lost_no_words() {
        for (ending, output_tokens, is_lost) in
            [("complete", 16, true), ("", 16, true), ("empty", 16, false), ("complete", 0, false)]
        {
            let completion = Completion { ending: ending.to_owned(), output_tokens, ..Completion::default() };
            assert_eq!(has_lost_words(&completion), is_lost, "{ending:?}, {output_tokens} tokens");
        }
    }
}
