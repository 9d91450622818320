//! Tasks that go on: what was done for one is shown when it is worked on again, and nothing of it is done twice.

use kairo_events::subjects::TASK_DUE;
use kairo_proto::v1::{SessionBounds, TaskDue};

use super::{background::queues, chains::kinds, *};
use crate::tasks::TaskPhase;

fn with(session: SessionBounds, task: SessionBounds) -> Agent {
    let session = Some(session);
    let task = Some(task);
    Agent::with(AgentProfile { conduct: "background".into(), max_steps: 50, session, task, ..Default::default() })
}

fn of_calls(model_calls: u32) -> SessionBounds {
    SessionBounds { model_calls, ..SessionBounds::default() }
}

/// Places, works and words in several languages, of which situations are made.
const WORKS: [(&str, &str); 6] = [
    ("Pay the berth in Zeebrugge", "paid 812.40"),
    ("预订厦门港的吊车", "已订三号吊车"),
    ("Bestelle zwölf Fässer in Lübeck", "zwölf Fässer, Lieferung Dienstag"),
    ("Réserve le ferry pour Ajaccio", "réservé, place 31"),
    ("Pide tres grúas en Vigo", "tres grúas"),
    ("Забронируй склад в Туапсе", "склад 14"),
];

impl Agent {
    fn queues_one(&mut self, work: &str) {
        self.hears("m1", work);
        self.decides(&[queues("I will.", &[work])]).unwrap();
    }

    /// One step of the task at hand: a call, which comes to this.
    fn pays(&mut self, result: &str) {
        let asked = self.works(&[calls(&["http.get"])]).unwrap();
        self.learns(&asked, &actions(&asked)[0], result);
    }

    /// The session is over, and the time has come for the task to go on.
    fn goes_on(&mut self) {
        while self.works_with(|_| says("[]")).is_some() {}
        let waiting = self.mind.state.tasks.queue().into_iter().find_map(|task| Some((task.id, task.next_due()?.1)));
        let (task, occurrence) = waiting.unwrap();
        self.write(&TASK_DUE, None, TaskDue { task_id: task.to_string(), occurrence, ..Default::default() });
        self.decides(&[]).unwrap();
    }

    fn calls_shown(&self) -> usize {
        let shown = &self.asked.last().unwrap().messages;
        shown.iter().filter(|message| matches!(message, PromptMessage::Tool { .. })).count()
    }
}

#[test]
fn a_task_that_reaches_its_sessions_bound_is_shown_what_it_did_call_by_call() {
    for (work, paid) in WORKS {
        let mut agent = with(of_calls(2), of_calls(9));
        agent.queues_one(work);
        for session in 0..3 {
            agent.pays(&format!("{paid} #{session}"));
            agent.pays("noon");
            let put_back = agent.works(&[]).unwrap();
            assert_eq!(
                kinds(&put_back)[0],
                "task pending",
                "{session}: it has a bound of its own, which is not reached"
            );
            agent.goes_on();
        }
        let ended = agent.works(&[says("All done.")]).unwrap();
        assert_eq!(kinds(&ended), ["task completed", "say All done."]);
        assert_eq!(agent.calls_shown(), 6, "each call with its result");
        let texts = agent.texts();
        let at = |part: &str| texts.iter().position(|text| text.contains(part)).unwrap();
        assert!(at(work) < at(&format!("{paid} #0")) && at(&format!("{paid} #0")) < at(&format!("{paid} #2")));
        let told = "Go on from there: do nothing again that was done. Work on it stopped because: the session took";
        assert_eq!(texts.iter().filter(|text| text.contains(told)).count(), 1, "{texts:?}");
        assert!(at(told) > at(&format!("{paid} #2")));
        agent.is_replayed();
    }
}

#[test]
fn a_task_that_failed_is_shown_what_it_did_in_the_same_session_and_in_another_one() {
    for others in [&[][..], &["something else"]] {
        let mut agent = with(SessionBounds::default(), SessionBounds::default());
        agent.queues_one("Pay the berth");
        for other in others {
            agent.hears("m2", other);
            agent.decides(&[queues("I will.", &[other])]).unwrap();
        }
        agent.pays("paid 812.40");
        assert_eq!(kinds(&agent.works(&[fails(false)]).unwrap()).last().unwrap(), "task pending");
        if !others.is_empty() {
            // The session goes on with another task, in the same thread.
            agent.starts().unwrap();
        }
        let waiting = agent.mind.state.tasks.queue().into_iter().find_map(|task| Some((task.id, task.next_due()?.1)));
        if let (Some((task, occurrence)), false) = (waiting, others.is_empty()) {
            agent.write(&TASK_DUE, None, TaskDue { task_id: task.to_string(), occurrence, ..Default::default() });
            agent.decides(&[]).unwrap();
            agent.works(&[says("else is done")]).unwrap();
        } else {
            agent.goes_on();
        }
        let ended = agent.works(&[says("All done.")]).unwrap();
        assert_eq!(kinds(&ended), ["task completed", "say All done."]);
        assert_eq!(agent.calls_shown(), 1, "once, also where the thread held it already");
        agent.is_replayed();
    }
}

