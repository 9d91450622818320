//! `kairo example`: an example played from its beginning to its end, on a Kairo of its own.
//!
//! An example's files are part of this program ([`files`]), their dates counted from today ([`template`]). Its
//! conversation ([`conversation`]) is played over HTTP as any client would ([`player`]), and what comes of it is shown
//! ([`scene_printer`]) and compared with what should ([`expectation`]). Then commands are run that look into it ([`investigation`]).

pub mod conversation;
pub mod expectation;
pub mod files;
pub mod investigation;
pub mod player;
pub mod scene_chains;
mod scene_printer;
pub mod search_stub;
mod stage;
pub mod template;

use std::{
    collections::BTreeMap,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
};

use jiff::Timestamp;
use kairo_core::ids::Name;
use kairo_proto::v1::ListAgentsResponse;
use serde_json::{Value, json};

use crate::{
    Error,
    agent_log::LogSource,
    client::Client,
    dev::{Signals, say},
    terminal,
};
use files::Example;
use investigation::{CommandResult, Investigator};
use player::{Player, SceneResult};
use stage::Stage;

/// The options of `kairo example`.
#[derive(Clone, Debug)]
pub struct ExampleOptions {
    pub name: String,
    /// True if the folder is kept, with everything the example left in it.
    pub keep: bool,
    /// True if everything is left running until the user ends it.
    pub stay: bool,
    /// The folder in which each agent's part of the log is kept.
    pub save: Option<PathBuf>,
    /// True if the model that the environment names answers, in place of the example's scenario.
    pub model: bool,
    pub json: bool,
    pub environment: BTreeMap<String, String>,
}

/// Plays an example. Exits 1 if something came otherwise than expected. No process is left behind.
pub async fn run(options: ExampleOptions) -> Result<ExitCode, Error> {
    let example = Example::open(&options.name, &template::morning(Timestamp::now()))?;
    let mut signals = Signals::listen().map_err(Error::file("listen to", "signals"))?;
    let mut stage = Stage::new(&example, &options)?;
    let outcome = tokio::select! {
        outcome = stage.perform(&example, &options) => outcome,
        () = signals.next() => Err(Error::Advice("it was ended before it was over".to_owned())),
    };
    if options.stay && outcome.is_ok() {
        stage.stay(&mut signals).await;
    }
    let stopped = stage.strike(options.keep, &mut signals).await;
    let status = outcome?;
    stopped?;
    Ok(status)
}

/// Plays it on a Kairo that runs.
async fn play_and_report(
    example: &Example,
    client: &Client,
    stage: &Stage,
    options: &ExampleOptions,
) -> Result<ExitCode, Error> {
    let mut player = Player::begin(client, example, stage.agent_folder()).await?;
    let tell = |played: &SceneResult| match options.json {
        true => Ok(()),
        false => Ok(scene_printer::print_scene(example, played)?),
    };
    if !options.json {
        terminal::line(format!("\n{}: it is {}", example.conversation.title, example.now.strftime("%A, %H:%M in %Q")))?;
    }
    let played = player.play(tell).await?;
    let ran = investigate(example, client, stage, options).await?;
    if let Some(folder) = &options.save {
        save_logs(client, folder).await?;
    }
    let unmet = played.iter().map(|played| &played.unmet).chain(ran.iter().map(|ran| &ran.unmet));
    let met = unmet.into_iter().all(Vec::is_empty);
    let left = fetch_remains(client, example).await;
    let files = stage.files()?;
    if options.json {
        let scenes: Vec<Value> = played.iter().map(scene_json).collect();
        terminal::json(&json!({
            "example": example.name, "met": met, "scenes": scenes, "investigation": ran, "remains": left,
            "files": files.iter().map(|file| stage.workspaces_dir().join(file)).collect::<Vec<_>>(),
        }))?;
    } else {
        print_summary(&left, &files, example.zone())?;
        if !met {
            say("Not everything came as expected: see the lines with ✘.");
        }
    }
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the commands that look into what came of it, with this very program.
async fn investigate(
    example: &Example,
    client: &Client,
    stage: &Stage,
    options: &ExampleOptions,
) -> Result<Vec<CommandResult>, Error> {
    let steps = &example.conversation.investigate;
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let program = std::env::current_exe().map_err(Error::file("find", "kairo"))?;
    let folder = example.write_investigation(stage.folder())?;
    let url = client.url().to_owned();
    let key_file = stage.admin_key_file();
    let models = stage.model_settings();
    let investigator = Investigator { program, folder, url, key_file, models };
    let tell = |ran: &CommandResult| match options.json {
        true => Ok(()),
        false => Ok(scene_printer::print_command(ran)?),
    };
    investigator.run(steps, tell).await
}

/// Keeps the part of the log of each agent there is, in a file with its name.
async fn save_logs(client: &Client, folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::file("make", folder))?;
    let listed: ListAgentsResponse = client.get("v1/agents", &[]).await?;
    for agent in listed.agents {
        let Ok(name) = Name::parse(&agent.agent) else { continue };
        let file = folder.join(format!("{name}.log"));
        LogSource::Agents(client, &[name], Some(file)).read(|_| Ok(ControlFlow::Continue(()))).await?;
    }
    Ok(())
}

