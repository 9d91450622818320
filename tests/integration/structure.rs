//! The promises of the layout: pure files and crates are pure, and files stay readable.

mod comments;
mod contract;
mod names;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

/// Decisions: synchronous functions of state and event.
const PURE: &[&str] = &[
    "proto/src/json.rs",
    "proto/src/body.rs",
    "crates/events/src",
    "crates/mind/src",
    "crates/backup/src/stream_archive.rs",
    "crates/backup/src/forget_orders.rs",
    "crates/backup/src/message_line.rs",
    "crates/backup/src/manifest.rs",
    "crates/backup/src/restore_plan.rs",
    "crates/backup/src/log_trim/survey.rs",
    "crates/core/src/bus/congestion/shares.rs",
    "crates/core/src/bus/data_keys/entries.rs",
    "crates/core/src/forget_order.rs",
    "crates/core/src/ownership/roster.rs",
    "crates/core/src/sharing.rs",
    "services/gateway/src/visibility.rs",
    "services/gateway/src/grpc/status.rs",
    "services/gateway/src/grpc/transcode.rs",
    "services/gateway/src/http/openai/completion.rs",
    "services/gateway/src/http/openai/streamed_answer.rs",
    "services/gateway/src/http/openai/identity.rs",
    "services/gateway/src/http/openai/questions.rs",
    "services/gateway/src/http/openai/request.rs",
    "services/gateway/src/http/openai/request/asides.rs",
    "services/gateway/src/http/openai/request/content.rs",
    "services/gateway/src/http/openai/request/history.rs",
    "services/gateway/src/http/openai/request/tools.rs",
    "services/gateway/src/http/openai/turn.rs",
    "services/gateway/src/tail_merge.rs",
    "services/router/src/inputs.rs",
    "services/router/src/outside_event.rs",
    "services/agent-runtime/src/effects/plan.rs",
    "services/agent-runtime/src/models/parts.rs",
    "services/agent-runtime/src/models/capabilities.rs",
    "crates/completion/src",
    "services/tool-runner/src/plan.rs",
    "services/tool-runner/src/arrivals/event.rs",
    "services/tool-runner/src/catalogue.rs",
    "services/tool-runner/src/approval_rules.rs",
    "services/tool-runner/src/imap/account.rs",
    "services/tool-runner/src/mcp/conversion.rs",
    "services/tool-runner/src/mcp/reader.rs",
    "services/tool-runner/src/mcp/reader",
    "services/tool-runner/src/mcp/transport/sse_parser.rs",
    "services/tool-runner/src/control/describe.rs",
    "services/tool-runner/src/builtin/calendar/entry.rs",
    "services/tool-runner/src/builtin/calendar/recurrence.rs",
    "services/tool-runner/src/builtin/calendar/free_time.rs",
    "services/tool-runner/src/builtin/calendar/ics.rs",
    "services/tool-runner/src/builtin/calendar/ics",
    "services/tool-runner/src/builtin/date_calc.rs",
    "services/tool-runner/src/builtin/document",
    "services/tool-runner/src/builtin/memory",
    "services/tool-runner/src/builtin/mail/bounds.rs",
    "services/tool-runner/src/builtin/mail/mail_draft.rs",
    "services/tool-runner/src/builtin/mail/message.rs",
    "services/tool-runner/src/builtin/mail/recipients.rs",
    "services/tool-runner/src/builtin/team/card.rs",
    "services/tool-runner/src/workers/message.rs",
    "services/tool-runner/src/workers/roster.rs",
    "services/tool-runner/src/web_api/openapi/document.rs",
    "services/tool-runner/src/web_api/openapi/schema.rs",
    "services/tool-runner/src/web_api/request.rs",
    "services/tool-runner/src/web_api/template.rs",
    "services/process-supervisor/src/output_account.rs",
    "services/process-supervisor/src/ring_buffer.rs",
    "services/process-supervisor/src/request_dedup.rs",
    "services/process-supervisor/src/action_plan.rs",
    "services/process-supervisor/src/policy.rs",
    "services/process-supervisor/src/progress.rs",
    "services/process-supervisor/src/tail.rs",
    "services/projector/src/partition_progress.rs",
    "services/projector/src/projections",
    "services/projector/src/rebalance.rs",
    "services/projector/src/transition.rs",
    "clients/cli/src/event_lines.rs",
    "clients/cli/src/example/conversation.rs",
    "clients/cli/src/example/expectation.rs",
    "clients/cli/src/example/scene_chains.rs",
    "clients/cli/src/durations.rs",
    "clients/cli/src/order.rs",
    "clients/cli/src/steps.rs",
    "clients/cli/src/watch/action.rs",
    "clients/cli/src/watch/in_flight.rs",
    "clients/cli/src/watch/happening.rs",
    "clients/cli/src/watch/output.rs",
    "clients/cli/src/watch/picture.rs",
    "clients/cli/src/watch/process.rs",
    "clients/cli/src/watch/report.rs",
    "crates/model-sim/src/matching.rs",
    "crates/read-model/src/queries/interaction/step_builder.rs",
    "crates/read-model/src/queries/interaction/steps.rs",
    "crates/read-model/src/queries/thread_messages/content.rs",
    "crates/read-model/src/search/document.rs",
    "crates/read-model/src/search/filter.rs",
    "crates/read-model/src/search/highlight.rs",
    "crates/read-model/src/search/words.rs",
    "services/projector/src/search/document_groups.rs",
];

