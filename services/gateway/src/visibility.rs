//! Visibility of events to keys that are limited to a user. Pure.
//!
//! An event concerns a user if it names them, or if they began its turn or own its thread and neither belongs to
//! another user. An event that cannot be attributed to a user is visible to none.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use serde_json::Value;
use uuid::Uuid;

/// The least number of turns, and of threads, that are remembered; at most twice as many are.
const REMEMBERED: usize = 4_096;

/// A thread, by its agent and its id.
pub type ThreadKey = (String, String);

/// The visibility of an event or live piece to one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// It concerns this user.
    Theirs,
    NotTheirs,
    /// The owner of its turn or thread has to be looked up first.
    Unknown,
}

/// The turn and thread of an event, which determine its visibility if the event names no user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventOrigin {
    pub turn: Uuid,
    pub thread: Option<ThreadKey>,
}

impl EventOrigin {
    pub fn of_event(event: &EventJson) -> Self {
        Self::new(event.correlation_id, subject_owner(&event.subject), event.thread_id.as_deref())
    }

    pub fn new(turn: Uuid, agent: &str, thread: Option<&str>) -> Self {
        Self { turn, thread: thread.map(|thread| (agent.to_owned(), thread.to_owned())) }
    }
}

/// The known owners of turns and threads; a known turn or thread may have none.
#[derive(Debug, Default)]
pub struct KnownOwners {
    turns: GenerationalMap<Uuid, Option<String>>,
    threads: GenerationalMap<ThreadKey, Option<String>>,
}

impl KnownOwners {
    /// Records the owner of a turn or thread from the event that begins it.
    pub fn learn_from(&mut self, event: &EventJson) {
        let Some(user) = named_user(event) else { return };
        let begins = matches!(subject_noun(&event.subject), "user") || is_delivered_input(&event.subject);
        if begins {
            self.turns.insert(event.correlation_id, Some(user.to_owned()));
        } else if event.type_name == v1::ThreadCreated::TYPE
            && let Some(thread) = EventOrigin::of_event(event).thread
        {
            self.threads.insert(thread, Some(user.to_owned()));
        }
    }

    /// Records the result of a complete lookup: an owner that was not found does not exist.
    pub fn record_lookup(&mut self, at: &EventOrigin, turn: Option<String>, thread: Option<String>) {
        self.turns.insert(at.turn, turn);
        if let Some(key) = &at.thread {
            self.threads.insert(key.clone(), thread);
        }
    }

    /// Records the result of a lookup that may be incomplete: an owner that was not found stays unknown.
    pub fn record_partial_lookup(&mut self, at: &EventOrigin, turn: Option<Option<String>>, thread: Option<String>) {
        if let Some(turn) = turn {
            self.turns.insert(at.turn, turn);
        }
        if let Some((key, thread)) = at.thread.clone().zip(thread) {
            self.threads.insert(key, Some(thread));
        }
    }

    pub fn knows_turn(&self, at: &EventOrigin) -> bool {
        self.turns.get(&at.turn).is_some()
    }

    /// Returns the visibility to this user of an event in this turn and thread.
    pub fn visibility_of(&self, at: &EventOrigin, user: &str) -> Visibility {
        let turn = self.turns.get(&at.turn);
        let thread = at.thread.as_ref().map(|thread| self.threads.get(thread));
        let is_anothers = |owner: &Option<String>| owner.as_deref().is_some_and(|owner| owner != user);
        // One other owner is enough to rule the user out.
        if turn.is_some_and(is_anothers) || thread.flatten().is_some_and(is_anothers) {
            return Visibility::NotTheirs;
        }
        let (Some(turn), Some(thread)) = (turn, thread.map_or(Some(None), |thread| thread.map(Option::as_deref)))
        else {
            return Visibility::Unknown;
        };
        match belongs_to_user(user, None, turn.as_deref(), thread) {
            true => Visibility::Theirs,
            false => Visibility::NotTheirs,
        }
    }
}

/// Returns the visibility of an event to this user.
pub fn event_visibility(event: &EventJson, user: &str, known: &KnownOwners) -> Visibility {
    match (subject_noun(&event.subject), named_user(event)) {
        (_, Some(named)) if named == user => Visibility::Theirs,
        (_, Some(_)) => Visibility::NotTheirs,
        ("agent" | "task" | "email" | "tool" | "process", None) => {
            known.visibility_of(&EventOrigin::of_event(event), user)
        }
        // Of services, of other systems, and whatever comes to be.
        _ => Visibility::NotTheirs,
    }
}

