//! The answers of models, by the step of the mind that asks: mostly usable, and now and then not.

use kairo_mind::request::{ModelRequest, PLAN, PromptMessage, block_contents};
use kairo_proto::v1::CompletionToolCall;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    chance::Chance,
    load::AGENTS,
    model::{KEYED, MAIL, RUN, SPAWN, TOOLS, UNKEYED, is_process},
};

/// The text that tells a model that it writes an analysis.
const ANALYSE: &str = "Now, within the chain";
/// The tool that puts a task into the queue.
const QUEUE: &str = "task.queue";
/// The tool that has a member think.
const ASK_MEMBER: &str = "member.ask";
/// The tool that has a worker do something.
const DELEGATE: &str = "team.delegate";
/// The tool that asks a submodule.
const ASK_SUBMODULE: &str = "submodule.ask";
/// The tool that keeps something in the inner state.
const WRITE: &str = "state.write";
/// The events that hooks wait for.
const TRIGGERS: [&str; 7] = [
    "post:count.keyed",
    "post:count.once",
    "pre:count.keyed",
    "pre:count.once",
    "pre:mail.send",
    "post:email.received",
    "post:github.push",
];
/// On what condition: none, two that can be computed and one that a model must judge.
const CONDITIONS: [&str; 5] = ["", "", "n > 50", "subject contains 'bill'", "it sounds urgent"];

/// Words, and calls of tools.
type Answer = (String, Vec<CompletionToolCall>);

/// A model that is content finds no more work: it says something, whatever it may call.
pub fn answer(request: &ModelRequest, is_content: bool, chance: &mut Chance) -> Answer {
    let text = |at: Option<&PromptMessage>| match at {
        Some(PromptMessage::System { text } | PromptMessage::User { text, .. } | PromptMessage::Tool { text, .. }) => {
            text.clone()
        }
        _ => String::new(),
    };
    let (first, last) = (text(request.messages.first()), text(request.messages.last()));
    let asked = text(request.messages.get(1));
    let words = |value: Value| (value.to_string(), Vec::new());
    if chance.permille(60) {
        return ("nothing { that could be used".to_owned(), Vec::new());
    }
    match first {
        it if it.starts_with("You are thread.match") => words(thread(&asked, chance)),
        it if it.starts_with("You are agent.learn and agent.brief") => {
            let (worth, text) = (chance.permille(400), "there are numbers");
            let briefing = json!({ "worth": worth, "reason": "so", "summary": text, "text": text });
            words(json!({ "memories": [], "briefing": briefing }))
        }
        it if it.starts_with("You are agent.learn") => {
            let kind = ["insight", "fact", "insight", "secret"][chance.below(4)];
            words(json!([{ "kind": kind, "content": format!("a number is below {}", chance.below(5)) }]))
        }
        it if is_content
            && ["You are agent.acknowledge", "You are agent.think"].iter().any(|step| it.starts_with(step)) =>
        {
            say(chance)
        }
        it if it.starts_with("You are agent.acknowledge") => acknowledge(request, chance),
        it if it.starts_with("You are agent.think") => plan_or_say(request, &last, chance),
        it if it.starts_with("You are agent.chain") => words(chain(&ids_in(&asked), chance)),
        it if it.starts_with("You are agent.decide") => words(decision(chance)),
        it if it.starts_with("You are agent.goal") => ("to know a number".to_owned(), Vec::new()),
        it if it.starts_with("You are agent.reflect") => {
            let verdict = ["finished", "finished", "revise", "act"][chance.below(4)];
            words(json!({ "verdict": verdict, "reason": "count again" }))
        }
        it if it.starts_with("You are thread.compact") => (format!("summary {}", chance.below(1_000)), Vec::new()),
        it if it.starts_with("You are thread.summarize") => words(json!({ "title": "T", "summary": "S" })),
        it if it.starts_with("You are memory.append") => {
            words(json!({ "content": "it was about numbers", "keywords": ["number"], "people": ["ann"] }))
        }
        it if it.starts_with("You are memory.digest") => words(json!({ "memories": [] })),
        it if it.starts_with("You are a submodule") => think_along(request, chance),
        _ if is_content => say(chance),
        _ => call_or_say(request, chance),
    }
}

