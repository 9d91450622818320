//! `kairo turn show --follow`: a turn as it goes on, until it ends.

use jiff::tz::TimeZone;
use kairo_core::event_json::EventJson;
use kairo_proto::words::InteractionStatus;
use uuid::Uuid;

use crate::{
    Error,
    client::{EventFilter, StreamUpdate},
    commands::GatewaySession,
    terminal,
    watch::Happening,
};

/// Shows what happens in a turn from its beginning on, and how its status changes. Returns when it has ended.
pub(super) async fn follow_turn(turn: Uuid, session: &GatewaySession) -> Result<(), Error> {
    let of_turn = EventFilter { correlation: Some(turn), ..EventFilter::default() };
    // Where it began, so that the gateway need not read all of the log.
    let first = EventFilter { limit: Some(1), ..of_turn.clone() };
    let begun = session.client.events(&first).await?.events.first().map(|event| event.sequence);
    let Some(begun) = begun else {
        let advice =
            format!("nothing is known of a turn {turn}; it is the correlation id that sending was answered with");
        return Err(Error::Advice(advice));
    };
    let after = Some(begun.saturating_sub(1));
    let mut follow = session.client.follow(EventFilter { after, ..of_turn }, false).with_turn_status();
    let mut status = InteractionStatus::Started;
    loop {
        match follow.next().await? {
            StreamUpdate::TurnStatus(change) => {
                status = change.status_word();
                if session.json {
                    terminal::json(&change)?;
                }
            }
            StreamUpdate::Event(event) => {
                if !session.json {
                    format_event(&status, &event, &TimeZone::system()).into_iter().try_for_each(terminal::row)?;
                }
                if is_end(&status) {
                    return Ok(());
                }
            }
            StreamUpdate::Live { .. } => {}
        }
    }
}

fn is_end(status: &InteractionStatus) -> bool {
    matches!(status, InteractionStatus::Completed | InteractionStatus::Failed)
}

/// Returns the line of an event: the status of the turn from it on, and its text; `None` if it says nothing to people.
fn format_event(status: &InteractionStatus, event: &EventJson, zone: &TimeZone) -> Option<String> {
    let agent = event.subject.split('.').nth(2).unwrap_or_default();
    let happening = Happening::from_event(event, agent)?;
    Some(format!("{:<10}  {}", status.as_str(), happening.line(zone)))
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_happens_is_told_with_how_far_the_turn_is() {
        let event: EventJson = serde_json::from_value(json!({
            "event_id": Uuid::nil(), "ts": "2026-01-01T00:00:00Z", "source": "internal", "modality": "text",
            "payload": { "type": "tool_call", "text": "tools.now {}" }, "meta": { "tags": [] },
            "type": v1::AgentAction::TYPE, "sequence": 3, "position": 0, "subject": "kairo.agent.bob.decision",
            "correlation_id": Uuid::nil(), "causation_id": null, "thread_id": null,
        }))
        .unwrap();
        let told = format_event(&InteractionStatus::Executing, &event, &TimeZone::UTC);
        assert_eq!(told.as_deref(), Some("executing   00:00:00  bob calls         tools.now {}"));
        assert!(is_end(&InteractionStatus::Failed) && !is_end(&InteractionStatus::Reflecting));
    }
}
