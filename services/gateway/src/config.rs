//! The configuration of the gateway.

#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use kairo_agent_runtime::ModelsConfig;
use kairo_backup::archive_reader::ArchiveConfig;
use kairo_core::{
    config::{Mistake, Secret, Validate, check},
    ids::Name,
    prices::{ModelPrice, ModelPrices, MoneyAmount},
    service_config,
    signing::SigningConfig,
};
use kairo_read_model::{MAX_ROWS, PostgresConfig, search::SearchConfig};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    auth::{
        Scope,
        oidc::{self, config::OidcConfig},
    },
    caps::config::CapsConfig,
};

service_config! {
    /// The whole configuration of the gateway.
    Config {
        /// The addresses and limits of the gateway.
        gateway: GatewayConfig,
        /// The key that signs the messages only gateways may write.
        signing: SigningConfig,
        /// The read model that queries are answered from.
        postgres: PostgresConfig,
        /// The search engine, if there is one.
        search: SearchConfig,
        /// The models that forks ask, where `gateway.fork_models` lets them.
        models: ModelsConfig,
        /// The archive of a trimmed log.
        archive: ArchiveConfig,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// Address to listen on; port 0 takes a free one. Default `127.0.0.1:7420`.
    pub listen: SocketAddr,
    /// True if `listen` may be an address that other machines reach. Default false.
    pub allow_remote: bool,
    /// Names that the gateway may be called by, without a port, such as `kairo.example.com`: requests whose `Host` is
    /// another name are refused. `localhost` and addresses are always taken. Default none.
    pub allowed_hosts: Vec<String>,
    /// The policy for API keys: callers must bring one if other machines may reach the gateway (`auto`) or in any case
    /// (`always`). Default auto.
    pub require_key: RequireKey,
    /// Scopes of callers on this machine that bring no key where none is required: `read`, `write` and `admin`.
    /// Consenting to an agent's request still needs a key unless `admin` is among them. Default read and write.
    pub loopback_scopes: Vec<Scope>,
    /// A key with all scopes, for creating the first of the others: at least 32 printable characters. Empty for none,
    /// which is the default.
    pub admin_key: Secret,
    /// Issuers whose tokens are accepted besides API keys (OpenID Connect); see `docs/security.md`. Default none.
    pub oidc: Vec<OidcConfig>,
    /// Requests per second of one API key, shared among the users it names, and of one address without a key where one
    /// is required. Default 200.
    pub rate_per_s: u32,
    /// Burst of requests allowed before that limit applies. Default 400.
    pub rate_burst: u32,
    /// Connections open at once; more are closed. One address may hold three quarters of those that others leave free.
    /// Each takes a file descriptor. Default 4096.
    pub max_connections: usize,
    /// Maximum of those from one address (for IPv6, from one /64 network). Behind a proxy all connections have its
    /// address. Default 1024.
    pub max_connections_per_peer: usize,
    /// Longest wait for the head of a connection's first request, in milliseconds. Default 10000.
    pub header_timeout_ms: u64,
    /// Longest time to receive the body of a request, in milliseconds. Default 60000.
    pub body_timeout_ms: u64,
    /// Bytes of a refused body that are read and discarded, so that a client that sends the whole body first can read
    /// the error; a connection with more to send is closed. Default 67108864.
    pub unread_body_bytes: usize,
    /// Longest time for reading such a body, in milliseconds. Default 5000.
    pub unread_body_ms: u64,
    /// Longest time a connection may be idle, with no request being handled and the client taking nothing of an answer,
    /// in milliseconds. More than `heartbeat_ms`. Default 75000.
    pub idle_timeout_ms: u64,
    /// Requests handled at once, shared among keys and among the users of a key for many; more are refused.
    /// Default 2000.
    pub max_requests: usize,
    /// Maximum of those from one API key. Default 500.
    pub max_requests_per_key: usize,
    /// Requests handled at once to endpoints that need no key: gRPC's health checks and reflection, `/healthz`,
    /// descriptions. More are refused. Default 64.
    pub open_requests: usize,
    /// Maximum of those from one address (for IPv6, from one /64 network). Default 16.
    pub open_requests_per_peer: usize,
    /// Longest time one of them may last over gRPC, in milliseconds; a client that watches the gateway's health must
    /// ask again. Default 60000.
    pub open_request_ms: u64,
    /// Time in which a ticket, which stands for a key in a URL, must be used first, in milliseconds. Default 30000.
    pub ticket_ttl_ms: u64,
    /// Time after its last connection in which an event stream opened with a ticket can reconnect, in milliseconds.
    /// Default 60000.
    pub ticket_reconnect_ms: u64,
    /// Origins whose web pages may use the gateway, such as `https://app.example.com`. Default none.
    pub cors_origins: Vec<String>,
    /// Longest text of a message, in bytes. Default 65536.
    pub max_text_bytes: usize,
    /// Longest prompt of an agent's profile, in bytes. Default 65536.
    pub max_prompt_bytes: usize,
    /// Longest time a request waits, beyond one try, for nats-server to accept its message, in milliseconds: after the
    /// loss of a server the others first choose a leader. Default 2000.
    pub publish_wait_ms: u64,
    /// Time the gateway keeps serving, no longer ready, after it was told to stop, in milliseconds: load balancers take
    /// some time to send clients elsewhere. Default 0, for where there is none; Kubernetes sets 5000.
    pub lame_duck_ms: u64,
    /// Largest body of a request, in bytes. Default 524288: JSON may write a byte of text as six.
    pub max_body_bytes: usize,
    /// Largest state of a message, in bytes of JSON. Default 16384.
    pub max_state_bytes: usize,
    /// Largest image, piece of audio or video of a message, in bytes. Default 10485760.
    pub max_part_bytes: usize,
    /// Images, pieces of audio and videos of one message. Default 8.
    pub max_parts: usize,
    /// Images and pieces of audio in transfer to and from clients at once, shared among keys; more are refused.
    /// Default 32.
    pub max_transfers: usize,
    /// Maximum of those from one API key. Default 16.
    pub max_transfers_per_key: usize,
    /// Maximum bytes of the log, as stored, that are replayed for one answer, such as an agent's state, and largest
    /// incident file with images, audio and video: it is held in memory. Default 67108864.
    pub max_replay_bytes: usize,
    /// Such answers in progress at once; more are refused. Default 2.
    pub max_replays: usize,
    /// Forks of agents hosted at once, each in memory with the part of the log it begins with; more are refused.
    /// Default 2.
    pub max_forks: usize,
    /// Time without messages after which a fork ends, in milliseconds. Default 600000.
    pub fork_idle_ms: u64,
    /// Maximum number of messages sent to one fork. Default 200.
    pub fork_messages: u32,
    /// Bytes of a fork's events, as sent to clients, that are kept for reconnecting clients; a fork that reaches the
    /// limit ends. Default 8388608.
    pub fork_bytes: usize,
    /// Maximum number of model calls of one fork, where `fork_models` permits them. Default 50.
    pub fork_model_calls: u32,
    /// The most that all model calls of one fork may cost, in units of `currency`, with at most 6 decimal places: a
    /// call that may cost more than what is left is not made. It is enforced where each of the `models` has a price,
    /// there or in `prices`; a fork then asks no fallbacks. Default 1.
    pub fork_budget: MoneyAmount,
    /// True if a fork asks the models that `models` names, as for agent-runtime, where the log has no answer; these
    /// calls cost money. Default false: such calls fail. `kairo dev` sets it.
    pub fork_models: bool,
    /// Maximum number of events an outline counts, each a row read from an index; of more, it counts the newest.
    /// Default 100000.
    pub max_outline_events: u32,
    /// Images and audio that one API key may have stored, in bytes; `admin_key` has no bound. Default 1073741824.
    pub objects_key_bytes: u64,
    /// Images and audio that may be stored for one user, in bytes: in messages of theirs, or with a key that is limited
    /// to them. Default 536870912.
    pub objects_user_bytes: u64,
    /// Age at which an image or piece of audio that no message names is removed, in milliseconds. Choose it far longer
    /// than writing a message may take. Default 86400000.
    pub objects_grace_ms: u64,
    /// Interval between sweeps for such objects, in milliseconds. Default 3600000.
    pub objects_sweep_ms: u64,
    /// Rows of an answer when the client names no limit. Default 100.
    pub default_limit: u32,
    /// Maximum number of rows of an answer. Default 1000.
    pub max_limit: u32,
    /// Event streams, chats being answered, WebSocket connections and their subscriptions at once, shared among keys;
    /// more are refused. Default 1000.
    pub max_streams: usize,
    /// Maximum of those from one API key. Default 500.
    pub max_streams_per_key: usize,
    /// Maximum number of events and live pieces queued for the client of one stream, and messages requested from the
    /// log at once. Default 64.
    pub stream_buffer: usize,
    /// Live pieces of one stream held back until the log tells which user they belong to, where its key is limited to a
    /// user; of more, the newest are kept. Default 256.
    pub early_pieces: usize,
    /// Subscriptions of one WebSocket connection at once; each is one of `max_streams`. Default 16.
    pub ws_subscriptions: usize,
    /// Longest wait for supervisors to send a new listener the output of an agent's processes so far, in milliseconds.
    /// Default 1000.
    pub tail_wait_ms: u64,
    /// Maximum number of messages of the log queued for one stream or chat; one that is further behind reads the log
    /// itself. Default 1024.
    pub shared_messages: usize,
    /// Interval at which a silent event stream sends a sign of life and a WebSocket client is pinged, in milliseconds.
    /// A client that is silent for two intervals is disconnected. Default 15000.
    pub heartbeat_ms: u64,
    /// Longest wait of a chat client for an agent's answer, in milliseconds. Default 300000.
    pub openai_wait_ms: u64,
    /// Time in which a retry of a chat client's request is recognized, in milliseconds: at least this long, at most
    /// twice as long. Default 900000.
    pub openai_retry_ms: u64,
    /// Conversations of chat clients whose position is remembered, some 200 bytes each; any other continues in a new
    /// thread, which begins with what the client sends. Default 100000.
    pub remembered_conversations: usize,
    /// Messages at the end of the log that a gateway reads in the background when it starts, to find the threads in
    /// which conversations of chat clients continue; 0 for none. Default 20000.
    pub conversation_look_back: u64,
    /// Largest body of a chat client's request, in bytes: it holds the whole history. Default 8388608.
    pub openai_max_body_bytes: usize,
    /// Recent messages remembered, of all clients, some 50 bytes each, to recognize a chat's repeated message without
    /// asking the read model. Default 1000000.
    pub remembered_messages: usize,
    /// Agents known to exist that are kept in memory. Default 100000.
    pub known_agents: usize,
    /// Maximum number of commands of agents that are known; beyond that, those of the last agents by name are left out.
    /// Default 2000.
    pub known_commands: usize,
    /// The agent for messages that name none, as in router (`router.default_agent`): messages to an agent with too many
    /// waiting are refused. Default `default`.
    pub default_agent: String,
    /// Silence of the services after which a status is complete, in milliseconds. Default 300.
    pub status_wait_ms: u64,
    /// Longest time for an answer of the read model, in milliseconds. Default 5000.
    pub query_timeout_ms: u64,
    /// Longest time for a digest of the read models, which reads all their rows, in milliseconds. Default 600000.
    pub digest_timeout_ms: u64,
    /// Longest wait of a query for the read model to be as fresh as requested, in milliseconds. A request may ask for
    /// less. Default 2000.
    pub freshness_wait_ms: u64,
    /// Longest time for an answer of the read model where the client can be answered without it, in milliseconds:
    /// whether a message is known, and how far the read model is. Default 250.
    pub lookup_timeout_ms: u64,
    /// Prices of models, by name, or by the beginning of names followed by `*`: `{ input, output, cached }`, in units
    /// of `currency` for a million tokens, with at most 6 decimal places; `cached` may be left out where it costs what
    /// other input does. Default none: usage is reported without cost.
    pub prices: ModelPrices,
    /// Price that caps in money assume for a model that `prices` does not name. Default none: such a model's cost is
    /// not known, and a cap in money counts as reached.
    pub fallback_price: Option<ModelPrice>,
    /// Caps on what users and the installation may spend on models. Default any amount.
    pub caps: CapsConfig,
    /// Currency of the prices. Default USD.
    pub currency: String,
    /// Interval at which JetStream and the read model are asked for the metrics of the log, its consumers and consents
    /// at `/metrics`, in milliseconds. Default 15000.
    pub metrics_interval_ms: u64,
    /// Disk space the log may take, in bytes, for the metric of its limit; 0 where only its stream's own limit is
    /// reported. Default 0.
    pub log_limit_bytes: u64,
}

/// The default currency.
const CURRENCY: &str = "USD";
/// Longest name of a currency, and of a model that has a price, in bytes.
const MAX_CURRENCY: usize = 16;
const MAX_MODEL: usize = 200;

/// Longest name of a host, in bytes.
const MAX_HOST: usize = 253;

/// The condition under which callers must bring an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequireKey {
    Auto,
    Always,
}

