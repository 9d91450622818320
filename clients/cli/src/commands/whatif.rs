//! `kairo whatif`

mod html;
mod live;

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use kairo_core::ids::Name;
use kairo_proto::v1::{AgentDecision, LogMessage};
use kairo_replay::whatif::{Cone, ConeCounts, Fate, MessageChange, ReachedMessage, WhatIf, WhatIfError};

use super::{GatewaySession, name, replay::decision_lines};
use crate::{Error, agent_log::LogSource, asking, event_lines::printable, secret_key, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo whatif default.log --drop 120               had message 120 not been there
  kairo whatif default.log --edit 120=other.json    had it said something else
  kairo whatif default.log --drop 120 --html x.html as a page, with the cone as a graph
  kairo whatif default.log --drop 120 --live --budget 0.50
                                                    models are asked for what would not be known
  kairo whatif --agent default --drop 120           from the gateway, which takes an administrator's key

The file for --edit has the new body as JSON, as `kairo events --json` shows it. No model is asked without --live, and
nothing is written: a decision whose requests stay as they were keeps its answers. Of one that would be
asked something else nobody knows what it would be, nor what follows from that; what stays as it is behind
such a one does so unless something new shows in it. What is shown is all that the change reaches, each
below what it follows from; what is reached by what a model would be asked hangs on the change itself.
What people said later is taken as it was.

With --live, the models of the services' configuration (--config or KAIRO_CONFIG, and
KAIRO_MODELS__… variables) are asked for such a decision, which is then known, and the cone goes on
from there. Of a call that it makes as it was made, the recorded result is taken; any other is not
executed and stays open. No call is made that may cost more than what is left of --budget: what is
not asked is not known. Ctrl-C ends it and shows what is there.

The status is 0 if no decision is reached, 1 if some are, and 64 if there is no such change.";
/// Largest body, in bytes: what the server takes by default.
const LARGEST: u64 = 1024 * 1024;
/// Deepest level that is still set further to the right.
const DEEPEST: usize = 16;

/// Show which decisions would be others, had a message not been there or said something else
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = clap::ArgGroup::new("change").required(true))]
pub(super) struct WhatifArgs {
    /// The agents, with commas between, without a file
    #[arg(
        long = "agent",
        value_parser = name,
        value_delimiter = ',',
        value_name = "NAME,…",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    agents: Vec<Name>,
    /// A file that `kairo replay --save` or `kairo incident export` wrote
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Leave this message out
    #[arg(long, value_name = "SEQUENCE", group = "change")]
    drop: Option<u64>,
    /// Have this message say what the file says
    #[arg(long, value_parser = edit, value_name = "SEQUENCE=FILE", group = "change")]
    edit: Option<(u64, PathBuf)>,
    /// Keep it in this file as a page for a browser, with the cone as a graph
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Ask models for the decisions that would not be known
    #[arg(long, requires = "budget")]
    live: bool,
    #[command(flatten)]
    asking: asking::AskingOptions,
}

pub(super) async fn run(arguments: WhatifArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let WhatifArgs { agents, file, drop, edit, html, live, asking } = &arguments;
    let (at, change) = match (drop, edit) {
        (_, Some((at, path))) => (*at, MessageChange::Edit(read_body(path)?)),
        (Some(at), None) => (*at, MessageChange::Drop),
        (None, None) => return Err(Error::Usage("expected --drop or --edit".to_owned())),
    };
    let source = LogSource::file_or_agents(file.as_deref(), &session.client, agents, None);
    let whatif = WhatIf::new(at, change, secret_key::find().ok());
    let cone = match live {
        true => compute_cone_live(whatif, &source, asking).await?,
        false if asking.is_bounded() => {
            return Err(Error::Usage("--budget: expected --live: else no model is asked".to_owned()));
        }
        false => compute_cone(whatif, &source).await?,
    };
    if let Some(path) = html {
        html::write_cone(path, &cone)?;
    }
    match session.json {
        true => terminal::json(&cone)?,
        false => format_cone(&cone).into_iter().try_for_each(terminal::line)?,
    }
    let ConeCounts { decisions, kept, .. } = cone.counts;
    Ok(if decisions == kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the cone as far as it is known without asking models.
async fn compute_cone(mut whatif: WhatIf, source: &LogSource<'_>) -> Result<Cone, Error> {
    let take = |message: &LogMessage| match whatif.apply(message) {
        Ok(_) => Ok(ControlFlow::Continue(())),
        Err(why) => Err(whatif_error(&why)),
    };
    source.read(take).await?;
    whatif.into_cone().map_err(|why| whatif_error(&why))
}

/// Returns the cone, with models asked for the rest. The whole log is held in memory meanwhile.
async fn compute_cone_live(
    whatif: WhatIf,
    source: &LogSource<'_>,
    options: &asking::AskingOptions,
) -> Result<Cone, Error> {
    let settings = asking::AskingSettings::load(options, &[])?;
    let mut messages: Vec<LogMessage> = Vec::new();
    let keep = |message: &LogMessage| {
        messages.push(message.clone());
        Ok(ControlFlow::Continue(()))
    };
    source.read(keep).await?;
    let asker = asking::Asker::new(&settings, &asking::open_media(source)?);
    live::ask_models(&whatif, &messages, &settings, &asker).await
}

fn whatif_error(why: &WhatIfError) -> Error {
    match why {
        WhatIfError::Broken(_) => Error::Advice(why.to_string()),
        WhatIfError::NotThere(_)
        | WhatIfError::Decision { .. }
        | WhatIfError::Unreadable(_)
        | WhatIfError::Body { .. }
        | WhatIfError::Unchanged(_) => Error::Usage(why.to_string()),
    }
}

fn read_body(path: &Path) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut body));
    let wrong = |why: String| Error::Usage(format!("--edit: {}: {why}", path.display()));
    match read {
        Ok(size) if size as u64 > LARGEST => Err(wrong(format!("expected at most {LARGEST} bytes"))),
        Ok(_) => Ok(body),
        Err(error) => Err(wrong(format!("it cannot be read: {error}"))),
    }
}