#[test]
fn a_task_that_reaches_its_own_bound_has_failed_and_what_it_did_stands() {
    let mut agent = with(of_calls(2), of_calls(3));
    agent.queues_one("Pay the berth");
    agent.pays("paid");
    agent.pays("noon");
    assert_eq!(kinds(&agent.works(&[]).unwrap())[0], "task pending");
    agent.goes_on();
    agent.pays("noon");
    let ended = agent.works(&[]).unwrap();
    assert_eq!(kinds(&ended)[0], "task failed");
    assert!(acts(&ended)[0].contains("the task took 3 model calls, and it may make 3"), "{:?}", acts(&ended));
    assert!(agent.mind.state.tasks.queue().is_empty());
    agent.is_replayed();
}

#[test]
fn putting_another_task_first_leaves_the_one_at_hand_its_paid_call() {
    let mut agent = with(SessionBounds::default(), SessionBounds::default());
    agent.hears("m1", "two things");
    agent.decides(&[queues("I will.", &["one", "two"])]).unwrap();
    agent.starts().unwrap();
    let mut paid = Vec::new();
    let (before, _) = agent
        .thinks(|request| {
            paid.push(request.digest());
            says("one is done")
        })
        .unwrap();
    let second = agent.mind.state.tasks.queue()[1].id.to_string();
    agent.hears("m2", "two first");
    let first = asks_for("task.first", serde_json::json!({ "task_id": second }));
    agent.decides(&[first, says("Yes.")]).unwrap();
    let is_paid = |request: &ModelRequest| paid.contains(&request.digest());
    let (after, decided) =
        agent.thinks(|request| says(if is_paid(request) { "one is done" } else { "asked anew" })).unwrap();
    assert_eq!(decided.completions[0].text, "one is done");
    assert_eq!((after.record, decided.completions.len()), (before.record, 1));
    assert_eq!(acts(&agent.works(&[says("one is done")]).unwrap()), ["one is done"]);
    assert_eq!(acts(&agent.works(&[says("two is done")]).unwrap()), ["two is done"]);
    agent.is_replayed();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever bound a session has, and however often it ends or fails, each step of a task is made once and it ends with all.
    #[test]
    fn each_step_of_a_task_is_made_once_whatever_its_sessions_may_take(
        steps in 1usize..7, session in 1u32..5, failing in proptest::collection::vec(any::<bool>(), 6),
    ) {
        let mut agent = with(of_calls(session), of_calls(1_000));
        agent.queues_one("Pay them one after the other");
        let mut failing = failing.into_iter();
let mut fails_left = 2;
let mut made = 0usize;
        for _ in 0..200 {
            let mut has_failed = false;
            let mut shown = 0;
            let is_failing = fails_left > 0 && failing.next().unwrap_or_default();
            let decided = agent.works_with(|request| {
                if request.tier == "fast" {
                    return says("[]");
                }
                shown = request.messages.iter().filter(|message| matches!(message, PromptMessage::Tool { .. })).count();
                has_failed = is_failing;
                match shown < steps {
                    _ if is_failing => fails(false),
                    true => calls(&["http.get"]),
                    false => says("All of them."),
                }
            });
            let Some(decided) = decided else {
                let waiting = agent.mind.state.tasks.queue().into_iter().find_map(|task| Some((task.id, task.next_due()?.1)));
                let Some((task, occurrence)) = waiting else { break };
                agent.write(&TASK_DUE, None, TaskDue { task_id: task.to_string(), occurrence, ..Default::default() });
                agent.decides(&[]).unwrap();
                continue;
            };
            if has_failed {
                fails_left -= 1;
            }
            for action in actions(&decided) {
                prop_assert_eq!(shown, made, "it is shown all that it did");
                made += 1;
                agent.learns(&decided, &action, &format!("paid {made}"));
            }
        }
        prop_assert_eq!(made, steps);
        let done = agent.mind.state.tasks.ended.iter().last().map(|task| task.status);
        prop_assert_eq!(done, Some(TaskPhase::Completed));
        agent.is_replayed();
    }
}
