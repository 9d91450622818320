//! Texts by which endpoints say that a request is more than their model takes at once. One table: a new endpoint is a
//! new line.

use std::sync::LazyLock;

use regex::Regex;

use super::body::ErrorBody;

/// Upper bound for a model's tokens: a larger limit is a mistake.
const MOST_TOKENS: u64 = 1_000_000_000;
/// Codes that say it.
const CODES: [&str; 9] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "contextwindowexceedederror",
    "string_above_max_length",
    "request_too_large",
    "context_too_long",
    "input_too_long",
    "model_context_window_exceeded",
];

/// Texts that say it, in lower case, with the limit and what was asked where they tell them: who writes so, and how.
const PATTERNS: [(&str, &str); 44] = [
    // With both numbers; the most exact first.
    ("vLLM 0.11", r"maximum context length is (?P<limit>[\d,]+) tokens.*?at least (?P<asked>[\d,]+) input tokens"),
    (
        "OpenAI, vLLM, OpenRouter, Azure",
        r"maximum context length (?:is|of) (?P<limit>[\d,]+) tokens.*?(?:messages resulted in|you requested|requested about|prompt contains at least|however, you requested|resulted in) (?:about )?(?P<asked>[\d,]+)",
    ),
    (
        "vLLM",
        r"prompt \(?(?:length )?(?:of )?(?P<asked>[\d,]+) ?(?:tokens)?\)? (?:is longer than|exceeds) the (?:maximum )?model(?:'s)? (?:maximum )?(?:length|context length)(?: of| \()? ?(?P<limit>[\d,]+)",
    ),
    (
        "vLLM",
        r"decoder prompt \(length (?P<asked>[\d,]+)\) is longer than the maximum model length of (?P<limit>[\d,]+)",
    ),
    (
        "llama.cpp",
        r"request \((?P<asked>[\d,]+) tokens\) exceeds the available context size \((?P<limit>[\d,]+) tokens\)",
    ),
    ("llama.cpp", r"(?P<asked>[\d,]+) tokens.*exceeds? (?:the )?(?:available )?context size.*?(?P<limit>[\d,]+)"),
    (
        "SGLang",
        r"input length \((?P<asked>[\d,]+) tokens\) exceeds the maximum allowed length \((?P<limit>[\d,]+) tokens\)",
    ),
    (
        "SGLang",
        r"(?:the )?input \((?P<asked>[\d,]+) tokens\) is longer than the model's context length \((?P<limit>[\d,]+) tokens\)",
    ),
    (
        "SGLang",
        r"requested token count exceeds the model's maximum context length of (?P<limit>[\d,]+) tokens. you requested a total of (?P<asked>[\d,]+)",
    ),
    ("TGI", r"`inputs` tokens \+ `max_new_tokens` must be <= (?P<limit>[\d,]+). given: (?P<asked>[\d,]+)"),
    ("TGI", r"`inputs` must have less than (?P<limit>[\d,]+) tokens. given: (?P<asked>[\d,]+)"),
    ("Anthropic", r"prompt is too long: (?P<asked>[\d,]+) tokens > (?P<limit>[\d,]+) maximum"),
    (
        "Anthropic",
        r"input length and `max_tokens` exceed context limit: (?P<asked>[\d,]+) \+ [\d,]+ > (?P<limit>[\d,]+)",
    ),
    (
        "Gemini",
        r"input token count \(?(?P<asked>[\d,]+)\)? exceeds the maximum number of (?:input )?tokens allowed \(?(?P<limit>[\d,]+)",
    ),
    ("Gemini", r"exceeds the maximum number of (?:input )?tokens allowed:? \(?(?P<limit>[\d,]+)"),
    (
        "Mistral",
        r"prompt contains (?P<asked>[\d,]+) tokens.*?too large for model with (?P<limit>[\d,]+) maximum context length",
    ),
    (
        "Cohere",
        r"too many tokens: .*?(?:total number of tokens.*?cannot exceed|must be at most|maximum (?:of|is)) (?P<limit>[\d,]+).*?(?:received|got|given) (?P<asked>[\d,]+)",
    ),
    ("Cohere", r"size limit exceeded by [\d,]+ tokens.*?(?:limit|maximum)[^\d]*(?P<limit>[\d,]+)"),
    (
        "LM Studio",
        r"(?:trying to keep|tokens to keep from the initial prompt|initial prompt)[^\d]*(?P<asked>[\d,]+).*?(?:context (?:length|overflows|size)|n_ctx)[^\d]*(?P<limit>[\d,]+)",
    ),
    ("Groq, Together", r"(?:inputs tokens|input tokens) \+ max_new_tokens must be <= (?P<limit>[\d,]+)"),
    (
        "TensorRT-LLM",
        r"prompt length \(?(?P<asked>[\d,]+)\)? (?:exceeds|should not exceed|is larger than).*?max_(?:input|seq|num)_\w+ \(?(?P<limit>[\d,]+)",
    ),
    ("Alibaba", r"range of input length should be \[1, ?(?P<limit>[\d,]+)\]"),
    ("Moonshot", r"exceeded model token limit: ?(?P<limit>[\d,]+)(?: \(requested: ?(?P<asked>[\d,]+)\))?"),
    ("xAI", r"maximum prompt length is (?P<limit>[\d,]+) but the request contains (?P<asked>[\d,]+)"),
    ("GitHub", r"request body too large for \S+ model. max size: (?P<limit>[\d,]+) tokens"),
    (
        "Fireworks, Bedrock",
        r"(?:prompt|input) is too long.*?(?P<asked>[\d,]+).*?(?:exceeds?|>|longer than|maximum|limit)[^\d]*(?P<limit>[\d,]+)",
    ),
    (
        "many",
        r"max(?:imum)?(?: model)? (?:context|sequence|input|prompt) (?:length|size|window)[^\d]{0,24}(?P<limit>[\d,]+)",
    ),
    ("many", r"context (?:length|window|size|limit)(?: of| is|:| \()+ ?(?P<limit>[\d,]+)"),
    // Without numbers.
    ("llama.cpp", r"context size has been exceeded"),
    ("llama.cpp", r"exceeds? (?:the )?available context size"),
    ("llama.cpp, Ollama", r"(?:input|prompt) (?:length )?(?:is )?(?:too large|too long|exceeds)"),
    ("llama.cpp", r"input is too large to process"),
    ("Ollama", r"exceeds? (?:the )?(?:maximum |model's )?context (?:length|window|size|limit)"),
    ("OpenAI", r"exceeds? the context window"),
    ("OpenAI", r"reduce the length of (?:the |your )?(?:messages|prompt|input)"),
    ("Bedrock", r"input is too long for requested model"),
    ("Bedrock, Cohere", r"too many (?:input )?tokens(?:\b|:)"),
    ("LiteLLM", r"contextwindowexceedederror"),
    ("LM Studio", r"context (?:overflow|length (?:was )?exceeded|window (?:is )?(?:full|exceeded))"),
    ("LM Studio", r"not enough (?:context|room)|greater than the context length|cannot truncate prompt with n_keep"),
    ("Groq", r"(?:request|message|messages|conversation) (?:is |are )?too (?:large|long)"),
    ("Gemini", r"exceeds the maximum number of (?:input )?tokens|token count.*exceeds"),
    ("nginx", r"request entity too large|payload too large|request body (?:is )?too large"),
    (
        "DeepSeek, Zhipu",
        r"(?:tokens?|prompt|input|length) (?:limit )?(?:exceeds?|exceeded|over|beyond) (?:the )?(?:max|maximum|limit|model)",
    ),
];
/// Texts of limits that pass with time, however much they look like the others.
const OF_TIME: [&str; 14] = [
    "per min",
    "per hour",
    "per day",
    "per second",
    "tokens/min",
    "/min",
    "(tpm)",
    "(rpm)",
    "(tpd)",
    "rate limit",
    "rate_limit",
    "ratelimit",
    "tokens per",
    "quota",
];