/// For clap.
fn edit(text: &str) -> Result<(u64, PathBuf), String> {
    let read = text.split_once('=').and_then(|(at, path)| Some((at.trim().parse().ok()?, PathBuf::from(path))));
    let read = read.filter(|(_, path)| !path.as_os_str().is_empty());
    read.ok_or_else(|| "expected the sequence of a message, = and a file, such as 120=other.json".to_owned())
}

fn format_cone(cone: &Cone) -> Vec<String> {
    let ConeCounts { decisions, kept, presumed, changed, unknown, vanished, asked } = cone.counts;
    let mut lines = format_tree(&cone.reached);
    lines.push(format!("{decisions} decisions stand behind it"));
    let counted = [
        (kept, "stay as they are"),
        (presumed, "stay as they are, unless something new that is done before them shows in them"),
        (changed, "are others"),
        (unknown, "are not known"),
        (vanished, "vanish"),
        (asked, "of them are known since models were asked"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    lines.extend(counted.map(|(count, what)| format!("  {count} {what}")));
    lines.extend(cone.asked.as_ref().map(decision_lines::describe_spending));
    lines
}

/// Each below what it hangs on.
fn format_tree(reached: &[ReachedMessage]) -> Vec<String> {
    let mut below: BTreeMap<Option<u64>, Vec<&ReachedMessage>> = BTreeMap::new();
    for it in reached {
        below.entry(it.because).or_default().push(it);
    }
    let mut lines = Vec::new();
    let mut left: Vec<(&ReachedMessage, usize)> = below.remove(&None).into_iter().flatten().map(|it| (it, 0)).collect();
    while let Some((it, depth)) = left.pop() {
        lines.push(format!("{}{}", "  ".repeat(depth.min(DEEPEST)), format_reached(it)));
        // The last of them is taken first.
        let next = below.remove(&Some(it.sequence)).unwrap_or_default();
        left.extend(next.into_iter().rev().map(|next| (next, depth + 1)));
    }
    lines
}

fn format_reached(reached: &ReachedMessage) -> String {
    let ReachedMessage { sequence, subject, reason, differences, lost, .. } = reached;
    let requests = format_requests(reached);
    let requests = (!requests.is_empty()).then(|| format!("another request: {}", requests.join("; ")));
    let place = differences.first().map(|it| format!("at {}: {}, then {}", it.at, it.recorded, it.made));
    let open =
        lost.iter().map(|call| format!("calls {} {}, which is not executed and stays open", call.tool, call.arguments));
    let why: Vec<String> = [reason.clone(), requests, place].into_iter().flatten().chain(open).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
    printable(&format!("{} {sequence}, {subject}: {}{why}", reached_kind(reached), describe_fate(reached.fate)))
}

fn reached_kind(reached: &ReachedMessage) -> &'static str {
    if reached.type_name == AgentDecision::TYPE { "decision" } else { "message" }
}

fn describe_fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Dropped => "not there",
        Fate::Edited => "says something else",
        Fate::Vanished => "vanishes",
        Fate::Kept => "stays as it is",
        Fate::Changed => "is another",
        Fate::Unknown => "not known",
    }
}

fn format_requests(reached: &ReachedMessage) -> Vec<String> {
    reached.drifted.iter().map(decision_lines::format_request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_a_sequence_and_a_file() {
        assert_eq!(edit("120=a=b.json"), Ok((120, PathBuf::from("a=b.json"))));
        for wrong in ["120", "x=a.json", "120="] {
            assert!(edit(wrong).unwrap_err().contains("such as 120=other.json"), "{wrong}");
        }
    }

    /// A decision that the change reaches.
    pub fn reached(sequence: u64, because: Option<u64>, fate: Fate) -> ReachedMessage {
        ReachedMessage {
            sequence,
            subject: "kairo.agent.cook.decision".into(),
            type_name: AgentDecision::TYPE.into(),
            fate,
            because,
            reason: None,
            drifted: Vec::new(),
            differences: Vec::new(),
            made: None,
            asked: 0,
            lost: Vec::new(),
        }
    }

    #[test]
    fn the_cone_is_a_tree() {
        let all = [
            reached(3, None, Fate::Dropped),
            reached(4, Some(3), Fate::Vanished),
            reached(7, Some(3), Fate::Unknown),
            reached(9, Some(4), Fate::Vanished),
        ];
        let places: Vec<String> =
            format_tree(&all).iter().map(|line| line.split(',').next().unwrap().to_owned()).collect();
        assert_eq!(places, ["decision 3", "  decision 4", "    decision 9", "  decision 7"]);
    }
}
