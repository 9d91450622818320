//! Voices that think along: what they are shown, what becomes of what they say, and questions to them.

use kairo_events::subjects::{AGENT_APPROVAL, AGENT_COMMAND};
use kairo_proto::v1::{AgentApproval, AgentCommand, Submodule};
use serde_json::json;

use super::{chains::kinds, *};
use crate::submodules::model_requests;

fn module(name: &str) -> Submodule {
    Submodule { name: name.into(), prompt: format!("You are the {name}."), ..Default::default() }
}

fn with(submodules: Vec<Submodule>) -> Agent {
    Agent::with(AgentProfile { submodules, ..Default::default() })
}

/// Builds submodules that are shown everything; every other one wants to know what was decided.
pub(super) fn voices(number: u32) -> Vec<Submodule> {
    (0..number).map(|at| Submodule { wants_decisions: at % 2 == 0, ..module(&format!("m{at}")) }).collect()
}

pub(super) fn late() -> Completion {
    let error = CompletionError {
        kind: "late".into(),
        message: "no answer within 100 ms".into(),
        transient: false,
        ..Default::default()
    };
    Completion { error: Some(error), ..Default::default() }
}

/// The submodule that is asked; none where it is the agent itself.
pub(super) fn requested_voice(request: &ModelRequest) -> Option<String> {
    let PromptMessage::System { text } = request.messages.first()? else { return None };
    let name = text.split_once("Your name is ")?.1.split_once('.')?.0;
    text.starts_with("You are a submodule").then(|| name.to_owned())
}

impl Agent {
    /// Decides, each submodule saying this, the agent itself that.
    fn counsels(&mut self, voice: impl Fn(&str) -> Completion, own: Completion) -> Record {
        let decided =
            self.decides_with(|request| requested_voice(request).map_or_else(|| own.clone(), |name| voice(&name)));
        decided.expect("something to decide")
    }

    fn shown_last(&self) -> String {
        format!("{:?}", self.asked.last().unwrap().messages)
    }

    fn orders_submodule(&mut self, id: &str, command: &str, submodule: Submodule) -> Record {
        let (user, command_id, command) = ("ann".to_owned(), id.to_owned(), command.to_owned());
        let submodule = Some(submodule);
        self.write(&AGENT_COMMAND, None, AgentCommand { user, command_id, command, submodule, ..Default::default() })
    }
}

#[test]
fn each_new_input_goes_to_all_submodules_that_hear_it_at_once_and_what_they_say_is_shown_to_the_decision() {
    let deaf = Submodule { hears: vec!["result".into()], ..module("clerk") };
    let mut agent = with(vec![module("critic"), module("friend"), deaf]);
    agent.hears("m1", "shall we?");
    let input = agent.next_input().unwrap();
    let (limits, catalogue) = (limits(), catalogue());
    let (_, next) = Deliberation::begin(&agent.mind.state, &input, &catalogue, &limits).unwrap();
    let DeliberationStep::Ask(questions) = next else { panic!("nobody is asked") };
    let all: Vec<_> = questions.iter().map(|it| (it.module.as_str(), it.deadline_ms, it.request.tier)).collect();
    assert_eq!(all, [("critic", Some(10_000), "fast"), ("friend", Some(10_000), "fast")]);
    let decided = agent.counsels(|name| says(&format!("{name} says no")), says("yes"));
    assert_eq!(kinds(&decided), ["created", "critic thinks critic says no", "friend thinks friend says no", "say yes"]);
    let shown = agent.shown_last();
    assert!(shown.contains("critic: critic says no") && shown.contains("friend: friend says no"), "{shown}");
    assert!(
        agent.asked.iter().filter(|it| requested_voice(it).is_some()).all(|it| format!("{it:?}").contains("shall we?"))
    );
    let modules: Vec<_> = decision(&decided).completions.iter().map(|it| it.module.as_str()).collect();
    assert_eq!(modules, ["critic", "friend", ""]);
    assert!(agent.mind.state.turns.is_empty());
    agent.is_replayed();
}

#[test]
fn who_is_late_or_fails_is_left_out_and_that_is_an_event_and_holds_up_no_decision() {
    let mut agent = with(vec![module("slow"), module("broken"), module("quiet")]);
    agent.hears("m1", "hello");
    let decided = agent.counsels(
        |name| match name {
            "slow" => late(),
            "broken" => fails(true),
            _ => says("-"),
        },
        says("hi"),
    );
    assert_eq!(kinds(&decided), ["created", "slow late", "broken failed", "say hi"], "and none is asked again");
    agent.is_replayed();
}

