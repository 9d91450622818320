//! `kairo status`

use std::{collections::BTreeSet, process::ExitCode};

use clap::Args;
use jiff::Timestamp;
use kairo_core::{bus::log_room::LogRoom, subjects};
use kairo_proto::v1::{GetStatusResponse, LagRow, LogRow, ParkedAgent, ReplicaRow};
use serde_json::Value;

use super::{GatewaySession, tool_servers, waits};
use crate::{Error, durations, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo status
  kairo status --json | jq .consumers

Exit status: 0 if every service has a replica that is ready, else 1.";

/// Show who is there, and whether anything is behind
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatusArgs {}

pub(super) async fn run(_: StatusArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let answer: Value = session.client.get("v1/status", &[]).await?;
    if session.json {
        terminal::json(&answer)?;
    }
    let status: GetStatusResponse = session.parse_answer(answer)?;
    if !session.json {
        format_status(&status, Timestamp::now()).into_iter().try_for_each(terminal::line)?;
    }
    Ok(if missing_services(&status).is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the last sequence of the log.
pub(super) async fn end_of_log(session: &GatewaySession) -> Result<u64, Error> {
    let status: GetStatusResponse = session.client.get("v1/status", &[]).await?;
    Ok(session.require_field("stream", status.stream)?.last_sequence)
}

/// Returns the services without a ready replica.
fn missing_services(status: &GetStatusResponse) -> Vec<&'static str> {
    let ready: BTreeSet<&str> =
        status.services.iter().filter(|replica| replica.ready).map(|replica| replica.service.as_str()).collect();
    subjects::Service::ALL.into_iter().map(subjects::Service::name).filter(|name| !ready.contains(name)).collect()
}

fn format_status(status: &GetStatusResponse, now: Timestamp) -> Vec<String> {
    let replicas = status.services.iter().map(|replica| {
        let ready = if replica.ready { "yes" } else { "no" }.to_owned();
        let uptime = durations::format_seconds(replica.uptime_s);
        let version = replica.version.clone();
        [replica.service.clone(), ready, uptime, version, replica.instance.clone()]
    });
    let mut lines = table(["service", "ready", "uptime", "version", "replica"], replicas);
    let reasons = status.services.iter().filter(|replica| !replica.not_ready_because.is_empty());
    lines.extend(reasons.map(|replica| format!("{}: {}", replica.instance, replica.not_ready_because)));
    let refused = status.services.iter().filter(|replica| replica.violations > 0);
    lines.extend(refused.map(describe_violations));
    let notes = status.services.iter().flat_map(|replica| replica.notes.iter().map(move |note| (replica, note)));
    lines.extend(notes.map(|(replica, note)| format!("{}: {note}", replica.instance)));
    lines.extend(missing_services(status).into_iter().map(|name| format!("{name}: no replica is ready")));
    lines.push(String::new());
    lines.extend(waits::format_waits(&status.waits, now));
    lines.extend(tool_servers::format_servers(&status.services));
    lines.extend(table(
        OWNERS,
        status.services.iter().filter(|replica| has_partitions(&replica.service)).map(owner_cells),
    ));
    lines.extend(status.services.iter().flat_map(|replica| &replica.parked).map(describe_parked_agent));
    lines.push(String::new());
    let consumers = status.consumers.iter().map(|consumer| {
        let counts = [consumer.pending, consumer.ack_pending, consumer.redelivered].map(|count| count.to_string());
        let [pending, ack_pending, redelivered] = counts;
        [consumer.name.clone(), pending, ack_pending, redelivered]
    });
    lines.extend(table(["consumer", "behind", "in hand", "redelivered"], consumers));
    lines.push(String::new());
    lines.extend(status.stream.iter().flat_map(|stream| format_log(stream, status.epoch)));
    lines.push(match &status.projection {
        Some(LagRow { position, lag }) => format!("projection    at {position}, {lag} behind"),
        None => "projection    the read model does not answer".to_owned(),
    });
    lines.push(match status.dead_letters {
        0 => "dead letters  none".to_owned(),
        count => format!("dead letters  {count}: see kairo dead-letters"),
    });
    lines.extend(status.drift.iter().map(|drift| format!("differs       {drift}: see kairo provision")));
    lines
}

/// Returns lines on the log and its problems.
fn format_log(stream: &LogRow, epoch: u32) -> Vec<String> {
    let LogRow { messages, bytes, last_sequence, first_sequence, limit_bytes } = stream;
    let kilobytes = bytes.div_ceil(1_000);
    let of = limit_bytes.map(|limit| format!(" of {} kB", limit / 1_000)).unwrap_or_default();
    let mut lines =
        vec![format!("log           {messages} messages, {kilobytes} kB{of}, up to {last_sequence}, epoch {epoch}")];
    let room = LogRoom::from_usage(*bytes, *limit_bytes);
    lines.extend((room != LogRoom::Enough).then(|| format!("room          {room}; see docs/retention.md")));
    let begins_late = format!("begins        at {first_sequence}: what stood before is gone, see docs/retention.md");
    lines.extend((*first_sequence > 1).then_some(begins_late));
    lines
}

const OWNERS: [&str; 7] =
    ["owner", "partitions", "waiting", "takeovers", "handovers", "decisions", "model requests per decision"];

/// Returns true if the replicas of a service share the log by partitions.
fn has_partitions(service: &str) -> bool {
    [subjects::Service::Router, subjects::Service::AgentRuntime].map(subjects::Service::name).contains(&service)
}

fn owner_cells(replica: &ReplicaRow) -> [String; 7] {
    let waiting: u64 = replica.partitions.iter().map(|partition| partition.waiting).sum();
    let per_decision = match replica.decisions {
        0 => "-".to_owned(),
        decisions => format!("{:.2}", replica.model_requests as f64 / decisions as f64),
    };
    let counts = [replica.takeovers, replica.handovers, replica.decisions].map(|count| count.to_string());
    let [takeovers, handovers, decisions] = counts;
    let owned = replica.partitions.len().to_string();
    [replica.instance.clone(), owned, waiting.to_string(), takeovers, handovers, decisions, per_decision]
}

fn describe_violations(replica: &ReplicaRow) -> String {
    let ReplicaRow { instance, violations, last_violation, .. } = replica;
    format!("{instance}: nats did not permit it {violations} times, at last: {last_violation}")
}

fn describe_parked_agent(parked: &ParkedAgent) -> String {
    let ParkedAgent { agent, sequence, reason, waiting, .. } = parked;
    format!("{agent} is parked at {sequence}, with {waiting} waiting: {reason}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> GetStatusResponse {
        serde_json::from_value(json!({
            "services": [
                {"service": "gateway", "instance": "gateway-1", "version": "0.1.0", "uptime_s": 61, "ready": true},
                {"service": "router", "instance": "router-1", "version": "0.1.0", "uptime_s": 5, "ready": false,
                 "not_ready_because": "the log does not take what is written: full", "takeovers": 1, "handovers": 2,
                 "partitions": [{"partition": 3, "read": 9, "waiting": 4}], "decisions": 4, "model_requests": 5,
                 "violations": 2, "last_violation": "Permissions Violation for Publish to \"kairo.x\"",
                 "notes": ["programs may use the network"],
                 "parked": [{"agent": "ann", "sequence": 7, "reader": 9, "reason": "too new", "waiting": 2}]},
            ],
            "consumers": [{"name": "router", "pending": 3, "ack_pending": 1, "redelivered": 0, "delivered": 9}],
            "stream": {"messages": 12, "bytes": 3456, "last_sequence": 12},
            "projection": null,
            "dead_letters": 2,
            "epoch": 2,
            "drift": ["stream KAIRO_DLQ: it is missing"],
        }))
        .unwrap()
    }

    #[test]
    fn a_service_that_is_not_ready_is_as_good_as_missing() {
        assert_eq!(
            missing_services(&status()),
            ["router", "agent-runtime", "tool-runner", "process-supervisor", "projector"]
        );
    }

    #[test]
    fn a_log_that_runs_out_of_room_or_has_lost_its_beginning_says_so() {
        let told = |bytes, limit_bytes, first_sequence| {
            format_log(&LogRow { messages: 5, bytes, last_sequence: 9, first_sequence, limit_bytes }, 8).join("\n")
        };
        assert_eq!(told(69_000, Some(100_000), 1), "log           5 messages, 69 kB of 100 kB, up to 9, epoch 8");
        assert_eq!(told(99_000, None, 1).lines().count(), 1, "nobody knows how much it may take");
        assert!(told(70_000, Some(100_000), 1).contains("room          the log takes 70% of what it may"));
        assert!(told(85_000, Some(100_000), 1).contains("give it more room now"));
        assert!(told(1, None, 5).contains("begins        at 5: what stood before is gone"));
    }

    #[test]
    fn everything_is_told_even_without_the_read_model() {
        let text = format_status(&status(), Timestamp::UNIX_EPOCH).join("\n");
        for part in [
            "gateway  yes    1m 1s",
            "router: no replica is ready",
            "router    3",
            "router-1: the log does not take what is written: full",
            "router-1  1           4        1          2          4          1.25",
            "router-1: programs may use the network",
            "ann is parked at 7, with 2 waiting: too new",
            "12 messages, 4 kB, up to 12, epoch 2",
            "does not answer",
            "2: see kairo dead-letters",
            "router-1: nats did not permit it 2 times, at last: Permissions Violation for Publish to",
            "stream KAIRO_DLQ: it is missing: see kairo provision",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
