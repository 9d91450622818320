//! The time an endpoint asks to wait before the next try.

use std::sync::LazyLock;

use jiff::{Timestamp, fmt::rfc2822};
use regex::Regex;

use super::body::ErrorBody;

/// No wait is longer, in milliseconds: a day.
const LONGEST_MS: u64 = 86_400_000;
/// Larger numbers are a point in time, in seconds since 1970.
const EPOCH_SECONDS: f64 = 1_000_000_000.0;

static IN_WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let unit = r"(?P<unit>milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h)\b";
    Regex::new(&format!(r"(?:try again|retry|wait|again|available|resets?|retry[_-]after)[^\d\n]{{0,40}}?(?P<number>\d+(?:\.\d+)?) ?{unit}")).ok()
});
static PARTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)").ok());

/// Returns the wait that headers ask for, in milliseconds. Their names are in lower case.
pub fn from_headers(headers: &[(&str, &str)], now: Option<Timestamp>) -> Option<u64> {
    let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.trim());
    let now = header("date").and_then(date).or(now);
    let told = header("retry-after-ms").and_then(|value| value.parse().ok()).and_then(|ms: f64| bounded(ms));
    let told = told.or_else(|| header("x-ms-retry-after-ms").and_then(|value| value.parse().ok()).and_then(bounded));
    told.or_else(|| parse_wait(header("retry-after")?, now)).or_else(|| {
        // The limit that was reached is the one of which nothing is left.
        let is_used_up = |of: &str| {
            header(&format!("x-ratelimit-remaining-{of}"))
                .is_none_or(|left| left.trim().starts_with('0') || left.starts_with('-'))
        };
        let resets = ["requests", "tokens"]
            .iter()
            .filter(|of| is_used_up(of))
            .filter_map(|of| parse_wait(header(&format!("x-ratelimit-reset-{of}"))?, now));
        let others = ["x-ratelimit-reset", "ratelimit-reset", "x-rate-limit-reset"]
            .iter()
            .filter_map(|name| parse_wait(header(name)?, now));
        let anthropic = ["requests", "tokens", "input-tokens", "output-tokens"]
            .iter()
            .filter_map(|of| parse_wait(header(&format!("anthropic-ratelimit-{of}-reset"))?, now));
        resets.max().or_else(|| others.max()).or_else(|| anthropic.max())
    })
}

/// Returns the wait that a body asks for, in milliseconds.
pub fn from_body(said: &ErrorBody) -> Option<u64> {
    let number = |names: &[&str], unit: f64| {
        names.iter().find_map(|name| said.number(name)).and_then(|number| bounded(number * unit))
    };
    let field = |name: &str| said.fields.iter().find(|(field, _)| field == name).map(|(_, text)| text.as_str());
    number(&["retry_after_ms", "retryAfterMs"], 1.0)
        .or_else(|| number(&["retry_after", "retry_after_seconds", "retryAfter", "retry_in"], 1000.0))
        .or_else(|| {
            ["retryDelay", "retry_after", "Retry-After", "retry-after"]
                .iter()
                .find_map(|name| parse_wait(field(name)?, None))
        })
        .or_else(|| find_in_words(&said.text))
}

fn find_in_words(text: &str) -> Option<u64> {
    let found = IN_WORDS.as_ref()?.captures(text)?;
    let number: f64 = found.name("number")?.as_str().parse().ok()?;
    bounded(number * unit_ms(found.name("unit")?.as_str()))
}

/// A wait as headers have it: seconds, `6m0s`, a point in time in seconds or milliseconds since 1970, or a date.
fn parse_wait(value: &str, now: Option<Timestamp>) -> Option<u64> {
    let value = value.trim();
    if let Ok(number) = value.parse::<f64>() {
        let seconds = if number > EPOCH_SECONDS * 1000.0 { number / 1000.0 } else { number };
        return match seconds > EPOCH_SECONDS {
            true => bounded(seconds * 1000.0 - now?.as_millisecond() as f64),
            false => bounded(seconds * 1000.0),
        };
    }
    if let Some(date) = date(value) {
        return bounded((date.as_millisecond() - now?.as_millisecond()) as f64);
    }
    duration(value)
}

