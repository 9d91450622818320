//! `kairo provision`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use kairo_core::{
    bus::{
        BusConfig, BusError, NatsConfig,
        jetstream::JetStream,
        provision::{ConfigDrift, JetStreamResource, ProvisionChange},
    },
    config::{self, LoadedConfig, Mistake, ReadingConfig, Validate},
    ids::{self, Name},
    permissions::NatsIdentity,
    service::section,
    signing::{EntrySigner, SigningConfig},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{Error, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo provision            make what is missing, before services of a new version start
  kairo provision --check    only tell how what is there differs from what is wanted
  kairo provision --mend num_replicas   also change that where it differs, as after nats.replicas was changed
  kairo provision --mend all   also change everything that differs

Configured like services, by --config, KAIRO_CONFIG and KAIRO_NATS__…, KAIRO_BUS__…; the user is `provision` unless
nats.user names another. What is there already stays as it is, except that streams take, and consumers are delivered,
what this version adds, and except what --mend names. Some settings of a stream cannot be changed any more: then
nats-server says so, and that is told. What was decided on a server's own account, such as max_bytes of KAIRO_EVENTS, is
among what differs, so name what you mean.

Exit status: 0 if all is there (with --check: and nothing differs), 64 for a bad configuration, else 1.";

/// Every setting.
const ALL: &str = "all";
/// Between two times that the servers are asked.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// Make the streams, buckets and consumers that services need
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ProvisionArgs {
    /// The file that configures services
    #[arg(long, env = "KAIRO_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Change nothing, and tell how what is there differs
    #[arg(long)]
    check: bool,
    /// Change settings of streams that differ: these, by the names under which they are told, or `all`
    #[arg(long, value_name = "SETTING", value_delimiter = ',', conflicts_with = "check")]
    mend: Vec<String>,
    /// Longest time for the servers to answer
    #[arg(long, default_value = "60s", value_parser = super::duration, value_name = "TIME")]
    wait: Duration,
}

/// The sections of the services' configuration that reaching and making streams needs; the others are passed over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ProvisionSettings {
    config: ReadingConfig,
    nats: NatsConfig,
    bus: BusConfig,
    signing: SigningConfig,
}

impl Validate for ProvisionSettings {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        section(&mut mistakes, "config", &self.config);
        section(&mut mistakes, "nats", &self.nats);
        section(&mut mistakes, "bus", &self.bus);
        section(&mut mistakes, "signing", &self.signing);
        mistakes
    }
}

/// Access to the servers
#[derive(Debug, Args)]
pub(super) struct ServerOptions {
    /// The file that configures services
    #[arg(long, env = "KAIRO_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Longest wait for the servers and for others that must answer
    #[arg(long, default_value = "60s", value_parser = super::duration, value_name = "TIME")]
    pub wait: Duration,
}

/// The servers, as whoever may make streams.
pub(super) struct ServerAccess {
    pub nats: JetStream,
    /// `nats.replicas`
    pub replicas: usize,
    pub signatures: EntrySigner,
}

impl ServerOptions {
    /// Connects as configured, and waits until the servers answer; the status to end with where the configuration is wrong.
    pub async fn reach(self) -> Result<Result<ServerAccess, ExitCode>, Error> {
        let settings: ProvisionSettings = match load_settings(self.config.as_deref()) {
            Ok(settings) => settings,
            Err(status) => return Ok(Err(status)),
        };
        let nats = connect_nats(&settings).await?;
        retry_until(Instant::now() + self.wait, async || nats.check_stream_api().await).await?;
        let signatures = EntrySigner::new(&settings.signing);
        Ok(Ok(ServerAccess { nats, replicas: settings.nats.replicas, signatures }))
    }
}

