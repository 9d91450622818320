//! The programs that may run, and their bounds. Nothing may run unless the configuration says so.

mod landlock;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::landlock::{ConfinementMode, Landlock};
use crate::limits::ProcessLimits;
use crate::protocol::{Bounds, Sockets, Spec};

/// The programs that may run, their environment and their restrictions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The programs that may run, by the name agents use.
    pub programs: BTreeMap<String, Program>,
    /// The whole environment of every process.
    pub env: BTreeMap<String, String>,
    /// The files and ports that programs may reach.
    pub landlock: Landlock,
    pub pids: Pids,
    pub system_calls: SystemCalls,
    /// True if the machine allows networks of their own.
    pub own_network: bool,
}

/// The system calls that a program may make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SystemCalls {
    /// All that its user may.
    #[default]
    All,
    /// Those that an ordinary program needs.
    Filtered,
    /// They should be filtered, which this machine does not do: nothing runs.
    Unavailable,
}

impl SystemCalls {
    pub fn for_mode(mode: ConfinementMode, available: bool) -> Self {
        match (mode, available) {
            (ConfinementMode::BestEffort | ConfinementMode::Required, true) => Self::Filtered,
            (ConfinementMode::Required, false) => Self::Unavailable,
            (ConfinementMode::Off, _) | (ConfinementMode::BestEffort, false) => Self::All,
        }
    }
}

/// The processes that a program sees and may signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pids {
    /// Those of the machine.
    #[default]
    Shared,
    /// Only what it has itself started.
    Own,
    /// It should have its own, which this machine does not allow: nothing runs.
    Unavailable,
}

impl Pids {
    pub fn for_mode(mode: ConfinementMode, available: bool) -> Self {
        match (mode, available) {
            (ConfinementMode::BestEffort | ConfinementMode::Required, true) => Self::Own,
            (ConfinementMode::Required, false) => Self::Unavailable,
            (ConfinementMode::Off, _) | (ConfinementMode::BestEffort, false) => Self::Shared,
        }
    }
}

/// A program that may run: `"/bin/echo"`, or a table that says more of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected the path of a program, or a table of its path, args and consent")]
pub enum Program {
    /// Absolute.
    Path(PathBuf),
    Described(DescribedProgram),
}

/// A program with arguments that an agent cannot change, and whether a human must consent to each run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedProgram {
    /// Absolute.
    pub path: PathBuf,
    /// Put before the arguments of every request. Default none.
    #[serde(default)]
    pub args: Vec<String>,
    /// True if a human must consent to each run: for programs that can do anything, such as an interpreter. Default no.
    #[serde(default)]
    pub consent: bool,
}

impl Program {
    pub fn path(&self) -> &Path {
        match self {
            Program::Path(path) => path,
            Program::Described(program) => &program.path,
        }
    }

    pub fn args(&self) -> &[String] {
        match self {
            Program::Path(_) => &[],
            Program::Described(program) => &program.args,
        }
    }

    pub fn needs_approval(&self) -> bool {
        matches!(self, Program::Described(program) if program.consent)
    }
}

/// The arguments of the tools `process.run` and `process.spawn`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramRequest {
    /// A name of the allow-list, not a path.
    pub program: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// Less time than the configured limit, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// True if its standard input can be written to.
    #[serde(default)]
    pub stdin: bool,
}

/// The reason why a request is refused, in words for the requester.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("program {program:?} is a path; name one of the allowed programs instead: {}", list(allowed))]
    Path { program: String, allowed: Vec<String> },
    #[error("program {program:?} is not allowed; allowed are: {}", list(allowed))]
    NotAllowed { program: String, allowed: Vec<String> },
    #[error("{count} arguments are too many; pass at most {max}")]
    TooManyArguments { count: usize, max: usize },
    #[error("the arguments are {bytes} bytes together; pass at most {max}")]
    ArgumentsTooLong { bytes: usize, max: usize },
    #[error("argument {position} holds a NUL byte, which no program can be given; remove it")]
    NulInArgument { position: usize },
    #[error(
        "no program is run: process_supervisor.pid_namespace is required, and this machine does not allow one; let its \
         operator allow it, or configure process_supervisor.pid_namespace otherwise"
    )]
    NoNamespace,
    #[error(
        "no program is run: process_supervisor.seccomp is required, and this machine does not filter system calls; let it \
         run on a kernel with seccomp, or configure process_supervisor.seccomp otherwise"
    )]
    NoFilter,
}

