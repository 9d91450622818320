//! Keeps the code to the closed vocabularies: their words are compared, matched and written as enums.

use std::sync::LazyLock;

use regex::Regex;

use super::{is_generated, is_test, product_files, root};

/// Words of vocabularies that are names of other things as well: nouns of subjects, fields of JSON, roles of models' own
/// messages, folders of mail, kinds of content from outside.
const OTHERS_TOO: &[&str] = &[
    "agent",
    "answer",
    "approval",
    "archived",
    "assistant",
    "broadcast",
    "chain",
    "choice",
    "continue",
    "decision",
    "draft",
    "environment",
    "event",
    "failure",
    "fast",
    "heavy",
    "joined",
    "late",
    "light",
    "mcp",
    "memories",
    "memory",
    "message",
    "messages",
    "model",
    "new",
    "only",
    "postgres",
    "process",
    "result",
    "state",
    "system",
    "task",
    "text",
    "thought",
    "thread",
    "tool",
    "user",
    "worker",
];

/// A text that is compared, is a pattern or what a pattern comes to, or becomes the value of a field.
static USED: LazyLock<Regex> = LazyLock::new(|| {
    let used = [
        r#"(?:==|!=)\s*(?:Some\()?"([a-z_]+)""#,
        r#"(?:=>|\|)\s*(?:Some\()?"([a-z_]+)""#,
        r#""([a-z_]+)"\)*\s*(?:=>|\|)"#,
        r#""([a-z_]+)"\)*\.(?:into|to_owned|to_string)\(\)"#,
        r#"\{ "([a-z_]+)" \}"#,
    ];
    Regex::new(&used.join("|")).unwrap()
});

fn words() -> impl Iterator<Item = &'static str> {
    kairo_proto::words::ALL.iter().flat_map(|words| words.iter().copied()).filter(|word| !OTHERS_TOO.contains(word))
}

/// The words of vocabularies that a line writes out.
fn written(line: &str) -> Vec<&str> {
    let used = USED.captures_iter(line).filter_map(|found| found.iter().skip(1).flatten().next());
    used.map(|found| found.as_str()).filter(|found| words().any(|word| word == *found)).collect()
}

#[test]
fn words_of_vocabularies_are_enums() {
    let mut found = Vec::new();
    for path in product_files() {
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        if shown.starts_with("crates/model-sim") || is_generated(&path) || is_test(&path) {
            continue;
        }
        let text = super::code(&path);
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        found.extend(lines.flat_map(written).map(|word| format!("{shown}: {word}")));
    }
    assert!(found.is_empty(), "to be written as kairo_proto::words: {found:#?}");
}

#[test]
fn a_word_is_found_wherever_it_is_used() {
    for word in words() {
        for line in [
            format!(r#"if task.status == "{word}" {{"#),
            format!(r#"if status != Some("{word}") {{"#),
            format!(r#""{word}" => 1,"#),
            format!(r#"Some("{word}") => 1,"#),
            format!(r#""x" | "{word}" => 1,"#),
            format!(r#"Self::It => "{word}","#),
            format!(r#"status: "{word}".into(),"#),
            format!(r#"if gone {{ "{word}" }} else {{ "x" }}"#),
        ] {
            assert_eq!(written(&line), [word], "{line}");
        }
    }
}
