//! Messages that are carried forward before the log is trimmed. Much is known by the last message of a subject, however old, and
//! whoever writes under a guard names that message's sequence: of a subject of which everything is gone the server knows nothing,
//! and every guard on it fails for ever. So what stands last is written once more, at the end of the log, under the guard of its
//! subject, with [`CARRIED`], which says where it stood first: there the archive has it.
//!
//! It says nothing new. Whoever reads the log in order takes it for a message that nobody can read
//! ([`UnreadableRecord::Carried`](crate::record::UnreadableRecord::Carried)): it is nobody's input, no row and no entry of a ledger is made of
//! it, but guards and digests count it. Whoever asks what a subject says last is given it as it stood.

use crate::subjects::{
    AGENT_ANSWER, AGENT_APPROVAL, AGENT_CHOICE, AGENT_COMMAND, AGENT_DECISION, AGENT_DEFINED, AGENT_FORGOTTEN,
    AGENT_IMPORTED, AGENT_MESSAGE, AGENT_REQUEST, BASIS, CAPABILITIES, CATALOGUE, EMAIL_RECEIVED, EPOCH,
    PROCESS_CANCELED, PROCESS_EXITED, PROCESS_PROGRESS, PROCESS_REPLY, PROCESS_SPAWNED, Route, TASK_DUE,
    TASK_TRIGGERED, TOOL_INVOKE, TOOL_ORDER, TOOL_PROGRESS, TOOL_RESULT, USER_APPROVAL, USER_CHOICE, USER_COMMAND,
    USER_FORGET, USER_FORGOTTEN, USER_MESSAGE, USER_SWITCHED, USER_UNDELIVERED,
};

/// The header that says where in the log a message stood first that was carried forward.
pub const CARRIED: &str = "ce-carried";

/// The messages of a subject that are carried forward when the log is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarryForward {
    /// Its last message: what it says is in force, or it is what writers are guarded by.
    Last,
    /// All of them: whoever reads the subject goes by every one.
    All,
    /// Nothing: each message is dealt with once, and then stands for itself.
    Nothing,
}

/// Each subject of the log, with what is carried of it and why.
pub const SUBJECTS: [(Route, CarryForward, &str); 34] = [
    (AGENT_DECISION, CarryForward::Last, "guards decisions"),
    (AGENT_DEFINED, CarryForward::Last, "an agent's profile; guards the next one"),
    (AGENT_IMPORTED, CarryForward::Last, "guards the next part of a conversation"),
    (AGENT_FORGOTTEN, CarryForward::All, "of whom an agent may know nothing any more"),
    (USER_SWITCHED, CarryForward::Last, "with whom a user speaks; guards the next change"),
    (USER_FORGET, CarryForward::Last, "whether an order stands in the log"),
    (USER_FORGOTTEN, CarryForward::Last, "that a user was forgotten"),
    (EMAIL_RECEIVED, CarryForward::All, "which mails of a mailbox are known; guards the next one"),
    (TOOL_INVOKE, CarryForward::Last, "guards a ledger"),
    (TOOL_ORDER, CarryForward::Last, "guards a ledger"),
    (TOOL_RESULT, CarryForward::Last, "guards a ledger"),
    (PROCESS_SPAWNED, CarryForward::Last, "guards a ledger"),
    (PROCESS_CANCELED, CarryForward::Last, "guards a ledger"),
    (PROCESS_REPLY, CarryForward::Last, "guards a ledger"),
    (PROCESS_EXITED, CarryForward::Last, "guards a ledger"),
    (CATALOGUE, CarryForward::Last, "the tools in force; guards the next catalogue"),
    (CAPABILITIES, CarryForward::Last, "the programs in force; guards the next ones"),
    (BASIS, CarryForward::All, "what decisions rest on, by its digest; guards the next one"),
    (EPOCH, CarryForward::Last, "the epoch, and whether it is held; guards the next one"),
    (USER_MESSAGE, CarryForward::Nothing, "handed on by the router"),
    (USER_UNDELIVERED, CarryForward::Nothing, "told to whoever listens, and in the read model"),
    (USER_CHOICE, CarryForward::Nothing, "handed on by the router"),
    (USER_APPROVAL, CarryForward::Nothing, "handed on by the router"),
    (USER_COMMAND, CarryForward::Nothing, "handed on by the router"),
    (AGENT_MESSAGE, CarryForward::Nothing, "decided on"),
    (AGENT_CHOICE, CarryForward::Nothing, "decided on"),
    (AGENT_APPROVAL, CarryForward::Nothing, "decided on"),
    (AGENT_COMMAND, CarryForward::Nothing, "decided on"),
    (AGENT_REQUEST, CarryForward::Nothing, "decided on"),
    (AGENT_ANSWER, CarryForward::Nothing, "decided on"),
    (TASK_DUE, CarryForward::Nothing, "decided on"),
    (TASK_TRIGGERED, CarryForward::Nothing, "decided on"),
    (TOOL_PROGRESS, CarryForward::Nothing, "told by the result that ends it"),
    (PROCESS_PROGRESS, CarryForward::Nothing, "told by the end of the process"),
];

/// Returns which messages of a subject are carried. Events of other systems are inputs like any other.
pub fn policy_for(subject: &str) -> CarryForward {
    let row = SUBJECTS.iter().find(|(route, ..)| route.matches(subject));
    row.map_or(CarryForward::Nothing, |(_, carrying, _)| *carrying)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::{Store, TABLE};

    #[test]
    fn of_every_subject_of_the_log_it_is_said_what_is_carried() {
        let logged = TABLE.iter().filter(|route| route.store == Store::Events);
        let mut missing: Vec<String> = logged.map(Route::filter).collect();
        missing.retain(|filter| !SUBJECTS.iter().any(|(route, ..)| route.filter() == *filter));
        assert!(missing.is_empty(), "not in the list: {missing:?}");
        assert_eq!(SUBJECTS.len(), TABLE.iter().filter(|route| route.store == Store::Events).count());
    }

    #[test]
    fn what_is_guarded_is_carried_and_what_is_merely_said_is_not() {
        assert_eq!(policy_for("kairo.agent.ann.decision"), CarryForward::Last);
        assert_eq!(policy_for("kairo.email.ann.received"), CarryForward::All);
        assert_eq!(policy_for("kairo.system.gateway.epoch"), CarryForward::Last);
        for said in ["kairo.agent.ann.message", "kairo.system.shop.sold", "kairo.agent.ann.dreamt"] {
            assert_eq!(policy_for(said), CarryForward::Nothing, "{said}");
        }
    }
}
