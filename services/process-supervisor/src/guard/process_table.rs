//! The processes of the machine, and the children of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use nix::unistd::Pid;

/// The children of every process that has some.
pub(crate) struct ProcessTable(BTreeMap<Pid, Vec<Pid>>);

impl ProcessTable {
    /// Reads the children that every process has now.
    ///
    /// `/proc/<pid>/task/<tid>/children` would be quicker, but not every kernel is built with it.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub(crate) fn scan() -> io::Result<Self> {
        let mut children: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
        for entry in fs::read_dir("/proc")? {
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            let Ok(pid) = name.parse().map(Pid::from_raw) else {
                continue;
            };
            // A process that ended since the directory was read has no file any more.
            let stat = fs::read(format!("/proc/{name}/stat")).unwrap_or_default();
            if let Some(parent) = parent_of(&String::from_utf8_lossy(&stat)) {
                children.entry(parent).or_default().push(pid);
            }
        }
        Ok(Self(children))
    }

    pub(crate) fn children(&self, parent: Pid) -> &[Pid] {
        self.0.get(&parent).map(Vec::as_slice).unwrap_or_default()
    }

    /// Every descendant of `root`, which is none of them.
    pub(crate) fn descendants(&self, root: Pid) -> BTreeSet<Pid> {
        let mut found = BTreeSet::new();
        let mut next = vec![root];
        while let Some(parent) = next.pop() {
            // An id that was given to another while the directory was read must not send us round in circles.
            next.extend(self.children(parent).iter().filter(|child| found.insert(**child)));
        }
        found
    }
}

/// The parent in a line of `/proc/<pid>/stat`, which reads `pid (name) state parent …`. The name
/// is the program's to choose and may hold spaces and parentheses.
///
/// The dead count too: a zombie thread-group leader may have living threads.
fn parent_of(stat: &str) -> Option<Pid> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let parent = fields.split(' ').nth(1)?;
    parent.parse().ok().map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_program_cannot_hide_by_its_name() {
        assert_eq!(parent_of("17 (sh) S 4 17 4 0 -1"), Some(Pid::from_raw(4)));
        assert_eq!(parent_of("17 (a) S 1 (b) R 4 17 4 0 -1"), Some(Pid::from_raw(4)));
        assert_eq!(parent_of(""), None);
    }

    #[test]
    fn descendants_are_found_and_others_are_not() {
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().expect("cat");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
        let descendants = || ProcessTable::scan().expect("/proc").descendants(Pid::this());

        let found = descendants();
        assert!(found.contains(&pid));
        assert!(!found.contains(&Pid::this()));
        assert!(!found.contains(&Pid::parent()));

        drop(child.stdin.take());
        child.wait().expect("cat ends at the end of its input");
        assert!(!descendants().contains(&pid));
    }
}
