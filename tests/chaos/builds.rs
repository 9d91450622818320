//! The builds of the services that a run is made with.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use kairo_local::StackOptions;
use tokio::process::Command;

use super::{Outcome, machine::ADMIN_KEY, plan};

/// The exit codes of `kairo incident run` if it made every decision again, even with another result: builds may decide
/// differently.
const MADE_AGAIN: [Option<i32>; 3] = [Some(0), Some(1), Some(2)];

/// One of two builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    Older,
    Newer,
}

/// The folders with the binaries of each; the same where there is only one.
#[derive(Clone, Debug)]
pub struct Builds {
    older: PathBuf,
    newer: PathBuf,
}

impl Builds {
    /// The build that this program is part of.
    pub fn this() -> Outcome<Self> {
        let this = StackOptions::bin_dir_of_this_build()?;
        Ok(Self { older: this.clone(), newer: this })
    }

    /// That, and an older one.
    pub fn with_older(older: PathBuf) -> Outcome<Self> {
        Ok(Self { older, ..Self::this()? })
    }

    pub fn folder(&self, build: Build) -> &Path {
        match build {
            Build::Older => &self.older,
            Build::Newer => &self.newer,
        }
    }

    /// Returns true if the older build refuses a log beyond what it reads: such builds have `kairo fleet hold`.
    pub async fn older_refuses(&self) -> Outcome<bool> {
        let mut asked = self.kairo(Build::Older);
        asked.args(["fleet", "hold", "--help"]).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(asked.status().await?.success())
    }

    /// Has each build write incident files of the log at this gateway, and the other make their decisions again;
    /// returns the mistakes.
    pub async fn exchange_incidents(&self, gateway: &str, folder: &Path) -> Outcome<Vec<String>> {
        let mut wrong = Vec::new();
        for (writes, reads) in [(Build::Older, Build::Newer), (Build::Newer, Build::Older)] {
            for agent in [plan::agent(1), plan::planner(0), plan::team(0)] {
                let file = folder.join(format!("{agent}-of-{writes:?}.kairo"));
                let mut export = self.kairo(writes);
                export.args(["--url", &format!("http://{gateway}"), "incident", "export", "--agent", &agent, "-o"]);
                let exported = export.arg(&file).output().await?;
                if !exported.status.success() {
                    let why = String::from_utf8_lossy(&exported.stderr).into_owned();
                    wrong.push(format!("{agent}: the {writes:?} build cannot export it: {why}"));
                    continue;
                }
                let made = self.kairo(reads).args(["incident", "run"]).arg(&file).output().await?;
                if !MADE_AGAIN.contains(&made.status.code()) {
                    let told = [made.stdout, made.stderr].map(|told| String::from_utf8_lossy(&told).into_owned());
                    wrong.push(format!("{agent}: the {reads:?} build cannot make it again: {}", told.concat()));
                }
            }
        }
        Ok(wrong)
    }

    fn kairo(&self, build: Build) -> Command {
        let mut command = Command::new(self.folder(build).join("kairo"));
        command.env("KAIRO_API_KEY", ADMIN_KEY).stdin(Stdio::null()).kill_on_drop(true);
        command
    }
}
