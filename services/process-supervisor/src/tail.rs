//! The end of a text that may be long.

/// The last bytes of what was pushed, and how many came before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTail {
    max_bytes: usize,
    text: String,
    omitted_bytes: u64,
}

impl TextTail {
    /// Keeps at most `max_bytes` of UTF-8; fewer where a character would be cut.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, text: String::new(), omitted_bytes: 0 }
    }

    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        // Cutting only at twice the size moves each byte at most once on average.
        if self.text.len() > self.max_bytes.saturating_mul(2) {
            self.trim();
        }
    }

    /// The end of the text so far.
    pub fn as_str(&self) -> &str {
        let start = self.text.ceil_char_boundary(self.text.len().saturating_sub(self.max_bytes));
        self.text.get(start..).unwrap_or_default()
    }

    /// The end of the text, and the number of bytes that came before it.
    pub fn into_parts(mut self) -> (String, u64) {
        self.trim();
        (self.text, self.omitted_bytes)
    }

    fn trim(&mut self) {
        let excess = self.text.len().saturating_sub(self.max_bytes);
        let start = self.text.ceil_char_boundary(excess);
        self.text.drain(..start);
        self.omitted_bytes += start as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(max_bytes: usize, pieces: &[&str]) -> (String, u64) {
        let mut tail = TextTail::new(max_bytes);
        for piece in pieces {
            tail.push(piece);
        }
        assert_eq!(tail.as_str(), tail.clone().into_parts().0);
        tail.into_parts()
    }

    #[test]
    fn a_short_text_is_whole() {
        assert_eq!(tail(8, &["abc", "", "def"]), ("abcdef".into(), 0));
        assert_eq!(tail(6, &["abcdef"]), ("abcdef".into(), 0));
    }

    #[test]
    fn a_long_text_keeps_its_end_and_says_what_is_missing() {
        assert_eq!(tail(4, &["abcdef"]), ("cdef".into(), 2));
        assert_eq!(tail(0, &["abc"]), (String::new(), 3));
    }

    #[test]
    fn characters_are_never_cut() {
        assert_eq!(tail(4, &["€€"]), ("€".into(), 3));
        assert_eq!(tail(2, &["a€"]), (String::new(), 4));
    }

    #[test]
    fn how_it_was_pushed_does_not_matter() {
        let text = "0123456789€".repeat(20);
        let one = tail(25, &[&text]);
        let pieces: Vec<String> = text.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(tail(25, &pieces), one);
        assert_eq!(one.0.len() as u64 + one.1, text.len() as u64);
    }
}
