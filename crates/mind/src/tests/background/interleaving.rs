//! Whatever both lanes do, in whatever order.

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::subjects::{AGENT_COMMAND, TASK_DUE};
use kairo_proto::v1::{AgentCommand, SessionBounds, TaskDue};

use super::{super::*, queues, replay_of};
use crate::replay::ReplayedDecision;

#[derive(Clone, Debug)]
enum Happening {
    Hear {
        user: bool,
        tasks: usize,
    },
    Result(usize),
    CancelTask(usize),
    CancelAction(usize),
    Decide,
    Think,
    Work,
    /// The time of a task has come that waits for one.
    Due,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => (any::<bool>(), 0..3usize).prop_map(|(user, tasks)| Happening::Hear { user, tasks }),
        3 => (0..8usize).prop_map(Happening::Result),
        1 => (0..8usize).prop_map(Happening::CancelTask),
        1 => (0..8usize).prop_map(Happening::CancelAction),
        4 => Just(Happening::Decide),
        2 => Just(Happening::Think),
        4 => Just(Happening::Work),
        1 => Just(Happening::Due),
    ]
}

/// An agent whose models act by what they are asked, so that the same request has the same answer.
#[derive(Default)]
struct Lived {
    asked: Vec<(Record, String)>,
    /// The input of work that was thought about, and what was asked.
    thought: Option<(u64, BTreeSet<String>)>,
}

