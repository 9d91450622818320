//! The files and ports that a process may reach, within the rights of its user: enforced by Landlock, a part of the
//! kernel.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::protocol::Access;

/// Files that an ordinary program reads: its libraries, its settings, and public facts about the system. In `/proc` it
/// sees only itself, not even its children: the rest shows what others run.
const READ: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/sys",
];

/// The `[process_supervisor.landlock]` of the configuration.
///
/// A process may always read and write in its agent's folder and `/dev/null`, and execute its own program. Everything
/// else it may open only as `read` and `write` say. Where the kernel can, it may use TCP only as `connect` and `listen`
/// say (Linux 6.7), and signal no process that it has not started, its guard among them (Linux 6.12). UDP, and sockets
/// of other programs that are files it may open, are not restricted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Landlock {
    /// `off`; `best_effort`, as much as the kernel offers, of which `kairo status` says what is missing; or `required`:
    /// where the kernel cannot restrict files (before Linux 6.2, or with Landlock disabled) nothing runs. Default
    /// `best_effort`.
    pub mode: ConfinementMode,
    /// Absolute paths of files and folders that may be read and executed; those that do not exist are passed over.
    /// Default what an ordinary program needs: `/usr`, `/bin`, `/sbin`, `/lib`, `/lib32`, `/lib64`, `/etc`,
    /// `/dev/zero`, `/dev/random`, `/dev/urandom`, `/proc/self`, `/proc/cpuinfo`, `/proc/meminfo` and `/proc/sys`.
    pub read: Vec<PathBuf>,
    /// Absolute paths of files and folders that may be read, executed and written. Default none.
    pub write: Vec<PathBuf>,
    /// TCP ports, on any machine, that may be connected to. Default none.
    pub connect: Vec<u16>,
    /// TCP ports of this machine that may be listened on. Default none.
    pub listen: Vec<u16>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementMode {
    Off,
    #[default]
    BestEffort,
    Required,
}

impl Default for Landlock {
    fn default() -> Self {
        Self {
            mode: ConfinementMode::default(),
            read: READ.map(PathBuf::from).into(),
            write: Vec::new(),
            connect: Vec::new(),
            listen: Vec::new(),
        }
    }
}

impl Landlock {
    /// Returns the access rules for the guard; none if Landlock is off.
    pub(super) fn access(&self) -> Option<Access> {
        let required = match self.mode {
            ConfinementMode::Off => return None,
            ConfinementMode::BestEffort => false,
            ConfinementMode::Required => true,
        };
        Some(Access {
            required,
            read: self.read.clone(),
            write: self.write.clone(),
            connect: self.connect.clone(),
            listen: self.listen.clone(),
        })
    }

    /// Everything that is wrong with it, each named by its key.
    pub(super) fn problems(&self) -> Vec<String> {
        let relative = |key: &'static str, paths: &[PathBuf]| {
            let path = paths.iter().find(|path| !path.is_absolute())?;
            Some(format!("landlock.{key}: {path:?} is not absolute; give the full path"))
        };
        [relative("read", &self.read), relative("write", &self.write)].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: serde_json::Value) -> Landlock {
        serde_json::from_value(value).expect("readable")
    }

    #[test]
    fn off_restricts_nothing_and_the_others_say_how_much_it_matters() {
        let required = |mode: &str| parse(json!({"mode": mode})).access().map(|access| access.required);
        assert_eq!(parse(json!({})).access().map(|access| access.required), Some(false), "on by default");
        assert_eq!(required("off"), None);
        assert_eq!(required("best_effort"), Some(false));
        assert_eq!(required("required"), Some(true));
    }

    #[test]
    fn relative_paths_are_named_by_their_key() {
        assert_eq!(Landlock::default().problems(), Vec::<String>::new());
        let problems = parse(json!({"read": ["usr"], "write": ["/srv", "tmp"]})).problems();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("landlock.read: \"usr\" is not absolute"), "{problems:?}");
        assert!(problems[1].starts_with("landlock.write: \"tmp\" is not absolute"), "{problems:?}");
    }
}
