//! Makes mutants of the mind and of what models are told, has replay look for them, and says which it found.

use std::{
    fs,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use kairo_mutants::{
    Outcome,
    candidates::{self, About, Candidate},
    choosing,
    report::{self, Report},
    running::{self, Runner, Unmutated, Verdict},
    schemata, source,
};

/// Changes of what an agent decides and of what models are told, each of which replaying the logs of the examples should find
#[derive(Debug, Parser)]
struct Arguments {
    /// The folder with the logs, as `kairo example --save` keeps them
    #[arg(long, value_name = "FOLDER")]
    logs: PathBuf,
    /// Folder in which the mutants are built
    #[arg(long, value_name = "FOLDER")]
    build: PathBuf,
    /// Chooses the mutants
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mutants of the logic
    #[arg(long, default_value_t = 150)]
    logic: usize,
    /// Mutants of texts
    #[arg(long, default_value_t = 50)]
    prompts: usize,
    /// Try every one that is reached
    #[arg(long)]
    all: bool,
    /// Mutants tried at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Per cent of the logic's mutants that are to be found; of texts' all are.
const WANTED: f64 = 95.0;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::from(2)
        }
    }
}

fn progress(text: &str) {
    eprintln!("mutants: {text}");
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    let Arguments { logs, build, seed, all, jobs, json, .. } = arguments;
    let root = Path::new(".");
    let equivalent = report::equivalents(&fs::read_to_string("tests/mutants/equivalent.yaml")?)?;
    let sources = source::all(root)?;
    let candidates = candidates::all(&sources)?;
    progress(&format!("building {} candidates in {} files", candidates.len(), sources.len()));
    let program = schemata::build(root, build, &sources, &candidates)?;
    let runner = Runner { program, logs: running::logs(logs)? };
    let unmutated = runner.unmutated()?;
    let reached = reached(&candidates, &unmutated);
    let mut tried = Vec::new();
    let mut counts = Vec::new();
    for (about, most) in [(About::Logic, arguments.logic), (About::Prompt, arguments.prompts)] {
        let of_these: Vec<_> = reached.iter().copied().filter(|(_, candidate)| candidate.about == about).collect();
        counts.push(of_these.len());
        let order = choosing::in_order(&of_these, *seed);
        tried.extend(try_in_order(&runner, &unmutated, &order, if *all { order.len() } else { most }, *jobs)?);
    }
    let Unmutated { messages, decisions, .. } = unmutated;
    let mut report = Report {
        seed: *seed,
        logs: runner.logs.len(),
        messages,
        decisions,
        logic: report::Figures { reached: counts.first().copied().unwrap_or_default(), ..Default::default() },
        prompts: report::Figures { reached: counts.last().copied().unwrap_or_default(), ..Default::default() },
        outcomes: Default::default(),
        survivors: Vec::new(),
        stale: Vec::new(),
    };
    candidates.iter().for_each(|candidate| report.figures(candidate.about).candidates += 1);
    tried.sort_by_key(|(at, _)| *at);
    for (at, verdict) in tried {
        let Some(candidate) = candidates.get(at) else { continue };
        report.add(candidate, verdict, equivalent.get(&candidate.identity));
    }
    let is_there = |identity: &&String| candidates.iter().any(|candidate| candidate.identity == **identity);
    report.stale.extend(equivalent.keys().filter(|identity| !is_there(identity)).cloned());
    match json {
        true => println!("{}", serde_json::to_string_pretty(&report)?),
        false => print!("{report}"),
    }
    Ok(report.logic.percent() >= WANTED && report.prompts.percent() >= 100.0 && report.stale.is_empty())
}

/// Tries mutants in this order until so many had an effect. What has none in these logs cannot be found in them.
fn try_in_order(
    runner: &Runner,
    unmutated: &Unmutated,
    order: &[usize],
    most: usize,
    jobs: usize,
) -> Outcome<Vec<(usize, Verdict)>> {
    let mut tried: Vec<(usize, Verdict)> = Vec::new();
    loop {
        let had_effect = |(_, verdict): &&(usize, Verdict)| matches!(verdict, Verdict::Found(_) | Verdict::Missed(_));
        let wanted = most - tried.iter().filter(had_effect).count();
        let next: Vec<usize> = order.iter().skip(tried.len()).take(wanted).copied().collect();
        if next.is_empty() {
            return Ok(tried);
        }
        // They are counted from 1.
        let ids: Vec<usize> = next.iter().map(|at| at + 1).collect();
        let verdicts = runner.all(&ids, unmutated, jobs, |count| {
            if std::io::stderr().is_terminal() || count % 100 == 0 || count == ids.len() {
                progress(&format!("{count} of {} tried", ids.len()));
            }
        })?;
        tried.extend(next.into_iter().zip(verdicts));
    }
}

/// Those that the logs come to; a text counts where models are shown it.
fn reached<'c>(candidates: &'c [Candidate], unmutated: &Unmutated) -> Vec<(usize, &'c Candidate)> {
    let is_shown = |candidate: &Candidate| {
        // In the schema of a tool it is JSON.
        let quoted = serde_json::to_string(&candidate.piece).unwrap_or_default();
        let pieces = [candidate.piece.as_str(), quoted.trim_matches('"')];
        unmutated.shown.iter().any(|text| pieces.iter().any(|piece| text.contains(piece)))
    };
    let number = |id: &usize| Some((*id - 1, candidates.get(id.checked_sub(1)?)?));
    let reached = unmutated.reached.iter().filter_map(number);
    reached.filter(|(_, candidate)| candidate.about == About::Logic || is_shown(candidate)).collect()
}
