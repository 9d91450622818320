//! Agents' part of the log, from the gateway or from a file that was kept of it, message by message.

mod archive;

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use kairo_backup::BackupError;
use kairo_core::ids::Name;
use kairo_proto::v1::{GetAgentLogResponse, GetLogResponse, LogMessage};
use kairo_replay::incident::{self, IncidentError, Manifest, VerifiedLine, Verifier, objects};

use crate::{Error, client::Client};

/// Longest line of a file, in bytes: a message of the largest size with all its headers, in base64.
const LINE: u64 = 4 * 1024 * 1024;
/// Most agents that are read at once: of each, a page of its log is held.
const AGENTS: usize = 64;

/// The decision of a message callback: read on or stop.
pub type ReadFlow = Result<ControlFlow<()>, Error>;

/// The source of log messages.
#[derive(Clone, Debug)]
pub enum LogSource<'s> {
    /// A file, or the folder of a backup.
    File(&'s Path),
    /// The gateway; what is read is kept in the file, if one is named.
    Agents(&'s Client, &'s [Name], Option<PathBuf>),
    /// The gateway's messages of these agents as they are stored: users' words are not opened.
    Stored(&'s Client, &'s [Name], Option<PathBuf>),
    /// The gateway's whole log as it is stored.
    Whole(&'s Client, Option<PathBuf>),
    /// The messages in the folder of an archive, and behind them those of the gateway.
    Joined(&'s Path, Box<LogSource<'s>>),
}

impl<'s> LogSource<'s> {
    /// The file, if one is named, else these agents' part of the gateway's log, which is kept in `save`.
    pub fn file_or_agents(
        file: Option<&'s Path>,
        client: &'s Client,
        agents: &'s [Name],
        save: Option<PathBuf>,
    ) -> Self {
        file.map_or_else(|| Self::Agents(client, agents, save), Self::File)
    }

    /// Reads the messages of an archive before those of this source, if an archive is named.
    #[must_use]
    pub fn after_archive(self, archive: Option<&'s Path>) -> Self {
        match archive {
            Some(path) => Self::Joined(path, Box::new(self)),
            None => self,
        }
    }

    /// The gateway that is asked; none where a file is read.
    pub fn client(&self) -> Option<&'s Client> {
        match self {
            Self::File(_) => None,
            Self::Agents(client, ..) | Self::Stored(client, ..) | Self::Whole(client, _) => Some(client),
            Self::Joined(_, rest) => rest.client(),
        }
    }

    /// Reads it until `take` has seen enough.
    ///
    /// # Errors
    /// Returns an error if it cannot be read or saved, and any error of `take`.
    pub async fn read(&self, mut take: impl FnMut(&LogMessage) -> ReadFlow) -> Result<(), Error> {
        match self {
            Self::Joined(path, rest) => {
                let Some(client) = rest.client() else { return rest.read_after(0, take).await };
                let through = archive::check_continuation(path, client).await?;
                match archive::read_archive(path, archive::reject_sealed(rest.unsealed_agents(), &mut take))? {
                    true => Ok(()),
                    false => rest.read_after(through, take).await,
                }
            }
            whole => whole.read_after(0, take).await,
        }
    }

    /// The agents whose users' words are to be read, not only proven.
    fn unsealed_agents(&self) -> &'s [Name] {
        match self {
            Self::Agents(_, agents, _) => agents,
            _ => &[],
        }
    }

    async fn read_after(&self, after: u64, take: impl FnMut(&LogMessage) -> ReadFlow) -> Result<(), Error> {
        match self {
            Self::File(path) => read_file(path, take),
            Self::Agents(client, agents, save) => {
                read_agents((client, agents, false), after, save.as_deref(), take).await
            }
            Self::Stored(client, agents, save) => {
                read_agents((client, agents, true), after, save.as_deref(), take).await
            }
            Self::Whole(client, save) => read_whole_log(client, after, save.as_deref(), take).await,
            // Nothing stands before an archive.
            Self::Joined(..) => Ok(()),
        }
    }
}

/// An incident file that is as it was exported.
#[derive(Debug)]
pub struct IncidentFile {
    pub manifest: Manifest,
    /// The places of its objects, by digest.
    pub objects: BTreeMap<String, LineSpan>,
}

/// A line of a file, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct LineSpan {
    pub at: u64,
    pub length: usize,
}

/// The manifest of an incident file, without looking whether the rest of it is as it was exported; none for a file that is none.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn manifest(path: &Path) -> Result<Option<Manifest>, Error> {
    Ok(open_incident(path)?.map(|(manifest, _)| manifest))
}

/// Reads the manifest of an incident file and returns it with the lines behind it; `None` for any other file.
fn open_incident(path: &Path) -> Result<Option<(Manifest, MessageLines<'_>)>, Error> {
    if path.is_dir() {
        return Ok(None);
    }
    let mut lines = MessageLines::open(path)?;
    let Some(first) = lines.next()?.filter(|line| incident::is_manifest(line)) else { return Ok(None) };
    let manifest = Manifest::parse(first).map_err(|wrong| Error::Damaged(format!("{}, {wrong}", path.display())))?;
    Ok(Some((manifest, lines)))
}

