//! `POST /v1/messages`: a user's words.

mod environment;
pub mod parts;

use jiff::Timestamp;
use kairo_core::{
    address,
    envelope::Modality,
    ids::Name,
    media,
    sharing::QuotaHolder,
    subjects::{Route, USER_MESSAGE},
    vocabulary::{ENVIRONMENT, STATES},
};
use kairo_proto::{
    Body,
    v1::{ChatRequest, Part, UserMessage},
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    Gateway,
    ingest::{self, UserInput},
    query,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{CLIENT_ID, NAME, RequestFields, bounded_text, json_text, parse_client_id, parse_name},
    problem::Problem,
    recent_messages::MessageLookup,
};
use parts::ClientPart;

#[derive(Clone, Debug, PartialEq)]
pub struct MessageInput {
    user: Name,
    agent: Option<Name>,
    text: String,
    message_id: Option<String>,
    thread_id: Option<Name>,
    /// Images and audio, as they were given and, once they are stored, as events name them.
    given: Vec<ClientPart>,
    parts: Vec<Part>,
    /// JSON, as text; empty for none.
    environment: String,
    /// When it can have been said first; none for at any time.
    said_since: Option<Timestamp>,
    /// A JSON object, as text; empty for none.
    state: String,
    /// The fields of a chat client's request beside the words.
    chat: Option<Box<ChatRequest>>,
}

impl MessageInput {
    /// A message that names all there is to name; a thread that is no name is left to the agent.
    pub fn new(user: Name, agent: Name, text: String, message_id: String, thread: &str) -> Self {
        let thread_id = Name::parse(thread).ok();
        let agent = Some(agent);
        let message_id = Some(message_id);
        let given = Vec::new();
        let parts = Vec::new();
        let environment = String::new();
        let state = String::new();
        Self {
            user,
            agent,
            text,
            message_id,
            thread_id,
            given,
            parts,
            environment,
            said_since: None,
            state,
            chat: None,
        }
    }

    /// The message with what a chat client sends beside the words. The caller knows that the epoch allows it.
    pub fn with_chat(self, chat: Option<ChatRequest>) -> Self {
        Self { chat: chat.map(Box::new), ..self }
    }

    /// The message with these images and audio.
    pub fn with_parts(self, given: Vec<ClientPart>) -> Self {
        Self { given, ..self }
    }

    /// The message, whose id cannot have been chosen before that time, if there is one.
    pub fn with_said_since(self, time: Option<Timestamp>) -> Self {
        Self { said_since: time, ..self }
    }
}

impl UserInput for MessageInput {
    const KIND: &'static str = "message";
    const ID: &'static str = "message_id";
    const ROUTE: Route = USER_MESSAGE;

    fn from_fields(mut fields: RequestFields<Value>, limits: &GatewayConfig) -> Result<Self, Problem> {
        let user = fields.required("user", NAME, json_text(parse_name));
        let agent = fields.optional("agent", NAME, json_text(parse_name));
        let longest = limits.max_text_bytes;
        let given = parts::parse(&mut fields, limits);
        let most = limits.max_state_bytes;
        let object = |value: &Value| value.is_object().then(|| value.to_string()).filter(|text| text.len() <= most);
        let is_state = fields.has("state");
        let state = fields.optional("state", format!("a JSON object of up to {most} bytes"), object);
        let state = state.unwrap_or_default();
        let expected = format!("text of 1 to {longest} bytes");
        let words = match given.is_empty() && !is_state {
            true => fields.required("text", expected, json_text(bounded_text(longest))),
            // Parts and states say something by themselves.
            false => {
                let words = |text: &str| (text.len() <= longest).then(|| text.to_owned());
                Some(fields.optional("text", expected, json_text(words)).unwrap_or_default())
            }
        };
        let message_id = fields.optional("message_id", CLIENT_ID, json_text(parse_client_id));
        let thread_id = fields.optional("thread_id", NAME, json_text(parse_name));
        let environment = environment::parse(&mut fields);
        fields.complete(|| {
            let user = user?;
            let text = words?;
            let parts = Vec::new();
            let said_since = None;
            let chat = None;
            Some(Self { user, agent, text, message_id, thread_id, given, parts, environment, said_since, state, chat })
        })
    }

    fn user(&self) -> &Name {
        &self.user
    }

    fn agent(&self) -> Option<&Name> {
        self.agent.as_ref()
    }

    fn id(&self) -> Option<&str> {
        self.message_id.as_deref()
    }

    fn thread(&self) -> &str {
        self.thread_id.as_ref().map(Name::as_str).unwrap_or_default()
    }

    fn backpressured_agent(&self, default_agent: &str) -> Option<Name> {
        let named = self.agent.as_ref().map(Name::as_str).unwrap_or_default();
        address::split_message(named, &self.text, default_agent).0.ok()
    }

    fn is_capped(&self) -> bool {
        true
    }

    fn modality(&self) -> Modality {
        match self.text.is_empty() && self.parts.is_empty() {
            true => Modality::State,
            false => media::modality_of(&self.parts),
        }
    }

    async fn prepare(&mut self, gateway: &Gateway, caller: &Caller) -> Result<(), Problem> {
        let newer = [(&self.environment, ENVIRONMENT, "an environment"), (&self.state, STATES, "a state")];
        // The epoch is asked of the log: of messages that bring nothing of that kind, it is not.
        if let Some((_, takes, what)) = newer.into_iter().find(|(text, ..)| !text.is_empty())
            && gateway.bus.current_epoch().await? < takes
        {
            let detail = format!("messages have {what} from epoch {takes} on: see kairo fleet promote");
            return Err(Problem::conflict(detail));
        }
        self.parts = parts::store_parts(gateway, caller, self.user.as_str(), std::mem::take(&mut self.given)).await?;
        Ok(())
    }

