//! OpenAI's chat completions, so that any chat client can talk to an agent: each agent is a model.
//!
//! A client sends its whole history with every request, while Kairo keeps the history itself. So the last thing the user
//! said becomes a message to the agent, in the thread that the chat stands for ([`identity`]), and the answer is waited
//! for in the log ([`turn`]). A stream is made of what the model is writing ([`growing`]).

mod answer;
mod chat;
mod content;
mod error;
mod growing;
mod identity;
mod models;
mod request;
mod turn;

use axum::{
    Router,
    routing::{get, post},
};

use self::error::Error;
pub use self::{
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
