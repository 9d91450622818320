//! The kind of an error.

use super::{ErrorKind, body::ErrorBody, context_overflow::Overflow, refused_feature};

/// Codes and words of endpoints that want money.
const CREDIT_CODES: [&str; 10] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_user_quota",
    "payment_required",
    "billing_error",
    "arrearage",
    "exceeded_budget",
];
const CREDIT_WORDS: [&str; 15] = [
    "insufficient balance",
    "insufficient credit",
    "insufficient_quota",
    "insufficient funds",
    "credit balance is too low",
    "requires more credits",
    "out of credit",
    "no credits",
    "payment required",
    "account is overdue",
    "account is in arrears",
    "billing hard limit",
    "spending limit",
    "budget has been exceeded",
    "account balance",
];
/// Words that OpenAI uses for missing credit, and Gemini for a limit that passes.
const QUOTA_WORDS: [&str; 1] = ["check your plan and billing"];
const KEY_CODES: [&str; 9] = [
    "invalid_api_key",
    "authentication_error",
    "unauthenticated",
    "unauthorized",
    "api_key_invalid",
    "permission_denied",
    "permission_error",
    "invalid_authentication",
    "authenticationerror",
];
const KEY_WORDS: [&str; 9] = [
    "api key not valid",
    "invalid api key",
    "incorrect api key",
    "invalid_api_key",
    "no api key",
    "missing api key",
    "invalid authentication",
    "no auth credentials",
    "authentication failed",
];
const MODEL_CODES: [&str; 5] =
    ["model_not_found", "not_found_error", "deploymentnotfound", "notfounderror", "invalid_model"];
const MODEL_WORDS: [&str; 9] = [
    "model_not_found",
    "is not a valid model",
    "invalid model name",
    "unknown model",
    "no such model",
    "try pulling it first",
    "model not found",
    "model does not exist",
    "model not exist",
];
const FILTER_CODES: [&str; 9] = [
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "contentpolicyviolationerror",
    "data_inspection_failed",
    "moderation_blocked",
    "content_blocked",
    "safety",
    "image_content_policy_violation",
];
const FILTER_WORDS: [&str; 11] = [
    "content management policy",
    "content filter",
    "content_filter",
    "content policy",
    "safety system",
    "usage policies",
    "usage guidelines",
    "requires moderation",
    "inappropriate content",
    "blocked by our safety",
    "guardrail",
];
const RATE_CODES: [&str; 11] = [
    "rate_limit_exceeded",
    "rate_limit_error",
    "rate_limited",
    "ratelimiterror",
    "resource_exhausted",
    "too_many_requests",
    "throttlingexception",
    "tokens_per_minute",
    "rate_limit_reached",
    "throttled",
    "limit_exceeded",
];
const RATE_WORDS: [&str; 4] = ["rate limit", "rate-limit", "too many requests", "ratelimit"];
const LOAD_CODES: [&str; 7] = [
    "overloaded_error",
    "overloaded",
    "engine_overloaded_error",
    "unavailable",
    "service_unavailable",
    "serviceunavailableerror",
    "capacity_exceeded",
];
const LOAD_WORDS: [&str; 7] = [
    "overloaded",
    "over capacity",
    "at capacity",
    "queue full",
    "queue is full",
    "no available capacity",
    "server is busy",
];
const SERVER_CODES: [&str; 8] = [
    "server_error",
    "internal_error",
    "api_error",
    "internal_server_error",
    "internalservererror",
    "internal",
    "timeout",
    "deadline_exceeded",
];
const REQUEST_CODES: [&str; 6] = [
    "invalid_request_error",
    "badrequesterror",
    "bad_request",
    "invalid_argument",
    "validation_error",
    "invalid_request",
];