/// Returns true if an event concerns this user, given the user it names and the owners of its turn and thread.
pub fn belongs_to_user(user: &str, named: Option<&str>, turn: Option<&str>, thread: Option<&str>) -> bool {
    match (named, turn, thread) {
        (Some(named), ..) => named == user,
        (None, None, None) => false,
        (None, turn, thread) => turn.is_none_or(|turn| turn == user) && thread.is_none_or(|thread| thread == user),
    }
}

/// Returns the user that an event comes from or is addressed to, if it names one.
fn named_user(event: &EventJson) -> Option<&str> {
    match subject_noun(&event.subject) {
        "user" => Some(subject_owner(&event.subject)),
        "agent" => {
            let text = |from: &'_ Value| from.get("user").and_then(Value::as_str).is_some_and(|user| !user.is_empty());
            let task = event.payload.get("task").filter(|_| event.type_name == v1::TaskScheduled::TYPE);
            let from = [Some(&event.payload), task].into_iter().flatten().find(|from| text(from))?;
            from.get("user").and_then(Value::as_str)
        }
        _ => None,
    }
}

/// Returns true for the subject of a user's input as delivered to an agent.
fn is_delivered_input(subject: &str) -> bool {
    let verb = subject.rsplit('.').next().unwrap_or_default();
    subject_noun(subject) == "agent" && matches!(verb, "message" | "choice" | "approval" | "command")
}

fn subject_noun(subject: &str) -> &str {
    subject.split('.').nth(1).unwrap_or_default()
}

/// Returns the third token of a subject: an agent, a user or a service.
pub fn subject_owner(subject: &str) -> &str {
    subject.split('.').nth(2).unwrap_or_default()
}

/// Returns the agent that a subject belongs to; none for subjects of users and services.
pub fn subject_agent(subject: &str) -> Option<&str> {
    matches!(subject_noun(subject), "agent" | "task" | "email" | "tool" | "process").then(|| subject_owner(subject))
}

/// Returns the user who began a turn, from the subject of its first event.
pub fn turn_user(subject: &str) -> Option<&str> {
    (subject_noun(subject) == "user").then(|| subject_owner(subject))
}

/// A bounded map that keeps the newest entries and forgets the rest.
#[derive(Debug)]
pub struct GenerationalMap<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K, V> Default for GenerationalMap<K, V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<K: Eq + Hash> GenerationalMap<K, ()> {
    /// Inserts the key and returns true if it was not present.
    pub fn insert_new(&mut self, key: K) -> bool {
        let new = self.get(&key).is_none();
        self.insert(key, ());
        new
    }
}

impl<K: Eq + Hash, V> GenerationalMap<K, V> {
    pub fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= REMEMBERED && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let young = self.young.remove(key);
        let old = self.old.remove(key);
        young.or(old)
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }
}