/// The manifest of an incident file that is as it was exported, and where its objects stand; none for a file that is none.
///
/// # Errors
/// Returns an error with the place if it cannot be read or was altered since its export.
pub fn verify_incident(path: &Path) -> Result<Option<IncidentFile>, Error> {
    let damaged = |wrong: IncidentError| Error::Damaged(format!("{}, {wrong}", path.display()));
    let Some((manifest, mut lines)) = open_incident(path)? else { return Ok(None) };
    let mut verifying = Verifier::new(&manifest);
    let mut objects = BTreeMap::new();
    loop {
        let line = match verifying.is_behind_messages() {
            true => lines.next_object()?,
            false => lines.next()?,
        };
        let Some(line) = line else { break };
        let length = line.len();
        if let VerifiedLine::Object(object) = verifying.verify(line).map_err(damaged)? {
            objects.insert(object.digest, LineSpan { at: lines.read - length as u64, length });
        }
    }
    verifying.finish().map_err(damaged)?;
    Ok(Some(IncidentFile { manifest, objects }))
}

/// Reads a file that holds one message a line, or an incident file, until `take` has seen enough.
///
/// # Errors
/// Returns an error with the line if it cannot be read or a line is no message, and any error of `take`; before any of
/// that, if an incident file was altered since its export.
pub fn read_file(path: &Path, take: impl FnMut(&LogMessage) -> ReadFlow) -> Result<(), Error> {
    verify_incident(path)?;
    read_file_unverified(path, take)
}

/// Reads a file as [`read_file`] does, whether or not an incident file was altered since its export.
///
/// # Errors
/// As for [`read_file`], but for that.
pub fn read_file_unverified(path: &Path, mut take: impl FnMut(&LogMessage) -> ReadFlow) -> Result<(), Error> {
    if path.is_dir() {
        return archive::read_archive(path, take).map(drop);
    }
    let mut lines = MessageLines::open(path)?;
    let messages = match lines.next()?.filter(|line| incident::is_manifest(line)) {
        // Behind the messages of an incident file stand objects.
        Some(manifest) => Manifest::parse(manifest).map_or(u64::MAX, |manifest| manifest.messages),
        None => {
            lines = MessageLines::open(path)?;
            u64::MAX
        }
    };
    for _ in 0..messages {
        let Some(line) = lines.next()? else { break };
        let message = serde_json::from_slice(line).map_err(|error| error.to_string());
        let message = message.map_err(|error| lines.line_error(&error))?;
        if take(&message)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn damage_error(error: BackupError) -> Error {
    Error::Damaged(error.to_string())
}

/// A file that messages are kept in, as [`read_file`] reads them.
pub struct MessageFile<'p> {
    path: &'p Path,
    file: File,
}

impl<'p> MessageFile<'p> {
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn create(path: &'p Path) -> Result<Self, Error> {
        Ok(Self { path, file: File::create(path).map_err(Error::file("write", path))? })
    }

    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&mut self, message: &LogMessage) -> Result<(), Error> {
        let line = serde_json::to_string(message).unwrap_or_default();
        writeln!(self.file, "{line}").map_err(Error::file("write", self.path))
    }
}

/// The lines of a file, one at a time, none longer than it may be.
struct MessageLines<'p> {
    path: &'p Path,
    file: BufReader<File>,
    number: usize,
    line: Vec<u8>,
    /// Bytes that were read.
    read: u64,
}

impl<'p> MessageLines<'p> {
    fn open(path: &'p Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::unreadable(path))?;
        Ok(Self { path, file: BufReader::new(file), number: 0, line: Vec::new(), read: 0 })
    }

    fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        match self.read_line(LINE)? {
            LINE => Err(self.line_error(&format!("the line is longer than {LINE} bytes"))),
            read => Ok((read > 0).then_some(self.line.as_slice())),
        }
    }

    /// The next line where it is to be an object. One that is too long is handed out as far as that shows.
    fn next_object(&mut self) -> Result<Option<&[u8]>, Error> {
        let read = self.read_line(objects::LINE + 1)?;
        Ok((read > 0).then_some(self.line.as_slice()))
    }

    /// Reads a line, or as much of it as this; how many bytes it is.
    fn read_line(&mut self, most: u64) -> Result<u64, Error> {
        self.number += 1;
        self.line.clear();
        let read = (&mut self.file).take(most).read_until(b'\n', &mut self.line);
        let read = read.map_err(Error::unreadable(self.path))? as u64;
        self.read += read;
        Ok(read)
    }

    fn line_error(&self, why: &str) -> Error {
        let path = self.path.display();
        let number = self.number;
        Error::Advice(format!("{path}, line {number}: expected a message as --save writes them, {why}"))
    }
}

