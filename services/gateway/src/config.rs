//! What the gateway is configured with.

use std::net::SocketAddr;

use kairo_agent_runtime::ModelsConfig;
use kairo_backup::past::ArchiveConfig;
use kairo_core::{
    config::{Mistake, Secret, Validate, check},
    ids::Name,
    prices::{Amount, Price, Prices},
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
    /// Everything the gateway is configured with.
    Config {
        /// Where it listens, and what it takes.
        gateway: GatewayConfig,
        /// With what it signs what gateways alone may write.
        signing: SigningConfig,
        /// The read model that queries are answered from.
        postgres: PostgresConfig,
        /// The search engine, if there is one.
        search: SearchConfig,
        /// The models that forks ask, where `gateway.fork_models` lets them.
        models: ModelsConfig,
        /// Where a log is archived that was trimmed.
        archive: ArchiveConfig,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// Where it listens; port 0 takes a free one. Default `127.0.0.1:7420`.
    pub listen: SocketAddr,
    /// Whether `listen` may be an address that other machines reach. Default false.
    pub allow_remote: bool,
    /// Names that the gateway may be called by, without a port, such as `kairo.example.com`: requests whose `Host` is
    /// another name are refused. `localhost` and addresses are always taken. Default none.
    pub allowed_hosts: Vec<String>,
    /// Whether callers must bring an API key: `auto`, when other machines may reach the gateway, or `always`. Default
    /// auto.
    pub require_key: RequireKey,
    /// What callers on this machine may do where none is required and they bring none: `read`, `write` and `admin`. Consenting to
    /// what agents ask needs a key in any case unless it has `admin`. Default read and write.
    pub loopback_scopes: Vec<Scope>,
    /// A key that may do everything, to make the first of the others with: at least 32 printable characters. Empty for
    /// none, which is the default.
    pub admin_key: Secret,
    /// Issuers whose tokens are taken, beside API keys (OpenID Connect); see `docs/security.md`. Default none.
    pub oidc: Vec<OidcConfig>,
    /// Requests a second of one API key, of which each user whom they name has a share, and of one address that brings none where one
    /// is required. Default 200.
    pub rate_per_s: u32,
    /// Requests that may come at once before that counts. Default 400.
    pub rate_burst: u32,
    /// Connections open at once, of which one address has three quarters of what others leave; more are closed. Each takes a file
    /// descriptor. Default 4096.
    pub max_connections: usize,
    /// Of them, those of one address at most (of IPv6, of one /64 network). Behind a proxy all are of its address. Default 1024.
    pub max_connections_per_peer: usize,
    /// How long a connection may take until the head of its first request has come, in milliseconds. Default 10000.
    pub header_timeout_ms: u64,
    /// How long the body of a request may take, in milliseconds. Default 60000.
    pub body_timeout_ms: u64,
    /// What is read and thrown away of a body that is not taken, so that its client, which sends it first, gets to read why, in
    /// bytes; with more to come the connection is closed. Default 67108864.
    pub unread_body_bytes: usize,
    /// How long that may take, in milliseconds. Default 5000.
    pub unread_body_ms: u64,
    /// How long a connection may do nothing: no request is dealt with, and nothing of an answer is taken; in
    /// milliseconds. More than `heartbeat_ms`. Default 75000.
    pub idle_timeout_ms: u64,
    /// Requests dealt with at once, of which each key, and each user of a key for many, has a share; more are refused. Default 2000.
    pub max_requests: usize,
    /// Of them, those of one API key at most. Default 500.
    pub max_requests_per_key: usize,
    /// Requests at once to what is open to everybody: gRPC's health checks and reflection, `/healthz`, descriptions. More
    /// are refused. Default 64.
    pub open_requests: usize,
    /// Of them, those of one address (of IPv6, of one /64 network). Default 16.
    pub open_requests_per_peer: usize,
    /// How long one of them may last over gRPC, in milliseconds; who watches the gateway's health asks again. Default
    /// 60000.
    pub open_request_ms: u64,
    /// How long a ticket, which stands for a key in a URL, is good for its first use, in milliseconds. Default 30000.
    pub ticket_ttl_ms: u64,
    /// How long after its last connection an event stream that was opened with a ticket can come back, in milliseconds.
    /// Default 60000.
    pub ticket_reconnect_ms: u64,
    /// Origins whose web pages may use the gateway, such as `https://app.example.com`. Default none.
    pub cors_origins: Vec<String>,
    /// Longest text of a message, in bytes. Default 65536.
    pub max_text_bytes: usize,
    /// Longest prompt of an agent's profile, in bytes. Default 65536.
    pub max_prompt_bytes: usize,
    /// How long a request waits, beyond one try, until nats-server takes what it says, in milliseconds: after a server was lost the
    /// others choose a leader first. Default 2000.
    pub publish_wait_ms: u64,
    /// How long it serves on after it was told to stop, and is no longer ready, in milliseconds: load balancers take some
    /// time to send clients elsewhere. Default 0, for where there is none; Kubernetes sets 5000.
    pub lame_duck_ms: u64,
    /// Largest body of a request, in bytes. Default 524288: JSON may write a byte of text as six.
    pub max_body_bytes: usize,
    /// Largest state of a message, in bytes of JSON. Default 16384.
    pub max_state_bytes: usize,
    /// Largest image, piece of audio or video of a message, in bytes. Default 10485760.
    pub max_part_bytes: usize,
    /// Images, pieces of audio and videos of one message. Default 8.
    pub max_parts: usize,
    /// Images and pieces of audio on their way to and from clients at once, of which each key has a share; more are refused. Default 32.
    pub max_transfers: usize,
    /// Of them, those of one API key at most. Default 16.
    pub max_transfers_per_key: usize,
    /// Longest part of the log that is read to answer with what is made again from it, such as an agent's state, in bytes as it is
    /// stored, and longest incident file with images, audio and video: it is held in memory. Default 67108864.
    pub max_replay_bytes: usize,
    /// Such answers that are made at once; more are refused. Default 2.
    pub max_replays: usize,
    /// Forks of agents that are hosted at once, each in memory with the part of the log that it begins with; more are refused.
    /// Default 2.
    pub max_forks: usize,
    /// How long nobody says anything in a fork until it ends, in milliseconds. Default 600000.
    pub fork_idle_ms: u64,
    /// Messages that may be said in one fork. Default 200.
    pub fork_messages: u32,
    /// What happens in one fork and is kept for who comes back, in bytes as it is told; a fork that reaches it ends. Default
    /// 8388608.
    pub fork_bytes: usize,
    /// Calls of models that one fork may make, where `fork_models` lets it. Default 50.
    pub fork_model_calls: u32,
    /// What the calls of models of one fork may cost together, in units of `currency`, with at most 6 decimal places: none is made that
    /// may cost more than what is left. It is kept where each of the `models` has a price, there or in `prices`; a fork asks no
    /// fallbacks then. Default 1.
    pub fork_budget: Amount,
    /// Whether a fork asks the models that `models` names, as for agent-runtime, what the log has no answer to; it costs what they
    /// cost. Default false: such calls fail. `kairo dev` sets it.
    pub fork_models: bool,
    /// Events that an outline counts, which takes reading so many rows of an index: of more, the newest. Default 100000.
    pub max_outline_events: u32,
    /// Images and audio that one API key may have stored, in bytes; `admin_key` has no bound. Default 1073741824.
    pub objects_key_bytes: u64,
    /// Images and audio that may be stored for one user, in bytes: in messages of theirs, or with a key that is limited to
    /// them. Default 536870912.
    pub objects_user_bytes: u64,
    /// How old an image or piece of audio is that no message names when it is removed, in milliseconds. Far more than
    /// writing a message may take. Default 86400000.
    pub objects_grace_ms: u64,
    /// How often such are looked for, in milliseconds. Default 3600000.
    pub objects_sweep_ms: u64,
    /// Rows of an answer where the client does not say. Default 100.
    pub default_limit: u32,
    /// Rows of an answer at most. Default 1000.
    pub max_limit: u32,
    /// Event streams, chats that are answered, WebSocket connections and their subscriptions at once, of which each key has a share;
    /// more are refused. Default 1000.
    pub max_streams: usize,
    /// Of them, those of one API key at most. Default 500.
    pub max_streams_per_key: usize,
    /// Events and live pieces that wait for the client of one stream, and messages asked of the log at once. Default 64.
    pub stream_buffer: usize,
    /// Live pieces of one stream that came before the log told whose they are, where its key is limited to a user: they are kept
    /// until it does, and of more the newest. Default 256.
    pub early_pieces: usize,
    /// Subscriptions of one WebSocket connection at once; each is one of `max_streams`. Default 16.
    pub ws_subscriptions: usize,
    /// How long supervisors may take to tell who has just begun to listen what an agent's processes wrote so far, in
    /// milliseconds. Default 1000.
    pub tail_wait_ms: u64,
    /// Messages of the log that wait for one stream or chat; one that is further behind reads the log itself. Default
    /// 1024.
    pub shared_messages: usize,
    /// Pause after which a silent event stream shows that it is alive, and after which a WebSocket client is asked
    /// whether it is, in milliseconds. A client that is silent for two of them is gone. Default 15000.
    pub heartbeat_ms: u64,
    /// How long a chat client waits for an agent's answer, in milliseconds. Default 300000.
    pub openai_wait_ms: u64,
    /// How long a chat client's request that is sent again is known as the same, in milliseconds: at least so long, at most twice.
    /// Default 900000.
    pub openai_retry_ms: u64,
    /// Conversations of chat clients whose place is remembered, some 200 bytes each; any other goes on in a new thread, which begins
    /// with what the client sends. Default 100000.
    pub remembered_conversations: usize,
    /// Messages at the end of the log that a gateway reads when it starts, in the background, to know again in which threads
    /// conversations of chat clients go on; 0 for none. Default 20000.
    pub conversation_look_back: u64,
    /// Largest body of a chat client's request, in bytes: it brings the whole history. Default 8388608.
    pub openai_max_body_bytes: usize,
    /// Messages said of late that are remembered, of all clients, some 50 bytes each, so that a chat's message that is
    /// said again is known without asking the read model. Default 1000000.
    pub remembered_messages: usize,
    /// Agents known to exist that are kept in memory. Default 100000.
    pub known_agents: usize,
    /// Commands of agents that are known. Of more, those of the last agents by name are not. Default 2000.
    pub known_commands: usize,
    /// The agent that gets messages which name none, as router has it (`router.default_agent`): messages to an agent that
    /// has too many waiting are refused. Default `default`.
    pub default_agent: String,
    /// How long services may keep silent before a status is complete, in milliseconds. Default 300.
    pub status_wait_ms: u64,
    /// Longest answer of the read model, in milliseconds. Default 5000.
    pub query_timeout_ms: u64,
    /// Longest digest of the read models, which reads all their rows, in milliseconds. Default 600000.
    pub digest_timeout_ms: u64,
    /// How long a query waits at most for the read model to be as fresh as it asks for, in milliseconds. A request may
    /// say less. Default 2000.
    pub freshness_wait_ms: u64,
    /// Longest answer of the read model where the client can be answered without it, in milliseconds: whether a
    /// message is known, and how far the read model is. Default 250.
    pub lookup_timeout_ms: u64,
    /// What models cost, by name, or by the beginning of names followed by `*`: `{ input, output, cached }`, in units of `currency`
    /// for a million tokens, with at most 6 decimal places; `cached` may be left out where it costs what other input does. Default
    /// none: usage is told without cost.
    pub prices: Prices,
    /// What caps in money count for a model that `prices` does not name. Default none: such a model's cost is not known, and a cap
    /// in money counts as reached.
    pub fallback_price: Option<Price>,
    /// What users and the installation may spend on models. Default any amount.
    pub caps: CapsConfig,
    /// What the prices are in. Default USD.
    pub currency: String,
    /// How often JetStream and the read model are asked for what `/metrics` says of the log, its consumers and consents, in
    /// milliseconds. Default 15000.
    pub metrics_interval_ms: u64,
    /// What the log may take of the disk, in bytes, for the metric of its limit; 0 where only its stream's own limit is told.
    /// Default 0.
    pub log_limit_bytes: u64,
}

/// What a currency is called unless it is said.
const CURRENCY: &str = "USD";
/// Longest name of a currency, and of a model that has a price, in bytes.
const MAX_CURRENCY: usize = 16;
const MAX_MODEL: usize = 200;

/// Longest name of a host, in bytes.
const MAX_HOST: usize = 253;

/// When callers must bring an API key.
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
            fork_budget: Amount::of(1),
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
            prices: Prices::new(),
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
            let of_names = oidc::names::mistakes(&self.oidc).into_iter().filter(|(of, _)| *of == at);
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
        for model in self.prices.keys().filter(|model| !is_priced(model)) {
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
        for host in self.allowed_hosts.iter().filter(|host| !is_host(host)) {
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

/// Whether this may have a price: a star stands only at the end.
fn is_priced(model: &str) -> bool {
    (1..=MAX_MODEL).contains(&model.len()) && !model.strip_suffix('*').unwrap_or(model).contains('*')
}

/// Whether a client may send this as the name of a host.
fn is_host(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_');
    (1..=MAX_HOST).contains(&text.len()) && text.bytes().all(allowed)
}

/// Whether a browser may send this as the origin of a page.
fn is_origin(text: &str) -> bool {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.is_some_and(|url| url.origin().ascii_serialization() == text)
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

    #[test]
    fn prices_are_of_names_and_of_beginnings_of_names() {
        let config = |model: &str, currency: &str| {
            let prices =
                serde_json::json!({ "prices": { model: { "input": 0.15, "output": "2" } }, "currency": currency });
            serde_json::from_value::<GatewayConfig>(prices).unwrap().mistakes()
        };
        assert!(config("gpt-*", "EUR").is_empty() && config("*", "USD").is_empty());
        for (model, currency, key) in
            [("", "EUR", "prices"), ("a*b", "EUR", "prices"), ("a**", "EUR", "prices"), ("a", "", "currency")]
        {
            let mistakes = config(model, currency);
            assert_eq!(mistakes.iter().map(|mistake| mistake.key.as_str()).collect::<Vec<_>>(), [key], "{model}");
        }
    }

    #[test]
    fn money_is_bounded_where_something_has_a_price() {
        let config = |more: &str| {
            let text = format!(r#"{{ "caps": {{ "installation": {{ "cost_per_day": 5 }} }}{more} }}"#);
            let mistakes = serde_json::from_str::<GatewayConfig>(&text).unwrap().mistakes();
            mistakes.into_iter().map(|mistake| mistake.key).collect::<Vec<_>>()
        };
        assert_eq!(config(""), ["caps.installation"]);
        assert!(config(r#", "fallback_price": { "input": 1, "output": 1 }"#).is_empty());
        assert!(config(r#", "prices": { "*": { "input": 1, "output": 1 } }"#).is_empty());
    }

    #[test]
    fn a_key_is_required_as_soon_as_others_may_come() {
        let local = GatewayConfig::default();
        assert!(!local.requires_key());
        assert!(GatewayConfig { require_key: RequireKey::Always, ..local.clone() }.requires_key());
        assert!(GatewayConfig { allow_remote: true, ..local.clone() }.requires_key());
        assert!(GatewayConfig { listen: "[::]:0".parse().unwrap(), ..local }.requires_key());
    }

    #[test]
    fn origins_and_the_admin_key_are_checked_and_the_key_is_not_shown() {
        let good = ["https://app.example.com", "http://localhost:3000"].map(str::to_owned).to_vec();
        let config = GatewayConfig { cors_origins: good, admin_key: Secret::new("x".repeat(32)), ..Default::default() };
        assert!(config.mistakes().is_empty(), "{:?}", config.mistakes());
        for bad in ["*", "null", "", "https://a.example/", "https://a.example/x", "a.example", "https://a.example:443"]
        {
            let config = GatewayConfig { cors_origins: vec![bad.to_owned()], ..Default::default() };
            assert_eq!(config.mistakes().len(), 1, "{bad}");
        }
        for bad in ["*", "", "Kairo.example.com", "kairo.example.com:443", "https://kairo.example.com", "a b"] {
            let config = GatewayConfig { allowed_hosts: vec![bad.to_owned()], ..Default::default() };
            assert_eq!(config.mistakes().len(), 1, "{bad}");
        }
        let config = GatewayConfig { admin_key: Secret::new("hunter2".to_owned()), ..Default::default() };
        let mistakes = format!("{:?}", config.mistakes());
        assert!(mistakes.contains("admin_key") && !mistakes.contains("hunter2"), "{mistakes}");
    }
}
