//! The documents say what the code says, and lead to what is there.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::CommandFactory;
use kairo_cli::commands::CliArgs;
use kairo_core::{
    carry_forward::{CarryForward, SUBJECTS},
    config::SECTIONS,
    subjects::{Emitter, Route, Store, TABLE},
};
use kairo_gateway::endpoints;
use kairo_local::{Service, StackOptions};
use serde_json::Value;
use tempfile::NamedTempFile;

/// Longest README, longest ARCHITECTURE, and longest invariant.
const README_LINES: usize = 120;
const ARCHITECTURE_LINES: usize = 250;
const INVARIANT_CHARS: usize = 120;

/// The pages for those who change the code: ARCHITECTURE.md leads to them, and README.md to all others.
const INTERNALS: &str = "docs/internals";

/// Tells of what was, and of what is no more.
const PAST: &str = "CHANGELOG.md";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn architecture() -> PathBuf {
    root().join("ARCHITECTURE.md")
}

/// A document, which has this path from the root.
struct Document {
    path: PathBuf,
    text: String,
}

/// All documents.
fn documents() -> Vec<Document> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !matches!(name.as_str(), "target" | "node_modules") {
                collect(&path, found);
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&root(), &mut found);
    found.sort();
    assert!(found.contains(&root().join("README.md")) && found.len() > 15, "{found:?}");
    let read = |path: PathBuf| Document {
        text: fs::read_to_string(&path).unwrap(),
        path: path.strip_prefix(root()).unwrap().to_owned(),
    };
    found.into_iter().map(read).collect()
}

/// Those that say what Kairo is like now; what model-sim is like, it says itself.
fn of_kairo() -> impl Iterator<Item = Document> {
    documents().into_iter().filter(|document| !document.is(PAST) && !document.path.starts_with("crates"))
}

impl Document {
    fn is(&self, path: &str) -> bool {
        self.path == Path::new(path)
    }

    /// Its blocks of code, each with the language it names.
    fn blocks(&self) -> Vec<(&str, &str)> {
        let mut parts = self.text.split("```");
        let mut blocks = Vec::new();
        parts.next();
        while let Some(block) = parts.next() {
            blocks.push(block.split_once('\n').unwrap());
            parts.next().unwrap_or_else(|| panic!("{}: a block of code does not end", self.path.display()));
        }
        blocks
    }

    /// Everything but its blocks of code.
    fn prose(&self) -> String {
        self.text.split("```").step_by(2).collect()
    }

    /// All that is written as code: commands of blocks, each on a line, and spans.
    fn code(&self) -> Vec<String> {
        let lines = self.blocks().into_iter().map(|(_, block)| block.replace("\\\n", " "));
        let mut code: Vec<String> =
            lines.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        let prose = self.prose();
        let spans: Vec<&str> = prose.split('`').collect();
        assert!(spans.len() % 2 == 1, "{}: a span of code does not end", self.path.display());
        code.extend(spans.into_iter().skip(1).step_by(2).map(|span| span.replace('\n', " ")));
        code
    }

    /// The anchors of its headings, as GitHub makes them.
    fn anchors(&self) -> Vec<String> {
        let prose = self.prose();
        let headings = prose
            .lines()
            .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        headings
            .map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"))
            .collect()
    }

    /// Returns the targets of its links, except those to other sites.
    fn links(&self) -> Vec<String> {
        let prose = self.prose();
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.filter(|target| !target.starts_with("http")).map(str::to_owned).collect()
    }
}

