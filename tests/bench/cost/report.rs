//! The costs of decisions, as a table for people and as JSON.

use std::fmt;

use serde::Serialize;

use super::{Case, Workload, messages_in};
use crate::arguments::{Cost, Fault};

/// The services whose messages are shown one by one.
const SHOWN: [(&str, &str); 4] = [
    ("kairo-router", "router"),
    ("kairo-agent-runtime", "agents"),
    ("kairo-tool-runner", "tools"),
    ("kairo-gateway", "gateway"),
];

#[derive(Debug, Serialize)]
pub struct Report {
    model_delay_ms: u64,
    cases: Vec<Figures>,
}

#[derive(Debug, Serialize)]
struct Figures {
    #[serde(flatten)]
    case: Case,
    /// Requests for each completion that a decision holds.
    requests_per_needed: f64,
    /// Requests whose answers no decision holds.
    extra_requests: u64,
    /// Over all connections and both directions.
    nats_messages_per_decision: f64,
}

impl Report {
    pub fn new(wanted: &Cost, cases: Vec<Case>) -> Self {
        Self { model_delay_ms: wanted.delay_ms, cases: cases.into_iter().map(Figures::of).collect() }
    }
}

impl Figures {
    fn of(case: Case) -> Self {
        Self {
            requests_per_needed: case.model_requests as f64 / case.completions.max(1) as f64,
            extra_requests: case.model_requests.saturating_sub(case.completions),
            nats_messages_per_decision: messages_in(&case.traffic) as f64 / case.decisions.max(1) as f64,
            case,
        }
    }

    /// Messages of one service a decision, in both directions.
    fn of_service(&self, name: &str) -> f64 {
        let traffic = self.case.traffic.get(name).copied().unwrap_or_default();
        (traffic.received + traffic.sent) as f64 / self.case.decisions.max(1) as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nmodel of {} ms; replicas of agent-runtime and of router\n", self.model_delay_ms)?;
        let (model, nats) = ("model requests", "NATS messages a decision");
        writeln!(f, "{:38}{:>10}{:>10}{model:>36}{nats:>48}", "", "", "")?;
        write!(f, "{:<24}{:>9}{:>5}{:>10}{:>10}", "messages", "replicas", "", "replies", "decisions")?;
        write!(f, "{:>9}{:>8}{:>7}{:>12}{:>8}", "needed", "made", "ratio", "in killed", "all")?;
        SHOWN.iter().try_for_each(|(_, name)| write!(f, "{name:>9}"))?;
        writeln!(f, "{:>9}{:>9}{:>9}", "idle/s", "seconds", "model")?;
        self.cases.iter().try_for_each(|figures| write!(f, "{figures}"))?;
        writeln!(
            f,
            "\naims: without faults as many requests made as needed; after a kill no more beyond them than were open in \
             what was killed"
        )
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let case = &self.case;
        let sent = match case.workload {
            Workload::Wide => format!("{} agents x {}", case.agents, case.messages / case.agents.max(1)),
            Workload::Deep => format!("1 agent x {}", case.messages),
        };
        let fault = if case.fault == Fault::None { "" } else { case.fault.name() };
        write!(f, "{sent:<24}{:>9}{fault:>5}{:>10}{:>10}", case.replicas, case.replies, case.decisions)?;
        write!(f, "{:>9}{:>8}{:>7.2}", case.completions, case.model_requests, self.requests_per_needed)?;
        write!(f, "{:>12}{:>8.1}", case.open_in_killed, self.nats_messages_per_decision)?;
        SHOWN.iter().try_for_each(|(name, _)| write!(f, "{:>9.1}", self.of_service(name)))?;
        writeln!(f, "{:>9.1}{:>9.1}{:>9.1}", case.idle_messages_per_second, case.seconds, case.model_seconds)
    }
}
