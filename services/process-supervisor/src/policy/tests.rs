//! Tests of `policy`.

use serde_json::json;

use super::*;

fn policy() -> Policy {
    let programs = json!({
        "echo": "/bin/echo",
        "lint": {"path": "/usr/bin/python3", "args": ["-I", "-m", "lint"]},
    });
    Policy { programs: serde_json::from_value(programs).expect("programs"), ..Policy::default() }
}

fn request(arguments: serde_json::Value) -> ProgramRequest {
    serde_json::from_value(arguments).expect("a request")
}

fn admit(arguments: serde_json::Value) -> Result<Spec, Refusal> {
    policy().admit(request(arguments), Path::new("/work"), &ProcessLimits::default(), 5_000)
}

#[test]
fn an_allowed_name_becomes_its_path() {
    let spec = admit(json!({"program": "echo", "args": ["$(x)", "a b"]})).expect("allowed");
    assert_eq!(spec.program, PathBuf::from("/bin/echo"));
    assert_eq!(spec.args, ["$(x)", "a b"]);
    assert_eq!((spec.cwd.as_path(), spec.lease_ms), (Path::new("/work"), 5_000));
}

#[test]
fn fixed_arguments_come_first() {
    let spec = admit(json!({"program": "lint", "args": ["f.py"]})).expect("allowed");
    assert_eq!(spec.args, ["-I", "-m", "lint", "f.py"]);
}

#[test]
fn what_is_not_listed_is_refused_and_the_list_is_named() {
    let refusal = admit(json!({"program": "rm"})).expect_err("refused");
    assert_eq!(refusal.to_string(), r#"program "rm" is not allowed; allowed are: echo, lint"#);
    let refusal = admit(json!({"program": "/bin/echo"})).expect_err("refused");
    assert!(matches!(refusal, Refusal::Path { .. }));
    assert!(refusal.to_string().ends_with("echo, lint"));
}

#[test]
fn by_default_nothing_is_allowed() {
    let refusal =
        Policy::default().admit(request(json!({"program": "echo"})), Path::new("/"), &ProcessLimits::default(), 1);
    assert!(refusal.expect_err("refused").to_string().contains("allows no program"));
}

#[test]
fn arguments_are_bounded() {
    let many = vec!["x"; 257];
    assert_eq!(
        admit(json!({"program": "echo", "args": many})),
        Err(Refusal::TooManyArguments { count: 257, max: 256 })
    );
    let long = "x".repeat((128 << 10) + 1);
    assert!(matches!(admit(json!({"program": "echo", "args": [long]})), Err(Refusal::ArgumentsTooLong { .. })));
    assert_eq!(admit(json!({"program": "echo", "args": ["a", "b\0c"]})), Err(Refusal::NulInArgument { position: 1 }));
}

#[test]
fn a_requested_time_lowers_the_limit_and_never_raises_it() {
    let time_ms = |arguments| admit(arguments).expect("allowed").bounds.time_ms;
    assert_eq!(time_ms(json!({"program": "echo", "timeout_ms": 10})), 10);
    assert_eq!(time_ms(json!({"program": "echo", "timeout_ms": u64::MAX})), 600_000);
    assert_eq!(time_ms(json!({"program": "echo"})), 600_000);
}

#[test]
fn input_is_a_matter_of_the_request_and_files_of_the_configuration() {
    let spec = admit(json!({"program": "echo"})).expect("allowed");
    assert_eq!((spec.stdin, spec.access), (false, Landlock::default().access()));

    let landlock = Landlock { mode: ConfinementMode::Required, write: vec!["/srv".into()], ..Landlock::default() };
    let policy = Policy { landlock, ..policy() };
    let request = request(json!({"program": "echo", "stdin": true}));
    let limits = ProcessLimits { stdin_bytes: 7, ..ProcessLimits::default() };
    let spec = policy.admit(request, Path::new("/work"), &limits, 1).expect("allowed");
    assert_eq!((spec.stdin, spec.bounds.stdin_bytes), (true, 7));
    let access = spec.access.expect("restricted");
    assert_eq!((access.required, access.write), (true, vec![PathBuf::from("/srv")]));
}

#[test]
fn where_a_namespace_is_required_nothing_runs_without_one() {
    let spec = |mode, available| {
        let policy = Policy { pids: Pids::for_mode(mode, available), ..policy() };
        let request = request(json!({"program": "echo"}));
        policy.admit(request, Path::new("/work"), &ProcessLimits::default(), 1).map(|spec| spec.pid_namespace)
    };
    for mode in [ConfinementMode::BestEffort, ConfinementMode::Required] {
        assert_eq!(spec(mode, true), Ok(true));
    }
    assert_eq!((spec(ConfinementMode::Off, true), spec(ConfinementMode::BestEffort, false)), (Ok(false), Ok(false)));
    assert_eq!(spec(ConfinementMode::Required, false), Err(Refusal::NoNamespace));
}

#[test]
fn only_a_program_without_ports_is_alone_in_its_network() {
    let spec = |landlock: Landlock, pids, own_network| {
        let policy = Policy { landlock, pids, own_network, ..policy() };
        let request = request(json!({"program": "echo"}));
        policy.admit(request, Path::new("/work"), &ProcessLimits::default(), 1).expect("allowed").network_namespace
    };
    let connecting = Landlock { connect: vec![443], ..Landlock::default() };
    let off = Landlock { mode: ConfinementMode::Off, ..Landlock::default() };
    assert!(spec(Landlock::default(), Pids::Own, true));
    assert!(!spec(Landlock::default(), Pids::Own, false), "the machine does not allow it");
    assert!(!spec(Landlock::default(), Pids::Shared, true));
    assert!(!spec(connecting, Pids::Own, true));
    assert!(!spec(off, Pids::Own, true));
}

#[test]
fn where_a_filter_is_required_nothing_runs_without_one() {
    let spec = |mode, available| {
        let policy = Policy { system_calls: SystemCalls::for_mode(mode, available), ..policy() };
        let request = request(json!({"program": "echo"}));
        policy.admit(request, Path::new("/work"), &ProcessLimits::default(), 1).map(|spec| spec.seccomp)
    };
    for mode in [ConfinementMode::BestEffort, ConfinementMode::Required] {
        assert_eq!(spec(mode, true), Ok(true));
    }
    assert_eq!((spec(ConfinementMode::Off, true), spec(ConfinementMode::BestEffort, false)), (Ok(false), Ok(false)));
    assert_eq!(spec(ConfinementMode::Required, false), Err(Refusal::NoFilter));
}

#[test]
fn a_misspelt_argument_is_an_error_and_not_a_default() {
    let error =
        serde_json::from_value::<ProgramRequest>(json!({"program": "echo", "timeout": 1})).expect_err("unknown");
    assert!(error.to_string().contains("unknown field `timeout`"));
}

#[test]
fn problems_of_the_configuration_are_named() {
    let programs = json!({"a/b": "/bin/a", "c": "c"});
    let policy = Policy {
        programs: serde_json::from_value(programs).expect("readable"),
        env: BTreeMap::from([("A=B".to_owned(), String::new())]),
        ..Policy::default()
    };
    let problems = policy.problems();
    assert_eq!(problems.len(), 3, "{problems:?}");
}
