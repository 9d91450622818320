//! The mailboxes of all agents, as files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use kairo_core::ids::Name;

use super::SETTLED;
use super::event::{Arrival, build_arrival};
use crate::builtin::mail::{self, MaildirEntry};
use crate::builtin::workspace::{Folder, FolderError};
use crate::config::ToolsConfig;

/// Agents whose mailboxes are looked after.
const MAX_AGENTS: usize = 50_000;

pub struct Mailboxes {
    root: PathBuf,
    max_files: usize,
    max_file_bytes: usize,
    max_text_bytes: usize,
}

/// The kind of entry found under a name in a mailbox.
pub enum MailReadOutcome {
    Mail(Box<Arrival>),
    /// Somebody may still write to it.
    Unfinished,
    /// It is gone, or no file.
    Nothing,
}

impl Mailboxes {
    pub fn new(root: &Path, config: &ToolsConfig) -> Self {
        Self {
            root: root.to_owned(),
            max_files: config.workspace.max_files,
            max_file_bytes: config.workspace.max_file_bytes,
            max_text_bytes: config.mail.max_event_text_bytes,
        }
    }

    /// Everyone who has a folder.
    pub async fn agents(&self) -> Result<Vec<Name>, FolderError> {
        let root = self.root.clone();
        let (names, more) = run_blocking(move || Folder::open_root(&root)?.list_names(MAX_AGENTS)).await?;
        if more {
            tracing::warn!(max = MAX_AGENTS, "there are more agents' folders than are looked after for mail");
        }
        Ok(names.iter().filter_map(|name| Name::parse(name).ok()).collect())
    }

    /// Lists the entries of an agent's `mail/new`.
    pub async fn list_new_mail(&self, agent: &Name) -> Result<Vec<MaildirEntry>, FolderError> {
        let root = self.root.clone();
        let name = agent.clone();
        let max = self.max_files;
        let (entries, more) = run_blocking(move || match mailbox(&root, &name)? {
            Some(mailbox) => mail::list_unseen(&mailbox, max),
            None => Ok((Vec::new(), false)),
        })
        .await?;
        if more {
            tracing::warn!(%agent, max, "mail/new holds more files than are looked at (workspace.max_files)");
        }
        Ok(entries)
    }

    /// Reads a mail.
    pub async fn read_mail(
        &self,
        agent: &Name,
        entry: MaildirEntry,
        whole: bool,
    ) -> Result<MailReadOutcome, FolderError> {
        let root = self.root.clone();
        let agent = agent.clone();
        let max = self.max_file_bytes;
        let max_text = self.max_text_bytes;
        let max_files = self.max_files;
        run_blocking(move || {
            let Some(mailbox) = mailbox(&root, &agent)? else { return Ok(MailReadOutcome::Nothing) };
            let read = |folder: &str, name: &str| {
                mailbox.find(folder)?.map(|folder| folder.read(name, max)).transpose().map(Option::flatten)
            };
            let mut file = read("new", entry.file_name())?;
            if file.is_none()
                // A mail program has been faster.
                && let Some(moved) = mail::find_seen(&mailbox, &entry.id, max_files)?
            {
                file = read("cur", moved.file_name())?;
            }
            let Some(file) = file else { return Ok(MailReadOutcome::Nothing) };
            if !whole && !is_settled(file.modified, Timestamp::now()) {
                return Ok(MailReadOutcome::Unfinished);
            }
            Ok(MailReadOutcome::Mail(Box::new(build_arrival(&entry.id, &file.bytes, file.truncated, max_text))))
        })
        .await
    }
}

/// Changed long enough ago; one from the future comes from a clock that is wrong.
fn is_settled(modified: i64, now: Timestamp) -> bool {
    Duration::from_secs(modified.abs_diff(now.as_second())) > SETTLED
}

fn mailbox(root: &Path, agent: &Name) -> Result<Option<Folder>, FolderError> {
    match Folder::open_root(root)?.find_agent_folder(agent)? {
        Some(folder) => folder.find("mail"),
        None => Ok(None),
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FolderError> + Send + 'static,
) -> Result<T, FolderError> {
    let broke_off = |_| FolderError::Io { name: "a mailbox".to_owned(), source: std::io::Error::other("it panicked") };
    tokio::task::spawn_blocking(work).await.map_err(broke_off)?
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::DirBuilderExt as _;

    use super::*;
    use crate::builtin::mail::unseen_entry;

    #[tokio::test]
    async fn what_a_mail_program_has_moved_is_found() {
        let root = tempfile::tempdir().unwrap();
        let cur = root.path().join("ann/mail/cur");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&cur).unwrap();
        std::fs::write(cur.join("7.host:2,S"), "Subject: Hello\r\n\r\nYou.\r\n").unwrap();
        let mailboxes = Mailboxes::new(root.path(), &ToolsConfig::default());
        let agent = Name::parse("ann").unwrap();
        let found = mailboxes.read_mail(&agent, unseen_entry("7.host").unwrap(), true).await.unwrap();
        assert!(matches!(found, MailReadOutcome::Mail(arrival) if arrival.body.subject == "Hello"));
        let gone = mailboxes.read_mail(&agent, unseen_entry("8.host").unwrap(), true).await.unwrap();
        assert!(matches!(gone, MailReadOutcome::Nothing));
    }

    #[test]
    fn a_file_is_left_alone_until_nobody_writes_to_it() {
        let now = Timestamp::from_second(1_000).unwrap();
        for (modified, settled) in [(1_000, false), (998, false), (997, true), (0, true), (1_001, false), (5_000, true)]
        {
            assert_eq!(is_settled(modified, now), settled, "{modified}");
        }
    }
}
