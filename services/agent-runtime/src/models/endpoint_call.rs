//! One call of an endpoint: the request is sent as that takes it, and the answer read as it arrives, within its limits.

use std::{collections::BTreeSet, time::Duration};

use futures::FutureExt;
use kairo_completion::{
    AnswerReader, OfferedTools, ReaderSettings as Reading, StreamEnd,
    error::{ErrorKind, ModelError},
};
use kairo_mind::{
    chat_completions::{self, EndpointFeatures, RequestSettings, ShownPart, to_wire_name},
    request::{ModelRequest, PromptMessage},
};
use kairo_proto::v1::Completion;
use reqwest::Response;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{
    Model,
    capabilities::Capabilities,
    http::{post, read_error, root_cause},
    tool_sets::ToolSet,
};
use crate::{
    answer_progress::{AnswerProgress, ProgressHandle},
    config::ModelConfig,
    live_answer::LiveAnswer,
};

/// The most immediate retries of a request, each without a feature that the endpoint refuses.
const MENDINGS: usize = 8;
/// Wait for what may follow the end of an answer, such as its usage.
const AFTERWARDS: Duration = Duration::from_secs(5);
/// Wait for the body of an error: what it says is worth no more.
const ERROR_WAIT: Duration = Duration::from_secs(10);
/// Shown to the model in place of parts that its endpoint refuses.
const NOT_SHOWN: &str = "you cannot be shown it";

/// A call to be made.
pub struct EndpointCall<'c> {
    pub request: &'c ModelRequest,
    /// Digest of the request.
    pub digest: &'c str,
    pub tool_set: &'c ToolSet,
    pub shown: &'c [ShownPart],
    pub received: &'c ProgressHandle,
}

impl Model {
    /// The answer to a call. What the endpoint refuses of the request is left out, and it is asked again at once; that it refuses it
    /// is remembered as soon as it answers.
    pub async fn call(
        &self,
        call: &EndpointCall<'_>,
        mut live: Option<&mut LiveAnswer<'_>>,
    ) -> Result<Completion, ModelError> {
        let mut capabilities = self.knowledge.capabilities();
        let known = capabilities.clone();
        for _ in 0..MENDINGS {
            let outcome = self.call_once(call, &capabilities, live.as_deref_mut()).await;
            let error = match outcome {
                Ok(completion) => {
                    if capabilities != known {
                        self.knowledge.keep(capabilities);
                    }
                    return Ok(completion);
                }
                Err(error) => error,
            };
            if !self.learn_from_error(&mut capabilities, call, &error) {
                return Err(error);
            }
        }
        self.call_once(call, &capabilities, live).await
    }

    /// Returns true if an error tells what to leave out of the request.
    fn learn_from_error(&self, capabilities: &mut Capabilities, call: &EndpointCall<'_>, error: &ModelError) -> bool {
        let Some(refused) = &error.refused else { return false };
        let body = serde_json::to_value(self.body(call, call.shown, capabilities.request_format())).unwrap_or_default();
        let learned = capabilities.learn(refused, &body, &call.request.tools);
        if learned {
            let model = &self.config.model;
            let message = &error.message;
            tracing::warn!(model, ?refused, message, "leaves out what the endpoint refuses, and asks again");
        }
        learned
    }

