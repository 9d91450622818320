//! The chains of seed 000, word for word, read and checked with the events it knows.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::chain::{StepSpec, THINK, check, format, references};

/// Every chain, with the thread it runs in. The threads' ids are those in the chains.
const CHAINS: [(&str, &str); 13] = [
    ("xxx", FORMAT),
    ("meet_001", MEETINGS),
    ("morning_001", MORNING),
    ("email_002", MAIL_OF_JOHN),
    ("morning_001", GROCERIES),
    ("launch_001", LAUNCH),
    ("launch_001", LAUNCH_MEETINGS),
    ("meeting_001", YESTERDAY),
    ("appointment_001", DENTIST),
    ("compete_001", RESEARCH),
    ("compete_001", PRESENTATION),
    ("review_001", LAST_TUESDAY),
    ("automate_001", SARAH),
];

/// The events that the chains are made of.
const EVENTS: [&str; 16] = [
    "calendar.availability",
    "calendar.check",
    "calendar.create",
    "calendar.search",
    "document.create",
    "email.search",
    "memory.search",
    "task.list",
    "task.register",
    "task.schedule",
    "team.members",
    "thread.summarize",
    "tools.date_calc",
    "tools.now",
    "user.notify",
    "web.search",
];

const FORMAT: &str = r#"[
    {"event": "email.search", "params": {"from": "Sarah", "query": "budget"}},
    {"event": "task.schedule", "params": {"decide": "if urgent", "type": "once", "at": "tomorrow"}},
    ["memory.search", "calendar.check"],
    {"event": "agent.think", "params": {"thread_id": "xxx", "prompt": "analyze results and decide next steps"}},
    {"event": "agent.think", "params": {"thread_id": "xxx"}}
]"#;

const MEETINGS: &str = r#"[
     {"event": "tools.now", "params": {}},
     {"event": "tools.date_calc", "params": {"from": "{tools.now.result}", "add": "1 week"}},
     [
       {"event": "calendar.search", "params": {"team": "marketing", "date_range": "{tools.date_calc.result}"}},
       {"event": "calendar.search", "params": {"team": "engineering", "date_range": "{tools.date_calc.result}"}}
     ],
     {"event": "agent.think", "params": {"thread_id": "meet_001", "prompt": "find overlapping available slots"}},
     {"event": "agent.think", "params": {"thread_id": "meet_001"}}
]"#;

const MORNING: &str = r#"[
    {"event": "tools.now", "params": {}},
    [
        {"event": "calendar.check", "params": {"date": "{tools.now.date}"}},
        {"event": "task.list", "params": {"filter": {"due": "{tools.now.date}"}, "status": "pending"}}
    ],
    {"event": "agent.think", "params": {"thread_id": "morning_001", "prompt": "summarize calendar events and tasks"}},
    {"event": "agent.think", "params": {"thread_id": "morning_001"}}
]"#;

const MAIL_OF_JOHN: &str = r#"[
    {"event": "email.search", "params": {"from": "John", "unread": true, "days": 3}},
    {"event": "agent.think", "params": {"thread_id": "email_002"}}
]"#;

const GROCERIES: &str = r#"[
    {"event": "tools.now", "params": {}},
    {"event": "task.schedule", "params": {
        "type": "once",
        "at": "{tools.now.date} 17:00",
        "action": [{"event": "user.notify", "params": {"message": "Time to buy groceries"}}]
    }},
    {"event": "agent.think", "params": {"thread_id": "morning_001"}}
]"#;

const LAUNCH: &str = r#"[
    [
        {"event": "memory.search", "params": {"type": "project", "query": "product launch", "scope": "all"}},
        {"event": "memory.search", "params": {"query": "Q2 planning", "scope": "recent"}}
    ],
    {"event": "agent.think", "params": {"thread_id": "launch_001", "prompt": "analyze previous launches and create Q2 launch plan outline"}},
    {"event": "agent.think", "params": {"thread_id": "launch_001"}}
]"#;

const LAUNCH_MEETINGS: &str = r#"[
    {"event": "tools.now", "params": {}},
    {"event": "tools.date_calc", "params": {"from": "{tools.now.result}", "add": "1 week", "format": "week_range"}},
    [
        {"event": "team.members", "params": {"team": "marketing"}},
        {"event": "team.members", "params": {"team": "engineering"}}
    ],
    [
        {"event": "calendar.availability", "params": {"people": "{team.members[0].result}", "date_range": "{tools.date_calc.result}"}},
        {"event": "calendar.availability", "params": {"people": "{team.members[1].result}", "date_range": "{tools.date_calc.result}"}}
    ],
    {"event": "agent.think", "params": {"thread_id": "launch_001", "prompt": "find overlapping 1-hour slots when both teams are available"}},
    {"event": "agent.think", "params": {"thread_id": "launch_001"}}
]"#;

