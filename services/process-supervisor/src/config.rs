//! The configuration of the programs that may run, and their limits. By default none may, and the tool is not offered.

use std::{collections::BTreeMap, env, path::PathBuf};

use kairo_core::{
    config::{Mistake, Validate},
    service_config,
};
use serde::{Deserialize, Serialize};

use crate::{
    confinement::KernelConfinement,
    limits::ProcessLimits,
    policy::{ConfinementMode, Landlock, Pids, Policy, Program, SystemCalls},
};

service_config! {
    /// The whole configuration of process-supervisor.
    Config {
        /// The programs, and their limits.
        process_supervisor: SupervisorConfig,
    }
}

/// The programs of one supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SupervisorConfig {
    /// The programs agents may run, by the name they use: an absolute path, or a table of `path`, `args` that always
    /// come first, and `consent`, true if a human must consent to each run. Default none, which removes the tool.
    pub programs: BTreeMap<String, Program>,
    /// The whole environment of every process. Default `PATH=/usr/bin:/bin` and `LANG=C.UTF-8`.
    pub env: BTreeMap<String, String>,
    /// Folder in which processes start: each agent has a subfolder named like the agent and closed to others, which is
    /// made when first needed and never removed. Default `kairo-processes` in the system's temporary folder.
    pub work_dir: PathBuf,
    /// True if output is published on `kairo.live` as it appears; the end of it is kept in any case. Default true.
    pub live_output: bool,
    /// The files processes may open and the TCP ports they may use, enforced by the kernel (Landlock). Default as much
    /// as the kernel offers.
    pub landlock: Landlock,
    /// The mode of PID namespaces, in which each program has its own process ids, so that it neither sees nor signals
    /// processes it has not started, and none of its processes outlives its guard: `off`, `best_effort`, which uses
    /// them where the machine allows it, as `kairo status` shows, or `required`: where it does not, nothing runs.
    /// Default `best_effort`.
    pub pid_namespace: ConfinementMode,
    /// The mode of the system call filter (seccomp), which keeps programs from getting past what `landlock` restricts,
    /// by multipath TCP for example, and from reaching user namespaces, io_uring and keyrings: `off`, `best_effort`,
    /// which uses it where the kernel supports it, as `kairo status` shows, or `required`: where it does not, nothing
    /// runs. Programs of a 32-bit architecture are killed. Default `best_effort`.
    pub seccomp: ConfinementMode,
    /// The limits of every process.
    pub limits: ProcessLimits,
}

impl Default for SupervisorConfig {
    fn default() -> Self {
        let env = [("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8")];
        Self {
            programs: BTreeMap::new(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            work_dir: env::temp_dir().join("kairo-processes"),
            live_output: true,
            landlock: Landlock::default(),
            pid_namespace: ConfinementMode::default(),
            seccomp: ConfinementMode::default(),
            limits: ProcessLimits::default(),
        }
    }
}

impl SupervisorConfig {
    /// Returns the policy for a machine that can enforce this much.
    pub fn policy(&self, enforced: KernelConfinement) -> Policy {
        Policy {
            programs: self.programs.clone(),
            env: self.env.clone(),
            landlock: self.landlock.clone(),
            pids: Pids::for_mode(self.pid_namespace, enforced.pids),
            system_calls: SystemCalls::for_mode(self.seccomp, enforced.system_calls),
            own_network: enforced.network,
        }
    }
}

impl Validate for SupervisorConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut problems = self.policy(KernelConfinement::default()).problems();
        if !self.work_dir.is_absolute() {
            problems.push("work_dir: the path is not absolute; give the full path".to_owned());
        }
        problems.extend(self.limits.problems());
        problems.iter().map(|problem| parse_mistake(problem)).collect()
    }
}

/// Parses a mistake from `key: what is wrong; what to do`.
fn parse_mistake(problem: &str) -> Mistake {
    let (key, text) = problem.split_once(": ").unwrap_or(("", problem));
    let (text, advice) = text.split_once("; ").unwrap_or((text, "correct it, or leave it out for the default"));
    Mistake::new(key, text, advice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: serde_json::Value) -> Result<SupervisorConfig, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn the_default_is_valid_and_runs_nothing() {
        let config = SupervisorConfig::default();
        assert_eq!(config.mistakes(), []);
        assert!(config.programs.is_empty());
        assert_eq!(parse(json!({})).unwrap(), config);
    }

    #[test]
    fn what_was_read_comes_out_again() {
        let given = json!({
            "programs": {"echo": "/bin/echo", "lint": {"path": "/usr/bin/python3", "args": ["-I"], "consent": true}},
            "env": {},
            "work_dir": "/srv/work",
            "live_output": false,
            "landlock": {
                "mode": "required", "read": ["/usr"], "write": ["/srv/shared"], "connect": [443], "listen": [8080],
            },
            "pid_namespace": "required",
            "seccomp": "required",
            "limits": serde_json::to_value(ProcessLimits::default()).unwrap(),
        });
        assert_eq!(serde_json::to_value(parse(given.clone()).unwrap()).unwrap(), given);
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(parse(json!({"program": {}})).is_err());
        assert!(parse(json!({"limits": {"time": 1}})).is_err());
        assert!(parse(json!({"programs": {"a": {"path": "/a", "arg": []}}})).is_err());
    }

    #[test]
    fn every_mistake_is_named_at_once_by_its_key() {
        let config = parse(json!({
            "programs": {"a": "relative"},
            "work_dir": "relative",
            "limits": {"time_s": 0, "concurrent": 0},
        }));
        let mistakes = config.unwrap().mistakes();
        let keys: Vec<&str> = mistakes.iter().map(|mistake| mistake.key.as_str()).collect();
        assert_eq!(keys, ["programs.a", "work_dir", "limits.time_s", "limits.concurrent"]);
    }
}
