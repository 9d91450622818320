//! OpenAI's chat completions, so that any chat client can talk to an agent: each agent is a model.
//!
//! A client sends its whole history with every request ([`request`]). What is to be answered becomes a message to the agent
//! ([`asking`]), in the thread that holds what was said before ([`conversations`]), and the answer is waited for in the log
//! ([`waiting`], [`turn`]). A stream is made of what the model is writing ([`growing`]).

mod answer;
mod asking;
mod chat;
mod conversations;
mod error;
mod growing;
mod identity;
mod models;
mod questions;
mod request;
mod turn;
mod waiting;

use axum::{
    Router,
    routing::{get, post},
};

use self::error::Error;
pub use self::{
    conversations::Conversations,
    error::{is_theirs, translate},
    turn::Tokens,
};
use crate::state::Gateway;

pub fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/chat/completions", post(chat::post))
        .route("/v1/models", get(models::all))
        .route("/v1/models/{model}", get(models::one))
}