/// Words that a pure file may not mention: IO, clocks, randomness, the environment, waiting.
const IMPURE: &[&str] = &[
    "tokio",
    "async_nats",
    "async_openai",
    "reqwest",
    "sqlx",
    "axum",
    "async fn",
    ".await",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "Instant",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "new_v4",
    "now_v7",
    "ids::generate",
    "kairo_core::bus",
];

/// Crates that are pure as a whole.
const PURE_CRATES: &[&str] = &["kairo-completion", "kairo-events", "kairo-mind", "kairo-replay"];

/// Crates that a pure crate may not depend on, at any depth: those that wait, listen, connect or store. A name also
/// covers the crates whose names continue it, such as `tokio-util`.
const IMPURE_CRATES: &[&str] = &[
    "kairo-core",
    "tokio",
    "async-nats",
    "async-std",
    "axum",
    "hyper",
    "mio",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "sqlx",
    "tonic",
    "ureq",
];

/// Sources that also run in the simulation: they reach the world only through the port of the bus.
const SIMULATED: &[&str] = &[
    "crates/events/src",
    "crates/mind/src",
    "crates/core/src/bus",
    "crates/core/src/ownership",
    "crates/core/src/keyed_locks.rs",
    "crates/core/src/watch.rs",
    "services/agent-runtime/src",
    "services/router/src",
    "services/tool-runner/src",
    "services/process-supervisor/src",
];

/// The exceptions within [`SIMULATED`]: the port's real side, the one place that spawns, administration, and the code
/// that deals with files, programs and other servers.
const NOT_SIMULATED: &[&str] = &[
    "crates/core/src/bus/jetstream",
    "crates/core/src/bus/mod.rs",
    "crates/core/src/bus/objects.rs",
    "crates/core/src/bus/objects/retention.rs",
    "crates/core/src/bus/provision",
    "services/agent-runtime/src/models",
    "services/tool-runner/src/arrivals",
    "services/tool-runner/src/builtin/http_get.rs",
    "services/tool-runner/src/builtin/mail",
    "services/tool-runner/src/builtin/web_search",
    "services/tool-runner/src/builtin/workspace",
    "services/tool-runner/src/imap",
    "services/tool-runner/src/mcp",
    "services/process-supervisor/src/guard",
    "services/process-supervisor/src/launcher",
];