/// Settings of services, from the file and the environment; keys that this build does not know are told. The status to end with where
/// they are wrong, which is told, too.
pub(super) fn load_settings<S>(file: Option<&Path>) -> Result<S, ExitCode>
where
    S: Serialize + DeserializeOwned + Default + Validate,
{
    let file = file.map(|file| ["--config".to_owned(), file.display().to_string()]);
    let loaded = config::load(file.into_iter().flatten(), config::environment());
    let LoadedConfig { config, passed_over } = loaded.map_err(|error| {
        terminal::complain(&error);
        ExitCode::from(config::EXIT_STATUS)
    })?;
    passed_over.iter().for_each(|unknown| terminal::complain(format!("passed over: {unknown}")));
    Ok(config)
}

pub(super) async fn run(arguments: ProvisionArgs, json: bool) -> Result<ExitCode, Error> {
    let settings: ProvisionSettings = match load_settings(arguments.config.as_deref()) {
        Ok(settings) => settings,
        Err(status) => return Ok(status),
    };
    let deadline = Instant::now() + arguments.wait;
    let nats = connect_nats(&settings).await?;
    let mut done = match arguments.check {
        true => Vec::new(),
        false => retry_until(deadline, async || nats.provision().await).await?,
    };
    if !arguments.mend.is_empty() {
        let named = if arguments.mend == [ALL] { &[][..] } else { &arguments.mend };
        done.extend(retry_until(deadline, async || nats.fix_settings(named).await).await?);
    }
    let drift = retry_until(deadline, async || nats.find_drift().await).await?;
    print_report(&done, &drift, json)?;
    Ok(if arguments.check && !drift.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn connect_nats(settings: &ProvisionSettings) -> Result<JetStream, Error> {
    let failed = |error: String| Error::Advice(format!("cannot connect to nats: {error}"));
    let name =
        Name::parse(&format!("provision-{}", ids::generate().simple())).map_err(|error| failed(error.to_string()))?;
    let connected = JetStream::connect(NatsIdentity::Provision, &name, &settings.nats, &settings.bus).await;
    connected.map_err(|error| failed(error.to_string()))
}

/// Asks until there is an answer: servers that have just started may need a moment.
async fn retry_until<T>(deadline: Instant, mut ask: impl AsyncFnMut() -> Result<T, BusError>) -> Result<T, Error> {
    let mut told = String::new();
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error @ BusError::Unavailable { .. }) if Instant::now() < deadline => {
                let why = error.to_string();
                // A server that is still starting, or has no room for a stream: whoever waits knows for what.
                if why != told {
                    terminal::complain(format!("waiting: {why}"));
                    told = why;
                }
                sleep(ASK_AGAIN).await;
            }
            Err(error @ BusError::Unavailable { .. }) => {
                return Err(Error::Advice(format!(
                    "{error}; look whether nats.url is reached, and whether nats.user may make streams"
                )));
            }
            Err(error) => return Err(Error::Advice(error.to_string())),
        }
    }
}

fn print_report(done: &[(JetStreamResource, ProvisionChange)], drift: &[ConfigDrift], json: bool) -> Result<(), Error> {
    if json {
        let done = done.iter().map(|(part, done)| json!({ "part": part.to_string(), "done": done_word(*done) }));
        let drift = drift.iter().map(|drift| json!({ "part": drift.part.to_string(), "problem": drift.problem }));
        terminal::json(&json!({ "done": done.collect::<Vec<_>>(), "drift": drift.collect::<Vec<_>>() }))?;
        return Ok(());
    }
    for (part, done) in done {
        terminal::line(format!("{} {part}", done_word(*done)))?;
    }
    for drift in drift {
        terminal::line(format!("differs: {drift}"))?;
    }
    if done.is_empty() && drift.is_empty() {
        terminal::line("everything is there")?;
    }
    Ok(())
}

fn done_word(done: ProvisionChange) -> &'static str {
    match done {
        ProvisionChange::Made => "made",
        ProvisionChange::Widened => "widened",
        ProvisionChange::Mended => "mended",
    }
}
