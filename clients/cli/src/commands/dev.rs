//! `kairo dev`

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use kairo_core::config;

use crate::{Error, dev, endpoint::DATA_DIR};

const EXAMPLES: &str = "\
Examples:
  kairo dev                    start everything, until Ctrl-C
  kairo dev --open             and show the console in the browser
  kairo dev --once --fresh     from nothing to the first reply and back, for trying an installation
  kairo dev --message 'Hi'     with another first message

Environment:
  OPENAI_API_KEY       let OpenAI's models answer instead of the model simulator
  KAIRO_MODEL_URL      any other OpenAI-compatible endpoint, up to and including /v1
  KAIRO_MODEL          the model's name there
  KAIRO_MODEL_FAST, KAIRO_MODEL_LIGHT
                       models there that compile plans into steps and complete steps;
                       without them the larger model does that, too
  KAIRO_SIM_SCENARIO   the scenario that the model simulator plays
  KAIRO_NATS_SERVER, KAIRO_POSTGRES_BIN
                       the nats-server, and the folder of Postgres's programs;
                       otherwise those that scripts/setup found or installed
  KAIRO_CONFIG, KAIRO_<SECTION>__<KEY>
                       configure the services; KAIRO_GATEWAY__ADMIN_KEY is the administrator's key, if it shall
                       not be made and kept in the data folder as admin-key

Exit status with --once: 0 if the agent replied, else 1.";

/// Run everything on this machine, and send a first message
///
/// Starts a private nats-server, a private Postgres, a model simulator and every service, each as a process of its own
/// and on 127.0.0.1 only. Ports that are taken are stepped over. The data stays for the next time.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DevArgs {
    /// Stop after the first reply
    #[arg(long)]
    once: bool,
    /// Begin anew, without the data of earlier runs
    #[arg(long)]
    fresh: bool,
    /// The first message
    #[arg(long, default_value = "What time is it?", value_name = "TEXT")]
    message: String,
    /// Folder of the data
    #[arg(long, default_value = DATA_DIR, value_name = "DIR")]
    data: PathBuf,
    /// The gateway's port, or the next free one
    #[arg(long, default_value_t = 7420, value_name = "PORT")]
    port: u16,
    /// Show the console in the browser
    #[arg(long)]
    open: bool,
}

pub(super) async fn run(arguments: DevArgs, json: bool) -> Result<ExitCode, Error> {
    let options = dev::DevOptions {
        data_dir: arguments.data,
        fresh: arguments.fresh,
        once: arguments.once,
        message: arguments.message,
        port: arguments.port,
        open: arguments.open,
        json,
        environment: config::environment().collect(),
    };
    dev::run(options).await
}
