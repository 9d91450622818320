//! A folder of files per agent, and the tools that work on them.
//!
//! In the folder of an agent are `mail/` (a Maildir), `calendar/` (iCalendar files), `contacts/` (vCard files) and
//! `documents/`. A model names messages and titles, never paths, and the folders are opened by handle, link by link,
//! so nothing it says leads elsewhere.

mod config;
mod date_args;
mod folder;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kairo_core::ids::Name;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::config::WorkspaceConfig;
pub use self::date_args::{TimeSpan, parse_day_or_span, parse_moment, parse_span};
pub use self::folder::{Folder, FolderError, WorkspaceFile};
use super::mail::EmailSend;
use super::{calendar, document, mail, team};
use crate::config::ToolsConfig;
use crate::tool::{CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};

/// The root of the agents' folders, and the limits on reading them.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    limits: WorkspaceConfig,
    /// Most bytes of a result that lists may fill.
    list_bytes: usize,
    zone: TimeZone,
}

/// All tools that need a workspace; none when the configuration names no root.
///
/// # Errors
/// A mistake of the configuration.
pub fn tools(config: &ToolsConfig) -> Result<Vec<Arc<dyn Tool>>, String> {
    let Some(root) = config.workspace.root.clone() else {
        return Ok(Vec::new());
    };
    let zone = TimeZone::get(&config.time_zone).unwrap_or(TimeZone::UTC);
    let workspace = Arc::new(Workspace {
        root,
        limits: config.workspace.clone(),
        // What stands beside a list is short.
        list_bytes: config.max_result_bytes / 4 * 3,
        zone,
    });
    let tool = |about: FileToolDefinition| -> Arc<dyn Tool> {
        Arc::new(FileTool::new(about, config.call_timeout(), Arc::clone(&workspace)))
    };
    let send = EmailSend::new(&config.mail, Arc::clone(&workspace), config.call_timeout())?;
    let tools = [mail::TOOLS.as_slice(), &calendar::TOOLS, &team::TOOLS, &document::TOOLS];
    let tools = tools.into_iter().flatten().map(|about| tool(*about));
    Ok(tools.chain([Arc::new(send) as Arc<dyn Tool>]).collect())
}

/// The definition of a file tool. All are idempotent: they only read, or key their writes by the action.
#[derive(Clone, Copy)]
pub struct FileToolDefinition {
    pub name: &'static str,
    pub description: &'static str,
    pub schema: fn() -> Value,
    pub work: fn(&Desk<'_>, Value) -> CallResult,
    /// Finds the outside sources of content in a result, by the arguments and the result.
    pub outside: fn(&Value, &Value) -> Vec<String>,
}

/// Of tools whose results hold the agent's own words, and those of its users.
pub fn no_outside_sources(_: &Value, _: &Value) -> Vec<String> {
    Vec::new()
}

/// A tool that reads or writes files of the agent that calls it.
struct FileTool {
    spec: ToolSpec,
    work: fn(&Desk<'_>, Value) -> CallResult,
    outside: fn(&Value, &Value) -> Vec<String>,
    workspace: Arc<Workspace>,
}

impl FileTool {
    fn new(about: FileToolDefinition, timeout: Duration, workspace: Arc<Workspace>) -> Self {
        let spec = ToolSpec {
            name: about.name.to_owned(),
            description: about.description.to_owned(),
            schema: (about.schema)(),
            idempotent: true,
            timeout,
            executor: Executor::ToolRunner,
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
            definition: None,
        };
        Self { spec, work: about.work, outside: about.outside, workspace }
    }
}

impl Tool for FileTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn outside_sources(&self, args: &Value, outcome: &CallResult) -> Vec<String> {
        outcome.as_ref().map(|result| (self.outside)(args, result)).unwrap_or_default()
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        let workspace = Arc::clone(&self.workspace);
        let work = self.work;
        Box::pin(async move {
            // Files are read by blocking calls, and parsing a large one takes a while.
            let done = tokio::task::spawn_blocking(move || work(&Desk::open(&workspace, &ctx)?, args));
            done.await.unwrap_or_else(|_| Err(ToolError::failed("the tool panicked")))
        })
    }
}

/// The working set of one call: the agent's folder and the context of the call.
pub struct Desk<'a> {
    folder: Folder,
    agent: Name,
    pub limits: &'a WorkspaceConfig,
    list_bytes: usize,
    /// Time of the decision that asked for the call, in the time zone of the configuration.
    pub now: Zoned,
    pub action_id: &'a str,
    stop: &'a CancellationToken,
}

impl<'a> Desk<'a> {
    /// # Errors
    /// When the agent's folder cannot be used.
    pub fn open(workspace: &'a Workspace, ctx: &'a CallContext) -> Result<Self, ToolError> {
        let agent = Name::parse(&ctx.agent).map_err(|error| ToolError::failed(error.to_string()))?;
        Ok(Self {
            folder: Folder::open_agent_folder(&workspace.root, &agent)?,
            agent,
            limits: &workspace.limits,
            list_bytes: workspace.list_bytes,
            now: ctx.now.to_zoned(workspace.zone.clone()),
            action_id: &ctx.action_id,
            stop: &ctx.cancel,
        })
    }

    /// A folder of the agent's; made when there is none.
    pub fn folder(&self, name: &'static str) -> Result<Folder, ToolError> {
        Ok(self.folder.open_or_create(name)?)
    }

    pub fn agent(&self) -> &str {
        self.agent.as_str()
    }

