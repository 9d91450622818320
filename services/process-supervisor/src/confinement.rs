//! The restrictions that the kernel can enforce on programs, and a list for operators of those not in force.

use std::{
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope};

use crate::policy::ConfinementMode;

/// The first that also keeps a program from truncating what it may not write.
pub(crate) const FILES: ABI = ABI::V3;
/// The first that knows of networks.
pub(crate) const PORTS: ABI = ABI::V4;
/// The first that keeps a program from signalling others, such as its guard.
pub(crate) const SCOPES: ABI = ABI::V6;

/// The operations that the kernel can keep a program from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelConfinement {
    /// Opening files.
    pub files: bool,
    /// Using TCP ports.
    pub ports: bool,
    /// Signalling processes that it has not started.
    pub signals: bool,
    /// Seeing and signalling processes that it has not started, or outliving its guard: a PID namespace is allowed.
    pub pids: bool,
    /// Reaching the network at all: a namespace without one is allowed.
    pub network: bool,
    /// Making system calls that go past what the others see.
    pub system_calls: bool,
}

impl KernelConfinement {
    /// Asks the kernel, and has a guard, which is `program`, try.
    pub fn detect(program: &Path) -> Self {
        let ruleset = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let has = |asked: Result<Ruleset, RulesetError>| asked.and_then(Ruleset::create).is_ok();
        Self {
            files: has(ruleset().handle_access(AccessFs::from_all(FILES))),
            ports: has(ruleset().handle_access(AccessNet::from_all(PORTS))),
            signals: has(ruleset().scope(Scope::from_all(SCOPES))),
            pids: probe_succeeds(program, "probe"),
            network: probe_succeeds(program, "probe-network"),
            system_calls: probe_succeeds(program, "probe-seccomp"),
        }
    }

    /// Lists, in words for operators, what programs are not kept from, and why.
    pub fn shortcomings(
        self,
        landlock: ConfinementMode,
        pid_namespace: ConfinementMode,
        seccomp: ConfinementMode,
    ) -> Vec<&'static str> {
        let pids = match (pid_namespace, self.pids) {
            (ConfinementMode::Off, _) => Some(
                "programs see the processes of the machine, and may outlive a guard that one of them kills: \
                 process_supervisor.pid_namespace is off",
            ),
            (ConfinementMode::Required, false) => Some(
                "no program is run: process_supervisor.pid_namespace is required, and this machine does not allow a \
                 PID namespace with a /proc of its own",
            ),
            (ConfinementMode::BestEffort, false) => Some(
                "programs see the processes of the machine, and may outlive a guard that one of them kills: this \
                 machine does not allow a PID namespace with a /proc of its own",
            ),
            (ConfinementMode::BestEffort | ConfinementMode::Required, true) => None,
        };
        let system_calls = match (seccomp, self.system_calls) {
            (ConfinementMode::Off, _) => Some(
                "programs may get past what Landlock restricts of the network, and use user namespaces, io_uring and \
                 keyrings: process_supervisor.seccomp is off",
            ),
            (ConfinementMode::Required, false) => Some(
                "no program is run: process_supervisor.seccomp is required, and this machine does not filter system calls",
            ),
            (ConfinementMode::BestEffort, false) => Some(
                "programs may get past what Landlock restricts of the network, and use user namespaces, io_uring and \
                 keyrings: this machine does not filter system calls (seccomp)",
            ),
            (ConfinementMode::BestEffort | ConfinementMode::Required, true) => None,
        };
        let is_filtered = seccomp != ConfinementMode::Off && self.system_calls;
        let always = "programs have no cgroup of their own: limits count for each process";
        self.landlock_shortcomings(landlock, is_filtered)
            .into_iter()
            .chain(pids)
            .chain(system_calls)
            .chain([always])
            .collect()
    }

    fn landlock_shortcomings(self, mode: ConfinementMode, is_filtered: bool) -> Vec<&'static str> {
        let ports = match is_filtered {
            true => {
                "programs that are given TCP ports may use any: the Landlock of this kernel does not restrict them (Linux \
                 6.7)"
            }
            false => "programs may use the network: the Landlock of this kernel does not restrict it (Linux 6.7)",
        };
        match (mode, self.files) {
            (ConfinementMode::Off, _) => vec![
                "programs may open whatever files their user may and use the network: \
                 process_supervisor.landlock.mode is off",
            ],
            (ConfinementMode::Required, false) => vec![
                "no program is run: process_supervisor.landlock.mode is required, and this kernel has no Landlock that \
                 restricts files (Linux 6.2)",
            ],
            (ConfinementMode::BestEffort | ConfinementMode::Required, files) => [
                (files, "programs may open whatever files their user may: this kernel has no Landlock (Linux 6.2)"),
                (self.ports, ports),
                (
                    self.signals,
                    "programs may signal other processes of their user, and reach abstract Unix sockets unless they have a \
                     network of their own: the Landlock of this kernel does not restrict it (Linux 6.12)",
                ),
            ]
            .into_iter()
            .filter_map(|(enforced, shortcoming)| (!enforced).then_some(shortcoming))
            .collect(),
        }
    }
}

/// Returns true if the guard succeeds at this part when it tries.
fn probe_succeeds(guard: &Path, part: &str) -> bool {
    let mut probe = Command::new(guard);
    probe.arg0(env!("CARGO_PKG_NAME")).arg(part).env_clear();
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_enforced_is_said() {
        let all = KernelConfinement {
            files: true,
            ports: true,
            signals: true,
            pids: true,
            network: true,
            system_calls: true,
        };
        let says = |enforced: KernelConfinement, mode, what: &str| {
            let shortcomings = enforced.shortcomings(mode, mode, mode);
            shortcomings.iter().any(|shortcoming| shortcoming.contains(what))
        };
        assert_eq!(
            all.shortcomings(ConfinementMode::BestEffort, ConfinementMode::BestEffort, ConfinementMode::BestEffort)
                .len(),
            1,
            "cgroups are never used"
        );
        assert!(says(all, ConfinementMode::Off, "landlock.mode is off"));
        assert!(says(all, ConfinementMode::Off, "pid_namespace is off"));
        assert!(says(all, ConfinementMode::Off, "seccomp is off"));
        let without_ports = KernelConfinement { ports: false, ..all };
        assert!(says(without_ports, ConfinementMode::BestEffort, "given TCP ports may use any"));
        assert!(says(
            KernelConfinement { system_calls: false, ..without_ports },
            ConfinementMode::BestEffort,
            "may use the network: the"
        ));
        assert!(says(
            KernelConfinement { system_calls: false, ..all },
            ConfinementMode::BestEffort,
            "does not filter system calls"
        ));
        assert!(says(KernelConfinement { system_calls: false, ..all }, ConfinementMode::Required, "no program is run"));
        assert!(says(KernelConfinement { signals: false, ..all }, ConfinementMode::Required, "Linux 6.12"));
        assert!(says(
            KernelConfinement { pids: false, ..all },
            ConfinementMode::BestEffort,
            "does not allow a PID namespace"
        ));
        assert!(says(KernelConfinement { pids: false, ..all }, ConfinementMode::Required, "no program is run"));
        let nothing = KernelConfinement::default();
        assert_eq!(
            nothing
                .shortcomings(ConfinementMode::BestEffort, ConfinementMode::BestEffort, ConfinementMode::BestEffort)
                .len(),
            6
        );
        assert!(says(nothing, ConfinementMode::Required, "no program is run"));
    }
}
