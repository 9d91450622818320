//! Messages that are carried forward before the log is trimmed. Much is known by the last message of a subject, however old, and
//! whoever writes under a guard names that message's sequence: of a subject of which everything is gone the server knows nothing,
//! and every guard on it fails for ever. So what stands last is written once more, at the end of the log, under the guard of its
//! subject, with [`CARRIED`], which says where it stood first: there the archive has it.
//!
//! It says nothing new. Whoever reads the log in order takes it for a message that nobody can read
//! ([`Unreadable::Carried`](crate::record::Unreadable::Carried)): it is nobody's input, no row and no entry of a ledger is made of
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
pub enum Carrying {
    /// Its last message: what it says is in force, or it is what writers are guarded by.
    Last,
    /// All of them: whoever reads the subject goes by every one.
    All,
    /// Nothing: each message is dealt with once, and then stands for itself.
    Nothing,
}

/// Each subject of the log, with what is carried of it and why.
pub const SUBJECTS: [(Route, Carrying, &str); 34] = [
    (AGENT_DECISION, Carrying::Last, "guards decisions"),
    (AGENT_DEFINED, Carrying::Last, "an agent's profile; guards the next one"),
    (AGENT_IMPORTED, Carrying::Last, "guards the next part of a conversation"),
    (AGENT_FORGOTTEN, Carrying::All, "of whom an agent may know nothing any more"),
    (USER_SWITCHED, Carrying::Last, "with whom a user speaks; guards the next change"),
    (USER_FORGET, Carrying::Last, "whether an order stands in the log"),
    (USER_FORGOTTEN, Carrying::Last, "that a user was forgotten"),
    (EMAIL_RECEIVED, Carrying::All, "which mails of a mailbox are known; guards the next one"),
    (TOOL_INVOKE, Carrying::Last, "guards a ledger"),
    (TOOL_ORDER, Carrying::Last, "guards a ledger"),
    (TOOL_RESULT, Carrying::Last, "guards a ledger"),
    (PROCESS_SPAWNED, Carrying::Last, "guards a ledger"),
    (PROCESS_CANCELED, Carrying::Last, "guards a ledger"),
    (PROCESS_REPLY, Carrying::Last, "guards a ledger"),
    (PROCESS_EXITED, Carrying::Last, "guards a ledger"),
    (CATALOGUE, Carrying::Last, "the tools in force; guards the next catalogue"),
    (CAPABILITIES, Carrying::Last, "the programs in force; guards the next ones"),
    (BASIS, Carrying::All, "what decisions rest on, by its digest; guards the next one"),
    (EPOCH, Carrying::Last, "the epoch, and whether it is held; guards the next one"),
    (USER_MESSAGE, Carrying::Nothing, "handed on by the router"),
    (USER_UNDELIVERED, Carrying::Nothing, "told to whoever listens, and in the read model"),
    (USER_CHOICE, Carrying::Nothing, "handed on by the router"),
    (USER_APPROVAL, Carrying::Nothing, "handed on by the router"),
    (USER_COMMAND, Carrying::Nothing, "handed on by the router"),
    (AGENT_MESSAGE, Carrying::Nothing, "decided on"),
    (AGENT_CHOICE, Carrying::Nothing, "decided on"),
    (AGENT_APPROVAL, Carrying::Nothing, "decided on"),
    (AGENT_COMMAND, Carrying::Nothing, "decided on"),
    (AGENT_REQUEST, Carrying::Nothing, "decided on"),
    (AGENT_ANSWER, Carrying::Nothing, "decided on"),
    (TASK_DUE, Carrying::Nothing, "decided on"),
    (TASK_TRIGGERED, Carrying::Nothing, "decided on"),
    (TOOL_PROGRESS, Carrying::Nothing, "told by the result that ends it"),
    (PROCESS_PROGRESS, Carrying::Nothing, "told by the end of the process"),
];

/// Returns which messages of a subject are carried. Events of other systems are inputs like any other.
pub fn carrying(subject: &str) -> Carrying {
    let row = SUBJECTS.iter().find(|(route, ..)| route.is(subject));
    row.map_or(Carrying::Nothing, |(_, carrying, _)| *carrying)
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
        assert_eq!(carrying("kairo.agent.ann.decision"), Carrying::Last);
        assert_eq!(carrying("kairo.email.ann.received"), Carrying::All);
        assert_eq!(carrying("kairo.system.gateway.epoch"), Carrying::Last);
        for said in ["kairo.agent.ann.message", "kairo.system.shop.sold", "kairo.agent.ann.dreamt"] {
            assert_eq!(carrying(said), Carrying::Nothing, "{said}");
        }
    }
}
