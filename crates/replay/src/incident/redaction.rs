//! Incident files without personal data and secrets. What is personal is found in all texts first ([`value_search`]), and each value
//! has one token from then on ([`values`]). Then the messages are gone through once more: in inputs, tokens stand for values
//! ([`body_texts`]); decisions are made again from the redacted log with redacted answers of the models, so that they say what this
//! agent would have decided, and with the digests of the requests that this takes. Where that would be another decision than the
//! log has, but for its words, nothing is exported.

mod body_texts;
#[cfg(test)]
mod tests;
mod value_kind;
mod value_search;
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
use kairo_mind::replay::{
    Replay, ReplayOutcome, ReplayRun, ReplayedDecision, as_replayed, comparison::differences_beside, part_digests,
};
use kairo_proto::{
    Body, ContentType,
    v1::{AgentDecision, Completion, LogMessage, MemoryAppended, StateWritten, decided_event::Event},
};
use regex::Regex;
use serde_json::Value;

pub use self::value_kind::ValueKind;
use self::{
    body_texts::Field,
    values::{Replacer, Values},
};

/// The reason for which a log cannot be redacted. The error quotes no value of the log.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedactionError {
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
pub struct RedactionTerms {
    pub words: Vec<String>,
    pub patterns: Vec<Regex>,
}

/// The first reading: what there is to replace.
#[derive(Debug)]
pub struct ValueFinder {
    agent: Name,
    named: RedactionTerms,
    values: Values,
    threads: BTreeSet<String>,
}

/// The second reading: replacing it.
#[derive(Debug)]
pub struct Redactor {
    replacing: Replacer,
    /// The log as it stands, and as it is redacted.
    open: Replay,
    redacted: Replay,
}

impl ValueFinder {
    /// In the log of this agent.
    pub fn new(agent: Name, named: RedactionTerms) -> Self {
        Self { agent, named, values: Values::default(), threads: BTreeSet::new() }
    }

    /// Takes in the next message that goes into the file.
    pub fn scan(&mut self, message: &LogMessage) {
        let Ok(Ok(Record { envelope, body, .. })) = log_message::decode_record(message) else { return };
        let Self { named, values, threads, .. } = self;
        if let Some((kind, login)) = body_texts::entering_login(&envelope) {
            values.add(kind, login);
        }
        threads.extend(envelope.thread_id);
        if body_texts::is_announced(&body) {
            return;
        }
        body_texts::walk(&body.to_json(), false, &mut |text, field, at| {
            if at.ends_with("thread_id") {
                threads.insert(text.to_owned());
            }
            match field {
                Field::Person => values.add(ValueKind::User, text),
                Field::Form | Field::Announced => {}
                Field::Said => body_texts::visit_texts(text, 0, &mut |text| {
                    value_search::find_values(text, &named.patterns)
                        .into_iter()
                        .for_each(|(kind, value)| values.add(kind, value));
                }),
            }
            None
        });
    }

    /// Ends the first reading. Where secrets were sealed on the way, making decisions again takes their key.
    ///
    /// # Errors
    /// If there are too many values.
    pub fn into_redactor(self, secret_key: Option<[u8; 32]>) -> Result<Redactor, RedactionError> {
        let Self { agent, named, mut values, threads } = self;
        named.words.iter().for_each(|word| values.add(ValueKind::Word, word));
        let ids = renamed_thread_ids(agent.as_str(), &values, &threads);
        let open = Replay::new(secret_key);
        let redacted = Replay::new(secret_key);
        Ok(Redactor { replacing: Replacer::new(values, ids)?, open, redacted })
    }
}

/// Ids of threads show whose they are, so they are others where their users have other names.
fn renamed_thread_ids(agent: &str, values: &Values, ids: &BTreeSet<String>) -> HashMap<String, String> {
    let mut others = HashMap::new();
    for (user, token) in values.tokens_of_kind(ValueKind::User) {
        others.insert(threads::single_thread_id(agent, user), threads::single_thread_id(agent, token));
        for id in ids {
            if let Some(called) = threads::name_from_id(agent, user, id) {
                others.insert(id.clone(), threads::id_for_name(agent, token, called));
            }
        }
    }
    others
}