fn date(value: &str) -> Option<Timestamp> {
    let parsed = rfc2822::parse(value.trim()).ok().map(|date| date.timestamp());
    parsed.or_else(|| value.trim().parse().ok())
}

/// Parts such as those of `1h6m0.5s`, and nothing else.
fn duration(value: &str) -> Option<u64> {
    let mut total = 0.0;
    let mut length = 0;
    for part in PARTS.as_ref()?.captures_iter(value) {
        let number: f64 = part.name("number")?.as_str().parse().ok()?;
        total += number * unit_ms(part.name("unit")?.as_str());
        length += part.get(0)?.len();
    }
    (length > 0 && length == value.len()).then(|| bounded(total)).flatten()
}

fn unit_ms(unit: &str) -> f64 {
    match unit {
        "ms" | "millisecond" | "milliseconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
        "h" | "hour" | "hours" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => 1000.0,
    }
}

/// A time that has passed is no wait; a number that is none says nothing.
fn bounded(ms: f64) -> Option<u64> {
    ms.is_finite().then(|| (ms.max(0.0).ceil() as u64).min(LONGEST_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_in_every_form() {
        let now: Timestamp = "2026-11-27T18:00:00Z".parse().unwrap();
        for (name, value, expected) in [
            ("retry-after", "4", Some(4_000)),
            ("retry-after", "1.5", Some(1_500)),
            ("retry-after", "Fri, 27 Nov 2026 18:00:10 GMT", Some(10_000)),
            ("retry-after", "Fri, 27 Nov 2026 17:00:00 GMT", Some(0)),
            ("retry-after", "-3", Some(0)),
            ("retry-after", "1e300", Some(LONGEST_MS)),
            ("retry-after", "NaN", None),
            ("retry-after", "soon", None),
            ("retry-after-ms", "250", Some(250)),
            ("x-ratelimit-reset-requests", "6m0s", Some(360_000)),
            ("x-ratelimit-reset-tokens", "120ms", Some(120)),
            ("x-ratelimit-reset-tokens", "1h2m3.5s", Some(3_723_500)),
            ("x-ratelimit-reset", "1795802405", Some(5_000)),
            ("x-ratelimit-reset", "1795802405000", Some(5_000)),
            ("ratelimit-reset", "30", Some(30_000)),
            ("anthropic-ratelimit-requests-reset", "2026-11-27T18:00:07Z", Some(7_000)),
            ("x-other", "30", None),
        ] {
            assert_eq!(from_headers(&[(name, value)], Some(now)), expected, "{name}: {value}");
        }
        let dated = [("retry-after", "Fri, 27 Nov 2026 18:00:10 GMT"), ("date", "Fri, 27 Nov 2026 18:00:04 GMT")];
        assert_eq!(from_headers(&dated, Some(now)), Some(6_000), "by the endpoint's own clock");
        assert_eq!(from_headers(&dated[..1], None), None);
        let left = [
            ("x-ratelimit-remaining-requests", "99"),
            ("x-ratelimit-reset-requests", "9h"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "2s"),
        ];
        assert_eq!(from_headers(&left, None), Some(2_000));
    }

    #[test]
    fn waits_are_read_in_words_and_details() {
        for (body, expected) in [
            (r#"{"error":{"message":"Rate limit reached. Please try again in 4.5s. Visit"}}"#, Some(4_500)),
            (r#"{"error":{"message":"Rate limit reached, retry in 4s"}}"#, Some(4_000)),
            (r#"{"error":{"message":"Please wait 20 seconds"}}"#, Some(20_000)),
            (r#"{"error":{"message":"Please try again in 120ms."}}"#, Some(120)),
            (
                r#"{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"43s"}]}}"#,
                Some(43_000),
            ),
            (r#"{"error":{"metadata":{"retry_after":3}}}"#, Some(3_000)),
            (r#"{"error":{"message":"no"}}"#, None),
        ] {
            assert_eq!(from_body(&ErrorBody::from_bytes(body.as_bytes())), expected, "{body}");
        }
    }
}