/// Words that a simulated file may not mention, since one seed must always give the same run.
const UNREPEATABLE: &[&str] = &[
    "async_nats::jetstream",
    "async_nats::Client",
    "tokio::spawn",
    "spawn_blocking",
    "Timestamp::now",
    "SystemTime",
    "time::{Duration, Instant}",
    "std::time::Instant",
    "ids::generate",
    "new_v4",
    "now_v7",
];

/// The folders of the crates that are delivered.
const PRODUCT: [&str; 3] = ["services", "crates", "clients/cli"];
/// Longest file, in lines, comments, tests and generated code aside.
const LONGEST: usize = 420;
/// Calls that tie a task to its replica.
const HOSTS: [&str; 2] = [".host_task(", ".host("];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The files of what is delivered: services, libraries and the command line.
fn product_files() -> Vec<PathBuf> {
    PRODUCT.iter().flat_map(|folder| rust_files(&root().join(folder))).collect()
}

fn rust_files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files
}

/// The code of a file: without comments, and without the tests at its end.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_generated(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "generated")
}

fn is_test(path: &Path) -> bool {
    let for_tests = |name: &OsStr| ["tests.rs", "testing.rs", "commuting.rs"].iter().any(|file| name == *file);
    path.components().any(|part| part.as_os_str() == "tests") || path.file_name().is_some_and(for_tests)
}

#[test]
fn pure_files_are_pure() {
    let mut found = Vec::new();
    for path in PURE.iter().flat_map(|path| rust_files(&root().join(path))).filter(|path| !is_test(path)) {
        let code = code(&path);
        found.extend(
            IMPURE.iter().filter(|word| code.contains(**word)).map(|word| format!("{}: {word}", path.display())),
        );
    }
    assert!(found.is_empty(), "{found:#?}");
}

fn cargo_tree(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tree = Command::new(cargo);
    tree.args(["tree", "--offline", "--locked"]).args(arguments);
    let output = tree.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the dependencies of every package in the workspace's tree, with the features of a workspace build and
/// without dev-dependencies.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let tree = cargo_tree(&["--workspace", "--edges", "normal", "--prefix", "depth", "--format", " {p}"]);
    let mut dependencies = BTreeMap::<String, BTreeSet<String>>::new();
    let mut above: Vec<String> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        // Depth, name, version; then where it is and whether it was listed before.
        let words: Vec<&str> = line.split_whitespace().take(3).collect();
        let package = words[1..].join(" ");
        above.truncate(words[0].parse().unwrap());
        if let Some(parent) = above.last() {
            dependencies.entry(parent.clone()).or_default().insert(package.clone());
        }
        above.push(package);
    }
    dependencies
}

/// Returns the chains of dependencies by which a crate reaches impure crates.
fn ways_to_impure(name: &str, dependencies: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let is = |package: &str, name: &str| package.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '-']));
    let start = dependencies.keys().find(|package| package.split(' ').next() == Some(name));
    let start = start.unwrap_or_else(|| panic!("no package {name}"));
    let (mut seen, mut found) = (BTreeSet::from([start]), Vec::new());
    let mut ways = VecDeque::from([vec![start]]);
    while let Some(way) = ways.pop_front() {
        for next in dependencies.get(way[way.len() - 1]).into_iter().flatten() {
            if !seen.insert(next) {
                continue;
            }
            let way: Vec<&String> = way.iter().copied().chain([next]).collect();
            if IMPURE_CRATES.iter().any(|name| is(next, name)) {
                found.push(way.iter().map(|package| package.as_str()).collect::<Vec<_>>().join(" > "));
            }
            ways.push_back(way);
        }
    }
    found
}

