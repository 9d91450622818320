//! OpenAI's chat completions, so that any chat client can talk to an agent: each agent is a model.
//!
//! A client sends its whole history with every request ([`request`]). What is to be answered becomes a message to the agent
//! ([`submission`]), in the thread that holds what was said before ([`conversation_index`]), and the answer is waited for in the log
//! ([`turn_wait`], [`turn`]). A stream is made of what the model is writing ([`streamed_answer`]).

mod chat;
mod completion;
mod conversation_index;
mod error;
mod identity;
mod models;
mod questions;
mod queued_work;
mod request;
mod streamed_answer;
mod submission;
mod turn;
mod turn_wait;

use axum::{
    Router,
    routing::{get, post},
};

use self::error::ChatError;
pub use self::{
    conversation_index::ConversationIndex,
    error::{is_chat_path, translate_problems},
    turn::TokenUsage,
};
use crate::state::Gateway;

pub fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/chat/completions", post(chat::create_completion))
        .route("/v1/models", get(models::list_models))
        .route("/v1/models/{model}", get(models::get_model))
}
