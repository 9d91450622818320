//! `kairo fork`

mod dialogue;
mod input;
mod screen;

use std::{
    collections::{BTreeSet, VecDeque},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use kairo_agent_runtime::Config;
use kairo_core::ids::Name;
use kairo_fork::{Fork, ForkSettings, PendingFate, mocks::Mocks};
use kairo_proto::v1::LogMessage;
use kairo_replay::cut::{Cut, CutError, ForkParts};

use self::{dialogue::ForkDialogue, input::ForkInput, screen::ForkScreen};
use super::{
    GatewaySession, duration, name,
    replay::changes::{read_text, read_trimmed_text},
    signed_duration,
};
use crate::{Error, agent_log::LogSource, asking, models::without_credentials};

const EXAMPLES: &str = "\
Examples:
  kairo fork default --at 120                        talk to the agent as it was behind message 120
  kairo fork default --at 120 --prompt new.md        and with another prompt
  kairo fork lead,ann,bob --at 120 --pending lost    a team; what was in flight is lost
  kairo fork booker --file slot.kairo --message again.txt --mocks tools.yaml
  kairo fork default --at 120 --budget 0.50          and spend no more than that on models
  kairo fork default --at 120 --export fork.log      and keep the log of the fork, for `kairo replay` and others

What a fork does reaches nobody: it lives in the memory of this command. Models are asked only what the log has no answer
to; with --budget no call is made that may cost more than what is left of it: it fails then, as one that the model refuses,
and what was spent is told at the end. A call of a tool is answered from --mocks, else with the result that the log has of the same call, else you are asked,
if you sit at a terminal, and else it fails as `locked`. Agents that are not in the fork answer what they answered before.

Lines are typed as in `kairo chat`. `:wait 1h` lets an hour pass, `:state` shows what the agent knows, `:export FILE`
keeps the log, `:help` lists all of it; Ctrl-D ends the fork. Where standard input is no terminal, its lines are taken
one after the other, whenever nothing is left to be done.

The status is 0 when it came to its end, and 1 when it did not, or the log cannot be followed; 64 if a file that is
named cannot be used.";

/// Talk to agents as they were at a place in their log, apart from it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ForkArgs {
    /// The agents, with commas between, the one that is spoken with first; without --file, their part of the log is read from
    /// the gateway, which takes an administrator's key
    #[arg(value_parser = name, value_delimiter = ',', required = true, value_name = "AGENT,…")]
    agents: Vec<Name>,
    /// Message of the log behind which they begin; without it, the end of the log
    #[arg(long, value_name = "SEQUENCE")]
    at: Option<u64>,
    /// Read the log from a file that `kairo replay --save` or `kairo incident export` wrote
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Say what stands in this file, once, and end when all that comes of it is done
    #[arg(long, value_name = "FILE")]
    message: Option<PathBuf>,
    /// User who talks; by default whoever spoke with the first agent last, or you
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// A file with the prompt that the agents are to have
    #[arg(long, value_name = "FILE")]
    prompt: Option<PathBuf>,
    /// Treatment of calls that were in flight
    #[arg(long, value_enum, default_value_t = PendingTreatment::Recorded, value_name = "WHAT")]
    pending: PendingTreatment,
    /// A YAML file with what tools answer: a list of `tool`, `result` or `error`, and the `arguments` it is for
    #[arg(long, value_name = "FILE")]
    mocks: Option<PathBuf>,
    /// Let this time pass when nothing is left to be done, before the end
    #[arg(long, value_parser = signed_duration, value_name = "TIME")]
    wait: Option<SignedDuration>,
    /// Keep the log of the fork in this file, what stood before it included
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Show every event
    #[arg(long)]
    events: bool,
    /// Longest time for all that follows from one message
    #[arg(long, default_value = "120s", value_parser = duration, value_name = "TIME")]
    timeout: Duration,
    #[command(flatten)]
    asking: asking::AskingOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PendingTreatment {
    /// It comes to what the log says of it later; what the log says nothing of is lost
    Recorded,
    /// Nobody knows what came of it
    Lost,
}

pub(super) async fn run(arguments: ForkArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let prompt = arguments.prompt.as_deref().map(read_trimmed_text).transpose()?;
    let mocks = arguments.mocks.as_deref().map(read_mocks).transpose()?.unwrap_or_default();
    let message = arguments.message.as_deref().map(read_trimmed_text).transpose()?;
    let (configured, has_models) = arguments.asking.models.load()?;
    let source = LogSource::file_or_agents(arguments.file.as_deref(), &session.client, &arguments.agents, None);
    let models = match has_models {
        true => {
            Some(Arc::new(asking::build_fork_asking(&configured, &arguments.asking, asking::open_media(&source)?)?))
        }
        false => None,
    };
    let parts = read_fork_parts(&arguments, &source).await?;
    let user = arguments.user.clone().or_else(|| parts.last_speaker(arguments.agents.first()?));
    // As in `kairo chat`, where nobody has yet.
    let user =
        user.or_else(|| Name::parse("you").ok()).ok_or_else(|| Error::Usage("--user: expected a name".to_owned()))?;
    let heavy = &configured.models.heavy;
    let model =
        has_models.then(|| format!("{} at {}", heavy.model, without_credentials(&heavy.base_url).unwrap_or_default()));
    let (typed, asked) = ForkInput::start(message, session.json);
    let settings = ForkSettings {
        pending: match arguments.pending {
            PendingTreatment::Recorded => PendingFate::Recorded,
            PendingTreatment::Lost => PendingFate::Lost,
        },
        mocks,
        asked,
        config: Config { agent_runtime: configured.agent_runtime, models: configured.models, ..Config::default() },
        models: models.clone().map(|models| models as _),
        prompt,
    };
    let screen = ForkScreen::new(session, arguments.events, arguments.agents.len() > 1);
    screen.show_opening(&parts, &user, model.as_deref())?;
    let fork = Fork::start(parts, settings).await.map_err(fork_error)?;
    let talk = ForkDialogue {
        fork,
        models,
        user,
        agents: arguments.agents.clone(),
        input: typed,
        screen,
        timeout: arguments.timeout,
        pending_questions: VecDeque::new(),
    };
    talk.run(arguments.wait, arguments.export.as_deref()).await
}

/// Reads the log up to the fork and returns the parts that the fork begins with.
async fn read_fork_parts(arguments: &ForkArgs, source: &LogSource<'_>) -> Result<ForkParts, Error> {
    let mut cut = Cut::new(arguments.at, arguments.agents.iter().cloned().collect::<BTreeSet<_>>());
    let take = |message: &LogMessage| {
        cut.apply(message).map_err(|broken| Error::Advice(broken.to_string()))?;
        Ok(ControlFlow::Continue(()))
    };
    source.read(take).await?;
    cut.into_parts().map_err(|error: CutError| Error::Advice(error.to_string()))
}

fn read_mocks(path: &Path) -> Result<Mocks, Error> {
    Mocks::parse(&read_text(path)?).map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
}

fn fork_error(error: kairo_fork::ForkError) -> Error {
    Error::Advice(error.to_string())
}
