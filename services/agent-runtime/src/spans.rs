//! Spans of what agents do, by OpenTelemetry's conventions for generative AI. What is said to models and what they say stands
//! in none.

use kairo_core::ids::Name;
use kairo_proto::v1::Completion;
use tracing::{Span, field::Empty, info_span};

use crate::config::ModelConfig;

/// An agent decides. Ids stand in no name, as names of spans are few.
pub fn invoke_agent(agent: &Name) -> Span {
    info_span!(
        "invoke_agent",
        otel.name = "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.id = agent.as_str(),
    )
}

/// A model is asked.
pub fn chat(config: &ModelConfig, tier: &str) -> Span {
    info_span!(
        "chat",
        otel.name = format!("chat {}", config.model),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = "openai",
        gen_ai.request.model = config.model,
        gen_ai.response.model = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        "error.type" = Empty,
        kairo.tier = tier,
    )
}

/// What came of it.
pub fn answered(span: &Span, completion: &Completion) {
    match &completion.error {
        Some(error) => _ = span.record("error.type", error.kind.as_str()),
        None => {
            span.record("gen_ai.response.model", completion.model.as_str());
            span.record("gen_ai.usage.input_tokens", completion.input_tokens);
            span.record("gen_ai.usage.output_tokens", completion.output_tokens);
        }
    }
}
