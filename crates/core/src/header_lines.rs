//! A message's headers as text, as [`kairo_events::header_lines`] writes them.

use async_nats::HeaderMap;
use kairo_events::header_lines as text;

/// The headers in alphabetical order, without those that only told the server how to store the message;
/// [`read_headers`] reads them again.
pub fn header_lines(headers: &HeaderMap) -> String {
    let named = headers.iter().map(|(name, values)| (AsRef::<str>::as_ref(name), values));
    text::header_lines(named.flat_map(|(name, values)| values.iter().map(move |value| (name, value.as_str()))))
}

/// Headers that were written one a line. A line that is no header is passed over.
pub fn read_headers(lines: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    text::read_headers(lines).for_each(|(name, value)| headers.append(name, value));
    headers
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;

    use super::*;

    #[test]
    fn headers_are_read_as_they_were() {
        let mut headers = HeaderMap::new();
        let all = [("ce-type", v1::UserMessage::TYPE), ("X-Other", "b"), ("ce-type", "com.example"), ("X-Other", "a")];
        all.iter().for_each(|(name, value)| headers.append(*name, *value));
        let lines = header_lines(&headers);
        assert_eq!(lines, "X-Other: b\nX-Other: a\n=yuser.message.v1\n=Ycom.example\n");
        assert_eq!(read_headers(&lines), headers);
    }
}
