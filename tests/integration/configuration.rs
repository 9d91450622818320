//! Configuration of the real binaries: every mistake is named, and nothing secret is shown.

use std::process::{Command, Output};

use kairo_local::{Service, StackOptions};
use serde_json::Value;
use tempfile::NamedTempFile;

const SECRET: &str = "swordfish";

/// The services that take Kairo's configuration; the simulator has options of its own.
fn services() -> impl Iterator<Item = Service> {
    Service::ALL.into_iter().filter(|service| *service != Service::ModelSim)
}

fn run(service: Service, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join(service.binary());
    let mut command = Command::new(program);
    command.env_clear().args(arguments).envs(environment.iter().copied()).output().unwrap()
}

fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn print_config(service: Service, path: &str, environment: &[(&str, &str)]) -> Value {
    let output = run(service, &["--config", path, "--print-config"], environment);
    assert!(output.status.success(), "{}: {}", service.binary(), told(&output));
    assert!(!String::from_utf8_lossy(&output.stdout).contains(SECRET), "{} shows a secret", service.binary());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_mistake_is_named_at_once_and_the_exit_status_is_64() {
    let file = file(&format!(
        r#"
        [nats]
        replicas = 9
        token = ["{SECRET}"]
        [bus]
        ack_wait_ms = 1
        ack_weight_ms = 5000
        drain_ms = "soon"
        [telemetry]
        sample_ratio = 2.0
        [weather]
        sunny = true
        "#
    ));
    let environment = [("KAIRO_BUS__MAX_ATTEMPTS", "0"), ("KAIRO_HEALTH__NOPE", "1"), ("KAIRO_NOWHERE__KEY", "1")];
    for service in services() {
        let output = run(service, &["--config", file.path().to_str().unwrap()], &environment);
        let told = told(&output);
        assert_eq!(output.status.code(), Some(64), "{}: {told}", service.binary());
        for key in [
            "nats.replicas",
            "nats.token",
            "bus.ack_wait_ms",
            "bus.ack_weight_ms",
            "bus.drain_ms",
            "telemetry.sample_ratio",
            "weather",
            "KAIRO_BUS__MAX_ATTEMPTS",
            "KAIRO_HEALTH__NOPE",
            "KAIRO_NOWHERE__KEY",
        ] {
            assert!(told.contains(key), "{} does not name {key}:\n{told}", service.binary());
        }
        assert!(!told.contains(SECRET), "{} shows a secret:\n{told}", service.binary());
    }
}

#[test]
fn what_a_newer_build_may_know_is_named_and_passed_over_until_its_date() {
    let newer = |until: &str| file(&format!("config.lenient_until = {until}\nbus.patience_ms = 5\nnewer.x = 1\n"));
    let (open, over) = (newer("2999-12-31"), newer("2020-12-31"));
    for service in services() {
        let output = run(service, &["--config", open.path().to_str().unwrap(), "--print-config"], &[]);
        assert!(output.status.success(), "{}: {}", service.binary(), told(&output));
        for key in ["bus.patience_ms", "newer"] {
            let said = format!(": {key} is not a known ");
            assert!(told(&output).lines().any(|line| line.contains("passed over") && line.contains(&said)));
        }
        let output = run(service, &["--config", over.path().to_str().unwrap()], &[]);
        assert_eq!(output.status.code(), Some(64), "{}: {}", service.binary(), told(&output));
        assert!(told(&output).contains("config.lenient_until was over"), "{}", told(&output));
    }
}

#[test]
fn a_login_to_nats_that_is_shown_sent_in_the_clear_or_made_in_two_ways_is_refused() {
    let in_url = format!("nats://ann:{SECRET}@host");
    let mistakes: [(&str, &[(&str, &str)]); 6] = [
        ("KAIRO_NATS__URL", &[("KAIRO_NATS__URL", &in_url)]),
        ("KAIRO_NATS__URL", &[("KAIRO_NATS__URL", "tls://one,nats://two")]),
        ("KAIRO_NATS__TLS_CA", &[("KAIRO_NATS__TLS_CA", "/ca.pem")]),
        ("KAIRO_NATS__USER", &[("KAIRO_NATS__USER", "ann")]),
        ("KAIRO_NATS__NKEY", &[("KAIRO_NATS__NKEY", SECRET)]),
        ("KAIRO_NATS__PASSWORD", &[("KAIRO_NATS__PASSWORD", SECRET), ("KAIRO_NATS__TOKEN", SECRET)]),
    ];
    for service in services() {
        for (named, environment) in mistakes {
            let output = run(service, &[], environment);
            let told = told(&output);
            assert_eq!(output.status.code(), Some(64), "{}: {environment:?}: {told}", service.binary());
            assert!(told.contains(named) && !told.contains(SECRET), "{}: {told}", service.binary());
        }
    }
}

#[test]
fn an_unknown_variable_or_option_is_refused_and_a_file_that_is_not_there_too() {
    for service in services() {
        let unknown = run(service, &[], &[("KAIRO_BUS__ACK_WAIT", "1000")]);
        assert_eq!(unknown.status.code(), Some(64), "{}", service.binary());
        assert!(told(&unknown).contains("KAIRO_BUS__ACK_WAIT"), "{}", told(&unknown));
        let missing = run(service, &["--config", "/no/such/file"], &[]);
        assert_eq!(missing.status.code(), Some(64), "{}", service.binary());
        assert!(told(&missing).contains("/no/such/file"), "{}", told(&missing));
        let option = run(service, &["--colour", "red"], &[]);
        assert_eq!(option.status.code(), Some(64), "{}: {}", service.binary(), told(&option));
        assert!(told(&option).contains("--colour"), "{}", told(&option));
    }
}

#[test]
fn the_configuration_in_force_is_printed_without_its_secrets() {
    let shared = file(&format!(
        r#"
        [nats]
        token = "{SECRET}"
        [bus]
        ack_wait_ms = 7000
        [models.heavy]
        api_key = "{SECRET}"
        [postgres]
        url = "postgres://kairo:{SECRET}@127.0.0.1/kairo"
        [[tool_runner.mcp]]
        name = "web"
        url = "http://127.0.0.1:1/mcp"
        headers = {{ authorization = "{SECRET}" }}
        "#
    ));
    let path = shared.path().to_str().unwrap();
    for service in services() {
        let config = print_config(service, path, &[("KAIRO_BUS__DRAIN_MS", "1234")]);
        assert_eq!(config["bus"]["ack_wait_ms"], 7000, "{}", service.binary());
        assert_eq!(config["bus"]["drain_ms"], 1234, "{}", service.binary());
        assert_eq!(config["nats"]["url"], "nats://127.0.0.1:4222", "{}", service.binary());
    }
}

#[test]
fn help_says_how_to_configure() {
    for service in services() {
        let help = run(service, &["--help"], &[]);
        assert!(help.status.success(), "{}", service.binary());
        let text = String::from_utf8(help.stdout).unwrap();
        for part in ["--config", "KAIRO_CONFIG", "--print-config"] {
            assert!(text.contains(part), "{}: {part} is not in\n{text}", service.binary());
        }
    }
}

#[test]
fn one_file_may_serve_all_and_each_service_judges_its_own_sections() {
    let shared =
        file("[tool_runner]\nparallel = 0\n[gateway]\nlisten = \"nowhere\"\n[router]\ndefault_agent = \"ok\"\n");
    let path = shared.path().to_str().unwrap();
    let router = print_config(Service::Router, path, &[("KAIRO_GATEWAY__NOPE", "1")]);
    assert_eq!(router["router"]["default_agent"], "ok");
    assert!(router.get("tool_runner").is_none());
    for (service, key) in [(Service::ToolRunner, "tool_runner.parallel"), (Service::Gateway, "gateway.listen")] {
        let output = run(service, &["--config", path], &[]);
        assert_eq!(output.status.code(), Some(64), "{}", service.binary());
        assert!(told(&output).contains(key), "{}", told(&output));
    }
}

#[test]
fn a_scenario_that_makes_no_sense_is_refused_with_every_mistake() {
    let scenario =
        file("rules:\n  - { name: a, when: { moon: full }, reply: x }\n  - { name: b, reply: { fault: sulk } }\n");
    let path = scenario.path().to_str().unwrap();
    let output = run(Service::ModelSim, &["--check", "--scenario", path], &[]);
    assert_eq!(output.status.code(), Some(64), "{}", told(&output));
    assert!(told(&output).contains("moon"), "{}", told(&output));
}
