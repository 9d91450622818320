//! The subjects between tool-runner and tool workers: core NATS, in JSON, on subjects that no stream takes.
//!
//! A worker is a process of somebody else's that carries out tools. It never writes to the log.

use uuid::Uuid;

use crate::ids::Name;

/// Subjects of the announcements of all workers.
pub const ANNOUNCEMENTS: &str = "kairo.worker.*.announce";
/// Subjects of what workers report of calls that they carry out.
pub const SAYINGS: &str = "kairo.worker.*.said.*";
/// Subjects of tool-runner: that it is there, what it thinks of announcements, calls, and what concerns a call.
pub const HELLOS: &str = "kairo.worker.*.hello";
pub const VERDICTS: &str = "kairo.worker.*.announced.*";
pub const CALLS: &str = "kairo.worker.*.call.*";
pub const ORDERS: &str = "kairo.worker.*.action.*";

/// Returns the subject on which a worker announces its tools.
pub fn announce_subject(worker: &Name) -> String {
    format!("kairo.worker.{worker}.announce")
}

/// The worker that announces itself on this subject.
pub fn announcing_worker(subject: &str) -> Option<Name> {
    let worker = subject.strip_prefix("kairo.worker.")?.strip_suffix(".announce")?;
    Name::parse(worker).ok()
}

/// Returns the subject on which all replicas of a worker are asked to announce themselves.
pub fn hello_subject(worker: &Name) -> String {
    format!("kairo.worker.{worker}.hello")
}

/// Returns the subject on which a replica of a worker is told the verdict on its announcement.
pub fn verdict_subject(worker: &Name, instance: &Name) -> String {
    format!("kairo.worker.{worker}.announced.{instance}")
}

/// Returns the subject of calls of a tool: the replicas that have it share a queue group.
pub fn call_subject(worker: &Name, tool: &str) -> String {
    format!("kairo.worker.{worker}.call.{tool}")
}

/// Returns the subject on which the replica that works on an action is told something about it.
pub fn order_subject(worker: &Name, action: Uuid) -> String {
    format!("kairo.worker.{worker}.action.{action}")
}

/// Returns the subject on which the replica that works on an action reports its progress and its end.
pub fn report_subject(worker: &Name, action: Uuid) -> String {
    format!("kairo.worker.{worker}.said.{action}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_known_by_its_subject() {
        let billing = Name::parse("billing").unwrap();
        assert_eq!(announcing_worker(&announce_subject(&billing)), Some(billing));
        for other in ["kairo.worker.announce", "kairo.worker.a.b.announce", "kairo.worker.A.announce", "a.announce"] {
            assert_eq!(announcing_worker(other), None, "{other}");
        }
    }

    #[test]
    fn no_stream_takes_what_is_said_to_workers() {
        let nouns = crate::subjects::TABLE.iter().map(|route| route.noun);
        assert!(!nouns.chain(["system", "timer"]).any(|noun| noun == "worker"));
    }
}
