//! `kairo-bench`: how fast a turn is, beside the bare floor of the same messages without Kairo; and what decisions
//! [`cost`], whether one busy agent is [`fair`] to the others, how idle agents [`wake`], how soon those that are at work
//! [`acknowledge`], what it takes a [`team`] to work, how long users wait for submodules that [`think_along`], what it takes a
//! browser to show the [`console`], and how far it [`scale`]s.
//!
//! A turn is message → tool → reply. It runs through every service as a process of its own, on a private nats-server
//! and Postgres; only the model is the simulator, which answers at once. The [`floor`] is what no design could
//! avoid: six stored messages of the same sizes on the same server, each consumed and acknowledged. Both are measured
//! in turns of a few seconds each, so that whatever else the machine does hits both; medians are reported.

mod acknowledge;
mod agents;
mod arguments;
mod console;
mod cost;
mod counts;
mod cpu;
mod fair;
mod floor;
mod kairo;
mod load;
mod machine;
mod monitor;
mod probe;
mod profile;
mod projection;
mod replay;
mod report;
mod rounds;
mod scale;
mod sharing;
mod team;
mod think_along;
mod ticks;
mod wake;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Flushing, Other};
use report::Report;

/// Whatever goes wrong ends the benchmark; there is nobody to tell kinds of failures apart.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kairo-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Outcome<()> {
    match &arguments.other {
        Some(Other::Projection(wanted)) => return show(&projection::measure(wanted).await?, wanted.json),
        Some(Other::Cost(wanted)) => return show(&cost::measure(wanted).await?, wanted.json),
        Some(Other::Fair(wanted)) => return show(&fair::measure(wanted).await?, wanted.json),
        Some(Other::Replay(wanted)) => return show(&replay::measure(wanted).await?, wanted.json),
        Some(Other::Acknowledge(wanted)) => return show(&acknowledge::measure(wanted).await?, wanted.json),
        Some(Other::Team(wanted)) => return show(&team::measure(wanted).await?, wanted.json),
        Some(Other::ThinkAlong(wanted)) => return show(&think_along::measure(wanted).await?, wanted.json),
        Some(Other::Console(wanted)) => return show(&console::measure(wanted).await?, wanted.json),
        Some(Other::Scale(wanted)) => return show(&scale::measure(wanted).await?, wanted.json),
        Some(Other::Wake(wanted)) => return show(&wake::measure(wanted).await?, wanted.json),
        None => {}
    }
    let mut reports = Vec::new();
    for sync in Flushing::ALL {
        if arguments.sync.is_none_or(|only| only == sync) {
            let report = rounds::measure(sync, arguments).await?;
            if !arguments.json {
                print!("{report}");
            }
            reports.push(report);
        }
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty::<Vec<Report>>(&reports)?);
    }
    Ok(())
}

fn show<R: serde::Serialize + std::fmt::Display>(report: &R, json: bool) -> Outcome<()> {
    match json {
        true => println!("{}", serde_json::to_string_pretty(report)?),
        false => print!("{report}"),
    }
    Ok(())
}
