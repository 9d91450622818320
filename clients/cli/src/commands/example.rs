//! `kairo example`

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use kairo_core::config;

use crate::{
    Error,
    example::{self, files},
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo example                  which examples there are
  kairo example morning          play one: the conversation beside what the agent does
  kairo example research --keep  and keep what came of it, such as the presentation
  kairo example council --stay   and leave it running: the address of its console is shown
  kairo example team --save logs and keep the log of each of its agents, for kairo replay

Exit status: 0 if everything came as the example expects, else 1.";

/// Play one of the examples, on a Kairo of its own
///
/// Starts everything in a folder of its own, with mail, a calendar and contacts in it, lets a user of the example talk
/// to its agent, and stops and removes everything again (or, with `--stay`, not before Ctrl-C). The model simulator answers,
/// by the example's scenario.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExampleArgs {
    /// Name of the example; without a name all are listed
    name: Option<String>,
    /// List the examples
    #[arg(long)]
    list: bool,
    /// Keep the folder with everything that came of it
    #[arg(long)]
    keep: bool,
    /// Leave it running afterwards, with its console, until Ctrl-C
    #[arg(long, requires = "name")]
    stay: bool,
    /// Keep the part of the log of each agent in this folder, as NAME.log; `kairo replay` opens it
    #[arg(long, value_name = "FOLDER", requires = "name")]
    save: Option<PathBuf>,
    /// Let the model answer that OPENAI_API_KEY or KAIRO_MODEL_URL names, in place of the example's scenario
    #[arg(long)]
    model: bool,
}

pub(super) async fn run(arguments: ExampleArgs, json: bool) -> Result<ExitCode, Error> {
    let Some(name) = arguments.name.filter(|_| !arguments.list) else {
        return list_examples(json);
    };
    let environment = config::environment().collect();
    let ExampleArgs { keep, stay, save, model, .. } = arguments;
    let options = example::ExampleOptions { name, keep, stay, save, model, json, environment };
    example::run(options).await
}

fn list_examples(json: bool) -> Result<ExitCode, Error> {
    let examples = files::NAMES.map(|name| (name, files::readme_summary(name)));
    match json {
        true => {
            let examples = examples.map(|(name, about)| serde_json::json!({ "name": name, "about": about }));
            terminal::json(&serde_json::json!({ "examples": examples }))?;
        }
        false => examples.iter().try_for_each(|(name, about)| terminal::row(format!("{name:<12} {about}")))?,
    }
    Ok(ExitCode::SUCCESS)
}
