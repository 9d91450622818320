//! `kairo backup drill`: a backup is restored into a Kairo of its own, in which an agent replies.
//!
//! The backup may be of production: nothing of the environment that configures tools, mail or models is handed on, so
//! that what comes due in the restored log reaches nobody.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{Duration, Instant},
};

use kairo_backup::BackupLocation;
use kairo_core::config;
use kairo_local::free_port;
use kairo_proto::v1::GetStatusResponse;
use serde_json::json;
use tokio::{process::Command, time::sleep};

use crate::{
    Error,
    client::Client,
    dev::{DataFolder, Machine, MachinePlan, Model, ServerPrograms, Signals, first_turn, say, step},
    terminal,
    turn::Ending,
};

/// The agent that replies.
const AGENT: &str = "drill";
const MESSAGE: &str = "What time is it?";
/// The prefixes of variables that a backup with sealed content needs, and that name the paths of programs.
const HANDED_ON: [&str; 4] = ["KAIRO_PRIVACY__", "KAIRO_SIGNING__", "KAIRO_NATS_SERVER", "KAIRO_POSTGRES_BIN"];
/// The longest time the read model may take to follow the log; `PACE` is the pause between two looks.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(3_600);
const PACE: Duration = Duration::from_millis(200);
/// Lines of each log that are shown when it failed.
const LOG_LINES: usize = 5;

/// The result of the drill, with the times since its beginning.
struct DrillResult {
    is_proven: bool,
    has_replied: bool,
    to_first_reply: Duration,
    to_read_model: Duration,
    through: u64,
}

/// Plays the drill, and removes all that came of it.
pub async fn run(place: &BackupLocation, json: bool) -> Result<ExitCode, Error> {
    let mut signals = Signals::listen().map_err(Error::file("listen to", "signals"))?;
    let folder = tempfile::Builder::new().prefix("kairo-drill-").tempdir();
    let folder = folder.map_err(Error::file("make a folder in", std::env::temp_dir()))?;
    let data_folder = DataFolder::acquire(folder.path())?;
    let mut machine = Machine::new(&data_folder)?;
    let drilled = tokio::select! {
        drilled = restore_and_prove(&mut machine, &data_folder, place) => drilled,
        () = signals.next() => Err(Error::Advice("it was ended before it was over".to_owned())),
    };
    if drilled.is_err() {
        machine.show_logs(LOG_LINES);
    }
    let stopped = step("stopping", machine.stop(), |()| String::new()).await;
    drop(machine);
    let DrillResult { is_proven, has_replied, to_first_reply, to_read_model, through } = drilled?;
    stopped?;
    let [first_reply, read_model] = [to_first_reply, to_read_model].map(|time| time.as_secs_f64());
    if json {
        terminal::json(&json!({
            "place": place.to_string(), "through": through, "proven": is_proven, "replied": has_replied,
            "first_reply_s": first_reply, "read_model_s": read_model,
        }))?;
    } else {
        let log = if is_proven { "its log is proven" } else { "its log is NOT proven: see above" };
        let reply = if has_replied { "an agent replied" } else { "no agent replied" };
        terminal::line(format!(
            "{place}, the log up to {through}: {log}; {reply} {first_reply:.1} s after the beginning, and the read model was there \
             after {read_model:.1} s"
        ))?;
    }
    Ok(if is_proven && has_replied { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn restore_and_prove(
    machine: &mut Machine,
    data_folder: &DataFolder,
    place: &BackupLocation,
) -> Result<DrillResult, Error> {
    let here = std::env::current_dir().map_err(Error::file("look at", "."))?;
    let all: BTreeMap<String, String> = config::environment().collect();
    let servers = ServerPrograms::find(&all, &here)?;
    let environment = inherited_environment(&all);
    let began = Instant::now();
    let port = free_port(None)?;
    let model = Model::Simulator;
    let backup = Some(place.to_string());
    machine.start(&MachinePlan { data_folder, servers, model, port, environment, backup }).await?;
    let client = machine.client()?;
    let through = status(&client).await?.stream.map_or(0, |log| log.last_sequence);
    first_turn::ensure_agent(&client, AGENT).await?;
    let replied = step("first reply", first_turn::send_and_wait(&client, AGENT, MESSAGE), |_| String::new()).await?;
    let to_first_reply = began.elapsed();
    step("read model", wait_for_read_model(&client), |()| String::new()).await?;
    let to_read_model = began.elapsed();
    let is_proven = step("proof", prove(&client, data_folder), |_| String::new()).await?;
    let has_replied = matches!(replied.1, Some(Ending::Replied { .. }));
    Ok(DrillResult { is_proven, has_replied, to_first_reply, to_read_model, through })
}

/// Returns the variables of the environment that are handed on to the services.
fn inherited_environment(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_handed_on = |name: &str| HANDED_ON.iter().any(|prefix| name.starts_with(prefix)) || name == "PATH";
    all.iter().filter(|(name, _)| is_handed_on(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

async fn status(client: &Client) -> Result<GetStatusResponse, Error> {
    Ok(client.get("v1/status", &[]).await?)
}

/// Waits until the read model has followed the log to its end.
async fn wait_for_read_model(client: &Client) -> Result<(), Error> {
    let deadline = Instant::now() + FOLLOWED_WITHIN;
    while Instant::now() < deadline {
        if status(client).await?.projection.is_some_and(|projection| projection.lag == 0) {
            return Ok(());
        }
        sleep(PACE).await;
    }
    Err(Error::Advice(format!("the read model did not follow the log within {} s", FOLLOWED_WITHIN.as_secs())))
}

/// Holds the restored log to its digests, as `kairo verify --all` does, and shows what that says where it does not fit.
async fn prove(client: &Client, data_folder: &DataFolder) -> Result<bool, Error> {
    let program = std::env::current_exe().map_err(Error::file("find", "this program"))?;
    let mut command = Command::new(&program);
    command.args(["verify", "--all"]).env_remove("KAIRO_API_KEY").kill_on_drop(true);
    command.env("KAIRO_URL", client.url()).env("KAIRO_KEY_FILE", data_folder.admin_key_file());
    let output = command.output().await.map_err(Error::file("run", &program))?;
    if !output.status.success() {
        say(String::from_utf8_lossy(&output.stdout));
        say(String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_reaches_others_is_handed_on() {
        let all = [
            "KAIRO_CONFIG",
            "KAIRO_MODEL_URL",
            "KAIRO_MODELS__HEAVY__BASE_URL",
            "KAIRO_NATS__URL",
            "KAIRO_NATS_SERVER",
            "KAIRO_PRIVACY__MASTER_KEY",
            "KAIRO_SIGNING__OLD_KEYS",
            "KAIRO_TOOL_RUNNER__MCP__FILES__COMMAND",
            "MEILI_URL",
            "OPENAI_API_KEY",
            "PATH",
        ];
        let all = all.into_iter().map(|name| (name.to_owned(), "x".to_owned())).collect();
        let handed_on: Vec<String> = inherited_environment(&all).into_keys().collect();
        assert_eq!(handed_on, ["KAIRO_NATS_SERVER", "KAIRO_PRIVACY__MASTER_KEY", "KAIRO_SIGNING__OLD_KEYS", "PATH"]);
    }
}
