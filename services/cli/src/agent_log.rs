//! Agents' part of the log, from the gateway or from a file that was kept of it, message by message.

mod archived;

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
use kairo_replay::incident::{self, Manifest, Taken, Verifying, Wrong, objects};

use crate::{Error, client::Client};

/// Longest line of a file, in bytes: a message of the largest size with all its headers, in base64.
const LINE: u64 = 4 * 1024 * 1024;
/// Most agents that are read at once: of each, a page of its log is held.
const AGENTS: usize = 64;

/// The decision of a message callback: read on or stop.
pub type Went = Result<ControlFlow<()>, Error>;

/// The source of log messages.
#[derive(Clone, Debug)]
pub enum Source<'s> {
    /// A file, or the folder of a backup.
    File(&'s Path),
    /// The gateway; what is read is kept in the file, if one is named.
    Agents(&'s Client, &'s [Name], Option<PathBuf>),
    /// The gateway's messages of these agents as they are stored: users' words are not opened.
    Stored(&'s Client, &'s [Name], Option<PathBuf>),
    /// The gateway's whole log as it is stored.
    Whole(&'s Client, Option<PathBuf>),
    /// The messages in the folder of an archive, and behind them those of the gateway.
    Joined(&'s Path, Box<Source<'s>>),
}

impl<'s> Source<'s> {
    /// The file, if one is named, else these agents' part of the gateway's log, which is kept in `save`.
    pub fn of(file: Option<&'s Path>, client: &'s Client, agents: &'s [Name], save: Option<PathBuf>) -> Self {
        file.map_or_else(|| Self::Agents(client, agents, save), Self::File)
    }

    /// Reads the messages of an archive before those of this source, if an archive is named.
    #[must_use]
    pub fn behind(self, archive: Option<&'s Path>) -> Self {
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
    pub async fn read(&self, mut take: impl FnMut(&LogMessage) -> Went) -> Result<(), Error> {
        match self {
            Self::Joined(path, rest) => {
                let Some(client) = rest.client() else { return rest.read_behind(0, take).await };
                let through = archived::joined(path, client).await?;
                match archived::read(path, archived::readable(rest.opened_for(), &mut take))? {
                    true => Ok(()),
                    false => rest.read_behind(through, take).await,
                }
            }
            whole => whole.read_behind(0, take).await,
        }
    }

    /// The agents whose users' words are to be read, not only proven.
    fn opened_for(&self) -> &'s [Name] {
        match self {
            Self::Agents(_, agents, _) => agents,
            _ => &[],
        }
    }

    async fn read_behind(&self, after: u64, take: impl FnMut(&LogMessage) -> Went) -> Result<(), Error> {
        match self {
            Self::File(path) => of_file(path, take),
            Self::Agents(client, agents, save) => {
                of_agents((client, agents, false), after, save.as_deref(), take).await
            }
            Self::Stored(client, agents, save) => of_agents((client, agents, true), after, save.as_deref(), take).await,
            Self::Whole(client, save) => of_whole(client, after, save.as_deref(), take).await,
            // Nothing stands before an archive.
            Self::Joined(..) => Ok(()),
        }
    }
}

/// An incident file that is as it was exported.
#[derive(Debug)]
pub struct Opened {
    pub manifest: Manifest,
    /// The places of its objects, by digest.
    pub objects: BTreeMap<String, Place>,
}

/// A line of a file, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub at: u64,
    pub length: usize,
}

/// The manifest of an incident file, without looking whether the rest of it is as it was exported; none for a file that is none.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn manifest(path: &Path) -> Result<Option<Manifest>, Error> {
    Ok(begun(path)?.map(|(manifest, _)| manifest))
}

/// Reads the manifest of an incident file and returns it with the lines behind it; `None` for any other file.
fn begun(path: &Path) -> Result<Option<(Manifest, Lines<'_>)>, Error> {
    if path.is_dir() {
        return Ok(None);
    }
    let mut lines = Lines::open(path)?;
    let Some(first) = lines.next()?.filter(|line| incident::is_manifest(line)) else { return Ok(None) };
    let manifest = Manifest::read(first).map_err(|wrong| Error::Damaged(format!("{}, {wrong}", path.display())))?;
    Ok(Some((manifest, lines)))
}

/// The manifest of an incident file that is as it was exported, and where its objects stand; none for a file that is none.
///
/// # Errors
/// Returns an error with the place if it cannot be read or was altered since its export.
pub fn opened(path: &Path) -> Result<Option<Opened>, Error> {
    let damaged = |wrong: Wrong| Error::Damaged(format!("{}, {wrong}", path.display()));
    let Some((manifest, mut lines)) = begun(path)? else { return Ok(None) };
    let (mut verifying, mut objects) = (Verifying::new(&manifest), BTreeMap::new());
    loop {
        let line = match verifying.is_behind_messages() {
            true => lines.next_object()?,
            false => lines.next()?,
        };
        let Some(line) = line else { break };
        let length = line.len();
        if let Taken::Object(object) = verifying.take(line).map_err(damaged)? {
            objects.insert(object.digest, Place { at: lines.read - length as u64, length });
        }
    }
    verifying.end().map_err(damaged)?;
    Ok(Some(Opened { manifest, objects }))
}