impl Redactor {
    /// The message as it goes into the file.
    ///
    /// # Errors
    /// If the log cannot be redacted.
    pub fn redact(&mut self, message: &LogMessage) -> Result<LogMessage, RedactionError> {
        let sequence = message.sequence;
        let record = match log_message::decode_record(message) {
            Ok(Ok(record)) => record,
            Ok(Err(NotUnderstood::Newer(_))) => return Err(RedactionError::Newer { sequence }),
            Ok(Err(NotUnderstood::Unreadable(_))) | Err(_) => return Err(RedactionError::Unreadable { sequence }),
        };
        let envelope = body_texts::redact_envelope(&record.envelope, &self.replacing);
        let walked = self.redact_body(&record)?;
        let is_decision = AGENT_DECISION.matches(&record.subject) && matches!(walked, Body::AgentDecision(_));
        let mut redacted = Record { envelope, body: walked, ..record.clone() };
        if let (true, Body::AgentDecision(decision)) = (is_decision, &redacted.body) {
            // Its digest would tell whoever guesses what a token stands for whether that is it.
            let walked = AgentDecision { link: None, ..decision.clone() };
            let decision = self.redact_decision(&record, &redacted, walked)?;
            redacted.body = decision.into();
        }
        let came = self.open.replay_record(record);
        let comes = self.redacted.replay_record(redacted.clone());
        let recorded = outcome(came.as_ref());
        let made = outcome(comes.as_ref());
        if recorded != made {
            return Err(RedactionError::Outcome { sequence, recorded, made });
        }
        self.ensure_nothing_left(&redacted)?;
        Ok(self.rebuild_message(message, &redacted))
    }