/// Shortest `admin_key`, in characters.
const MIN_ADMIN_KEY: usize = 32;

impl GatewayConfig {
    pub fn requires_key(&self) -> bool {
        self.require_key == RequireKey::Always || self.allow_remote || !self.listen.ip().is_loopback()
    }

    fn check_connections(&self, found: &mut Vec<Mistake>) {
        check(found, "max_connections", self.max_connections, 1..=1_000_000, "connections");
        check(found, "max_connections_per_peer", self.max_connections_per_peer, 1..=1_000_000, "connections");
        check(found, "header_timeout_ms", self.header_timeout_ms, 100..=600_000, "milliseconds");
        check(found, "body_timeout_ms", self.body_timeout_ms, 100..=3_600_000, "milliseconds");
        check(found, "unread_body_bytes", self.unread_body_bytes, 0..=1_073_741_824, "bytes");
        check(found, "unread_body_ms", self.unread_body_ms, 0..=600_000, "milliseconds");
        let idle = (self.heartbeat_ms + 1).max(100)..=3_600_000;
        check(found, "idle_timeout_ms", self.idle_timeout_ms, idle, "milliseconds (more than heartbeat_ms)");
        check(found, "max_requests", self.max_requests, 1..=1_000_000, "requests");
        check(found, "max_requests_per_key", self.max_requests_per_key, 1..=1_000_000, "requests");
        check(found, "open_requests", self.open_requests, 1..=10_000, "requests");
        check(found, "open_requests_per_peer", self.open_requests_per_peer, 1..=10_000, "requests");
        check(found, "open_request_ms", self.open_request_ms, 100..=3_600_000, "milliseconds");
    }
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7420)),
            allow_remote: false,
            allowed_hosts: Vec::new(),
            require_key: RequireKey::Auto,
            loopback_scopes: vec![Scope::Read, Scope::Write],
            admin_key: Secret::default(),
            oidc: Vec::new(),
            rate_per_s: 200,
            rate_burst: 400,
            max_connections: 4_096,
            max_connections_per_peer: 1_024,
            header_timeout_ms: 10_000,
            body_timeout_ms: 60_000,
            unread_body_bytes: 64 * 1024 * 1024,
            unread_body_ms: 5_000,
            idle_timeout_ms: 75_000,
            max_requests: 2_000,
            max_requests_per_key: 500,
            open_requests: 64,
            open_requests_per_peer: 16,
            open_request_ms: 60_000,
            ticket_ttl_ms: 30_000,
            ticket_reconnect_ms: 60_000,
            cors_origins: Vec::new(),
            max_text_bytes: 64 * 1024,
            max_prompt_bytes: 64 * 1024,
            publish_wait_ms: 2_000,
            lame_duck_ms: 0,
            max_body_bytes: 512 * 1024,
            max_state_bytes: 16 * 1024,
            max_part_bytes: 10 * 1024 * 1024,
            max_parts: 8,
            max_transfers: 32,
            max_transfers_per_key: 16,
            max_replay_bytes: 64 * 1024 * 1024,
            max_replays: 2,
            max_forks: 2,
            fork_idle_ms: 600_000,
            fork_messages: 200,
            fork_bytes: 8 * 1024 * 1024,
            fork_model_calls: 50,
            fork_budget: MoneyAmount::from_whole_units(1),
            fork_models: false,
            max_outline_events: 100_000,
            objects_key_bytes: 1024 * 1024 * 1024,
            objects_user_bytes: 512 * 1024 * 1024,
            objects_grace_ms: 86_400_000,
            objects_sweep_ms: 3_600_000,
            default_limit: 100,
            max_limit: MAX_ROWS,
            max_streams: 1_000,
            max_streams_per_key: 500,
            stream_buffer: 64,
            early_pieces: 256,
            ws_subscriptions: 16,
            tail_wait_ms: 1_000,
            shared_messages: 1_024,
            heartbeat_ms: 15_000,
            openai_wait_ms: 300_000,
            openai_retry_ms: 900_000,
            remembered_conversations: 100_000,
            conversation_look_back: 20_000,
            openai_max_body_bytes: 8 * 1024 * 1024,
            remembered_messages: 1_000_000,
            known_agents: 100_000,
            known_commands: 2_000,
            default_agent: "default".to_owned(),
            status_wait_ms: 300,
            query_timeout_ms: 5_000,
            digest_timeout_ms: 600_000,
            freshness_wait_ms: 2_000,
            lookup_timeout_ms: 250,
            prices: ModelPrices::new(),
            fallback_price: None,
            caps: CapsConfig::default(),
            currency: CURRENCY.to_owned(),
            metrics_interval_ms: 15_000,
            log_limit_bytes: 0,
        }
    }
}

