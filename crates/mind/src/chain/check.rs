//! Checks of a chain before it runs: unknown tools, references to nothing or to later steps, thinking
//! about another thread.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::Value;

use super::mistakes::{MISTAKES, first_mistakes};
use super::references::{self, ParamReference, ReferenceKind};
use super::{StepSpec, THINK, format};

/// Longest name for which a similar one is looked for, in characters.
const GUESSED_CHARS: usize = 64;
/// Events that are listed where one is referred to that does not exist.
const LISTED: usize = 10;

/// Prefix of the events that take steps to be run later.
const TASK: &str = "task.";

/// The mistakes, each naming its step, for the model to mend. `known` says whether there is such a tool.
pub fn mistakes(steps: &[StepSpec], known: impl Fn(&str) -> bool, thread_id: &str) -> Vec<String> {
    let occurrences = StepsByEvent::from_steps(steps);
    let mut mistakes = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let place = format!("step {} ({})", at + 1, step.event);
        // What would help to mend it takes long to find, and is not told of more.
        let briefly = mistakes.len() >= MISTAKES;
        let tool = unknown_tool_mistake(&step.event, &known, briefly);
        let thread =
            other_thread_mistake(step, thread_id).into_iter().chain(unknown_tools_of_task(step, &known, briefly));
        let dangling = match references::find_all(&step.params, &|event| occurrences.groups.contains_key(event)) {
            Ok(uses) => uses
                .iter()
                .filter_map(|reference| occurrences.reference_mistake(step, reference, thread_id, briefly))
                .collect(),
            Err(mistake) => vec![mistake],
        };
        mistakes.extend(tool.into_iter().chain(thread).chain(dangling).map(|mistake| format!("{place}: {mistake}")));
    }
    first_mistakes(mistakes)
}

/// Index of a chain's steps by event.
struct StepsByEvent<'s> {
    steps: &'s [StepSpec],
    /// Groups of the steps of an event, in their order.
    groups: HashMap<&'s str, Vec<u32>>,
}

impl<'s> StepsByEvent<'s> {
    fn from_steps(steps: &'s [StepSpec]) -> Self {
        let mut groups: HashMap<&str, Vec<u32>> = HashMap::new();
        for step in steps {
            groups.entry(&step.event).or_default().push(step.group);
        }
        Self { steps, groups }
    }

    /// Returns the mistake in a reference of this step, if any.
    fn reference_mistake(
        &self,
        step: &StepSpec,
        reference: &ParamReference,
        thread_id: &str,
        briefly: bool,
    ) -> Option<String> {
        let mistake = match &reference.of {
            ReferenceKind::Step { event, nth } => self.order_mistake(step, event, *nth)?,
            of @ ReferenceKind::NoStep if !briefly => {
                format!(
                    "{}; before it there are {}",
                    references::target_mistake(of, thread_id)?,
                    self.events_before(step)
                )
            }
            of => references::target_mistake(of, thread_id)?.to_owned(),
        };
        Some(format!("{} {mistake}", reference.written))
    }

    /// Returns the mistake in referring to the step of this event, if any: it must run before this one.
    fn order_mistake(&self, step: &StepSpec, event: &str, nth: Option<usize>) -> Option<String> {
        let groups = self.groups.get(event).map(Vec::as_slice).unwrap_or_default();
        let group = match nth {
            Some(nth) => groups.get(nth),
            None => groups.iter().min(),
        };
        match group.map(|group| group.cmp(&step.group)) {
            Some(Ordering::Less) => None,
            Some(Ordering::Equal) => Some("refers to a step that runs at the same time".to_owned()),
            Some(Ordering::Greater) => Some("refers to a step that runs later".to_owned()),
            None => Some(format!("refers to no step; there are {} of {event}, counted from [0]", groups.len())),
        }
    }

    /// The events of the steps that run before this one.
    fn events_before(&self, step: &StepSpec) -> String {
        let mut events = Vec::new();
        for earlier in self.steps.iter().take_while(|earlier| earlier.group < step.group) {
            if !events.contains(&earlier.event.as_str()) && events.len() < LISTED {
                events.push(&earlier.event);
            }
        }
        if events.is_empty() { "no steps".to_owned() } else { events.join(", ") }
    }
}

fn unknown_tool_mistake(event: &str, known: &impl Fn(&str) -> bool, briefly: bool) -> Option<String> {
    if event == THINK || known(event) {
        return None;
    }
    let similar = if briefly { None } else { similar_name(event, known) };
    Some(match similar {
        Some(name) => format!("there is no such tool; is {name} meant?"),
        None => "there is no such tool".to_owned(),
    })
}

