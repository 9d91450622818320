//! `kairo replay --samples` and `--model`: decisions asked for again of a model simulator that stands apart, so that its requests are
//! those of the command alone. No stack runs: a log in a file is all it takes.

use std::{net::SocketAddr, path::PathBuf, process::Stdio};

use kairo_local::StackOptions;
use kairo_model_sim::{Config, Scenario};
use kairo_replay::testing::{TestAgent, call_completion, text_completion};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{process::Command, sync::oneshot};

use crate::world::DEADLINE;

/// A simulator, a log of three decisions, of which the first calls a tool, and another prompt.
pub struct Place {
    folder: TempDir,
    address: SocketAddr,
    http: reqwest::Client,
    _end: oneshot::Sender<()>,
}

/// The cost of each answer: 10 tokens at a price of 1 per million.
const ANSWER: &str = "0.00001";
pub const PRICE: &str = r#"{"input":0,"output":1}"#;

impl Place {
    pub async fn new(scenario: &str) -> Self {
        let server = kairo_model_sim::bind(Config::loopback(Scenario::parse(scenario).unwrap())).await.unwrap();
        let (_end, ended) = oneshot::channel::<()>();
        let address = server.address();
        tokio::spawn(server.run(async { drop(ended.await) }));
        let place = Self { folder: tempfile::tempdir().unwrap(), address, http: reqwest::Client::new(), _end };
        let mut agent = TestAgent::new("cook");
        agent.hears("", "time please");
        let asks = agent.decide(&[call_completion("tools.now")]);
        agent.learns(asks, "2");
        agent.decide(&[text_completion("It is 2.")]);
        agent.hears("", "thanks");
        agent.decide(&[text_completion("You are welcome.")]);
        let lines = agent.messages().into_iter().map(|message| serde_json::to_string(&message).unwrap() + "\n");
        std::fs::write(place.path("cook.log"), lines.collect::<String>()).unwrap();
        std::fs::write(place.path("new.md"), "You answer in verse.").unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `kairo replay` of the log with the model's price known; status, standard output and standard error.
    async fn replay(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        self.replay_with(&[("KAIRO_MODELS__HEAVY__PRICE", PRICE)], arguments).await
    }

    async fn replay_with(&self, settings: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String, String) {
        self.kairo(settings, &[&["replay", "cook.log"], arguments].concat()).await
    }

    /// A command that asks models for answers of ten tokens.
    pub async fn kairo(&self, settings: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(settings, arguments).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (said, told) = (text(output.stdout), text(output.stderr));
        assert!(!said.contains("hush-hush") && !told.contains("hush-hush"), "a key is told: {said}{told}");
        (output.status.code(), said, told)
    }

    /// Returns the base URL of the simulator.
    pub fn model_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Runs `kairo` with the models of a `kairo dev` that runs here, if there are any.
    async fn kairo_beside_dev(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut kairo = self.command(&[], arguments);
        for name in
            ["KAIRO_MODELS__HEAVY__BASE_URL", "KAIRO_MODELS__HEAVY__API_KEY", "KAIRO_MODEL_URL", "OPENAI_API_KEY"]
        {
            kairo.env_remove(name);
        }
        // As good as unset.
        kairo.env("KAIRO_CONFIG", "");
        let output = kairo.output().await.unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }

    fn command(&self, settings: &[(&str, &str)], arguments: &[&str]) -> Command {
        let mut kairo = Command::new(StackOptions::bin_dir_of_this_build().unwrap().join("kairo"));
        kairo.current_dir(self.folder.path()).env_remove("KAIRO_CONFIG");
        kairo.env("KAIRO_MODELS__HEAVY__BASE_URL", self.model_url());
        kairo.env("KAIRO_MODELS__HEAVY__API_KEY", "hush-hush").envs(settings.iter().copied());
        kairo.args(arguments).args(["--max-output", "10"]);
        kairo
    }

    /// Replays with a report; returns the exit status and the report.
    async fn report(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let report = self.path("report.json");
        let (code, said, told) = self.replay(&[arguments, &["--report", report.to_str().unwrap()]].concat()).await;
        let report = std::fs::read_to_string(&report).unwrap_or_else(|error| panic!("{error}: {said}{told}"));
        (code, serde_json::from_str(&report).unwrap())
    }

    /// Returns the number of requests so far, and how many of them are unanswered.
    async fn counts(&self) -> (u64, u64) {
        let url = format!("http://{}/v1/counts", self.address);
        let answer: Value = self.http.get(url).send().await.unwrap().json().await.unwrap();
        (answer["requests"].as_u64().unwrap(), answer["open"].as_u64().unwrap())
    }

    /// The bodies of all requests that the simulator was sent, the oldest first.
    pub async fn requests(&self) -> Vec<Value> {
        let url = format!("http://{}/v1/requests?limit=256", self.address);
        let answer: Value = self.http.get(url).send().await.unwrap().json().await.unwrap();
        answer["requests"].as_array().unwrap().clone()
    }
}

/// A rule whose answers, one for each round, are charged as ten tokens.
pub fn rule(when: &str, answers: &[&str]) -> String {
    let usage = "usage: { prompt_tokens: 0, completion_tokens: 10 }";
    let answers = answers.iter().map(|answer| format!("      - {{ {answer}, {usage} }}\n"));
    format!("  - when: {{ {when} }}\n    turn:\n{}", answers.collect::<String>())
}

pub fn rules(rules: &[&str]) -> String {
    let named = rules
        .iter()
        .enumerate()
        .map(|(number, rule)| rule.replacen("- when", &format!("- name: rule{number}\n    when"), 1));
    format!("rules:\n{}", named.collect::<String>())
}

pub const LOOKS: &str = "tool_calls: [{ tool: tools.now, arguments: {} }]";
pub const TELLS: &str = r#"text: "It is 2.""#;
const WELCOMES: &str = r#"text: "You are welcome.""#;

/// Returns the rule for the model's answers in the recorded log.
pub fn time() -> String {
    rule("user_contains: time please", &[LOOKS, TELLS])
}

pub fn thanked() -> String {
    rule("user_contains: thanks", &[WELCOMES])
}

/// A call that whoever executes it is seen to have made, and where.
pub fn traced_call() -> (std::net::TcpListener, String) {
    let called = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    called.set_nonblocking(true).unwrap();
    let arguments = json!({ "url": format!("http://{}/", called.local_addr().unwrap()) });
    (called, format!("tool_calls: [{{ tool: http.get, arguments: {arguments} }}]"))
}

fn as_recorded() -> String {
    rules(&[&time(), &thanked()])
}

fn verdicts(report: &Value) -> Vec<&str> {
    let decisions = report["decisions"].as_array().unwrap();
    decisions.iter().map(|it| it["lanes"]["verdict"].as_str().unwrap_or("none")).collect()
}

fn outcomes<'r>(report: &'r Value, decision: usize, lane: &str) -> Vec<&'r str> {
    let samples = report["decisions"][decision]["lanes"][lane]["samples"].as_array().unwrap();
    samples.iter().map(|sample| sample["outcome"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn lanes_ask_as_often_as_is_said_and_the_control_asks_what_was_asked_then() {
    let place = Place::new(&as_recorded()).await;
    let page = place.path("page.html");
    let options = ["--prompt", "new.md", "--samples", "2", "--budget", "1", "--html", page.to_str().unwrap()];
    let (code, report) = place.report(&options).await;
    assert_eq!((code, verdicts(&report)), (Some(0), vec!["same"; 3]), "{report:#}");
    let asked = &report["asked"];
    assert_eq!((&asked["expected_calls"], &asked["calls"]), (&json!(12), &json!(12)), "{asked}");
    assert_eq!(
        (&asked["cost"], &asked["budget"], &asked["ended"]),
        (&json!("0.00012"), &json!("1"), &json!("complete"))
    );
    let requests = place.requests().await;
    let changed = requests.iter().filter(|it| it["body"].to_string().contains("You answer in verse."));
    let unchanged = requests.iter().filter(|it| it["body"].to_string().contains("Be brief."));
    assert_eq!((requests.len(), changed.count(), unchanged.count()), (12, 6, 6));
    assert!(requests.iter().all(|it| it["body"]["max_completion_tokens"] == 10), "{requests:?}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("aria-label=\"lanes\"") && page.contains("2 of 2"), "{page}");

    // The report is one that others read.
    let kept = place.path("report.json");
    let mut diff = Command::new(StackOptions::bin_dir_of_this_build().unwrap().join("kairo"));
    let diff = diff.arg("diff").args([&kept, &kept]).output().await.unwrap();
    assert_eq!(diff.status.code(), Some(0), "{diff:?}");
}

#[tokio::test]
async fn what_is_left_of_a_budget_is_never_exceeded_and_the_rest_is_said_not_to_be_asked() {
    let place = Place::new(&as_recorded()).await;
    let budget = "0.00003";
    let (code, report) = place.report(&["--prompt", "new.md", "--samples", "2", "--budget", budget]).await;
    assert_eq!((code, place.requests().await.len()), (Some(1), 3), "an answer costs {ANSWER}, three are affordable");
    assert_eq!((&report["asked"]["calls"], &report["asked"]["cost"]), (&json!(3), &json!(budget)));
    assert_eq!(report["asked"]["ended"], "budget");
    assert_eq!(outcomes(&report, 0, "control"), ["same", "same"]);
    assert_eq!(outcomes(&report, 0, "candidate"), ["same", "not_asked"]);
    assert_eq!(verdicts(&report), ["same", "not_asked", "not_asked"]);

    let (_, said, told) = place.replay(&["--prompt", "new.md", "--samples", "2", "--budget", "0"]).await;
    assert!(told.contains("about 12 calls for about 0.") && told.contains("a budget of 0 USD"), "{told}");
    assert!(said.contains("0 calls for 0 of 0; what is left of the budget does not suffice"), "{said}");
    assert_eq!(place.requests().await.len(), 3, "nothing more is asked");
}

#[tokio::test]
async fn a_call_without_a_recorded_result_is_divergent_and_nothing_runs_it() {
    let (called, runs) = traced_call();
    let new = rule("system_contains: verse, user_contains: time please", &[&runs, TELLS]);
    let scenario = rules(&[&new, &time(), &thanked()]);
    let place = Place::new(&scenario).await;
    let (code, report) = place.report(&["--prompt", "new.md", "--samples", "2", "--budget", "1"]).await;
    assert_eq!((code, verdicts(&report)), (Some(1), vec!["differs", "same", "same"]), "{report:#}");
    assert_eq!(outcomes(&report, 0, "control"), ["same", "same"]);
    assert_eq!(outcomes(&report, 0, "candidate"), ["divergent", "divergent"]);
    let action = &report["decisions"][0]["lanes"]["candidate"]["samples"][0]["actions"][0];
    assert_eq!((&action["tool"], &action["divergent"]), (&json!("http.get"), &json!(true)));
    assert_eq!(place.requests().await.len(), 12, "no result came of it, so nothing follows from it");
    let (_, said, _) = place.replay(&["--prompt", "new.md", "--samples", "1", "--budget", "1"]).await;
    assert!(said.contains("candidate: divergent: calls http.get") && said.contains("not executed"), "{said}");
    assert!(called.accept().is_err(), "it was executed");
}

/// Thanks are answered in three ways, each of them twice: once in each lane, where the lanes take turns.
fn noisy() -> String {
    let twice = |answer: &str| rule("user_contains: thanks", &[answer]) + "    times: 2\n    times_per: server\n";
    let [welcomes, looks, rewords] = [WELCOMES, LOOKS, r#"text: "Not at all.""#].map(twice);
    rules(&[&welcomes, &looks, &rewords, &time()])
}

#[tokio::test]
async fn a_model_that_is_as_noisy_without_the_change_is_told_from_a_regression() {
    // One call at a time: of either lane one sample does as recorded, one something else, and one is worded otherwise.
    let place = Place::new(&noisy()).await;
    let at_a_time = [("KAIRO_MODELS__HEAVY__PRICE", PRICE), ("KAIRO_MODELS__HEAVY__MAX_IN_FLIGHT", "1")];
    let report = place.path("noise.json");
    let options = ["--prompt", "new.md", "--samples", "3", "--budget", "1", "--report", report.to_str().unwrap()];
    let (code, said, told) = place.replay_with(&at_a_time, &options).await;
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let last = &report["decisions"][2]["lanes"];
    for lane in ["control", "candidate"] {
        assert_eq!(outcomes(&report, 2, lane), ["same", "divergent", "reworded"], "{report:#}");
        assert_eq!((&last[lane]["same"], &last[lane]["of"]), (&json!(2), &json!(3)));
    }
    assert_eq!((code, &last["verdict"]), (Some(0), &json!("noise")), "{said}{told}");

    // The same answers, of the candidate alone.
    let new = rule("system_contains: verse, user_contains: thanks", &[LOOKS]);
    let place = Place::new(&rules(&[&new, &time(), &thanked()])).await;
    let (code, report) = place.report(&["--prompt", "new.md", "--samples", "3", "--budget", "1"]).await;
    assert_eq!((code, verdicts(&report)), (Some(1), vec!["same", "same", "differs"]), "{report:#}");
    assert_eq!(report["decisions"][2]["lanes"]["chance"], 0.05);
}

#[tokio::test]
async fn another_model_is_asked_what_the_old_one_was_and_only_where_its_tier_was() {
    let other = rule("model: [other], user_contains: thanks", &[r#"text: "Bye.""#]);
    let place = Place::new(&rules(&[&other, &time(), &thanked()])).await;
    let priced =
        [("KAIRO_MODELS__HEAVY__PRICE", PRICE), ("KAIRO_GATEWAY__PRICES", r#"{"oth*":{"input":0,"output":2}}"#)];
    let report = place.path("model.json");
    let options = ["--model", "other", "--budget", "1", "--report", report.to_str().unwrap()];
    let (code, said, told) = place.replay_with(&priced, &options).await;
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!((code, verdicts(&report)), (Some(0), vec!["same"; 3]), "{said}{told}");
    assert_eq!(
        (&report["changed"], &report["asked"]["candidate"]["heavy"]),
        (&json!(["model heavy=other"]), &json!("other"))
    );
    assert_eq!(report["asked"]["cost"], "0.00009", "three answers at 1 and three at 2 for a million tokens");
    assert_eq!((outcomes(&report, 2, "control"), outcomes(&report, 2, "candidate")), (vec!["same"], vec!["reworded"]));
    let requests = place.requests().await;
    let of = |model: &str| requests.iter().filter(|it| it["body"]["model"] == model).count();
    assert_eq!((of("simulator"), of("other")), (3, 3));
    let (_, said, _) = place.replay_with(&priced, &["--model", "fast=other", "--budget", "1"]).await;
    assert!(said.contains("0 decisions asked for, 0 calls"), "no decision asked the fast tier: {said}");
}

#[tokio::test]
async fn what_cannot_be_asked_is_named_before_anything_is() {
    let place = Place::new(&as_recorded()).await;
    let unpriced: &[(&str, &str)] = &[];
    for (settings, arguments, named) in [
        (unpriced, &["--prompt", "new.md", "--samples", "1"][..], "--budget: expected"),
        (unpriced, &["--prompt", "new.md", "--samples", "1", "--budget", "1"], "models.heavy.price"),
        (unpriced, &["--samples", "1", "--budget", "none"], "--samples: expected a change"),
        (unpriced, &["--prompt", "new.md", "--budget", "1"], "--budget: expected --samples or --model"),
        (unpriced, &["--model", "slow=m", "--budget", "1"], "expected the name of a model"),
        (unpriced, &["--prompt", "new.md", "--samples", "1", "--budget", "much"], "such as 0.50, or none"),
        (
            unpriced,
            &["--prompt", "new.md", "--samples", "1", "--budget", "none", "--max-decisions", "2"],
            "--max-decisions",
        ),
        (&[("KAIRO_MODELS__HEAVY__PRICE", "cheap")], &["--model", "m", "--budget", "1"], "models.heavy.price"),
    ] {
        let (code, said, told) = place.replay_with(settings, arguments).await;
        assert_eq!((code, said.as_str()), (Some(64), ""), "{arguments:?}: {told}");
        assert!(told.contains(named), "{arguments:?}: {told}");
    }
    assert_eq!(place.requests().await.len(), 0);
    let (code, _, told) =
        place.replay_with(unpriced, &["--prompt", "new.md", "--samples", "1", "--budget", "none"]).await;
    assert!(code == Some(0) && told.contains("at prices that are not known, with no budget"), "{told}");
    assert_eq!(place.requests().await.len(), 6);
}

#[tokio::test]
async fn the_models_of_a_dev_that_runs_here_are_asked_by_all_commands() {
    let place = Place::new(&as_recorded()).await;
    let commands = [
        &["replay", "cook.log", "--prompt", "new.md", "--samples", "1", "--budget", "1"][..],
        &["whatif", "cook.log", "--drop", "4", "--live", "--budget", "1"],
        &["fork", "cook", "--file", "cook.log", "--message", "new.md", "--budget", "1"],
    ];
    for arguments in &commands[..2] {
        let (code, told) = place.kairo_beside_dev(arguments).await;
        assert!(code == Some(64) && told.contains("no model is configured"), "{told}");
    }
    let (code, told) = place.kairo_beside_dev(commands[2]).await;
    assert!(code == Some(0) && told.contains("No model is configured"), "{told}");
    std::fs::create_dir(place.path(".kairo")).unwrap();
    let models = json!({
        "KAIRO_MODELS__HEAVY__BASE_URL": format!("http://{}/v1", place.address),
        "KAIRO_MODELS__HEAVY__MODEL": "of-dev",
        "KAIRO_GATEWAY__PRICES": json!({ "of-*": { "input": 0, "output": 1 } }).to_string(),
    });
    std::fs::write(place.path(".kairo/models.json"), models.to_string()).unwrap();
    let mut asked = 0;
    for arguments in commands {
        let (_, told) = place.kairo_beside_dev(arguments).await;
        let requests = place.requests().await;
        assert!(requests.len() > asked && requests[0]["body"]["model"] == "of-dev", "{arguments:?}: {told}");
        asked = requests.len();
    }
}

#[tokio::test]
async fn who_ends_it_is_shown_what_is_there_and_what_may_have_been_spent() {
    let hangs = rule("user_contains: thanks", &["fault: hang"])
        .replace(", usage: { prompt_tokens: 0, completion_tokens: 10 }", "");
    let place = Place::new(&rules(&[&hangs, &time()])).await;
    let report = place.path("report.json");
    let options = ["--prompt", "new.md", "--samples", "1", "--budget", "1", "--report", report.to_str().unwrap()];
    let settings = [("KAIRO_MODELS__HEAVY__PRICE", PRICE)];
    let mut kairo = place.command(&settings, &[&["replay", "cook.log"], &options[..]].concat());
    let kairo = kairo.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let asked = async { while place.counts().await != (6, 2) {} };
    tokio::time::timeout(DEADLINE, asked).await.unwrap();
    let pid = kairo.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let output = tokio::time::timeout(DEADLINE, kairo.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("; it was interrupted"), "{output:?}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let asked = &report["asked"];
    assert_eq!(
        (&asked["ended"], &asked["calls"], &asked["cost"]),
        (&json!("interrupted"), &json!(6), &json!("0.00006"))
    );
    assert_eq!(
        (outcomes(&report, 2, "control"), outcomes(&report, 2, "candidate")),
        (vec!["not_asked"], vec!["not_asked"])
    );
}