#[test]
fn each_input_of_a_turn_is_shown_once_and_what_was_said_is_kept_for_its_later_steps() {
    let mut agent = with(vec![module("critic")]);
    agent.hears("m1", "what time is it?");
    let called = agent.counsels(|_| says("be careful"), calls(&["tools.now"]));
    agent.learns(&called, &actions(&called)[0], "noon");
    let decided = agent.counsels(|_| says("it is early"), says("noon"));
    assert_eq!(kinds(&decided), ["critic thinks it is early", "say noon"]);
    let shown = agent.shown_last();
    assert!(shown.contains("be careful") && shown.contains("it is early"), "{shown}");
    let of_result = agent.asked.iter().rfind(|it| requested_voice(it).is_some()).unwrap();
    assert!(format!("{of_result:?}").contains("What is new (result)") && format!("{of_result:?}").contains("noon"));
    // An intrinsic within a decision is no new input.
    agent.hears("m2", "and what did we talk about?");
    let mut own = [asks_for("history.query", json!({})), says("the time")].into_iter();
    let decided = agent
        .decides_with(|request| if requested_voice(request).is_some() { says("-") } else { own.next().unwrap() })
        .unwrap();
    let asked_them = decision(&decided).completions.iter().filter(|it| !it.module.is_empty()).count();
    assert_eq!(asked_them, 1);
    agent.is_replayed();
}

#[test]
fn a_submodule_does_not_count_as_a_step_of_the_turn() {
    let heavy = Submodule { tier: "heavy".into(), ..module("thinker") };
    let mut agent = Agent::with(AgentProfile { submodules: vec![heavy], max_steps: 3, ..Default::default() });
    agent.hears("m1", "hello");
    for _ in 0..2 {
        let called = agent.counsels(|_| says("hm"), calls(&["tools.now"]));
        agent.learns(&called, &actions(&called)[0], "1");
    }
    assert_eq!(acts(&agent.counsels(|_| says("hm"), says("one"))), ["one"]);
}

#[test]
fn if_uncertain_the_decision_module_asks_a_submodule_and_the_answer_comes_back_to_it() {
    let mut agent = with(vec![Submodule { hears: vec!["process".into()], ..module("lawyer") }]);
    agent.hears("m1", "may we?");
    let question = asks_for("submodule.ask", json!({ "name": "lawyer", "question": "Is it legal?" }));
    let mut own = [question, says("yes")].into_iter();
    let answer =
        |request: &ModelRequest| if requested_voice(request).is_some() { says("It is.") } else { own.next().unwrap() };
    let decided = agent.decides_with(answer).unwrap();
    let expected = [
        "created",
        "chain started",
        "asks 1 lawyer Is it legal?",
        "lawyer thinks It is.",
        "step 0 done",
        "chain done",
        "say yes",
    ];
    assert_eq!(kinds(&decided).into_iter().filter(|kind| !kind.starts_with("step 1")).collect::<Vec<_>>(), expected);
    assert!(agent.shown_last().contains("It is."), "{}", agent.shown_last());
    agent.is_replayed();
}

#[test]
fn questions_end_after_three_rounds_and_a_failing_answer_ends_its_step_alone() {
    let mut agent = with(vec![Submodule { hears: vec!["process".into()], ..module("lawyer") }]);
    agent.limits.max_steps = 9;
    agent.hears("m1", "may we?");
    let question = || asks_for("submodule.ask", json!({ "name": "lawyer", "question": "Is it?" }));
    let mut own = [question(), question(), question(), question(), says("no")].into_iter();
    let mut theirs = [says("Yes."), late(), fails(true)].into_iter();
    let answer = |request: &ModelRequest| match requested_voice(request) {
        Some(_) => theirs.next().expect("asked in a fourth round"),
        None => own.next().unwrap(),
    };
    let decided = agent.decides_with(answer).unwrap();
    let kinds = kinds(&decided);
    let asks: Vec<_> = kinds.iter().filter(|kind| kind.starts_with("asks") || kind.starts_with("lawyer")).collect();
    let expected = [
        "asks 1 lawyer Is it?",
        "lawyer thinks Yes.",
        "asks 2 lawyer Is it?",
        "lawyer late",
        "asks 3 lawyer Is it?",
        "lawyer failed",
    ];
    assert_eq!(asks, expected);
    assert_eq!(acts(&decided).last().unwrap(), "no");
    agent.is_replayed();
}

