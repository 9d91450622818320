//! Sessions of work that have bounds: what is over waits, is said, and goes on.

use kairo_events::{prices::ModelPrice, subjects::TASK_DUE};
use kairo_proto::v1::{BasisPrice, SessionBounds, TaskDue};

use super::{background::queues, chains::kinds, *};
use crate::{prices::PriceList, tasks::Task};

fn with(session: SessionBounds) -> Agent {
    let session = Some(session);
    Agent::with(AgentProfile { conduct: "background".into(), session_pause: 90, session, ..Default::default() })
}

fn of_calls(model_calls: u32) -> Agent {
    with(SessionBounds { model_calls, ..Default::default() })
}

impl Agent {
    fn queues_up(&mut self, tasks: &[&str]) {
        for task in tasks {
            let message = format!("m{}", self.log.len());
            self.hears(&message, "do it");
            self.decides(&[queues("I will.", &[task])]).unwrap();
        }
    }

    fn queued(&self) -> Vec<&Task> {
        self.mind.state.tasks.queue()
    }

    /// The time has come for the task that waits for one.
    fn wakes(&mut self) {
        let waiting = self.queued().into_iter().find_map(|task| Some((task.id, task.next_due()?.1)));
        let (task, occurrence) = waiting.unwrap();
        self.write(&TASK_DUE, None, TaskDue { task_id: task.to_string(), occurrence, ..Default::default() });
        self.decides(&[]).unwrap();
    }
}

#[test]
fn what_a_session_may_not_take_any_more_waits_is_said_and_goes_on_after_the_pause() {
    let mut agent = of_calls(2);
    agent.queues_up(&["one", "two", "three", "four"]);
    assert_eq!(acts(&agent.works(&[says("one is done")]).unwrap()), ["one is done"]);
    assert_eq!(acts(&agent.works(&[says("two is done")]).unwrap()), ["two is done"]);
    let over = agent.works(&[]).unwrap();
    assert_eq!(kinds(&over)[..1], ["task pending"]);
    let said = "“three” has to wait: the session took 2 model calls, and it may make 2. I go on in 90 seconds.";
    assert_eq!(acts(&over), [said]);
    let conversation = decision(&over).events.iter().find(|event| event.say().is_some()).unwrap();
    assert_eq!(conversation.thread_id, agent.queued()[0].thread_id, "where it was asked for");
    assert_eq!(kinds(&agent.works(&[says("[]")]).unwrap()), ["completed"], "the session is over all the same");
    assert!(agent.works(&[]).is_none(), "neither goes the next one on, which waits for nothing");
    let waits: Vec<_> =
        agent.queued().iter().map(|task| (task.text(), task.next_due().is_some(), task.failed_sessions())).collect();
    assert_eq!(waits, [("three", true, 0), ("four", false, 0)]);

    agent.wakes();
    for done in ["three is done", "four is done"] {
        assert_eq!(acts(&agent.works(&[says(done)]).unwrap()), [done]);
    }
    agent.works(&[says("[]")]).unwrap();
    assert!(agent.mind.state.work.is_nothing());
    assert!(agent.mind.state.work.session.is_nothing(), "another one begins from nothing");
    agent.is_replayed();
}

#[test]
fn a_task_that_was_not_alone_is_put_back_without_blame_and_one_that_was_fails_in_three_sessions() {
    let mut agent = of_calls(2);
    agent.queues_up(&["small", "large"]);
    agent.works(&[says("small is done")]).unwrap();
    let asked = agent.works(&[calls(&["http.get"])]).unwrap();
    agent.learns(&asked, &actions(&asked)[0], "a page");
    assert_eq!(kinds(&agent.works(&[]).unwrap())[0], "task pending");
    assert_eq!(
        (agent.queued()[0].failed_sessions(), agent.queued()[0].last_occurrence()),
        (0, 1),
        "it had to share the session"
    );
    agent.works(&[says("[]")]).unwrap();
    for failed in 1..=3 {
        agent.wakes();
        for _ in 0..2 {
            let asked = agent.works(&[calls(&["http.get"])]).unwrap();
            agent.learns(&asked, &actions(&asked)[0], "a page");
        }
        let over = agent.works(&[]).unwrap();
        let expected = if failed < 3 { "task pending" } else { "task failed" };
        assert_eq!(kinds(&over)[0], expected);
        assert!(acts(&over)[0].contains("the session took 2 model calls"), "{:?}", acts(&over));
        assert_eq!(kinds(&agent.works(&[says("[]")]).unwrap()), ["completed"]);
    }
    assert!(agent.queued().is_empty() && agent.mind.state.work.is_nothing());
    agent.is_replayed();
}

#[test]
fn what_is_canceled_or_put_first_while_the_session_rests_lets_work_go_on() {
    for command in ["cancel", "first"] {
        let mut agent = of_calls(1);
        agent.queues_up(&["one", "two", "three"]);
        agent.works(&[says("one is done")]).unwrap();
        agent.works(&[]).unwrap();
        agent.works(&[says("[]")]).unwrap();
        assert!(agent.works(&[]).is_none());
        let task = agent.queued()[0].id.to_string();
        let call = CompletionToolCall {
            tool: format!("task.{command}"),
            arguments: serde_json::json!({ "task_id": task }).to_string(),
            ..Default::default()
        };
        agent.hears("m9", "go on");
        agent.decides(&[Completion { tool_calls: vec![call], ..Default::default() }, says("Yes.")]).unwrap();
        let done = acts(&agent.works(&[says("done")]).unwrap());
        assert_eq!(done, ["done"], "{command}");
    }
}

#[test]
fn tokens_money_and_time_are_bounds_too() {
    let price = ModelPrice::from_basis_price(&BasisPrice { input: 1_000_000, output: 1_000_000, ..Default::default() });
    let prices = PriceList::from_models(vec![("heavy".to_owned(), "m".to_owned(), Some(price))], None);
    let limits = DecisionLimits { prices, ..limits() };
    let bounds = [
        (SessionBounds { tokens: 30, ..Default::default() }, "40 tokens, and it may take 30"),
        (SessionBounds { cost: "0.00003".into(), ..Default::default() }, "the money that it may cost"),
        (SessionBounds { seconds: 3, ..Default::default() }, "seconds, and it may take 3"),
    ];
    for (bound, reason) in bounds {
        let mut agent = with(bound);
        agent.limits = limits.clone();
        agent.queues_up(&["one", "two"]);
        let page = || Completion { input_tokens: 10, output_tokens: 10, ..calls(&["http.get"]) };
        for _ in 0..2 {
            let asked = agent.works(&[page()]).unwrap();
            agent.learns(&asked, &actions(&asked)[0], "a page");
        }
        let over = acts(&agent.works(&[]).unwrap());
        assert!(over[0].contains(reason), "{over:?}");
    }
}
