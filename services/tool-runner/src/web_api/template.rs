//! Templates of URLs: `https://api.example.com/orders/{order_id}`, whose placeholders stand in the path and are filled with
//! text that cannot leave its segment.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// All but what RFC 3986 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A URL with placeholders in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Scheme, host and port.
    origin: String,
    host: String,
    path: Vec<PathPiece>,
    /// Query string of the URL, the same for every call.
    query: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathPiece {
    Literal(String),
    Placeholder(String),
}

impl Template {
    /// # Errors
    /// Describes the mistake without repeating the URL, which may carry a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected =
            "expected https://host/path or http://host/path, with placeholders such as {id} in its path alone";
        let (before_query, query) = match text.split_once('?') {
            Some((before, query)) => (before, Some(query.to_owned())),
            None => (text, None),
        };
        let rest = before_query.strip_prefix("https://").or_else(|| before_query.strip_prefix("http://"));
        let rest = rest.ok_or(expected)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains(['{', '}']) || query.as_ref().is_some_and(|query| query.contains(['{', '}'])) {
            return Err(expected.to_owned());
        }
        let origin = before_query.strip_suffix(path).unwrap_or(before_query).trim_end_matches('/').to_owned();
        let url = Url::parse(&origin).map_err(|_| expected)?;
        if !url.username().is_empty() || url.password().is_some() || text.contains('#') {
            return Err("expected no user, password or fragment in it; secrets belong into headers".to_owned());
        }
        let port = url.port_or_known_default().ok_or(expected)?;
        let host = format!("{}:{port}", url.host_str().ok_or(expected)?);
        Ok(Self { origin, host, path: pieces(path)?, query })
    }

    /// Host and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Scheme, host and port, as they were written.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.path.iter().filter_map(|piece| match piece {
            PathPiece::Placeholder(name) => Some(name.as_str()),
            PathPiece::Literal(_) => None,
        })
    }

    /// The URL with these texts in the places of its placeholders.
    ///
    /// # Errors
    /// When one is missing or empty, or would make the path lead elsewhere, as `..` does.
    pub fn fill(&self, texts: &BTreeMap<String, String>) -> Result<Url, String> {
        let mut path = String::new();
        for piece in &self.path {
            match piece {
                PathPiece::Literal(text) => path.push_str(text),
                PathPiece::Placeholder(name) => {
                    let text = texts.get(name).filter(|text| !text.is_empty());
                    let text = text.ok_or_else(|| format!("/{name}: is part of the address and must not be empty"))?;
                    path.extend(utf8_percent_encode(text, RESERVED));
                }
            }
        }
        // What a URL takes for . and .. is a path that leads elsewhere, also where the dots are encoded.
        let is_dots = |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
        if path.split('/').any(is_dots) {
            return Err("/: a part of the address must not be . or ..".to_owned());
        }
        let query = self.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        Url::parse(&format!("{}/{path}{query}", self.origin))
            .map_err(|error| format!("/: the address is no url: {error}"))
    }
}

fn pieces(path: &str) -> Result<Vec<PathPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = path;
    while let Some((literal, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}').ok_or("expected a } for each {")?;
        let is_name = !name.is_empty() && !name.contains(['{', '/']);
        if !is_name || literal.contains('}') {
            return Err("expected the name of an argument between { and }".to_owned());
        }
        pieces.extend([PathPiece::Literal(literal.to_owned()), PathPiece::Placeholder(name.to_owned())]);
        rest = behind;
    }
    if rest.contains('}') {
        return Err("expected a { for each }".to_owned());
    }
    pieces.push(PathPiece::Literal(rest.to_owned()));
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, value: &str) -> Result<String, String> {
        let texts = BTreeMap::from([("a".to_owned(), value.to_owned())]);
        Template::parse(template)?.fill(&texts).map(String::from)
    }

    #[test]
    fn a_text_stays_in_its_segment() {
        let template = "https://api.example.com/orders/{a}/lines?all=1";
        for (text, written) in [
            ("7", "7"),
            ("a/b?c#d", "a%2Fb%3Fc%23d"),
            ("../../admin", "..%2F..%2Fadmin"),
            ("%2e%2e", "%252e%252e"),
            ("é \\", "%C3%A9%20%5C"),
        ] {
            assert_eq!(filled(template, text), Ok(format!("https://api.example.com/orders/{written}/lines?all=1")));
        }
        for text in ["", ".", ".."] {
            assert!(filled(template, text).is_err(), "{text:?}");
        }
        assert!(filled("http://h/.{a}/x", ".").is_err(), "two halves of ..");
        assert!(filled("http://h/%2E{a}/x", ".").is_err());
        assert_eq!(filled("http://h/v{a}.json", "1"), Ok("http://h/v1.json".to_owned()));
    }

    #[test]
    fn what_is_no_template() {
        for bad in [
            "",
            "ftp://h/",
            "https://",
            "https://{host}/a",
            "https://h/a?b={c}",
            "https://u:p@h/",
            "https://h/a#b",
            "https://h/{",
            "https://h/}",
            "https://h/{}",
            "https://h/{a/b}",
            "https://h/{a{b}}",
            "//h/a",
            "https://h:x/",
        ] {
            assert!(Template::parse(bad).is_err(), "{bad:?}");
        }
        let template = Template::parse("http://127.0.0.1/{a}/{b}").unwrap();
        assert_eq!(template.host(), "127.0.0.1:80");
        assert_eq!(template.placeholders().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(Template::parse("https://h").unwrap().fill(&BTreeMap::new()).unwrap().as_str(), "https://h/");
    }
}
