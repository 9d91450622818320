//! Events as they are shown, made from the log's own bytes when they are asked for: each event is written once and
//! shown seldom.

use bytes::Bytes;
use kairo_core::{
    event_json::{self, EventJson, EventJsonMeta},
    header_lines::read_headers,
    record::{RawMessage, Record},
};
use kairo_proto::words::{EventSource, Modality};
use serde_json::json;
use uuid::Uuid;

use crate::sql_values::Time;

/// Asks for [`EventMessageRow`]s, on conditions and in an order.
macro_rules! rendered {
    ($first:literal $(+ $more:literal)*, $($parameters:tt)*) => {
        sqlx::query_as!(
            crate::event_rows::EventMessageRow,
            r#"SELECT sequence AS "sequence: U64", position AS "position: U32", event_id, correlation_id, thread_id,
                      type AS type_name, subject, headers, payload, stored AS "stored: Time"
               FROM events JOIN log USING (sequence) WHERE "# + $first $(+ $more)*,
            $($parameters)*
        )
    };
}
pub(crate) use rendered;

/// An event, and the message that it stands in.
pub struct EventMessageRow {
    pub sequence: u64,
    pub position: u32,
    pub event_id: Uuid,
    pub correlation_id: Uuid,
    pub thread_id: Option<String>,
    pub type_name: String,
    pub subject: String,
    pub headers: String,
    pub payload: Vec<u8>,
    pub stored: Time,
}

/// The events of rows, in their order.
pub fn to_events(rows: Vec<EventMessageRow>) -> Vec<EventJson> {
    // Rows of one message come one after the other.
    let mut message: (u64, Vec<EventJson>) = (0, Vec::new());
    let mut shown = Vec::with_capacity(rows.len());
    for row in rows {
        if message.0 != row.sequence {
            message = (row.sequence, read_events(&row));
        }
        let event = message.1.iter().find(|event| event.position == row.position);
        shown.push(event.cloned().unwrap_or_else(|| unknown_event(&row)));
    }
    shown
}

fn read_events(row: &EventMessageRow) -> Vec<EventJson> {
    to_record(row).map(|record| event_json::events(&record)).unwrap_or_default()
}

/// The message that an event stands in; none of one that this version cannot read.
pub fn to_record(row: &EventMessageRow) -> Option<Record> {
    let raw = RawMessage {
        sequence: row.sequence,
        subject: row.subject.clone(),
        partition: None,
        headers: read_headers(&row.headers),
        payload: Bytes::copy_from_slice(&row.payload),
        sealed: None,
        stored: row.stored.0,
    };
    raw.read(usize::MAX).ok()
}

/// An event of a type that only a newer version knows.
fn unknown_event(row: &EventMessageRow) -> EventJson {
    EventJson {
        event_id: row.event_id,
        ts: row.stored.0,
        source: EventSource::Internal.text(),
        modality: Modality::Text.text(),
        payload: json!({ "text": format!("an event of the type {}, which this version does not know", row.type_name) }),
        meta: EventJsonMeta::default(),
        type_name: row.type_name.clone(),
        sequence: row.sequence,
        position: row.position,
        subject: row.subject.clone(),
        correlation_id: row.correlation_id,
        causation_id: None,
        thread_id: row.thread_id.clone(),
        entered_by: None,
    }
}
