//! The skeleton of a service: configuration, telemetry, connection, health, and an orderly end.

mod health;
mod status;
mod status_rows;
mod vitals;

use std::{future::Future, process::ExitCode};

use clap::Parser;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{runtime::Runtime, signal::unix::SignalKind, time::Instant};
use tokio_util::sync::CancellationToken;

pub use health::{HealthConfig, Readiness};
pub use mimalloc::MiMalloc;

use crate::{
    bus::{Bus, BusConfig, BusError, NatsConfig},
    config::{self, LoadedConfig, Mistake, Validate},
    ids::Name,
    metrics::Metrics,
    privacy::PrivacyConfig,
    process_protection,
    subjects::Service,
    telemetry::{self, TelemetryConfig},
};

/// The configuration sections of every service; [`crate::service_config!`] makes structs that have them.
pub trait ServiceConfig: Serialize + DeserializeOwned + Default + Validate + Clone + Send + 'static {
    fn nats(&self) -> &NatsConfig;
    fn bus(&self) -> &BusConfig;
    fn privacy(&self) -> &PrivacyConfig;
    fn telemetry(&self) -> &TelemetryConfig;
    fn health(&self) -> &HealthConfig;
}

/// Declares a service's configuration: the sections every service has, and its own.
#[macro_export]
macro_rules! service_config {
    ($(#[$doc:meta])* $name:ident { $($(#[$section_doc:meta])* $section:ident : $kind:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            /// Reading the configuration, such as the treatment of unknown keys.
            pub config: $crate::config::ReadingConfig,
            /// Connection to NATS, and the streams and buckets made there.
            pub nats: $crate::bus::NatsConfig,
            /// Limits of consuming and publishing.
            pub bus: $crate::bus::BusConfig,
            /// Sealing what users say and are told.
            pub privacy: $crate::privacy::PrivacyConfig,
            /// Logs and traces.
            pub telemetry: $crate::telemetry::TelemetryConfig,
            /// The endpoint of liveness, readiness and metrics.
            pub health: $crate::service::HealthConfig,
            $($(#[$section_doc])* pub $section: $kind),*
        }

        impl $crate::config::Validate for $name {
            fn mistakes(&self) -> Vec<$crate::config::Mistake> {
                let mut mistakes = Vec::new();
                $crate::service::section(&mut mistakes, "config", &self.config);
                $crate::service::section(&mut mistakes, "nats", &self.nats);
                $crate::service::section(&mut mistakes, "bus", &self.bus);
                $crate::service::section(&mut mistakes, "privacy", &self.privacy);
                $crate::service::section(&mut mistakes, "telemetry", &self.telemetry);
                $crate::service::section(&mut mistakes, "health", &self.health);
                $($crate::service::section(&mut mistakes, stringify!($section), &self.$section);)*
                mistakes
            }
        }

        impl $crate::service::ServiceConfig for $name {
            fn nats(&self) -> &$crate::bus::NatsConfig { &self.nats }
            fn bus(&self) -> &$crate::bus::BusConfig { &self.bus }
            fn privacy(&self) -> &$crate::privacy::PrivacyConfig { &self.privacy }
            fn telemetry(&self) -> &$crate::telemetry::TelemetryConfig { &self.telemetry }
            fn health(&self) -> &$crate::service::HealthConfig { &self.health }
        }
    };
}

/// Adds a section's mistakes under the section's name.
pub fn section(mistakes: &mut Vec<Mistake>, name: &str, section: &impl Validate) {
    mistakes.extend(section.mistakes().into_iter().map(|mut mistake| {
        mistake.key = format!("{name}.{}", mistake.key);
        mistake
    }));
}

/// The environment of a running service.
#[derive(Clone)]
pub struct ServiceContext {
    pub bus: Bus,
    /// Cancelled when the service shall stop.
    pub shutdown: CancellationToken,
    pub readiness: Readiness,
}

/// The errors that stop a service before its shutdown.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("{0}")]
    Other(String),
}

#[derive(Parser)]
#[command(version, about = "A service of Kairo, configured by file or environment; see docs/configuration.md.")]
struct ServiceArgs {
    /// TOML file with this service's sections; other services' sections are passed over.
    #[arg(long, env = "KAIRO_CONFIG", value_name = "FILE")]
    config: Option<String>,
    /// Print the configuration in force, secrets left out, and stop.
    #[arg(long)]
    print_config: bool,
}

/// Declares the program of a service: [`main`], and an allocator that suits many small messages on several threads
/// better than that of the C library. A macro, because the choice is the program's, not that of a library in it.
#[macro_export]
macro_rules! service_main {
    ($service:ident, $body:path) => {
        #[global_allocator]
        static ALLOCATOR: $crate::service::MiMalloc = $crate::service::MiMalloc;

        fn main() -> std::process::ExitCode {
            $crate::service::main($crate::subjects::Service::$service, $body)
        }
    };
}

/// The `main` of every service: runs `body` until SIGTERM or Ctrl-C.
///
/// Exits 0 after an orderly stop, 64 for a bad configuration, 1 when the service failed.
pub fn main<C, F>(service: Service, body: impl FnOnce(C, ServiceContext) -> F) -> ExitCode
where
    C: ServiceConfig,
    F: Future<Output = Result<(), ServiceError>>,
{
    if let Err(error) = process_protection::forbid_dumping() {
        eprintln!("kairo-{}: cannot close itself to other programs of its user: {error}", service.name());
        return ExitCode::FAILURE;
    }
    let arguments = match ServiceArgs::try_parse() {
        Ok(arguments) => arguments,
        Err(told) => {
            // Help and version are told in the same way as mistakes.
            let status = if told.use_stderr() { ExitCode::from(config::EXIT_STATUS) } else { ExitCode::SUCCESS };
            drop(told.print());
            return status;
        }
    };
    let file = arguments.config.map(|file| ["--config".to_owned(), file]);
    let loaded = config::load::<C>(file.into_iter().flatten(), config::environment());
    let LoadedConfig { config, passed_over } = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("kairo-{}: {error}", service.name());
            return ExitCode::from(config::EXIT_STATUS);
        }
    };
    if arguments.print_config {
        passed_over.iter().for_each(|unknown| eprintln!("kairo-{}: passed over: {unknown}", service.name()));
        println!("{}", serde_json::to_string_pretty(&config).unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    if config.telemetry().core_dumps
        && let Err(error) = process_protection::allow_dumping()
    {
        eprintln!("kairo-{}: there will be no core dumps: {error}", service.name());
    }
    let outcome = match Runtime::new() {
        Ok(runtime) => runtime.block_on(run_with_telemetry(service, config, &passed_over, body)),
        Err(error) => Err(ServiceError::Other(format!("cannot start threads: {error}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kairo-{}: {error}", service.name());
            ExitCode::FAILURE
        }
    }
}

async fn run_with_telemetry<C, F>(
    service: Service,
    config: C,
    passed_over: &[Mistake],
    body: impl FnOnce(C, ServiceContext) -> F,
) -> Result<(), ServiceError>
where
    C: ServiceConfig,
    F: Future<Output = Result<(), ServiceError>>,
{
    let telemetry =
        telemetry::init(service, config.telemetry()).map_err(|error| ServiceError::Other(error.to_string()))?;
    for unknown in passed_over {
        tracing::warn!(key = unknown.key, from = %unknown.origin, "passed over: this build does not know it");
    }
    let outcome = run_until_shutdown(service, config, telemetry.metrics(), body).await;
    if let Err(error) = telemetry.shutdown().await {
        eprintln!("kairo-{}: {error}", service.name());
    }
    outcome
}

async fn run_until_shutdown<C, F>(
    service: Service,
    config: C,
    metrics: Metrics,
    body: impl FnOnce(C, ServiceContext) -> F,
) -> Result<(), ServiceError>
where
    C: ServiceConfig,
    F: Future<Output = Result<(), ServiceError>>,
{
    let started = Instant::now();
    let shutdown = CancellationToken::new();
    tokio::spawn(stop_on_signal(shutdown.clone()));
    let readiness = Readiness::default();
    readiness.serve_probes(config.health(), metrics.clone(), shutdown.clone()).await?;
    let privacy = config.privacy().unwrap_keys_until(&shutdown, |reason| readiness.set_waiting_for(reason)).await;
    let Some(privacy) = privacy.map_err(|error| ServiceError::Other(error.to_string()))? else { return Ok(()) };
    let bus = Bus::connect(service, instance_name(service), config.nats(), config.bus()).await?.with_sealing(&privacy);
    let bus = bus.with_metrics(&metrics);
    readiness.watch_bus(&bus);
    vitals::observe(&bus, &readiness);
    bus.spawn(status::answer_pings(bus.clone(), readiness.clone(), started));
    let found = retry_until_nats(&bus, &shutdown, async || {
        let found = async {
            bus.find_log().await?;
            bus.check_epoch().await?;
            bus.check_master_key().await
        };
        let found = found.await;
        readiness.set_waiting_for(found.as_ref().err().map(ToString::to_string));
        found
    });
    if found.await?.is_none() {
        return Ok(());
    }
    let context = ServiceContext { bus: bus.clone(), shutdown: shutdown.clone(), readiness: readiness.clone() };
    let outcome = body(config, context).await;
    readiness.set_ready(false);
    bus.close().await;
    outcome
}

/// Does what a start needs of the server, trying until it answers; `None` when told to stop meanwhile.
pub async fn retry_until_nats<T>(
    bus: &Bus,
    shutdown: &CancellationToken,
    mut ask: impl AsyncFnMut() -> Result<T, BusError>,
) -> Result<Option<T>, BusError> {
    let mut attempt = 0;
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(Some(answer)),
            Err(error @ BusError::Unavailable { .. }) => error,
            Err(error) => return Err(error),
        };
        attempt += 1;
        tracing::info!(%error, attempt, "waiting for nats");
        let pause = tokio::time::sleep(crate::bus::consume::backoff_delay(&bus.limits, attempt));
        if shutdown.run_until_cancelled(pause).await.is_none() {
            return Ok(None);
        }
    }
}

/// A name no other replica has.
fn instance_name(service: Service) -> Name {
    let unique = crate::ids::generate().simple().to_string();
    let tail = unique.get(unique.len() - 12..).unwrap_or_default();
    Name::parse(&format!("{}-{tail}", service.name())).unwrap_or_else(|_| unreachable!("a service's name is a token"))
}

async fn stop_on_signal(shutdown: CancellationToken) {
    let terminate = async {
        match tokio::signal::unix::signal(SignalKind::terminate()) {
            Ok(mut signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminate => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    tracing::info!("stopping");
    shutdown.cancel();
}