/// Something written into the inner state, or looked up in it.
fn of_inner_state(chance: &mut Chance) -> CompletionToolCall {
    let keys = ["numbers", "ann", "bob"];
    let key = keys[chance.below(3)];
    match chance.below(6) {
        0 | 1 => {
            let content = format!("a number below {}", chance.below(1_000));
            call(0, WRITE, &json!({ "key": key, "content": content, "related_keys": [keys[chance.below(3)]] }))
        }
        2 => call(0, "state.read", &json!({ "key": key })),
        3 => call(0, "state.search", &json!({ "words": "number" })),
        4 => call(0, "state.related", &json!({ "key": key })),
        _ => call(0, "state.delete", &json!({ "key": key })),
    }
}

fn keeps_inner_state(request: &ModelRequest) -> bool {
    request.tools.iter().any(|tool| *tool.name == *WRITE)
}

/// Returns the answer of a submodule, which may say nothing; some look something up first.
fn think_along(request: &ModelRequest, chance: &mut Chance) -> Answer {
    if keeps_inner_state(request) && chance.permille(200) {
        return (String::new(), vec![of_inner_state(chance)]);
    }
    match chance.below(4) {
        0 if request.may_call_tools() => (String::new(), vec![call(0, "history.query", &json!({ "words": "count" }))]),
        0 | 1 => ("-".to_owned(), Vec::new()),
        _ => (format!("a number below {} is enough", chance.below(1_000)), Vec::new()),
    }
}

/// Chooses the thread that a message belongs to.
fn thread(asked: &str, chance: &mut Chance) -> Value {
    let asked: Value = serde_json::from_str(asked).unwrap_or_default();
    let threads = asked["threads"].as_array().cloned().unwrap_or_default();
    let some = |chance: &mut Chance| match threads.len() {
        0 => Value::Null,
        count => threads[chance.below(count)]["thread_id"].clone(),
    };
    match chance.below(8) {
        0 | 1 => json!({ "action": "continue" }),
        2 | 3 => json!({ "action": "suggest_new", "reason": "something else" }),
        4 | 5 => json!({ "action": "suggest_switch", "thread_id": some(chance), "reason": "it fits" }),
        6 => json!({ "action": "new" }),
        _ => json!({ "action": "suggest_switch", "thread_id": "no such thread" }),
    }
}

/// The fast model of an agent that works in the background: it queues something, changes the queue, or answers.
fn acknowledge(request: &ModelRequest, chance: &mut Chance) -> Answer {
    let ids = ids_of(request);
    let words = if chance.permille(800) { "I will look into it".to_owned() } else { String::new() };
    let of_task = ["task.first", "task.cancel", "task.pause", "task.resume"];
    let queued = |number: usize, chance: &mut Chance| {
        call(number, QUEUE, &json!({ "text": format!("look into {}", chance.below(1_000)) }))
    };
    match chance.below(10) {
        _ if !request.may_call_tools() => say(chance),
        0..=4 => (words, (0..=chance.below(3)).map(|number| queued(number, chance)).collect()),
        5 | 6 => (words, vec![call(0, of_task[chance.below(4)], &json!({ "task_id": pick(&ids, chance) }))]),
        7 => (words, vec![queued(0, chance), call(1, "action.cancel", &json!({ "action_id": pick(&ids, chance) }))]),
        _ => say(chance),
    }
}

/// The heavy model of an agent that plans.
fn plan_or_say(request: &ModelRequest, last: &str, chance: &mut Chance) -> Answer {
    let ids = ids_of(request);
    let may_plan = request.may_call_tools() && request.tools.iter().any(|tool| *tool.name == *PLAN);
    let analyses = block_contents(last).any(|told| told.starts_with(ANALYSE));
    let plans = if analyses { 100 } else { 600 };
    if !chance.permille(plans) || !may_plan && !chance.permille(100) {
        return say(chance);
    }
    if may_plan && chance.permille(100) {
        let calls = vec![call(0, "chain.cancel", &json!({ "chain_id": pick(&ids, chance) }))];
        return (String::new(), calls);
    }
    let known: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    let plan = json!({ "plan": format!("1. count {} 2. look at {}", chance.below(1_000), known.join(" ")) });
    match chance.permille(500) {
        true => (json!({ "event": PLAN, "params": plan }).to_string(), Vec::new()),
        false => (String::new(), vec![call(0, PLAN, &plan)]),
    }
}