    fn into_body(self, id: &str) -> Body {
        let thread_id = self.thread().to_owned();
        let agent = self.agent.as_ref().map(Name::to_string).unwrap_or_default();
        let message_id = id.to_owned();
        let user = self.user.to_string();
        let text = self.text;
        let parts = self.parts;
        let environment = self.environment;
        let state = self.state;
        let chat = self.chat;
        let chat = chat.map(|chat| *chat);
        UserMessage { message_id, user, agent, text, thread_id, parts, environment, state, chat }.into()
    }

    /// Of a chat client's message the digest of the whole request counts: where it is put follows from what was said meanwhile.
    fn is_the_same_as(&self, stored: &Body, id: &str) -> bool {
        let Some(stored) = UserMessage::of(stored) else { return false };
        let parts =
            |parts: &[Part]| parts.iter().map(|part| (part.digest.clone(), part.name.clone())).collect::<Vec<_>>();
        if parts(&stored.parts) != self.given.iter().map(ClientPart::digest_and_name).collect::<Vec<_>>() {
            return false;
        }
        if let (Some(own), Some(other)) = (&self.chat, &stored.chat) {
            return own.digest == other.digest;
        }
        let mut own = self.clone();
        if own.chat.is_some() || stored.chat.is_some() {
            (own.thread_id, own.chat) = (Name::parse(&stored.thread_id).ok(), stored.chat.clone().map(Box::new));
        }
        let Body::UserMessage(own) = own.into_body(id) else { return false };
        UserMessage { parts: Vec::new(), ..own } == UserMessage { parts: Vec::new(), ..stored.clone() }
    }

    /// The read model knows messages that were said longer ago than is remembered. That it cannot say stops no message.
    async fn find_known(&self, gateway: &Gateway, id: &str) -> Option<(Uuid, u64)> {
        let event_id = ingest::event_id::<Self>(&self.user, id);
        match gateway.recent.find(event_id, self.said_since) {
            MessageLookup::At(sequence) => return Some((event_id, sequence)),
            MessageLookup::Never => return None,
            MessageLookup::Unknown => {}
        }
        let model = gateway.read_model.for_holder(QuotaHolder::for_user(self.user.as_str()));
        let known = model.find_message(self.user.as_str(), id);
        query::lookup_or_none(gateway, known).await.flatten().map(|known| (known.event_id, known.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8], limits: &GatewayConfig) -> Result<MessageInput, Problem> {
        MessageInput::from_fields(RequestFields::from_json(body)?, limits)
    }

    fn wrong_fields(body: &str) -> Vec<String> {
        let problem = read(body.as_bytes(), &GatewayConfig::default()).unwrap_err();
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_message_needs_a_user_and_words() {
        let message =
            read(r#"{"user": "ann", "text": "größe \u0000 🦀"}"#.as_bytes(), &GatewayConfig::default()).unwrap();
        assert_eq!((message.user.as_str(), message.text.as_str()), ("ann", "größe \0 🦀"));
        assert_eq!((message.agent, message.message_id, message.thread_id), (None, None, None));
        assert_eq!(wrong_fields("{}"), ["user", "text"]);
    }

    #[test]
    fn everything_wrong_is_named() {
        let body =
            r#"{"user": "Ann", "agent": "a.b", "text": "", "message_id": "a b", "thread_id": 7, "mood": "good"}"#;
        assert_eq!(wrong_fields(body), ["user", "agent", "text", "message_id", "thread_id", "mood"]);
    }

    #[test]
    fn parts_need_no_words() {
        let digest = media::digest(b"x");
        let with = |rest: &str| format!(r#"{{"user": "ann", "parts": [{{"digest": "{digest}"}}]{rest}}}"#);
        for rest in ["", r#", "text": """#, r#", "text": "Look." "#] {
            let message = read(with(rest).as_bytes(), &GatewayConfig::default()).unwrap();
            assert_eq!(message.given.len(), 1, "{rest}");
        }
        assert_eq!(wrong_fields(&with(r#", "text": 7"#)), ["text"]);
        assert_eq!(wrong_fields(r#"{"user": "ann", "parts": []}"#), ["text"]);
    }

    #[test]
    fn a_state_is_a_json_object_and_needs_no_words() {
        let limits = GatewayConfig { max_state_bytes: 15, ..Default::default() };
        let message = read(br#"{"user": "ann", "state": {"door": "open"}}"#, &limits).unwrap();
        assert_eq!((message.state.as_str(), message.modality()), (r#"{"door":"open"}"#, Modality::State));
        let message = read(br#"{"user": "ann", "text": "Look.", "state": {}}"#, &limits).unwrap();
        assert_eq!((message.state.as_str(), message.modality()), ("{}", Modality::Text));
        for state in ["7", "[]", r#""open""#, r#"{"door": "opened"}"#] {
            let body = format!(r#"{{"user": "ann", "state": {state}}}"#);
            let problem = read(body.as_bytes(), &limits).unwrap_err();
            assert_eq!(problem.errors[0].field, "state", "{state}");
        }
    }

    #[test]
    fn the_limit_counts_bytes() {
        let limits = GatewayConfig { max_text_bytes: 4, ..Default::default() };
        let body = |text: &str| format!(r#"{{"user": "ann", "text": "{text}"}}"#);
        assert!(read(body("üü").as_bytes(), &limits).is_ok());
        assert!(read(body("üüü").as_bytes(), &limits).is_err());
    }
}