/// Returns the turns and threads of those events whose visibility is unknown, each once.
pub fn unknown_origins<'a>(
    events: impl Iterator<Item = &'a EventJson>,
    user: &str,
    known: &KnownOwners,
) -> Vec<EventOrigin> {
    let unknown = events.filter(|event| event_visibility(event, user, known) == Visibility::Unknown);
    unknown.map(EventOrigin::of_event).collect::<HashSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TURN: u128 = 7;

    fn event(subject: &str, type_name: &str, thread: Option<&str>, payload: Value) -> EventJson {
        serde_json::from_value(json!({
            "event_id": Uuid::from_u128(1), "ts": "2026-11-21T10:00:00Z", "source": "user", "modality": "text",
            "payload": payload, "meta": { "tags": [] }, "type": type_name, "sequence": 7, "position": 0,
            "subject": subject, "correlation_id": Uuid::from_u128(TURN), "causation_id": null, "thread_id": thread,
        }))
        .unwrap()
    }

    fn known_owners(turn: Option<&str>, thread: Option<&str>) -> KnownOwners {
        let mut known = KnownOwners::default();
        let at = EventOrigin::new(Uuid::from_u128(TURN), "bob", Some("t"));
        known.record_lookup(&at, turn.map(str::to_owned), thread.map(str::to_owned));
        known
    }

    fn result() -> EventJson {
        // What a tool found is not what the event says of itself.
        let payload = json!({ "user": "ann", "result": { "user": "ann" } });
        event("kairo.tool.bob.result", v1::ToolResult::TYPE, Some("t"), payload)
    }

    #[test]
    fn whoever_is_named_is_concerned_and_nobody_else() {
        // Even in a turn and a thread of somebody else.
        let known = known_owners(Some("joe"), Some("joe"));
        let say = json!({ "type": "say", "user": "ann", "text": "hello" });
        for event in [
            event("kairo.user.ann.message", v1::UserMessage::TYPE, None, json!({ "user": "joe" })),
            event("kairo.agent.bob.message", v1::AgentMessage::TYPE, Some("t"), json!({ "user": "ann" })),
            event("kairo.agent.bob.decision", v1::AgentAction::TYPE, Some("t"), say),
            event("kairo.agent.bob.decision", v1::TaskScheduled::TYPE, Some("t"), json!({ "task": { "user": "ann" } })),
        ] {
            assert_eq!(event_visibility(&event, "ann", &known), Visibility::Theirs, "{event:?}");
            assert_eq!(event_visibility(&event, "joe", &known), Visibility::NotTheirs, "{event:?}");
        }
    }

    #[test]
    fn what_names_nobody_concerns_whose_turn_and_thread_it_is() {
        let cases = [
            (Some("ann"), Some("ann"), Visibility::Theirs),
            (Some("ann"), None, Visibility::Theirs),
            (None, Some("ann"), Visibility::Theirs),
            (None, None, Visibility::NotTheirs),
            // Such as a hook of one user that another's words set off.
            (Some("joe"), Some("ann"), Visibility::NotTheirs),
            (Some("ann"), Some("joe"), Visibility::NotTheirs),
        ];
        for (turn, thread, expected) in cases {
            assert_eq!(
                event_visibility(&result(), "ann", &known_owners(turn, thread)),
                expected,
                "{turn:?} {thread:?}"
            );
        }
        assert_eq!(event_visibility(&result(), "ann", &KnownOwners::default()), Visibility::Unknown);
    }

    #[test]
    fn what_was_found_of_a_turn_alone_or_a_thread_alone_says_only_whose_it_is_not() {
        let at = EventOrigin::of_event(&result());
        let found = |turn: Option<Option<&str>>, thread: Option<&str>| {
            let mut known = KnownOwners::default();
            known.record_partial_lookup(&at, turn.map(|turn| turn.map(str::to_owned)), thread.map(str::to_owned));
            known.visibility_of(&at, "ann")
        };
        assert_eq!(found(Some(Some("joe")), None), Visibility::NotTheirs);
        assert_eq!(found(None, Some("joe")), Visibility::NotTheirs);
        assert_eq!(found(Some(Some("ann")), None), Visibility::Unknown);
        // The turn may be one that another began, of which nobody heard yet.
        assert_eq!(found(None, Some("ann")), Visibility::Unknown);
        assert_eq!(found(Some(None), Some("ann")), Visibility::Theirs);
    }

    #[test]
    fn what_concerns_no_user_is_not_shown() {
        let known = known_owners(Some("ann"), Some("ann"));
        for subject in ["kairo.system.tool-runner.catalogue", "kairo.dlq.router.letter", "kairo.new.ann.thing", "x", ""]
        {
            let event = event(subject, "x", None, json!({ "user": "ann" }));
            assert_eq!(event_visibility(&event, "ann", &known), Visibility::NotTheirs, "{subject}");
        }
        let defined = event("kairo.agent.bob.defined", v1::AgentDefined::TYPE, None, json!({ "profile": {} }));
        let mut nobodys = KnownOwners::default();
        nobodys.record_lookup(&EventOrigin::of_event(&defined), None, None);
        assert_eq!(event_visibility(&defined, "ann", &nobodys), Visibility::NotTheirs);
    }

    #[test]
    fn turns_and_threads_are_learnt_as_they_begin() {
        let mut known = KnownOwners::default();
        let message = event("kairo.agent.bob.message", v1::AgentMessage::TYPE, None, json!({ "user": "ann" }));
        known.learn_from(&message);
        assert_eq!(unknown_origins([&message, &result(), &result()].into_iter(), "ann", &known).len(), 1);
        let created = event("kairo.agent.bob.decision", v1::ThreadCreated::TYPE, Some("t"), json!({ "user": "ann" }));
        known.learn_from(&created);
        assert_eq!(event_visibility(&result(), "ann", &known), Visibility::Theirs);
        // What an agent says in somebody's turn says nothing of whose turn that is.
        let mut known = KnownOwners::default();
        known.learn_from(&event("kairo.agent.bob.decision", v1::AgentAction::TYPE, None, json!({ "user": "joe" })));
        assert_eq!(event_visibility(&result(), "joe", &known), Visibility::Unknown);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut remembered = GenerationalMap::default();
        for key in 0..10 * REMEMBERED {
            remembered.insert(key, key);
        }
        assert!(remembered.young.len() + remembered.old.len() <= 2 * REMEMBERED);
        assert_eq!((remembered.get(&(10 * REMEMBERED - 1)), remembered.get(&0)), (Some(&(10 * REMEMBERED - 1)), None));
    }
}
