//! The thoughts and words of a decision between two of its calls or reviews: one step of a turn. Pure.

use kairo_core::event_json::EventJson;
use kairo_proto::{
    time,
    v1::{self, InteractionStepRow},
    words::{ChainOrigin, InteractionStepKind},
};

use super::steps::{is_action, new_step, payload_text};

/// A step that is being put together.
#[derive(Debug)]
pub(super) struct StepBuilder {
    /// The fields common to all steps of the decision.
    pub step: InteractionStepRow,
    reasoning: Vec<String>,
    pub content: Vec<String>,
    failures: Vec<String>,
    /// Tokens that models read and wrote for the decision, until a step takes them.
    tokens: (u64, u64),
    /// True if it plans calls.
    pub plans: bool,
    /// True if a review accepted the words about to be said.
    pub is_reviewed: bool,
    /// True if the decision is about lessons from work.
    pub learns: bool,
}

impl StepBuilder {
    pub fn start(first: &EventJson, tokens: (u64, u64)) -> Self {
        Self {
            step: InteractionStepRow {
                ended_at: Some(time::message(first.ts)),
                ..new_step(first, &InteractionStepKind::Plan)
            },
            reasoning: Vec::new(),
            content: Vec::new(),
            failures: Vec::new(),
            tokens,
            plans: false,
            is_reviewed: false,
            learns: false,
        }
    }

    /// Adds what an event thinks, says or fails at.
    pub fn add_event(&mut self, event: &EventJson) {
        let said = || Some(event.text().to_owned()).filter(|text| !text.is_empty());
        match event.type_name.as_str() {
            v1::AgentThought::TYPE => {
                self.reasoning.extend(said().map(|thought| match payload_text(event, "module") {
                    "" => thought,
                    module => format!("{module}: {thought}"),
                }))
            }
            v1::AgentFailed::TYPE => self.failures.extend(said()),
            v1::AgentAction::TYPE if is_action(event, "say") => self.content.extend(said()),
            // What is looked at before a message is thought about is no plan.
            v1::ChainStarted::TYPE if payload_text(event, "origin") == ChainOrigin::Environment.known_word() => {}
            v1::ChainStarted::TYPE => {
                let plan = payload_text(event, "plan");
                self.content.extend((!plan.is_empty()).then(|| plan.to_owned()));
                self.plans = true;
            }
            v1::MemoryAppended::TYPE | v1::AgentBriefed::TYPE | v1::ThreadCompleted::TYPE => self.learns = true,
            _ => {}
        }
    }

    /// The step that this is; none of one that says nothing and cost nothing. What comes next is another one.
    pub fn finish_step(&mut self, kind: &InteractionStepKind) -> Option<InteractionStepRow> {
        let (input_tokens, output_tokens) = self.tokens;
        let [reasoning, content, failures] = [&mut self.reasoning, &mut self.content, &mut self.failures];
        let step = InteractionStepRow {
            kind: kind.text(),
            reasoning: join_paragraphs(&std::mem::take(reasoning)),
            content: join_paragraphs(&std::mem::take(content)),
            error: join_paragraphs(&std::mem::take(failures)),
            input_tokens,
            output_tokens,
            ..self.step.clone()
        };
        self.plans = false;
        let says_something = step.reasoning.is_some() || step.content.is_some() || step.error.is_some();
        let is_step = says_something || input_tokens > 0 || output_tokens > 0;
        if is_step {
            self.tokens = (0, 0);
        }
        is_step.then_some(step)
    }
}

/// None of nothing.
fn join_paragraphs(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