#[test]
fn submodules_are_added_and_removed_with_a_humans_consent() {
    let tools = vec!["submodule.*".to_owned()];
    let mut agent = Agent::with(AgentProfile { max_submodules: 2, tools, ..Default::default() });
    agent.hears("m1", "get yourself a critic");
    let add = asks_for("submodule.add", json!({ "name": "critic", "prompt": "You find fault." }));
    let asked_for = agent.decides(&[add]).unwrap();
    assert_eq!(kinds(&asked_for).last().unwrap(), "consent submodule.add");
    assert!(agent.mind.state.active_submodules().next().is_none(), "nobody has consented");
    let request = decision(&asked_for).events.last().unwrap().event_id.clone();
    let approval = AgentApproval {
        approval_id: "v1".into(),
        user: "ann".into(),
        action_id: request,
        verdict: "approved".into(),
        ..Default::default()
    };
    agent.write(&AGENT_APPROVAL, None, approval);
    let added = agent.counsels(|_| says("-"), says("I have one."));
    assert!(kinds(&added).contains(&"submodule critic added".to_owned()), "{:?}", kinds(&added));
    assert_eq!(agent.mind.state.active_submodules().map(|voice| voice.name.as_str()).collect::<Vec<_>>(), ["critic"]);
    agent.hears("m2", "hello");
    agent.counsels(|_| says("hm"), says("hi"));
    assert!(agent.asked.iter().any(|request| requested_voice(request).as_deref() == Some("critic")));
    agent.is_replayed();
}

/// A submodule that one user adds would think along in the turns of the others.
#[test]
fn users_change_submodules_only_where_the_profile_names_the_tools_for_it() {
    for tools in [vec![], vec!["*".to_owned()], vec!["tools.*".to_owned()]] {
        let submodules = vec![module("one")];
        let mut agent = Agent::with(AgentProfile { submodules, tools, ..Default::default() });
        agent.hears("m1", "get yourself a critic");
        let add = asks_for("submodule.add", json!({ "name": "critic", "prompt": "You find fault." }));
        let decided = agent.decides_with(|request| match requested_voice(request) {
            Some(_) => says("-"),
            None if request.tools.iter().any(|tool| *tool.name == *"submodule.add") => panic!("it is offered"),
            None if agent_was_refused(request) => says("I cannot."),
            None => add.clone(),
        });
        let decided = decided.expect("something to decide");
        assert!(!kinds(&decided).iter().any(|kind| kind.starts_with("consent")), "{:?}", kinds(&decided));
        assert_eq!(agent.mind.state.active_submodules().map(|voice| voice.name.as_str()).collect::<Vec<_>>(), ["one"]);
    }
}

/// Returns true if the agent was told that it cannot make the call it made.
fn agent_was_refused(request: &ModelRequest) -> bool {
    format!("{:?}", request.messages).contains("could not be used")
}

#[test]
fn people_order_submodules_without_asking_a_model_and_definitions_keep_those_that_were_added() {
    let mut agent = with(vec![module("one")]);
    let profile = AgentProfile { agent: "a".into(), submodules: vec![module("one")], ..Default::default() };
    agent.orders_submodule("c1", "add", module("two"));
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["submodule two added"]);
    agent.orders_submodule("c2", "remove", module("one"));
    assert_eq!(kinds(&agent.decides(&[]).unwrap()), ["submodule one removed"]);
    let names =
        |agent: &Agent| agent.mind.state.active_submodules().map(|voice| voice.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&agent), ["two"]);
    agent.write(&AGENT_DEFINED, None, AgentDefined { profile: Some(profile), ..Default::default() });
    agent.next_input();
    assert_eq!(names(&agent), ["one", "two"], "a definition anew replaces those of the profile");
    agent.orders_submodule("c3", "remove", module("three"));
    assert_eq!(acts(&agent.decides(&[]).unwrap()), ["unknown_submodule?"]);
    agent.orders_submodule("c4", "add", module("two"));
    assert_eq!(acts(&agent.decides(&[]).unwrap()), ["unknown_submodule?"], "there is one already");
}

#[test]
fn an_agent_has_eight_submodules_at_most_unless_its_profile_says_otherwise() {
    let mut agent = with((0..9).map(|at| module(&format!("m{at}"))).collect());
    assert!(agent.next_input().is_none());
    assert_eq!(agent.mind.state.active_submodules().count(), 8);
    agent.orders_submodule("c1", "add", module("one-more"));
    assert_eq!(acts(&agent.decides(&[]).unwrap()), ["unknown_submodule?"]);
    let more = AgentProfile { max_submodules: 9, ..Default::default() };
    let mut agent =
        Agent::with(AgentProfile { submodules: (0..9).map(|at| module(&format!("m{at}"))).collect(), ..more });
    assert!(agent.next_input().is_none());
    assert_eq!(agent.mind.state.active_submodules().count(), 9);
}

