//! `agent.chain`: from a plan to a chain that can run.

use kairo_events::ids;
use kairo_proto::v1::{ChainStarted, ChainStep, decided_event::Event};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{AnswerFailure, CallPassback, Deliberation, Purpose};
use crate::{
    answer_schemas,
    chain::{Origin, StepSpec, THINK, check, format},
    intrinsics::{self, tool_search},
    prompts,
    request::{ModelRequest, Tool},
    thread::cut_to,
    tool_offering::ToolOffering,
};

/// Longest plan, in bytes; the end of a longer one is not compiled.
const PLAN_BYTES: usize = 32 * 1024;

/// A plan that is being compiled.
#[derive(Clone, Debug)]
pub(super) struct PendingPlan {
    pub plan: String,
}

impl Deliberation<'_> {
    /// Has a plan compiled.
    pub(super) fn compile_plan(&mut self, turn_id: Uuid, planning: PendingPlan) {
        self.apply_decided();
        let Some(turn) = self.turn(turn_id) else { return };
        let events: Vec<Value> = self.chain_events(&turn.thread_id, &planning.plan).collect();
        let events: Vec<String> = events.iter().map(Value::to_string).collect();
        let system = format!("{}\n{}", prompts::CHAIN, events.join("\n"));
        let plan = cut_to(&planning.plan, PLAN_BYTES);
        let zone = self.mind.profile.as_ref().map_or("UTC", |profile| &profile.time_zone);
        let user = format!("The thread is {}. Times are in {zone}. The plan:\n{plan}", turn.thread_id);
        let request = ModelRequest::from_prompt("fast", system, user).with_answer_schema(answer_schemas::chain());
        self.ask_model(turn_id, Purpose::Plan(planning), request);
    }

    /// Reads the chain, which begins if nothing is wrong with it.
    pub(super) fn start_planned_chain(
        &mut self,
        turn_id: Uuid,
        planning: &PendingPlan,
        text: &str,
    ) -> Result<(), AnswerFailure> {
        let steps = format::parse(text, self.limits.chain_steps).map_err(invalid_chain)?;
        let steps = format::with_final_think(steps);
        let thread_id = self.turn(turn_id).map(|turn| turn.thread_id.clone()).unwrap_or_default();
        let mut mistakes = check::mistakes(&steps, |event| event == THINK || self.offers_tool(event), &thread_id);
        mistakes.extend(self.crowded_groups(&steps));
        if !mistakes.is_empty() {
            return Err(invalid_chain(mistakes));
        }
        self.start_chain(turn_id, Origin::Plan, &planning.plan, None, &steps);
        Ok(())
    }

    pub(super) fn start_chain(
        &mut self,
        turn_id: Uuid,
        origin: Origin,
        plan: &str,
        task: Option<Uuid>,
        steps: &[StepSpec],
    ) {
        self.start_chain_with_passbacks(turn_id, origin, plan, task, steps, &[]);
    }

    /// As [`Self::start_chain`], with what belongs to the calls of the first steps, where a model made them.
    pub(super) fn start_chain_with_passbacks(
        &mut self,
        turn_id: Uuid,
        origin: Origin,
        plan: &str,
        task: Option<Uuid>,
        steps: &[StepSpec],
        backs: &[CallPassback],
    ) {
        self.apply_decided();
        if let Some(no_room) = self.no_room_for_a_chain(turn_id) {
            return self.refuse_chain(turn_id, &no_room);
        }
        let step = |(at, step): (usize, &StepSpec)| {
            let CallPassback { call_id, passed_back, .. } = backs.get(at).cloned().unwrap_or_default();
            ChainStep {
                group: step.group,
                event: step.event.clone(),
                params: Value::Object(step.params.clone()).to_string(),
                decide: step.decide.clone().unwrap_or_default(),
                call_id,
                passed_back,
            }
        };
        let started = ChainStarted {
            chain_id: ids::derive(self.decision_id, &format!("chain/{}", self.chains)).to_string(),
            plan: plan.to_owned(),
            steps: steps.iter().enumerate().map(step).collect(),
            origin: origin.to_word().text(),
            task_id: task.map(|task| task.to_string()).unwrap_or_default(),
            passed_back: backs.first().map(|back| back.answer_passed_back.clone()).unwrap_or_default(),
        };
        self.chains += 1;
        self.add_event(turn_id, Event::ChainStarted(started));
        self.work.push_back(turn_id);
    }

    /// Groups that would call more tools at once than allowed.
    fn crowded_groups(&self, steps: &[StepSpec]) -> Vec<String> {
        let most = self.limits.parallel_tools;
        let groups = steps.chunk_by(|one, next| one.group == next.group);
        let crowded = groups.filter(|group| group.len() > most);
        let mistake = |group: &[StepSpec]| {
            let first = group.first().map_or("", |step| step.event.as_str());
            format!("{} steps at once, beginning with {first}: at most {most} are allowed", group.len())
        };
        crowded.map(mistake).collect()
    }

    /// Everything a chain may hold, with its schema; where there are many tools, those that are at hand and those that the plan names.
    fn chain_events(&self, thread_id: &str, plan: &str) -> impl Iterator<Item = Value> {
        let think = json!({
            "event": THINK,
            "description": "Thinks about the results so far; with a prompt it analyses, without one it answers the user.",
            "params": {"type": "object", "properties": {"prompt": {"type": "string"}}},
        });
        let tools = self.catalogue.tools.iter().chain(intrinsics::all().map(|intrinsic| &intrinsic.tool));
        let known = tools.filter(|tool| self.offers_tool(&tool.name)).collect();
        let offering = ToolOffering::for_thread(&self.mind, thread_id, known, self.limits.listing);
        let at_hand = offering.listed_tools().into_iter().filter(|tool| *tool.name != *tool_search::FIND);
        let named = offering.unlisted.into_iter().filter(|tool| plan.contains(&*tool.name));
        let wanted: Vec<&Tool> = at_hand.chain(named).collect();
        let offered = wanted.into_iter().map(|tool| {
            let schema: Value = serde_json::from_str(&tool.schema).unwrap_or_default();
            json!({ "event": tool.name, "description": tool.description, "params": schema })
        });
        offered.chain([think])
    }
}

fn invalid_chain(mistakes: Vec<String>) -> AnswerFailure {
    AnswerFailure::retryable("invalid_chain", mistakes.join("; "))
}
