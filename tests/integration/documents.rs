//! The documents say what the code says.

use std::{fmt::Write, path::PathBuf};

use kairo_core::subjects::{Emitter, Store, TABLE};

const START: &str = "<!-- subjects -->\n";
const END: &str = "<!-- /subjects -->";

fn architecture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("ARCHITECTURE.md")
}

/// The table of subjects, in Markdown.
fn table() -> String {
    let mut text = String::from("| subject | emitted by | consumed by | says |\n|---|---|---|---|\n");
    for row in TABLE {
        let owner = match row.noun {
            "user" => "<user>",
            "system" | "dlq" => "<service>",
            _ => "<agent>",
        };
        let emitter = match row.emitter {
            Emitter::Only(service) => service.name(),
            Emitter::Owner => "the service",
            Emitter::Timer => "JetStream",
        };
        let consumers: Vec<&str> = row.consumers.iter().map(|consumer| consumer.name()).collect();
        let consumers = match row.store {
            Store::Events if consumers.is_empty() => "projector".to_owned(),
            Store::Events => format!("{}, projector", consumers.join(", ")),
            Store::DeadLetters => "KAIRO_DLQ".to_owned(),
            Store::Live => "whoever listens, never stored".to_owned(),
        };
        let says = row.says;
        writeln!(text, "| `kairo.{}.{owner}.{}` | {emitter} | {consumers} | {says} |", row.noun, row.verb).unwrap();
    }
    let outside = "| `kairo.system.<source>.<verb>` | other systems | router-events | something happened there: a CloudEvent with \
                   JSON data, or just JSON |\n";
    text + outside
}

#[test]
fn the_table_of_subjects_is_that_of_the_code() {
    let text = std::fs::read_to_string(architecture()).unwrap();
    let (before, rest) = text.split_once(START).expect("the table's beginning is marked");
    let (told, after) = rest.split_once(END).expect("the table's end is marked");
    if std::env::var_os("KAIRO_REGENERATE").is_some() {
        std::fs::write(architecture(), format!("{before}{START}{}{END}{after}", table())).unwrap();
    } else {
        assert!(told == table(), "run KAIRO_REGENERATE=1 cargo nextest run -p kairo-tests documents");
    }
}

#[test]
fn every_file_the_architecture_points_to_is_there() {
    let text = std::fs::read_to_string(architecture()).unwrap();
    let root = architecture().parent().unwrap().to_owned();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let missing: Vec<&str> =
        targets.filter(|target| !target.starts_with("http") && !root.join(target).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