/// The kind of what an endpoint says, by its HTTP status, or by what the body says where there is none.
pub fn kind(status: u16, said: &ErrorBody, overflow: &Overflow) -> ErrorKind {
    let is_too_long = matches!(overflow, Overflow::Request { .. });
    match if status == 0 { said.status } else { status } {
        402 => ErrorKind::OutOfCredit,
        413 => ErrorKind::ContextTooLong,
        401 | 403 => classify_forbidden(said),
        404 if refused_feature::find(said).is_none() => ErrorKind::NotFound,
        429 if is_out_of_credit(said) => ErrorKind::OutOfCredit,
        429 => ErrorKind::RateLimited,
        503 | 529 | 498 if is_too_long && !said.has_words(&LOAD_WORDS) => ErrorKind::ContextTooLong,
        503 | 529 | 498 => ErrorKind::Overloaded,
        408 | 409 | 425 => ErrorKind::Unavailable,
        500..=599 => classify_server_error(said, is_too_long),
        0 => classify_without_status(said, is_too_long),
        _ => classify_request_error(said, is_too_long).unwrap_or(ErrorKind::Refused),
    }
}

fn classify_forbidden(said: &ErrorBody) -> ErrorKind {
    if is_out_of_credit(said) {
        return ErrorKind::OutOfCredit;
    }
    let is_key = said.has_code(&KEY_CODES) || said.has_words(&KEY_WORDS);
    if !is_key && (said.has_code(&FILTER_CODES) || said.has_words(&FILTER_WORDS)) {
        return ErrorKind::Filtered;
    }
    if !is_key && said.has_code(&["model_not_found"]) { ErrorKind::NotFound } else { ErrorKind::Unauthorized }
}

fn is_out_of_credit(said: &ErrorBody) -> bool {
    let passes = said.has_code(&["resource_exhausted"]) || said.has_words(&["retrydelay", "per minute", "per day"]);
    said.has_code(&CREDIT_CODES) || said.has_words(&CREDIT_WORDS) || !passes && said.has_words(&QUOTA_WORDS)
}

fn classify_server_error(said: &ErrorBody, is_too_long: bool) -> ErrorKind {
    if is_too_long {
        ErrorKind::ContextTooLong
    } else if said.has_code(&LOAD_CODES) || said.has_words(&LOAD_WORDS) {
        ErrorKind::Overloaded
    } else if refused_feature::find(said).is_some_and(|refused| refused.is_schema()) {
        ErrorKind::SchemaRefused
    } else {
        ErrorKind::Unavailable
    }
}

/// Of an error that has no status: it stands within an answer, or in a body by itself.
fn classify_without_status(said: &ErrorBody, is_too_long: bool) -> ErrorKind {
    if said.has_code(&RATE_CODES) || said.has_words(&RATE_WORDS) {
        return if is_out_of_credit(said) { ErrorKind::OutOfCredit } else { ErrorKind::RateLimited };
    }
    if said.has_code(&SERVER_CODES) && !is_too_long {
        return ErrorKind::Unavailable;
    }
    let is_request = said.has_code(&REQUEST_CODES);
    classify_request_error(said, is_too_long).unwrap_or(if is_request {
        ErrorKind::Refused
    } else {
        ErrorKind::Unavailable
    })
}

/// Of an error that the request is held to have caused; none where nothing says more.
fn classify_request_error(said: &ErrorBody, is_too_long: bool) -> Option<ErrorKind> {
    let is = |codes: &[&str], words: &[&str]| said.has_code(codes) || said.has_words(words);
    if is_too_long {
        Some(ErrorKind::ContextTooLong)
    } else if is_out_of_credit(said) {
        Some(ErrorKind::OutOfCredit)
    } else if said.has_code(&FILTER_CODES) {
        Some(ErrorKind::Filtered)
    } else if is(&RATE_CODES, &["rate limit"]) {
        Some(ErrorKind::RateLimited)
    } else if is(&LOAD_CODES, &LOAD_WORDS) {
        Some(ErrorKind::Overloaded)
    } else if is(&KEY_CODES, &KEY_WORDS) {
        Some(ErrorKind::Unauthorized)
    } else if refused_feature::find(said).is_some_and(|refused| refused.is_schema()) {
        Some(ErrorKind::SchemaRefused)
    } else if is(&MODEL_CODES, &MODEL_WORDS)
        || said.has_words(&["the model"]) && said.has_words(&["does not exist", "not found"])
    {
        Some(ErrorKind::NotFound)
    } else if said.has_words(&FILTER_WORDS) {
        Some(ErrorKind::Filtered)
    } else {
        None
    }
}
