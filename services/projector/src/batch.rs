//! Turning a stretch of the log into changes, and deciding what becomes of what cannot be read. Pure.

use kairo_core::{
    envelope::Envelope,
    ids::Name,
    partition::Partitions,
    record::{RawMessage, UnreadableRecord},
    subjects::{Consumer, EPOCH, Route, Service, TABLE, find_route, is_announcement},
    vocabulary::{NewerReaderNeeded, READER},
};
use kairo_proto::{Body, v1::Epoch};
use kairo_read_model::sql_values::{SqlKey, Time};

use crate::{
    changes::{LogEntry, TableChanges, UnknownTypeCount},
    projections,
};

/// The result of projecting a stretch of the log.
#[derive(Debug, Default)]
pub struct ProjectionBatch {
    pub changes: TableChanges,
    /// Messages that nobody else reports, with the reason.
    pub set_aside: Vec<(RawMessage, String)>,
    /// Messages that cannot be read but are somebody else's to report.
    pub skipped: usize,
}

impl ProjectionBatch {
    /// `max_body` in bytes.
    pub fn from_messages(messages: &[RawMessage], max_body: usize, partitions: Option<Partitions>) -> Self {
        let mut batch = Self::default();
        for message in messages {
            batch.add_message(message, max_body, partitions);
        }
        batch
    }

    fn add_message(&mut self, message: &RawMessage, max_body: usize, partitions: Option<Partitions>) {
        self.changes.log.push(log_row(message));
        if let Some(misplaced) = partitions.and_then(|partitions| message.misplacement(partitions)) {
            return self.set_aside.push((message.clone(), misplaced.to_string()));
        }
        match message.read(max_body) {
            Ok(record) => projections::project_record(&record, &mut self.changes),
            Err(reason) => self.skip_unreadable(message, &reason),
        }
    }

    fn skip_unreadable(&mut self, message: &RawMessage, reason: &UnreadableRecord) {
        if matches!(reason, UnreadableRecord::Carried { .. }) {
            return;
        }
        if let Some(name) = unknown_type(message) {
            self.count_unknown_type(name.as_str().into(), message.sequence);
        } else if is_consumed(&message.subject) {
            self.skipped += 1;
        } else {
            self.set_aside.push((message.clone(), reason.to_string()));
        }
    }

    /// A service of a newer version may say what this one does not know.
    fn count_unknown_type(&mut self, name: SqlKey, sequence: u64) {
        let sequence = i64::try_from(sequence).unwrap_or(i64::MAX);
        let unknown = self.changes.unknown.entry(name).or_insert(UnknownTypeCount {
            messages: 0,
            first: sequence,
            last: sequence,
        });
        unknown.messages += 1;
        unknown.last = sequence;
    }
}

/// An epoch that this build does not read all of. Nothing that takes it stands before: from there on a newer build writes the
/// rows.
pub fn find_newer_epoch(message: &RawMessage, max_body: usize) -> Option<NewerReaderNeeded> {
    let gateway = Name::parse(Service::Gateway.name()).ok()?;
    if message.subject != EPOCH.of_owner(&gateway) {
        return None;
    }
    let record = message.read(max_body).ok()?;
    let Epoch { epoch, .. } = Epoch::of(&record.body)?;
    let why = format!("from sequence {} on the log is in epoch {epoch}", message.sequence);
    (*epoch > READER).then_some(NewerReaderNeeded { reader: *epoch, why })
}

fn log_row(message: &RawMessage) -> LogEntry {
    LogEntry {
        sequence: i64::try_from(message.sequence).unwrap_or(i64::MAX),
        subject: message.subject.as_str().into(),
        headers: message.header_lines().as_str().into(),
        payload: message.payload.clone(),
        stored: Time(message.stored),
    }
}

/// The type that a message names, if it is none that this version knows.
fn unknown_type(message: &RawMessage) -> Option<String> {
    let envelope = Envelope::from_headers(|name| message.header(name)).ok()?;
    (!Body::TYPES.contains(&envelope.type_name.as_str())).then_some(envelope.type_name)
}

