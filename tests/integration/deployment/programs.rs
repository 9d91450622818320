//! The programs that agents may run in all that comes with Kairo: deployments, and examples in documents and comments.

use std::{fs, path::Path};

use serde_json::Value;

use super::root;

/// These do no harm, whatever arguments an agent chooses: none of them takes the name of a file.
const HARMLESS: [&str; 4] = ["/bin/echo", "/bin/sleep", "/bin/true", "/bin/false"];
/// The files and folders that are shown or deployed.
const SHIPPED: [&str; 7] = ["README.md", "docker-compose.yml", "deploy", "docs", "examples", "k8s", "scripts"];

/// The table of programs of a line that sets one, in JSON or in TOML, behind a comment's sign or not.
fn programs(line: &str) -> Option<Value> {
    let line = line.trim_start_matches(['#', ' ', '>', '-']);
    let is_variable = line.contains("KAIRO_PROCESS_SUPERVISOR__PROGRAMS");
    let is_setting = line.strip_prefix("programs").is_some_and(|rest| rest.trim_start().starts_with('='));
    if !is_variable && !is_setting {
        return None;
    }
    // Where it is only named, such as in a list of settings, there is no table.
    line.find('{').filter(|from| line[*from..].contains('"'))?;
    // Around it stands YAML, in braces perhaps: the longest that can be read is it.
    let places = |sign: char| line.match_indices(sign).map(|(at, _)| at).collect::<Vec<_>>();
    let ends = places('}');
    let parts = places('{').into_iter().flat_map(|from| ends.iter().rev().map(move |to| (from, *to)));
    let parts = parts.filter(|(from, to)| to > from);
    let read = |(from, to): (usize, usize)| {
        let text = &line[from..=to];
        serde_json::from_str(text).ok().or_else(|| {
            let table: toml::Table = toml::from_str(&format!("programs = {text}")).ok()?;
            serde_json::to_value(table.get("programs")?).ok()
        })
    };
    Some(parts.into_iter().find_map(read).unwrap_or_else(|| panic!("the programs cannot be read: {line}")))
}

/// The names of those that nobody is asked about and that are not known to be harmless.
fn doubtful(programs: &Value) -> Vec<String> {
    let programs = programs.as_object().unwrap_or_else(|| panic!("{programs}"));
    let is_doubtful = |program: &Value| {
        let path = program.as_str().or_else(|| program["path"].as_str()).unwrap_or_default();
        program["consent"] != true && !HARMLESS.contains(&path)
    };
    programs.iter().filter(|(_, program)| is_doubtful(program)).map(|(name, _)| name.clone()).collect()
}

fn look(path: &Path, found: &mut usize) {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        return entries.for_each(|path| look(&path, found));
    }
    // Pictures are no text.
    let Ok(text) = fs::read_to_string(path) else { return };
    for line in text.lines() {
        if let Some(programs) = programs(line) {
            *found += 1;
            assert_eq!(doubtful(&programs), [""; 0], "{}: {line}", path.display());
        }
    }
}

#[test]
fn programs_without_consent_read_no_file_that_an_argument_names() {
    let mut found = 0;
    SHIPPED.iter().for_each(|path| look(&root().join(path), &mut found));
    assert!(found >= 6, "{found} tables of programs");
}

#[test]
fn a_program_that_reads_files_is_found_however_it_is_written() {
    for line in [
        r#"      KAIRO_PROCESS_SUPERVISOR__PROGRAMS: '{"date": "/bin/date", "echo": "/bin/echo"}'"#,
        r#"  value: { name: KAIRO_PROCESS_SUPERVISOR__PROGRAMS, value: '{"date": {"path": "/bin/date"}}' }"#,
        r#"# programs = { date = "/bin/date" }"#,
        r#"programs = { date = { path = "/bin/date", args = ["-u"], consent = false }, echo = "/bin/echo" }"#,
    ] {
        assert_eq!(doubtful(&programs(line).unwrap()), ["date"], "{line}");
    }
    let asked = r#"value: { name: KAIRO_PROCESS_SUPERVISOR__PROGRAMS, value: '{"date": {"path": "/bin/date", "consent": true}}' }"#;
    assert_eq!(doubtful(&programs(asked).unwrap()), [""; 0]);
    assert_eq!(programs("# Programs that process.run may start, by name; none by default."), None);
}
