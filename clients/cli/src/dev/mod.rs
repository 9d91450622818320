//! `kairo dev`: all of Kairo on one machine, from nothing to a first reply, until it is told to stop.
//!
//! The data folder is taken ([`data_folder`]), the servers and services started ([`machine`], with [`settings`] made from
//! the environment and the choice of a [`model`]) and kept running ([`supervisor`]), a first message sent
//! ([`play_first_turn`]), and what can be done next told ([`messages`]).

mod data_folder;
pub(crate) mod first_turn;
mod machine;
mod messages;
mod model;
mod progress;
mod restarts;
mod servers;
mod settings;
mod signals;
mod supervisor;
mod workers;

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use kairo_proto::v1::GetFleetResponse;
use serde_json::{Value, json};

use crate::{
    Error,
    browser::{console_url, open_console},
    client::Client,
    endpoint::PublishedUrl,
    exchange::Exchange,
    terminal,
    turn::Ending,
};
pub(crate) use data_folder::DataFolder;
pub(crate) use machine::{Machine, MachinePlan};
pub(crate) use model::Model;
pub(crate) use progress::{say, step};
pub(crate) use servers::ServerPrograms;
pub(crate) use signals::Signals;
use supervisor::Supervisor;

/// Lines of each log that are shown when no reply came.
const LOG_LINES: usize = 5;

/// The options of `kairo dev`.
#[derive(Clone, Debug)]
pub struct DevOptions {
    /// The data folder; the data is in its folder `dev`.
    pub data_dir: PathBuf,
    /// True if the data of earlier runs is removed first.
    pub fresh: bool,
    /// True if `kairo dev` stops after the first reply.
    pub once: bool,
    /// The first message.
    pub message: String,
    /// The gateway's port, if it is free.
    pub port: u16,
    /// True if the first reply is printed in JSON.
    pub json: bool,
    /// True if the console is shown in the browser.
    pub open: bool,
    /// Our environment variables.
    pub environment: BTreeMap<String, String>,
}

/// The settings of the endpoint that the environment names for models, if it names one.
pub fn endpoint_settings(environment: &BTreeMap<String, String>) -> Option<Vec<(String, String)>> {
    let model = Model::choose(environment);
    (model != Model::Simulator).then(|| model.settings(None))
}

/// Runs until Ctrl-C or SIGTERM, or with `once` until the first reply. No process is left behind.
pub async fn run(options: DevOptions) -> Result<ExitCode, Error> {
    let mut signals = Signals::listen().map_err(Error::file("listen to", "signals"))?;
    let data_folder = DataFolder::acquire(&options.data_dir)?;
    if options.fresh {
        data_folder.wipe()?;
    }
    let mut machine = Machine::new(&data_folder)?;
    let outcome = tokio::select! {
        outcome = run_machine(&mut machine, &data_folder, &options) => outcome,
        () = signals.next() => Ok(if options.once { ExitCode::FAILURE } else { ExitCode::SUCCESS }),
    };
    let stopped = tokio::select! {
        stopped = step("stopping", machine.stop(), |()| String::new()) => stopped,
        // Dropping the machine kills what is left.
        () = signals.wait_for_repeat() => Ok(()),
    };
    drop(machine);
    let status = outcome?;
    stopped?;
    Ok(status)
}

async fn run_machine(machine: &mut Machine, data_folder: &DataFolder, options: &DevOptions) -> Result<ExitCode, Error> {
    let environment = options.environment.clone();
    let here = std::env::current_dir().map_err(Error::file("look at", "."))?;
    let model = Model::choose(&environment);
    if data_folder.has_data() {
        say(format!("going on with the data in {}", data_folder.data_dir.display()));
    }
    let servers = ServerPrograms::find(&environment, &here)?;
    let plan = MachinePlan { data_folder, servers, model, port: options.port, environment, backup: None };
    machine.start(&plan).await?;
    let url = machine.gateway_url();
    let _published =
        PublishedUrl::new(&data_folder.data_dir, &url).map_err(Error::file("write to", &data_folder.data_dir))?;
    let client = machine.client()?;
    // The first thing to look at, while the rest is on its way.
    say(format!("\n  console  {}\n", console_url(&url)));
    if options.open {
        let url = url.clone();
        let key = client.key().cloned();
        tokio::spawn(async move {
            if let Err(error) = open_console(&url, key.as_ref()).await {
                say(error);
            }
        });
    }

    let mut supervisor = Supervisor::default();
    let first = tokio::select! {
        first = play_first_turn(&client, &options.message) => first,
        never = supervisor.watch(machine) => match never {},
    };
    let replied = report_first_turn(first, machine, &plan.model, options)?;
    if options.once {
        return Ok(if replied { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    say(messages::running_notice(machine, data_folder, &plan.model, &here));
    match supervisor.watch(machine).await {}
}

async fn play_first_turn(client: &Client, text: &str) -> Result<(Exchange, Option<Ending>), Error> {
    // All services are of this version.
    let GetFleetResponse { hold, .. } = client.get("v1/fleet", &[]).await?;
    match hold {
        Some(hold) => say(format!("the epoch stays as it is: {} holds it (kairo fleet release)", hold.by)),
        None => drop(client.post::<Value>("v1/fleet/promote", &json!({})).await?),
    }
    first_turn::ensure_agent(client, first_turn::AGENT).await?;
    step("first reply", first_turn::send_and_wait(client, first_turn::AGENT, text), |_| String::new()).await
}

/// Tells how the first turn went; whether the agent replied.
fn report_first_turn(
    first: Result<(Exchange, Option<Ending>), Error>,
    machine: &Machine,
    model: &Model,
    options: &DevOptions,
) -> Result<bool, Error> {
    let replied = matches!(&first, Ok((_, Some(Ending::Replied { .. }))));
    match first {
        Ok((exchange, ending)) if options.json => terminal::json(&json!({
            "url": machine.gateway_url(),
            "console_url": console_url(&machine.gateway_url()),
            "nats_url": machine.nats_url(),
            "simulator": *model == Model::Simulator,
            "ending": ending,
            "events": exchange.events,
        }))?,
        Ok((exchange, ending)) => messages::print_turn(&options.message, &exchange, ending.as_ref())?,
        Err(error) => say(format!("no reply: {error}")),
    }
    if !replied {
        say("\nThe first message got no proper reply. The ends of the logs:");
        machine.show_logs(LOG_LINES);
    }
    Ok(replied)
}
