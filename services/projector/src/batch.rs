//! Turning a stretch of the log into changes, and deciding what becomes of what cannot be read. Pure.

use kairo_core::{
    record::{Raw, Unreadable},
    subjects::{TABLE, is_announcement},
};

use crate::{changes::Changes, projections};

/// What a stretch of the log leads to.
#[derive(Debug, Default)]
pub struct Batch {
    pub changes: Changes,
    /// Sequence of the last message; 0 for none.
    pub last: u64,
    /// Messages that nobody else reports, with the reason.
    pub set_aside: Vec<(Raw, String)>,
    /// Messages that cannot be read but are somebody else's to report.
    pub skipped: usize,
}

impl Batch {
    /// `max_body` in bytes.
    pub fn of(messages: &[Raw], max_body: usize) -> Self {
        let mut batch = Self::default();
        for message in messages {
            batch.add(message, max_body);
        }
        batch
    }

    /// The same stretch, changing nothing but the position.
    pub fn without_changes(self) -> Self {
        Self { changes: Changes::default(), ..self }
    }

    fn add(&mut self, message: &Raw, max_body: usize) {
        self.last = self.last.max(message.sequence);
        match message.read(max_body) {
            Ok(record) => projections::project(&record, &mut self.changes),
            Err(reason) => self.pass_over(message, &reason),
        }
    }

    fn pass_over(&mut self, message: &Raw, reason: &Unreadable) {
        if is_consumed(&message.subject) {
            self.skipped += 1;
        } else {
            self.set_aside.push((message.clone(), reason.to_string()));
        }
    }
}

/// Whether a durable consumer is given this subject, and so reports what it cannot read. Looser than
/// [`kairo_core::subjects::route`], as a consumer's filter takes any owner. What other systems say is the router's to
/// report.
fn is_consumed(subject: &str) -> bool {
    let tokens: Vec<&str> = subject.split('.').collect();
    match tokens[..] {
        ["kairo", "system", ..] => !is_announcement(subject),
        ["kairo", noun, _, verb] => {
            TABLE.iter().any(|route| route.noun == noun && route.verb == verb && !route.consumers.is_empty())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use async_nats::HeaderMap;
    use kairo_core::{
        envelope::{Envelope, Origin},
        subjects::Service,
    };
    use kairo_proto::{Body, v1::AgentThought};
    use uuid::Uuid;

    use super::*;

    fn raw(sequence: u64, subject: &str, type_name: &str, body: Vec<u8>) -> Raw {
        let stored = "2026-11-21T10:00:00Z".parse().unwrap();
        let envelope = Envelope::entering(Uuid::from_u128(1), Service::Gateway, Origin::User, stored);
        let mut headers = HeaderMap::new();
        for (name, value) in (Envelope { type_name: type_name.to_owned(), ..envelope }).to_headers() {
            headers.insert(name, value.as_str());
        }
        Raw { sequence, subject: subject.to_owned(), headers, payload: body.into(), stored }
    }

    #[test]
    fn what_can_be_read_is_projected() {
        let batch = Batch::of(&[raw(4, "kairo.user.ann.message", "kairo.user.message.v1", Vec::new())], 100);
        assert_eq!((batch.last, batch.changes.messages.len(), batch.skipped), (4, 1, 0));
        assert_eq!(batch.without_changes().changes, Changes::default());
    }

    #[test]
    fn what_a_consumer_reports_is_skipped() {
        let batch = Batch::of(
            &[
                raw(1, "kairo.user.ann.message", "kairo.user.message.v1", vec![0xff; 9]),
                raw(2, "kairo.tool.bob.result", "kairo.tool.result.v9", Vec::new()),
                raw(3, "kairo.user.NOBODY.message", "kairo.user.message.v1", Vec::new()),
            ],
            100,
        );
        assert_eq!((batch.last, batch.skipped, batch.set_aside.len()), (3, 3, 0));
        assert_eq!(batch.changes, Changes::default());
    }

    #[test]
    fn what_nobody_else_sees_is_set_aside() {
        let thought = Body::from(AgentThought { text: "x".repeat(200) }).encode();
        let batch = Batch::of(
            &[
                raw(1, "kairo.agent.bob.defined", "kairo.agent.defined.v1", vec![0xff; 9]),
                raw(2, "kairo.agent.bob.defined", "kairo.agent.defined.v9", Vec::new()),
                raw(3, "kairo.agent.bob.defined", "kairo.agent.thought.v1", thought),
                raw(4, "kairo.agent.bob.dreamt", "kairo.agent.thought.v1", Vec::new()),
                raw(5, "kairo.user.ann", "kairo.user.message.v1", Vec::new()),
            ],
            100,
        );
        let sequences: Vec<_> = batch.set_aside.iter().map(|(message, _)| message.sequence).collect();
        assert_eq!(sequences, [1, 2, 3, 4, 5]);
        assert_eq!((batch.last, batch.skipped), (5, 0));
    }
}
