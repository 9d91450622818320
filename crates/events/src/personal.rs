//! Content of users that is sealed in the log, so that it can be read only as long as there is their data key: whoever is
//! forgotten loses it. What else a message says (who, when, which event follows from which) stays readable.
//!
//! Each user's part of a message is sealed by itself. The protos say which values are personal
//! ([`kairo_proto::personal`]), who publishes a message says whose they are ([`ContentOwners`]).

use std::collections::{BTreeMap, BTreeSet};

use kairo_proto::{
    About, Body, ContentType, Unreadable as UnreadableBody,
    about::{Agent, Process, Tool, User},
    personal::{Personal, Value},
    v1::{PersonalValue, PersonalValues, SealedBody, SealedContent},
};
use prost::Message;
use uuid::Uuid;

use crate::{
    ids,
    sealing::{self, SealingError, SealingKey},
};

/// Prefix of an agent's name as an owner: what several users have in common, such as an answer of a model that was
/// shown content of each, is the agent's own. No user has such a name.
const AGENT: &str = "agent:";

/// The owners of the personal values in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContentOwners {
    /// They are nobody's, such as what other systems say, and stay readable.
    #[default]
    Nobody,
    /// All are this user's.
    One(String),
    /// Of a message of several parts, who has each ([`owned_parts`]): an event or a completion of a decision, an action of an invoke.
    PerPart(Vec<Option<String>>),
}

/// A data key of a user, and which of theirs it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataKey {
    pub generation: u32,
    pub key: SealingKey,
}

/// The state of a data key with which something was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKeyState {
    Key(SealingKey),
    /// It was destroyed: its user is forgotten.
    Destroyed,
}

/// The reason that sealed content cannot be opened.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum NotOpened {
    /// The message itself cannot be read.
    #[error(transparent)]
    Body(#[from] UnreadableBody),
    /// Another key, or bytes that were changed.
    #[error("what is sealed of the user {user} with their data key {generation}: {why}")]
    Content { user: String, generation: u32, why: SealingError },
}

/// A message that was opened, as far as there are keys.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenedMessage {
    pub body: Body,
    /// The users whose content is no longer there.
    pub forgotten: BTreeSet<String>,
}

impl ContentOwners {
    /// Returns the owner of a message that names its owner itself. For any other message, its publisher knows it.
    pub fn from_body(body: &Body) -> Self {
        let user = match body.about() {
            About::User(User::Message(it)) => &it.user,
            About::User(User::Undelivered(it)) => &it.user,
            About::User(User::Approval(it)) => &it.user,
            About::User(User::Command(it)) if it.task.is_some() => &it.user,
            About::Agent(Agent::Message(it)) => &it.user,
            About::Agent(Agent::Imported(it)) => &it.user,
            About::Agent(Agent::Approval(it)) => &it.user,
            About::Agent(Agent::Command(it)) if it.task.is_some() => &it.user,
            About::Agent(Agent::Request(it)) => &it.user,
            About::Process(Process::Spawned(it)) => return Self::of_user(it.user.as_deref().unwrap_or_default()),
            About::Process(Process::Exited(it)) => return Self::of_user(it.user.as_deref().unwrap_or_default()),
            About::Tool(Tool::Order(it)) => return Self::of_user(it.user.as_deref().unwrap_or_default()),
            About::Tool(Tool::Invoke(it)) => {
                let user = |user: &Option<String>| user.clone().filter(|user| !user.is_empty());
                return Self::PerPart(it.actions.iter().map(|action| user(&action.user)).collect());
            }
            About::User(User::Choice(_) | User::Command(_) | User::Switched(_)) => return Self::Nobody,
            About::User(User::Forget(_) | User::Forgotten(_)) => return Self::Nobody,
            About::Agent(Agent::Defined(_) | Agent::Choice(_) | Agent::Command(_)) => return Self::Nobody,
            About::Agent(Agent::Answer(_) | Agent::Forgotten(_)) => return Self::Nobody,
            About::Process(Process::Progress(_) | Process::Canceled(_) | Process::Reply(_)) => return Self::Nobody,
            About::Tool(Tool::Progress(_) | Tool::Result(_)) => return Self::Nobody,
            About::Decision(_) | About::Decided(_) | About::Outside(_) => return Self::Nobody,
            About::System(_) | About::Live(_) => return Self::Nobody,
        };
        Self::of_user(user)
    }

    /// Returns the owner of what several of an agent's users have in common.
    pub fn agent_owner(agent: &str) -> String {
        format!("{AGENT}{agent}")
    }

    /// The agent whose own it is, where it is that and no user's.
    pub fn agent_of(owner: &str) -> Option<&str> {
        owner.strip_prefix(AGENT)
    }

    /// This user's; nobody's where there is no name.
    pub fn of_user(user: &str) -> Self {
        if user.is_empty() { Self::Nobody } else { Self::One(user.to_owned()) }
    }

    /// Everybody who has anything in it.
    pub fn all_owners(&self) -> BTreeSet<&str> {
        match self {
            Self::Nobody => BTreeSet::new(),
            Self::One(user) => [user.as_str()].into(),
            Self::PerPart(users) => users.iter().flatten().map(String::as_str).collect(),
        }
    }

    /// As a header says it: a name for each part, with commas between, or one for all.
    pub fn to_header(&self) -> String {
        match self {
            Self::Nobody => String::new(),
            Self::One(user) => user.clone(),
            Self::PerPart(users) => {
                users.iter().map(|user| user.as_deref().unwrap_or_default()).collect::<Vec<_>>().join(",")
            }
        }
    }

    /// Reads the value of a header.
    pub fn from_header(text: &str) -> Self {
        let user = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        match text.contains(',') {
            true => Self::PerPart(text.split(',').map(user).collect()),
            false => Self::of_user(text),
        }
    }