/// Reads a file that holds one message a line, or an incident file, until `take` has seen enough.
///
/// # Errors
/// Returns an error with the line if it cannot be read or a line is no message, and any error of `take`; before any of
/// that, if an incident file was altered since its export.
pub fn of_file(path: &Path, take: impl FnMut(&LogMessage) -> Went) -> Result<(), Error> {
    opened(path)?;
    as_it_is(path, take)
}

/// Reads a file as [`of_file`] does, whether or not an incident file was altered since its export.
///
/// # Errors
/// As for [`of_file`], but for that.
pub fn as_it_is(path: &Path, mut take: impl FnMut(&LogMessage) -> Went) -> Result<(), Error> {
    if path.is_dir() {
        return archived::read(path, take).map(drop);
    }
    let mut lines = Lines::open(path)?;
    let messages = match lines.next()?.filter(|line| incident::is_manifest(line)) {
        // Behind the messages of an incident file stand objects.
        Some(manifest) => Manifest::read(manifest).map_or(u64::MAX, |manifest| manifest.messages),
        None => {
            lines = Lines::open(path)?;
            u64::MAX
        }
    };
    for _ in 0..messages {
        let Some(line) = lines.next()? else { break };
        let message = serde_json::from_slice(line).map_err(|error| error.to_string());
        let message = message.map_err(|error| lines.misread(&error))?;
        if take(&message)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn damaged(error: BackupError) -> Error {
    Error::Damaged(error.to_string())
}

/// A file that messages are kept in, as [`of_file`] reads them.
pub struct Saved<'p> {
    path: &'p Path,
    file: File,
}

impl<'p> Saved<'p> {
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
struct Lines<'p> {
    path: &'p Path,
    file: BufReader<File>,
    number: usize,
    line: Vec<u8>,
    /// Bytes that were read.
    read: u64,
}

impl<'p> Lines<'p> {
    fn open(path: &'p Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::unread(path))?;
        Ok(Self { path, file: BufReader::new(file), number: 0, line: Vec::new(), read: 0 })
    }

    fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        match self.fill(LINE)? {
            LINE => Err(self.misread(&format!("the line is longer than {LINE} bytes"))),
            read => Ok((read > 0).then_some(self.line.as_slice())),
        }
    }

    /// The next line where it is to be an object. One that is too long is handed out as far as that shows.
    fn next_object(&mut self) -> Result<Option<&[u8]>, Error> {
        let read = self.fill(objects::LINE + 1)?;
        Ok((read > 0).then_some(self.line.as_slice()))
    }

    /// Reads a line, or as much of it as this; how many bytes it is.
    fn fill(&mut self, most: u64) -> Result<u64, Error> {
        self.number += 1;
        self.line.clear();
        let read = (&mut self.file).take(most).read_until(b'\n', &mut self.line);
        let read = read.map_err(Error::unread(self.path))? as u64;
        self.read += read;
        Ok(read)
    }

    fn misread(&self, why: &str) -> Error {
        let (path, number) = (self.path.display(), self.number);
        Error::Advice(format!("{path}, line {number}: expected a message as --save writes them, {why}"))
    }
}

/// Reads agents' part of the log from the gateway in the log's order, until `take` has seen enough. What is kept in `save` is
/// kept to the end, for the build that understands it.
async fn of_agents(
    (client, agents, sealed): (&Client, &[Name], bool),
    after: u64,
    save: Option<&Path>,
    mut take: impl FnMut(&LogMessage) -> Went,
) -> Result<(), Error> {
    if agents.len() > AGENTS {
        return Err(Error::Advice(format!("--agent: expected at most {AGENTS} agents, found {}", agents.len())));
    }
    let mut saved = save.map(Saved::create).transpose()?;
    let mut logs: Vec<Pages<'_>> = agents.iter().map(|agent| Pages::new(client, agent, sealed, after)).collect();
    let (mut last, mut is_enough) = (after, false);
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
        if is_enough && save.is_none() {
            break;
        }
    }
    Ok(())
}

/// Reads all of the gateway's log, until `take` has seen enough; what is kept in `save` is kept to the end.
async fn of_whole(
    client: &Client,
    after: u64,
    save: Option<&Path>,
    mut take: impl FnMut(&LogMessage) -> Went,
) -> Result<(), Error> {
    let mut saving = Saving::begin(save)?;
    let (mut after, mut is_enough) = (Some(after), false);
    while let Some(from) = after {
        let page = whole_behind(client, from).await?;
        for message in &page.messages {
            saving.keep(message)?;
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
pub async fn whole_behind(client: &Client, after: u64) -> Result<GetLogResponse, Error> {
    Ok(client.get("v1/log", &[("after", after.to_string())]).await?)
}

/// A file that messages are kept in, if one is named.
struct Saving<'p>(Option<(&'p Path, File)>);

impl<'p> Saving<'p> {
    fn begin(path: Option<&'p Path>) -> Result<Self, Error> {
        let file = path.map(|path| Ok((path, File::create(path).map_err(Error::file("write", path))?)));
        file.transpose().map(Self)
    }

    fn keep(&mut self, message: &LogMessage) -> Result<(), Error> {
        let Some((path, file)) = &mut self.0 else { return Ok(()) };
        let line = serde_json::to_string(message).unwrap_or_default();
        writeln!(file, "{line}").map_err(Error::file("write", *path))
    }
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
    sealed: bool,
    page: VecDeque<LogMessage>,
    /// The message behind which the next page begins; `None` behind the last one.
    after: Option<u64>,
}

impl<'c> Pages<'c> {
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
