//! Secrets that are known by their own shape.

use std::sync::LazyLock;

use regex::Regex;

use super::SecretSpan;

/// Names and expressions of the shapes; the first group is the secret, or the whole match if there is no group.
const SHAPES: [(&str, &str); 5] = [
    (
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s:,.\\-]*?(?:-----END [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    // A JSON Web Token: two JSON objects in base64, and a signature.
    ("token", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    ("token", r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{16,}=*)"),
    ("password", r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\[]{0,64}:([^\s/@\[]{1,128})@"),
    // OpenAI and the like, GitHub, GitLab, AWS, Slack, Google, Stripe, npm, PyPI, Hugging Face, SendGrid, Telegram.
    (
        "api key",
        concat!(
            r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|gl(?:pat|ptt|dt)-[A-Za-z0-9_-]{16,}",
            r"|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}",
            r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{20,}",
            r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|[0-9]{8,10}:AA[A-Za-z0-9_-]{32,})",
        ),
    ),
];

/// Digits, each perhaps behind a space or hyphen, as they stand on a card.
const CARD: &str = r"\b[2-6](?:[ -]?[0-9]){12,18}";

pub(super) fn find(text: &str) -> Vec<SecretSpan> {
    static COMPILED: LazyLock<Vec<(&str, Regex)>> =
        LazyLock::new(|| SHAPES.iter().filter_map(|(kind, shape)| Some((*kind, Regex::new(shape).ok()?))).collect());
    static CARDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(CARD).ok());
    let mut found = Vec::new();
    for (kind, shape) in COMPILED.iter() {
        for captures in shape.captures_iter(text) {
            let secret = captures.get(1).or_else(|| captures.get(0));
            found.extend(secret.map(|secret| SecretSpan { at: secret.range(), kind }));
        }
    }
    let digits = CARDS.iter().flat_map(|cards| cards.find_iter(text));
    found.extend(digits.filter_map(|digits| {
        let before = text.get(..digits.start()).unwrap_or_default().chars().next_back();
        // Telephone numbers, decimals, ids.
        if before.is_some_and(|before| matches!(before, '+' | '.' | '_' | '-' | '/')) {
            return None;
        }
        let length = card_number_length(digits.as_str(), text.get(digits.end()..).unwrap_or_default())?;
        Some(SecretSpan { at: digits.start()..digits.start() + length, kind: "card number" })
    }));
    found
}

/// Bytes of the card number that these digits begin with.
fn card_number_length(digits: &str, rest: &str) -> Option<usize> {
    let ends = digits.char_indices().filter(|(_, digit)| digit.is_ascii_digit()).map(|(at, _)| at + 1);
    let ends: Vec<usize> = ends.collect();
    let number: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(10)).collect();
    let fits = |(count, end): (usize, usize)| {
        let next = digits.get(end..).filter(|behind| !behind.is_empty()).unwrap_or(rest).chars().next();
        let stands_alone = next.is_none_or(|next| !next.is_alphanumeric());
        let number = number.get(..count).unwrap_or_default();
        (stands_alone && is_issued(number) && passes_luhn(number)).then_some(end)
    };
    ends.into_iter().enumerate().map(|(at, end)| (at + 1, end)).rev().find_map(fits)
}

/// Returns true if cards of this length begin with these digits.
fn is_issued(number: &[u32]) -> bool {
    matches!(
        (number.len(), number),
        (14, [3, 0 | 6 | 8, ..])
            | (15, [3, 4 | 7, ..])
            | (16, [2, 2..=7, ..] | [3, 5, ..] | [4..=6, ..])
            | (17..=19, [4..=6, ..])
    )
}

/// The check digit of card numbers (ISO/IEC 7812-1).
fn passes_luhn(number: &[u32]) -> bool {
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let weigh = |(at, digit): (usize, &u32)| if at % 2 == 1 { doubled(*digit) } else { *digit };
    let different = number.windows(2).any(|pair| pair.first() != pair.last());
    different && number.iter().rev().enumerate().map(weigh).sum::<u32>() % 10 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_is_one() {
        for (_, shape) in SHAPES {
            Regex::new(shape).unwrap();
        }
        Regex::new(CARD).unwrap();
    }
}
