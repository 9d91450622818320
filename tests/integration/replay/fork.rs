//! Forks: agents of a real log that go on apart from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Stdio,
};

use kairo_local::{Service, StackOptions};
use kairo_proto::v1::LogMessage;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

use super::{
    AGENT,
    lanes::{LOOKS, PRICE, Place, TELLS, rule, rules},
    replay,
};
use crate::{command_line::kairo, world::World};

/// The outcome of a fork.
pub struct Forked {
    pub code: Option<i32>,
    /// The messages of all speakers.
    pub said: Vec<String>,
    /// The number of answers by source, such as `models_asked`.
    pub answers: BTreeMap<String, u64>,
    pub told: String,
}

impl Forked {
    pub fn count(&self, what: &str) -> u64 {
        self.answers.get(what).copied().unwrap_or_default()
    }
}

/// Forks, and says these lines.
pub async fn fork(world: &World, arguments: &[&str], lines: &str) -> Forked {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let model = format!("{}/v1", world.stack.url(Service::ModelSim).unwrap());
    let mut command = Command::new(program);
    command.args(["--json", "--url", &world.url(""), "fork"]).args(arguments);
    command.env("KAIRO_MODELS__HEAVY__BASE_URL", model);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let told = String::from_utf8([&output.stdout[..], &output.stderr[..]].concat()).unwrap();
    let events: Vec<Value> = told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let says = events.iter().filter(|event| event["payload"]["type"] == "say");
    let said = says.map(|event| event["payload"]["text"].as_str().unwrap().to_owned()).collect();
    let answers = events.last().map(|last| serde_json::from_value(last["answers"].clone()).unwrap_or_default());
    Forked { code: output.status.code(), said, answers: answers.unwrap_or_default(), told }
}

/// Returns the number of requests to the model server so far, and of events in the log.
async fn outside(world: &World) -> (usize, usize) {
    (world.model_requests().await.len(), world.log.now(&world.bus).await.len())
}

/// Checks that a fork's export has the form of a log written by --save, and that the same commands open it.
async fn opens_as_a_saved_log_does(world: &World, saved: &Path, exported: &str) {
    let form = |text: String| -> BTreeSet<(String, Vec<String>)> {
        let form = |line: &str| {
            let message: Value = serde_json::from_str(line).unwrap();
            let fields = message.as_object().unwrap().keys().cloned().collect();
            (message["subject"].as_str().unwrap().to_owned(), fields)
        };
        text.lines().map(form).collect()
    };
    let read = |path: &Path| form(std::fs::read_to_string(path).unwrap());
    assert_eq!(read(Path::new(exported)), read(saved));
    let again = format!("{exported}.again");
    let incident = format!("{exported}.kairo");
    let words = saved.with_file_name("hello.txt");
    std::fs::write(&words, "hello again").unwrap();
    for arguments in [
        &["state", AGENT, "--file", exported][..],
        &["whatif", exported, "--drop", "1000000"],
        &["incident", "export", "--agent", AGENT, "--file", exported, "--output", &incident],
        &["incident", "test", &incident],
        &["fork", AGENT, "--file", exported, "--message", words.to_str().unwrap(), "--export", &again],
        &["replay", &again],
    ] {
        let opened = kairo(world, arguments).await;
        let expected = match arguments[0] {
            // It is read to its end: there is no such message.
            "whatif" => (Some(64), "message 1000000 is not in the log"),
            _ => (Some(0), ""),
        };
        let told = String::from_utf8_lossy(&opened.stderr);
        assert!((opened.status.code(), told.contains(expected.1)) == (expected.0, true), "{arguments:?}: {opened:?}");
    }
}

