//! The layout of a Maildir: `new/` has what nobody has looked at, `cur/` the rest, with flags behind `:2,`.

use jiff::Timestamp;

use crate::builtin::workspace::{Folder, FolderError, WorkspaceFile};

/// One message's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaildirEntry {
    /// The part of its name that stays when flags change.
    pub id: String,
    pub unread: bool,
    folder: &'static str,
    name: String,
}

/// The messages of a mailbox, at most `max` of each folder, and whether there are more.
pub fn list_entries(mailbox: &Folder, max: usize) -> Result<(Vec<MaildirEntry>, bool), FolderError> {
    let mut entries = Vec::new();
    let mut more = false;
    for folder in ["cur", "new"] {
        let (names, cut) = mailbox.open_or_create(folder)?.list_names(max)?;
        more |= cut;
        entries.extend(names.into_iter().map(|name| MaildirEntry::new(folder, name)));
    }
    Ok((entries, more))
}

/// The message of this name among those that nobody has looked at; none for a hidden file, which is a draft.
pub fn unseen_entry(name: &str) -> Option<MaildirEntry> {
    (!name.starts_with('.')).then(|| MaildirEntry::new("new", name.to_owned()))
}

/// The messages that nobody has looked at, at most `max`, and whether there are more. Makes no folder.
pub fn list_unseen(mailbox: &Folder, max: usize) -> Result<(Vec<MaildirEntry>, bool), FolderError> {
    let Some(folder) = mailbox.find("new")? else { return Ok((Vec::new(), false)) };
    let (names, more) = folder.list_names(max)?;
    Ok((names.into_iter().map(|name| MaildirEntry::new("new", name)).collect(), more))
}

/// The message that was moved to those that somebody has looked at; none if it is not among the first `max` of them.
pub fn find_seen(mailbox: &Folder, id: &str, max: usize) -> Result<Option<MaildirEntry>, FolderError> {
    let Some(folder) = mailbox.find("cur")? else { return Ok(None) };
    let (names, _) = folder.list_names(max)?;
    Ok(names.into_iter().map(|name| MaildirEntry::new("cur", name)).find(|entry| entry.id == id))
}

impl MaildirEntry {
    fn new(folder: &'static str, name: String) -> Self {
        let (id, flags) = name.split_once(":2,").unwrap_or((&name, ""));
        Self { id: id.to_owned(), unread: folder == "new" || !flags.contains('S'), folder, name }
    }

    /// Its beginning; none when it was moved meanwhile. What is no file is read as an empty one.
    pub fn read(&self, mailbox: &Folder, max: usize) -> Result<Option<WorkspaceFile>, FolderError> {
        match mailbox.open_or_create(self.folder)?.read(&self.name, max) {
            Err(FolderError::NotAFile { .. }) => {
                Ok(Some(WorkspaceFile { bytes: Vec::new(), size: 0, modified: 0, truncated: false }))
            }
            read => read,
        }
    }

    /// The whole name of its file.
    pub fn file_name(&self) -> &str {
        &self.name
    }

    /// When it came: names begin with that second; should this one not, when the file was changed last.
    pub fn arrival_time(&self, file: &WorkspaceFile) -> Timestamp {
        let named = self.id.split('.').next().and_then(|seconds| seconds.parse().ok());
        named
            .and_then(|seconds| Timestamp::from_second(seconds).ok())
            .or_else(|| Timestamp::from_second(file.modified).ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_no_part_of_the_id() {
        let entry = |folder, name: &str| MaildirEntry::new(folder, name.to_owned());
        let seen = entry("cur", "1700000000.M1P2.host:2,RS");
        assert_eq!((seen.id.as_str(), seen.unread), ("1700000000.M1P2.host", false));
        assert!(entry("cur", "1700000000.M1P2.host:2,").unread);
        assert!(entry("new", "1700000000.M1P2.host").unread);
    }

    #[test]
    fn the_name_says_when_it_came() {
        let file = WorkspaceFile { bytes: Vec::new(), size: 0, modified: 5, truncated: false };
        let arrived = |name: &str| MaildirEntry::new("new", name.to_owned()).arrival_time(&file).as_second();
        assert_eq!(arrived("1700000000.M1P2.host"), 1_700_000_000);
        assert_eq!(arrived("letter"), 5);
        assert_eq!(arrived("99999999999999999.x"), 5);
    }
}
