//! Incident files without personal data and secrets. What is personal is found in all texts first ([`finding`]), and each value
//! has one token from then on ([`values`]). Then the messages are gone through once more: in inputs, tokens stand for values
//! ([`bodies`]); decisions are made again from the redacted log with redacted answers of the models, so that they say what this
//! agent would have decided, and with the digests of the requests that this takes. Where that would be another decision than the
//! log has, but for its words, nothing is exported.

mod bodies;
mod finding;
mod kind;
#[cfg(test)]
mod tests;
mod values;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kairo_events::{
    envelope::HELD,
    ids::Name,
    log_message,
    record::Record,
    subjects::AGENT_DECISION,
    threads,
    vocabulary::{NotUnderstood, READER_HEADER},
};
use kairo_mind::replay::{Made, Outcome, Replay, Replayed, as_made, compare::differences_beside, digests};
use kairo_proto::{
    Body, ContentType,
    v1::{AgentDecision, Completion, LogMessage, MemoryAppended, StateWritten, decided_event::Event},
};
use regex::Regex;
use serde_json::Value;

pub use self::kind::Kind;
use self::{
    bodies::Field,
    values::{Replacing, Values},
};

/// The reason for which a log cannot be redacted. The error quotes no value of the log.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("message {sequence}: this build cannot read it, so nobody knows what is in it")]
    Unreadable { sequence: u64 },
    #[error("message {sequence}: it takes a newer build")]
    Newer { sequence: u64 },
    #[error(
        "message {sequence}: without what is personal, the decision would be another one, which begins to differ at {at}: it depends \
         on a value that a token stands for"
    )]
    Shape { sequence: u64, at: String },
    #[error(
        "message {sequence}: without what is personal, the decision comes out as {made} when it is made again, and not as {recorded}"
    )]
    Outcome { sequence: u64, recorded: &'static str, made: &'static str },
    #[error("message {sequence}: a value stands at {at}, where nothing can take its place")]
    Left { sequence: u64, at: String },
    #[error("the log has {values} values to be replaced, which are too many")]
    TooMany { values: usize },
}

/// Words and patterns to replace in addition to the values found.
#[derive(Clone, Debug, Default)]
pub struct Named {
    pub words: Vec<String>,
    pub patterns: Vec<Regex>,
}

/// The first reading: what there is to replace.
#[derive(Debug)]
pub struct Finding {
    agent: Name,
    named: Named,
    values: Values,
    threads: BTreeSet<String>,
}

/// The second reading: replacing it.
#[derive(Debug)]
pub struct Redacting {
    replacing: Replacing,
    /// The log as it stands, and as it is redacted.
    open: Replay,
    redacted: Replay,
}

impl Finding {
    /// In the log of this agent.
    pub fn new(agent: Name, named: Named) -> Self {
        Self { agent, named, values: Values::default(), threads: BTreeSet::new() }
    }

    /// Takes in the next message that goes into the file.
    pub fn look(&mut self, message: &LogMessage) {
        let Ok(Ok(Record { envelope, body, .. })) = log_message::understand(message) else { return };
        let Self { named, values, threads, .. } = self;
        if let Some((kind, login)) = bodies::login(&envelope) {
            values.note(kind, login);
        }
        threads.extend(envelope.thread_id);
        if bodies::is_announced(&body) {
            return;
        }
        bodies::walk(&body.to_json(), false, &mut |text, field, at| {
            if at.ends_with("thread_id") {
                threads.insert(text.to_owned());
            }
            match field {
                Field::Person => values.note(Kind::User, text),
                Field::Form | Field::Announced => {}
                Field::Said => bodies::look_into(text, 0, &mut |text| {
                    finding::find(text, &named.patterns).into_iter().for_each(|(kind, value)| values.note(kind, value));
                }),
            }
            None
        });
    }

    /// Ends the first reading. Where secrets were sealed on the way, making decisions again takes their key.
    ///
    /// # Errors
    /// If there are too many values.
    pub fn end(self, secret_key: Option<[u8; 32]>) -> Result<Redacting, Refused> {
        let Self { agent, named, mut values, threads } = self;
        named.words.iter().for_each(|word| values.note(Kind::Word, word));
        let ids = thread_ids(agent.as_str(), &values, &threads);
        let (open, redacted) = (Replay::new(secret_key), Replay::new(secret_key));
        Ok(Redacting { replacing: Replacing::new(values, ids)?, open, redacted })
    }
}

/// Ids of threads show whose they are, so they are others where their users have other names.
fn thread_ids(agent: &str, values: &Values, ids: &BTreeSet<String>) -> HashMap<String, String> {
    let mut others = HashMap::new();
    for (user, token) in values.of(Kind::User) {
        others.insert(threads::only(agent, user), threads::only(agent, token));
        for id in ids {
            if let Some(called) = threads::called(agent, user, id) {
                others.insert(id.clone(), threads::of(agent, token, called));
            }
        }
    }
    others
}

