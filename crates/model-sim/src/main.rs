//! The `kairo-model-sim` command.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use kairo_model_sim::{Config, DEFAULT_SCENARIO, Delay, Misbehaviour, Scenario, bind, presets};
use tokio::signal::unix::{SignalKind, signal};

/// The exit status for wrong usage or configuration, `EX_USAGE` of sysexits.h.
const USAGE: u8 = 64;

/// A simulated language model behind an OpenAI-compatible HTTP API, driven by a scenario file.
#[derive(Parser)]
#[command(version)]
struct SimulatorArgs {
    /// Address to listen on; port 0 takes any free one
    #[arg(long, env = "KAIRO_SIM_LISTEN", default_value = "127.0.0.1:8089", value_name = "ADDR")]
    listen: SocketAddr,
    /// The scenario to play, instead of the one built in
    #[arg(long, env = "KAIRO_SIM_SCENARIO", value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Write the port listened on to this file, once it is listened on
    #[arg(long, value_name = "PATH")]
    port_file: Option<PathBuf>,
    /// Number of requests that GET /v1/requests can show
    #[arg(long, default_value_t = Config::KEEP_REQUESTS, value_name = "NUMBER")]
    keep_requests: usize,
    /// The largest request body accepted, in bytes
    #[arg(long, default_value_t = Config::MAX_BODY_BYTES, value_name = "BYTES")]
    max_body_bytes: usize,
    /// Milliseconds before each answer, beside what the scenario says: a number, or a range such as 0-5000 from which
    /// each is drawn
    #[arg(long, default_value_t = Delay::default(), value_name = "MS|LEAST-MOST")]
    delay: Delay,
    /// The share of answers that come in another form or fail, such as 0.2: what a client must survive by itself
    #[arg(long, default_value_t = Misbehaviour::default(), value_name = "SHARE")]
    misbehave: Misbehaviour,
    /// Play the presets of misbehaviour: a user message that holds #NAME chooses one
    #[arg(long, conflicts_with = "scenario")]
    presets: bool,
    /// Chooses among the delays of a range, and which answers misbehave
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    seed: u64,
    /// Write a line of JSON to this file for each request that ended; it grows as long as requests come
    #[arg(long, value_name = "PATH")]
    journal: Option<PathBuf>,
    /// Say the request's number in the answer: its model is then MODEL#NUMBER
    #[arg(long)]
    number_answers: bool,
    /// Check the scenario and exit: with 0 if it is right, else with 64
    #[arg(long)]
    check: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match SimulatorArgs::try_parse() {
        Ok(arguments) => arguments,
        Err(told) => {
            // Help and version are told in the same way as mistakes.
            let code = if told.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
            drop(told.print());
            return code;
        }
    };
    let scenario = match load_scenario(&arguments) {
        Ok(scenario) => scenario,
        Err(mistakes) => {
            eprintln!("kairo-model-sim: {mistakes}");
            return ExitCode::from(USAGE);
        }
    };
    if arguments.check {
        return ExitCode::SUCCESS;
    }
    match serve(arguments, scenario).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kairo-model-sim: {error}");
            ExitCode::FAILURE
        }
    }
}

fn load_scenario(arguments: &SimulatorArgs) -> Result<Scenario, String> {
    if arguments.presets {
        return Scenario::parse(&presets::scenario()).map_err(|mistakes| mistakes.to_string());
    }
    let Some(file) = arguments.scenario.as_deref() else {
        return Scenario::parse(DEFAULT_SCENARIO).map_err(|mistakes| mistakes.to_string());
    };
    let name = file.display();
    let yaml = std::fs::read_to_string(file).map_err(|error| format!("cannot read the scenario {name}: {error}"))?;
    Scenario::parse(&yaml).map_err(|mistakes| format!("{name}: {mistakes}"))
}

async fn serve(arguments: SimulatorArgs, scenario: Scenario) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listen = arguments.listen;
    let server = bind(Config {
        listen,
        scenario,
        keep_requests: arguments.keep_requests,
        max_body_bytes: arguments.max_body_bytes,
        delay: arguments.delay,
        misbehaviour: arguments.misbehave,
        seed: arguments.seed,
        journal: arguments.journal,
        number_answers: arguments.number_answers,
    })
    .await?;
    if let Some(file) = &arguments.port_file {
        write_port(file, server.address().port())?;
    }
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on http://{}", server.address())?;
    stdout.flush()?;
    server
        .run(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await
}

/// Writes beside the file and renames, so that whoever waits for it never reads half a number.
fn write_port(file: &Path, port: u16) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, format!("{port}\n"))
        .and_then(|()| std::fs::rename(&beside, file))
        .map_err(|error| io::Error::other(format!("cannot write the port to {}: {error}", file.display())))
}