/// Unknown tools among the steps of a task. What else is wrong with them is said when the task is made.
fn unknown_tools_of_task(step: &StepSpec, known: &impl Fn(&str) -> bool, briefly: bool) -> Vec<String> {
    let action = step.params.get("action").filter(|_| step.event.starts_with(TASK));
    let steps = action.and_then(|action| format::from_json(action, usize::MAX).ok()).unwrap_or_default();
    let mistakes = steps.iter().enumerate().filter_map(|(at, inner)| {
        let mistake = unknown_tool_mistake(&inner.event, known, briefly || at >= MISTAKES)?;
        Some(format!("action: step {} ({}): {mistake}", at + 1, inner.event))
    });
    mistakes.collect()
}

/// A known name that differs in how its parts are joined, in case, or in one character.
fn similar_name(event: &str, known: &impl Fn(&str) -> bool) -> Option<String> {
    if event.len() > GUESSED_CHARS || !event.is_ascii() {
        return None;
    }
    let lower = event.to_lowercase();
    let joined = [lower.replace("__", "."), lower.replacen(['_', '-', '.'], ".", 1), lower.replace(['-', '.'], "_")];
    let is_known = |name: &String| name == THINK || known(name);
    joined.into_iter().find(is_known).or_else(|| names_one_edit_away(&lower).find(is_known))
}

/// All texts that differ in one character: left out, exchanged with the next, another, or one more.
fn names_one_edit_away(text: &str) -> impl Iterator<Item = String> {
    const OF_NAMES: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789_.-";
    let splits = || (0..=text.len()).map(|at| text.split_at(at));
    let tail = |text: &str| text.get(1..).unwrap_or_default().to_owned();
    let exchanged = splits().filter_map(|(before, behind)| {
        let mut chars = behind.chars();
        let one = chars.next()?;
        let next = chars.next()?;
        Some(format!("{before}{next}{one}{}", chars.as_str()))
    });
    let left_out = splits().map(move |(before, behind)| format!("{before}{}", tail(behind)));
    let changed = splits().flat_map(move |(before, behind)| {
        OF_NAMES.iter().flat_map(move |c| {
            let c = char::from(*c);
            [format!("{before}{c}{}", tail(behind)), format!("{before}{c}{behind}")]
        })
    });
    exchanged.chain(left_out).chain(changed)
}