impl Redacting {
    /// The message as it goes into the file.
    ///
    /// # Errors
    /// If the log cannot be redacted.
    pub fn take(&mut self, message: &LogMessage) -> Result<LogMessage, Refused> {
        let sequence = message.sequence;
        let record = match log_message::understand(message) {
            Ok(Ok(record)) => record,
            Ok(Err(NotUnderstood::Newer(_))) => return Err(Refused::Newer { sequence }),
            Ok(Err(NotUnderstood::Unreadable(_))) | Err(_) => return Err(Refused::Unreadable { sequence }),
        };
        let envelope = bodies::envelope(&record.envelope, &self.replacing);
        let walked = self.walked(&record)?;
        let is_decision = AGENT_DECISION.is(&record.subject) && matches!(walked, Body::AgentDecision(_));
        let mut redacted = Record { envelope, body: walked, ..record.clone() };
        if let (true, Body::AgentDecision(decision)) = (is_decision, &redacted.body) {
            // Its digest would tell whoever guesses what a token stands for whether that is it.
            let walked = AgentDecision { link: None, ..decision.clone() };
            let decision = self.decided(&record, &redacted, walked)?;
            redacted.body = decision.into();
        }
        let (came, comes) = (self.open.take(record), self.redacted.take(redacted.clone()));
        let (recorded, made) = (outcome(came.as_ref()), outcome(comes.as_ref()));
        if recorded != made {
            return Err(Refused::Outcome { sequence, recorded, made });
        }
        self.nothing_left(&redacted)?;
        Ok(self.written(message, &redacted))
    }

    /// Returns the number of values replaced, by kind.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.replacing.values().counts()
    }

    /// The body with tokens in the place of values.
    fn walked(&self, record: &Record) -> Result<Body, Refused> {
        let replacing = &self.replacing;
        let json = bodies::walk(&record.body.to_json(), bodies::is_announced(&record.body), &mut |text, field, _| {
            Some(match field {
                Field::Person => replacing.values().token(text).unwrap_or(text).to_owned(),
                Field::Said => bodies::replaced(text, 0, replacing),
                Field::Announced => replacing.but_names(text).into_owned(),
                Field::Form => return None,
            })
        });
        let unreadable = |_| Refused::Unreadable { sequence: record.sequence };
        Body::decode(record.body.type_name(), ContentType::Json, json.to_string().as_bytes()).map_err(unreadable)
    }

    /// A decision made again from the redacted log. One that this build does not make as it was recorded stays as it is, with
    /// tokens in the place of values.
    fn decided(&mut self, record: &Record, redacted: &Record, walked: AgentDecision) -> Result<AgentDecision, Refused> {
        let Ok(made) = self.open.make(record) else { return Ok(walked) };
        let Some(recorded) = AgentDecision::of(&record.body) else { return Ok(walked) };
        let mut answers = Vec::new();
        let mut next = made.answers.iter();
        let made_again = self.redacted.make_with(redacted, |request| {
            let at = *next.next()?;
            let asked = made.asked.get(at)?;
            let mut answer = self.replaced_answer(&asked.completion)?;
            if asked.drift.is_none() {
                answer.request_digest = request.digest();
                // What was sent is not known: it had what is personal in it.
                answer.digests = answer.digests.as_ref().map(|_| digests(request));
            }
            answers.push((at, answer.clone()));
            Some(answer)
        });
        let is_as_recorded = matches!(&made, Made { decision: Ok(decision), asked, .. }
            if asked.iter().all(|asked| asked.drift.is_none()) && differences_beside(&as_made(recorded), decision, || self.open.known(record)).is_empty());
        if !is_as_recorded {
            return Ok(with_answers(walked, recorded, &made, &answers));
        }
        let sequence = record.sequence;
        let decision = made_again.map_err(|why| Refused::Shape { sequence, at: format!("the whole of it: {why}") })?;
        let (one, other) = (without_digests(&as_made(&walked)), without_digests(&decision));
        if let Some(difference) =
            differences_beside(&one, &other, || self.redacted.known(redacted)).into_iter().find(|it| !it.is_wording)
        {
            let at = self.replacing.text(&difference.at).into_owned();
            return Err(Refused::Shape { sequence, at });
        }
        self.learn(&walked, &decision);
        let AgentDecision { given_up, reader, .. } = walked;
        Ok(AgentDecision { given_up, reader, ..decision })
    }

    /// Ids that are derived from what was replaced are others from here on.
    fn learn(&mut self, recorded: &AgentDecision, made: &AgentDecision) {
        let json = |decision: &AgentDecision| serde_json::to_value(decision).unwrap_or_default();
        let mut found = Vec::new();
        pairs(&json(recorded), &json(made), &mut found);
        let is_id = |id: &str| uuid::Uuid::parse_str(id).is_ok();
        self.replacing.ids.extend(found.into_iter().filter(|(one, other)| one != other && is_id(one) && is_id(other)));
    }

    fn replaced_answer(&self, completion: &Completion) -> Option<Completion> {
        let decision = AgentDecision { completions: vec![completion.clone()], ..Default::default() };
        let json = serde_json::to_value(&decision).ok()?;
        let walked = bodies::walk(&json, false, &mut |text, field, _| match field {
            Field::Form | Field::Announced => None,
            Field::Person | Field::Said => Some(bodies::replaced(text, 0, &self.replacing)),
        });
        let mut decision: AgentDecision = serde_json::from_value(walked).ok()?;
        decision.completions.pop()
    }

    /// Checks that no value is left in the texts that are not replaced either.
    fn nothing_left(&self, redacted: &Record) -> Result<(), Refused> {
        let (mut left, replacing) = (None, &self.replacing);
        bodies::walk(&redacted.body.to_json(), bodies::is_announced(&redacted.body), &mut |text, field, at| {
            if replacing.has_left(text, field.has_names()) {
                left.get_or_insert_with(|| replacing.text(at).into_owned());
            }
            None
        });
        let tags = redacted.envelope.tags.iter().chain(&redacted.envelope.thread_id);
        if tags.into_iter().any(|tag| replacing.has_left(tag, true)) {
            left.get_or_insert_with(|| "its headers".to_owned());
        }
        match left {
            Some(at) => Err(Refused::Left { sequence: redacted.sequence, at }),
            None => Ok(()),
        }
    }

    /// The message with another envelope and body. Headers that this build does not know are left out.
    fn written(&self, message: &LogMessage, redacted: &Record) -> LogMessage {
        let mut headers: BTreeMap<String, String> =
            redacted.envelope.to_headers().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        headers.extend(message.headers.get(READER_HEADER).map(|reader| (READER_HEADER.to_owned(), reader.clone())));
        let decided = AgentDecision::of(&redacted.body)
            .map(|decision| decision.events.iter().map(|event| event.event_id.as_str()).collect::<Vec<_>>().join(","));
        let held = || message.headers.get(HELD).map(|held| self.replacing.text(held).into_owned());
        headers.extend(decided.or_else(held).map(|held| (HELD.to_owned(), held)));
        LogMessage { headers, data: redacted.body.encode(), ..message.clone() }
    }
}

