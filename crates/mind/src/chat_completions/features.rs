//! The features of the chat-completions format that an endpoint accepts.

/// The features an endpoint accepts. Most accept all; a feature that one refuses is left out or sent in another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointFeatures {
    pub response_format: ResponseFormat,
    /// True if a system message is accepted; otherwise its text precedes the user's first message, as with Gemma 2.
    pub system_message: bool,
    /// True if a message may hold several calls; otherwise they are sent one by one, each with its result, as Llama 3
    /// needs.
    pub parallel_calls: bool,
    /// True if calls keep their ids; otherwise they get ids of nine letters and digits, as Mistral requires for another
    /// model's calls.
    pub call_ids: bool,
}

/// The way to ask an endpoint for an answer in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseFormat {
    /// By a JSON Schema.
    #[default]
    JsonSchema,
    /// By requiring a JSON object.
    JsonObject,
    /// By the words of the prompt alone.
    None,
}

impl Default for EndpointFeatures {
    fn default() -> Self {
        Self { response_format: ResponseFormat::JsonSchema, system_message: true, parallel_calls: true, call_ids: true }
    }
}
