//! Chooses the messages of a log that go into an incident file, and the decisions that it is about.

use std::{collections::BTreeSet, fmt};

use kairo_events::{
    ids::Name,
    subjects::{self, BASIS, CATALOGUE},
};
use kairo_proto::{Body, ContentType, v1::LogMessage};
use uuid::Uuid;

use crate::report::Range;

/// The choice of messages for a file, and the range of decisions that it is about.
#[derive(Clone, Debug)]
pub struct MessageSelection {
    agent: Name,
    /// A sequence or the id of an event; none for all of the log.
    around: Option<Anchor>,
    /// The position of the message asked for, and the chain of events that it belongs to.
    met: Option<(u64, String)>,
    range: Range,
    /// Versions of catalogues and digests of bases that decisions name.
    named: BTreeSet<String>,
}

/// The place that an incident is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    Sequence(u64),
    Id(String),
}

/// The notation of a place, for error messages.
pub const AROUND: &str = "the sequence of a message, such as 131, or the id of an event, a UUID";

impl Anchor {
    /// Reads a place; none where it is not written as one.
    pub fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            Ok(sequence) => Some(Self::Sequence(sequence)),
            Err(_) => Uuid::parse_str(text).ok().map(|id| Self::Id(id.to_string())),
        }
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequence(at) => at.fmt(formatter),
            Self::Id(id) => id.fmt(formatter),
        }
    }
}

impl MessageSelection {
    /// Of this agent, and around this place.
    pub fn new(agent: Name, around: Option<Anchor>) -> Self {
        Self { agent, around, met: None, range: Range::default(), named: BTreeSet::new() }
    }

    /// The agent whose messages go into the file.
    pub fn agent(&self) -> &Name {
        &self.agent
    }

    /// The first reading: where the place is, and what its chain is.
    pub fn locate_anchor(&mut self, message: &LogMessage) {
        if !self.is_of_agent(message) {
            return;
        }
        let held = || [kairo_events::envelope::HELD, "ce-id", "ce-correlationid"].into_iter();
        let is_it = match &self.around {
            None => false,
            Some(Anchor::Sequence(at)) => message.sequence == *at,
            Some(Anchor::Id(id)) => held().any(|name| header_values(message, name).any(|it| it == id)),
        };
        if is_it && self.met.is_none() {
            self.met = Some((message.sequence, chain_id(message).to_owned()));
        }
    }

    /// The second reading: how far the chain goes, and on what its decisions rest.
    pub fn extend_range(&mut self, message: &LogMessage) {
        if !self.is_of_agent(message) {
            return;
        }
        let sequence = message.sequence;
        if self.met.as_ref().is_some_and(|(at, of)| *at == sequence || chain_id(message) == of) {
            let from = self.range.from.unwrap_or(sequence);
            let to = self.range.to.unwrap_or(sequence);
            self.range = Range { from: Some(from.min(sequence)), to: Some(to.max(sequence)) };
        }
        let type_name = message.headers.get("ce-type").map_or("", String::as_str);
        if let Ok(Body::AgentDecision(decision)) = Body::decode(type_name, ContentType::Protobuf, &message.data) {
            self.named.extend([decision.catalogue_version, decision.basis]);
        }
    }

    /// The place that was asked for; none where the log does not have it.
    pub fn anchor(&self) -> Option<u64> {
        self.met.as_ref().map(|(at, _)| *at)
    }

    /// The decisions that it is about.
    pub fn range(&self) -> Range {
        self.range
    }

    /// Returns true if the message goes into the file.
    pub fn includes_message(&self, message: &LogMessage) -> bool {
        if self.range.to.is_some_and(|to| message.sequence > to) {
            return false;
        }
        self.is_of_agent(message) || self.is_named_announcement(message)
    }

    /// Of this agent; a user of the same name is somebody else.
    fn is_of_agent(&self, message: &LogMessage) -> bool {
        let route = subjects::find_route(&message.subject);
        route.is_some_and(|(route, owner)| subjects::is_agent_route(route) && owner == self.agent)
    }

    /// Returns true for a server's announcement that a decision names.
    fn is_named_announcement(&self, message: &LogMessage) -> bool {
        if ![CATALOGUE, BASIS].iter().any(|route| route.matches(&message.subject)) {
            return false;
        }
        let type_name = message.headers.get("ce-type").map_or("", String::as_str);
        let body = Body::decode(type_name, ContentType::Protobuf, &message.data).ok();
        let catalogue = body.as_ref().and_then(kairo_proto::v1::ToolCatalogue::of);
        let basis = body.as_ref().and_then(kairo_proto::v1::DecisionBasis::of);
        let named = catalogue.map(|it| &it.version).or_else(|| basis.map(|it| &it.digest));
        named.is_some_and(|named| self.named.contains(named))
    }
}

/// The event that entered from outside and that all of the chain answers.
fn chain_id(message: &LogMessage) -> &str {
    let header = |name: &str| message.headers.get(name).map(String::as_str);
    header("ce-correlationid").or_else(|| header("ce-id")).unwrap_or_default()
}

fn header_values<'m>(message: &'m LogMessage, header: &str) -> impl Iterator<Item = &'m str> {
    message.headers.get(header).into_iter().flat_map(|ids| ids.split(','))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestAgent, name, text_completion};

    #[test]
    fn it_has_all_of_one_agent_up_to_the_end_of_the_chain_and_nothing_of_others() {
        let mut agent = TestAgent::new("cook");
        let heard = agent.hears("", "hello");
        let greets = agent.decide(&[text_completion("Hello.")]);
        let later = agent.hears("", "bye");
        let mut messages = agent.messages();
        let mut other = messages[3].clone();
        (other.sequence, other.subject) = (90, "kairo.user.cook.message".into());
        messages.push(other);
        let chosen = |around: Option<Anchor>| {
            let mut choosing = MessageSelection::new(name("cook"), around);
            messages.iter().for_each(|message| choosing.locate_anchor(message));
            messages.iter().for_each(|message| choosing.extend_range(message));
            let chosen: Vec<u64> =
                messages.iter().filter(|it| choosing.includes_message(it)).map(|it| it.sequence).collect();
            (chosen, choosing.range(), choosing.anchor())
        };
        let (all, range, met) = chosen(None);
        assert_eq!((all, range, met), (vec![1, 2, 3, heard, greets, later], Range::default(), None));
        let (part, range, met) = chosen(Some(Anchor::Sequence(greets)));
        assert_eq!(part, [1, 2, 3, heard, greets]);
        assert_eq!((range, met), (Range { from: Some(heard), to: Some(greets) }, Some(greets)));
        let id = messages[3].headers["ce-id"].clone();
        assert_eq!(chosen(Some(Anchor::Id(id))).1, range, "the message's own id leads to the same chain");
        assert_eq!(chosen(Some(Anchor::Sequence(90))).2, None, "a user of that name is no agent");
    }
}