fn scene_json(played: &SceneResult) -> Value {
    let mut value = serde_json::to_value(played).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("chains".to_owned(), json!(scene_chains::chains(&played.events)));
    }
    value
}

/// The lists to ask for afterwards: the path, and the field of the answer.
const REMAINS: [(&str, &str); 3] = [("v1/threads", "threads"), ("v1/tasks", "tasks"), ("v1/memories", "memories")];

/// The threads, tasks and memories that exist by now.
async fn fetch_remains(client: &Client, example: &Example) -> BTreeMap<&'static str, Vec<Value>> {
    let mut left = BTreeMap::new();
    let query = [("agent", example.agent().to_owned())];
    for (path, list) in REMAINS {
        let answer: Result<Value, _> = client.get(path, &query).await;
        let found = match answer {
            Ok(answer) => answer.get(list).and_then(Value::as_array).cloned().unwrap_or_default(),
            Err(error) => {
                say(format!("{list}: {error}"));
                Vec::new()
            }
        };
        left.insert(list, found);
    }
    left
}

fn print_summary(left: &BTreeMap<&'static str, Vec<Value>>, files: &[PathBuf], zone: &str) -> std::io::Result<()> {
    let text = |value: &Value, names: &[&str]| {
        let found = names.iter().filter_map(|name| value.get(*name)).filter_map(Value::as_str);
        let found = found.filter(|text| !text.is_empty()).map(|text| scene_printer::local_time(text, zone));
        found.collect::<Vec<_>>().join("  ")
    };
    let named = [
        ("threads", "thread", &["title", "summary"][..]),
        ("tasks", "task", &["title", "status", "next_at", "trigger", "condition"][..]),
        ("memories", "memory", &["type", "day", "subject", "content"][..]),
    ];
    for (list, one, names) in named {
        let found = left.get(list).map(Vec::as_slice).unwrap_or_default();
        heading(found.len(), one, list)?;
        for item in found {
            let text = text(item, names).split_whitespace().collect::<Vec<_>>().join(" ");
            terminal::row(format!("  {}", crate::event_lines::printable(&text)))?;
        }
    }
    heading(files.len(), "file made", "files made")?;
    files.iter().try_for_each(|file| terminal::line(format!("  {}", file.display())))
}

/// Writes how many there are; nothing is said of what there is none of.
fn heading(count: usize, one: &str, several: &str) -> std::io::Result<()> {
    match count {
        0 => Ok(()),
        1 => terminal::line(format!("\n1 {one}")),
        count => terminal::line(format!("\n{count} {several}")),
    }
}