/// The words of a command, without quotes and without the comment behind it.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in command.chars() {
        match (c, quote) {
            ('#', None) if word.is_empty() => break,
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            (_, None) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Returns each call of a matching program with its arguments, up to the end of the command.
fn calls(words: &[String], is_program: impl Fn(&str) -> bool) -> Vec<(&str, &[String])> {
    let ends = |word: &String| matches!(word.as_str(), "|" | "&&" | ";" | "<<<" | ">");
    let mut calls = Vec::new();
    for (at, program) in words.iter().enumerate().filter(|(_, word)| is_program(word)) {
        let arguments = &words[at + 1..];
        let length = arguments.iter().position(ends).unwrap_or(arguments.len());
        // The namespace of kubectl.
        if at == 0 || words[at - 1] != "-n" {
            calls.push((program.as_str(), &arguments[..length]));
        }
    }
    calls
}

/// The longest runs of such characters.
fn runs(text: &str, is_in: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    text.split(move |c| !is_in(c)).filter(|run| !run.is_empty())
}

/// The table of subjects, in Markdown.
fn owner(row: &Route) -> &'static str {
    match row.noun {
        "user" => "<user>",
        "system" | "dlq" => "<service>",
        _ => "<agent>",
    }
}

/// Builds the table of the subjects that are carried forward before the log is trimmed.
fn carried() -> String {
    let mut text = String::from("| subject | carried | why |\n|---|---|---|\n");
    for (row, carrying, why) in &SUBJECTS {
        let what = match carrying {
            CarryForward::Last => "the last one",
            CarryForward::All => "all",
            CarryForward::Nothing => continue,
        };
        writeln!(text, "| `kairo.{}.{}.{}` | {what} | {why} |", row.noun, owner(row), row.verb).unwrap();
    }
    text
}

