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
use kairo_replay::whatif::{Change, Cone, Counts, Fate, Impossible, Reached, WhatIf};

use super::{Session, name, replay::show};
use crate::{Error, agent_log::Source, asking, event_lines::printable, secret_key, terminal};

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
pub(super) struct Arguments {
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
    asking: asking::Options,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let Arguments { agents, file, drop, edit, html, live, asking } = &arguments;
    let (at, change) = match (drop, edit) {
        (_, Some((at, path))) => (*at, Change::Edit(body(path)?)),
        (Some(at), None) => (*at, Change::Drop),
        (None, None) => return Err(Error::Usage("expected --drop or --edit".to_owned())),
    };
    let source = Source::of(file.as_deref(), &session.client, agents, None);
    let whatif = WhatIf::new(at, change, secret_key::find().ok());
    let cone = match live {
        true => asked(whatif, &source, asking).await?,
        false if asking.is_bounded() => {
            return Err(Error::Usage("--budget: expected --live: else no model is asked".to_owned()));
        }
        false => marked(whatif, &source).await?,
    };
    if let Some(path) = html {
        html::keep(path, &cone)?;
    }
    match session.json {
        true => terminal::json(&cone)?,
        false => lines(&cone).into_iter().try_for_each(terminal::line)?,
    }
    let Counts { decisions, kept, .. } = cone.counts;
    Ok(if decisions == kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the cone as far as it is known without asking models.
async fn marked(mut whatif: WhatIf, source: &Source<'_>) -> Result<Cone, Error> {
    let take = |message: &LogMessage| match whatif.take(message) {
        Ok(_) => Ok(ControlFlow::Continue(())),
        Err(why) => Err(refused(&why)),
    };
    source.read(take).await?;
    whatif.cone().map_err(|why| refused(&why))
}

/// Returns the cone, with models asked for the rest. The whole log is held in memory meanwhile.
async fn asked(whatif: WhatIf, source: &Source<'_>, options: &asking::Options) -> Result<Cone, Error> {
    let settings = asking::Settings::read(options, &[])?;
    let mut messages: Vec<LogMessage> = Vec::new();
    let keep = |message: &LogMessage| {
        messages.push(message.clone());
        Ok(ControlFlow::Continue(()))
    };
    source.read(keep).await?;
    let asker = asking::Asker::new(&settings, &asking::parts(source)?);
    live::cone(&whatif, &messages, &settings, &asker).await
}

fn refused(why: &Impossible) -> Error {
    match why {
        Impossible::Broken(_) => Error::Advice(why.to_string()),
        Impossible::NotThere(_)
        | Impossible::Decision { .. }
        | Impossible::Unreadable(_)
        | Impossible::Body { .. }
        | Impossible::Unchanged(_) => Error::Usage(why.to_string()),
    }
}

fn body(path: &Path) -> Result<Vec<u8>, Error> {
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

fn lines(cone: &Cone) -> Vec<String> {
    let Counts { decisions, kept, presumed, changed, unknown, vanished, asked } = cone.counts;
    let mut lines = tree(&cone.reached);
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
    lines.extend(cone.asked.as_ref().map(show::spent));
    lines
}

/// Each below what it hangs on.
fn tree(reached: &[Reached]) -> Vec<String> {
    let mut below: BTreeMap<Option<u64>, Vec<&Reached>> = BTreeMap::new();
    for it in reached {
        below.entry(it.because).or_default().push(it);
    }
    let mut lines = Vec::new();
    let mut left: Vec<(&Reached, usize)> = below.remove(&None).into_iter().flatten().map(|it| (it, 0)).collect();
    while let Some((it, depth)) = left.pop() {
        lines.push(format!("{}{}", "  ".repeat(depth.min(DEEPEST)), line(it)));
        // The last of them is taken first.
        let next = below.remove(&Some(it.sequence)).unwrap_or_default();
        left.extend(next.into_iter().rev().map(|next| (next, depth + 1)));
    }
    lines
}

fn line(reached: &Reached) -> String {
    let Reached { sequence, subject, reason, differences, lost, .. } = reached;
    let requests = requests(reached);
    let requests = (!requests.is_empty()).then(|| format!("another request: {}", requests.join("; ")));
    let place = differences.first().map(|it| format!("at {}: {}, then {}", it.at, it.recorded, it.made));
    let open =
        lost.iter().map(|call| format!("calls {} {}, which is not executed and stays open", call.tool, call.arguments));
    let why: Vec<String> = [reason.clone(), requests, place].into_iter().flatten().chain(open).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
    printable(&format!("{} {sequence}, {subject}: {}{why}", what(reached), fate(reached.fate)))
}

fn what(reached: &Reached) -> &'static str {
    if reached.type_name == AgentDecision::TYPE { "decision" } else { "message" }
}

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Dropped => "not there",
        Fate::Edited => "says something else",
        Fate::Vanished => "vanishes",
        Fate::Kept => "stays as it is",
        Fate::Changed => "is another",
        Fate::Unknown => "not known",
    }
}

fn requests(reached: &Reached) -> Vec<String> {
    reached.drifted.iter().map(show::request).collect()
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
    pub fn reached(sequence: u64, because: Option<u64>, fate: Fate) -> Reached {
        Reached {
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
        let places: Vec<String> = tree(&all).iter().map(|line| line.split(',').next().unwrap().to_owned()).collect();
        assert_eq!(places, ["decision 3", "  decision 4", "    decision 9", "  decision 7"]);
    }
}
