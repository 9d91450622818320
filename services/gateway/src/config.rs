//! What the gateway is configured with.

use std::net::SocketAddr;

use kairo_core::{
    config::{Mistake, Validate, check},
    service_config,
};
use kairo_read_model::{MAX_ROWS, PostgresConfig};
use serde::{Deserialize, Serialize};

service_config! {
    /// Everything the gateway is configured with.
    Config {
        /// Where it listens, and what it takes.
        gateway: GatewayConfig,
        /// The read model that queries are answered from.
        postgres: PostgresConfig,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// Where it listens; port 0 takes a free one. Default `127.0.0.1:7420`.
    pub listen: SocketAddr,
    /// Whether `listen` may be an address that other machines reach. Nobody is asked who they are, so whoever reaches
    /// it may do everything. Default false.
    pub allow_remote: bool,
    /// Longest text of a message, in bytes. Default 65536.
    pub max_text_bytes: usize,
    /// Longest prompt of an agent's profile, in bytes. Default 65536.
    pub max_prompt_bytes: usize,
    /// Largest body of a request, in bytes. Default 524288: JSON may write a byte of text as six.
    pub max_body_bytes: usize,
    /// Rows of an answer where the client does not say. Default 100.
    pub default_limit: u32,
    /// Rows of an answer at most. Default 1000.
    pub max_limit: u32,
    /// Event streams and WebSocket connections open at once; more are refused. Default 1000.
    pub max_streams: usize,
    /// Events and live pieces that wait for the client of one stream, and messages asked of the log at once. Default 64.
    pub stream_buffer: usize,
    /// Subscriptions of one WebSocket connection at once. Default 16.
    pub ws_subscriptions: usize,
    /// How long supervisors may take to tell who has just begun to listen what an agent's processes wrote so far, in
    /// milliseconds. Default 1000.
    pub tail_wait_ms: u64,
    /// Newest messages of the log that are kept for all streams; a stream that is further behind reads the log itself.
    /// Default 1024.
    pub shared_messages: usize,
    /// Pause after which a silent event stream shows that it is alive, and after which a WebSocket client is asked
    /// whether it is, in milliseconds. A client that is silent for two of them is gone. Default 15000.
    pub heartbeat_ms: u64,
    /// How long services may keep silent before a status is complete, in milliseconds. Default 300.
    pub status_wait_ms: u64,
    /// Longest answer of the read model, in milliseconds. Default 5000.
    pub query_timeout_ms: u64,
    /// Longest answer of the read model where the client can be answered without it, in milliseconds: whether a
    /// message is known, and how far the read model is. Default 250.
    pub lookup_timeout_ms: u64,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7420)),
            allow_remote: false,
            max_text_bytes: 64 * 1024,
            max_prompt_bytes: 64 * 1024,
            max_body_bytes: 512 * 1024,
            default_limit: 100,
            max_limit: MAX_ROWS,
            max_streams: 1_000,
            stream_buffer: 64,
            ws_subscriptions: 16,
            tail_wait_ms: 1_000,
            shared_messages: 1_024,
            heartbeat_ms: 15_000,
            status_wait_ms: 300,
            query_timeout_ms: 5_000,
            lookup_timeout_ms: 250,
        }
    }
}

impl Validate for GatewayConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let found = &mut mistakes;
        check(found, "max_text_bytes", self.max_text_bytes, 1..=262_144, "bytes");
        check(found, "max_prompt_bytes", self.max_prompt_bytes, 1..=262_144, "bytes");
        check(found, "max_body_bytes", self.max_body_bytes, 1_024..=16_777_216, "bytes");
        check(found, "max_limit", self.max_limit, 1..=MAX_ROWS, "rows");
        check(found, "default_limit", self.default_limit, 1..=self.max_limit, "rows (at most max_limit)");
        check(found, "max_streams", self.max_streams, 1..=100_000, "streams");
        check(found, "stream_buffer", self.stream_buffer, 1..=1_000, "messages");
        check(found, "ws_subscriptions", self.ws_subscriptions, 1..=1_000, "subscriptions");
        check(found, "tail_wait_ms", self.tail_wait_ms, 10..=60_000, "milliseconds");
        check(found, "shared_messages", self.shared_messages, 1..=1_000_000, "messages");
        check(found, "heartbeat_ms", self.heartbeat_ms, 100..=300_000, "milliseconds");
        check(found, "status_wait_ms", self.status_wait_ms, 10..=10_000, "milliseconds");
        check(found, "query_timeout_ms", self.query_timeout_ms, 10..=60_000, "milliseconds");
        check(found, "lookup_timeout_ms", self.lookup_timeout_ms, 1..=10_000, "milliseconds");
        if !self.listen.ip().is_loopback() && !self.allow_remote {
            let problem =
                format!("{} is reached by other machines, and the gateway asks nobody who they are", self.listen);
            let advice = "listen on 127.0.0.1, or set allow_remote = true if the network lets in only those who may do everything";
            found.push(Mistake::new("listen", problem, advice));
        }
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_let_in_only_on_purpose() {
        let open = GatewayConfig { listen: "0.0.0.0:7420".parse().unwrap(), ..Default::default() };
        let mistakes = open.mistakes();
        assert_eq!(mistakes.iter().map(|mistake| mistake.key.as_str()).collect::<Vec<_>>(), ["listen"]);
        assert!(GatewayConfig { allow_remote: true, ..open }.mistakes().is_empty());
        assert!(GatewayConfig::default().mistakes().is_empty());
    }
}
