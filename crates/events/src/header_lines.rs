//! Headers as text, one a line, for where many messages are kept: what most of them have in common takes two letters.
//!
//! A line is `name: value`, with its beginning as [`SHORT`] has it.

/// Abbreviations for the beginnings of lines; if two rows fit, the first counts. A row never changes: rows of the read
/// model are read by it.
const SHORT: [(&str, &str); 24] = [
    ("=v", "ce-specversion: 1.0"),
    ("=i", "ce-id: "),
    ("=s", "ce-source: /kairo/"),
    ("=y", "ce-type: kairo."),
    ("=t", "ce-time: "),
    ("=p", "ce-datacontenttype: application/protobuf"),
    ("=r", "ce-correlationid: "),
    ("=a", "ce-causationid: "),
    ("=h", "ce-threadid: "),
    ("=b", "ce-subject: "),
    ("=u", "ce-origin: user"),
    ("=o", "ce-origin: tool"),
    ("=n", "ce-origin: internal"),
    ("=m", "ce-modality: text"),
    ("=q", "ce-modality: "),
    ("=g", "ce-tags: "),
    ("=w", "traceparent: 00-"),
    ("=e", "ce-events: "),
    ("=k", "ce-authtype: api_key"),
    ("=d", "ce-authid: "),
    ("=S", "ce-source: "),
    ("=Y", "ce-type: "),
    ("=O", "ce-origin: "),
    // A line that itself begins like a short one.
    ("==", "="),
];

/// Prefix of the headers that the server and the guard of a write need, and no reader of the message.
const OF_THE_SERVER: &str = "Nats-";

/// The headers, names and values, in alphabetical order of their names, without those that only told the server how to
/// store the message; [`read_headers`] reads them again. Values of one name stay in their order.
pub fn header_lines<'h>(headers: impl Iterator<Item = (&'h str, &'h str)>) -> String {
    let mut lines = String::with_capacity(512);
    let mut headers: Vec<_> = headers.filter(|(name, _)| !name.starts_with(OF_THE_SERVER)).collect();
    headers.sort_by_key(|(name, _)| *name);
    for (name, value) in headers {
        write_line(&mut lines, name, value);
    }
    lines
}

fn write_line(lines: &mut String, name: &str, value: &str) {
    let start = lines.len();
    lines.extend([name, ": ", value]);
    let line = lines.get(start..).unwrap_or_default();
    let short = SHORT.iter().find(|(_, beginning)| line.starts_with(beginning));
    if let Some((short, beginning)) = short {
        lines.replace_range(start..start + beginning.len(), short);
    }
    lines.push('\n');
}

/// Names and values of headers that were written one a line. A line that is no header is passed over.
pub fn read_headers(lines: &str) -> impl Iterator<Item = (String, String)> + '_ {
    lines.lines().filter_map(|line| {
        let long = |(short, beginning): &(&str, &str)| Some([beginning, line.strip_prefix(short)?].concat());
        let long = SHORT.iter().find_map(long);
        let (name, value) = long.as_deref().unwrap_or(line).split_once(": ")?;
        Some((name.to_owned(), value.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;

    use super::*;

    #[test]
    fn headers_are_read_as_they_were_whatever_they_say() {
        let all = [
            ("ce-specversion", "1.0"),
            ("ce-specversion", "1.0.1"),
            ("ce-id", "019a"),
            ("ce-source", "/kairo/gateway"),
            ("ce-source", "https://example.com: x"),
            ("ce-type", v1::UserMessage::TYPE),
            ("ce-type", "com.example"),
            ("ce-origin", "user"),
            ("ce-origin", "system"),
            ("ce-modality", "textual"),
            ("ce-tags", ""),
            ("traceparent", "00-4b-00-01"),
            ("traceparent", "cc-4b"),
            ("=v", "no header of ours"),
            ("X-Other", "a = b"),
        ];
        let mut sorted = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
        sorted.sort_by_key(|(name, _)| name.clone());
        let lines = header_lines(all.into_iter());
        assert_eq!(read_headers(&lines).collect::<Vec<_>>(), sorted, "{lines}");
        assert!(lines.starts_with("==v: no header of ours\nX-Other: a = b\n=i019a\n=mual\n=u\n=O"), "{lines}");
        // As they were written before.
        let long: String = all.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        assert!(read_headers(&long.replace("=v: ", "==v: ")).eq(all.map(|(name, value)| (name.into(), value.into()))));
    }

    #[test]
    fn what_told_the_server_how_to_store_it_is_left_out() {
        let headers = [("Nats-Msg-Id", "a"), ("ce-id", "a")];
        assert_eq!(header_lines(headers.into_iter()), "=ia\n");
    }
}
