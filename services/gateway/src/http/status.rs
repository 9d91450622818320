//! `GET /v1/status`: who is there, how far each of them is, and what went wrong.

use std::time::Duration;

use async_nats::jetstream::consumer::Info;
use axum::{Extension, extract::State};
use futures::StreamExt;
use jiff::Timestamp;
use kairo_core::{bus::BusError, subjects::STATUS_PING};
use kairo_proto::{
    time,
    v1::{ConsumerRow, GetStatusResponse, LagRow, LogRow, ReplicaRow, WaitRow},
    words::WaitReason,
};
use kairo_read_model::{ReadError, ReadModel};
use prost::Message as _;

use super::{Gateway, query, sorted_json::SortedJson};
use crate::{
    auth::Caller,
    log_state::{self, LogState},
    problem::Problem,
};

/// Replicas that are listed at most.
const MAX_REPLICAS: usize = 10_000;

pub async fn get_status(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<SortedJson<GetStatusResponse>, Problem> {
    let log = async {
        read_log_status(&gateway)
            .await
            .map_err(|source| BusError::Unavailable { doing: "asking for the state", source })
    };
    let position = query::lookup_or_none(&gateway, gateway.read_model.position());
    // Of the caller's own share: whoever asks again and again takes none of the gateway's.
    let model = gateway.read_model_for(&caller, None);
    let waits = query::lookup_or_none(&gateway, read_waits(&model));
    let (services, log, position, waits, epoch) =
        tokio::join!(ping_replicas(&gateway), log, position, waits, gateway.bus.current_epoch());
    let (mut services, LogStatus { stream, consumers, dead_letters, drift }, epoch) = (services?, log?, epoch?);
    let decisions = services.iter_mut().flat_map(|replica| std::mem::take(&mut replica.waits)).collect();
    let waits = [waits.unwrap_or_default(), sum_decisions(decisions).into_iter().collect()].concat();
    let waits = waits.into_iter().map(|wait| redact_for(&caller, wait)).collect();
    // A status is wanted most when something is away: then the rest is still told.
    let lag = |position| LagRow { position, lag: stream.last_sequence.saturating_sub(position) };
    let projection = position.map(lag);
    let stream = Some(stream);
    Ok(SortedJson(GetStatusResponse { services, consumers, stream, projection, dead_letters, epoch, drift, waits }))
}

/// Reads the work that waits for people and for calls.
pub async fn read_waits(model: &ReadModel) -> Result<Vec<WaitRow>, ReadError> {
    model.snapshot().await?.list_waits().await
}

/// Returns the decisions of all replicas as one row: the oldest of them, and their number.
fn sum_decisions(decisions: Vec<WaitRow>) -> Option<WaitRow> {
    // Of a replica of a later build there may be rows for other reasons.
    let decisions = decisions.into_iter().filter(|row| row.waits_for_word() == WaitReason::Decision);
    let since = |row: &WaitRow| row.since.as_ref().and_then(time::read).unwrap_or(Timestamp::MAX);
    let mut count = 0_u64;
    let mut oldest = None::<WaitRow>;
    for row in decisions {
        count = count.saturating_add(row.count);
        if oldest.as_ref().is_none_or(|oldest| since(&row) < since(oldest)) {
            oldest = Some(row);
        }
    }
    oldest.map(|oldest| WaitRow { count, ..oldest })
}

/// Leaves out the agent, the user and the call if the caller may not see them.
fn redact_for(caller: &Caller, wait: WaitRow) -> WaitRow {
    if caller.can_see(&wait.agent, wait.user.as_deref()) {
        return wait;
    }
    WaitRow { waits_for: wait.waits_for, count: wait.count, since: wait.since, ..WaitRow::default() }
}

/// Every replica that answers, by name.
pub(super) async fn ping_replicas(gateway: &Gateway) -> Result<Vec<ReplicaRow>, BusError> {
    let client = &gateway.bus.nats()?.client;
    let wait = Duration::from_millis(gateway.config.status_wait_ms);
    let asked = async {
        let inbox = client.new_inbox();
        let answers = client.subscribe(inbox.clone()).await?;
        client.publish_with_reply(STATUS_PING, inbox, Default::default()).await?;
        Ok::<_, async_nats::Error>(answers)
    };
    let mut answers = asked.await.map_err(|source| BusError::Unavailable { doing: "asking who is there", source })?;
    let mut replicas = Vec::new();
    while let Ok(Some(answer)) = tokio::time::timeout(wait, answers.next()).await {
        replicas.extend(ReplicaRow::decode(answer.payload).ok());
        if replicas.len() >= MAX_REPLICAS {
            break;
        }
    }
    replicas.sort_by(|one, other| (&one.service, &one.instance).cmp(&(&other.service, &other.instance)));
    Ok(replicas)
}

/// The state of the log as JetStream reports it.
struct LogStatus {
    stream: LogRow,
    consumers: Vec<ConsumerRow>,
    dead_letters: u64,
    /// Differences of streams and consumers from their wanted configuration.
    drift: Vec<String>,
}

async fn read_log_status(gateway: &Gateway) -> Result<LogStatus, async_nats::Error> {
    let nats = gateway.bus.nats()?;
    let (log, drift) = tokio::join!(log_state::fetch_log_state(nats), nats.find_drift());
    let log = log?;
    let limit_bytes = log.size_limit(&gateway.config);
    let LogState { events, consumers, dead_letters, .. } = log;
    let stream = LogRow {
        messages: events.messages,
        bytes: events.bytes,
        last_sequence: events.last_sequence,
        first_sequence: events.first_sequence,
        limit_bytes,
    };
    let drift = drift?.iter().map(ToString::to_string).collect();
    Ok(LogStatus { stream, consumers: consumers.into_iter().map(consumer_row).collect(), dead_letters, drift })
}

fn consumer_row(info: Info) -> ConsumerRow {
    ConsumerRow {
        name: info.name,
        pending: info.num_pending,
        ack_pending: u64::try_from(info.num_ack_pending).unwrap_or(u64::MAX),
        redelivered: u64::try_from(info.num_redelivered).unwrap_or(u64::MAX),
        delivered: info.delivered.stream_sequence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::tests::holder;

    fn decision(count: u64, second: i64, agent: &str) -> WaitRow {
        let since = Timestamp::from_second(second).ok().map(time::message);
        WaitRow { waits_for: WaitReason::Decision.text(), count, since, agent: agent.to_owned(), ..WaitRow::default() }
    }

    #[test]
    fn the_decisions_of_all_replicas_are_one_row() {
        assert_eq!(sum_decisions(Vec::new()), None);
        let unknown = WaitRow { waits_for: "spring".to_owned(), count: 9, ..WaitRow::default() };
        let rows = vec![decision(2, 20, "ops"), unknown, decision(3, 10, "aide"), decision(1, 30, "cook")];
        assert_eq!(sum_decisions(rows), Some(decision(6, 10, "aide")));
    }

    #[test]
    fn a_key_that_is_limited_learns_only_how_much_waits() {
        let of_ann = WaitRow { user: Some("ann".to_owned()), ..decision(1, 10, "aide") };
        assert_eq!(redact_for(&holder(&[], &[], None), of_ann.clone()), of_ann);
        assert_eq!(redact_for(&holder(&[], &["aide"], Some("ann")), of_ann.clone()), of_ann);
        for (agents, user) in [(vec!["ops"], None), (vec![], Some("bob"))] {
            let seen = redact_for(&holder(&[], &agents, user), of_ann.clone());
            assert_eq!(seen, WaitRow { agent: String::new(), ..decision(1, 10, "") }, "{agents:?} {user:?}");
        }
    }
}
