//! Calling a model. Whatever happens, the outcome is a completion: a failure is one too.

mod capabilities;
mod endpoint_call;
mod http;
mod part_store;
mod parts;
#[cfg(test)]
mod tests;
mod tool_sets;

use std::{sync::Arc, time::Duration};

use async_openai::{Client, config::OpenAIConfig};
use futures::{FutureExt, future::BoxFuture};
use kairo_completion::error::{ErrorKind, ModelError};
use kairo_core::{
    metrics::{
        Metrics,
        table::{MODEL_IN_FLIGHT, MODEL_LIMIT},
    },
    sharing::{
        QuotaHolder,
        permit_pool::{Permit, PermitPool},
    },
};
use kairo_mind::{
    chat_completions::ShownPart,
    request::{ModelRequest, short_digest},
};
use kairo_proto::v1::{Completion, CompletionError, RefusedToolRow};
use tokio::time::Instant;
use tracing::Instrument;

pub use self::part_store::{EmptyPartStore, PartLookup, PartStore, StoredPart};
use self::{capabilities::EndpointKnowledge, endpoint_call::EndpointCall, tool_sets::ToolSetCache};
use crate::{
    agent_metrics::{self, CallGauge},
    answer_progress::{AnswerProgress, ProgressHandle},
    config::{ModelConfig, ModelsConfig},
    estimate,
    live_answer::LiveAnswer,
    model_server::ModelServer,
    spans,
    turn::AgentLane,
};

/// Longest message of an error, in characters.
const MESSAGE_CHARS: usize = 500;
/// Longest wait for a connection.
const CONNECTING: Duration = Duration::from_secs(10);
/// Refused tools that a replica tells of at most.
const REFUSED_TOOLS: usize = 100;
/// Replaces API keys in error messages.
const REDACTED: &str = "<redacted>";

/// Answers the requests of the mind.
pub trait ModelClient: Send + Sync {
    /// Asks the model of the request's tier. If the answer comes in pieces, `received` is told how much of it has arrived, and
    /// `live` is given each piece.
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        received: &'a ProgressHandle,
        live: Option<LiveAnswer<'a>>,
    ) -> BoxFuture<'a, Completion>;
}

/// The models, by tier.
pub struct Models {
    heavy: Model,
    /// `None` if the heavier model serves.
    fast: Option<Model>,
    light: Option<Model>,
    parts: Arc<dyn PartStore>,
    tool_sets: ToolSetCache,
    metrics: Metrics,
    /// Room for images and audio while they are being sent, in kilobytes.
    room: PermitPool,
}

struct Model {
    client: Client<OpenAIConfig>,
    /// The HTTP client beneath the API client.
    http: reqwest::Client,
    config: ModelConfig,
    server: ModelServer,
    knowledge: EndpointKnowledge,
    /// Those that are asked in its place.
    fallbacks: Vec<Model>,
    /// Places for calls, of which each user has a share.
    places: PermitPool,
    /// As many places again for background work, which takes none from users.
    work_places: PermitPool,
}

impl Models {
    /// `parts` has the images and audio that models are shown; `room` is what they may take of memory while they are being sent,
    /// in bytes.
    pub fn new(config: &ModelsConfig, parts: Arc<dyn PartStore>, room: u64) -> Self {
        let model = |config: &Option<ModelConfig>| config.as_ref().map(Model::new);
        Self {
            heavy: Model::new(&config.heavy),
            fast: model(&config.fast),
            light: model(&config.light),
            parts,
            tool_sets: ToolSetCache::default(),
            metrics: Metrics::default(),
            room: PermitPool::with_capacity(kilobytes(room)),
        }
    }

    /// Sets the metrics by which calls are counted and measured.
    #[must_use]
    pub fn with_metrics(self, metrics: &Metrics) -> Self {
        Self { metrics: metrics.clone(), ..self }
    }

    /// Has metrics say how many calls are under way, and may be.
    pub fn observe(self: &Arc<Self>) {
        for (metric, calls) in
            [(&MODEL_IN_FLIGHT, Model::in_flight as fn(&Model, AgentLane) -> usize), (&MODEL_LIMIT, Model::limit)]
        {
            let models = Arc::downgrade(self);
            self.metrics.observe(metric, move |say| {
                if let Some(models) = models.upgrade() {
                    models.count_calls(calls).report(say);
                }
            });
        }
    }

