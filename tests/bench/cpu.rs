//! CPU time and memory of processes, from /proc.

use std::{collections::BTreeMap, fs};

use crate::Outcome;

/// The kernel counts in hundredths of a second for programs, whatever it does inside (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// A line of /proc/PID/stat.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stat {
    parent: u32,
    /// Its own ticks and those of its children that were waited for, in user and kernel mode.
    ticks: u64,
}

/// CPU seconds each of these processes has used until now, with all its descendants, also those that have ended.
pub fn seconds<'n>(processes: &[(&'n str, u32)]) -> Outcome<BTreeMap<&'n str, f64>> {
    let all = all()?;
    let mut seconds = BTreeMap::new();
    for (name, root) in processes {
        *seconds.entry(*name).or_default() += tree(&all, *root) as f64 / TICKS_PER_SECOND;
    }
    Ok(seconds)
}

/// Bytes of memory that a process holds now.
pub fn resident(pid: u32) -> Outcome<u64> {
    of_status(pid, "VmRSS:")
}

/// The most bytes of memory that a process has held so far.
pub fn most_resident(pid: u32) -> Outcome<u64> {
    of_status(pid, "VmHWM:")
}

fn of_status(pid: u32, field: &str) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    bytes_in(&status, field).ok_or_else(|| format!("/proc/{pid}/status says nothing of memory").into())
}

/// The kernel says it in units of 1024 bytes, and calls them kB.
fn bytes_in(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn all() -> Outcome<BTreeMap<u32, Stat>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // One that ended meanwhile was waited for by its parent, whose line is read now or was before.
        let Ok(line) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        all.extend(parse(&line).map(|stat| (pid, stat)));
    }
    Ok(all)
}

fn tree(all: &BTreeMap<u32, Stat>, root: u32) -> u64 {
    let own = all.get(&root).map_or(0, |stat| stat.ticks);
    let children = all.iter().filter(|(_, stat)| stat.parent == root);
    own + children.map(|(pid, _)| tree(all, *pid)).sum::<u64>()
}

/// Fields 4 and 14 to 17, counted behind the program's name, which may itself hold spaces and parentheses.
fn parse(line: &str) -> Option<Stat> {
    let (_, fields) = line.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(Stat { parent: fields.get(1)?.parse().ok()?, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_past_any_program_name() {
        let line = "7 (a) b) S 3 7 7 0 -1 4194560 1 0 0 0 11 22 300 4000 20 0 1 0 5 0 0";
        assert_eq!(parse(line), Some(Stat { parent: 3, ticks: 4333 }));
        assert_eq!(parse("7 (a"), None);
    }

    #[test]
    fn memory_is_found_among_all_else() {
        assert_eq!(bytes_in("Name:\tx\nVmRSS:\t    1234 kB\nThreads:\t2\n", "VmRSS:"), Some(1234 * 1024));
        assert_eq!(bytes_in("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn a_process_is_charged_for_its_descendants() {
        let stat = |parent, ticks| Stat { parent, ticks };
        let all = BTreeMap::from([(1, stat(0, 1)), (2, stat(1, 10)), (3, stat(2, 100)), (4, stat(0, 1000))]);
        assert_eq!(tree(&all, 1), 111);
    }
}