    fn body<'b>(
        &'b self,
        call: &'b EndpointCall<'_>,
        shown: &'b [ShownPart],
        takes: EndpointFeatures,
    ) -> chat_completions::RequestBody<'b> {
        let ModelConfig { model, stream, max_output_tokens, .. } = &self.config;
        let settings = RequestSettings { model, stream: *stream, max_output_tokens: *max_output_tokens, takes };
        chat_completions::build_body(call.request, &call.tool_set.wire, shown, settings)
    }

    async fn call_once(
        &self,
        call: &EndpointCall<'_>,
        capabilities: &Capabilities,
        mut live: Option<&mut LiveAnswer<'_>>,
    ) -> Result<Completion, ModelError> {
        let begun = Instant::now();
        let first = begun + Duration::from_millis(self.config.first_token_ms);
        let sending = self.send_request(call, capabilities);
        let response = match self.config.stream {
            true => timeout_at(first, sending).await.unwrap_or_else(|_| Err(self.no_answer_error()))?,
            false => sending.await?,
        };
        if !response.status().is_success() {
            let status = response.status().as_u16();
            let said = tokio::time::timeout(ERROR_WAIT, read_error(response)).await;
            let silent = || ModelError { status, ..kairo_completion::error::from_http(status, [], &[], None) };
            return Err(said.unwrap_or_else(|_| silent()));
        }
        let mut reader = AnswerReader::new(self.reader_settings(call), offered_tools(call.request));
        let end = self.read_answer(response, &mut reader, call.received, live.as_deref_mut(), first).await;
        if end.is_err()
            && let Some(live) = &mut live
        {
            live.flush().await;
        }
        let is_marked = reader.is_finished();
        let outcome = reader.finish(&end?);
        match &outcome {
            Ok(_) if is_marked => self.knowledge.note_end(call.digest, true),
            Err(error) if error.is_unmarked_end => self.knowledge.note_end(call.digest, false),
            Ok(_) | Err(_) => {}
        }
        let (completion, rest) = outcome?;
        if let Some(live) = &mut live {
            live.show(&rest.reasoning, true).await;
            live.show(&rest.text, false).await;
            live.flush().await;
        }
        Ok(completion)
    }

    /// Sends the request as the endpoint takes it.
    async fn send_request(&self, call: &EndpointCall<'_>, capabilities: &Capabilities) -> Result<Response, ModelError> {
        if capabilities.takes_all() {
            return post(&self.client, &self.http, self.body(call, call.shown, EndpointFeatures::default())).await;
        }
        let told: Vec<ShownPart> = call.shown.iter().map(|shown| shown_or_note(shown, capabilities)).collect();
        let mut body =
            serde_json::to_value(self.body(call, &told, capabilities.request_format())).unwrap_or(Value::Null);
        capabilities.adjust(&mut body, &call.request.tools);
        post(&self.client, &self.http, body).await
    }

    fn reader_settings(&self, call: &EndpointCall<'_>) -> Reading {
        Reading {
            thinks_first: self.config.thinks_first,
            max_reasoning_bytes: self.config.max_reasoning_bytes,
            max_answer_bytes: self.config.max_answer_bytes,
            takes_unmarked_end: self.knowledge.takes_unmarked_end(call.digest),
            seed: call.digest.to_owned(),
            taken_ids: known_ids(call.request),
        }
    }

    /// Takes in an answer to its end, and shows what it adds: what arrived at once is shown at once.
    async fn read_answer(
        &self,
        mut response: Response,
        reader: &mut AnswerReader,
        received: &ProgressHandle,
        mut live: Option<&mut LiveAnswer<'_>>,
        first: Instant,
    ) -> Result<StreamEnd, ModelError> {
        let idle = Duration::from_millis(self.config.idle_ms);
        let mut arrived = 0;
        let mut until = first;
        while !reader.is_over() {
            let more = match response.chunk().now_or_never() {
                Some(more) => more,
                None => {
                    if let Some(live) = &mut live {
                        live.flush().await;
                    }
                    match self.config.stream || reader.is_finished() {
                        true => match timeout_at(until, response.chunk()).await {
                            Ok(more) => more,
                            Err(_) if reader.is_finished() => return Ok(StreamEnd::Closed),
                            Err(_) => return Err(self.stalled_error(reader)),
                        },
                        false => response.chunk().await,
                    }
                }
            };
            let bytes = match more {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(StreamEnd::Closed),
                Err(cause) => return Ok(StreamEnd::Broken(root_cause(&cause))),
            };
            let added = reader.read(&bytes)?;
            received.set(&progress_of(reader));
            if let Some(live) = &mut live {
                live.show(&added.reasoning, true).await;
                live.show(&added.text, false).await;
            }
            if reader.activity_count() > arrived {
                arrived = reader.activity_count();
                until = Instant::now() + if reader.is_finished() { AFTERWARDS.min(idle) } else { idle };
            }
        }
        Ok(StreamEnd::Closed)
    }

    fn no_answer_error(&self) -> ModelError {
        ModelError::new(ErrorKind::Timeout, format!("no answer began within {} ms", self.config.first_token_ms))
    }

    fn stalled_error(&self, reader: &AnswerReader) -> ModelError {
        match reader.activity_count() {
            0 => self.no_answer_error(),
            _ => ModelError::new(ErrorKind::Timeout, format!("nothing more arrived for {} ms", self.config.idle_ms)),
        }
    }
}

fn offered_tools(request: &ModelRequest) -> OfferedTools {
    OfferedTools::new(
        request
            .tools
            .iter()
            .chain(&request.unlisted)
            .map(|tool| (&*tool.name, to_wire_name(&tool.name), &*tool.schema)),
    )
}

/// Ids of the calls that a request shows: those of an answer to it differ from them.
fn known_ids(request: &ModelRequest) -> BTreeSet<String> {
    let calls = request.messages.iter().flat_map(|message| match message {
        PromptMessage::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    calls.map(|call| call.id.clone()).collect()
}

fn shown_or_note(shown: &ShownPart, capabilities: &Capabilities) -> ShownPart {
    if capabilities.takes_parts() { shown.clone() } else { ShownPart::Told(NOT_SHOWN) }
}

fn progress_of(reader: &AnswerReader) -> AnswerProgress {
    let progress = reader.progress();
    AnswerProgress {
        model: progress.model.clone(),
        bytes: progress.bytes,
        pieces: progress.pieces,
        input_tokens: progress.input_tokens,
        output_tokens: progress.output_tokens,
    }
}