    fn count_calls(&self, of: impl Fn(&Model, AgentLane) -> usize) -> CallGauge<'_> {
        let mut calls = CallGauge::default();
        let tiers = [("heavy", Some(&self.heavy)), ("fast", self.fast.as_ref()), ("light", self.light.as_ref())];
        for (tier, model) in tiers.into_iter().filter_map(|(tier, model)| Some((tier, model?))) {
            for model in std::iter::once(model).chain(&model.fallbacks) {
                for lane in [AgentLane::Foreground, AgentLane::Background] {
                    calls.add(&model.config.model, tier, lane, of(model, lane));
                }
            }
        }
        calls
    }

    /// Tools that the endpoints of models refuse, as this replica has learned since it began.
    pub fn refused_tools(&self) -> Vec<RefusedToolRow> {
        let tiers = [Some(&self.heavy), self.fast.as_ref(), self.light.as_ref()];
        let models = tiers.into_iter().flatten().flat_map(|model| std::iter::once(model).chain(&model.fallbacks));
        let mut refused: Vec<RefusedToolRow> = models
            .flat_map(|model| {
                let capabilities = model.knowledge.capabilities();
                let row = |tool: &str| RefusedToolRow { model: model.config.model.clone(), tool: tool.to_owned() };
                capabilities.refused_tools().map(row).collect::<Vec<_>>()
            })
            .collect();
        refused.sort_by(|one, other| (&one.model, &one.tool).cmp(&(&other.model, &other.tool)));
        refused.dedup();
        refused.truncate(REFUSED_TOOLS);
        refused
    }

    fn for_tier(&self, tier: &str) -> &Model {
        let fast = self.fast.as_ref().unwrap_or(&self.heavy);
        match tier {
            "light" => self.light.as_ref().unwrap_or(fast),
            "fast" => fast,
            _ => &self.heavy,
        }
    }

    /// The answer of the tier's model or, when that has none, of the first of its fallbacks that has one. Of several errors the one
    /// is told that is worth another try: one that passes, or that the request is too long.
    async fn complete_with_fallbacks(
        &self,
        request: &ModelRequest,
        received: &ProgressHandle,
        mut live: Option<LiveAnswer<'_>>,
    ) -> Completion {
        let model = self.for_tier(request.tier);
        let mut told = model.complete(self, request, received, live.as_mut()).await;
        for fallback in &model.fallbacks {
            let Some(error) = &told.error else { break };
            tracing::warn!(
                model = told.model,
                fallback = fallback.config.model,
                kind = error.kind,
                error = error.message,
                "asks another model"
            );
            if let Some(live) = &mut live {
                live.restart();
            }
            let next = fallback.complete(self, request, received, live.as_mut()).await;
            let latency_ms = told.latency_ms.saturating_add(next.latency_ms);
            told = Completion { latency_ms, ..if worth(&next) > worth(&told) { next } else { told } };
        }
        told
    }

    /// The images and audio of a request, with the room they take. One that is gone is told of in words.
    async fn load(
        &self,
        request: &ModelRequest,
        config: &ModelConfig,
        takes_parts: bool,
    ) -> Result<(Vec<ShownPart>, Option<Permit>), ModelError> {
        let mut chosen = parts::choose_shown(request.media_parts(), config);
        if !takes_parts {
            chosen.iter_mut().for_each(|(_, why_not)| *why_not = why_not.or(Some("you are not shown such")));
        }
        let bytes = parts::bytes(&chosen);
        let room = match bytes {
            0 => None,
            // One that is larger than all the room there is takes all of it.
            bytes => Some(self.room.acquire_many(&holder(request), kilobytes(bytes)).await),
        };
        let mut shown = Vec::with_capacity(chosen.len());
        for (part, why_not) in chosen {
            shown.push(match why_not {
                Some(why_not) => ShownPart::Told(why_not),
                None => match self.parts.get(&part.digest, part.size).await {
                    Ok(Some(StoredPart { media_type, bytes })) => parts::encode_shown(media_type, &bytes),
                    Ok(None) => ShownPart::Told("it is no longer stored"),
                    Err(cause) => {
                        return Err(ModelError::new(ErrorKind::Unavailable, format!("nothing to show: {cause}")));
                    }
                },
            });
        }
        Ok((shown, room))
    }
}

impl ModelClient for Models {
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        received: &'a ProgressHandle,
        live: Option<LiveAnswer<'a>>,
    ) -> BoxFuture<'a, Completion> {
        self.complete_with_fallbacks(request, received, live).boxed()
    }
}

/// A digest of what the request does not say: the model it names, and why it is not shown some of the parts.
fn sent_digest(model: &str, shown: &[ShownPart]) -> u64 {
    let shown = shown.iter().map(|shown| match shown {
        ShownPart::Told(why_not) => why_not,
        ShownPart::Data { .. } => "shown",
    });
    let said: Vec<&str> = std::iter::once(model).chain(shown).collect();
    short_digest(said.join("\n").as_bytes())
}

/// Rounded up: something takes room, however small.
fn kilobytes(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(1024)).unwrap_or(usize::MAX)
}

/// The holder whose share of calls a request counts against: its user; all requests without one share one.
fn holder(request: &ModelRequest) -> QuotaHolder {
    QuotaHolder::on_behalf(Some(&request.user), "")
}