fn table() -> String {
    let mut text = String::from("| subject | emitted by | consumed by | says |\n|---|---|---|---|\n");
    for row in TABLE {
        let owner = owner(row);
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
fn tables_of_subjects_are_those_of_the_code() {
    for (path, mark, table) in
        [("docs/internals/log.md", "subjects", table()), ("docs/retention.md", "carried", carried())]
    {
        let path = root().join(path);
        let text = fs::read_to_string(&path).unwrap();
        let (start, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
        let (before, rest) = text.split_once(&start).expect("the table's beginning is marked");
        let (told, after) = rest.split_once(&end).expect("the table's end is marked");
        if std::env::var_os("KAIRO_REGENERATE").is_some() {
            fs::write(path, format!("{before}{start}{table}{end}{after}")).unwrap();
        } else {
            assert!(told == table, "run KAIRO_REGENERATE=1 cargo nextest run -p kairo-tests documents");
        }
    }
}

#[test]
fn every_link_leads_to_something_that_is_there() {
    let documents = documents();
    let mut missing = Vec::new();
    for document in &documents {
        let folder = document.path.parent().unwrap();
        for link in document.links() {
            let (file, anchor) =
                link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() { root().join(&document.path) } else { root().join(folder).join(file) };
            let Ok(target) = target.canonicalize() else {
                missing.push(format!("{}: {link}", document.path.display()));
                continue;
            };
            let Some(anchor) = anchor else { continue };
            let mut others =
                documents.iter().filter(|other| root().join(&other.path).canonicalize().unwrap() == target);
            if !others.any(|other| other.anchors().iter().any(|known| known == anchor)) {
                missing.push(format!("{}: {link}", document.path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    let links = |path: &str| documents.iter().find(|document| document.is(path)).unwrap().links().len();
    assert!(links("ARCHITECTURE.md") > 80 && links("README.md") > 10 && links("docs/security.md") > 5);
    assert!(links("docs/internals/decisions.md") > 60 && links("docs/internals/replay.md") > 20);
}

#[test]
fn the_readme_is_short_and_leads_to_every_page() {
    let documents = documents();
    let document = |path: &str| documents.iter().find(|document| document.is(path)).unwrap();
    let lines = document("README.md").text.lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines: move what not everybody needs to docs/");
    let lines = document("ARCHITECTURE.md").text.lines().count();
    assert!(lines <= ARCHITECTURE_LINES, "ARCHITECTURE.md has {lines} lines: move details to {INTERNALS}/");
    let [from_readme, from_architecture] = ["README.md", "ARCHITECTURE.md"].map(|path| document(path).links());
    let is_page = |document: &&Document| document.path.starts_with("docs") || document.path.components().count() == 1;
    let (mut users, mut internals) = (0, 0);
    for page in documents.iter().filter(is_page).filter(|page| !page.is("README.md")) {
        let path = page.path.to_str().unwrap();
        let (leader, links, count) = match page.path.starts_with(INTERNALS) {
            true => ("ARCHITECTURE.md", &from_architecture, &mut internals),
            false => ("README.md", &from_readme, &mut users),
        };
        assert!(links.iter().any(|link| link == path), "{leader} does not lead to {path}");
        *count += 1;
    }
    assert!(users > 15 && internals >= 9, "{users}, {internals}");
}

#[test]
fn every_page_begins_with_what_it_is_for() {
    let documents = documents();
    let pages: Vec<&Document> = documents.iter().filter(|document| document.path.starts_with("docs")).collect();
    assert!(pages.len() >= 6, "{}", pages.len());
    for page in pages {
        let mut lines = page.text.lines();
        let begins = [lines.next(), lines.next(), lines.next()].map(Option::unwrap_or_default);
        let is_told = begins[0].starts_with("# ") && begins[1].is_empty() && begins[2].starts_with("This page ");
        assert!(is_told, "{} begins with {begins:?}", page.path.display());
    }
}

#[test]
fn every_invariant_is_one_line() {
    let text = fs::read_to_string(architecture()).unwrap();
    let section = text.split("\n## Invariants\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let (stated, kept) = section.split_once("\nHow each is kept:\n").unwrap();
    let numbered = |line: &&str| line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    let invariants: Vec<&str> =
        stated.lines().skip_while(|line| !numbered(line)).filter(|line| !line.is_empty()).collect();
    assert!(invariants.len() >= 10, "{invariants:#?}");
    for (at, invariant) in invariants.iter().enumerate() {
        assert!(invariant.starts_with(&format!("{}. ", at + 1)), "{invariant:?} is no line of its own");
        assert!(invariant.chars().count() <= INVARIANT_CHARS, "{invariant:?} is too long");
    }
    assert_eq!(kept.lines().filter(numbered).count(), invariants.len());
}

/// Returns the configuration that a service prints, with this file if one is given, or its error.
fn config(service: Service, file: Option<&Path>) -> Result<Value, String> {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join(service.binary());
    let mut command = Command::new(&program);
    command.env_clear().arg("--print-config");
    if let Some(file) = file {
        command.arg("--config").arg(file);
    }
    let output = command.output().unwrap_or_else(|error| panic!("{}: {error}; build it first", program.display()));
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn services() -> impl Iterator<Item = Service> {
    Service::ALL.into_iter().filter(|service| *service != Service::ModelSim)
}

#[test]
fn every_setting_is_one_that_a_service_knows() {
    let configs: Vec<Value> = services().map(|service| config(service, None).unwrap()).collect();
    let is_known = |path: &str| configs.iter().any(|config| config.pointer(&format!("/{path}")).is_some());
    let (mut unknown, mut seen) = (Vec::new(), 0);
    for document in of_kairo() {
        for code in document.code() {
            for name in runs(&code, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '(')) {
                let name = name.trim_end_matches('.');
                let variable = name.strip_prefix("KAIRO_").filter(|name| name.contains("__"));
                let key = name.split_once('.').filter(|(section, key)| {
                    // What is called is a function.
                    let other =
                        key.contains('(') || [".rs", ".toml", ".yaml", ".conf"].iter().any(|end| name.ends_with(end));
                    SECTIONS.contains(section) && !key.is_empty() && !other
                });
                let path = match (variable, key) {
                    (Some(variable), _) => variable.to_lowercase().replace("__", "/"),
                    (None, Some(_)) => name.replace('.', "/"),
                    (None, None) => continue,
                };
                seen += 1;
                if !is_known(&path) {
                    unknown.push(format!("{}: {name}", document.path.display()));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(seen > 60, "{seen}");
}

#[test]
fn every_configuration_that_is_shown_is_taken() {
    let mut shown = 0;
    for document in of_kairo() {
        for (_, block) in document.blocks().into_iter().filter(|(language, _)| *language == "toml") {
            let file = NamedTempFile::new().unwrap();
            fs::write(file.path(), block).unwrap();
            for service in services() {
                let taken = config(service, Some(file.path()));
                assert!(taken.is_ok(), "{}:\n{block}\n{}", document.path.display(), taken.unwrap_err());
            }
            shown += 1;
        }
    }
    assert!(shown > 0);
}

/// Returns the first mistake in the arguments of `kairo`, values aside.
fn mistake(arguments: &[String]) -> Option<String> {
    let mut command = CliArgs::command();
    command.build();
    let mut command = &command;
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        if let Some(option) = word.strip_prefix("--") {
            let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            let Some(known) = command.get_arguments().find(|known| known.get_long() == Some(name)) else {
                return Some(format!("{} has no --{name}", command.get_name()));
            };
            let needs_value = known.get_num_args().is_none_or(|values| values.min_values() > 0);
            let takes_next = known.get_action().takes_values() && needs_value && value.is_none();
            if takes_next && arguments.next().is_none() {
                return Some(format!("--{name} lacks its value"));
            }
            continue;
        }
        let chosen: Vec<_> = word.split('|').map(|word| command.find_subcommand(word)).collect();
        match chosen.first() {
            Some(Some(first)) if chosen.iter().all(Option::is_some) => command = first,
            _ if command.get_positionals().next().is_some() => {}
            _ => return Some(format!("{} has no {word}", command.get_name())),
        }
    }
    None
}

#[test]
fn every_command_and_its_options_are_those_of_kairo() {
    let (mut mistakes, mut seen) = (Vec::new(), 0);
    for document in of_kairo() {
        for code in document.code() {
            for (_, arguments) in calls(&words(&code), |word| word == "kairo" || word.ends_with("/kairo")) {
                seen += 1;
                mistakes.extend(
                    mistake(arguments).map(|mistake| format!("{}: {code}: {mistake}", document.path.display())),
                );
            }
        }
    }
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    assert!(seen > 60, "{seen}");
    // That they would be found.
    for wrong in ["speak hello", "send --colour red", "tasks pause|fly ID", "agents define --agent"] {
        assert!(mistake(&words(wrong)).is_some(), "{wrong}");
    }
}

#[test]
fn every_script_and_its_options_are_there() {
    let (mut missing, mut seen) = (Vec::new(), 0);
    let script = |word: &str| word.strip_prefix("./").unwrap_or(word).starts_with("scripts/");
    for document in of_kairo() {
        for code in document.code() {
            for (program, arguments) in calls(&words(&code), script) {
                seen += 1;
                let text = fs::read_to_string(root().join(program)).unwrap_or_default();
                let options = arguments.iter().filter(|argument| argument.starts_with("--"));
                let known = |option: &&String| !text.contains(option.as_str());
                let unknown =
                    options.filter(known).map(String::as_str).chain(text.is_empty().then_some("no such script"));
                missing.extend(unknown.map(|what| format!("{}: {program}: {what}", document.path.display())));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(seen > 15, "{seen}");
}

#[test]
fn every_endpoint_is_one_of_the_gateway() {
    let fits = |template: &str, path: &str| {
        let [template, path] = [template, path].map(|path| path.split('/').collect::<Vec<_>>());
        let fits = |(one, other): (&&str, &&str)| one == other || one.starts_with('{');
        template.len() == path.len() && template.iter().zip(&path).all(fits)
    };
    let (mut unknown, mut seen) = (Vec::new(), 0);
    for document in of_kairo() {
        for code in document.code() {
            for (at, _) in code.match_indices("/v1/") {
                let path = runs(&code[at..], |c| c.is_ascii_alphanumeric() || "/{}-_".contains(c)).next().unwrap();
                let method = code[..at].trim_end().rsplit(' ').next().unwrap();
                let of_method = |known: &str| !matches!(method, "GET" | "POST" | "DELETE") || known == method;
                seen += 1;
                if !endpoints().any(|known| fits(known.path, path) && of_method(known.method)) {
                    unknown.push(format!("{}: {code}", document.path.display()));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(seen > 15, "{seen}");
}
