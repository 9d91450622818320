//! Spans of what agents do, by OpenTelemetry's conventions for generative AI. What is said to models and what they say stands
//! in none.
//!
//! Numbers are signed: unsigned ones reach OpenTelemetry as texts.

use kairo_core::ids::Name;
use kairo_mind::request::ModelRequest;
use kairo_proto::v1::Completion;
use tracing::{Span, field::Empty, info_span};

use crate::{config::ModelConfig, model_server::ModelServer};

/// An agent decides. Ids stand in no name, as names of spans are few.
pub fn invoke_agent(agent: &Name) -> Span {
    info_span!(
        "invoke_agent",
        otel.name = "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.id = agent.as_str(),
        gen_ai.agent.name = agent.as_str(),
        gen_ai.conversation.id = Empty,
        gen_ai.provider.name = Empty,
    )
}

/// A model is asked.
pub fn chat(config: &ModelConfig, server: &ModelServer, request: &ModelRequest) -> Span {
    let conversation = Some(request.thread_id.as_str()).filter(|thread| !thread.is_empty());
    // The span around it is that of the agent.
    let agent = Span::current();
    agent.record("gen_ai.provider.name", server.provider);
    agent.record("gen_ai.conversation.id", conversation);
    info_span!(
        "chat",
        otel.name = format!("chat {}", config.model),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = server.provider,
        gen_ai.conversation.id = conversation,
        "gen_ai.output.type" = if request.answer_schema.is_some() { "json" } else { "text" },
        gen_ai.request.model = config.model,
        gen_ai.response.model = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        server.address = server.address,
        server.port = server.port.map(i64::from),
        "error.type" = Empty,
        kairo.tier = request.tier,
    )
}

/// Records the result of a model call on its span.
pub fn record_answer(span: &Span, completion: &Completion) {
    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    match &completion.error {
        Some(error) => _ = span.record("error.type", error.kind.as_str()),
        None => {
            span.record("gen_ai.response.model", completion.model.as_str());
            span.record("gen_ai.usage.input_tokens", count(completion.input_tokens));
            span.record("gen_ai.usage.output_tokens", count(completion.output_tokens));
            if completion.cached_tokens > 0 {
                span.record("gen_ai.usage.cache_read.input_tokens", count(completion.cached_tokens));
            }
        }
    }
}