fn list(allowed: &[String]) -> String {
    match allowed {
        [] => "none (the configuration allows no program)".to_owned(),
        names => names.join(", "),
    }
}

impl Policy {
    /// Turns a request into what a guard carries out in the folder `cwd`.
    ///
    /// More time than `limits` allow is clamped rather than refused: a caller who asks for too
    /// much gets what there is.
    ///
    /// # Errors
    /// When the program is not allowed or its arguments are too many or too long.
    pub fn admit(
        &self,
        request: ProgramRequest,
        cwd: &Path,
        limits: &ProcessLimits,
        lease_ms: u64,
    ) -> Result<Spec, Refusal> {
        let program = self.find(&request.program)?;
        check_arguments(&request.args, limits)?;
        if self.pids == Pids::Unavailable {
            return Err(Refusal::NoNamespace);
        }
        if self.system_calls == SystemCalls::Unavailable {
            return Err(Refusal::NoFilter);
        }
        let access = self.landlock.access();
        Ok(Spec {
            program: program.path().to_owned(),
            bounds: bounds(&request, limits),
            args: program.args().iter().cloned().chain(request.args).collect(),
            cwd: cwd.to_owned(),
            env: self.env.clone(),
            stdin: request.stdin,
            network_namespace: self.own_network
                && self.pids == Pids::Own
                && Sockets::for_access(access.as_ref()) == Sockets::None,
            access,
            pid_namespace: self.pids == Pids::Own,
            seccomp: self.system_calls == SystemCalls::Filtered,
            lease_ms,
        })
    }

    /// Everything that is wrong with this policy, each named by its key.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, program) in &self.programs {
            if name.is_empty() || name.contains(['/', '\0']) {
                problems.push("programs: a name must not be empty or hold a slash".to_owned());
            }
            if !program.path().is_absolute() {
                problems.push(format!("programs.{name}: the path is not absolute; give the full path"));
            }
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                problems.push("env: a name must not be empty or hold '=', and nothing may hold a NUL".to_owned());
            }
        }
        problems.extend(self.landlock.problems());
        problems
    }

    fn find(&self, name: &str) -> Result<&Program, Refusal> {
        let allowed = || self.programs.keys().cloned().collect();
        if name.contains('/') {
            return Err(Refusal::Path { program: name.to_owned(), allowed: allowed() });
        }
        self.programs.get(name).ok_or_else(|| Refusal::NotAllowed { program: name.to_owned(), allowed: allowed() })
    }
}

fn check_arguments(args: &[String], limits: &ProcessLimits) -> Result<(), Refusal> {
    if args.len() > limits.arguments {
        return Err(Refusal::TooManyArguments { count: args.len(), max: limits.arguments });
    }
    let bytes = args.iter().map(String::len).sum();
    if bytes > limits.argument_bytes {
        return Err(Refusal::ArgumentsTooLong { bytes, max: limits.argument_bytes });
    }
    match args.iter().position(|arg| arg.contains('\0')) {
        Some(position) => Err(Refusal::NulInArgument { position }),
        None => Ok(()),
    }
}

fn bounds(request: &ProgramRequest, limits: &ProcessLimits) -> Bounds {
    let max_time_ms = limits.time_ms();
    Bounds {
        time_ms: request.timeout_ms.unwrap_or(max_time_ms).min(max_time_ms),
        grace_ms: limits.grace_ms,
        memory_bytes: limits.memory_bytes,
        cpu_s: limits.cpu_s,
        open_files: limits.open_files,
        processes: limits.processes,
        output_bytes: limits.output_bytes,
        stdin_bytes: limits.stdin_bytes,
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            admit(json!({"program": "echo", "args": ["a", "b\0c"]})),
            Err(Refusal::NulInArgument { position: 1 })
        );
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
        assert_eq!(
            (spec(ConfinementMode::Off, true), spec(ConfinementMode::BestEffort, false)),
            (Ok(false), Ok(false))
        );
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
        assert_eq!(
            (spec(ConfinementMode::Off, true), spec(ConfinementMode::BestEffort, false)),
            (Ok(false), Ok(false))
        );
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
}