/// An agent goes on from places of its log: as it did, with other words, with another prompt, and nothing of that reaches
/// anybody.
pub async fn forks_go_on_apart_from_their_log(world: &World, file: &Path) {
    let log = file.to_str().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let messages: Vec<LogMessage> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |verb: &str| -> Vec<String> {
        messages.iter().filter(|it| it.subject.ends_with(verb)).map(|it| it.sequence.to_string()).collect()
    };
    let (heard, results, decisions) = (of(".message"), of(".result"), of(".decision"));
    let (requests, end) = outside(world).await;

    // What it did then it does again, from the gateway's log as from the file, and no model is asked.
    for source in [&["--file", log][..], &[]] {
        let forked = fork(world, &[&[AGENT, "--at", &heard[1]], source].concat(), "").await;
        assert_eq!((forked.code, forked.said.len(), forked.count("models_asked")), (Some(0), 1, 0), "{}", forked.told);
        assert!(forked.said[0].starts_with("It is 2"), "{:?}", forked.said);
        assert_eq!((forked.count("models_recorded"), forked.count("tools_recorded")), (2, 1), "{}", forked.told);
    }
    // A call in flight comes to what it came to, or is lost.
    let kept = fork(world, &[AGENT, "--at", &decisions[1], "--file", log], "").await;
    assert_eq!((kept.count("models_asked"), kept.count("models_recorded")), (0, 1), "{}", kept.told);
    let lost = fork(world, &[AGENT, "--at", &decisions[1], "--file", log, "--pending", "lost"], "").await;
    assert!(lost.told.contains("in_doubt") && lost.count("models_asked") == 1, "{}", lost.told);
    assert_eq!(outside(world).await, (requests + 1, end), "a fork asks models, and writes nothing");

    // Other words, in its own log, which can be made again; a tool does nothing.
    let beside = |name: &str| file.with_file_name(name).to_str().unwrap().to_owned();
    let (exported, mocks, words, prompt) = (beside("fork.log"), beside("mocks.yaml"), beside("w.txt"), beside("p.md"));
    let at = [AGENT, "--at", &results[0], "--file", log];
    let forked = fork(world, &[&at[..], &["--export", &exported]].concat(), "hello again\ntime and time\n").await;
    assert_eq!(forked.said.last().map(String::as_str), Some("2 clocks"), "{}", forked.told);
    assert_eq!((forked.count("tools_recorded"), forked.count("tools_locked")), (2, 0), "{}", forked.told);
    let (code, said) = replay(world, &[&exported]).await;
    assert_eq!((code, said[1].as_str()), (Some(0), "  6 the same"), "{said:?}");
    opens_as_a_saved_log_does(world, file, &exported).await;
    std::fs::write(&mocks, "- { tool: tools.now, arguments: { time_zone: UTC }, error: no clock }\n").unwrap();
    std::fs::write(&words, "time and time\n").unwrap();
    std::fs::write(&prompt, "You answer in verse.\n").unwrap();
    let changed = ["--mocks", &mocks, "--message", &words, "--prompt", &prompt, "--export", &exported];
    let forked = fork(world, &[&at[..], &changed].concat(), "never read").await;
    assert_eq!((forked.count("tools_mocked"), forked.count("tools_recorded")), (1, 1), "{}", forked.told);
    let state = kairo(world, &["state", AGENT, "--file", &exported, "--json"]).await;
    let state: Value = serde_json::from_slice(&state.stdout).unwrap();
    assert_eq!(state["profile"]["prompt"], "You answer in verse.");
    assert_eq!(world.log.now(&world.bus).await.len(), end, "the log is as it was");

    for (arguments, expected, code) in [
        (&["nobody", "--at", "9", "--file", log][..], "nothing of nobody stands in the log", 1),
        (&[AGENT, "--at", "9", "--file", log, "--mocks", &prompt], "p.md: ", 64),
        (&[AGENT, "--at", "9", "--file", log, "--message", "/nowhere"], "/nowhere", 64),
        (&[AGENT, "--at", "9", "--pending", "maybe"], "[possible values: recorded, lost]", 64),
    ] {
        let forked = fork(world, arguments, "").await;
        assert!(forked.told.contains(expected) && forked.code == Some(code), "{:?} {}", forked.code, forked.told);
    }
}

#[tokio::test]
async fn no_call_is_made_that_a_budget_does_not_suffice_for_and_what_was_spent_is_told() {
    let place = Place::new(&rules(&[&rule("user_contains: the hour", &[LOOKS, TELLS])])).await;
    std::fs::write(place.path("words.txt"), "the hour please").unwrap();
    let words = ["fork", "cook", "--file", "cook.log", "--message", "words.txt"];
    let priced = [("KAIRO_MODELS__HEAVY__PRICE", PRICE)];
    let ended = |said: &str| serde_json::from_str::<Value>(said.lines().last().unwrap()).unwrap();
    let requests = async || place.requests().await.len();

    // An answer costs 0.00001, and it takes two.
    let (code, said, told) = place.kairo(&priced, &[&["--json"], &words[..]].concat()).await;
    assert_eq!((code, requests().await), (Some(0), 2), "{said}{told}");
    let spent = |calls: u64, cost: &str, budget: Value, ended: &str| json!({ "calls": calls, "cost": cost, "budget": budget, "currency": "USD", "ended": ended });
    assert_eq!(ended(&said)["asked"], spent(2, "0.00002", Value::Null, "complete"));
    let (code, said, told) = place.kairo(&priced, &[&["--json"], &words[..], &["--budget", "0.00002"]].concat()).await;
    assert_eq!((code, requests().await), (Some(0), 4), "{told}");
    assert_eq!(ended(&said)["asked"], spent(2, "0.00002", json!("0.00002"), "complete"));

    let one = [&words[..], &["--budget", "0.00001"]].concat();
    let (code, said, _) = place.kairo(&priced, &[&["--json"], &one[..]].concat()).await;
    assert_eq!((code, requests().await), (Some(0), 5), "{said}");
    let last = ended(&said);
    assert_eq!(last["asked"], spent(1, "0.00001", json!("0.00001"), "budget"));
    assert_eq!(
        (&last["answers"]["models_asked"], &last["answers"]["models_not_asked"]),
        (&json!(1), &json!(1)),
        "{last}"
    );
    assert!(said.contains("model_refused") && said.contains("the next call may cost 0.00001"), "{said}");
    let (_, said, _) = place.kairo(&priced, &one).await;
    assert!(said.contains("no model is asked: what is left of the budget does not suffice"), "{said}");
    assert!(said.contains("1 calls of models for 0.00001 of 0.00001 USD; what is left of the budget"), "{said}");
    assert_eq!(requests().await, 6);

    // Without a price no budget can be kept, and what was spent is not known.
    let (code, said, told) = place.kairo(&[], &one).await;
    assert!(code == Some(64) && said.is_empty() && told.contains("models.heavy.price"), "{told}");
    let (code, said, _) = place.kairo(&[], &[&words[..], &["--budget", "none"]].concat()).await;
    assert!(code == Some(0) && said.contains("2 calls of models at prices that are not known"), "{said}");
    assert_eq!(requests().await, 8);
}
