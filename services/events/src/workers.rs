//! Where tool-runner and tool workers speak to each other: core NATS, in JSON, on subjects that no stream takes.
//!
//! A worker is a process of somebody else's that carries out tools. It never writes to the log.

use uuid::Uuid;

use crate::ids::Name;

/// What workers publish, as a pattern for the announcements of all of them.
pub const ANNOUNCEMENTS: &str = "kairo.worker.*.announce";
/// What they say of calls that they carry out.
pub const SAYINGS: &str = "kairo.worker.*.said.*";
/// What tool-runner publishes: that it is there, what it thinks of announcements, calls, and what concerns a call.
pub const HELLOS: &str = "kairo.worker.*.hello";
pub const VERDICTS: &str = "kairo.worker.*.announced.*";
pub const CALLS: &str = "kairo.worker.*.call.*";
pub const ORDERS: &str = "kairo.worker.*.action.*";

/// Where a worker says what tools it has.
pub fn announce(worker: &Name) -> String {
    format!("kairo.worker.{worker}.announce")
}

/// The worker that announces itself on this subject.
pub fn announcing(subject: &str) -> Option<Name> {
    let worker = subject.strip_prefix("kairo.worker.")?.strip_suffix(".announce")?;
    Name::parse(worker).ok()
}

/// Where all replicas of a worker are asked to announce themselves.
pub fn hello(worker: &Name) -> String {
    format!("kairo.worker.{worker}.hello")
}

/// Where a replica of a worker is told what became of its announcement.
pub fn announced(worker: &Name, instance: &Name) -> String {
    format!("kairo.worker.{worker}.announced.{instance}")
}

/// Where a tool is called: the replicas that have it share a queue group.
pub fn call(worker: &Name, tool: &str) -> String {
    format!("kairo.worker.{worker}.call.{tool}")
}

/// Where whoever works on an action is told something about it.
pub fn action(worker: &Name, action: Uuid) -> String {
    format!("kairo.worker.{worker}.action.{action}")
}

/// Where whoever works on an action says how far it is and how it ended.
pub fn said(worker: &Name, action: Uuid) -> String {
    format!("kairo.worker.{worker}.said.{action}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_known_by_its_subject() {
        let billing = Name::parse("billing").unwrap();
        assert_eq!(announcing(&announce(&billing)), Some(billing));
        for other in ["kairo.worker.announce", "kairo.worker.a.b.announce", "kairo.worker.A.announce", "a.announce"] {
            assert_eq!(announcing(other), None, "{other}");
        }
    }

    #[test]
    fn no_stream_takes_what_is_said_to_workers() {
        let nouns = crate::subjects::TABLE.iter().map(|route| route.noun);
        assert!(!nouns.chain(["system", "timer"]).any(|noun| noun == "worker"));
    }
}
