//! Calling a model. Whatever happens, the outcome is a completion: a failure is one too.

mod details;
mod parts;
mod stored;
mod thinking;
mod tool_sets;
mod wire;

use std::{sync::Arc, time::Duration};

use async_openai::{
    Client,
    config::OpenAIConfig,
    error::{ApiError, OpenAIError},
    middleware::ReqwestService,
};
use futures::{FutureExt, Stream, StreamExt, future::BoxFuture};
use kairo_core::metrics::{
    Metrics,
    table::{MODEL_IN_FLIGHT, MODEL_LIMIT},
};
use kairo_mind::{
    chat_completions::{self, Settings, Shown, Takes},
    request::{ModelRequest, short_digest},
};
use kairo_proto::v1::{Completion, CompletionError};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};
use tracing::Instrument;

pub use self::stored::{Found, NoParts, Parts, Stored};
use self::tool_sets::{ToolSet, ToolSets};
use crate::{
    config::{ModelConfig, ModelsConfig},
    estimate,
    live::Live,
    measures::{self, Calls},
    received::{Received, SoFar},
    spans,
    turn::Lane,
};

/// Longest message of an error, in characters.
const MESSAGE_CHARS: usize = 500;
/// What is said in the place of a key.
const REDACTED: &str = "<redacted>";

/// Whoever answers what the mind asks.
pub trait Answers: Send + Sync {
    /// Asks the model of the request's tier. If the answer comes in pieces, `received` is told how much of it has arrived, and
    /// `live` is given each piece.
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        received: &'a Received,
        live: Option<Live<'a>>,
    ) -> BoxFuture<'a, Completion>;
}

/// The models, by tier.
pub struct Models {
    heavy: Model,
    /// None where the heavier one serves.
    fast: Option<Model>,
    light: Option<Model>,
    parts: Arc<dyn Parts>,
    tool_sets: ToolSets,
    metrics: Metrics,
    /// Room for images and audio while they are being sent, in kilobytes.
    room: Semaphore,
    room_kb: u32,
}

struct Model {
    client: Client<OpenAIConfig>,
    config: ModelConfig,
    /// Those that are asked in its place.
    fallbacks: Vec<Model>,
    permits: Semaphore,
    /// So many again for what is worked on in the background, which takes none from users.
    work_permits: Semaphore,
}

impl Models {
    /// `parts` has the images and audio that models are shown; `room` is what they may take of memory while they are being sent,
    /// in bytes.
    pub fn new(config: &ModelsConfig, parts: Arc<dyn Parts>, room: u64) -> Self {
        let model = |config: &Option<ModelConfig>| config.as_ref().map(Model::new);
        let room_kb = kilobytes(room);
        Self {
            heavy: Model::new(&config.heavy),
            fast: model(&config.fast),
            light: model(&config.light),
            parts,
            tool_sets: ToolSets::default(),
            metrics: Metrics::default(),
            room: Semaphore::new(usize::try_from(room_kb).unwrap_or(Semaphore::MAX_PERMITS)),
            room_kb,
        }
    }

    /// The same, which counts and measures calls.
    #[must_use]
    pub fn measured(self, metrics: &Metrics) -> Self {
        Self { metrics: metrics.clone(), ..self }
    }

    /// Has metrics say how many calls are under way, and may be.
    pub fn observe(self: &Arc<Self>) {
        for (metric, calls) in
            [(&MODEL_IN_FLIGHT, Model::in_flight as fn(&Model, Lane) -> usize), (&MODEL_LIMIT, Model::limit)]
        {
            let models = Arc::downgrade(self);
            self.metrics.observe(metric, move |say| {
                if let Some(models) = models.upgrade() {
                    models.calls(calls).say(say);
                }
            });
        }
    }