static TABLE: LazyLock<Vec<Regex>> =
    LazyLock::new(|| PATTERNS.iter().filter_map(|(_, pattern)| Regex::new(&format!("(?s){pattern}")).ok()).collect());
/// The limit of a time and what a request asks of it.
static OF_MINUTE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"limit:? (?P<limit>[\d,]+).*?requested:? (?P<asked>[\d,]+)").ok());

/// The limit that a request exceeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overflow {
    None,
    /// The request is more than the model takes at once.
    Request {
        limit: Option<u64>,
        asked: Option<u64>,
    },
    /// The requests of a minute, or a day, are too many.
    Minute {
        limit: Option<u64>,
        asked: Option<u64>,
    },
}

/// Returns the limit that the request exceeds, as a body says.
pub fn overflow(said: &ErrorBody) -> Overflow {
    if said.has_words(&OF_TIME) && !said.has_code(&CODES) {
        let found = OF_MINUTE.as_ref().and_then(|pattern| pattern.captures(&said.text));
        let number = |name: &str| found.as_ref().and_then(|found| number(found.name(name)?.as_str()));
        return Overflow::Minute { limit: number("limit"), asked: number("asked") };
    }
    let mut found = TABLE.iter().filter_map(|pattern| pattern.captures(&said.text));
    let by_words = found.next();
    if by_words.is_none() && !said.has_code(&CODES) {
        return Overflow::None;
    }
    let by_name = |name: &str| by_words.as_ref().and_then(|found| number(found.name(name)?.as_str()));
    let by_field = |names: &[&str]| {
        names.iter().find_map(|name| said.number(name)).filter(|tokens| *tokens >= 1.0).map(|tokens| tokens as u64)
    };
    let limit = by_field(&["n_ctx", "max_context_length", "context_length"]).or_else(|| by_name("limit"));
    let asked = by_field(&["n_prompt_tokens", "prompt_tokens", "input_tokens"]).or_else(|| by_name("asked"));
    let bounded = |tokens: Option<u64>| tokens.filter(|tokens| (1..=MOST_TOKENS).contains(tokens));
    Overflow::Request { limit: bounded(limit), asked: bounded(asked) }
}

