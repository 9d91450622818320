//! The size of a request, in tokens.

use std::sync::LazyLock;

use tiktoken_rs::{CoreBPE, o200k_base};

use super::request::{ModelRequest, PromptMessage, Tool, ToolCall};

/// Tokens of a message or a call beside its words.
const FRAME: usize = 4;
/// Tokens assumed for an image or a piece of audio; the actual number depends on the model.
const PART: usize = 1_000;

/// The built-in vocabulary; `None` if it cannot be read.
static VOCABULARY: LazyLock<Option<CoreBPE>> = LazyLock::new(|| o200k_base().ok());

/// The tokens of a text, as o200k_base counts them.
pub fn of_text(text: &str) -> usize {
    VOCABULARY.as_ref().map_or(text.len(), |vocabulary| vocabulary.encode_ordinary(text).len())
}

/// The tokens of a request, as o200k_base counts them; images and audio are taken for a round number each.
pub fn of_request(request: &ModelRequest) -> usize {
    count_request(request, of_text)
}

/// Returns the tokens of a request that takes more than `most`. Counts them only if it may: no token is less than a
/// byte.
pub fn count_over(request: &ModelRequest, most: usize) -> Option<usize> {
    if count_request(request, str::len) <= most {
        return None;
    }
    Some(count_request(request, of_text)).filter(|tokens| *tokens > most)
}

fn count_request(request: &ModelRequest, of: impl Fn(&str) -> usize) -> usize {
    let messages = request.messages.iter().map(|message| count_message(message, &of));
    let tools = request.tools.iter().map(|tool| count_tool(tool, &of));
    messages.chain(tools).sum()
}

/// The tokens of one message of a request.
pub fn of_message(message: &PromptMessage) -> usize {
    count_message(message, &of_text)
}

/// The tokens of one tool that a request offers.
pub fn of_tool(tool: &Tool) -> usize {
    count_tool(tool, &of_text)
}

fn count_tool(tool: &Tool, of: &impl Fn(&str) -> usize) -> usize {
    FRAME + of(&tool.name) + of(&tool.description) + of(&tool.schema)
}

fn count_message(message: &PromptMessage, of: &impl Fn(&str) -> usize) -> usize {
    let call = |call: &ToolCall| FRAME + of(&call.tool) + of(&call.arguments) + of(&call.passed_back);
    let words = match message {
        PromptMessage::System { text } | PromptMessage::Tool { text, .. } => of(text),
        PromptMessage::User { text, parts } => of(text) + parts.len() * PART,
        PromptMessage::Assistant { text, calls, reasoning_details, passed_back } => {
            of(text) + of(reasoning_details) + of(passed_back) + calls.iter().map(call).sum::<usize>()
        }
    };
    FRAME + words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_only_where_it_may_be_too_much() {
        let said = |text: &str| ModelRequest::from_messages("heavy", vec![PromptMessage::user(text)]);
        assert_eq!(of_text("hello world"), 2);
        assert_eq!(count_over(&said("hello world"), 15), None, "11 bytes and a frame are no more tokens");
        assert_eq!(count_over(&said(&"hello world ".repeat(100)), 300), None, "1 200 bytes are about 200 tokens");
        assert!(
            count_over(&said(&"hello world ".repeat(100)), 150).is_some_and(|tokens| (200..=210).contains(&tokens))
        );
        assert!(count_over(&said(&"你好世界".repeat(100)), 100).is_some());
    }
}