    fn calls(&self, of: impl Fn(&Model, Lane) -> usize) -> Calls<'_> {
        let mut calls = Calls::default();
        let tiers = [("heavy", Some(&self.heavy)), ("fast", self.fast.as_ref()), ("light", self.light.as_ref())];
        for (tier, model) in tiers.into_iter().filter_map(|(tier, model)| Some((tier, model?))) {
            for model in std::iter::once(model).chain(&model.fallbacks) {
                for lane in [Lane::Foreground, Lane::Work] {
                    calls.add(&model.config.model, tier, lane, of(model, lane));
                }
            }
        }
        calls
    }

    fn of(&self, tier: &str) -> &Model {
        let fast = self.fast.as_ref().unwrap_or(&self.heavy);
        match tier {
            "light" => self.light.as_ref().unwrap_or(fast),
            "fast" => fast,
            _ => &self.heavy,
        }
    }

    /// The answer of the tier's model or, when that is away or refuses, of the first of its fallbacks that has one.
    async fn answered(&self, request: &ModelRequest, received: &Received, mut live: Option<Live<'_>>) -> Completion {
        let model = self.of(request.tier);
        let mut completion = model.complete(self, request, received, live.as_mut()).await;
        for fallback in &model.fallbacks {
            let Some(error) = completion.error.as_ref().filter(|error| is_anothers_turn(error)) else { break };
            tracing::warn!(
                model = completion.model,
                fallback = fallback.config.model,
                error = error.message,
                "asks another model"
            );
            let latency_ms = completion.latency_ms;
            completion = fallback.complete(self, request, received, live.as_mut()).await;
            completion.latency_ms = completion.latency_ms.saturating_add(latency_ms);
        }
        completion
    }

    /// The images and audio of a request, with the room they take. One that is gone is told of in words.
    async fn load(
        &self,
        request: &ModelRequest,
        config: &ModelConfig,
    ) -> Result<(Vec<Shown>, Option<SemaphorePermit<'_>>), CompletionError> {
        let chosen = parts::chosen(request.parts(), config);
        let bytes = parts::bytes(&chosen);
        let room = match bytes {
            0 => None,
            // One that is larger than all the room there is takes all of it.
            bytes => self.room.acquire_many(kilobytes(bytes).min(self.room_kb)).await.ok(),
        };
        let mut shown = Vec::with_capacity(chosen.len());
        for (part, why_not) in chosen {
            shown.push(match why_not {
                Some(why_not) => Shown::Told(why_not),
                None => match self.parts.get(&part.digest, part.size).await {
                    Ok(Some(Stored { media_type, bytes })) => parts::data(media_type, &bytes),
                    Ok(None) => Shown::Told("it is no longer stored"),
                    Err(cause) => return Err(error("model_unavailable", format!("nothing to show: {cause}"), true)),
                },
            });
        }
        Ok((shown, room))
    }
}

impl Answers for Models {
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        received: &'a Received,
        live: Option<Live<'a>>,
    ) -> BoxFuture<'a, Completion> {
        self.answered(request, received, live).boxed()
    }
}

/// A digest of what the request does not say: the model it names, and why it is not shown some of the parts.
fn sent(model: &str, shown: &[Shown]) -> u64 {
    let shown = shown.iter().map(|shown| match shown {
        Shown::Told(why_not) => why_not,
        Shown::Data { .. } => "shown",
    });
    let said: Vec<&str> = std::iter::once(model).chain(shown).collect();
    short_digest(said.join("\n").as_bytes())
}

