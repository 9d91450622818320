//! `/v1/dead-letters`: the messages that were set aside, newest first, and have them dealt with again.

use std::collections::{BTreeMap, HashMap};

use async_nats::jetstream::{
    message::StreamMessage,
    stream::{DirectGetErrorKind, Stream},
};
use axum::{
    Extension,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::StatusCode,
};
use futures::future::try_join_all;
use jiff::Timestamp;
use kairo_core::{
    bus::BusError,
    event_json,
    record::{RawMessage, Record},
    subjects::{Consumer, DLQ_STREAM, Service},
};
use kairo_proto::{
    time,
    v1::{
        DeadLetter, DeadLetterRetried, DeadLetterRetry, Event, ListDeadLettersResponse, RetryDeadLetterResponse,
        RetryRow,
    },
};
use uuid::Uuid;

use super::{Gateway, query, sorted_json::SortedJson};
use crate::{
    auth::Caller,
    fields::{RequestFields, parse_text},
    problem::{FieldError, Problem},
};

/// Letters asked for at once.
const AT_ONCE: u64 = 16;

pub async fn list_dead_letters(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<ListDeadLettersResponse>, Problem> {
    let mut fields = RequestFields::from_query(query.as_deref());
    let limit = query::parse_limit(&mut fields, &gateway.config);
    let limit = fields.complete(|| usize::try_from(limit).ok())?;
    let DeadLetterList { letters, retries, .. } = read_newest(&gateway, limit).await.map_err(unreadable_problem)?;
    let retries = letters.iter().filter_map(|letter| retries.get(&letter.sequence).cloned()).collect();
    Ok(SortedJson(ListDeadLettersResponse { dead_letters: letters, retries }))
}

/// Has the service that wrote a letter deal with its message again.
pub async fn retry_dead_letter(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
) -> Result<(StatusCode, SortedJson<RetryDeadLetterResponse>), Problem> {
    let sequence = path_sequence(path)?;
    let found = async {
        // No stream has a message 0, and none is asked for one.
        if sequence == 0 {
            return Ok(None);
        }
        let stream = gateway.bus.nats()?.jetstream.get_stream_no_info(DLQ_STREAM).await?;
        fetch_letter(&stream, sequence).await
    };
    let record = found
        .await
        .map_err(unreadable_problem)?
        .and_then(|message| decode_letter(message, gateway.bus.limits.max_body_bytes));
    let letter = record.as_ref().and_then(|record| DeadLetter::of(&record.body));
    let none = || {
        Problem::not_found(format!("there is no dead letter {sequence}; GET /v1/dead-letters lists those there are"))
    };
    let (service, order) = build_retry(sequence, letter.ok_or_else(none)?)?;
    let retry_id = gateway.bus.retry_dead_letter(&caller.principal(), service, order).await?;
    tracing::info!(letter = sequence, service = service.name(), %retry_id, "a dead letter is to be dealt with again");
    let told = RetryDeadLetterResponse {
        letter: sequence,
        retry_id: retry_id.to_string(),
        service: service.name().to_owned(),
    };
    Ok((StatusCode::ACCEPTED, SortedJson(told)))
}

fn path_sequence(path: Result<Path<String>, PathRejection>) -> Result<u64, Problem> {
    let given = path.map(|Path(given)| given).unwrap_or_default();
    parse_text(&given).ok_or_else(|| {
        let expected = "the sequence of a letter, as GET /v1/dead-letters tells it".to_owned();
        let found = Some(given.chars().take(80).collect());
        Problem::invalid_fields(vec![FieldError { field: "letter".to_owned(), expected, found }])
    })
}

/// Returns the service that handles a dead letter again, and its retry order.
fn build_retry(sequence: u64, letter: &DeadLetter) -> Result<(Service, DeadLetterRetry), Problem> {
    let DeadLetter { consumer, stream, sequence: message, .. } = letter;
    if consumer == Service::Projector.name() {
        return Err(Problem::conflict(
            "rows of a read model are made again all together: POST /v1/projections/read-model/rebuild reads this message again, \
             too",
        ));
    }
    let known = Consumer::from_dead_letter(consumer);
    let known = known.ok_or_else(|| Problem::conflict(format!("this version knows no consumer {consumer}")))?;
    let order =
        DeadLetterRetry { letter: sequence, consumer: consumer.clone(), stream: stream.clone(), sequence: *message };
    Ok((known.service(), order))
}

fn unreadable_problem(source: async_nats::Error) -> Problem {
    BusError::Unavailable { doing: "reading the dead letters", source }.into()
}

/// Dead letters and their retries, read from the newest back.
#[derive(Default)]
struct DeadLetterList {
    letters: Vec<Event>,
    /// The newest order of each letter.
    retries: BTreeMap<u64, RetryRow>,
    /// The outcomes of retry orders, by the orders' ids.
    outcomes: HashMap<Uuid, DeadLetterRetried>,
}

impl DeadLetterList {
    /// Takes in a record that is older than all taken in so far.
    fn add_record(&mut self, record: &Record) {
        let Record { envelope, body, .. } = record;
        if let (Some(retried), Some(order)) = (DeadLetterRetried::of(body), envelope.causation_id) {
            self.outcomes.insert(order, retried.clone());
        } else if let Some(order) = DeadLetterRetry::of(body) {
            let told = self.outcomes.remove(&envelope.id);
            let (outcome, reason) = told.map_or((None, String::new()), |told| (Some(told.outcome), told.reason));
            let asked_at = Some(time::message(envelope.time));
            let row = RetryRow { letter: order.letter, retry_id: envelope.id.to_string(), asked_at, outcome, reason };
            self.retries.entry(order.letter).or_insert(row);
        } else if DeadLetter::of(body).is_some() {
            self.letters.extend(event_json::events(record).pop().map(Event::from));
        }
    }
}

async fn read_newest(gateway: &Gateway, limit: usize) -> Result<DeadLetterList, async_nats::Error> {
    let stream = gateway.bus.nats()?.jetstream.get_stream_no_info(DLQ_STREAM).await?;
    let state = stream.get_info().await?.state;
    let mut found = DeadLetterList::default();
    let mut end = state.last_sequence;
    while found.letters.len() < limit && end >= state.first_sequence.max(1) {
        let start = end.saturating_sub(AT_ONCE - 1).max(state.first_sequence).max(1);
        for letter in try_join_all((start..=end).rev().map(|sequence| fetch_letter(&stream, sequence))).await? {
            // The server's own advisories lie here too, and are no letters.
            let record = letter.and_then(|letter| decode_letter(letter, gateway.bus.limits.max_body_bytes));
            record.iter().for_each(|record| found.add_record(record));
        }
        end = start - 1;
    }
    found.letters.truncate(limit);
    Ok(found)
}

/// The letter at this place; none if an operator removed it.
async fn fetch_letter(stream: &Stream<()>, sequence: u64) -> Result<Option<StreamMessage>, async_nats::Error> {
    match stream.direct_get(sequence).await {
        Ok(letter) => Ok(Some(letter)),
        Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn decode_letter(letter: StreamMessage, max_body: usize) -> Option<Record> {
    let raw = RawMessage {
        sequence: letter.sequence,
        subject: letter.subject.to_string(),
        partition: None,
        headers: letter.headers,
        payload: letter.payload,
        sealed: None,
        stored: Timestamp::UNIX_EPOCH,
    };
    raw.read(max_body).ok()
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    fn letter_of(consumer: &str) -> DeadLetter {
        DeadLetter { consumer: consumer.into(), stream: "KAIRO_EVENTS".into(), sequence: 7, ..Default::default() }
    }

    #[test]
    fn whoever_wrote_a_letter_is_told_to_deal_with_it_again() {
        let (service, order) = build_retry(3, &letter_of("tool-runner-processes")).unwrap();
        assert_eq!((service, order.letter, order.sequence), (Service::ToolRunner, 3, 7));
        for (consumer, named) in [("projector", "rebuild"), ("nobody", "nobody")] {
            let problem = build_retry(3, &letter_of(consumer)).unwrap_err();
            assert_eq!(problem.status, StatusCode::CONFLICT);
            assert!(problem.detail.contains(named), "{}", problem.detail);
        }
    }

    #[test]
    fn of_each_letter_the_newest_retry_is_told_with_what_came_of_it() {
        let record = |sequence: u64, id: u128, cause: Option<u128>, subject: &str, body: kairo_proto::Body| {
            let id = Uuid::from_u128(id);
            let entering = kairo_core::envelope::Envelope::from_outside(
                id,
                Service::Gateway,
                kairo_core::envelope::Origin::System,
                Timestamp::UNIX_EPOCH,
            );
            let envelope = kairo_core::envelope::Envelope {
                type_name: body.type_name().to_owned(),
                causation_id: cause.map(Uuid::from_u128),
                ..entering
            };
            Record { sequence, subject: subject.to_owned(), envelope, body }
        };
        let order = |sequence, id, letter| {
            record(
                sequence,
                id,
                None,
                "kairo.dlq.router.retry",
                DeadLetterRetry { letter, ..Default::default() }.into(),
            )
        };
        let retried = DeadLetterRetried { letter: 1, outcome: "failed".into(), reason: "away".into() };
        let mut found = DeadLetterList::default();
        let all = [
            order(9, 90, 2),
            record(8, 80, Some(70), "kairo.dlq.router.retried", retried.into()),
            order(7, 70, 1),
            order(6, 60, 1),
            record(2, 20, None, "kairo.dlq.router.letter", letter_of("router").into()),
            record(1, 10, None, "kairo.dlq.router.letter", letter_of("router").into()),
        ];
        all.iter().for_each(|record| found.add_record(record));
        let told: Vec<_> =
            found.retries.values().map(|it| (it.letter, it.outcome.as_deref(), it.reason.as_str())).collect();
        assert_eq!(told, [(1, Some("failed"), "away"), (2, None, "")]);
        let sequences: Vec<u64> = found.letters.iter().map(|letter| letter.sequence).collect();
        assert_eq!(sequences, [2, 1]);
    }
}