    /// Returns the owner of a part; none if it is nobody's.
    pub fn owner_of_part(&self, at: usize) -> Option<&str> {
        match self {
            Self::Nobody => None,
            Self::One(user) => Some(user),
            Self::PerPart(users) => users.get(at).and_then(Option::as_deref),
        }
    }
}

/// The parts of a message that may be of several users, in the order of its values.
pub fn owned_parts(body: &mut Body) -> Vec<&mut dyn Personal> {
    if !matches!(body, Body::AgentDecision(_) | Body::ToolInvoke(_)) {
        return vec![body];
    }
    let mut parts: Vec<&mut dyn Personal> = Vec::new();
    if let Body::AgentDecision(decision) = body {
        parts.extend(decision.events.iter_mut().map(|event| event as &mut dyn Personal));
        parts.extend(decision.completions.iter_mut().map(|answer| answer as &mut dyn Personal));
    } else if let Body::ToolInvoke(invoke) = body {
        parts.extend(invoke.actions.iter_mut().map(|action| action as &mut dyn Personal));
    }
    parts
}

/// The message with this id as it is stored, with the parts of users sealed who have a data key; none where there is nothing to
/// seal.
///
/// # Errors
/// For content that is too long, see [`sealing`].
pub fn seal_body(
    body: &Body,
    id: Uuid,
    whose: &ContentOwners,
    keys: &BTreeMap<String, DataKey>,
) -> Result<Option<Vec<u8>>, SealingError> {
    let mut open = body.clone();
    let mut taken: BTreeMap<&str, Vec<PersonalValue>> = BTreeMap::new();
    let mut at = 0;
    for (number, part) in owned_parts(&mut open).into_iter().enumerate() {
        let user = whose.owner_of_part(number).filter(|user| keys.contains_key(*user));
        part.personal(&mut |value| {
            if let Some(user) = user
                && let Some(value) = take_value(value)
            {
                taken.entry(user).or_default().push(PersonalValue { at, value });
            }
            at += 1;
        });
    }
    if taken.is_empty() {
        return Ok(None);
    }
    let sealed = taken.into_iter().filter_map(|(user, values)| Some((user, keys.get(user)?, values)));
    let sealed = sealed.map(|(user, DataKey { generation, key }, values)| {
        let values = PersonalValues { values }.encode_to_vec();
        let content = sealing::seal_at(key, sealing_context(id, user, *generation), &values)?;
        Ok(SealedContent { user: user.to_owned(), generation: *generation, content })
    });
    let sealed = SealedBody { open: open.encode(), sealed: sealed.collect::<Result<_, _>>()? };
    Ok(Some(sealed.encode_to_vec()))
}

/// Returns the users who have sealed content in a stored message, each with the generation of the data key.
///
/// # Errors
/// If it is no sealed message.
pub fn sealed_owners(payload: &[u8]) -> Result<Vec<(String, u32)>, UnreadableBody> {
    let sealed = decode_sealed_body(payload)?.sealed;
    Ok(sealed.into_iter().map(|sealed| (sealed.user, sealed.generation)).collect())
}

/// The message of this type with what was sealed in its place. What nobody has a key for any more stays empty.
///
/// # Errors
/// When it cannot be read, or not be opened with a key that is there.
pub fn open_body(
    type_name: &str,
    payload: &[u8],
    id: Uuid,
    key: impl Fn(&str, u32) -> DataKeyState,
) -> Result<OpenedMessage, NotOpened> {
    let SealedBody { open, sealed } = decode_sealed_body(payload)?;
    let mut body = Body::decode(type_name, ContentType::Protobuf, &open)?;
    let mut forgotten = BTreeSet::new();
    let mut values: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for SealedContent { user, generation, content } in sealed {
        let DataKeyState::Key(key) = key(&user, generation) else {
            forgotten.insert(user);
            continue;
        };
        let opened = sealing::open_at(&key, sealing_context(id, &user, generation), &content)
            .and_then(|opened| PersonalValues::decode(opened.as_slice()).map_err(|_| SealingError::NotOpened));
        let opened = opened.map_err(|why| NotOpened::Content { user, generation, why })?;
        values.extend(opened.values.into_iter().map(|value| (value.at, value.value)));
    }
    let mut at = 0;
    body.personal(&mut |place| {
        if let Some(value) = values.remove(&at) {
            restore_value(place, value);
        }
        at += 1;
    });
    Ok(OpenedMessage { body, forgotten })
}

fn decode_sealed_body(payload: &[u8]) -> Result<SealedBody, UnreadableBody> {
    let malformed =
        |error: prost::DecodeError| UnreadableBody::Malformed { type_name: "SealedBody", reason: error.to_string() };
    SealedBody::decode(payload).map_err(malformed)
}

/// Returns the place to seal for: there, the same content is sealed as the same bytes, and elsewhere as others.
fn sealing_context(id: Uuid, user: &str, generation: u32) -> Uuid {
    ids::from_parts("personal", &[&id.to_string(), user, &generation.to_string()])
}

fn take_value(value: Value<'_>) -> Option<Vec<u8>> {
    let bytes = match value {
        Value::Text(text) => std::mem::take(text).into_bytes(),
        Value::Bytes(bytes) => std::mem::take(bytes),
    };
    (!bytes.is_empty()).then_some(bytes)
}

fn restore_value(place: Value<'_>, value: Vec<u8>) {
    match place {
        // What was sealed as a text is one.
        Value::Text(text) => *text = String::from_utf8(value).unwrap_or_default(),
        Value::Bytes(bytes) => *bytes = value,
    }
}

#[cfg(test)]
mod tests;
