//! Chaos: a load of conversations against a private Kairo, while everything it is made of is killed, frozen and
//! restarted; and a count, against a world outside, of what came of it.
//!
//! [`plan`] says what happens when, from a seed alone. [`load`] sends the messages, [`orders`] does what the world
//! outside does because of what agents decide, [`peers`] carry out calls of tools, [`faults`] strikes the [`machine`], the [`oracle`] counts effects. In the end everything is mended and given time to come to [`rest`]; the [`verdict`]
//! then goes by the log and the oracle only.

mod balancer;
pub mod builds;
mod calls;
mod faults;
mod journal;
mod load;
mod log;
mod machine;
mod oracle;
mod orders;
pub mod peers;
pub mod plan;
mod probe;
pub mod random;
pub mod report;
mod rest;
mod run;
mod scenario;
mod servers;
mod store;
mod tables;
mod verdict;
mod victim;

use std::path::Path;

use builds::Builds;
use plan::Settings;
use report::Report;
use run::Run;

/// Whatever keeps a run from coming to a verdict ends it; there is nobody to tell kinds of failures apart.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Starts a Kairo, lets the plan happen, and says what came of it. `tell` is told how far it is. What shows why is kept
/// unless all is well, and then, too, with `keep`.
pub async fn run(settings: &Settings, builds: &Builds, keep: bool, tell: impl Fn(&str)) -> Outcome<Report> {
    let folder = tempfile::Builder::new().prefix("kairo-chaos-").tempdir()?;
    match run_in(folder.path(), settings, builds, tell).await {
        Ok(report) if report.passed() && !keep => Ok(report),
        Ok(mut report) => {
            report.kept(folder.keep());
            Ok(report)
        }
        Err(error) => Err(format!("{error} (faults and logs are kept in {})", folder.keep().display()).into()),
    }
}

async fn run_in(folder: &Path, settings: &Settings, builds: &Builds, tell: impl Fn(&str)) -> Outcome<Report> {
    tell(&format!("starting a private Kairo in {}", folder.display()));
    let (mut run, machine) = Run::start(settings, builds, folder).await?;
    let hands = run.rage(machine, &tell).await?;
    tell("no more faults: everything runs, and is given time to finish");
    run.count(hands).await
}
