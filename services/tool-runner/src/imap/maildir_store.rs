//! Moves fetched mail into an agent's Maildir exactly once, even if the process is killed at any step.
//!
//! A mail is first a draft in `mail/imap`, under a name made of its account, UIDVALIDITY and number. Then the state, a
//! file beside it, records that the mails up to this number have drafts. Then the drafts move to `mail/new`. After a
//! crash, the next process moves the drafts that the state covers, and fetches the rest: mail that has been read or
//! deleted meanwhile does not come back.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use kairo_core::ids::Name;
use serde::{Deserialize, Serialize};

use super::connection::{MailMetadata, OpenedMailbox};
use crate::builtin::mail::list_entries;
use crate::builtin::workspace::{Folder, FolderError};

/// The folder of drafts and states.
const DRAFTS: &str = "imap";
/// Largest state, in bytes.
const STATE_BYTES: usize = 4_096;

/// The fetch position of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchPosition {
    pub uid_validity: u32,
    /// Mails up to this number have been dealt with.
    pub uid: u32,
    /// When the server got the newest of them, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<i64>,
    /// The mails present when the server renumbered its mailbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renumbered: Option<RenumberedMails>,
}

/// Mails numbered below this that the server got before this were fetched under their old numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenumberedMails {
    pub below: u32,
    pub before: i64,
}

impl FetchPosition {
    /// Returns the position to continue from in a mailbox just opened.
    pub fn resume_in(before: Option<Self>, opened: OpenedMailbox, existing: bool) -> Self {
        let first = Self { uid_validity: opened.uid_validity, uid: 0, newest: None, renumbered: None };
        match before {
            Some(state) if state.uid_validity == opened.uid_validity => state,
            Some(state) => Self {
                newest: state.newest,
                renumbered: state
                    .newest
                    .map(|before| RenumberedMails { below: opened.uid_next.unwrap_or(u32::MAX), before }),
                ..first
            },
            None if existing => first,
            None => Self { uid: opened.uid_next.map_or(0, |next| next.saturating_sub(1)), ..first },
        }
    }

    /// Returns true if the mail was fetched under an old number.
    pub fn was_fetched_before(&self, mail: &MailMetadata) -> bool {
        match (self.renumbered, mail.received) {
            (Some(old), Some(received)) => mail.uid < old.below && received < old.before,
            _ => false,
        }
    }

    /// Returns the state after these mails, which go up to the number `uid`.
    pub fn advance_to(self, uid: u32, mails: &[MailMetadata]) -> Self {
        let newest = mails.iter().filter_map(|mail| mail.received).chain(self.newest).max();
        Self { uid, newest, ..self }
    }
}

/// The storage of an account's mail.
#[derive(Debug, Clone)]
pub struct MaildirStore {
    pub root: PathBuf,
    pub agent: Name,
    /// Key of the account.
    pub key: String,
    /// Most files listed in a folder.
    pub max_files: usize,
}

impl MaildirStore {
    /// Holds the account for this process; none while another does.
    pub fn try_lock(&self) -> Result<Option<OwnedFd>, FolderError> {
        self.drafts()?.try_lock(&format!("{}.lock", self.key))
    }

    /// Repairs what a crash left behind and returns the fetch position. None if no fetch has begun, or the state file
    /// cannot be parsed.
    pub fn recover_position(&self) -> Result<Option<FetchPosition>, FolderError> {
        let drafts = self.drafts()?;
        let file = drafts.read(&self.state_file(), STATE_BYTES)?;
        let state: Option<FetchPosition> = file.and_then(|file| serde_json::from_slice(&file.bytes).ok());
        let (names, _) = drafts.list_names(self.max_files)?;
        let prefix = format!("imap-{}.", self.key);
        let mut left = Vec::new();
        for name in names.into_iter().filter(|name| name.starts_with(&prefix)) {
            match state
                .filter(|state| parse_draft_uid(&name, &prefix, state.uid_validity).is_some_and(|uid| uid <= state.uid))
            {
                Some(_) => left.push(name),
                None => drafts.remove(&name)?,
            }
        }
        self.move_to_new(&drafts, &left)?;
        Ok(state)
    }

    /// Writes a mail down that the state does not speak of yet.
    pub fn draft(&self, uid_validity: u32, uid: u32, mail: &[u8]) -> Result<(), FolderError> {
        self.drafts()?.write(&self.draft_name(uid_validity, uid), mail)
    }

    /// Says how far the account has been fetched, and puts the drafts of these mails where the agent gets its mail.
    pub fn deliver(&self, state: &FetchPosition, uids: &[u32]) -> Result<(), FolderError> {
        let drafts = self.drafts()?;
        let text = serde_json::to_vec(state)
            .map_err(|error| FolderError::Io { name: self.state_file(), source: error.into() })?;
        drafts.write(&self.state_file(), &text)?;
        let names: Vec<String> = uids.iter().map(|uid| self.draft_name(state.uid_validity, *uid)).collect();
        self.move_to_new(&drafts, &names)
    }

    /// Should the state have been lost, a mail that is there already is not put there again.
    fn move_to_new(&self, drafts: &Folder, names: &[String]) -> Result<(), FolderError> {
        if names.is_empty() {
            return Ok(());
        }
        let mailbox = self.mailbox()?;
        let there: BTreeSet<String> =
            list_entries(&mailbox, self.max_files)?.0.into_iter().map(|entry| entry.id).collect();
        let new = mailbox.open_or_create("new")?;
        for name in names {
            match there.contains(name) {
                true => drafts.remove(name)?,
                false => drafts.move_file(name, &new, name)?,
            }
        }
        Ok(())
    }

    fn mailbox(&self) -> Result<Folder, FolderError> {
        Folder::open_agent_folder(&self.root, &self.agent)?.open_or_create("mail")
    }

    fn drafts(&self) -> Result<Folder, FolderError> {
        self.mailbox()?.open_or_create(DRAFTS)
    }

    fn state_file(&self) -> String {
        format!("{}.state", self.key)
    }

    fn draft_name(&self, uid_validity: u32, uid: u32) -> String {
        format!("imap-{}.{uid_validity}.{uid}", self.key)
    }
}

/// The number in the name of a draft of this UIDVALIDITY.
fn parse_draft_uid(name: &str, prefix: &str, uid_validity: u32) -> Option<u32> {
    let (validity, uid) = name.strip_prefix(prefix)?.split_once('.')?;
    (validity.parse() == Ok(uid_validity)).then(|| uid.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