/// Without what must be another: the digests of requests, and secrets that are sealed.
fn without_digests(decision: &AgentDecision) -> AgentDecision {
    let mut decision = decision.clone();
    for event in &mut decision.events {
        if let Some(
            Event::MemoryAppended(MemoryAppended { secrets, .. }) | Event::StateWritten(StateWritten { secrets, .. }),
        ) = &mut event.event
        {
            secrets.iter_mut().for_each(|secret| secret.sealed.clear());
        }
    }
    for completion in &mut decision.completions {
        (completion.digests, completion.request_digest) = (None, String::new());
    }
    decision
}

/// A decision with its redacted answers in the places of those it has.
fn with_answers(
    walked: AgentDecision,
    recorded: &AgentDecision,
    made: &Made,
    answers: &[(usize, Completion)],
) -> AgentDecision {
    let mut decision = walked;
    for (completion, was) in decision.completions.iter_mut().zip(&recorded.completions) {
        let is_it = |(at, _): &&(usize, Completion)| made.asked.get(*at).is_some_and(|asked| asked.completion == *was);
        if let Some((_, answer)) = answers.iter().find(is_it) {
            completion.clone_from(answer);
        }
    }
    decision
}

/// Texts that stand at the same places.
fn pairs(one: &Value, other: &Value, found: &mut Vec<(String, String)>) {
    match (one, other) {
        (Value::String(one), Value::String(other)) => found.push((one.clone(), other.clone())),
        (Value::Array(one), Value::Array(other)) => {
            one.iter().zip(other).for_each(|(one, other)| pairs(one, other, found));
        }
        (Value::Object(one), Value::Object(other)) => {
            for (name, one) in one {
                if let Some(other) = other.get(name) {
                    pairs(one, other, found);
                }
            }
        }
        _ => {}
    }
}

/// Returns the outcome of a decision, in a word.
fn outcome(replayed: Option<&Replayed>) -> &'static str {
    match replayed.map(|replayed| (&replayed.outcome, replayed.drifted.is_empty())) {
        None => "none",
        Some((Outcome::NotReplayable { .. }, _)) => "not replayable",
        Some((Outcome::Forgotten, _)) => "forgotten",
        Some((_, false)) => "drifted",
        Some((Outcome::Same, true)) => "the same",
        Some((Outcome::Reworded { .. }, true)) => "reworded",
        Some((Outcome::Differs { .. }, true)) => "differs",
    }
}