#[test]
fn pure_crates_are_pure_at_every_depth() {
    let dependencies = dependencies();
    let found: Vec<String> = PURE_CRATES.iter().flat_map(|name| ways_to_impure(name, &dependencies)).collect();
    assert!(found.is_empty(), "{found:#?}");
    // That it would be found if it were there.
    let ways = ways_to_impure("kairo-agent-runtime", &dependencies);
    for name in ["tokio", "async-nats", "reqwest", "hyper", "axum"] {
        assert!(ways.iter().any(|way| way.contains(&format!(" > {name} v"))), "{name}: {ways:#?}");
    }
}

/// A decision that is made again elsewhere must not find other time zones.
#[test]
fn time_zones_are_those_that_are_built_in() {
    let features = cargo_tree(&["--workspace", "--edges", "features", "--invert", "jiff"]);
    assert!(features.contains("jiff feature \"tzdb-bundle-always\""), "{features}");
    for feature in ["default", "tzdb-zoneinfo", "tzdb-concatenated", "tzdb-bundle-platform"] {
        assert!(!features.contains(&format!("jiff feature \"{feature}\"")), "{feature}");
    }
}

/// The state of an agent does not depend on how the conditions of hooks are evaluated.
#[test]
fn conditions_are_judged_when_deciding_only() {
    let mind = root().join("crates/mind/src");
    let judges = |path: &PathBuf| code(path).contains("conditions::");
    let mut found: Vec<PathBuf> = rust_files(&mind).into_iter().filter(|path| !is_test(path) && judges(path)).collect();
    found.retain(|path| !path.starts_with(mind.join("conditions")));
    found.sort();
    assert_eq!(found, [mind.join("deliberation/task_firing.rs"), mind.join("pending_decision.rs")]);
}

#[test]
fn simulated_files_reach_the_world_through_the_port() {
    let exempt: Vec<PathBuf> = NOT_SIMULATED.iter().map(|path| root().join(path)).collect();
    // A module's folder and its file.
    let is_exempt = |path: &Path| exempt.iter().any(|it| path.starts_with(it) || path.with_extension("") == *it);
    let files = SIMULATED.iter().flat_map(|path| rust_files(&root().join(path)));
    let mut found = Vec::new();
    for path in files.filter(|path| !is_test(path) && !is_exempt(path) && !exempt.contains(path)) {
        let code = code(&path);
        let words = UNREPEATABLE.iter().filter(|word| code.contains(**word));
        found.extend(words.map(|word| format!("{}: {word}", path.display())));
        // Without it, tokio draws who is asked first.
        let fair = code.split("select! {").skip(1).filter(|arms| !arms.trim_start().starts_with("biased;")).count();
        found.extend((fair > 0).then(|| format!("{}: {fair} select! without biased", path.display())));
        // What a killed or frozen replica must not go on with.
        let statements = code.split("tasks.spawn(").skip(1).filter_map(|spawned| spawned.split(';').next());
        let bare = statements.filter(|spawned| !HOSTS.iter().any(|host| spawned.contains(host))).count();
        found.extend((bare > 0).then(|| format!("{}: {bare} tasks without a host", path.display())));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A new column of a table takes one line in each statement that writes it.
#[test]
fn statements_that_write_rows_name_each_column_once() {
    let tables = root().join("services/projector/src/tables");
    let macros = tables.join("columns.rs");
    let mut found = Vec::new();
    for path in rust_files(&tables).into_iter().filter(|path| !is_test(path) && *path != macros) {
        let code = code(&path);
        let statements = code.matches("UNNEST").count();
        found.extend((statements > 0).then(|| (path.file_name().unwrap().to_owned(), statements)));
    }
    found.sort();
    // Approvals that are withdrawn by their chain, and firings that are counted, have shapes of their own.
    assert_eq!(found, [("consent.rs".into(), 1), ("tasks.rs".into(), 1)]);
}

#[test]
fn files_fit_in_a_readers_head() {
    let mut found = Vec::new();
    for path in product_files() {
        let lines = code(&path).lines().count();
        if lines > LONGEST && !is_test(&path) && !is_generated(&path) {
            found.push(format!("{}: {lines} lines", path.display()));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