const YESTERDAY: &str = r#"[
    {"event": "tools.now", "params": {}},
    {"event": "tools.date_calc", "params": {"from": "{tools.now.result}", "subtract": "1 day"}},
    {"event": "memory.search", "params": {"query": "team meeting", "date": "{tools.date_calc.result}", "type": "journal"}},
    {"event": "agent.think", "params": {"thread_id": "meeting_001", "prompt": "summarize meeting notes"}},
    {"event": "agent.think", "params": {"thread_id": "meeting_001"}}
]"#;

const DENTIST: &str = r#"[
    {"event": "tools.now", "params": {}},
    {"event": "calendar.check", "params": {"date": "{tools.now.date}", "query": "dentist"}},
    {"event": "agent.think", "params": {"thread_id": "appointment_001"}}
]"#;

const RESEARCH: &str = r#"[
    {"event": "web.search", "params": {"query": "Acme Corp new pricing 2024"}},
    [
        {"event": "memory.search", "params": {"type": "project", "query": "pricing strategy"}},
        {"event": "memory.search", "params": {"type": "project", "query": "competitive analysis Acme"}}
    ],
    {"event": "agent.think", "params": {"thread_id": "compete_001", "prompt": "analyze competitor pricing changes against our strategy"}},
    {"event": "agent.think", "params": {"thread_id": "compete_001"}}
]"#;

const PRESENTATION: &str = r#"[
    {"event": "document.create", "params": {
        "type": "presentation",
        "title": "Competitive Pricing Analysis",
        "content": "{thread.compete_001.analysis}"
    }},
    {"event": "task.schedule", "params": {
        "type": "once",
        "at": "tomorrow 08:00",
        "action": [{"event": "user.notify", "params": {"message": "Review presentation before meeting"}}]
    }},
    {"event": "agent.think", "params": {"thread_id": "compete_001"}}
]"#;

const LAST_TUESDAY: &str = r#"[
    {"event": "tools.now", "params": {}},
    {"event": "tools.date_calc", "params": {"from": "{tools.now.result}", "find": "last Tuesday"}},
    {"event": "memory.search", "params": {
        "type": "journal",
        "date": "{tools.date_calc.result}",
        "scope": "all"
    }},
    {"event": "agent.think", "params": {"thread_id": "review_001", "prompt": "extract and summarize work activities"}},
    {"event": "agent.think", "params": {"thread_id": "review_001"}}
]"#;

const SARAH: &str = r#"[
    {"event": "task.register", "params": {
        "trigger": "post:email.received",
        "condition": "sender contains 'Sarah' AND (subject contains 'budget' OR body contains 'budget')",
        "action": [
            {"event": "calendar.create", "params": {
                "type": "meeting",
                "attendees": ["Sarah"],
                "duration": "30m",
                "title": "Budget Discussion",
                "decide": "find next available slot"
            }},
            {"event": "user.notify", "params": {"message": "Scheduled budget meeting with Sarah"}}
        ]
    }},
    {"event": "agent.think", "params": {"thread_id": "automate_001"}}
]"#;

fn is_known_event(event: &str) -> bool {
    EVENTS.contains(&event)
}

fn read(text: &str) -> Vec<StepSpec> {
    format::parse(text, 12).unwrap()
}

#[test]
fn every_chain_is_read_and_nothing_is_wrong_with_it() {
    for (thread, text) in CHAINS {
        let steps = read(text);
        assert_eq!(check::mistakes(&steps, is_known_event, thread), [""; 0], "{text}");
        // All of them end in an answer.
        assert_eq!(format::with_final_think(steps.clone()), steps);
        assert_eq!(format::from_json(&format::to_json(&steps), 12).unwrap(), steps);
        let answer = format!("```json\n{{\"chain\": {text}}}\n```");
        assert_eq!(read(&answer), steps);
        // What tasks are to do is a chain, too.
        for action in steps.iter().filter_map(|step| step.params.get("action")) {
            assert_eq!(check::mistakes(&format::from_json(action, 12).unwrap(), is_known_event, thread), [""; 0]);
        }
    }
}

