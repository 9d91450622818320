//! Bounds on open items: the one that exceeds a bound is refused with the reason.

use kairo_events::subjects::{AGENT_COMMAND, TASK_DUE};
use kairo_proto::v1::{AgentCommand, TaskDue};
use serde_json::{Value, json};

use super::{
    chains::{chain, kinds, plan, planner, summary},
    *,
};

impl Agent {
    pub(super) fn hears_of(&mut self, user: &str, message_id: &str, text: &str) -> Record {
        let message =
            AgentMessage { message_id: message_id.into(), user: user.into(), text: text.into(), ..Default::default() };
        self.write(&AGENT_MESSAGE, None, message)
    }

    /// Returns true if applying the whole log again gives the same state.
    pub(super) fn is_what_the_log_says(&self) -> bool {
        let mut again = Log::default();
        for record in &self.log {
            again.push(record.clone()).unwrap();
        }
        again.state == self.mind.state
    }
}

#[test]
fn a_chain_too_many_is_refused() {
    let mut agent = planner();
    let steps = || chain(json!(["http.get"]));
    let go = |agent: &mut Agent, at: usize| agent.hears_of(&format!("user-{at}"), "m", "go");
    for at in 0..64 {
        go(&mut agent, at);
        assert!(kinds(&agent.decides(&[plan("1. go"), steps()]).unwrap()).contains(&"chain started".to_owned()));
    }
    go(&mut agent, 64);
    let decided = kinds(&agent.decides(&[plan("1. go"), steps()]).unwrap());
    assert_eq!(decided[2], "failed too_many_chains");
    assert!(decided[3].starts_with("say I cannot do this now: too much is under way already"), "{decided:?}");
    assert_eq!(agent.mind.state.turns.len(), 64);
    let action = *agent.mind.state.in_flight.keys().next().unwrap();
    let cause = agent.log.last().unwrap().clone();
    agent.learns(&cause, &action.to_string(), "{}");
    agent.decides(&[says("Done."), summary()]).unwrap();
    go(&mut agent, 65);
    agent.decides(&[plan("1. go"), steps()]).unwrap();
    assert_eq!(agent.mind.state.turns.len(), 64, "there is room again");
    assert!(agent.is_what_the_log_says());
}

/// The offer that is the oldest, and the message it is about.
fn suggested(agent: &mut Agent, message: &str, answers: &[Completion]) -> Vec<String> {
    agent.hears(message, message);
    kinds(&agent.decides(answers).unwrap())
}

