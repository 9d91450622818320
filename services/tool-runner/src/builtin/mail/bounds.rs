//! How much of a mail is looked at, so that one that was made to be slow is not.
//!
//! The parser looks for the boundary of a multipart as far as the mail goes, so many boundaries that occur nowhere cost
//! the square of its length; and it keeps a mail within a mail within it, however deep, which takes room on the stack
//! when it is given up. Both are told by words that a mail must hold for it.

/// Bytes that may be gone through in search of boundaries, all searches together. A mail of 2 MiB may have some thirty
/// multiparts, a smaller one more.
const MAX_SEARCHED_BYTES: usize = 64 * 1024 * 1024;
/// Mails within mails.
const MAX_WITHIN: usize = 100;

/// The beginning of a mail that can be parsed at ease, mostly all of it.
pub fn beginning(mail: &[u8]) -> &[u8] {
    let (mut searched, mut within) = (0_usize, 0_usize);
    for (at, _) in mail.iter().enumerate().filter(|(_, byte)| b"bBrRgG".contains(byte)) {
        let rest = mail.get(at..).unwrap_or_default();
        if begins(rest, b"boundary") {
            searched = searched.saturating_add(rest.len());
        } else if begins(rest, b"rfc822") || (begins(rest, b"global") && is_subtype(mail, at)) {
            within += 1;
        }
        if searched > MAX_SEARCHED_BYTES || within > MAX_WITHIN {
            return mail.get(..at).unwrap_or_default();
        }
    }
    mail
}

fn begins(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word))
}

/// Whether what begins at `at` may follow "message/": the word is an ordinary one too.
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
            assert_eq!(beginning(mail.as_bytes()).len(), mail.len());
        }
    }

    #[test]
    fn what_nests_without_end_is_cut() {
        let within = "Content-Type: Message/RFC822\r\n\r\n".repeat(60_000);
        assert!(beginning(within.as_bytes()).len() < 4_000);
        let within = "Content-Type: message / global\r\n\r\n".repeat(60_000);
        assert!(beginning(within.as_bytes()).len() < 4_000);
        let parts = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".repeat(40_000);
        assert!(beginning(parts.as_bytes()).len() < parts.len() / 100);
    }
}
