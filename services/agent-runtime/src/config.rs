//! The configuration of agent-runtime.

use std::collections::BTreeMap;

use kairo_backup::archive_reader::ArchiveConfig;
use kairo_core::{
    config::{Mistake, Secret, Validate, check},
    prices::ModelPrice,
    sealing,
    service::section,
    service_config,
};
use kairo_mind::{
    deliberation::{DecisionLimits, MEMORY_RULES},
    prices::PriceList,
    tool_offering::ListingLimits,
};
use serde::{Deserialize, Serialize};

/// Tokens that models with vocabularies of their own count for one token of o200k_base.
const OTHER_VOCABULARIES: f64 = 1.2;
/// Maximum number of fallbacks of one model.
const FALLBACKS: usize = 8;

service_config! {
    /// The whole configuration of agent-runtime.
    Config {
        /// The limits of agents' decisions.
        agent_runtime: AgentRuntimeConfig,
        /// The models that are asked.
        models: ModelsConfig,
        /// The archive of a trimmed log.
        archive: ArchiveConfig,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentRuntimeConfig {
    /// Answers of the heavy model in one turn before the agent must answer the user, when its profile does not say.
    /// Default 12.
    pub max_steps: u32,
    /// Tries of one model call, the first included. Default 3.
    pub model_tries: u32,
    /// Tries of one model call that finds its endpoint away, overloaded or busy, the first included. Default 8.
    pub outage_tries: u32,
    /// Pause before the second try, in milliseconds; it doubles for each further one, up to 16 seconds, and is
    /// shortened by up to half at random. If an endpoint names a time to wait, that time is used. Default 250.
    pub retry_pause_ms: u64,
    /// Tools an agent may call at once. Default 8.
    pub parallel_tools: usize,
    /// Steps a chain may have. Default 64.
    pub chain_steps: usize,
    /// Maximum number of tools that a request to a model lists. Where an agent may call more, requests list a few of
    /// them, and the model finds the others with `tools.find`; 0 always lists all. Default 40.
    pub listed_tools: usize,
    /// Maximum bytes of their names, descriptions and schemas together; about three make a token. Default 24576.
    pub listed_tool_bytes: usize,
    /// Approximate memory that agents may take in this replica, in bytes: for each, three times its checkpoint, and
    /// 2 KiB. Above it, the agents idle for longest are evicted, and nothing is read while their checkpoints are
    /// written. Default 268435456.
    pub cached_bytes: usize,
    /// Decisions made at once, over all agents, shared among users; more wait. Default 256.
    pub decisions_at_once: usize,
    /// Decisions of agents at work in the background prepared at once, besides those; more wait. Default 256.
    pub work_at_once: usize,
    /// Maximum number of inputs waiting for one agent, shared among users. The gateway refuses messages (429) of a user
    /// above their share until half of it is left. Default 1000.
    pub pending_inputs: usize,
    /// Agents loaded into memory at once. Default 64.
    pub loads_at_once: usize,
    /// Agents of one partition being loaded into memory at which reading the partition pauses. Default 256.
    pub loads_waiting: usize,
    /// Messages of a partition after which a checkpoint is written early, before `bus.checkpoint_ms`, also while the
    /// partition is read for the first time; after an eighth of that while agents take more than `cached_bytes`.
    /// Default 5000.
    pub checkpoint_messages: usize,
    /// Maximum number of restarts of one decision because another message came, for agents that want that; later
    /// messages wait for their turn. Default 3.
    pub restarts: u32,
    /// Images and audio held in memory at once while they are sent to models, in bytes as stored, shared among users;
    /// in transit each byte takes about three more. What does not fit waits. Default 134217728.
    pub max_loaded_bytes: u64,
    /// Key that seals the secrets told to agents in their memory: 64 hexadecimal digits, or base64 of 32 bytes. Empty:
    /// secrets are not kept. Whoever has it can read them with `kairo memories reveal`. Default empty.
    pub secret_key: Secret,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelsConfig {
    /// The model that thinks: `agent.think`.
    pub heavy: ModelConfig,
    /// The model that translates and sums up: `agent.chain`, `thread.match`, `thread.summarize`, memory. Unset: as
    /// heavy.
    pub fast: Option<ModelConfig>,
    /// The model that completes parameters and judges conditions: `agent.decide`. Unset: as fast.
    pub light: Option<ModelConfig>,
    /// Price that bounds in money assume for a model without `price`: `{ input, output, cached }`, as there. Choose it
    /// so high that no model costs more. Default none: money cannot be bounded where a model has no price.
    pub fallback_price: Option<ModelPrice>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// An OpenAI-compatible endpoint, up to and including `/v1`. Default `http://127.0.0.1:7430/v1`, where the
    /// simulator listens.
    pub base_url: String,
    /// Key of the endpoint; empty for none.
    pub api_key: Secret,
    /// Name of the model. Default `simulator`.
    pub model: String,
    /// True if answers are requested as streams. Default true.
    pub stream: bool,
    /// Longest wait for the first piece of an answer that is streamed, in milliseconds; comments that keep the
    /// connection open are none. Default 120000.
    pub first_token_ms: u64,
    /// Longest wait for the next piece of an answer that is streamed, in milliseconds; comments are none.
    /// Default 60000.
    pub idle_ms: u64,
    /// Longest wait for a whole answer, in milliseconds, however many pieces arrive. Default 600000.
    pub timeout_ms: u64,
    /// Longest wait that an endpoint may ask for before another try, in milliseconds; one that asks for a longer one is
    /// not asked again. Default 60000.
    pub max_retry_after_ms: u64,
    /// Longest answer, in bytes as it is sent. Default 16777216.
    pub max_answer_bytes: usize,
    /// Longest answer, in tokens; 0 leaves it to the endpoint. Default 0.
    pub max_output_tokens: u32,
    /// Maximum bytes kept of the reasoning of one answer, with a note of how many were left out. All of it is shown
    /// live. The same limit applies to the fields that its endpoint wants back with its calls; if they exceed it, none
    /// is kept. Default 65536.
    pub max_reasoning_bytes: usize,
    /// True if its answers begin within a `<think>` block that its prompt template has opened: up to `</think>` they
    /// are reasoning. Default false.
    pub thinks_first: bool,
    /// Calls this replica makes at once, shared among users; more wait. The same number again is allowed for work of
    /// agents in the background. Default 256.
    pub max_in_flight: usize,
    /// True if it is sent images; otherwise it gets a note in their place. One that refuses a request with images or
    /// audio is asked once more without. Default true.
    pub images: bool,
    /// True if it is sent audio, as `input_audio`. Default true.
    pub audio: bool,
    /// True if it is sent video, as `video_url`, which few endpoints take; otherwise it gets a note in its place.
    /// Default false.
    pub video: bool,
    /// Maximum number of images, pieces of audio and videos in one request, the newest of the conversation; notes stand
    /// for earlier ones. Default 16.
    pub max_parts: usize,
    /// Maximum bytes of them, as stored; in transit a byte takes a third more. Default 20971520.
    pub max_parts_bytes: u64,
    /// Size of its context, its answer included, in tokens. Before a request reaches three quarters of it, the light
    /// tier summarizes the oldest part of its thread. 0 turns that off: the oldest part is dropped. Default 128000.
    pub context_tokens: u32,
    /// Tokens it counts for one token of o200k_base, by which requests are counted: for models with vocabularies of
    /// their own. Default 1.2, and 1.0 for models whose names begin with gpt- or o.
    pub token_factor: Option<f64>,
    /// Models asked in its place when it has no answer, in order; each as a model is configured. An answer names the
    /// model that gave it. Default none.
    pub fallbacks: Vec<ModelConfig>,
    /// Price of a million of its tokens: `{ input, output, cached }`, in units of the currency that `gateway.currency`
    /// names, with at most 6 decimal places. `cached` is the price of input that the endpoint reads from its cache, and
    /// may be left out: it then costs what other input does. It is recorded with the basis of each decision. Default
    /// none: the price is not known.
    pub price: Option<ModelPrice>,
}

impl Default for AgentRuntimeConfig {
    fn default() -> Self {
        Self {
            max_steps: 12,
            model_tries: 3,
            outage_tries: 8,
            retry_pause_ms: 250,
            parallel_tools: 8,
            chain_steps: 64,
            listed_tools: ListingLimits::default().tools,
            listed_tool_bytes: ListingLimits::default().bytes,
            cached_bytes: 256 * 1024 * 1024,
            decisions_at_once: 256,
            work_at_once: 256,
            pending_inputs: 1_000,
            loads_at_once: 64,
            loads_waiting: 256,
            checkpoint_messages: 5_000,
            restarts: 3,
            max_loaded_bytes: 128 * 1024 * 1024,
            secret_key: Secret::default(),
        }
    }
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:7430/v1".to_owned(),
            api_key: Secret::default(),
            model: "simulator".to_owned(),
            stream: true,
            first_token_ms: 120_000,
            idle_ms: 60_000,
            timeout_ms: 600_000,
            max_retry_after_ms: 60_000,
            max_answer_bytes: 16 * 1024 * 1024,
            max_output_tokens: 0,
            max_reasoning_bytes: 64 * 1024,
            thinks_first: false,
            max_in_flight: 256,
            images: true,
            audio: true,
            video: false,
            max_parts: 16,
            max_parts_bytes: 20 * 1024 * 1024,
            context_tokens: 128_000,
            token_factor: None,
            fallbacks: Vec::new(),
            price: None,
        }
    }
}

impl ModelsConfig {
    /// Returns the price of every model that may be asked, fallbacks included.
    pub fn prices(&self) -> PriceList {
        let listed = |(tier, model): (&str, &ModelConfig)| {
            let all = std::iter::once(model).chain(&model.fallbacks);
            all.map(|it| (tier.to_owned(), it.model.clone(), it.price)).collect::<Vec<_>>()
        };
        PriceList::from_models(self.tiers().into_iter().flat_map(listed).collect(), self.fallback_price)
    }

    /// The model of each tier, or the one that stands for it.
    pub fn tiers(&self) -> [(&'static str, &ModelConfig); 3] {
        let fast = self.fast.as_ref().unwrap_or(&self.heavy);
        [("heavy", &self.heavy), ("fast", fast), ("light", self.light.as_ref().unwrap_or(fast))]
    }
}

impl ModelConfig {
    /// Returns the size of its context, in tokens of o200k_base, rounded down.
    pub fn counted_context(&self) -> u32 {
        // Rounding it down is what is wanted.
        (f64::from(self.context_tokens) / self.tokenizer_factor()) as u32
    }

    /// Converts `counted` tokens of o200k_base to the model's own, rounded up.
    pub fn to_model_tokens(&self, counted: usize) -> u64 {
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        (f64::from(counted) * self.tokenizer_factor()).ceil() as u64
    }

    /// Returns the model's own tokens for one token of o200k_base.
    pub fn tokenizer_factor(&self) -> f64 {
        let is_known = self.model.starts_with("gpt-") || self.model.starts_with('o');
        self.token_factor.unwrap_or(if is_known { 1.0 } else { OTHER_VOCABULARIES })
    }
}

impl AgentRuntimeConfig {
    /// The key under which secrets are sealed; none when none is configured.
    pub fn secret_key_bytes(&self) -> Option<sealing::SealingKey> {
        sealing::parse_key(self.secret_key.expose()).ok()
    }

    pub fn limits(&self) -> DecisionLimits {
        DecisionLimits {
            memory_rules: MEMORY_RULES,
            max_steps: self.max_steps,
            tries: self.model_tries,
            outage_tries: self.outage_tries,
            parallel_tools: self.parallel_tools,
            chain_steps: self.chain_steps,
            listing: ListingLimits { tools: self.listed_tools, bytes: self.listed_tool_bytes },
            secret_key: self.secret_key_bytes(),
            prices: PriceList::default(),
            context_tokens: BTreeMap::new(),
            basis: String::new(),
        }
    }
}

impl Validate for AgentRuntimeConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check(&mut mistakes, "max_steps", self.max_steps, 1..=1_000, "model calls");
        check(&mut mistakes, "model_tries", self.model_tries, 1..=20, "tries");
        check(&mut mistakes, "outage_tries", self.outage_tries, 1..=100, "tries");
        check(&mut mistakes, "retry_pause_ms", self.retry_pause_ms, 0..=60_000, "milliseconds");
        check(&mut mistakes, "parallel_tools", self.parallel_tools, 1..=256, "tools");
        check(&mut mistakes, "chain_steps", self.chain_steps, 1..=1_000, "steps");
        check(&mut mistakes, "listed_tools", self.listed_tools, 0..=4_096, "tools");
        check(&mut mistakes, "listed_tool_bytes", self.listed_tool_bytes, 0..=16_777_216, "bytes");
        check(&mut mistakes, "cached_bytes", self.cached_bytes, 4_096..=1_000_000_000_000, "bytes");
        check(&mut mistakes, "decisions_at_once", self.decisions_at_once, 1..=100_000, "decisions");
        check(&mut mistakes, "work_at_once", self.work_at_once, 1..=100_000, "decisions");
        check(&mut mistakes, "pending_inputs", self.pending_inputs, 1..=1_000_000, "messages");
        check(&mut mistakes, "loads_at_once", self.loads_at_once, 1..=10_000, "agents");
        check(&mut mistakes, "loads_waiting", self.loads_waiting, 1..=1_000_000, "agents");
        check(&mut mistakes, "checkpoint_messages", self.checkpoint_messages, 1..=1_000_000, "messages");
        check(&mut mistakes, "restarts", self.restarts, 0..=100, "times");
        check(&mut mistakes, "max_loaded_bytes", self.max_loaded_bytes, 1_048_576..=1_000_000_000_000, "bytes");
        if !self.secret_key.is_empty() && self.secret_key_bytes().is_none() {
            let problem = "expected 64 hexadecimal digits, or base64 of 32 bytes";
            mistakes.push(Mistake::new("secret_key", problem, "make one with: openssl rand -hex 32"));
        }
        mistakes
    }
}