/// The model of an agent that calls tools itself.
fn call_or_say(request: &ModelRequest, chance: &mut Chance) -> Answer {
    if !request.may_call_tools() || !chance.permille(600) {
        return say(chance);
    }
    let ids = ids_of(request);
    if request.tools.iter().any(|tool| *tool.name == *ASK_SUBMODULE) && chance.permille(150) {
        let given = json!({ "name": format!("voice-{}", chance.below(3)), "question": "is it enough?" });
        return (String::new(), vec![call(0, ASK_SUBMODULE, &given)]);
    }
    if keeps_inner_state(request) && chance.permille(300) {
        return (String::new(), vec![of_inner_state(chance)]);
    }
    if chance.permille(80) && request.tools.iter().any(|tool| *tool.name == *QUEUE) {
        return (
            String::new(),
            vec![call(0, QUEUE, &json!({ "text": format!("go on with {}", chance.below(1_000)) }))],
        );
    }
    if chance.permille(250) && request.tools.iter().any(|tool| *tool.name == *ASK_MEMBER) {
        let members = [AGENTS[0], AGENTS[0], AGENTS[0], "nobody"];
        let given = json!({ "member": members[chance.below(4)], "text": format!("count {}", chance.below(1_000)) });
        return (String::new(), vec![call(0, ASK_MEMBER, &given)]);
    }
    if chance.permille(500) && request.tools.iter().any(|tool| *tool.name == *DELEGATE) {
        let workers = [AGENTS[1], AGENTS[1], "nobody"];
        let task = |number: usize, chance: &mut Chance| {
            let given = json!({ "worker": workers[chance.below(3)], "task": format!("count {}", chance.below(1_000)) });
            call(number, DELEGATE, &given)
        };
        return (String::new(), (0..=chance.below(3)).map(|number| task(number, chance)).collect());
    }
    let calls = (0..=chance.below(3)).map(|number| match chance.permille(750) {
        true => {
            let tool = TOOLS[chance.below(TOOLS.len())];
            let params = if is_process(tool) { program(chance) } else { json!({ "n": chance.below(100) }) };
            call(number, tool, &params)
        }
        false => {
            let step = step(&ids, chance);
            call(number, step["event"].as_str().unwrap_or_default(), &step["params"])
        }
    });
    let calls = calls.collect();
    (if chance.permille(500) { "one moment".to_owned() } else { String::new() }, calls)
}

fn say(chance: &mut Chance) -> Answer {
    let text = format!("answer {}", chance.below(1_000));
    match chance.permille(200) {
        true => (json!({ "event": "agent.reply", "params": { "message": text } }).to_string(), Vec::new()),
        false => (text, Vec::new()),
    }
}

/// Chooses the program of a process and its working time in milliseconds, at times longer than a frozen supervisor is
/// waited for; now and then it is a program that nobody may run.
fn program(chance: &mut Chance) -> Value {
    let long = match chance.below(10) {
        0 => 20_000,
        1 | 2 => 6_000,
        _ => 200,
    };
    let program = if chance.permille(120) { "secret" } else { "work" };
    json!({ "program": program, "args": [chance.below(long).to_string()] })
}

/// A plan as steps; some groups are lists.
fn chain(ids: &[Uuid], chance: &mut Chance) -> Value {
    let items = (0..1 + chance.below(4)).map(|_| match chance.permille(300) {
        true => (0..1 + chance.below(3)).map(|_| step(ids, chance)).collect(),
        false => step(ids, chance),
    });
    let items: Value = items.collect();
    if chance.permille(200) { json!({ "chain": items }) } else { items }
}

fn step(ids: &[Uuid], chance: &mut Chance) -> Value {
    let of_task = ["task.cancel", "task.pause", "task.resume", "task.run"];
    let (event, params) = match chance.below(43) {
        0..=8 => (KEYED, number(chance)),
        9..=12 => (UNKEYED, number(chance)),
        13 | 40 => (RUN, program(chance)),
        14 | 41 => (SPAWN, program(chance)),
        15..=18 => (MAIL, json!({ "to": "bob" })),
        19..=20 => ("user.notify", json!({ "message": "look" })),
        21..=25 => ("task.schedule", schedule(chance)),
        26..=30 => ("task.register", hook(chance)),
        31..=33 => (of_task[chance.below(4)], json!({ "task_id": pick(ids, chance) })),
        34 => ("memory.append", if chance.permille(500) { json!({ "content": "a number" }) } else { json!({}) }),
        35 => ("memory.digest", json!({ "period": "daily" })),
        36 => ("thread.summarize", json!({})),
        37 => ("agent.think", json!({ "prompt": "what do they come to?" })),
        38 => ("chain.cancel", json!({ "chain_id": pick(ids, chance) })),
        39 => ("thread.archive", json!({})),
        _ => ("no.such", json!({})),
    };
    let mut step = json!({ "event": event, "params": params });
    if chance.permille(150) {
        step["decide"] = json!("only if it matters");
    }
    step
}

