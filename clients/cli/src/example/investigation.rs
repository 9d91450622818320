//! Commands run once a conversation is over: commands of this very program, one after the other, as a user would type
//! them.

use std::{io, path::PathBuf, process::Stdio, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver, process::Command, time::timeout};

use crate::Error;

/// The longest time a command may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest output that is taken, in bytes.
const LONGEST_OUTPUT: u64 = 64 * 1024;

/// A command, and what should come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvestigationStep {
    /// The purpose of the command.
    pub title: String,
    /// The arguments behind `kairo`.
    pub run: Vec<String>,
    /// The status that it should end with.
    #[serde(default)]
    pub status: i32,
    /// The texts that its output should contain, regardless of case.
    #[serde(default)]
    pub output: Vec<String>,
}

/// The result of a command.
#[derive(Clone, Debug, Serialize)]
pub struct CommandResult {
    pub title: String,
    /// As a user would type it.
    pub command: String,
    /// `None` if it did not end by itself.
    pub status: Option<i32>,
    /// The text of its standard output and its standard error, in the order in which it was written.
    pub output: String,
    /// The differences from what was expected.
    pub unmet: Vec<String>,
}

/// The environment in which commands are run.
#[derive(Clone, Debug)]
pub struct Investigator {
    /// The program that is called `kairo`.
    pub program: PathBuf,
    /// The folder that they are run in, so that files are named as a user would name them.
    pub folder: PathBuf,
    /// The gateway's address.
    pub url: String,
    /// The file with the administrator's key.
    pub key_file: PathBuf,
    /// The settings of the models, for commands that ask them by themselves.
    pub models: Vec<(String, String)>,
}

impl Investigator {
    /// Runs all of them and tells each when it is over. What one writes, the next may read.
    pub async fn run(
        &self,
        steps: &[InvestigationStep],
        mut tell: impl FnMut(&CommandResult) -> Result<(), Error>,
    ) -> Result<Vec<CommandResult>, Error> {
        let mut all = Vec::new();
        for step in steps {
            let ended = timeout(PATIENCE, self.run_step(step)).await;
            let (output, status) = ended.unwrap_or_else(|_| Ok((Vec::new(), None))).map_err(self.run_error())?;
            let output = String::from_utf8_lossy(&output).trim_end().to_owned();
            let ran = CommandResult {
                title: step.title.clone(),
                command: shell_command(&step.run),
                unmet: unmet(step, status, &output),
                status,
                output,
            };
            tell(&ran)?;
            all.push(ran);
        }
        Ok(all)
    }

    async fn run_step(&self, step: &InvestigationStep) -> io::Result<(Vec<u8>, Option<i32>)> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(&self.program);
        command.args(&step.run).current_dir(&self.folder);
        // Whatever the user's own commands are set to: these are about the example.
        command.env("KAIRO_URL", &self.url).env("KAIRO_KEY_FILE", &self.key_file).env_remove("KAIRO_API_KEY");
        command.envs(self.models.iter().cloned());
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).kill_on_drop(true);
        let mut child = command.spawn()?;
        // It has the ends that are written to; the output is over when the child's are closed.
        drop(command);
        let mut output = Vec::new();
        Receiver::from_owned_fd(reader.into())?.take(LONGEST_OUTPUT).read_to_end(&mut output).await?;
        Ok((output, child.wait().await?.code()))
    }

    fn run_error(&self) -> impl FnOnce(io::Error) -> Error {
        Error::file("run", self.program.as_path())
    }
}

/// Returns the differences, a line each.
fn unmet(step: &InvestigationStep, status: Option<i32>, output: &str) -> Vec<String> {
    let mut unmet = Vec::new();
    if status != Some(step.status) {
        let found = status.map_or_else(|| "that it did not end by itself".to_owned(), |status| status.to_string());
        unmet.push(format!("status: expected {}, found {found}", step.status));
    }
    unmet.extend(super::expectation::missing_texts("output", &step.output, output));
    unmet
}

/// A command as one types it into a shell.
fn shell_command(arguments: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@+".contains(c);
    let quoted = |argument: &String| match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.clone(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    std::iter::once("kairo".to_owned()).chain(arguments.iter().map(quoted)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(run: &[&str], status: i32, output: &[&str]) -> InvestigationStep {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        InvestigationStep { title: "A look".to_owned(), run: owned(run), status, output: owned(output) }
    }

    /// A shell in the place of `kairo`.
    async fn ran(steps: &[InvestigationStep]) -> Vec<CommandResult> {
        let folder = tempfile::tempdir().unwrap();
        let shell = Investigator {
            program: "/bin/sh".into(),
            folder: folder.path().to_owned(),
            url: "http://127.0.0.1:1".to_owned(),
            key_file: "/dev/null".into(),
            models: Vec::new(),
        };
        shell.run(steps, |_| Ok(())).await.unwrap()
    }

    #[tokio::test]
    async fn a_command_finds_the_gateway_and_what_the_one_before_wrote() {
        let told = ran(&[
            step(&["-c", "echo $KAIRO_URL > x; echo one; echo two >&2; echo three"], 0, &["ONE"]),
            step(&["-c", "cat x; exit 3"], 3, &["127.0.0.1:1"]),
        ])
        .await;
        assert_eq!((told[0].output.as_str(), told[0].status), ("one\ntwo\nthree", Some(0)), "as it was written");
        assert_eq!((told[1].output.as_str(), told[1].status), ("http://127.0.0.1:1", Some(3)));
        assert!(told.iter().all(|ran| ran.unmet.is_empty()), "{told:?}");
    }

    #[tokio::test]
    async fn every_difference_is_named() {
        let told =
            ran(&[step(&["-c", "echo 7 the same; exit 1"], 0, &["the same", "8"]), step(&["-c", "kill $$"], 0, &[])])
                .await;
        assert_eq!(told[0].unmet, ["status: expected 0, found 1", "output: expected to find \"8\" in \"7 the same\""]);
        assert_eq!(told[1].unmet, ["status: expected 0, found that it did not end by itself"]);
    }

    #[tokio::test]
    async fn a_command_that_says_too_much_is_cut_off() {
        let told =
            ran(&[step(&["-c", "while echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; do :; done; exit 1"], 0, &[])]).await;
        assert_eq!(told[0].output.len() as u64, LONGEST_OUTPUT - 1, "without the last line end");
        assert_eq!(told[0].unmet.len(), 1);
    }

    #[test]
    fn a_command_is_shown_as_it_can_be_typed() {
        let arguments = ["state", "booker", "--first", "size(in_flight) > 1", "it's", ""].map(str::to_owned);
        assert_eq!(shell_command(&arguments), r"kairo state booker --first 'size(in_flight) > 1' 'it'\''s' ''");
    }
}