    /// Returns the number of values replaced, by kind.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.replacing.values().counts()
    }

    /// The body with tokens in the place of values.
    fn redact_body(&self, record: &Record) -> Result<Body, RedactionError> {
        let replacing = &self.replacing;
        let json =
            body_texts::walk(&record.body.to_json(), body_texts::is_announced(&record.body), &mut |text, field, _| {
                Some(match field {
                    Field::Person => replacing.values().token(text).unwrap_or(text).to_owned(),
                    Field::Said => body_texts::replace_in_text(text, 0, replacing),
                    Field::Announced => replacing.replace_all_but_names(text).into_owned(),
                    Field::Form => return None,
                })
            });
        let unreadable = |_| RedactionError::Unreadable { sequence: record.sequence };
        Body::decode(record.body.type_name(), ContentType::Json, json.to_string().as_bytes()).map_err(unreadable)
    }

    /// A decision made again from the redacted log. One that this build does not make as it was recorded stays as it is, with
    /// tokens in the place of values.
    fn redact_decision(
        &mut self,
        record: &Record,
        redacted: &Record,
        walked: AgentDecision,
    ) -> Result<AgentDecision, RedactionError> {
        let Ok(made) = self.open.run_recorded(record) else { return Ok(walked) };
        let Some(recorded) = AgentDecision::of(&record.body) else { return Ok(walked) };
        let mut answers = Vec::new();
        let mut next = made.answers.iter();
        let made_again = self.redacted.run_with_answers(redacted, |request| {
            let at = *next.next()?;
            let asked = made.asked.get(at)?;
            let mut answer = self.redact_answer(&asked.completion)?;
            if asked.drift.is_none() {
                answer.request_digest = request.digest();
                // What was sent is not known: it had what is personal in it.
                answer.digests = answer.digests.as_ref().map(|_| part_digests(request));
            }
            answers.push((at, answer.clone()));
            Some(answer)
        });
        let is_as_recorded = matches!(&made, ReplayRun { decision: Ok(decision), asked, .. }
            if asked.iter().all(|asked| asked.drift.is_none()) && differences_beside(&as_replayed(recorded), decision, || self.open.known_ids(record)).is_empty());
        if !is_as_recorded {
            return Ok(with_answers(walked, recorded, &made, &answers));
        }
        let sequence = record.sequence;
        let decision =
            made_again.map_err(|why| RedactionError::Shape { sequence, at: format!("the whole of it: {why}") })?;
        let one = without_digests(&as_replayed(&walked));
        let other = without_digests(&decision);
        if let Some(difference) =
            differences_beside(&one, &other, || self.redacted.known_ids(redacted)).into_iter().find(|it| !it.is_wording)
        {
            let at = self.replacing.replace(&difference.at).into_owned();
            return Err(RedactionError::Shape { sequence, at });
        }
        self.learn(&walked, &decision);
        let AgentDecision { given_up, reader, .. } = walked;
        Ok(AgentDecision { given_up, reader, ..decision })
    }

    /// Ids that are derived from what was replaced are others from here on.
    fn learn(&mut self, recorded: &AgentDecision, made: &AgentDecision) {
        let json = |decision: &AgentDecision| serde_json::to_value(decision).unwrap_or_default();
        let mut found = Vec::new();
        collect_text_pairs(&json(recorded), &json(made), &mut found);
        let is_id = |id: &str| uuid::Uuid::parse_str(id).is_ok();
        self.replacing.ids.extend(found.into_iter().filter(|(one, other)| one != other && is_id(one) && is_id(other)));
    }

    fn redact_answer(&self, completion: &Completion) -> Option<Completion> {
        let decision = AgentDecision { completions: vec![completion.clone()], ..Default::default() };
        let json = serde_json::to_value(&decision).ok()?;
        let walked = body_texts::walk(&json, false, &mut |text, field, _| match field {
            Field::Form | Field::Announced => None,
            Field::Person | Field::Said => Some(body_texts::replace_in_text(text, 0, &self.replacing)),
        });
        let mut decision: AgentDecision = serde_json::from_value(walked).ok()?;
        decision.completions.pop()
    }

    /// Checks that no value is left in the texts that are not replaced either.
    fn ensure_nothing_left(&self, redacted: &Record) -> Result<(), RedactionError> {
        let mut left = None;
        let replacing = &self.replacing;
        body_texts::walk(&redacted.body.to_json(), body_texts::is_announced(&redacted.body), &mut |text, field, at| {
            if replacing.has_value_left(text, field.has_names()) {
                left.get_or_insert_with(|| replacing.replace(at).into_owned());
            }
            None
        });
        let tags = redacted.envelope.tags.iter().chain(&redacted.envelope.thread_id);
        if tags.into_iter().any(|tag| replacing.has_value_left(tag, true)) {
            left.get_or_insert_with(|| "its headers".to_owned());
        }
        match left {
            Some(at) => Err(RedactionError::Left { sequence: redacted.sequence, at }),
            None => Ok(()),
        }
    }

    /// The message with another envelope and body. Headers that this build does not know are left out.
    fn rebuild_message(&self, message: &LogMessage, redacted: &Record) -> LogMessage {
        let mut headers: BTreeMap<String, String> =
            redacted.envelope.to_headers().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        headers.extend(message.headers.get(READER_HEADER).map(|reader| (READER_HEADER.to_owned(), reader.clone())));
        let decided = AgentDecision::of(&redacted.body)
            .map(|decision| decision.events.iter().map(|event| event.event_id.as_str()).collect::<Vec<_>>().join(","));
        let held = || message.headers.get(HELD).map(|held| self.replacing.replace(held).into_owned());
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
    made: &ReplayRun,
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
fn collect_text_pairs(one: &Value, other: &Value, found: &mut Vec<(String, String)>) {
    match (one, other) {
        (Value::String(one), Value::String(other)) => found.push((one.clone(), other.clone())),
        (Value::Array(one), Value::Array(other)) => {
            one.iter().zip(other).for_each(|(one, other)| collect_text_pairs(one, other, found));
        }
        (Value::Object(one), Value::Object(other)) => {
            for (name, one) in one {
                if let Some(other) = other.get(name) {
                    collect_text_pairs(one, other, found);
                }
            }
        }
        _ => {}
    }
}

/// Returns the outcome of a decision, in a word.
fn outcome(replayed: Option<&ReplayedDecision>) -> &'static str {
    match replayed.map(|replayed| (&replayed.outcome, replayed.drifted.is_empty())) {
        None => "none",
        Some((ReplayOutcome::NotReplayable { .. }, _)) => "not replayable",
        Some((ReplayOutcome::Forgotten, _)) => "forgotten",
        Some((_, false)) => "drifted",
        Some((ReplayOutcome::Same, true)) => "the same",
        Some((ReplayOutcome::Reworded { .. }, true)) => "reworded",
        Some((ReplayOutcome::Differs { .. }, true)) => "differs",
    }
}
