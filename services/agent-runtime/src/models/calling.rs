//! One call of an endpoint: the request is sent as that takes it, and the answer read as it arrives, within its limits.

use std::{collections::BTreeSet, time::Duration};

use futures::FutureExt;
use kairo_completion::{
    End, Offered, Reader, Settings as Reading,
    error::{ErrorKind, ModelError},
};
use kairo_mind::{
    chat_completions::{self, Settings, Shown, Takes, to_wire},
    request::{Message, ModelRequest},
};
use kairo_proto::v1::Completion;
use reqwest::Response;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{
    Model,
    capabilities::Capabilities,
    http::{error_of, post, reason},
    tool_sets::ToolSet,
};
use crate::{
    config::ModelConfig,
    live::Live,
    received::{Received, SoFar},
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
pub struct Call<'c> {
    pub request: &'c ModelRequest,
    /// Digest of the request.
    pub digest: &'c str,
    pub tool_set: &'c ToolSet,
    pub shown: &'c [Shown],
    pub received: &'c Received,
}

impl Model {
    /// The answer to a call. What the endpoint refuses of the request is left out, and it is asked again at once; that it refuses it
    /// is remembered as soon as it answers.
    pub async fn call(&self, call: &Call<'_>, mut live: Option<&mut Live<'_>>) -> Result<Completion, ModelError> {
        let mut capabilities = self.learned.capabilities();
        let known = capabilities.clone();
        for _ in 0..MENDINGS {
            let outcome = self.asked_once(call, &capabilities, live.as_deref_mut()).await;
            let error = match outcome {
                Ok(completion) => {
                    if capabilities != known {
                        self.learned.keep(capabilities);
                    }
                    return Ok(completion);
                }
                Err(error) => error,
            };
            if !self.learns(&mut capabilities, call, &error) {
                return Err(error);
            }
        }
        self.asked_once(call, &capabilities, live).await
    }

    /// Returns true if an error tells what to leave out of the request.
    fn learns(&self, capabilities: &mut Capabilities, call: &Call<'_>, error: &ModelError) -> bool {
        let Some(refused) = &error.refused else { return false };
        let body = serde_json::to_value(self.body(call, call.shown, capabilities.takes())).unwrap_or_default();
        let learned = capabilities.learn(refused, &body, &call.request.tools);
        if learned {
            let (model, message) = (&self.config.model, &error.message);
            tracing::warn!(model, ?refused, message, "leaves out what the endpoint refuses, and asks again");
        }
        learned
    }

    fn body<'b>(&'b self, call: &'b Call<'_>, shown: &'b [Shown], takes: Takes) -> chat_completions::Body<'b> {
        let ModelConfig { model, stream, max_output_tokens, .. } = &self.config;
        let settings = Settings { model, stream: *stream, max_output_tokens: *max_output_tokens, takes };
        chat_completions::request(call.request, &call.tool_set.wire, shown, settings)
    }