/// Parameters that are complete, or lack something, or come from an earlier step that may not be there.
fn number(chance: &mut Chance) -> Value {
    match chance.below(10) {
        0 => json!({}),
        1 => json!({ "n": "{count.keyed.done}" }),
        _ => json!({ "n": chance.below(100) }),
    }
}

fn schedule(chance: &mut Chance) -> Value {
    let (key, long) = match chance.below(6) {
        0 | 1 => ("delay", "20 seconds"),
        2 => ("delay", "2 minutes"),
        3 => ("delay", "50 minutes"),
        4 => ("interval", "10 minutes"),
        _ => ("interval", "1 hour"),
    };
    json!({ key: long, "action": action(chance) })
}

fn hook(chance: &mut Chance) -> Value {
    let trigger = TRIGGERS[chance.below(TRIGGERS.len())];
    let steps = match trigger.starts_with("pre:") {
        true => [
            json!([{ "event": "step.stop", "params": { "reason": "not now" } }]),
            json!([{ "event": "step.change", "params": { "params": { "n": 7 } } }]),
            json!([{ "event": "user.notify", "params": { "message": "a step" } }]),
        ][chance.below(3)]
        .clone(),
        false => action(chance),
    };
    json!({ "trigger": trigger, "condition": CONDITIONS[chance.below(CONDITIONS.len())], "action": steps })
}

/// Chooses the action of a task.
fn action(chance: &mut Chance) -> Value {
    let steps = (0..1 + chance.below(2)).map(|_| match chance.below(12) {
        0..=4 => json!({ "event": "user.notify", "params": { "message": "it is time" } }),
        5..=7 => json!({ "event": KEYED, "params": { "n": chance.below(100) } }),
        8 => json!({ "event": KEYED, "params": { "n": "{event.n}" } }),
        9 => json!({ "event": UNKEYED, "params": {} }),
        10 => json!({ "event": MAIL, "params": { "to": "carl" } }),
        _ => json!({ "event": "agent.think", "params": { "prompt": "what now?" } }),
    });
    steps.collect()
}

fn decision(chance: &mut Chance) -> Value {
    match chance.below(6) {
        0..=2 => json!({ "action": "continue", "params": { "n": chance.below(100) } }),
        3 => json!({ "action": "skip" }),
        4 => json!({ "action": "break" }),
        _ => json!({ "action": "perhaps" }),
    }
}

fn call(number: usize, tool: &str, arguments: &Value) -> CompletionToolCall {
    CompletionToolCall {
        call_id: number.to_string(),
        tool: tool.to_owned(),
        arguments: arguments.to_string(),
        ..Default::default()
    }
}

fn pick(ids: &[Uuid], chance: &mut Chance) -> Uuid {
    if ids.is_empty() { Uuid::nil() } else { ids[chance.below(ids.len())] }
}

/// Ids of chains, tasks and actions that the conversation names, the last ones.
fn ids_of(request: &ModelRequest) -> Vec<Uuid> {
    let texts = request.messages.iter().map(|message| match message {
        PromptMessage::System { text } | PromptMessage::User { text, .. } | PromptMessage::Tool { text, .. } => text,
        PromptMessage::Assistant { text, .. } => text,
    });
    let ids: Vec<Uuid> = texts.flat_map(|text| ids_in(text)).collect();
    ids[ids.len().saturating_sub(6)..].to_vec()
}

fn ids_in(text: &str) -> Vec<Uuid> {
    let words = text.split(|sign: char| !sign.is_ascii_hexdigit() && sign != '-');
    words.filter(|word| word.len() == 36).filter_map(|word| Uuid::parse_str(word).ok()).collect()
}
