//! `kairo-chaos`: whether Kairo keeps its promises while it is being killed. See [`kairo_tests::chaos`].

mod arguments;

use std::process::ExitCode;

use clap::Parser;
use kairo_tests::chaos::{self, Outcome, report::Report};

use arguments::Arguments;

/// The run itself could not be made.
const NO_VERDICT: u8 = 3;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // To the terminal only: standard output is for results.
    let tell = |text: &str| eprintln!("chaos: {text}");
    let report = match arguments.builds() {
        Ok(builds) => chaos::run(&arguments.settings(), &builds, arguments.keep, tell).await,
        Err(error) => Err(error),
    };
    match report.and_then(|report| show(&report, arguments.json).map(|()| report)) {
        Ok(report) if report.passed() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::from(NO_VERDICT)
        }
    }
}

fn show(report: &Report, json: bool) -> Outcome<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}
