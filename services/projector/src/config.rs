//! The configuration of projector.

use std::time::Duration;

use kairo_backup::archive_reader::ArchiveConfig;
use kairo_core::{
    config::{Mistake, Validate, check},
    service_config,
};
use kairo_read_model::{PostgresConfig, search::SearchConfig};
use serde::{Deserialize, Serialize};

service_config! {
    /// The whole configuration of projector.
    Config {
        /// The settings for reading the log and for sharing the partitions among replicas.
        projector: ProjectorConfig,
        /// The database of the read model.
        postgres: PostgresConfig,
        /// The search engine, if there is one.
        search: SearchConfig,
        /// The archive of a trimmed log.
        archive: ArchiveConfig,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectorConfig {
    /// Maximum number of messages in one transaction. Default 1000.
    pub batch: usize,
    /// Maximum number of messages in one transaction for a read model built beside the live one: fewer transactions
    /// take less time in all, and nobody waits for one. Default 10000.
    pub rebuild_batch: usize,
    /// Maximum bytes of bodies in one transaction; a single larger body is let through. Default 8388608.
    pub batch_bytes: usize,
    /// Longest time a message waits for others to share its transaction, in milliseconds. Default 10.
    pub linger_ms: u64,
    /// Longest silence of the replica that writes, in milliseconds, after which Postgres ends its session and another
    /// replica takes over. It sends a sign of life every third of that time. Default 10000.
    pub session_timeout_ms: u64,
    /// Parts that replicas share the log by, each of them some of the log's partitions (`nats.partitions`); more
    /// replicas than these stand by. It counts for generations that are begun from then on. Default 8.
    pub partitions: u32,
    /// Interval at which replicas check that they hold their share of the partitions and what read models being built
    /// need, in milliseconds; a partition without an owner is taken over within that time. Default 1000.
    pub rebalance_ms: u64,
    /// End, with exit status 0, as soon as the read model of this version answers queries: for a job that builds it
    /// beside the live one before the services of a new version are started. Default false.
    pub until_live: bool,
}

impl Default for ProjectorConfig {
    fn default() -> Self {
        Self {
            batch: 1_000,
            rebuild_batch: 10_000,
            batch_bytes: 8 * 1024 * 1024,
            linger_ms: 10,
            session_timeout_ms: 10_000,
            partitions: 8,
            rebalance_ms: 1_000,
            until_live: false,
        }
    }
}

impl ProjectorConfig {
    pub(crate) fn session_timeout(&self) -> Duration {
        Duration::from_millis(self.session_timeout_ms)
    }

    /// Returns the longest pause between two uses of a session.
    pub(crate) fn heartbeat_interval(&self) -> Duration {
        Duration::from_millis(self.rebalance_ms).min(self.session_timeout() / 3)
    }
}

impl Validate for ProjectorConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check(&mut mistakes, "batch", self.batch as u64, 1..=10_000, "messages");
        check(&mut mistakes, "rebuild_batch", self.rebuild_batch as u64, 1..=100_000, "messages");
        check(&mut mistakes, "batch_bytes", self.batch_bytes as u64, 1_024..=256 * 1024 * 1024, "bytes");
        check(&mut mistakes, "linger_ms", self.linger_ms, 0..=1_000, "milliseconds");
        check(&mut mistakes, "session_timeout_ms", self.session_timeout_ms, 300..=600_000, "milliseconds");
        check(&mut mistakes, "rebalance_ms", self.rebalance_ms, 50..=60_000, "milliseconds");
        check(&mut mistakes, "partitions", self.partitions, 1..=256, "partitions");
        mistakes
    }
}