impl Validate for ModelsConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        section(&mut mistakes, "heavy", &self.heavy);
        for (name, tier) in [("fast", &self.fast), ("light", &self.light)] {
            if let Some(tier) = tier {
                section(&mut mistakes, name, tier);
            }
        }
        mistakes
    }
}

impl Validate for ModelConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check(&mut mistakes, "first_token_ms", self.first_token_ms, 100..=3_600_000, "milliseconds");
        check(&mut mistakes, "idle_ms", self.idle_ms, 100..=3_600_000, "milliseconds");
        check(&mut mistakes, "timeout_ms", self.timeout_ms, 100..=3_600_000, "milliseconds");
        check(&mut mistakes, "max_retry_after_ms", self.max_retry_after_ms, 0..=3_600_000, "milliseconds");
        check(&mut mistakes, "max_answer_bytes", self.max_answer_bytes, 1_024..=1_000_000_000, "bytes");
        check(&mut mistakes, "max_reasoning_bytes", self.max_reasoning_bytes, 0..=131_072, "bytes");
        check(&mut mistakes, "max_in_flight", self.max_in_flight, 1..=100_000, "calls");
        check(&mut mistakes, "max_parts", self.max_parts, 0..=1_000, "images and pieces of audio");
        check(&mut mistakes, "max_parts_bytes", self.max_parts_bytes, 0..=1_000_000_000, "bytes");
        if self.context_tokens > 0 {
            check(&mut mistakes, "context_tokens", self.context_tokens, 1_000..=100_000_000, "tokens");
        }
        if self.token_factor.is_some_and(|factor| !(0.1..=10.0).contains(&factor)) {
            mistakes.push(Mistake::new(
                "token_factor",
                "expected a number from 0.1 to 10",
                "leave it out for the default",
            ));
        }
        check(&mut mistakes, "fallbacks", self.fallbacks.len(), 0..=FALLBACKS, "models");
        for (at, fallback) in self.fallbacks.iter().enumerate() {
            section(&mut mistakes, &format!("fallbacks[{at}]"), fallback);
            if !fallback.fallbacks.is_empty() {
                let advice = "list all of them under the first model";
                mistakes.push(Mistake::new(format!("fallbacks[{at}].fallbacks"), "expected none", advice));
            }
        }
        if !self.base_url.starts_with("http://") && !self.base_url.starts_with("https://") {
            let advice = "give the endpoint's address, such as https://api.openai.com/v1";
            mistakes.push(Mistake::new("base_url", "expected an http or https URL", advice));
        }
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::config::load;

    use super::*;

    /// Returns the mistakes found in a price; they must not quote the value, which may be a secret.
    fn told(price: &str) -> Vec<String> {
        let environment = [("KAIRO_MODELS__FAST__PRICE".to_owned(), price.to_owned())];
        match load::<Config>([], environment) {
            Ok(_) => Vec::new(),
            Err(error) => error.to_string().lines().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn a_price_has_both_numbers_and_a_mistake_names_the_one_that_is_wrong() {
        assert_eq!(told(r#"{"input":1.25,"output":"10"}"#), [""; 0]);
        assert_eq!(told(r#"{"input":1.25,"output":"10","cached":0.125}"#), [""; 0]);
        for (price, key) in [
            (r#"{"input":-1,"output":10}"#, "models.fast.price.input"),
            (r#"{"input":1,"output":0.0000001}"#, "models.fast.price.output"),
            (r#"{"input":1,"output":"ten"}"#, "models.fast.price.output"),
            (r#"{"input":1}"#, "models.fast.price"),
            (r#"{"input":1,"output":1,"cached":"ten"}"#, "models.fast.price.cached"),
            (r#"{"input":1,"output":1,"reasoning":1}"#, "models.fast.price"),
            ("cheap", "models.fast.price"),
        ] {
            let told = told(price).join("\n");
            assert!(told.contains(key) && !told.contains("ten") && !told.contains("cheap"), "{price}: {told}");
        }
    }
}
