//! The lines of an iCalendar file (RFC 5545, section 3.1) as components with properties.
//!
//! The crate that reads cards and follows rules reads calendars too, but passes over what it does not understand: a COUNT of
//! -1 becomes one of 1, an unknown part of a rule is lost, an END that is missing goes unnoticed. Here a value stays the text
//! that the file has, so that whoever cannot read it can say so.

use std::borrow::Cow;

use mail_parser::decoders::quoted_printable::quoted_printable_decode;

/// Components within components; deeper ones are left out.
const MAX_DEPTH: usize = 16;
/// Properties of date and time, whose values have no colon: the zone before them may have one that nobody quoted.
const TIMES: [&str; 6] = ["DTSTART", "DTEND", "DUE", "EXDATE", "RDATE", "RECURRENCE-ID"];
/// Components that are in a calendar and never in each other: one that begins ends those before it.
const OUTER: [&str; 7] = ["VCALENDAR", "VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY", "VTIMEZONE", "VAVAILABILITY"];

/// A property of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IcsProperty {
    /// In capitals.
    pub name: String,
    /// Name in capitals, and value without quotes.
    parameters: Vec<(String, String)>,
    /// As the file has it, lines joined.
    pub value: String,
}

/// A part of a file, from its BEGIN to its END.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IcsComponent {
    /// In capitals.
    pub kind: String,
    /// The place of the component around it in the list of all.
    pub parent: Option<usize>,
    pub properties: Vec<IcsProperty>,
    /// True if the component has an `END` line.
    pub closed: bool,
}

/// All components of a file, outer ones before inner ones.
#[derive(Debug, Default)]
pub struct ComponentList {
    pub components: Vec<IcsComponent>,
    /// Lines that are no property.
    pub stray: usize,
    /// True if components were nested too deep.
    pub too_deep: bool,
}

impl IcsProperty {
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The value as a text, escapes resolved.
    pub fn text(&self) -> String {
        let quoted =
            self.parameter("ENCODING").is_some_and(|encoding| encoding.eq_ignore_ascii_case("QUOTED-PRINTABLE"));
        let value = match quoted_printable_decode(self.value.as_bytes()).filter(|_| quoted) {
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
            None => Cow::Borrowed(&self.value),
        };
        unescape_text(&value).trim().to_owned()
    }
}

impl IcsComponent {
    /// The first property of this name.
    pub fn first_property(&self, name: &str) -> Option<&IcsProperty> {
        self.properties.iter().find(|property| property.name == name)
    }

    pub fn properties_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a IcsProperty> {
        self.properties.iter().filter(move |property| property.name == name)
    }

    /// The text of the first property of this name, unless it is empty.
    pub fn text(&self, name: &str) -> Option<String> {
        self.first_property(name).map(IcsProperty::text).filter(|text| !text.is_empty())
    }
}

impl ComponentList {
    pub fn parse(text: &str) -> Self {
        let mut lines = Self::default();
        let mut open: Vec<usize> = Vec::new();
        for line in unfold_lines(text) {
            let Some(property) = parse_property(&line) else {
                lines.stray += usize::from(!line.trim().is_empty());
                continue;
            };
            let kind = || property.value.trim().to_ascii_uppercase();
            match property.name.as_str() {
                "BEGIN" => lines.begin_component(kind(), &mut open),
                "END" => lines.end_component(&kind(), &mut open),
                _ => match open.last().and_then(|at| lines.components.get_mut(*at)) {
                    Some(component) => component.properties.push(property),
                    None => lines.stray += 1,
                },
            }
        }
        lines
    }

    fn begin_component(&mut self, kind: String, open: &mut Vec<usize>) {
        if kind == "VCALENDAR" {
            open.clear();
        } else if OUTER.contains(&kind.as_str()) {
            let outermost = |at: &usize| self.components.get(*at).is_some_and(|one| one.kind == "VCALENDAR");
            open.truncate(open.iter().position(outermost).map_or(0, |at| at + 1));
        }
        if open.len() >= MAX_DEPTH {
            self.too_deep = true;
            return;
        }
        let component = IcsComponent { kind, parent: open.last().copied(), ..IcsComponent::default() };
        open.push(self.components.len());
        self.components.push(component);
    }

    fn end_component(&mut self, kind: &str, open: &mut Vec<usize>) {
        let of_kind = |at: &usize| self.components.get(*at).is_some_and(|one| one.kind == kind);
        let Some(place) = open.iter().rposition(of_kind) else { return };
        if let Some(component) = open.get(place).and_then(|at| self.components.get_mut(*at)) {
            component.closed = true;
        }
        open.truncate(place);
    }
}