fn answer(request: &ModelRequest) -> Completion {
    if submodules::requested_voice(request).is_some() {
        // The same request has the same answer, whatever that is.
        return match request.digest().as_bytes()[0] % 4 {
            0 => fails(true),
            1 => says("-"),
            2 => submodules::late(),
            _ => says("look twice"),
        };
    }
    if request.tier == "light" {
        return match request.digest().as_bytes()[0] % 4 {
            0 => fails(true),
            1 => says(""),
            _ => says(r#"{ "title": "Looks", "summary": "They look." }"#),
        };
    }
    let Some(last) = request.messages.iter().rev().find_map(|message| match message {
        // Of several messages that follow each other the last one counts.
        PromptMessage::User { text, .. } => Some(words_of(text)).filter(|words| !words.is_empty()),
        _ => None,
    }) else {
        return says("nothing");
    };
    let results = request.messages.iter().filter(|message| matches!(message, PromptMessage::Tool { .. })).count();
    let last = last.rsplit("\n\n").next().unwrap_or_default();
    match (request.tier, last) {
        ("fast", session) if session.starts_with("The session") => {
            says(r#"[{ "kind": "insight", "content": "look twice" }]"#)
        }
        ("fast", "0") => says("hi"),
        ("fast", "1") => queues("I will.", &["look"]),
        ("fast", _) => queues("I will.", &["look", "queue"]),
        _ if !request.may_call_tools() => says("done"),
        ("heavy", "look") if results % 2 == 0 => calls(&["tools.now", "http.get"]),
        ("heavy", "queue") if results == 0 => queues("", &["look"]),
        _ => says("done"),
    }
}

impl Lived {
    fn live(&mut self, agent: &mut Agent, happening: &Happening) {
        let last = agent.log.len();
        match happening {
            Happening::Hear { user, tasks } => {
                let user = if *user { "ann" } else { "bob" };
                agent.hears_of(user, &format!("m{last}"), &tasks.to_string());
            }
            Happening::Result(which) if !self.asked.is_empty() => {
                let (decided, action) = self.asked.remove(which % self.asked.len());
                agent.learns(&decided, &action, "{}");
            }
            Happening::CancelAction(which) if !self.asked.is_empty() => {
                let (_, action_id) = self.asked[which % self.asked.len()].clone();
                let [user, command] = ["ann", "cancel"].map(str::to_owned);
                let command_id = format!("c{last}");
                agent.write(
                    &AGENT_COMMAND,
                    None,
                    AgentCommand { user, command, command_id, action_id, ..Default::default() },
                );
            }
            Happening::CancelTask(which) => {
                let queue = agent.mind.state.tasks.queue();
                let Some(task) = queue.get(which % queue.len().max(1)) else { return };
                let user = task.user.clone();
                let id = task.id.to_string();
                agent.orders(&user, &format!("c{last}"), "cancel", &id);
            }
            Happening::Result(_) | Happening::CancelAction(_) => {}
            Happening::Decide => {
                let decided = agent.decides_with(answer);
                self.note(decided);
            }
            Happening::Due => {
                let queue = agent.mind.state.tasks.queue();
                let waits = queue.iter().find_map(|task| task.next_due().map(|(_, occurrence)| (task.id, occurrence)));
                let Some((id, occurrence)) = waits else { return };
                let due = TaskDue { task_id: id.to_string(), occurrence, ..Default::default() };
                agent.write(&TASK_DUE, None, due);
            }
            Happening::Think => {
                let mut asked = BTreeSet::new();
                let thought = agent.thinks(|request| {
                    asked.insert(request.digest());
                    answer(request)
                });
                self.thought = thought.map(|(input, _)| (input.record.sequence, asked));
            }
            Happening::Work => {
                let mut asked = BTreeSet::new();
                let input = agent.next_work().map(|(_, input)| input.record.sequence);
                let decided = agent.works_with(|request| {
                    asked.insert(request.digest());
                    answer(request)
                });
                if let Some((_, before)) = self.thought.take().filter(|(thought, _)| Some(*thought) == input) {
                    assert_eq!(asked, before, "what was paid for is asked again");
                }
                self.note(decided);
            }
        }
    }

    fn note(&mut self, decided: Option<Record>) {
        let Some(decided) = decided else { return };
        self.asked.extend(actions(&decided).into_iter().map(|action| (decided.clone(), action)));
    }
}

/// Counts for each task the times it was begun, ended and told of.
fn ends(agent: &Agent) -> BTreeMap<String, (usize, usize, usize)> {
    let mut ends: BTreeMap<String, (usize, usize, usize)> = BTreeMap::new();
    let decisions = agent.log.iter().filter(|record| matches!(record.body, Body::AgentDecision(_)));
    for decided in decisions.map(decision) {
        for (at, event) in decided.events.iter().enumerate() {
            if let Some(Event::TaskScheduled(it)) = &event.event {
                ends.insert(it.task.as_ref().unwrap().task_id.clone(), (0, 0, 0));
            }
            if let Some(Event::TaskStarted(it)) = &event.event {
                ends.get_mut(&it.task_id).unwrap().0 += 1;
            }
            if let Some(Event::TaskEnded(it)) = &event.event {
                let told = decided.events.get(at + 1).is_some_and(|next| next.say().is_some());
                let entry = ends.get_mut(&it.task_id).unwrap();
                *entry = (entry.0, entry.1 + 1, entry.2 + usize::from(told));
            }
        }
    }
    ends
}

proptest! {
    // Each of them folds and decides a log of its own several times over.
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// However both lanes interleave, each task is begun at most once and ended once, sessions are over when nothing is left,
    /// and whoever folds the log again, from its beginning or from a snapshot, comes to the same decisions and the same state.
    #[test]
    fn whatever_both_lanes_do_each_task_ends_once(
        most_calls in prop_oneof![2 => Just(0), 1 => 1..6_u32],
        voices in prop_oneof![1 => Just(0), 1 => 1..4_u32],
        summary_after in prop_oneof![1 => Just(0), 1 => 1..4_u32],
        happenings in prop::collection::vec(happening(), 0..60),
        cut in 0..80usize,
    ) {
        let session = (most_calls > 0).then(|| SessionBounds { model_calls: most_calls, ..Default::default() });
        let mut agent = Agent::with(AgentProfile {
            conduct: "background".into(),
            session,
            submodules: submodules::voices(voices),
            summary_after,
            ..Default::default()
        });
        let mut lived = Lived::default();
        happenings.iter().for_each(|happening| lived.live(&mut agent, happening));
        let rounds = 0..1_000;
        for round in rounds.clone() {
            prop_assert!(round + 1 < rounds.end, "it never comes to rest: {:?}", agent.mind.state.submodules);
            let before = agent.log.len();
            for rest in [Happening::Decide, Happening::Work, Happening::Result(0), Happening::Due] {
                lived.live(&mut agent, &rest);
            }
            if agent.log.len() == before {
                break;
            }
        }
        for (task, (begun, ended, _)) in ends(&agent) {
            prop_assert!(ended == 1, "task {task} ended {ended} times");
            prop_assert!(begun <= 1 || most_calls > 0, "task {task} was begun {begun} times");
        }
        let state = &agent.mind.state;
        prop_assert!(state.work.is_nothing() && state.turns.is_empty(), "{:?} {:?}", state.work, state.turns);
        prop_assert!(state.threads.values().all(|thread| !thread.work));
        prop_assert!(state.submodules.shown.is_empty(), "what was decided was not shown: {:?}", state.submodules);
        prop_assert_eq!(agent.mind.pending_count(), 0);

        let mut replay = replay_of(&agent);
        for record in &agent.log {
            let replayed = replay.replay_record(record.clone());
            prop_assert!(replayed.as_ref().is_none_or(ReplayedDecision::is_same), "{replayed:?}");
        }
        let mut again = Log::default();
        let mut saved = None;
        for (position, record) in agent.log.iter().enumerate() {
            again.push(record.clone()).unwrap();
            if position >= cut && saved.is_none() {
                saved = Some(again.snapshot(LOG));
            }
        }
        while again.next_input().is_some() {}
        prop_assert_eq!(serde_json::to_string(&again.state).unwrap(), serde_json::to_string(state).unwrap());
        if let Some(saved) = saved {
            let mut resumed = Log::from_snapshot(saved.clone(), LOG).unwrap();
            for sequence in saved.ahead {
                resumed.supply_record(sequence, Some(agent.log[usize::try_from(sequence).unwrap() - 1].clone()));
            }
            let after = resumed.read;
            for record in agent.log.iter().filter(|record| record.sequence > after) {
                resumed.push(record.clone()).unwrap();
            }
            while resumed.next_input().is_some() {}
            prop_assert_eq!(serde_json::to_string(&resumed.state).unwrap(), serde_json::to_string(state).unwrap());
        }
    }
}
