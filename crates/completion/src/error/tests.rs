use super::*;

fn http(status: u16, body: &str) -> ModelError {
    from_http(status, [], body.as_bytes(), None)
}

use ErrorKind::{
    ContextTooLong, Filtered, NotFound, OutOfCredit, Overloaded, RateLimited, Refused as RefusedKind, SchemaRefused,
    Unauthorized, Unavailable,
};

#[test]
fn errors_are_known_by_their_status_first_and_by_any_body() {
    for (status, body, kind, words) in [
        (401, r#"{"error": "invalid api key"}"#, Unauthorized, "invalid api key"),
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#,
            Unauthorized,
            "Incorrect API key",
        ),
        (401, "", Unauthorized, "401 (unauthorized)"),
        (403, "<html><title>Forbidden</title><body>x</body></html>", Unauthorized, "Forbidden"),
        (
            403,
            r#"{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged","metadata":{"reasons":["violence"]}}}"#,
            Filtered,
            "flagged",
        ),
        (403, r#"{"message":"Sorry, your account balance is insufficient"}"#, OutOfCredit, "insufficient"),
        (
            402,
            r#"{"error": {"message": "This request requires more credits, or fewer max_tokens.", "code": 402}, "user_id": "u"}"#,
            OutOfCredit,
            "more credits",
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            OutOfCredit,
            "quota",
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"7s"}]}}]"#,
            RateLimited,
            "quota",
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            OutOfCredit,
            "too low",
        ),
        (
            404,
            r#"{"error":{"message":"The model `x` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
            NotFound,
            "does not exist",
        ),
        (
            404,
            r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","param":null,"code":404}"#,
            NotFound,
            "does not exist",
        ),
        (404, r#"{"error":"model 'x' not found, try pulling it first"}"#, NotFound, "pulling"),
        (400, r#"{"error":{"message":"x is not a valid model ID","code":400}}"#, NotFound, "valid model"),
        (404, "404 page not found", NotFound, "page not found"),
        (
            429,
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"temporarily rate-limited upstream"}},"user_id":"u"}"#,
            RateLimited,
            "Provider returned error: temporarily",
        ),
        (
            429,
            r#"{"error":{"message":"Request too large: too many tokens per min (TPM): Limit 30000, Requested 41000","type":"tokens"}}"#,
            RateLimited,
            "TPM",
        ),
        (429, "slow down", RateLimited, "slow down"),
        (503, "<html>upstream down</html>", Overloaded, "upstream down"),
        (503, r#"{"error":{"message":"overloaded","type":"server_error"}}"#, Overloaded, "overloaded"),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Overloaded,
            "Overloaded",
        ),
        (500, r#"{"error":{"message":"The engine is currently overloaded"}}"#, Overloaded, "engine"),
        (
            500,
            r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
            ContextTooLong,
            "exceeded",
        ),
        (500, r#"{"detail":"Internal Server Error"}"#, Unavailable, "Internal Server Error"),
        (502, "<html>\r\n<head><title>502 Bad Gateway</title></head></html>", Unavailable, "502 Bad Gateway"),
        (408, "", Unavailable, "408"),
        (409, "{}", Unavailable, "409"),
        (413, "<html><center><h1>413 Request Entity Too Large</h1></center></html>", ContextTooLong, "413 Request"),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","code":"context_length_exceeded"}}"#,
            ContextTooLong,
            "8192",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"request (4267 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4267,"n_ctx":4096}}"#,
            ContextTooLong,
            "4267",
        ),
        (
            400,
            r#"{"error":{"message":"litellm.BadRequestError: AnthropicException - {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 215000 tokens > 200000 maximum\"}}","code":"400"}}"#,
            ContextTooLong,
            "prompt is too long",
        ),
        (
            400,
            r#"{"message":"The model returned the following errors: input is too long for requested model."}"#,
            ContextTooLong,
            "too long",
        ),
        (
            400,
            r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            Filtered,
            "filtered",
        ),
        (
            400,
            r#"{"error":{"message":"Input data may contain inappropriate content.","code":"data_inspection_failed"}}"#,
            Filtered,
            "inappropriate",
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            Unauthorized,
            "API key",
        ),
        (
            422,
            r#"{"detail":[{"loc":["body","messages",0,"content"],"msg":"field required","type":"value_error.missing"}]}"#,
            RefusedKind,
            "body.messages.0.content: field required",
        ),
        (400, r#"{"errors":["first","second"]}"#, RefusedKind, "first; second"),
        (400, "not json {", RefusedKind, "not json"),
        (
            400,
            r#"{"error":{"message":"Invalid schema for function 'odd__list': array schema missing items.","code":"invalid_function_parameters"}}"#,
            SchemaRefused,
            "odd__list",
        ),
        (405, "", RefusedKind, "405"),
        (302, "", RefusedKind, "302"),
    ] {
        let error = http(status, body);
        assert_eq!(error.kind, kind, "{status} {body}: {error:?}");
        assert!(error.message.contains(words) && !error.message.contains("</"), "{status} {body}: {error:?}");
        assert_eq!(error.status, status);
        assert_eq!(CompletionError::from(error).kind, kind.word());
    }
}