#[test]
fn the_oldest_of_too_many_offers_goes_on_where_its_user_was() {
    let mut agent = planner();
    agent.hears("m0", "the launch");
    agent.decides(&[says("Noted.")]).unwrap();
    let elsewhere = || says(r#"{"action": "suggest_new", "reason": "something else"}"#);
    for at in 1..=4 {
        assert_eq!(suggested(&mut agent, &format!("m{at}"), &[elsewhere()]), ["suggest_new"]);
    }
    let decided = suggested(&mut agent, "m5", &[elsewhere(), says("As for m1: yes.")]);
    assert_eq!(decided, ["matched continue", "suggest_new", "say As for m1: yes."]);
    let said = agent.log.last().map(|record| decision(record).events[2].event.clone());
    let Some(Some(Event::Action(AgentAction { action: Some(Action::Say(say)) }))) = said else { panic!("{said:?}") };
    assert_eq!((say.message_id.as_str(), say.r#final), ("m1", true));
    let open: Vec<&str> = agent.mind.state.turns.values().map(|turn| turn.message_id.as_str()).collect();
    assert_eq!((open.len(), open.contains(&"m1")), (4, false));
    assert!(agent.is_what_the_log_says());
}

#[test]
fn too_many_actions_that_wait_for_consent_are_not_done() {
    let mut agent = planner();
    let steps = || chain(json!([["email.send", "email.send"]]));
    for at in 0..16 {
        agent.hears(&format!("m{at}"), "write");
        let matched = says(r#"{"action": "continue"}"#);
        let answers = if at == 0 { vec![plan("1."), steps()] } else { vec![matched, plan("1."), steps()] };
        assert_eq!(kinds(&agent.decides(&answers).unwrap()).last().unwrap(), "consent email.send");
    }
    agent.hears("m16", "write");
    let answers = [says(r#"{"action": "continue"}"#), plan("1."), steps(), says("Too many wait."), summary()];
    let decided = kinds(&agent.decides(&answers).unwrap());
    assert!(decided.contains(&"step 1 failed".to_owned()), "{decided:?}");
    let long = json!([{ "event": "email.send", "params": { "body": "x".repeat(40_000) } }]);
    let mut agent = planner();
    agent.hears("m1", "write");
    let decided = agent.decides(&[plan("1."), chain(long), says("It is too long."), summary()]).unwrap();
    assert!(kinds(&decided).contains(&"step 0 failed".to_owned()), "{:?}", kinds(&decided));
}

#[test]
fn a_message_is_turned_away_when_too_much_is_not_finished() {
    let mut agent = Agent::with(AgentProfile { history_limit: 4, ..Default::default() });
    for at in 0..1_000 {
        agent.hears(&format!("m{at}"), "go");
        agent.decides(&[calls(&["tools.now"])]).unwrap();
    }
    agent.hears("m1000", "go");
    let decided = acts(&agent.decides(&[]).unwrap());
    assert_eq!(decided[0], "too_many_turns?");
    assert!(decided[1].starts_with("I cannot take this on: 1000 things are not finished yet"), "{decided:?}");
    let action = *agent.mind.state.in_flight.keys().next().unwrap();
    let cause = agent.log.last().unwrap().clone();
    agent.learns(&cause, &action.to_string(), "{}");
    assert_eq!(acts(&agent.decides(&[says("noon")]).unwrap()), ["noon"], "what was begun goes on");
}

/// The id of the one task there is, made by a chain with this step.
fn scheduled(agent: &mut Agent, params: Value) -> String {
    agent.hears("task", "later");
    let steps = json!([{ "event": "task.schedule", "params": params }]);
    agent.decides(&[plan("1."), chain(steps), says("It is made."), summary()]).unwrap();
    agent.mind.state.tasks.open.keys().next().unwrap().to_string()
}

fn due(agent: &mut Agent, task_id: &str, occurrence: u64) -> Vec<String> {
    let due = TaskDue { task_id: task_id.into(), occurrence, due_at: "1970-01-01T01:00:00Z".into() };
    agent.write(&TASK_DUE, None, due);
    kinds(&agent.decides(&[]).unwrap())
}

#[test]
fn a_task_whose_runs_never_end_leaves_room_for_others() {
    let mut agent = planner();
    let id = scheduled(&mut agent, json!({ "interval": "1 hour", "action": ["http.get"], "title": "Look" }));
    for occurrence in 1..=8 {
        assert_eq!(due(&mut agent, &id, occurrence), ["task fired", "chain started", "call http.get"]);
    }
    let decided = due(&mut agent, &id, 9);
    let expected = "say The task “Look” could not be done: 8 earlier runs of it are not over.";
    assert_eq!(decided, ["task fired", "failed too_many_chains", expected, "chain failed"]);
    assert_eq!(agent.mind.state.turns.len(), 8);
    assert!(agent.is_what_the_log_says());
}

#[test]
fn a_task_cannot_run_itself_again() {
    let mut agent = planner();
    let action = json!(["task.list", { "event": "task.run", "params": { "task_id": "{task.list.tasks[0].task_id}" } }]);
    let id = scheduled(&mut agent, json!({ "interval": "1 hour", "action": action, "title": "Again" }));
    let decided = due(&mut agent, &id, 1);
    assert_eq!(decided.iter().filter(|kind| *kind == "task fired").count(), 1, "{decided:?}");
    assert!(decided.iter().any(|kind| kind.contains("cannot run again on behalf of itself")), "{decided:?}");
}

#[test]
fn nobody_cancels_the_chain_or_the_task_of_somebody_else() {
    let mut agent = planner();
    let id = scheduled(&mut agent, json!({ "interval": "1 hour", "action": ["http.get"] }));
    agent.hears_of("bob", "m1", "go");
    agent.decides(&[plan("1. go"), chain(json!(["http.get"]))]).unwrap();
    let chain_id = agent.mind.state.turns.values().find_map(|turn| turn.chain.as_ref()).unwrap().id.to_string();
    let mut orders = |user: &str, target: AgentCommand| {
        let command_id = agent.log.len().to_string();
        let order = AgentCommand { command_id, user: user.into(), command: "cancel".into(), ..target };
        agent.write(&AGENT_COMMAND, None, order);
        kinds(&agent.decides(&[]).unwrap()).remove(0)
    };
    let of_chain = || AgentCommand { chain_id: chain_id.clone(), ..Default::default() };
    let of_task = || AgentCommand { task_id: id.clone(), ..Default::default() };
    assert_eq!(orders("ann", of_chain()), "failed unknown_chain");
    assert_eq!(orders("bob", of_task()), "failed unknown_task");
    assert_eq!(orders("bob", of_chain()), "call action.cancel");
    assert_eq!(orders("ann", of_task()), "task canceled");
}

#[test]
fn steps_that_ask_no_model_do_not_count_against_the_answers_of_a_turn() {
    let mut agent = planner();
    agent.hears("m1", "go");
    // More steps than the turn has answers.
    let mut decided = agent.decides(&[plan("1. go"), chain(json!(vec!["tools.now"; 6]))]).unwrap();
    for _ in 0..5 {
        agent.learns(&decided, &actions(&decided)[0], "{}");
        decided = agent.decides(&[]).unwrap();
    }
    agent.learns(&decided, &actions(&decided)[0], "{}");
    let decided = agent.decides(&[plan("2. go on"), summary(), chain(json!(["http.get"]))]).unwrap();
    assert!(kinds(&decided).contains(&"call http.get".to_owned()), "{:?}", kinds(&decided));
}

#[test]
fn messages_of_one_user_are_not_joined_to_those_of_another() {
    let profile = AgentProfile { threads: "topics".into(), interjection: "join".into(), ..Default::default() };
    let mut agent = Agent::with(profile);
    for user in ["ann", "bob"] {
        agent.hears_of(user, "m0", "hello");
        agent.decides(&[says("Hello.")]).unwrap();
    }
    agent.hears_of("ann", "m1", "one secret");
    agent.hears_of("ann", "m2", "two");
    let elsewhere = says(r#"{"action": "suggest_new", "reason": "something else"}"#);
    let asked = agent.decides(&[elsewhere]).unwrap();
    assert_eq!(kinds(&asked), ["suggest_new"]);
    let shown = format!("{:?}", agent.asked.last().unwrap().messages);
    assert!(shown.contains("one secret") && shown.contains("two"), "all that is joined is matched: {shown}");
    agent.hears_of("bob", "m3", "three");
    let decided = agent.decides(&[says(r#"{"action": "continue"}"#), says("Three.")]).unwrap();
    assert_eq!(kinds(&decided), ["matched continue", "say Three."]);
    assert!(!format!("{:?}", agent.asked.last().unwrap().messages).contains("secret"));

    let offer = decision(&asked).events[0].event_id.clone();
    let choice = kairo_proto::v1::AgentChoice {
        choice_id: "c".into(),
        user: "ann".into(),
        offer_id: offer,
        option: "accept".into(),
    };
    agent.write(&kairo_events::subjects::AGENT_CHOICE, None, choice);
    let decided = agent.decides(&[says("Both.")]).unwrap();
    assert_eq!(kinds(&decided), ["matched new", "created", "matched continue", "joined", "say Both."]);
    assert!(agent.mind.state.turns.is_empty() && agent.is_what_the_log_says());
}

#[test]
fn what_is_joined_to_a_decision_too_large_is_over_with_it() {
    let mut agent = Agent::with(AgentProfile { interjection: "join".into(), ..Default::default() });
    agent.hears("m1", "one");
    agent.hears("m2", "two");
    let input = agent.next_input().unwrap();
    let instead =
        Deliberation::oversize_fallback(&agent.mind.state, &input, &catalogue(), &limits(), Vec::new()).unwrap();
    agent.write(&AGENT_DECISION, Some(&input.record.envelope), instead);
    assert!(agent.mind.state.turns.is_empty());
}

#[test]
fn an_agent_that_calls_tools_itself_needs_no_draft() {
    let mut agent = Agent::new();
    agent.hears("m1", "what time is it?");
    let decided = agent.decides(&[calls(&["tools.now"])]).unwrap();
    agent.learns(&decided, &actions(&decided)[0], "noon");
    let input = agent.next_input().unwrap();
    let limits = limits();
    let catalogue = catalogue();
    let (thought, _) = Deliberation::begin(&agent.mind.state, &input, &catalogue, &limits).unwrap();
    let reasoned = Completion { reasoning: "It is noon.".into(), ..says("Noon.") };
    let (thought, next) = thought.resume(vec![reasoned]);
    assert!(matches!(next, DeliberationStep::Commit(decision) if decision.events.len() == 2));
    assert!(!thought.has_draft());
}
