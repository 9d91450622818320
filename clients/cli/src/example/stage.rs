//! The stage of an example: a Kairo of its own in a folder of its own, gone afterwards.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use kairo_local::free_port;
use tempfile::TempDir;

use super::{ExampleOptions, files::Example, play_and_report, search_stub::SearchStub};
use crate::{
    Error,
    dev::{DataFolder, Machine, MachinePlan, Model, ServerPrograms, Signals, say, step},
    endpoint::PublishedUrl,
};

/// The variable that configures a web search; an example brings a stand-in if it is not set.
const WEB_SEARCH: &str = "KAIRO_TOOL_RUNNER__WEB_SEARCH__URL";
/// Lines of each log that are shown when it could not be played.
const LOG_LINES: usize = 5;

/// Everything that an example needs to run.
pub(super) struct Stage {
    folder: TempDir,
    data_folder: DataFolder,
    machine: Machine,
    /// The agent's own folder.
    desk: PathBuf,
    /// The files of all agents that were there before.
    furnished: BTreeSet<PathBuf>,
    /// The stand-in for a web search, as long as anything may be asked of it.
    search: Option<SearchStub>,
    /// The gateway's address, published for other commands.
    published: Option<PublishedUrl>,
}

impl Stage {
    pub(super) fn new(example: &Example, options: &ExampleOptions) -> Result<Self, Error> {
        let prefix = format!("kairo-example-{}-", example.name);
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir();
        let mut folder = folder.map_err(Error::file("make a folder in", std::env::temp_dir()))?;
        folder.disable_cleanup(options.keep);
        let data_folder = DataFolder::acquire(folder.path())?;
        let machine = Machine::new(&data_folder)?;
        fs::write(folder.path().join("scenario.yaml"), &example.scenario)
            .map_err(Error::file("write to", folder.path()))?;
        let desk = example.write_workspace(&data_folder.workspaces_dir())?;
        let furnished = agent_files(&data_folder)?;
        Ok(Self { folder, data_folder, machine, desk, furnished, search: None, published: None })
    }

    /// Starts everything and plays.
    pub(super) async fn perform(&mut self, example: &Example, options: &ExampleOptions) -> Result<ExitCode, Error> {
        let outcome = self.start_and_play(example, options).await;
        if outcome.is_err() {
            say("\nIt could not be played to its end. The ends of the logs:");
            self.machine.show_logs(LOG_LINES);
        }
        outcome
    }

    async fn start_and_play(&mut self, example: &Example, options: &ExampleOptions) -> Result<ExitCode, Error> {
        let here = std::env::current_dir().map_err(Error::file("look at", "."))?;
        let mut environment = options.environment.clone();
        self.search = match (&example.web, environment.contains_key(WEB_SEARCH)) {
            (Some(results), false) => Some(SearchStub::serve(results).await?),
            _ => None,
        };
        if let Some(search) = &self.search {
            say("Web searches are answered by a stand-in with this example's results; set");
            say(format!("{WEB_SEARCH} to a SearXNG of yours for real ones."));
            environment.insert(WEB_SEARCH.to_owned(), search.url());
        }
        let scenario = self.folder.path().join("scenario.yaml").display().to_string();
        environment.insert("KAIRO_SIM_SCENARIO".to_owned(), scenario);
        environment.insert("KAIRO_TOOL_RUNNER__TIME_ZONE".to_owned(), example.zone().to_owned());
        environment.extend(example.settings.clone());
        let model = if options.model { Model::choose(&environment) } else { Model::Simulator };
        if model == Model::Simulator {
            say("A MODEL SIMULATOR answers, by the example's scenario; it understands nothing.");
        }
        let servers = ServerPrograms::find(&environment, &here)?;
        // Any that is free: examples may be played at the same time.
        let port = free_port(None)?;
        let plan = MachinePlan { data_folder: &self.data_folder, servers, model, port, environment, backup: None };
        self.machine.start(&plan).await?;
        let url = self.machine.gateway_url();
        let published = PublishedUrl::new(&self.data_folder.data_dir, &url);
        self.published = Some(published.map_err(Error::file("write to", &self.data_folder.data_dir))?);
        let client = self.machine.client()?;
        play_and_report(example, &client, self, options).await
    }

    /// The folder that everything is in.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file with the administrator's key.
    pub(super) fn admin_key_file(&self) -> PathBuf {
        self.data_folder.admin_key_file()
    }

    /// The variables that configure its models.
    pub(super) fn model_settings(&self) -> Vec<(String, String)> {
        self.machine.model_settings().to_vec()
    }

    /// The agent's own folder.
    pub(super) fn agent_folder(&self) -> &Path {
        &self.desk
    }

    /// The files that agents made, beneath the folder of all agents. Mail that arrived is not theirs.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let now = agent_files(&self.data_folder)?;
        let made = now.difference(&self.furnished);
        let made = made.filter_map(|path| path.strip_prefix(self.data_folder.workspaces_dir()).ok());
        Ok(made
            .filter(|path| path.components().nth(1).is_none_or(|part| part.as_os_str() != "mail"))
            .map(Path::to_owned)
            .collect())
    }

    /// The folder of all agents, each of which has one of its own in it.
    pub(super) fn workspaces_dir(&self) -> PathBuf {
        self.data_folder.workspaces_dir()
    }

    /// Leaves everything running until the user ends it.
    pub(super) async fn stay(&self, signals: &mut Signals) {
        let url = self.machine.gateway_url();
        let to_it = format!("--url {url} --key-file {}", self.admin_key_file().display());
        say(format!(
            "\nIt goes on until Ctrl-C, and is removed then. From another terminal:\n\n  \
             kairo console {to_it}\n  kairo chat {to_it}"
        ));
        signals.next().await;
    }

    /// Stops everything and removes what came of it, unless it is to be kept.
    pub(super) async fn strike(mut self, keep: bool, signals: &mut Signals) -> Result<(), Error> {
        let stopped = tokio::select! {
            stopped = step("stopping", self.machine.stop(), |()| String::new()) => stopped,
            () = signals.wait_for_repeat() => Ok(()),
        };
        drop(self.machine);
        match keep {
            true => say(format!("everything is kept in {}", self.folder.path().display())),
            false => self.data_folder.wipe()?,
        }
        stopped
    }
}

/// All files of all agents.
fn agent_files(data_folder: &DataFolder) -> Result<BTreeSet<PathBuf>, Error> {
    let folder = data_folder.workspaces_dir();
    list_files(&folder).map_err(Error::file("look at", &folder))
}

/// All files below a folder.
fn list_files(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    let mut files = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => _ = files.insert(entry.path()),
            }
        }
    }
    Ok(files)
}