/// Rounded up: something takes room, however small.
fn kilobytes(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

impl Model {
    fn new(config: &ModelConfig) -> Self {
        let endpoint = OpenAIConfig::new().with_api_base(&config.base_url).with_api_key(config.api_key.expose());
        Self {
            // By itself the client would try again where nobody sees it: every try is an event here.
            client: Client::with_config(endpoint).with_http_service(ReqwestService::default()),
            fallbacks: config.fallbacks.iter().map(Model::new).collect(),
            config: config.clone(),
            permits: Semaphore::new(config.max_in_flight),
            work_permits: Semaphore::new(config.max_in_flight),
        }
    }

    fn permits(&self, lane: Lane) -> &Semaphore {
        match lane {
            Lane::Foreground => &self.permits,
            Lane::Work => &self.work_permits,
        }
    }

    fn in_flight(&self, lane: Lane) -> usize {
        self.limit(lane).saturating_sub(self.permits(lane).available_permits())
    }

    fn limit(&self, _: Lane) -> usize {
        self.config.max_in_flight
    }

    async fn complete(
        &self,
        models: &Models,
        request: &ModelRequest,
        received: &Received,
        live: Option<&mut Live<'_>>,
    ) -> Completion {
        // What arrived of another model's answer is none of this one's.
        received.note(&SoFar::default());
        let asked = Instant::now();
        let _permit = self.permits(if request.is_work { Lane::Work } else { Lane::Foreground }).acquire().await;
        let started = Instant::now();
        let limit = Duration::from_millis(self.config.timeout_ms);
        let tool_set = models.tool_sets.of(&request.tools);
        let span = spans::chat(&self.config, request.tier);
        let mut digests = request.digests(tool_set.digest);
        let outcome = match models.load(request, &self.config).await {
            Err(error) => Err(error),
            Ok((shown, _room)) => {
                digests.sent = sent(&self.config.model, &shown);
                let call = self.call(request, &tool_set, &shown, received, live).instrument(span.clone());
                match tokio::time::timeout(limit, call).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(error("model_timeout", format!("no answer within {} ms", limit.as_millis()), true)),
                }
            }
        };
        let failed =
            |error| Completion { error: Some(told(error, self.config.api_key.expose())), ..Default::default() };
        let completion = outcome.unwrap_or_else(failed);
        let completion = estimate::counted(completion, request, &received.get(), self.config.factor());
        spans::answered(&span, &completion);
        span.in_scope(|| {
            measures::called(&models.metrics, &self.config, request.tier, &completion, asked.elapsed());
        });
        Completion {
            tier: request.tier.to_owned(),
            model: if completion.model.is_empty() { self.config.model.clone() } else { completion.model },
            request_digest: request.digest_with(&tool_set.canonical),
            digests: Some(digests),
            latency_ms: u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX),
            ..completion
        }
    }

    async fn call(
        &self,
        request: &ModelRequest,
        tool_set: &ToolSet,
        shown: &[Shown],
        received: &Received,
        mut live: Option<&mut Live<'_>>,
    ) -> Result<Completion, CompletionError> {
        let ModelConfig { model, stream, max_output_tokens, .. } = &self.config;
        let takes = Takes::default();
        let settings = Settings { model, stream: *stream, max_output_tokens: *max_output_tokens, takes };
        let body = chat_completions::request(request, &tool_set.wire, shown, settings);
        let mut growing = wire::Growing::new(&self.config);
        if self.config.stream {
            let chunks = self.client.chat().create_stream_byot::<_, Value>(body).await;
            let chunks = chunks.map_err(|error| failure(&error))?;
            let ended = take_all(chunks, &mut growing, received, live.as_deref_mut()).await;
            if let Some(live) = &mut live {
                live.flush().await;
            }
            ended?;
        } else {
            let answer: Value = self.client.chat().create_byot(body).await.map_err(|error| failure(&error))?;
            growing.take(&answer);
        }
        if self.config.stream && !growing.is_finished() {
            return Err(error("malformed_answer", "the answer broke off before its end".to_owned(), true));
        }
        Ok(growing.finish(&request.tools))
    }
}

/// What becomes part of an event of a failure: no more than so much, and no key, which endpoints quote that refuse it.
fn told(error: CompletionError, key: &str) -> CompletionError {
    let message = if key.is_empty() { error.message } else { error.message.replace(key, REDACTED) };
    CompletionError { message: message.chars().take(MESSAGE_CHARS).collect(), ..error }
}

/// Takes in chunks to the end, and shows what they add: what arrived at once is shown at once.
async fn take_all(
    mut chunks: impl Stream<Item = Result<Value, OpenAIError>> + Unpin,
    growing: &mut wire::Growing,
    received: &Received,
    mut live: Option<&mut Live<'_>>,
) -> Result<(), CompletionError> {
    loop {
        let chunk = match (chunks.next().now_or_never(), &mut live) {
            (Some(chunk), _) => chunk,
            (None, Some(live)) => {
                live.flush().await;
                chunks.next().await
            }
            (None, None) => chunks.next().await,
        };
        let Some(chunk) = chunk else { return Ok(()) };
        let added = growing.take(&chunk.map_err(|error| failure(&error))?);
        received.note(growing.so_far());
        if let Some(live) = &mut live {
            live.show(&added.reasoning, true).await;
            live.show(&added.text, false).await;
        }
    }
}