#[test]
fn a_decision_is_shown_the_latest_entries_and_its_own() {
    let mut agent = Agent::with(AgentProfile { history_cutoff: 2, ..Default::default() });
    for at in 0..4 {
        agent.hears(&format!("m{at}"), &format!("word {at}"));
        agent.decides(&[says(&format!("answer {at}"))]).unwrap();
    }
    let shown = agent.shown_last();
    assert!(!shown.contains("word 2") && shown.contains("answer 2") && shown.contains("word 3"), "{shown}");
    agent.hears("m9", "what was word 0?");
    let query = asks_for("history.query", json!({ "words": "WORD 0", "limit": 1 }));
    let queried = agent.decides(&[query, says("zero")]).unwrap();
    let result = decision(&queried).events.iter().find_map(|event| {
        let Some(Event::ChainStepEnded(ended)) = &event.event else { return None };
        Some(ended.result.clone()).filter(|result| !result.is_empty())
    });
    assert!(result.as_ref().is_some_and(|result| result.contains("word 0")), "{result:?}");
    agent.is_replayed();
}

#[test]
fn a_decision_is_shown_what_is_within_the_time_window() {
    let mut agent = Agent::with(AgentProfile { history_window: 100, ..Default::default() });
    agent.hears("m1", "long ago");
    agent.decides(&[says("indeed")]).unwrap();
    agent.later = 1_000;
    agent.hears("m2", "just now");
    agent.decides(&[says("right")]).unwrap();
    agent.hears("m3", "and this");
    agent.decides(&[says("too")]).unwrap();
    let shown = agent.shown_last();
    assert!(!shown.contains("long ago") && shown.contains("just now") && shown.contains("and this"), "{shown}");
    agent.is_replayed();
}

#[test]
fn submodules_ask_the_history_themselves_as_the_user_of_the_turn() {
    let mut agent = with(vec![module("memory")]);
    agent.hears_of("bob", "m1", "the code is 7");
    agent.counsels(|_| says("-"), says("noted"));
    agent.hears("m2", "the code is 8");
    agent.counsels(|_| says("-"), says("noted"));
    agent.hears("m3", "which code?");
    let mut theirs = [asks_for("history.query", json!({ "words": "code" })), says("eight")].into_iter();
    let answer = |request: &ModelRequest| match requested_voice(request) {
        Some(_) => theirs.next().unwrap(),
        None => says("8"),
    };
    let decided = agent.decides_with(answer).unwrap();
    assert_eq!(kinds(&decided), ["memory thinks eight", "say 8"]);
    let with_result = agent.asked.iter().rfind(|it| requested_voice(it).is_some()).unwrap();
    let shown = format!("{:?}", with_result.messages);
    assert!(shown.contains("the code is 8") && !shown.contains("the code is 7"), "{shown}");
    agent.is_replayed();
}

fn listener(name: &str) -> Submodule {
    Submodule { wants_decisions: true, hears: vec!["process".into()], ..module(name) }
}

#[test]
fn what_was_decided_is_shown_in_the_work_lane_and_messages_overtake_it() {
    let mut agent = with(vec![listener("diary"), module("critic")]);
    agent.hears("m1", "hello");
    agent.counsels(|_| says("-"), says("hi"));
    assert!(agent.next_work().is_some(), "it is to be shown");
    agent.hears("m2", "and?");
    assert_eq!(acts(&agent.counsels(|_| says("-"), says("and what"))), ["and what"], "the message is decided on first");
    let told = agent.works(&[says("they greet twice")]).unwrap();
    assert_eq!(kinds(&told), ["diary thinks they greet twice", "broadcast diary"]);
    let told = agent.works(&[says("-")]).unwrap();
    assert_eq!(kinds(&told), ["broadcast diary"]);
    assert!(agent.next_work().is_none(), "a broadcast causes none");
    agent.hears("m3", "still there?");
    agent.counsels(|_| says("-"), says("yes"));
    assert!(agent.shown_last().contains("they greet twice"), "{}", agent.shown_last());
    agent.works(&[says("-")]).unwrap();
    agent.hears("m4", "and now?");
    agent.counsels(|_| says("-"), says("yes"));
    assert!(!agent.shown_last().contains("they greet twice"), "it is shown once");
    agent.is_replayed();
}