/// A step that thinks does so about the thread it runs in.
fn other_thread_mistake(step: &StepSpec, thread_id: &str) -> Option<String> {
    let own = match step.params.get("thread_id").unwrap_or(&Value::Null) {
        Value::Null => true,
        Value::String(id) => id.is_empty() || id == thread_id,
        _ => false,
    };
    let wrong = step.event == THINK && !own;
    wrong.then(|| "thread_id: it is not this thread; leave it out".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const TOOLS: [&str; 6] =
        ["tools.now", "calendar.check", "team.members", "task.schedule", "thread.summarize", "file_read"];

    fn check(chain: Value) -> Vec<String> {
        let steps = format::from_json(&chain, 100).unwrap();
        mistakes(&steps, |name| TOOLS.contains(&name), "t1")
    }

    #[test]
    fn unknown_tools_and_what_may_be_meant() {
        let chain =
            ["calendar__check", "calendar_check", "Calendar.Check", "calender.check", "tools.nwo", "team.member"];
        let mut found = check(json!(chain));
        found.extend(check(json!(["file.read", "tools.nows", "agent-think", "web.search", "agent.reply"])));
        assert_eq!(
            found,
            [
                "step 1 (calendar__check): there is no such tool; is calendar.check meant?",
                "step 2 (calendar_check): there is no such tool; is calendar.check meant?",
                "step 3 (Calendar.Check): there is no such tool; is calendar.check meant?",
                "step 4 (calender.check): there is no such tool; is calendar.check meant?",
                "step 5 (tools.nwo): there is no such tool; is tools.now meant?",
                "step 6 (team.member): there is no such tool; is team.members meant?",
                "step 1 (file.read): there is no such tool; is file_read meant?",
                "step 2 (tools.nows): there is no such tool; is tools.now meant?",
                "step 3 (agent-think): there is no such tool; is agent.think meant?",
                "step 4 (web.search): there is no such tool",
                "step 5 (agent.reply): there is no such tool",
            ]
        );
    }

    #[test]
    fn references_to_what_is_not_there_yet() {
        let date = |reference: &str| json!({"event": "calendar.check", "params": {"date": reference}});
        let chain = json!([
            date("{tools.now.date}"),
            "tools.now",
            [date("on {tools.now.date}"), date("{calendar.check[0].x} {calendar.check[1].x}{calendar.check[3].x}")],
            date("{tools.now[1].date} {tools.then.date} {{tools.then}} {x y}"),
            date("{event.sender} {thread.analysis} {thread.t1.summary} {thread.t2.analysis} {thread.t1.events}"),
            date("{team.members.result} {calendar.check.events[0].title}"),
            "team.members",
        ]);
        assert_eq!(
            check(chain),
            [
                "step 1 (calendar.check): {tools.now.date} refers to a step that runs later",
                "step 4 (calendar.check): {calendar.check[1].x} refers to a step that runs at the same time",
                "step 4 (calendar.check): {calendar.check[3].x} refers to a step that runs later",
                "step 5 (calendar.check): {tools.now[1].date} refers to no step; there are 1 of tools.now, counted from [0]",
                "step 5 (calendar.check): {tools.then.date} refers to no step of the chain; before it there are calendar.check, tools.now",
                "step 6 (calendar.check): {thread.t2.analysis} reaches outside the thread; write {thread.analysis} or {thread.summary}",
                "step 6 (calendar.check): {thread.t1.events} refers to nothing of the thread; write {thread.analysis} or {thread.summary}",
                "step 7 (calendar.check): {team.members.result} refers to a step that runs later",
            ]
        );
        let own = json!([date("{calendar.check.result}")]);
        assert_eq!(
            check(own),
            ["step 1 (calendar.check): {calendar.check.result} refers to a step that runs at the same time"]
        );
    }

    #[test]
    fn steps_of_a_task_may_speak_of_each_other() {
        let schedule = |message: &str| {
            json!([{"event": "task.schedule", "params": {"at": "{tools.now.date} 17:00", "action": [
                {"event": "team.members"},
                {"event": "user.notify", "params": {"message": message}},
            ]}}])
        };
        let chain = |message: &str| json!(["tools.now", schedule(message)]);
        let unknown = "action: step 2 (user.notify): there is no such tool";
        assert_eq!(check(chain("")), [format!("step 2 (task.schedule): {unknown}")]);
        let check = |chain: Value| {
            let steps = format::from_json(&chain, 100).unwrap();
            mistakes(&steps, |name| TOOLS.contains(&name) || name == "user.notify", "t1")
        };
        assert!(check(chain("{team.members.result} {event.due_at} {tools.now.date}")).is_empty());
        assert_eq!(check(chain("{calendar.check.result}")).len(), 1);
        assert_eq!(check(schedule("")).len(), 1);
    }

    #[test]
    fn thinking_is_about_the_own_thread() {
        let think = |id: Value| json!([{"event": "agent.think", "params": {"thread_id": id}}, "agent.think"]);
        for id in [json!("t1"), json!(""), Value::Null] {
            assert!(check(think(id)).is_empty());
        }
        for id in [json!("t2"), json!(1), json!("{thread.match.thread_id}")] {
            let found = check(think(id));
            assert_eq!(found[0], "step 1 (agent.think): thread_id: it is not this thread; leave it out");
        }
        // A tool may be about any.
        assert!(check(json!([{"event": "thread.summarize", "params": {"thread_id": "t2"}}])).is_empty());
    }

    #[test]
    fn ten_thousand_steps() {
        let step = |at: usize| {
            let reference = format!("{{calendar.check[{}].x}} {{tools.then.x}}", at.saturating_sub(1));
            json!({"event": "calendar.check", "params": {"date": reference}})
        };
        // As many as have room at once.
        let steps: Vec<Value> = (0..1_000).map(step).collect();
        let steps = format::from_json(&json!(steps), 10_000).unwrap();
        let steps: Vec<StepSpec> = (0..10).flat_map(|_| steps.clone()).collect();
        let found = mistakes(&steps, |name| TOOLS.contains(&name), "t1");
        assert_eq!((found.len(), steps.len()), (21, 10_000));
        let wrong = format::from_json(&json!(vec!["x".repeat(64); 10_000]), 10_000).unwrap();
        let found = mistakes(&wrong, |_| false, "t1");
        assert_eq!(found.last().unwrap(), "… and 9980 more");
    }

    proptest! {
        #[test]
        fn no_chain_brings_it_down(texts in prop::collection::vec("([{}.]|tools\\.now|\\[0\\]|thread|\\PC){0,20}", 0..9)) {
            let step = |text: &String| json!({"event": "tools.now", "params": {"x": text, "action": [{"event": text}]}});
            let steps: Vec<Value> = texts.iter().map(step).chain([json!("tools.now")]).collect();
            check(json!(steps));
        }
    }
}
