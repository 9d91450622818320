//! Promises of agents that work in the background: each becomes a task, or is taken back, in the turn in which it is made.

use serde_json::json;

use super::{background::queues, chains::kinds, *};

/// One that talks in the background, whose list holds no tool of the queue.
fn listed() -> Agent {
    let tools = vec!["tools.*".to_owned()];
    Agent::with(AgentProfile { conduct: "background".into(), tools, ..Default::default() })
}

/// Requests of users, and promises of models that call nothing.
const PROMISES: [(&str, &str); 6] = [
    ("Please book the crane at Rotterdam for Tuesday", "Sure, I will book the crane."),
    ("帮我订厦门港周二的吊车", "好的，我来订。"),
    ("Bitte bestell zwölf Fässer für Lübeck", "Gern, ich kümmere mich darum."),
    ("Réserve trois places pour Ajaccio", "Bien sûr, je vais les réserver."),
    ("Reserva dos grúas en Vigo", "Claro, me encargo."),
    ("ロッテルダムのクレーンを予約して", "かしこまりました。"),
];

impl Agent {
    fn answers(&mut self, message: &str, words: &str, verdict: Completion) -> Record {
        self.promise = verdict;
        self.hears(&format!("m{}", self.log.len()), message);
        self.decides(&[says(words)]).unwrap()
    }

    fn queue(&self) -> Vec<String> {
        self.mind.state.tasks.queue().iter().map(|task| task.text().to_owned()).collect()
    }
}

#[test]
fn the_tools_of_the_queue_are_offered_and_called_whatever_the_list_says() {
    for tools in [vec!["tools.*"], vec!["tools.now"], vec!["*", "!task.*"], vec!["group:time", "!task.queue"]] {
        let tools = tools.into_iter().map(str::to_owned).collect();
        let profile = AgentProfile { conduct: "background".into(), tools, ..Default::default() };
        let mut agent = Agent::with(profile.clone());
        agent.hears("m1", "Research NVIDIA stock");
        let decided = agent.decides(&[queues("I will.", &["Research NVIDIA stock"])]).unwrap();
        assert_eq!(kinds(&decided), ["created", "task scheduled", "say I will."], "{:?}", profile.tools);
        let offered = |agent: &Agent, tool: &str| agent.asked.last().unwrap().tools.iter().any(|it| &*it.name == tool);
        for tool in ["task.queue", "task.first", "task.cancel", "task.list", "action.cancel"] {
            assert!(offered(&agent, tool), "{tool} of {:?}", profile.tools);
        }
        assert!(!offered(&agent, "task.schedule") || profile.tools.iter().any(|it| it == "*"));
        agent.works(&[says("It is up.")]).unwrap();
        let lists_all = profile.tools.iter().any(|it| it == "*");
        assert!(offered(&agent, "task.queue") && (lists_all || !offered(&agent, "http.get")));
        agent.is_replayed();
        // Others have what they list.
        let mut direct = Agent::with(AgentProfile { conduct: String::new(), ..profile });
        direct.hears("m1", "hi");
        direct.decides(&[says("Hello.")]).unwrap();
        assert!(!offered(&direct, "task.queue"));
    }
}

#[test]
fn a_promise_without_a_call_becomes_the_tasks_that_the_model_finds_in_it() {
    for (message, words) in PROMISES {
        let mut agent = listed();
        let tasks =
            json!([{ "title": "crane", "text": format!("{message} (quay 9)") }, { "title": "", "text": "Tell Ann" }]);
        let verdict = says(&json!({ "verdict": "queue", "tasks": tasks, "answer": "" }).to_string());
        let decided = agent.answers(message, words, verdict);
        assert_eq!(acts(&decided), [words], "the words stay");
        assert_eq!(agent.queue(), [format!("{message} (quay 9)"), "Tell Ann".to_owned()]);
        assert_eq!(decision(&decided).completions.len(), 2, "one request more");
        assert_eq!(acts(&agent.works(&[says("booked")]).unwrap()), ["booked"], "and it is told here");
        agent.is_replayed();
    }
}

#[test]
fn where_no_verdict_can_be_had_the_words_of_the_user_are_queued_for_what_reads_like_a_promise() {
    let unusable =
        || [says("I will book the crane."), says(r#"{"verdict":"maybe"}"#), fails(true), fails(false), says("")];
    for (message, words) in PROMISES {
        for verdict in unusable() {
            let mut agent = listed();
            let decided = agent.answers(message, words, verdict);
            assert_eq!((acts(&decided), agent.queue()), (vec![words.to_owned()], vec![message.to_owned()]));
            agent.is_replayed();
        }
    }
    for verdict in unusable() {
        let mut agent = listed();
        let decided = agent.answers("Hello", "Hello! What can I do?", verdict);
        assert_eq!((acts(&decided), agent.queue()), (vec!["Hello! What can I do?".to_owned()], Vec::new()));
        agent.is_replayed();
    }
}

#[test]
fn a_promise_that_cannot_be_kept_is_taken_back_in_the_same_turn() {
    let mut agent = listed();
    let verdict = json!({ "verdict": "take_back", "tasks": [], "answer": "I cannot fly a plane." }).to_string();
    let decided = agent.answers("Fly me to Oslo", "Sure, I will fly you there.", says(&verdict));
    assert_eq!((acts(&decided), agent.queue()), (vec!["I cannot fly a plane.".to_owned()], Vec::new()));
    assert!(agent.mind.state.turns.is_empty());
    agent.is_replayed();
}

#[test]
fn answers_that_called_something_and_those_of_other_turns_are_not_looked_at() {
    let mut agent = listed();
    agent.promise = Completion { text: "asked in vain".into(), ..fails(false) };
    agent.hears("m1", "two things");
    agent.decides(&[queues("I will do both.", &["one", "two"])]).unwrap();
    let stops = asks_for("task.cancel", json!({ "task_id": agent.mind.state.tasks.queue()[1].id.to_string() }));
    agent.hears("m2", "not the second");
    let decided = agent.decides(&[stops, says("I will leave it.")]).unwrap();
    assert_eq!(decision(&decided).completions.len(), 2);
    assert_eq!(agent.queue(), ["one"]);
    let done = agent.works(&[says("I will be done by noon, I'll look again.")]).unwrap();
    assert_eq!(decision(&done).completions.len(), 1);
    let mut direct = Agent::with(AgentProfile::default());
    direct.promise = fails(false);
    direct.hears("m1", "book it");
    assert_eq!(decision(&direct.decides(&[says("I will book it.")]).unwrap()).completions.len(), 1);
}

#[test]
fn builds_before_epoch_10_neither_looked_for_promises_nor_offered_what_is_not_listed() {
    let mut agent = listed();
    agent.limits = DecisionLimits { ..DecisionLimits::of_old_build() };
    agent.hears("m1", "book it");
    let decided = agent.decides(&[says("I will book it.")]).unwrap();
    assert_eq!((decision(&decided).completions.len(), agent.queue().len()), (1, 0));
    assert!(agent.asked[0].tools.iter().all(|tool| !tool.name.starts_with("task.")));
    agent.is_replayed();
}