impl Model {
    fn new(config: &ModelConfig) -> Self {
        let endpoint = OpenAIConfig::new().with_api_base(&config.base_url).with_api_key(config.api_key.expose());
        Self {
            client: Client::with_config(endpoint),
            http: reqwest::Client::builder().connect_timeout(CONNECTING).build().unwrap_or_default(),
            knowledge: EndpointKnowledge::default(),
            fallbacks: config.fallbacks.iter().map(Model::new).collect(),
            config: config.clone(),
            server: ModelServer::from_url(&config.base_url),
            places: PermitPool::with_capacity(config.max_in_flight),
            work_places: PermitPool::with_capacity(config.max_in_flight),
        }
    }

    fn places(&self, lane: AgentLane) -> &PermitPool {
        match lane {
            AgentLane::Foreground => &self.places,
            AgentLane::Background => &self.work_places,
        }
    }

    fn in_flight(&self, lane: AgentLane) -> usize {
        self.places(lane).in_use()
    }

    fn limit(&self, _: AgentLane) -> usize {
        self.config.max_in_flight
    }

    async fn complete(
        &self,
        models: &Models,
        request: &ModelRequest,
        received: &ProgressHandle,
        live: Option<&mut LiveAnswer<'_>>,
    ) -> Completion {
        // What arrived of another model's answer is none of this one's.
        received.set(&AnswerProgress::default());
        let asked = Instant::now();
        let lane = if request.is_work { AgentLane::Background } else { AgentLane::Foreground };
        let _permit = self.places(lane).acquire(&holder(request)).await;
        let started = Instant::now();
        let tool_set = models.tool_sets.get_or_encode(&request.tools);
        let span = spans::chat(&self.config, &self.server, request);
        let mut digests = request.part_digests(tool_set.digest);
        let request_digest = request.digest_with_tools(&tool_set.canonical);
        let takes_parts = self.knowledge.capabilities().takes_parts();
        let outcome = match models.load(request, &self.config, takes_parts).await {
            Err(error) => Err(error),
            Ok((shown, _room)) => {
                digests.sent = sent_digest(&self.config.model, &shown);
                let call =
                    EndpointCall { request, digest: &request_digest, tool_set: &tool_set, shown: &shown, received };
                self.with_timeout(self.call(&call, live).instrument(span.clone())).await
            }
        };
        let completion = outcome.unwrap_or_else(|error| self.failed_completion(error, &request_digest));
        let completion = estimate::fill_in_tokens(completion, request, &received.get(), self.config.tokenizer_factor());
        spans::record_answer(&span, &completion);
        span.in_scope(|| {
            let metrics = &models.metrics;
            let provider = self.server.provider;
            agent_metrics::record_call(metrics, &self.config, provider, request.tier, &completion, asked.elapsed());
        });
        Completion {
            tier: request.tier.to_owned(),
            model: if completion.model.is_empty() { self.config.model.clone() } else { completion.model },
            request_digest,
            digests: Some(digests),
            latency_ms: u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX),
            ..completion
        }
    }

    async fn with_timeout(
        &self,
        answer: impl Future<Output = Result<Completion, ModelError>>,
    ) -> Result<Completion, ModelError> {
        let limit = Duration::from_millis(self.config.timeout_ms);
        tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
            Err(ModelError::new(ErrorKind::Timeout, format!("no whole answer within {} ms", limit.as_millis())))
        })
    }

    /// Builds the completion of a failed call. The call is not retried if the endpoint asks for a longer wait than is
    /// configured.
    fn failed_completion(&self, mut error: ModelError, request_digest: &str) -> Completion {
        if let Some(tokens) = error.minute_tokens
            && self.knowledge.is_too_large_again(request_digest)
        {
            // It was waited for, and changed nothing: only a shorter request can be answered.
            (error.kind, error.context_tokens) = (ErrorKind::ContextTooLong, Some(tokens));
        }
        let is_too_long = error.retry_after_ms.is_some_and(|wait| wait > self.config.max_retry_after_ms);
        let error = CompletionError::from(error);
        let error = CompletionError { transient: error.transient && !is_too_long, ..error };
        let error = redact_error(error, self.config.api_key.expose());
        Completion { error: Some(error), ..Default::default() }
    }
}

/// Ranks an outcome: an answer first, then a transient error, then a request that is too long, then any other error.
fn worth(completion: &Completion) -> u8 {
    match &completion.error {
        None => 3,
        Some(error) if error.transient => 2,
        Some(error) if error.kind == ErrorKind::ContextTooLong.word() => 1,
        Some(_) => 0,
    }
}

/// Prepares an error for the event of the failure: cuts the message to `MESSAGE_CHARS` and removes the key, which some
/// endpoints quote when they refuse it.
fn redact_error(error: CompletionError, key: &str) -> CompletionError {
    let message = if key.is_empty() { error.message } else { error.message.replace(key, REDACTED) };
    CompletionError { message: message.chars().take(MESSAGE_CHARS).collect(), ..error }
}
