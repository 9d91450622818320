//! Limits how much of a mail is parsed, so that a mail made to be slow is not.
//!
//! The parser searches the rest of a mail for the boundary of a multipart, so many boundaries that occur nowhere cost
//! the square of its length. It also keeps mails nested in one another, however deep, which takes stack space when they
//! are dropped. Words that such a mail must contain reveal both.

/// Most bytes searched for boundaries, all searches together. A mail of 2 MiB may have some thirty multiparts, a
/// smaller one more.
const MAX_SEARCHED_BYTES: usize = 64 * 1024 * 1024;
/// Most mails nested within one another.
const MAX_WITHIN: usize = 100;

/// The beginning of a mail that can be parsed at ease, mostly all of it.
pub fn parseable_prefix(mail: &[u8]) -> &[u8] {
    let mut searched = 0_usize;
    let mut within = 0_usize;
    for (at, _) in mail.iter().enumerate().filter(|(_, byte)| b"bBrRgG".contains(byte)) {
        let rest = mail.get(at..).unwrap_or_default();
        if starts_with_word(rest, b"boundary") {
            searched = searched.saturating_add(rest.len());
        } else if starts_with_word(rest, b"rfc822") || (starts_with_word(rest, b"global") && is_subtype(mail, at)) {
            within += 1;
        }
        if searched > MAX_SEARCHED_BYTES || within > MAX_WITHIN {
            return mail.get(..at).unwrap_or_default();
        }
    }
    mail
}

fn starts_with_word(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word))
}

/// Returns true if the word at `at` may follow "message/"; elsewhere it is an ordinary word.
fn is_subtype(mail: &[u8], at: usize) -> bool {
    let before = mail.get(..at).unwrap_or_default().iter().rev().find(|byte| !byte.is_ascii_whitespace());
    before.is_some_and(|byte| b"/)\"".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_mails_are_looked_at_whole() {
        let forwarded = "Content-Type: message/rfc822\r\n\r\n".repeat(50);
        let parts = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n".repeat(1_000);
        let prose = "Global warming, globally, and the boundaries of growth. ".repeat(1_000);
        for mail in [forwarded, parts, prose] {
            assert_eq!(parseable_prefix(mail.as_bytes()).len(), mail.len());
        }
    }

    #[test]
    fn what_nests_without_end_is_cut() {
        let within = "Content-Type: Message/RFC822\r\n\r\n".repeat(60_000);
        assert!(parseable_prefix(within.as_bytes()).len() < 4_000);
        let within = "Content-Type: message / global\r\n\r\n".repeat(60_000);
        assert!(parseable_prefix(within.as_bytes()).len() < 4_000);
        let parts = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".repeat(40_000);
        assert!(parseable_prefix(parts.as_bytes()).len() < parts.len() / 100);
    }
}
