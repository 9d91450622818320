//! The answers of models in a fork: the log's, if it has one, else a model's, if there is one and it may be asked.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use kairo_agent_runtime::{LiveAnswer, ModelClient, ProgressHandle};
use kairo_mind::request::ModelRequest;
use kairo_proto::v1::{Completion, CompletionError};
use tokio::sync::mpsc;

use crate::{AnswerSource, ForkAnswer};

const NO_MODEL: &str = "the log has no answer to this, and no model is configured: name a configuration with --config";

/// Answers requests that the log has no answer to.
pub trait ModelAsker: Send + Sync {
    /// Returns a model's answer, as [`ModelClient::complete`] does; or the reason for which none is asked, such as that
    /// the budget does not suffice.
    fn ask<'a>(
        &'a self,
        request: &'a ModelRequest,
        received: &'a ProgressHandle,
        live: Option<LiveAnswer<'a>>,
    ) -> BoxFuture<'a, Result<Completion, String>>;
}

pub(crate) struct ForkModelAnswers {
    pub recorded: Mutex<BTreeMap<String, VecDeque<Completion>>>,
    pub models: Option<Arc<dyn ModelAsker>>,
    pub told: mpsc::UnboundedSender<ForkAnswer>,
}

impl ForkModelAnswers {
    /// The next answer that the log has to this; the last one again and again, unless it is a failure.
    fn next_recorded(&self, digest: &str) -> Option<Completion> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = recorded.get_mut(digest)?;
        let answer = answers.pop_front()?;
        if answers.is_empty() && answer.error.is_none() {
            answers.push_back(answer.clone());
        }
        Some(answer)
    }
}

impl ModelClient for ForkModelAnswers {
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        received: &'a ProgressHandle,
        live: Option<LiveAnswer<'a>>,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let digest = request.digest();
            let tell = |answer| _ = self.told.send(ForkAnswer::Model { tier: request.tier, answer });
            if let Some(completion) = self.next_recorded(&digest) {
                tell(AnswerSource::Recorded { at: 0 });
                return completion;
            }
            let Some(models) = &self.models else {
                tell(AnswerSource::Locked);
                return refused_completion(request, digest, NO_MODEL);
            };
            match models.ask(request, received, live).await {
                Ok(completion) => {
                    tell(AnswerSource::Asked);
                    completion
                }
                Err(why) => {
                    let completion = refused_completion(request, digest, &why);
                    tell(AnswerSource::NotAsked { why });
                    completion
                }
            }
        })
    }
}

/// The failure that an agent sees of a model that refuses: the same is not asked again.
fn refused_completion(request: &ModelRequest, request_digest: String, message: &str) -> Completion {
    let error = CompletionError {
        kind: "model_refused".to_owned(),
        message: message.to_owned(),
        transient: false,
        ..Default::default()
    };
    Completion { tier: request.tier.to_owned(), request_digest, error: Some(error), ..Completion::default() }
}