/// Returns true if this subject goes to a durable consumer or to the owner of its partition, who then reports messages
/// it cannot read. A consumer's filter takes any owner, the owner of a partition only what [`find_route`] does. The router
/// reports messages from other systems.
fn is_consumed(subject: &str) -> bool {
    let tokens: Vec<&str> = subject.split('.').collect();
    match tokens[..] {
        ["kairo", "system", ..] => !is_announcement(subject),
        ["kairo", noun, _, verb] => {
            let row = TABLE.iter().find(|route| route.noun == noun && route.verb == verb);
            let is_durable = |consumer: &Consumer| Consumer::DURABLE.contains(consumer);
            let reads = |row: &Route| match find_route(subject) {
                Some(_) => !row.consumers.is_empty(),
                None => row.consumers.iter().any(is_durable),
            };
            row.is_some_and(reads)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use async_nats::HeaderMap;
    use kairo_core::envelope::{Envelope, Origin};
    use kairo_proto::{
        Body,
        v1::{self, AgentThought},
    };
    use uuid::Uuid;

    use super::*;

    fn raw(sequence: u64, subject: &str, type_name: &str, body: Vec<u8>) -> RawMessage {
        let stored = "2026-11-21T10:00:00Z".parse().unwrap();
        let envelope = Envelope::from_outside(Uuid::from_u128(1), Service::Gateway, Origin::User, stored);
        let mut headers = HeaderMap::new();
        for (name, value) in (Envelope { type_name: type_name.to_owned(), ..envelope }).to_headers() {
            headers.insert(name, value.as_str());
        }
        RawMessage {
            sequence,
            subject: subject.to_owned(),
            partition: None,
            headers,
            payload: body.into(),
            sealed: None,
            stored,
        }
    }

    #[test]
    fn what_stands_in_another_partition_than_its_owners_is_set_aside() {
        let partitions = Partitions::new(64);
        let message =
            |partition| RawMessage { partition, ..raw(4, "kairo.user.ann.message", v1::UserMessage::TYPE, Vec::new()) };
        let right = partitions.map(|partitions| partitions.of("ann"));
        let cases = [(right, 0), (right.map(|right| (right + 1) % 64), 1), (None, 1)];
        for (partition, set_aside) in cases {
            let batch = ProjectionBatch::from_messages(&[message(partition)], 100, partitions);
            assert_eq!((batch.set_aside.len(), batch.changes.messages.len()), (set_aside, 1 - set_aside));
        }
    }

    #[test]
    fn what_can_be_read_is_projected() {
        let batch = ProjectionBatch::from_messages(
            &[raw(4, "kairo.user.ann.message", v1::UserMessage::TYPE, Vec::new())],
            100,
            None,
        );
        assert_eq!((batch.changes.messages.len(), batch.skipped), (1, 0));
    }

    #[test]
    fn what_somebody_else_reports_is_skipped() {
        let batch = ProjectionBatch::from_messages(
            &[
                raw(1, "kairo.user.ann.message", v1::UserMessage::TYPE, vec![0xff; 9]),
                raw(2, "kairo.tool.bob.result", "kairo.tool.result.v9", Vec::new()),
                raw(3, "kairo.user.NOBODY.message", v1::UserMessage::TYPE, Vec::new()),
            ],
            100,
            None,
        );
        assert_eq!((batch.skipped, batch.set_aside.len()), (1, 1));
        assert_eq!((batch.changes.log.len(), batch.changes.events.len()), (3, 0));
    }

    #[test]
    fn what_nobody_else_sees_is_set_aside() {
        let thought = Body::from(AgentThought { text: "x".repeat(200), ..Default::default() }).encode();
        let batch = ProjectionBatch::from_messages(
            &[
                raw(1, "kairo.agent.bob.defined", v1::AgentDefined::TYPE, vec![0xff; 9]),
                raw(2, "kairo.agent.bob.defined", "kairo.agent.defined.v9", Vec::new()),
                raw(3, "kairo.agent.bob.defined", AgentThought::TYPE, thought),
                raw(4, "kairo.agent.bob.dreamt", AgentThought::TYPE, Vec::new()),
                raw(5, "kairo.user.ann", v1::UserMessage::TYPE, Vec::new()),
            ],
            100,
            None,
        );
        let sequences: Vec<_> = batch.set_aside.iter().map(|(message, _)| message.sequence).collect();
        assert_eq!(sequences, [1, 3, 4, 5]);
        assert_eq!(batch.skipped, 0);
    }

    #[test]
    fn an_epoch_that_this_build_does_not_read_is_the_end_of_what_it_projects() {
        let raised = |epoch| {
            let body = Body::from(Epoch { epoch, ..Default::default() });
            raw(4, "kairo.system.gateway.epoch", Epoch::TYPE, body.encode())
        };
        assert_eq!(find_newer_epoch(&raised(READER), 100), None);
        assert_eq!(find_newer_epoch(&raised(READER + 1), 100).map(|newer| newer.reader), Some(READER + 1));
        assert_eq!(find_newer_epoch(&raw(3, "kairo.user.ann.message", v1::UserMessage::TYPE, Vec::new()), 100), None);
    }

    #[test]
    fn types_that_are_not_known_are_counted() {
        let newer = |sequence| raw(sequence, "kairo.agent.bob.defined", "kairo.agent.defined.v9", Vec::new());
        let batch = ProjectionBatch::from_messages(&[newer(4), newer(7)], 100, None);
        let unknown = &batch.changes.unknown[&"kairo.agent.defined.v9".into()];
        assert_eq!(*unknown, UnknownTypeCount { messages: 2, first: 4, last: 7 });
        assert_eq!((batch.skipped, batch.set_aside.len()), (0, 0));
    }
}
