//! Reports the MCP servers and the workers of this replica to the status and a metric.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use futures::future::join_all;
use jiff::Timestamp;
use kairo_core::{
    bus::Bus,
    metrics::{Metrics, table::TOOL_SERVER_UP},
};
use kairo_proto::{
    v1::{ToolServerRow, WithheldToolRow},
    words::{ToolServerState, ToolSource},
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::ToolsConfig,
    mcp::{HealthState, ServerHealth, shorten_text},
    published_catalogue::PublishedCatalogue,
    redaction::Redaction,
    toolbox::Toolbox,
    workers::Presence,
};

/// Servers that are told of with all that is known of them: of more, their state and their last error.
const TOLD_WHOLE: usize = 30;
/// Tools that are left out, and notes, that are told of one server.
const LEFT_OUT: usize = 20;
const NOTES: usize = 10;
/// Longest reason, note or error, in characters.
const TEXT_CHARS: usize = 300;
/// A standard error of so many bytes was cut at its beginning.
const STDERR_BYTES: usize = 2_048;

/// The state of the tool servers. Keeps none of them alive.
pub struct ToolServers {
    bus: Bus,
    toolbox: Weak<Toolbox>,
    catalogue: Weak<PublishedCatalogue>,
    presence: Presence,
    redactions: BTreeMap<String, Redaction>,
    /// Since when each MCP server is in its state.
    since: Mutex<BTreeMap<String, (ToolServerState, Timestamp)>>,
}

impl ToolServers {
    pub fn new(
        bus: &Bus,
        config: &ToolsConfig,
        toolbox: &Arc<Toolbox>,
        catalogue: &Arc<PublishedCatalogue>,
        presence: Presence,
    ) -> Arc<Self> {
        let redactions = config.mcp.iter().map(|server| (server.name.clone(), Redaction::of(server)));
        let servers = Arc::new(Self {
            bus: bus.clone(),
            toolbox: Arc::downgrade(toolbox),
            catalogue: Arc::downgrade(catalogue),
            presence,
            redactions: redactions.collect(),
            since: Mutex::default(),
        });
        servers.observe(&bus.metrics);
        servers
    }

    fn observe(self: &Arc<Self>, metrics: &Metrics) {
        let servers = Arc::downgrade(self);
        metrics.observe(&TOOL_SERVER_UP, move |say| {
            for row in servers.upgrade().iter().flat_map(|servers| servers.note_states()) {
                let (name, source, state) = row;
                say(f64::from(state == ToolServerState::Up), &[&name, source.as_str()]);
            }
        });
    }

    /// Notes when states change, until `shutdown`.
    pub async fn note_changes(&self, shutdown: CancellationToken) {
        let changes = self.toolbox.upgrade().map(|toolbox| toolbox.mcp_changes()).unwrap_or_default();
        let watched = changes.into_iter().map(|mut changes| async move {
            while changes.changed().await.is_ok() {
                self.note_states();
            }
        });
        shutdown.run_until_cancelled(join_all(watched)).await;
    }

    /// Returns the status row of each server, by name.
    pub fn rows(&self) -> Vec<ToolServerRow> {
        let toolbox = self.toolbox.upgrade();
        let catalogue = self.catalogue.upgrade();
        let withheld = catalogue.as_ref().map(|catalogue| catalogue.all_withheld()).unwrap_or_default();
        let mut rows = self.presence.rows();
        for (name, health) in toolbox.iter().flat_map(|toolbox| toolbox.mcp_health()) {
            rows.push(self.mcp_row(&name, health));
        }
        for row in &mut rows {
            let of_worker =
                (row.source_word() == ToolSource::Worker).then(|| self.presence.prefix(&row.name)).flatten();
            let prefix = of_worker.unwrap_or_else(|| row.name.clone()) + ".";
            let of_row = withheld.iter().filter_map(|(tool, reason)| Some((tool.strip_prefix(&prefix)?, reason)));
            for (name, reason) in of_row {
                if !row.left_out.iter().any(|left_out| left_out.name == name) {
                    row.left_out
                        .push(WithheldToolRow { name: name.to_owned(), reason: shorten_text(reason, TEXT_CHARS) });
                }
            }
            if let Some(catalogue) = &catalogue {
                row.tools = catalogue.count_with_prefix(&prefix);
            }
            row.left_out.truncate(LEFT_OUT);
        }
        rows.sort_by(|one, other| (&one.name, &one.source).cmp(&(&other.name, &other.source)));
        for row in rows.iter_mut().skip(TOLD_WHOLE) {
            row.left_out.clear();
            row.notes.clear();
            row.stderr_end.clear();
        }
        rows
    }

    fn mcp_row(&self, name: &str, health: ServerHealth) -> ToolServerRow {
        let since = self.note_state(name, &health);
        let ServerHealth { protocol, left_out, notes, last_error, stderr_end, .. } = health;
        let redaction = self.redactions.get(name).cloned().unwrap_or_default();
        let redacted = |text: &str| shorten_text(&redaction.redact(text), TEXT_CHARS);
        let left_out =
            left_out.iter().map(|(name, reason)| WithheldToolRow { name: redacted(name), reason: redacted(reason) });
        let newest = notes.iter().skip(notes.len().saturating_sub(NOTES));
        ToolServerRow {
            name: name.to_owned(),
            source: ToolSource::Mcp.text(),
            state: since.0.text(),
            since: since.1.map(kairo_proto::time::message),
            protocol: protocol.unwrap_or_default(),
            tools: 0,
            left_out: left_out.collect(),
            notes: newest.map(|note| redacted(note)).collect(),
            last_error: redacted(&last_error.unwrap_or_default()),
            stderr_end: redaction.redact_end(&stderr_end, stderr_end.len() >= STDERR_BYTES),
            replicas: 0,
        }
    }

    /// The state of each, which is noted with it.
    fn note_states(&self) -> Vec<(String, ToolSource, ToolServerState)> {
        let toolbox = self.toolbox.upgrade();
        let of_mcp = toolbox.iter().flat_map(|toolbox| toolbox.mcp_health());
        let of_mcp = of_mcp.map(|(name, health)| {
            let (state, _) = self.note_state(&name, &health);
            (name, ToolSource::Mcp, state)
        });
        of_mcp.chain(self.presence.states()).collect()
    }

    /// The state, and since when it is the same.
    fn note_state(&self, name: &str, health: &ServerHealth) -> (ToolServerState, Option<Timestamp>) {
        let state = match health.state {
            HealthState::Starting => return (ToolServerState::Starting, None),
            HealthState::Up => ToolServerState::Up,
            HealthState::Down => ToolServerState::Down,
            HealthState::Stopped => ToolServerState::Stopped,
        };
        let now = self.bus.now();
        let mut noted = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, since) = noted.entry(name.to_owned()).or_insert_with(|| (state.clone(), now));
        if *known != state {
            (*known, *since) = (state.clone(), now);
        }
        (state, Some(*since))
    }
}