#[test]
fn several_decisions_meanwhile_are_shown_together_and_each_conversation_by_itself() {
    let mut agent = with(vec![listener("diary")]);
    for (user, at) in [("ann", 0), ("ann", 1), ("bob", 2), ("ann", 3)] {
        agent.hears_of(user, &format!("m{at}"), "hello");
        agent.counsels(|_| says("-"), says(&format!("answer {at}")));
    }
    let mut shown = Vec::new();
    while let Some(record) = agent.works_with(|_| says("-")) {
        assert_eq!(kinds(&record), ["broadcast diary"]);
        assert!(shown.len() < 9, "it never ends");
        shown.push(record);
    }
    agent.is_replayed();
    assert_eq!(shown.len(), 3, "the first, two together, and bob's");
    assert!(agent.mind.state.submodules.shown.is_empty() && agent.mind.state.work.is_nothing());
}

#[test]
fn a_broadcast_ends_also_when_models_fail() {
    let mut agent = with(vec![listener("diary"), listener("critic")]);
    agent.hears("m1", "hello");
    agent.counsels(|_| says("-"), says("hi"));
    let told = agent.works(&[fails(true), late()]).unwrap();
    assert_eq!(kinds(&told), ["diary failed", "critic late", "broadcast diary critic"]);
    assert!(agent.next_work().is_none());
    agent.hears("m2", "hello");
    agent.counsels(|_| says("-"), says("hi"));
    let (state, input) = agent.next_work().unwrap();
    let (limits, catalogue) = (limits(), catalogue());
    let instead = Deliberation::oversize_fallback(&state, &input, &catalogue, &limits, Vec::new()).unwrap();
    agent.write(&AGENT_DECISION, Some(&input.record.envelope), instead);
    assert!(agent.next_work().is_none(), "also what is too large to be written");
}

#[test]
fn whoever_works_in_the_background_is_shown_its_decisions_between_the_steps_of_a_task() {
    let submodules = vec![listener("diary")];
    let mut agent = Agent::with(AgentProfile { conduct: "background".into(), submodules, ..Default::default() });
    agent.hears("m1", "look it up");
    let queued = Completion { text: "I will.".into(), ..asks_for("task.queue", json!({ "text": "look" })) };
    agent.decides(&[queued]).unwrap();
    assert_eq!(kinds(&agent.works(&[says("-")]).unwrap()), ["broadcast diary"]);
    assert_eq!(kinds(&agent.starts().unwrap())[1], "task started");
    let begun = agent.works(&[calls(&["tools.now"])]).unwrap();
    assert_eq!(kinds(&agent.works(&[says("time flies")]).unwrap()), ["diary thinks time flies", "broadcast diary"]);
    agent.learns(&begun, &actions(&begun)[0], "noon");
    let ended = agent.works(&[says("noon")]).unwrap();
    assert!(agent.shown_last().contains("time flies"), "{}", agent.shown_last());
    assert_eq!(kinds(&ended), ["task completed", "say noon"]);
    let mut left = Vec::new();
    while let Some(record) =
        agent.works_with(|request| if requested_voice(request).is_some() { says("-") } else { says("[]") })
    {
        left.push(kinds(&record).join(" "));
        assert!(left.len() < 9, "it never ends: {left:?}");
    }
    assert!(agent.mind.state.work.is_nothing(), "{left:?} {:?}", agent.mind.state.work);
    agent.is_replayed();
}

#[test]
fn agents_without_submodules_are_offered_and_asked_what_they_were_ever() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let decided = agent.decides(&[says("hi")]).unwrap();
    let offered = &agent.asked[0].tools;
    assert!(!offered.iter().any(|tool| crate::intrinsics::submodules::is_of_submodules(&tool.name)));
    assert_eq!(kairo_events::vocabulary::required_reader(&decided.body), kairo_events::vocabulary::FIRST);
    assert!(agent.next_work().is_none());
    let state = serde_json::to_string(&agent.mind.state).unwrap();
    for new in ["submodules", "counsel", "times", "now\"", "cutoff"] {
        assert!(!state.contains(new), "{new} is in {state}");
    }
}

/// A thread of work that is over is no longer at hand, and with it whose it was: what is written then would be everybody's.
#[test]
fn what_is_shown_of_no_conversation_that_is_at_hand_offers_no_tools() {
    let submodules = vec![listener("diary")];
    let mut agent = Agent::with(AgentProfile { submodules, inner_state: true, ..Default::default() });
    agent.hears("m1", "hello");
    agent.counsels(|_| says("-"), says("hi"));
    let state = &agent.mind.state;
    let voice = state.find_submodule("diary").unwrap();
    let thread_id = state.submodules.shown.front().unwrap().thread_id.clone();
    let offered = |thread_id: &str| model_requests::broadcast_request(state, voice, thread_id, u64::MAX).tools;
    assert!(offered(&thread_id).iter().any(|tool| *tool.name == *"state.write"));
    assert_eq!((offered(""), offered("gone")), (Vec::new(), Vec::new()));
}
