//! Agents' part of the log, from the gateway or from a file that was kept of it, message by message.

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use kairo_core::ids::Name;
use kairo_proto::v1::{GetAgentLogResponse, LogMessage};
use kairo_replay::incident::{self, Manifest, Verifying, Wrong};

use crate::{Error, client::Client};

/// Longest line of a file, in bytes: a message of the largest size with all its headers, in base64.
const LINE: u64 = 4 * 1024 * 1024;
/// Most agents that are read at once: of each, a page of its log is held.
const AGENTS: usize = 64;

/// Whether whoever reads has seen enough.
pub type Went = Result<ControlFlow<()>, Error>;

/// Where messages come from.
#[derive(Clone, Debug)]
pub enum Source<'s> {
    File(&'s Path),
    /// The gateway; what is read is kept in the file, if one is named.
    Agents(&'s Client, &'s [Name], Option<PathBuf>),
}

impl<'s> Source<'s> {
    /// The file, if one is named, else these agents' part of the gateway's log, which is kept in `save`.
    pub fn of(file: Option<&'s Path>, client: &'s Client, agents: &'s [Name], save: Option<PathBuf>) -> Self {
        file.map_or_else(|| Self::Agents(client, agents, save), Self::File)
    }

    /// The gateway that it is read from.
    pub fn gateway(&self) -> Option<&'s Client> {
        match self {
            Self::File(_) => None,
            Self::Agents(client, ..) => Some(client),
        }
    }

    /// Reads it until `take` has seen enough.
    ///
    /// # Errors
    /// Where it cannot be read or kept, and whatever `take` says.
    pub async fn read(&self, take: impl FnMut(&LogMessage) -> Went) -> Result<(), Error> {
        match self {
            Self::File(path) => of_file(path, take),
            Self::Agents(client, agents, save) => of_agents(client, agents, save.as_deref(), take).await,
        }
    }
}

/// The manifest of an incident file that is as it was exported; none for a file that is none.
///
/// # Errors
/// Where it cannot be read, or is not as it was exported, with the place.
pub fn manifest(path: &Path) -> Result<Option<Manifest>, Error> {
    let damaged = |wrong: Wrong| Error::Damaged(format!("{}, {wrong}", path.display()));
    let mut lines = Lines::open(path)?;
    let Some(first) = lines.next()?.filter(|line| incident::is_manifest(line)) else { return Ok(None) };
    let manifest = Manifest::read(first).map_err(damaged)?;
    let mut verifying = Verifying::new(&manifest);
    while let Some(line) = lines.next()? {
        verifying.take(line).map_err(damaged)?;
    }
    verifying.end().map_err(damaged)?;
    Ok(Some(manifest))
}

/// Reads a file that holds one message a line, or an incident file, until `take` has seen enough.
///
/// # Errors
/// Where it cannot be read, with the line that is no message, and whatever `take` says; before any of it, where an incident file
/// is not as it was exported.
pub fn of_file(path: &Path, mut take: impl FnMut(&LogMessage) -> Went) -> Result<(), Error> {
    let is_incident = manifest(path)?.is_some();
    let mut lines = Lines::open(path)?;
    if is_incident {
        lines.next()?;
    }
    while let Some(line) = lines.next()? {
        let message = serde_json::from_slice(line).map_err(|error| error.to_string());
        let message = message.map_err(|error| lines.misread(&error))?;
        if take(&message)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// A file that messages are kept in, as [`of_file`] reads them.
pub struct Saved<'p> {
    path: &'p Path,
    file: File,
}

impl<'p> Saved<'p> {
    /// # Errors
    /// Where the file cannot be made.
    pub fn create(path: &'p Path) -> Result<Self, Error> {
        Ok(Self { path, file: File::create(path).map_err(Error::file("write", path))? })
    }

    /// # Errors
    /// Where it cannot be written.
    pub fn write(&mut self, message: &LogMessage) -> Result<(), Error> {
        let line = serde_json::to_string(message).unwrap_or_default();
        writeln!(self.file, "{line}").map_err(Error::file("write", self.path))
    }
}

/// The lines of a file, one at a time, none longer than it may be.
struct Lines<'p> {
    path: &'p Path,
    file: BufReader<File>,
    number: usize,
    line: Vec<u8>,
}

impl<'p> Lines<'p> {
    fn open(path: &'p Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::unread(path))?;
        Ok(Self { path, file: BufReader::new(file), number: 0, line: Vec::new() })
    }

    fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        self.number += 1;
        self.line.clear();
        let read = (&mut self.file).take(LINE).read_until(b'\n', &mut self.line);
        let read = read.map_err(Error::unread(self.path))?;
        if read as u64 == LINE {
            return Err(self.misread(&format!("the line is longer than {LINE} bytes")));
        }
        Ok((read > 0).then_some(self.line.as_slice()))
    }

    fn misread(&self, why: &str) -> Error {
        let (path, number) = (self.path.display(), self.number);
        Error::Advice(format!("{path}, line {number}: expected a message as --save writes them, {why}"))
    }
}

/// Reads agents' part of the log from the gateway in the log's order, until `take` has seen enough. What is kept in `save` is
/// kept to the end, for the build that understands it.
async fn of_agents(
    client: &Client,
    agents: &[Name],
    save: Option<&Path>,
    mut take: impl FnMut(&LogMessage) -> Went,
) -> Result<(), Error> {
    if agents.len() > AGENTS {
        return Err(Error::Advice(format!("--agent: expected at most {AGENTS} agents, found {}", agents.len())));
    }
    let mut saved = save.map(Saved::create).transpose()?;
    let mut logs: Vec<Pages<'_>> = agents.iter().map(|agent| Pages::new(client, agent)).collect();
    let (mut last, mut is_enough) = (0, false);
    while let Some(message) = first(&mut logs).await? {
        // What several decisions rest on stands in the part of each agent.
        if message.sequence <= last {
            continue;
        }
        last = message.sequence;
        if let Some(saved) = &mut saved {
            saved.write(&message)?;
        }
        is_enough = is_enough || take(&message)?.is_break();
        if is_enough && saved.is_none() {
            break;
        }
    }
    Ok(())
}

/// The message that stands first of those that are next.
async fn first(logs: &mut [Pages<'_>]) -> Result<Option<LogMessage>, Error> {
    for log in &mut *logs {
        log.fill().await?;
    }
    let next = logs.iter_mut().filter(|log| !log.page.is_empty());
    let next = next.min_by_key(|log| log.page.front().map(|message| message.sequence));
    Ok(next.and_then(|log| log.page.pop_front()))
}

/// One agent's part, page by page.
struct Pages<'c> {
    client: &'c Client,
    agent: &'c Name,
    page: VecDeque<LogMessage>,
    /// Behind which message the next page begins; none behind the last one.
    after: Option<u64>,
}

impl<'c> Pages<'c> {
    fn new(client: &'c Client, agent: &'c Name) -> Self {
        Self { client, agent, page: VecDeque::new(), after: Some(0) }
    }

    async fn fill(&mut self) -> Result<(), Error> {
        while let Some(after) = self.after.filter(|_| self.page.is_empty()) {
            let query = [("after", after.to_string())];
            let path = format!("v1/agents/{}/log", self.agent);
            let page: GetAgentLogResponse = self.client.get(&path, &query).await?;
            (self.page, self.after) = (page.messages.into(), page.next_after);
        }
        Ok(())
    }
}
