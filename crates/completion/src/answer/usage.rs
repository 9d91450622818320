//! The tokens that an answer took, as far as its endpoint reports them.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use serde_json::Value;

/// Upper bound for the tokens of an answer: a larger number is a mistake, and counts as this.
pub const MOST_TOKENS: u64 = 1_000_000_000;

/// Tokens of one answer. Each is bounded, so sums of them are, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerUsage {
    pub input: u64,
    pub output: u64,
    /// Of the input, read from the endpoint's cache.
    pub cached: u64,
}

impl AnswerUsage {
    /// Takes in what a piece of an answer says. What it does not say, or says as nothing, stays.
    pub fn add_chunk(&mut self, chunk: &Value) {
        for usage in
            [&chunk["usage"], &chunk["x_groq"]["usage"], &chunk["choices"][0]["usage"], &chunk["usageMetadata"]]
        {
            self.input =
                find_tokens(usage, &["prompt_tokens", "input_tokens", "promptTokenCount"]).unwrap_or(self.input);
            self.output = find_tokens(usage, &["completion_tokens", "output_tokens", "candidatesTokenCount"])
                .unwrap_or(self.output);
            self.cached = cached(usage).unwrap_or(self.cached);
        }
        self.add_timings(&chunk["timings"]);
    }

    /// As llama.cpp has it, where there is nothing else: the tokens it has read, without those of its cache.
    fn add_timings(&mut self, timings: &Value) {
        let cached = find_tokens(timings, &["cache_n"]);
        if self.input == 0
            && let Some(read) = find_tokens(timings, &["prompt_n"])
        {
            self.input = read.saturating_add(cached.unwrap_or_default()).min(MOST_TOKENS);
        }
        if self.output == 0 {
            self.output = find_tokens(timings, &["predicted_n"]).unwrap_or_default();
        }
        self.cached = cached.unwrap_or(self.cached);
    }

    /// The whole: no more is read from a cache than is read.
    pub fn finish(self) -> Self {
        Self { cached: self.cached.min(self.input), ..self }
    }
}

fn cached(usage: &Value) -> Option<u64> {
    let details = ["prompt_tokens_details", "input_tokens_details"]
        .iter()
        .find_map(|name| find_tokens(&usage[*name], &["cached_tokens"]));
    details.or_else(|| {
        find_tokens(
            usage,
            &["prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens", "cachedContentTokenCount"],
        )
    })
}

fn find_tokens(usage: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| tokens(&usage[*name]))
}

/// A number of tokens; none where it is none, negative or nothing.
fn tokens(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // Floats become the nearest whole number within the bounds, whatever they are.
    (number >= 1.0).then(|| (number as u64).min(MOST_TOKENS))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_is_read_in_every_form_and_bounded() {
        let of = |chunks: &[Value]| {
            let mut usage = AnswerUsage::default();
            chunks.iter().for_each(|chunk| usage.add_chunk(chunk));
            let AnswerUsage { input, output, cached } = usage.finish();
            (input, output, cached)
        };
        let usage = |usage: Value| json!({ "usage": usage });
        for (chunk, expected) in [
            (usage(json!({ "prompt_tokens": 12.0, "completion_tokens": "7", "total_tokens": null })), (12, 7, 0)),
            (usage(json!({ "prompt_tokens": 5_000_000_000_u64, "completion_tokens": -1 })), (MOST_TOKENS, 0, 0)),
            (usage(json!({ "prompt_tokens": 1e300, "completion_tokens": "many" })), (MOST_TOKENS, 0, 0)),
            (usage(json!({ "prompt_tokens": u64::MAX, "completion_tokens": i64::MIN })), (MOST_TOKENS, 0, 0)),
            (
                usage(
                    json!({ "prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": { "cached_tokens": 4 } }),
                ),
                (9, 1, 4),
            ),
            (usage(json!({ "prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4 })), (9, 1, 4)),
            (usage(json!({ "input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 4 })), (9, 1, 4)),
            (usage(json!({ "prompt_tokens": 9, "prompt_tokens_details": { "cached_tokens": 10 } })), (9, 0, 9)),
            (json!({ "x_groq": { "usage": { "prompt_tokens": 3, "completion_tokens": 2 } } }), (3, 2, 0)),
            (json!({ "timings": { "prompt_n": 3, "cache_n": 5, "predicted_n": 2 } }), (8, 2, 5)),
            (json!({ "usage": 7 }), (0, 0, 0)),
        ] {
            assert_eq!(of(std::slice::from_ref(&chunk)), expected, "{chunk}");
        }
        let growing = [
            usage(json!({ "prompt_tokens": 9, "completion_tokens": 1 })),
            usage(json!({})),
            usage(Value::Null),
            usage(json!({ "prompt_tokens": 9, "completion_tokens": 5 })),
            usage(json!({ "prompt_tokens": 0 })),
        ];
        assert_eq!(of(&growing), (9, 5, 0));
    }
}
