//! The tools that a model was offered, and which of them it means.

use serde_json::Value;

/// Longest name that a model is held to have written, in characters.
const NAME_CHARS: usize = 200;
/// Prefixes that some models and proxies put before a name.
const PREFIXES: [&str; 14] = [
    "functions.",
    "function.",
    "functions:",
    "function:",
    "functions/",
    "functions::",
    "default_api.",
    "default_api:",
    "default_api::",
    "multi_tool_use.",
    "tool_code.",
    "tools.",
    "tool.",
    "api.",
];

/// A tool that a model was offered.
#[derive(Clone, Debug)]
struct Tool {
    name: String,
    /// The name that the model was told, where the other has signs that no endpoint takes.
    wire_name: String,
    /// The name without signs and case.
    plain_name: String,
    /// JSON Schema of the arguments, as text.
    schema: String,
}

/// The tools of one request.
#[derive(Clone, Debug, Default)]
pub struct OfferedTools(Vec<Tool>);

impl OfferedTools {
    /// Of each its name, the name that the model was told, and the JSON Schema of its arguments.
    pub fn new<'t>(tools: impl IntoIterator<Item = (&'t str, String, &'t str)>) -> Self {
        let tools = tools.into_iter();
        Self(
            tools
                .map(|(name, wire_name, schema)| Tool {
                    name: name.into(),
                    wire_name,
                    plain_name: plain(name),
                    schema: schema.into(),
                })
                .collect(),
        )
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a name is exactly one of them.
    pub fn has(&self, name: &str) -> bool {
        self.exact(name).is_some()
    }

    /// Returns true if one of them begins with this.
    pub fn has_prefix(&self, part: &str) -> bool {
        self.0.iter().any(|tool| tool.wire_name.starts_with(part) || tool.name.starts_with(part))
    }

    /// Returns true if a parameter of a tool is a text, whatever its value looks like.
    pub fn is_text_parameter(&self, tool: &str, parameter: &str) -> bool {
        let schema = self.0.iter().find(|offered| offered.name == tool).map(|offered| offered.schema.as_str());
        let schema: Value = schema.and_then(|schema| serde_json::from_str(schema).ok()).unwrap_or_default();
        schema
            .pointer("/properties")
            .and_then(|all| all.get(parameter)?.get("type"))
            .is_some_and(|kind| kind == "string")
    }

    fn exact(&self, name: &str) -> Option<&str> {
        let by_wire_name = self.0.iter().find(|tool| tool.wire_name == name);
        by_wire_name.or_else(|| self.0.iter().find(|tool| tool.name == name)).map(|tool| tool.name.as_str())
    }

    /// The tool that a model means: by its name, or by one within markers of channels, with a prefix, or with other signs
    /// between its words, where that is certain.
    pub fn find_meant(&self, written: &str) -> Option<&str> {
        if written.len() > NAME_CHARS * 4 {
            return None;
        }
        readings(written)
            .iter()
            .find_map(|name| self.exact(name))
            .or_else(|| readings(written).iter().find_map(|name| self.alike(name)))
    }

    /// The only one whose name differs in no more than its case and the signs between its words.
    fn alike(&self, name: &str) -> Option<&str> {
        let name = plain(name);
        let mut alike = self.0.iter().filter(|tool| !name.is_empty() && tool.plain_name == name);
        alike.next().filter(|_| alike.next().is_none()).map(|tool| tool.name.as_str())
    }

    /// The name of a call for an event: that of the tool that is meant, else what was written, cut to a sensible length.
    pub fn resolve_name(&self, written: &str) -> String {
        self.find_meant(written).map_or_else(|| written.trim().chars().take(NAME_CHARS).collect(), str::to_owned)
    }
}

/// Returns the possible readings of a written name, the likeliest first.
fn readings(written: &str) -> Vec<&str> {
    let mut readings = vec![written];
    let addressed = written.split("to=").nth(1);
    let outside = written.split("<|").map(|part| part.split_once("|>").map_or(part, |(_, behind)| behind));
    for part in addressed.into_iter().chain(std::iter::once(written)).chain(outside) {
        let word = part.split("<|").next().unwrap_or_default().trim();
        let word = word.split_whitespace().next().unwrap_or_default();
        let word = word.trim_matches(|sign: char| !sign.is_alphanumeric() && sign != '_');
        for word in [word, strip_call_number(word)] {
            readings.push(word);
            readings.extend(PREFIXES.iter().filter_map(|prefix| word.strip_prefix(prefix)));
        }
    }
    readings
}

/// Without the number of the call that some models write behind the name: `functions.now:0`.
fn strip_call_number(word: &str) -> &str {
    match word.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => word,
    }
}

fn plain(name: &str) -> String {
    let words = name.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_through_markers_and_prefixes_where_they_mean_an_offered_tool() {
        let names = ["tools.now", "tools.date_calc", "files.read__all", "a.b", "a__b.c"];
        let offered = OfferedTools::new(names.map(|name| (name, name.replace('.', "__"), "{}")));
        for (written, meant) in [
            ("tools__now", Some("tools.now")),
            ("tools.now", Some("tools.now")),
            (" tools__now\n", Some("tools.now")),
            ("functions.tools__now", Some("tools.now")),
            ("functions.tools__now:0", Some("tools.now")),
            ("default_api.tools__now", Some("tools.now")),
            ("<|channel|>commentary to=functions.tools__now", Some("tools.now")),
            ("commentary to=functions.tools__now<|channel|>", Some("tools.now")),
            ("tools__now<|channel|>commentary", Some("tools.now")),
            ("tools__now<|constrain|>json", Some("tools.now")),
            ("`tools__now`", Some("tools.now")),
            ("Tools_Now", Some("tools.now")),
            ("tools-date-calc", Some("tools.date_calc")),
            ("files__read__all", Some("files.read__all")),
            ("delete_everything", None),
            ("now", None),
            ("functions.", None),
            ("", None),
            (&"x".repeat(100_000), None),
        ] {
            assert_eq!(offered.find_meant(written), meant, "{written:.40}");
        }
        assert_eq!(offered.resolve_name(" rm  "), "rm");
        assert_eq!(offered.resolve_name(&"x".repeat(100_000)).len(), NAME_CHARS);
    }
}