/// Reads agents' part of the log from the gateway in the log's order, until `take` has seen enough. What is kept in `save` is
/// kept to the end, for the build that understands it.
async fn read_agents(
    (client, agents, sealed): (&Client, &[Name], bool),
    after: u64,
    save: Option<&Path>,
    mut take: impl FnMut(&LogMessage) -> ReadFlow,
) -> Result<(), Error> {
    if agents.len() > AGENTS {
        return Err(Error::Advice(format!("--agent: expected at most {AGENTS} agents, found {}", agents.len())));
    }
    let mut saved = save.map(MessageFile::create).transpose()?;
    let mut logs: Vec<AgentLogPages<'_>> =
        agents.iter().map(|agent| AgentLogPages::new(client, agent, sealed, after)).collect();
    let mut last = after;
    let mut is_enough = false;
    while let Some(message) = pop_first(&mut logs).await? {
        // What several decisions rest on stands in the part of each agent.
        if message.sequence <= last {
            continue;
        }
        last = message.sequence;
        if let Some(saved) = &mut saved {
            saved.write(&message)?;
        }
        is_enough = is_enough || take(&message)?.is_break();
        if is_enough && save.is_none() {
            break;
        }
    }
    Ok(())
}

/// Reads all of the gateway's log, until `take` has seen enough; what is kept in `save` is kept to the end.
async fn read_whole_log(
    client: &Client,
    after: u64,
    save: Option<&Path>,
    mut take: impl FnMut(&LogMessage) -> ReadFlow,
) -> Result<(), Error> {
    let mut saving = OptionalMessageFile::create_if_named(save)?;
    let mut after = Some(after);
    let mut is_enough = false;
    while let Some(from) = after {
        let page = fetch_log_page(client, from).await?;
        for message in &page.messages {
            saving.write_message(message)?;
            is_enough = is_enough || take(message)?.is_break();
        }
        after = page.next_after.filter(|_| !is_enough || save.is_some());
    }
    Ok(())
}

/// A page of the gateway's log.
///
/// # Errors
/// Returns an error if the gateway cannot be reached or refuses.
pub async fn fetch_log_page(client: &Client, after: u64) -> Result<GetLogResponse, Error> {
    Ok(client.get("v1/log", &[("after", after.to_string())]).await?)
}

/// A file that messages are kept in, if one is named.
struct OptionalMessageFile<'p>(Option<(&'p Path, File)>);

impl<'p> OptionalMessageFile<'p> {
    fn create_if_named(path: Option<&'p Path>) -> Result<Self, Error> {
        let file = path.map(|path| Ok((path, File::create(path).map_err(Error::file("write", path))?)));
        file.transpose().map(Self)
    }

    fn write_message(&mut self, message: &LogMessage) -> Result<(), Error> {
        let Some((path, file)) = &mut self.0 else { return Ok(()) };
        let line = serde_json::to_string(message).unwrap_or_default();
        writeln!(file, "{line}").map_err(Error::file("write", *path))
    }
}

/// The message that stands first of those that are next.
async fn pop_first(logs: &mut [AgentLogPages<'_>]) -> Result<Option<LogMessage>, Error> {
    for log in &mut *logs {
        log.fill().await?;
    }
    let next = logs.iter_mut().filter(|log| !log.page.is_empty());
    let next = next.min_by_key(|log| log.page.front().map(|message| message.sequence));
    Ok(next.and_then(|log| log.page.pop_front()))
}

/// One agent's part, page by page.
struct AgentLogPages<'c> {
    client: &'c Client,
    agent: &'c Name,
    sealed: bool,
    page: VecDeque<LogMessage>,
    /// The message behind which the next page begins; `None` behind the last one.
    after: Option<u64>,
}

impl<'c> AgentLogPages<'c> {
    fn new(client: &'c Client, agent: &'c Name, sealed: bool, after: u64) -> Self {
        Self { client, agent, sealed, page: VecDeque::new(), after: Some(after) }
    }

    async fn fill(&mut self) -> Result<(), Error> {
        while let Some(after) = self.after.filter(|_| self.page.is_empty()) {
            let mut query = vec![("after", after.to_string())];
            // An older gateway does not know it, and seals nothing.
            query.extend(self.sealed.then(|| ("sealed", self.sealed.to_string())));
            let path = format!("v1/agents/{}/log", self.agent);
            let page: GetAgentLogResponse = self.client.get(&path, &query).await?;
            // Whoever only verifies finds what is missing.
            if !self.sealed && page.log_begins > after + 1 {
                let gone = page.log_begins - 1;
                return Err(Error::Advice(format!(
                    "messages {} to {gone} are no longer in the log: name an archive that has them with --archive FOLDER",
                    after + 1
                )));
            }
            (self.page, self.after) = (page.messages.into(), page.next_after);
        }
        Ok(())
    }
}
