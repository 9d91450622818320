//! Requests that are no turns of a conversation: titles, tags, follow-up questions and the like, which chat programs ask for beside
//! it. Pure.

use serde_json::Value;

/// Beginnings of the prompts of known programs, in lower case, each with a text that the prompt must also contain.
const PROMPTS: [(&str, &str); 12] = [
    // Open WebUI: title, tags, follow-ups, search queries, autocompletion, image prompts.
    ("### task:", "<chat_history>"),
    ("### task:", "### output:"),
    ("### task:", "### guidelines:"),
    // LibreChat.
    ("provide a concise, 5-word-or-less title for the conversation", ""),
    ("please generate a concise, 40-character title for the conversation", ""),
    // Zed.
    ("generate a concise 3-7 word title for this conversation", ""),
    // Continue.
    ("given the following... please reply with a title for the chat", ""),
    // NextChat.
    ("please generate a four to five word title summarizing our conversation", ""),
    // Chatbox.
    ("based on the chat history, give this conversation a name", ""),
    // OpenCode.
    ("generate a title for this conversation:", ""),
    // Jan.
    ("summarize in a ", "give the title only"),
    // Better ChatGPT.
    ("generate a title in less than 6 words for the following message", ""),
];

/// Returns true if a request is an aside, by its metadata or by its words.
pub fn is_aside(metadata: Option<&Value>, words: &str) -> bool {
    let field = |name: &str| metadata.and_then(|metadata| metadata.get(name));
    let is_true = |value: &Value| value.as_bool() == Some(true) || value.as_str() == Some("true");
    let is_task = |value: &Value| value.as_str().is_some_and(|task| !task.is_empty());
    if field("is_aside").is_some_and(is_true) || field("task").is_some_and(is_task) {
        return true;
    }
    let words = words.trim_start().to_lowercase();
    PROMPTS.iter().any(|(beginning, part)| words.starts_with(beginning) && words.contains(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn asides_are_known_by_what_they_say() {
        let title =
            "### Task:\nGenerate a concise title.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>";
        for (metadata, words, expected) in [
            (None, title, true),
            (None, "  ### Task:\nSuggest 3-5 follow-ups\n### Output:\nJSON", true),
            (None, "### Task: mow the lawn", false),
            (None, "Generate a concise 3-7 word title for this conversation, omitting punctuation.", true),
            (None, "Find a title for my novel.", false),
            (Some(json!({ "task": "title_generation" })), "hi", true),
            (Some(json!({ "is_aside": "true" })), "hi", true),
            (Some(json!({ "task": "" })), "hi", false),
        ] {
            assert_eq!(is_aside(metadata.as_ref(), words), expected, "{words}");
        }
    }
}