/// What went wrong, and whether the same request may succeed later.
fn failure(cause: &OpenAIError) -> CompletionError {
    match cause {
        OpenAIError::ApiError(answer) => {
            let status = answer.status_code;
            let passing = status.is_server_error() || status.as_u16() == 429 || status.as_u16() == 408;
            let kind = match passing {
                true => "model_unavailable",
                // A limit of tokens a minute is said in like words, and passes.
                false if is_too_much(&answer.api_error) => "context_too_long",
                false => "model_refused",
            };
            error(kind, format!("the endpoint answered {status}: {}", answer.api_error.message), passing)
        }
        OpenAIError::Reqwest(cause) if cause.is_timeout() => error("model_timeout", reason(cause), true),
        OpenAIError::Reqwest(cause) if cause.is_decode() || cause.is_body() => {
            error("malformed_answer", reason(cause), true)
        }
        OpenAIError::Reqwest(cause) => error("model_unavailable", reason(cause), true),
        OpenAIError::JSONDeserialize(cause, _) => {
            error("malformed_answer", format!("the answer is not what the format says: {cause}"), true)
        }
        OpenAIError::StreamError(cause) => error("malformed_answer", format!("the stream broke: {cause}"), true),
        other => error("model_refused", other.to_string(), false),
    }
}

/// Whether an endpoint says that the request is more than its model takes: by the code of the format or, as endpoints differ,
/// in words.
fn is_too_much(error: &ApiError) -> bool {
    let words = [
        "context length",
        "context_length",
        "context window",
        "maximum context",
        "too many tokens",
        "prompt is too long",
    ];
    let said = error.message.to_lowercase();
    error.code.as_deref() == Some("context_length_exceeded") || words.iter().any(|word| said.contains(word))
}

/// Whether another model may have an answer.
fn is_anothers_turn(error: &CompletionError) -> bool {
    matches!(error.kind.as_str(), "model_unavailable" | "model_refused" | "model_timeout")
}

/// The innermost cause, which says more than "error sending request".
fn reason(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn error(kind: &str, message: String, transient: bool) -> CompletionError {
    CompletionError { kind: kind.to_owned(), message, transient, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use kairo_mind::request::Message;
    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// An endpoint that refuses a key, and quotes it.
    async fn refusing(key: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let _ = client.read(&mut [0; 4096]).await;
            // So that the key stands where the message is cut.
            let padding = "x".repeat(MESSAGE_CHARS - 60);
            let body = json!({ "error": { "message": format!("{padding}: wrong: {key}") } }).to_string();
            let head = format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {}\r\n", body.len());
            let answer = format!("{head}content-type: application/json\r\nconnection: close\r\n\r\n{body}");
            client.write_all(answer.as_bytes()).await.unwrap();
        });
        url
    }

    #[tokio::test]
    async fn a_key_that_an_endpoint_quotes_becomes_part_of_no_event() {
        let key = "sk-0123456789-0123456789";
        let heavy = json!({ "base_url": refusing(key).await, "api_key": key });
        let config: ModelsConfig = serde_json::from_value(json!({ "heavy": heavy })).unwrap();
        let models = Models::new(&config, Arc::new(NoParts), 1024);
        let request = ModelRequest::with("heavy", vec![Message::System { text: "x".to_owned() }]);
        let error = models.complete(&request, &Received::default(), None).await.error.unwrap();
        assert_eq!(error.kind, "model_refused");
        assert!(error.message.contains("wrong: <") && !error.message.contains("sk-"), "{}", error.message);
        assert!(error.message.chars().count() <= MESSAGE_CHARS);
    }
}
