//! The programs that may run, and their bounds. Nothing may run unless the configuration says so.

mod landlock;
#[cfg(test)]
mod tests;

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