fn number(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one_and_endpoints_are_understood() {
        assert_eq!(TABLE.len(), PATTERNS.len());
        for (text, limit, asked) in [
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                8192,
                9000,
            ),
            (
                "This model's maximum context length is 8192 tokens. However, you requested 0 output tokens and your prompt contains at least 8193 input tokens.",
                8192,
                8193,
            ),
            (
                "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens (8000 of text input).",
                8192,
                9000,
            ),
            (
                "The decoder prompt (length 5012) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller",
                4096,
                5012,
            ),
            ("request (4267 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 4267),
            (
                "the request exceeds the available context size. try increasing the context size or enable context shift",
                0,
                0,
            ),
            ("Context size has been exceeded.", 0, 0),
            (
                "Input length (5000 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter input",
                4090,
                5000,
            ),
            ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000),
            (
                "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 6000 tokens",
                4096,
                6000,
            ),
            (
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
                4096,
                5000,
            ),
            ("Input validation error: `inputs` must have less than 4095 tokens. Given: 5000", 4095, 5000),
            ("prompt is too long: 215000 tokens > 200000 maximum", 200_000, 215_000),
            (
                "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease input length",
                200_000,
                199_000,
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                1_048_576,
                1_200_000,
            ),
            ("The input token count exceeds the maximum number of tokens allowed 1048576.", 1_048_576, 0),
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                32_768,
                40_000,
            ),
            ("Input is too long for requested model.", 0, 0),
            ("Please reduce the length of the messages or completion.", 0, 0),
            ("Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)", 8192, 9000),
            ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 131_072, 140_000),
            ("Range of input length should be [1, 30720]", 30_720, 0),
            ("litellm.ContextWindowExceededError: litellm.BadRequestError: something", 0, 0),
            (
                "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
                4096,
                5000,
            ),
            ("The number of tokens to keep from the initial prompt is greater than the context length.", 0, 0),
            ("Your input exceeds the context window of this model. Please adjust your input and try again.", 0, 0),
            ("input length exceeds maximum context length", 0, 0),
            ("too many tokens: size limit exceeded by 3 tokens. Try using shorter or fewer inputs", 0, 0),
            ("413 Request Entity Too Large", 0, 0),
        ] {
            let tokens = |tokens: u64| (tokens > 0).then_some(tokens);
            let said = ErrorBody { text: text.to_lowercase(), ..ErrorBody::default() };
            assert_eq!(overflow(&said), Overflow::Request { limit: tokens(limit), asked: tokens(asked) }, "{text}");
        }
    }

    #[test]
    fn limits_of_time_and_other_mistakes_are_none() {
        let of = |text: &str| overflow(&ErrorBody { text: text.to_lowercase(), ..ErrorBody::default() });
        let tokens = "Request too large: too many tokens per min (TPM): Limit 30000, Requested 41000";
        assert_eq!(of(tokens), Overflow::Minute { limit: Some(30_000), asked: Some(41_000) });
        assert_eq!(of("Rate limit reached, retry in 4s"), Overflow::Minute { limit: None, asked: None });
        for text in
            ["invalid api key", "The model `x` does not exist", "max_tokens must be at least 1", "internal error", ""]
        {
            assert_eq!(of(text), Overflow::None, "{text}");
        }
    }
}
