//! The command as a process: how it starts, refuses and stops.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn simulator() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kairo-model-sim"));
    command.env_remove("KAIRO_SIM_LISTEN").env_remove("KAIRO_SIM_SCENARIO");
    command
}

#[test]
fn it_says_where_it_listens_and_stops_on_sigterm() {
    let folder = tempfile::tempdir().expect("a folder");
    let port_file = folder.path().join("port");
    let mut child = simulator()
        .args(["--listen", "127.0.0.1:0", "--port-file"])
        .arg(&port_file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let port = std::fs::read_to_string(&port_file).expect("the port");
    assert_eq!(line, format!("listening on http://127.0.0.1:{}\n", port.trim()));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_scenario_with_mistakes_is_refused_with_all_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.yaml");
    let yaml = "rules:\n  - { name: a, repli: x }\n  - { name: b, when: { user_matches: '(' }, reply: x }\n";
    std::fs::write(&file, yaml).expect("it is written");
    let refused = simulator().arg("--scenario").arg(&file).output().expect("it runs");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(64), "{told}");
    for part in ["bad.yaml", "rule 'a' (line 2).repli", "rule 'b' (line 3).when.user_matches"] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn wrong_usage_exits_with_64_and_the_built_in_scenario_is_right() {
    let status = |arguments: &[&str]| simulator().args(arguments).output().expect("it runs").status.code();
    assert_eq!(status(&["--nonsense"]), Some(64));
    assert_eq!(status(&["--scenario", "/nowhere.yaml"]), Some(64));
    assert_eq!(status(&["--delay", "5-3"]), Some(64));
    assert_eq!(status(&["--check", "--delay", "0-5000", "--seed", "7"]), Some(0));
    assert_eq!(status(&["--check"]), Some(0));
}
