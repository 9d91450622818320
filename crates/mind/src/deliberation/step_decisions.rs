//! `agent.decide`: judging a step's condition and completing its parameters.

use std::collections::BTreeMap;

use kairo_proto::words::{ChainOutcome, StepState as Ended};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{AnswerFailure, Deliberation, Purpose, chain_steps::ReadyStep};
use crate::{
    answer_schemas,
    chain::{Chain, StepRun},
    model_answer::extract_json,
    prompts,
    request::ModelRequest,
    thread::{ThreadEntry, cut_to},
};

/// Longest excerpt of each earlier result that is shown, in bytes.
const RESULT_BYTES: usize = 4_096;
/// Earlier results shown, the last ones.
const RESULTS: usize = 8;

/// A step that lacks something.
#[derive(Clone, Debug)]
pub(super) struct UndecidedStep {
    pub step: usize,
    pub event: String,
    pub params: Map<String, Value>,
    pub condition: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ActionAnswer {
    pub action: String,
    #[serde(default)]
    pub params: Map<String, Value>,
}

impl Deliberation<'_> {
    pub(super) fn ask_to_decide(&mut self, turn_id: Uuid, deciding: UndecidedStep, problems: &[String]) {
        let Some(turn) = self.turn(turn_id) else { return };
        let tool = self.tool(&deciding.event);
        let schema: Value = tool.and_then(|tool| serde_json::from_str(&tool.schema).ok()).unwrap_or_default();
        let words = self.mind.threads.get(&turn.thread_id).and_then(|thread| {
            thread.entries().rev().find_map(|entry| match entry {
                ThreadEntry::User { words, .. } => Some(cut_to(&words.in_words(), RESULT_BYTES)),
                _ => None,
            })
        });
        let chain = turn.chain.as_ref();
        let asked = json!({
            "step": { "event": deciding.event, "params": deciding.params },
            "decide": deciding.condition,
            "problems": problems,
            "schema": schema,
            "context": {
                "now": self.input.envelope.time,
                "time_zone": self.mind.profile.as_ref().map(|profile| &profile.time_zone),
                "message": words,
                "event": chain.map(|chain| &chain.data).filter(|data| !data.is_null()),
                "results": chain.map(last_results).unwrap_or_default(),
            },
        });
        let request = ModelRequest::from_prompt("light", prompts::DECIDE, asked.to_string());
        self.ask_model(turn_id, Purpose::Decide(deciding), request.with_answer_schema(answer_schemas::step_decision()));
    }

    pub(super) fn act_on_step_decision(
        &mut self,
        turn_id: Uuid,
        deciding: &UndecidedStep,
        text: &str,
    ) -> Result<(), AnswerFailure> {
        let ActionAnswer { action, params } = parse_action(text)?;
        self.apply_decided();
        match action.as_str() {
            "continue" => {
                let mut complete = deciding.params.clone();
                complete.extend(params);
                let problems = self.param_mistakes(&deciding.event, &complete);
                if !problems.is_empty() {
                    return Err(AnswerFailure::malformed_answer(format!(
                        "the parameters are not complete: {}",
                        problems.join("; ")
                    )));
                }
                let ready = ReadyStep { step: deciding.step, event: deciding.event.clone(), params: complete };
                self.run_step_with_hooks(turn_id, ready, &BTreeMap::new());
            }
            "skip" => self.end_step(turn_id, deciding.step, &Ended::Skipped, Value::Null, "agent.decide said skip"),
            "break" => {
                self.end_step(turn_id, deciding.step, &Ended::Skipped, Value::Null, "agent.decide said break");
                self.end_chain_of(turn_id, &ChainOutcome::Broken, "agent.decide said break");
            }
            other => {
                return Err(AnswerFailure::malformed_answer(format!(
                    "the action {other:?} is none: continue, skip or break"
                )));
            }
        }
        self.work.push_back(turn_id);
        Ok(())
    }
}

pub(super) fn parse_action(text: &str) -> Result<ActionAnswer, AnswerFailure> {
    let value = extract_json(text).map_err(AnswerFailure::malformed_answer)?;
    serde_json::from_value(value)
        .map_err(|error| AnswerFailure::malformed_answer(format!("expected an action: {error}")))
}

/// Returns the last results of the earlier steps, oldest first.
fn last_results(chain: &Chain) -> Vec<Value> {
    let with_result = |run: &StepRun| {
        let text = run.state.result()?.to_string();
        let shown = serde_json::from_str(&text).ok().filter(|_: &Value| text.len() <= RESULT_BYTES);
        Some(json!({ "event": run.step.event, "result": shown.unwrap_or_else(|| json!(cut_to(&text, RESULT_BYTES))) }))
    };
    let mut results: Vec<Value> = chain.steps.iter().rev().filter_map(with_result).take(RESULTS).collect();
    results.reverse();
    results
}