impl Validate for GatewayConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let found = &mut mistakes;
        check(found, "rate_per_s", self.rate_per_s, 1..=1_000_000, "requests per second");
        check(found, "rate_burst", self.rate_burst, 1..=1_000_000, "requests");
        self.check_connections(found);
        for (at, issuer) in self.oidc.iter().enumerate() {
            let within = |mut mistake: Mistake| {
                mistake.key = format!("oidc[{at}].{}", mistake.key);
                mistake
            };
            let of_names = oidc::names::prefix_mistakes(&self.oidc).into_iter().filter(|(of, _)| *of == at);
            found.extend(issuer.mistakes().into_iter().chain(of_names.map(|(_, mistake)| mistake)).map(within));
        }
        check(found, "ticket_ttl_ms", self.ticket_ttl_ms, 1_000..=600_000, "milliseconds");
        check(found, "ticket_reconnect_ms", self.ticket_reconnect_ms, 1_000..=3_600_000, "milliseconds");
        check(found, "max_text_bytes", self.max_text_bytes, 1..=262_144, "bytes");
        check(found, "max_prompt_bytes", self.max_prompt_bytes, 1..=262_144, "bytes");
        check(found, "publish_wait_ms", self.publish_wait_ms, 0..=60_000, "milliseconds");
        check(found, "lame_duck_ms", self.lame_duck_ms, 0..=600_000, "milliseconds");
        check(found, "max_body_bytes", self.max_body_bytes, 1_024..=16_777_216, "bytes");
        check(found, "max_state_bytes", self.max_state_bytes, 0..=262_144, "bytes");
        check(found, "max_part_bytes", self.max_part_bytes, 1_024..=67_108_864, "bytes");
        check(found, "max_parts", self.max_parts, 0..=64, "parts");
        check(found, "max_transfers", self.max_transfers, 1..=10_000, "objects");
        check(found, "max_transfers_per_key", self.max_transfers_per_key, 1..=10_000, "objects");
        check(found, "max_replay_bytes", self.max_replay_bytes, 1_024..=4_294_967_296, "bytes");
        check(found, "max_replays", self.max_replays, 1..=1_000, "answers");
        check(found, "max_forks", self.max_forks, 0..=1_000, "forks");
        check(found, "fork_idle_ms", self.fork_idle_ms, 1_000..=86_400_000, "milliseconds");
        check(found, "fork_messages", self.fork_messages, 1..=100_000, "messages");
        check(found, "fork_bytes", self.fork_bytes, 65_536..=1_073_741_824, "bytes");
        check(found, "fork_model_calls", self.fork_model_calls, 0..=100_000, "calls");
        check(found, "max_outline_events", self.max_outline_events, 100..=10_000_000, "events");
        check(found, "objects_key_bytes", self.objects_key_bytes, 0..=1 << 50, "bytes");
        check(found, "objects_user_bytes", self.objects_user_bytes, 0..=1 << 50, "bytes");
        check(found, "objects_grace_ms", self.objects_grace_ms, 1_000..=31_536_000_000, "milliseconds");
        check(found, "objects_sweep_ms", self.objects_sweep_ms, 100..=86_400_000, "milliseconds");
        check(found, "max_limit", self.max_limit, 1..=MAX_ROWS, "rows");
        check(found, "default_limit", self.default_limit, 1..=self.max_limit, "rows (at most max_limit)");
        check(found, "max_streams", self.max_streams, 1..=100_000, "streams");
        check(found, "max_streams_per_key", self.max_streams_per_key, 1..=100_000, "streams");
        check(found, "stream_buffer", self.stream_buffer, 1..=1_000, "messages");
        check(found, "early_pieces", self.early_pieces, 1..=10_000, "pieces");
        check(found, "ws_subscriptions", self.ws_subscriptions, 1..=1_000, "subscriptions");
        check(found, "tail_wait_ms", self.tail_wait_ms, 10..=60_000, "milliseconds");
        check(found, "shared_messages", self.shared_messages, 1..=1_000_000, "messages");
        check(found, "heartbeat_ms", self.heartbeat_ms, 100..=300_000, "milliseconds");
        check(found, "openai_wait_ms", self.openai_wait_ms, 100..=86_400_000, "milliseconds");
        check(found, "openai_retry_ms", self.openai_retry_ms, 1_000..=86_400_000, "milliseconds");
        check(found, "remembered_conversations", self.remembered_conversations, 2..=10_000_000, "conversations");
        check(found, "conversation_look_back", self.conversation_look_back, 0..=10_000_000, "messages");
        check(found, "openai_max_body_bytes", self.openai_max_body_bytes, 1_024..=67_108_864, "bytes");
        check(found, "remembered_messages", self.remembered_messages, 1..=100_000_000, "messages");
        check(found, "known_agents", self.known_agents, 1..=10_000_000, "agents");
        check(found, "known_commands", self.known_commands, 0..=100_000, "commands");
        if let Err(error) = Name::parse(&self.default_agent) {
            found.push(Mistake::new("default_agent", error.to_string(), "name an agent"));
        }
        check(found, "status_wait_ms", self.status_wait_ms, 10..=10_000, "milliseconds");
        check(found, "query_timeout_ms", self.query_timeout_ms, 10..=60_000, "milliseconds");
        check(found, "digest_timeout_ms", self.digest_timeout_ms, 100..=86_400_000, "milliseconds");
        check(found, "freshness_wait_ms", self.freshness_wait_ms, 0..=60_000, "milliseconds");
        check(found, "metrics_interval_ms", self.metrics_interval_ms, 100..=3_600_000, "milliseconds");
        check(found, "lookup_timeout_ms", self.lookup_timeout_ms, 1..=10_000, "milliseconds");
        for model in self.prices.keys().filter(|model| !is_price_key(model)) {
            let advice = "name a model, or the beginning of names followed by *";
            found.push(Mistake::new("prices", format!("{model:?} can be no model"), advice));
        }
        self.caps.check(found, &self.prices, self.fallback_price);
        let named = (1..=MAX_CURRENCY).contains(&self.currency.len());
        if !named || !self.currency.bytes().all(|byte| byte.is_ascii_graphic()) {
            let advice = "say 1 to 16 printable characters, such as EUR";
            found.push(Mistake::new("currency", format!("{:?} is no currency", self.currency), advice));
        }
        if !self.listen.ip().is_loopback() && !self.allow_remote {
            let problem = format!("{} is reached by other machines", self.listen);
            let advice = "listen on 127.0.0.1, or set allow_remote = true, which requires API keys";
            found.push(Mistake::new("listen", problem, advice));
        }
        let admin_key = self.admin_key.expose();
        let fits = admin_key.len() >= MIN_ADMIN_KEY && admin_key.bytes().all(|byte| byte.is_ascii_graphic());
        if !admin_key.is_empty() && !fits {
            let advice =
                "set one of at least 32 printable characters without spaces, such as that of openssl rand -hex 32";
            found.push(Mistake::new("admin_key", "it is too short or cannot be sent", advice));
        }
        for host in self.allowed_hosts.iter().filter(|host| !is_host_name(host)) {
            let advice = "say a name in lower case without scheme and port, such as kairo.example.com";
            found.push(Mistake::new("allowed_hosts", format!("{host:?} is no name of a host"), advice));
        }
        for origin in self.cors_origins.iter().filter(|origin| !is_origin(origin)) {
            let advice = "name a scheme, a host and a port if it is not the usual one, such as https://app.example.com";
            found.push(Mistake::new("cors_origins", format!("{origin:?} is no origin"), advice));
        }
        mistakes
    }
}

/// Returns true if `model` may have a price: a star stands only at the end.
fn is_price_key(model: &str) -> bool {
    (1..=MAX_MODEL).contains(&model.len()) && !model.strip_suffix('*').unwrap_or(model).contains('*')
}

/// Returns true if a client may send `text` as the name of a host.
fn is_host_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_');
    (1..=MAX_HOST).contains(&text.len()) && text.bytes().all(allowed)
}

/// Returns true if a browser may send `text` as the origin of a page.
fn is_origin(text: &str) -> bool {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.is_some_and(|url| url.origin().ascii_serialization() == text)
}