#[test]
fn an_endpoints_limit_is_told_and_a_request_that_exceeds_a_minute_is_marked() {
    let body = r#"{"error":{"code":400,"message":"request (4267 tokens) exceeds the available context size (4096 tokens)","n_ctx":4096}}"#;
    assert_eq!(http(400, body).context_tokens, Some(4096));
    let minute = r#"{"error":{"message":"too many tokens per min (TPM): Limit 30000, Requested 41000"}}"#;
    assert_eq!((http(429, minute).minute_tokens, http(429, minute).context_tokens), (Some(30_000), None));
    assert_eq!(
        http(429, r#"{"error":{"message":"tokens per min (TPM): Limit 30000, Used 29000, Requested 4100"}}"#)
            .minute_tokens,
        None
    );
    let told = from_http(429, [("retry-after", "4")], b"", None);
    assert_eq!(told.retry_after_ms, Some(4_000));
    assert_eq!(from_http(401, [("retry-after", "4")], b"", None).retry_after_ms, None, "waiting is of no use");
}

#[test]
fn what_is_refused_is_named() {
    for (body, refused) in [
        (
            r#"{"error":{"message":"Invalid schema for function 'odd__list': In context=('properties', 'a'), array schema missing items."}}"#,
            RefusedFeature::Tool("odd__list".into()),
        ),
        (r#"{"error":{"message":"tools.3.custom.input_schema: JSON schema is invalid."}}"#, RefusedFeature::ToolAt(3)),
        (
            r#"{"error":{"message":"* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[a].items: missing field."}}"#,
            RefusedFeature::ToolAt(2),
        ),
        (
            r#"{"error":{"message":"Invalid 'tools[5].function.name': string does not match pattern"}}"#,
            RefusedFeature::ToolAt(5),
        ),
        (r#"{"error":{"message":"This response_format type is unavailable now"}}"#, RefusedFeature::ResponseFormat),
        (r#"{"error":"'response_format.type' must be 'json_schema' or 'text'"}"#, RefusedFeature::ResponseFormat),
        (r#"{"error":{"message":"Unknown parameter: 'stream_options'."}}"#, RefusedFeature::StreamOptions),
        (
            r#"{"detail":[{"loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]}"#,
            RefusedFeature::MaxCompletionTokens,
        ),
        (
            r#"{"error":{"message":"property 'reasoning_content' is unsupported"}}"#,
            RefusedFeature::MessageField("reasoning_content".into()),
        ),
        (r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#, RefusedFeature::Parts),
        (r#"{"error":{"message":"tool_choice is not supported"}}"#, RefusedFeature::ToolChoice),
    ] {
        assert_eq!(http(400, body).refused, Some(refused), "{body}");
    }
    for body in [
        r#"{"error":{"message":"Missing `reasoning_content` field in the assistant message at message index 2."}}"#,
        r#"{"error":{"message":"Function call is missing a thought_signature in functionCall parts."}}"#,
        r#"{"error":{"message":"Duplicate value for 'tool_call_id' of 'x'"}}"#,
        "",
    ] {
        assert_eq!(http(400, body).refused, None, "{body}");
    }
}

#[test]
fn errors_within_answers_are_found_and_answers_are_none() {
    let of = |text: &str| in_band_error(&serde_json::from_str(text).unwrap(), "").map(|error| error.kind);
    for (text, kind) in [
        (r#"{"error":{"message":"Worker queue full (33/32)","code":502}}"#, Some(Overloaded)),
        (
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            Some(ContextTooLong),
        ),
        (
            r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"server_error","message":"Provider disconnected unexpectedly"}}"#,
            Some(Unavailable),
        ),
        (r#"{"choices":[{"index":0,"error":{"code":429,"message":"slow down"}}]}"#, Some(RateLimited)),
        (r#"{"error":{"message":"quota exceeded for project 7","type":"insufficient_quota"}}"#, Some(OutOfCredit)),
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Some(Overloaded)),
        (r#"{"object":"error","message":"Internal error","code":500}"#, Some(Unavailable)),
        (r#"{"detail":"Not authenticated"}"#, Some(Unavailable)),
        (r#"[{"error":{"code":401,"message":"no"}}]"#, Some(Unauthorized)),
        (r#"{"error":"out of memory"}"#, Some(Unavailable)),
        (r#"{"error":null,"choices":[]}"#, None),
        (r#"{"error":{},"choices":[{"delta":{"content":"x"}}]}"#, None),
        (r#"{"type":"ping"}"#, None),
        ("null", None),
        ("7", None),
    ] {
        assert_eq!(of(text), kind, "{text}");
    }
}