#[test]
fn every_chain_is_about_its_own_thread() {
    for (thread, text) in CHAINS {
        let steps = read(text);
        let thoughts = steps.iter().filter(|step| step.event == THINK).count();
        let stray = usize::from(text.contains("{thread."));
        assert_eq!(check::mistakes(&steps, is_known_event, "another").len(), thoughts + stray, "{thread}");
    }
}

/// Carries a chain out as far as its references go; every event comes to what `result` says.
fn filled(text: &str, result: impl Fn(&StepSpec) -> Value) -> Vec<(String, Value)> {
    let steps = read(text);
    let mut results: Vec<(u32, String, Value)> = Vec::new();
    let mut all = Vec::new();
    for step in &steps {
        let earlier = results.iter().filter(|(group, ..)| *group < step.group);
        let outcomes: Vec<_> =
            earlier.map(|(_, event, result)| references::StepOutcome { event, result: Some(result) }).collect();
        let scope = references::ReferenceScope {
            outcomes: &outcomes,
            thread_id: "compete_001",
            analysis: "Highlight premium features.",
            summary: "",
            event: &Value::Null,
        };
        let params = references::fill(&step.params, &scope).unwrap();
        results.push((step.group, step.event.clone(), result(step)));
        all.push((step.event.clone(), Value::Object(params)));
    }
    all
}

#[test]
fn results_flow_through_the_chains() {
    let now = json!({"now": "2026-03-25T10:00:00+01:00", "date": "2026-03-25", "time_zone": "Europe/Berlin"});
    let week = json!({"start": "2026-03-30T00:00:00+02:00", "end": "2026-04-06T00:00:00+02:00", "date": "2026-03-30"});
    let result = |step: &StepSpec| match step.event.as_str() {
        "tools.now" => now.clone(),
        "tools.date_calc" => week.clone(),
        "team.members" => json!({"members": [{"name": step.params["team"]}]}),
        _ => json!({}),
    };
    let steps = filled(LAUNCH_MEETINGS, result);
    assert_eq!(steps[1].1, json!({"from": now, "add": "1 week", "format": "week_range"}));
    assert_eq!(steps[4].1, json!({"people": {"members": [{"name": "marketing"}]}, "date_range": week}));
    assert_eq!(steps[5].1, json!({"people": {"members": [{"name": "engineering"}]}, "date_range": week}));
    assert_eq!(filled(MORNING, result)[1].1, json!({"date": "2026-03-25"}));
    assert_eq!(filled(MORNING, result)[2].1, json!({"filter": {"due": "2026-03-25"}, "status": "pending"}));
    assert_eq!(filled(GROCERIES, result)[1].1["at"], "2026-03-25 17:00");
    assert_eq!(filled(PRESENTATION, result)[0].1["content"], "Highlight premium features.");
    assert_eq!(filled(YESTERDAY, result)[2].1["date"], week);
}

#[test]
fn what_is_to_be_decided_is_kept_apart() {
    assert_eq!(read(FORMAT)[1].decide.as_deref(), Some("if urgent"));
    let action = &read(SARAH)[0].params["action"];
    let [create, notify] = format::from_json(action, 12).unwrap().try_into().unwrap();
    assert_eq!(create.decide.as_deref(), Some("find next available slot"));
    assert_eq!(
        Value::Object(create.params),
        json!({
            "type": "meeting", "attendees": ["Sarah"], "duration": "30m", "title": "Budget Discussion",
        })
    );
    assert_eq!((notify.group, notify.decide), (1, None));
    // Registered as it is: what is to be decided is decided when the mail is there.
    let scope =
        references::ReferenceScope { outcomes: &[], thread_id: "t", analysis: "", summary: "", event: &Value::Null };
    let params: Map<String, Value> = read(SARAH)[0].params.clone();
    assert_eq!(references::fill(&params, &scope).unwrap(), params);
}

proptest! {
    #[test]
    fn a_chain_that_is_cut_off_or_garbled_is_refused_or_read(
        chain in prop::sample::select(CHAINS.to_vec()),
        at in any::<prop::sample::Index>(),
        other in "[\\[\\]{}\",:a. ]?",
    ) {
        let (thread, text) = chain;
        let at = text.floor_char_boundary(at.index(text.len()));
        let (before, behind) = text.split_at(at);
        for garbled in [before.to_owned(), format!("{before}{other}{behind}"), format!("{before}{other}{}", behind.get(1..).unwrap_or_default())] {
            if let Ok(steps) = format::parse(&garbled, 12) {
                check::mistakes(&steps, is_known_event, thread);
            }
        }
    }
}