/// Whole lines: a line that begins with white space belongs to the one before, and so does, in old files, one behind a line
/// of quoted-printable that ends with an equals sign.
fn unfold_lines(text: &str) -> Vec<String> {
    let end = if text.contains('\n') { '\n' } else { '\r' };
    let mut lines: Vec<String> = Vec::new();
    for part in text.split(end) {
        let part = part.trim_end_matches('\r');
        match lines.last_mut() {
            Some(line) if part.starts_with([' ', '\t']) => line.push_str(part.get(1..).unwrap_or_default()),
            Some(line) if line.ends_with('=') && is_quoted_printable(line) => {
                line.pop();
                line.push_str(part);
            }
            // Some programs write each end of a line twice.
            _ if part.is_empty() => {}
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

fn is_quoted_printable(line: &str) -> bool {
    let head = line.split(':').next().unwrap_or_default();
    head.len() < 200 && head.to_ascii_uppercase().contains("QUOTED-PRINTABLE")
}

/// "NAME;PARAMETER=value;PARAMETER=\"value\":value"
fn parse_property(line: &str) -> Option<IcsProperty> {
    let line = line.trim_start_matches('\u{feff}');
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let name_end = line.find(|c| !is_name(c))?;
    let (name, rest) = line.split_at(name_end);
    // Old programs group properties: "item1.DTSTART".
    let name = name.rsplit('.').next().unwrap_or(name).to_ascii_uppercase();
    let rest = rest.trim_start();
    if name.is_empty() || !rest.starts_with([';', ':']) {
        return None;
    }
    let colon = if TIMES.contains(&name.as_str()) { rest.rfind(':') } else { find_value_start(rest) }?;
    let (parameters, value) = rest.split_at(colon);
    let parameters = split_quoted(parameters, ';').into_iter().filter_map(|part| {
        let (key, value) = part.split_once('=')?;
        Some((key.trim().to_ascii_uppercase(), decode_parameter(value)))
    });
    Some(IcsProperty { name, parameters: parameters.collect(), value: value.get(1..).unwrap_or_default().to_owned() })
}

/// The first colon that is not within quotes.
fn find_value_start(rest: &str) -> Option<usize> {
    let mut quoted = false;
    for (at, c) in rest.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ':' if !quoted => return Some(at),
            _ => {}
        }
    }
    // Somebody forgot a quote.
    rest.find(':')
}

fn split_quoted(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut quoted = false;
    let mut from = 0;
    for (at, c) in text.char_indices() {
        if c == '"' {
            quoted = !quoted;
        } else if c == separator && !quoted {
            parts.push(text.get(from..at).unwrap_or_default());
            from = at + c.len_utf8();
        }
    }
    parts.push(text.get(from..).unwrap_or_default());
    parts
}

/// Without quotes; "^n", "^'" and "^^" as RFC 6868 has them.
fn decode_parameter(value: &str) -> String {
    let value = value.trim().trim_matches('"');
    if !value.contains('^') {
        return value.to_owned();
    }
    value.replace("^n", "\n").replace("^'", "\"").replace("^^", "^")
}

fn unescape_text(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(other) => text.push(other),
                None => {}
            },
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parameters_and_values() {
        for (line, name, zone, value) in [
            ("dtstart;tzid=Europe/Berlin:20260301T090000", "DTSTART", Some("Europe/Berlin"), "20260301T090000"),
            ("DTSTART;TZID=\"(UTC+01:00) Berlin; B\":20260301", "DTSTART", Some("(UTC+01:00) Berlin; B"), "20260301"),
            ("DTSTART;TZID=(UTC+01:00) Berlin, Rome:20260301", "DTSTART", Some("(UTC+01:00) Berlin, Rome"), "20260301"),
            ("item1.SUMMARY;X=1:a: b", "SUMMARY", None, "a: b"),
            ("RRULE:", "RRULE", None, ""),
        ] {
            let found = parse_property(line).unwrap();
            assert_eq!(
                (found.name.as_str(), found.parameter("TZID"), found.value.as_str()),
                (name, zone, value),
                "{line}"
            );
        }
        for line in ["", "hello", "two words: x", ":x", "=="] {
            assert_eq!(parse_property(line), None, "{line:?}");
        }
        let named = parse_property("ATTENDEE;CN=\"A ^'B^' ^n C\":mailto:a@b.c").unwrap();
        assert_eq!((named.parameter("CN"), named.value.as_str()), (Some("A \"B\" \n C"), "mailto:a@b.c"));
    }

    #[test]
    fn texts_are_unfolded_unescaped_and_decoded() {
        for (text, expected) in [
            ("SUMMARY:a\\, b\\; c\\nd\\\\n", "a, b; c\nd\\n"),
            ("SUMMARY:one\r\n  two\r\n\tthree", "one twothree"),
            ("SUMMARY\r\r\n\r\n :one\r\n\r\n  two", "one two"),
            ("SUMMARY;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:gr=C3=BC=\r\n=C3=9Fe", "grüße"),
        ] {
            let lines = ComponentList::parse(&format!("BEGIN:VEVENT\r\n{text}\r\nEND:VEVENT\r\n"));
            assert_eq!(lines.components[0].text("SUMMARY").as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn an_end_that_is_missing_is_seen() {
        let lines = ComponentList::parse(
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nBEGIN:VALARM\nEND:VEVENT\nBEGIN:VEVENT\nUID:2\nBEGIN:VEVENT\nUID:3\nEND:VEVENT\nodd\n",
        );
        let seen: Vec<_> = lines.components.iter().map(|one| (one.kind.as_str(), one.parent, one.closed)).collect();
        assert_eq!(
            seen,
            [
                ("VCALENDAR", None, false),
                ("VEVENT", Some(0), true),
                ("VALARM", Some(1), false),
                ("VEVENT", Some(0), false),
                ("VEVENT", Some(0), true),
            ]
        );
        assert_eq!(lines.stray, 1);
    }
}
