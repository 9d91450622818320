//! The chat completions API of OpenAI as it is on the wire: what a client sends, and the bytes of
//! an answer. See <https://platform.openai.com/docs/api-reference/chat>.

pub mod context_block;
pub mod part;
pub mod request;
pub mod response;