    async fn asked_once(
        &self,
        call: &Call<'_>,
        capabilities: &Capabilities,
        mut live: Option<&mut Live<'_>>,
    ) -> Result<Completion, ModelError> {
        let begun = Instant::now();
        let first = begun + Duration::from_millis(self.config.first_token_ms);
        let sending = self.sent(call, capabilities);
        let response = match self.config.stream {
            true => timeout_at(first, sending).await.unwrap_or_else(|_| Err(self.no_beginning()))?,
            false => sending.await?,
        };
        if !response.status().is_success() {
            let status = response.status().as_u16();
            let said = tokio::time::timeout(ERROR_WAIT, error_of(response)).await;
            let silent = || ModelError { status, ..kairo_completion::error::of_http(status, [], &[], None) };
            return Err(said.unwrap_or_else(|_| silent()));
        }
        let mut reader = Reader::new(self.reading(call), offered(call.request));
        let end = self.take_all(response, &mut reader, call.received, live.as_deref_mut(), first).await;
        if end.is_err()
            && let Some(live) = &mut live
        {
            live.flush().await;
        }
        let is_marked = reader.is_finished();
        let outcome = reader.finish(&end?);
        match &outcome {
            Ok(_) if is_marked => self.learned.note_end(call.digest, true),
            Err(error) if error.is_unmarked_end => self.learned.note_end(call.digest, false),
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
    async fn sent(&self, call: &Call<'_>, capabilities: &Capabilities) -> Result<Response, ModelError> {
        if capabilities.takes_all() {
            return post(&self.client, &self.http, self.body(call, call.shown, Takes::default())).await;
        }
        let told: Vec<Shown> = call.shown.iter().map(|shown| not_shown(shown, capabilities)).collect();
        let mut body = serde_json::to_value(self.body(call, &told, capabilities.takes())).unwrap_or(Value::Null);
        capabilities.adjust(&mut body, &call.request.tools);
        post(&self.client, &self.http, body).await
    }

    fn reading(&self, call: &Call<'_>) -> Reading {
        Reading {
            thinks_first: self.config.thinks_first,
            max_reasoning_bytes: self.config.max_reasoning_bytes,
            max_answer_bytes: self.config.max_answer_bytes,
            takes_unmarked_end: self.learned.takes_unmarked_end(call.digest),
            seed: call.digest.to_owned(),
            taken_ids: known_ids(call.request),
        }
    }

    /// Takes in an answer to its end, and shows what it adds: what arrived at once is shown at once.
    async fn take_all(
        &self,
        mut response: Response,
        reader: &mut Reader,
        received: &Received,
        mut live: Option<&mut Live<'_>>,
        first: Instant,
    ) -> Result<End, ModelError> {
        let idle = Duration::from_millis(self.config.idle_ms);
        let (mut arrived, mut until) = (0, first);
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
                            Err(_) if reader.is_finished() => return Ok(End::Closed),
                            Err(_) => return Err(self.no_more(reader)),
                        },
                        false => response.chunk().await,
                    }
                }
            };
            let bytes = match more {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(End::Closed),
                Err(cause) => return Ok(End::Broken(reason(&cause))),
            };
            let added = reader.take(&bytes)?;
            received.note(&so_far(reader));
            if let Some(live) = &mut live {
                live.show(&added.reasoning, true).await;
                live.show(&added.text, false).await;
            }
            if reader.arrived() > arrived {
                arrived = reader.arrived();
                until = Instant::now() + if reader.is_finished() { AFTERWARDS.min(idle) } else { idle };
            }
        }
        Ok(End::Closed)
    }

    fn no_beginning(&self) -> ModelError {
        ModelError::new(ErrorKind::Timeout, format!("no answer began within {} ms", self.config.first_token_ms))
    }

    fn no_more(&self, reader: &Reader) -> ModelError {
        match reader.arrived() {
            0 => self.no_beginning(),
            _ => ModelError::new(ErrorKind::Timeout, format!("nothing more arrived for {} ms", self.config.idle_ms)),
        }
    }
}

fn offered(request: &ModelRequest) -> Offered {
    Offered::new(
        request.tools.iter().chain(&request.unlisted).map(|tool| (&*tool.name, to_wire(&tool.name), &*tool.schema)),
    )
}

/// Ids of the calls that a request shows: those of an answer to it differ from them.
fn known_ids(request: &ModelRequest) -> BTreeSet<String> {
    let calls = request.messages.iter().flat_map(|message| match message {
        Message::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    calls.map(|call| call.id.clone()).collect()
}

fn not_shown(shown: &Shown, capabilities: &Capabilities) -> Shown {
    if capabilities.takes_parts() { shown.clone() } else { Shown::Told(NOT_SHOWN) }
}

fn so_far(reader: &Reader) -> SoFar {
    let progress = reader.progress();
    SoFar {
        model: progress.model.clone(),
        bytes: progress.bytes,
        pieces: progress.pieces,
        input_tokens: progress.input_tokens,
        output_tokens: progress.output_tokens,
    }
}
