//! The presence of workers, for the status.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use kairo_proto::{
    v1::{ToolServerRow, WithheldToolRow},
    words::{ToolServerState, ToolSource},
};

/// The last known state of all workers, by name.
#[derive(Clone, Debug, Default)]
pub struct Presence(Arc<Mutex<BTreeMap<String, PresenceEntry>>>);

#[derive(Clone, Debug)]
struct PresenceEntry {
    prefix: String,
    replicas: usize,
    state: ToolServerState,
    since: Option<Timestamp>,
    rejected: BTreeMap<String, String>,
}

impl Presence {
    /// Notes how many replicas of a worker are there now, and its tools that are left out, with the reason.
    pub fn note(&self, name: &str, prefix: &str, replicas: usize, rejected: &BTreeMap<String, String>, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = all.entry(name.to_owned()).or_insert_with(|| PresenceEntry {
            prefix: prefix.to_owned(),
            replicas: 0,
            state: ToolServerState::Starting,
            since: None,
            rejected: BTreeMap::new(),
        });
        noted.replicas = replicas;
        if noted.rejected != *rejected {
            noted.rejected = rejected.clone();
        }
        let state = match (replicas, &noted.state) {
            (0, ToolServerState::Starting) => ToolServerState::Starting,
            (0, _) => ToolServerState::Down,
            _ => ToolServerState::Up,
        };
        if state != noted.state {
            (noted.state, noted.since) = (state, Some(now));
        }
    }

    /// The first segment of the names of a worker's tools.
    pub fn prefix(&self, worker: &str) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(worker).map(|noted| noted.prefix.clone())
    }

    /// The state of each.
    pub fn states(&self) -> Vec<(String, ToolSource, ToolServerState)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(name, noted)| (name.clone(), ToolSource::Worker, noted.state.clone())).collect()
    }

    /// Returns the status row of each worker.
    pub fn rows(&self) -> Vec<ToolServerRow> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |(name, noted): (&String, &PresenceEntry)| {
            let left_out = noted
                .rejected
                .iter()
                .map(|(name, reason)| WithheldToolRow { name: name.clone(), reason: reason.clone() });
            ToolServerRow {
                name: name.clone(),
                source: ToolSource::Worker.text(),
                state: noted.state.text(),
                since: noted.since.map(kairo_proto::time::message),
                left_out: left_out.collect(),
                replicas: u32::try_from(noted.replicas).unwrap_or(u32::MAX),
                ..ToolServerRow::default()
            }
        };
        all.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_starts_comes_and_goes() {
        let presence = Presence::default();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let told = || {
            let row = presence.rows().pop().unwrap();
            (row.state, row.replicas, row.since.map(|since| since.seconds))
        };
        let rejected = BTreeMap::from([("a b".to_owned(), "its name".to_owned())]);
        for (second, replicas, state, since) in [
            (1, 0, "starting", None),
            (2, 1, "up", Some(2)),
            (3, 2, "up", Some(2)),
            (4, 0, "down", Some(4)),
            (5, 1, "up", Some(5)),
        ] {
            presence.note("bank", "billing", replicas, &rejected, at(second));
            assert_eq!(told(), (state.to_owned(), u32::try_from(replicas).unwrap(), since));
        }
        assert_eq!(presence.rows()[0].left_out[0].name, "a b");
        assert_eq!(presence.prefix("bank").as_deref(), Some("billing"));
        assert_eq!(presence.prefix("shop"), None);
    }
}