    /// A file of the agent's by its path, at most `depth` folders deep, and its own name; the first `max` bytes of it.
    /// None when it is not there.
    pub fn read_file<'p>(
        &self,
        path: &'p str,
        depth: usize,
        max: usize,
    ) -> Result<Option<(&'p str, WorkspaceFile)>, ToolError> {
        let (folders, name) = path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
        let mut folder = None;
        for (number, part) in folders.into_iter().flat_map(|folders| folders.split('/')).enumerate() {
            if number == depth {
                return Ok(None);
            }
            match folder.as_ref().unwrap_or(&self.folder).find(part)? {
                Some(found) => folder = Some(found),
                None => return Ok(None),
            }
        }
        Ok(folder.as_ref().unwrap_or(&self.folder).read(name, max)?.map(|file| (name, file)))
    }

    /// The time zone of calls that name none.
    pub fn zone(&self) -> &TimeZone {
        self.now.time_zone()
    }

    pub fn decided_at(&self) -> Timestamp {
        self.now.timestamp()
    }

    /// A name for what this action makes, the same however often it is called.
    pub fn action_key(&self) -> Uuid {
        self.action_id.parse().unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, self.action_id.as_bytes()))
    }

    /// At most `most` of the items, and no more than a result has room for.
    pub fn take_fitting(&self, items: impl IntoIterator<Item = Value>, most: usize) -> Vec<Value> {
        let mut room = self.list_bytes;
        let fits = |item: &Value| {
            let left = room.checked_sub(item.to_string().len() + 1);
            room = left.unwrap_or(0);
            left.is_some()
        };
        items.into_iter().take(most).take_while(fits).collect()
    }

    /// Between two files: whether anyone still waits.
    pub fn check_not_canceled(&self) -> Result<(), ToolError> {
        if self.stop.is_cancelled() { Err(ToolError::canceled("it was stopped between two files")) } else { Ok(()) }
    }

    /// Reads the files of a folder whose names end in `ending`, as far as the limits allow, and hands each to `take`,
    /// which says whether it made sense of it.
    pub fn each_file(
        &self,
        folder: &'static str,
        ending: &str,
        mut take: impl FnMut(&str, &WorkspaceFile) -> bool,
    ) -> Result<FolderScan, ToolError> {
        let folder = self.folder(folder)?;
        let (names, more) = folder.list_names(self.limits.max_files)?;
        let mut read = FolderScan { unreadable: 0, skipped: Vec::new(), incomplete: more };
        for name in names.iter().filter(|name| name.to_lowercase().ends_with(ending)) {
            self.check_not_canceled()?;
            match folder.read(name, self.limits.max_file_bytes) {
                Ok(Some(file)) => {
                    read.incomplete |= file.truncated;
                    if !take(name, &file) {
                        read.leave_out(name);
                    }
                }
                // Gone since the folder was listed.
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, name, "a file of a workspace is left out");
                    read.leave_out(name);
                }
            }
        }
        // The last file may have been given up halfway.
        self.check_not_canceled()?;
        Ok(read)
    }
}

/// The files skipped in a folder, and the limits reached, when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderScan {
    /// Number of files skipped in whole or in part because they could not be read or made no sense.
    pub unreadable: usize,
    /// Names of the first skipped files.
    skipped: Vec<String>,
    /// True if a limit kept part of the folder, or of a file, from being read.
    pub incomplete: bool,
}

impl FolderScan {
    fn leave_out(&mut self, name: &str) {
        self.unreadable += 1;
        remember_skipped(&mut self.skipped, name);
    }

    /// Adds to a result what could not be taken into account.
    pub fn report_omissions(&self, result: &mut Value) {
        set_field(result, "unreadable", self.unreadable);
        set_field(result, "incomplete", self.incomplete);
        if !self.skipped.is_empty() {
            set_field(result, "skipped", self.skipped.clone());
        }
    }
}

/// Files left out that a result names, and the longest of the names, in bytes.
const MAX_SKIPPED: usize = 10;
const MAX_SKIPPED_BYTES: usize = 200;

/// Remembers the name of a file that is left out, unless there are many already.
pub fn remember_skipped(skipped: &mut Vec<String>, name: &str) {
    if skipped.len() < MAX_SKIPPED {
        skipped.push(truncate_text(name, MAX_SKIPPED_BYTES).0.to_owned());
    }
}

/// The number of results asked for, or `default`, but at most as many as configured.
pub fn result_limit(asked: Option<NonZeroUsize>, default: usize, desk: &Desk<'_>) -> usize {
    asked.map_or(default, NonZeroUsize::get).min(desk.limits.max_results)
}

/// Adds a member to a result, which is an object.
pub fn set_field(result: &mut Value, key: &str, value: impl Into<Value>) {
    if let Value::Object(members) = result {
        members.insert(key.to_owned(), value.into());
    }
}

/// The beginning of a text, at most `max` bytes of it, and whether anything was left off.
pub fn truncate_text(text: &str, max: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(max);
    (text.get(..end).unwrap_or(text), end < text.len())
}

/// Returns true if each word of `query` occurs in one of the `texts`, ignoring case.
pub fn matches_words<'t>(query: &str, texts: impl IntoIterator<Item = &'t str>) -> bool {
    let texts: Vec<String> = texts.into_iter().map(str::to_lowercase).collect();
    query.to_lowercase().split_whitespace().all(|word| texts.iter().any(|text| text.contains(word)))
}
