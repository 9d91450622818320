//! A model call as the model server was sent it: for whoever wants to send it again by hand.

use std::fmt::Write;

use kairo_mind::{
    chat_completions::{self, EndpointFeatures, RequestSettings, ShownPart},
    replay::ReplayedCall,
};
use serde_json::{Value, json, value::to_raw_value};

/// The delimiter at the end of a request's text. No line of JSON equals it.
const END: &str = "END_OF_REQUEST";

/// The body in the chat-completions format. What the log does not have is left out of it: whether the answer was streamed, and
/// how long it might be; and for images, audio and video stand words.
pub fn body(asked: &ReplayedCall) -> Value {
    let ReplayedCall { request, completion, .. } = asked;
    let tools = to_raw_value(&chat_completions::wire_tools(&request.tools)).unwrap_or_default();
    let shown = vec![ShownPart::Told("its bytes are not in the log"); request.media_parts().count()];
    let settings = RequestSettings {
        model: &completion.model,
        stream: false,
        max_output_tokens: 0,
        takes: EndpointFeatures::default(),
    };
    serde_json::to_value(chat_completions::build_body(request, &tools, &shown, settings)).unwrap_or_default()
}

/// A model call as it is told: to which model, what it was asked in Kairo's words and in those of the server, what it answered, and in
/// which parts the request would be another one now.
pub fn describe_call(asked: &ReplayedCall) -> Value {
    let ReplayedCall { request, completion, drift } = asked;
    let calls = completion.tool_calls.iter().map(|call| json!({ "tool": call.tool, "arguments": call.arguments }));
    let error = completion.error.as_ref().map(|error| json!({ "kind": error.kind, "message": error.message }));
    let answer = json!({
        "text": completion.text,
        "tool_calls": calls.collect::<Vec<_>>(),
        "error": error,
        "input_tokens": completion.input_tokens,
        "output_tokens": completion.output_tokens,
    });
    let differs = drift.as_ref().map(|drift| &drift.parts);
    json!({ "model": completion.model, "request": &**request, "body": body(asked), "answer": answer, "differs": differs })
}

/// A command for a shell that asks the same. Address and key are of its environment: no log has them.
pub fn curl(asked: &ReplayedCall) -> String {
    let body = serde_json::to_string_pretty(&body(asked)).unwrap_or_default();
    format!(
        "curl \"$MODEL_URL/chat/completions\" -H \"Authorization: Bearer $MODEL_KEY\" -H 'Content-Type: application/json' \
         --data-binary @- <<'{END}'\n{}\n{END}",
        escape_invisible(&body)
    )
}

/// Escapes characters of JSON that move a terminal's cursor or turn the order of the text: others wrote it.
fn escape_invisible(json: &str) -> String {
    let turns =
        |letter: char| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut visible = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            // None of these is beyond the first 65 536, so each is one escape.
            _ if letter != '\n' && (letter.is_control() || turns(letter)) => {
                _ = write!(visible, "\\u{:04x}", u32::from(letter));
            }
            _ => visible.push(letter),
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kairo_mind::request::{ModelRequest, PromptMessage};
    use kairo_proto::v1::{Completion, Part};
    use serde_json::json;

    use super::*;

    fn replayed_call(text: &str) -> ReplayedCall {
        let part = Part { media_type: "image/png".into(), name: "a.png".into(), size: 7, ..Default::default() };
        let user = PromptMessage::User { text: text.into(), parts: vec![part] };
        let request =
            ModelRequest::from_messages("heavy", vec![PromptMessage::System { text: "Be brief.".into() }, user]);
        let completion = Completion { model: "m-1".into(), ..Default::default() };
        ReplayedCall { request: Arc::new(request), completion, drift: None }
    }

    #[test]
    fn the_body_is_what_a_model_server_takes() {
        let expected = json!({
            "model": "m-1",
            "stream": false,
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "look\n[image a.png, 7 bytes] (its bytes are not in the log)" },
            ],
        });
        assert_eq!(body(&replayed_call("look")), expected);
    }

    #[test]
    fn the_command_holds_the_same_body_and_nothing_that_a_shell_or_a_terminal_obeys() {
        let nasty = "$(rm -rf /) `x` ' \" \u{9b}2J \u{202e} END_OF_REQUEST\nEND_OF_REQUEST\n";
        let command = curl(&replayed_call(nasty));
        let mut lines = command.lines();
        assert!(lines.next().unwrap().ends_with("<<'END_OF_REQUEST'"));
        assert_eq!(lines.next_back(), Some(END));
        let text: Vec<&str> = lines.collect();
        assert!(!text.contains(&END), "{text:?}");
        assert!(text.iter().all(|line| !line.chars().any(|letter| letter.is_control() || letter == '\u{202e}')));
        let sent: Value = serde_json::from_str(&text.join("\n")).unwrap();
        assert_eq!(sent, body(&replayed_call(nasty)));
    }
}
