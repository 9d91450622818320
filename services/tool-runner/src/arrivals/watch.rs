//! Being told of files by the system (inotify). It tells of names only, and only on this machine.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use kairo_core::ids::Name;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

/// Room for what is read at once, in bytes: some hundred names.
const BUFFER_BYTES: usize = 32 * 1024;
/// A folder whose folders matter.
const FOLDERS: WatchFlags =
    WatchFlags::CREATE.union(WatchFlags::MOVED_TO).union(WatchFlags::ONLYDIR).union(WatchFlags::DONT_FOLLOW);
/// The folder that mail is put into.
const MAIL: WatchFlags = FOLDERS.union(WatchFlags::CLOSE_WRITE);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MailboxChange {
    /// A file is whole: it was moved there, or closed by whoever wrote it.
    Mail { agent: Name, name: String },
    /// A file was made; whether it is whole nobody said.
    Unfinished { agent: Name },
    /// There may be a mailbox that is not watched yet.
    Folder { agent: Name },
    /// Something was not told.
    Lost,
}

/// The kind of a watched folder.
#[derive(Debug, Clone)]
enum FolderKind {
    Root,
    /// A folder above that of an agent's mail.
    Above(Name),
    New(Name),
}

pub struct MailboxWatch {
    root: PathBuf,
    /// `None` if the system does not offer it: then the folders are looked through now and then.
    queue: Option<AsyncFd<OwnedFd>>,
    folders: HashMap<i32, FolderKind>,
}

impl MailboxWatch {
    pub fn new(root: &Path) -> Self {
        let queue = open_inotify()
            .inspect_err(|error| tracing::warn!(%error, "mailboxes cannot be watched, only looked through"));
        Self { root: root.to_owned(), queue: queue.ok(), folders: HashMap::new() }
    }

    /// Watches for agents' folders.
    pub fn watch_root(&mut self) {
        self.add(&self.root.clone(), FOLDERS, FolderKind::Root);
    }

    /// Watches an agent's mailbox as far as it exists. To be called before it is looked through.
    pub fn watch_agent(&mut self, agent: &Name) {
        let folder = self.root.join(agent.as_str());
        let mail = folder.join("mail");
        self.add(&folder, FOLDERS, FolderKind::Above(agent.clone()));
        self.add(&mail, FOLDERS, FolderKind::Above(agent.clone()));
        self.add(&mail.join("new"), MAIL, FolderKind::New(agent.clone()));
    }

    /// A folder that is watched already stays so under the same number.
    fn add(&mut self, path: &Path, flags: WatchFlags, kind: FolderKind) {
        let Some(queue) = &self.queue else { return };
        match inotify::add_watch(queue.get_ref(), path, flags) {
            Ok(number) => {
                self.folders.insert(number, kind);
            }
            // Not there yet, or not a folder.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "a mailbox cannot be watched, only looked through")
            }
        }
    }

    /// Waits for changes and returns them. Cancel safe: no change is lost.
    pub async fn changes(&mut self) -> Vec<MailboxChange> {
        loop {
            let Some(queue) = &self.queue else { return std::future::pending().await };
            let Ok(mut ready) = queue.readable().await else { return std::future::pending().await };
            let (changes, gone) = read_changes(queue.get_ref(), &self.folders);
            // Only what it was ready for before: what came after the last read makes it ready again.
            ready.clear_ready();
            drop(ready);
            for number in gone {
                self.folders.remove(&number);
            }
            if !changes.is_empty() {
                return changes;
            }
        }
    }
}

#[expect(deprecated, reason = "its successor is unsafe code; an owned descriptor is what it asks for")]
fn open_inotify() -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?)
}

/// All that is in the queue, each once, and the folders that are no longer watched.
fn read_changes(queue: &OwnedFd, folders: &HashMap<i32, FolderKind>) -> (Vec<MailboxChange>, Vec<i32>) {
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    let mut reader = Reader::new(queue, &mut buffer);
    let mut changes = Vec::new();
    let mut gone = Vec::new();
    loop {
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::INTR) => continue,
            Err(_) => break,
        };
        let flags = event.events();
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            changes.push(MailboxChange::Lost);
        } else if flags.contains(ReadFlags::IGNORED) {
            gone.push(event.wd());
        } else if let Some(kind) = folders.get(&event.wd()) {
            let name = event.file_name().and_then(|name| name.to_str().ok()).unwrap_or_default();
            changes.extend(classify_change(kind, flags, name));
        }
    }
    changes.sort();
    changes.dedup();
    (changes, gone)
}

fn classify_change(kind: &FolderKind, flags: ReadFlags, name: &str) -> Option<MailboxChange> {
    let is_folder = flags.contains(ReadFlags::ISDIR);
    match kind {
        FolderKind::Root => {
            is_folder.then(|| Name::parse(name).ok()).flatten().map(|agent| MailboxChange::Folder { agent })
        }
        FolderKind::Above(agent) => is_folder.then(|| MailboxChange::Folder { agent: agent.clone() }),
        FolderKind::New(_) if is_folder => None,
        FolderKind::New(agent) if flags.intersects(ReadFlags::MOVED_TO | ReadFlags::CLOSE_WRITE) => {
            Some(MailboxChange::Mail { agent: agent.clone(), name: name.to_owned() })
        }
        FolderKind::New(agent) => Some(MailboxChange::Unfinished { agent: agent.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn ann() -> Name {
        Name::parse("ann").unwrap()
    }

    #[tokio::test]
    async fn a_mailbox_is_watched_from_the_moment_it_is_there() {
        let root = tempfile::tempdir().unwrap();
        let mut watch = MailboxWatch::new(root.path());
        watch.watch_root();
        fs::create_dir(root.path().join("ann")).unwrap();
        fs::create_dir(root.path().join("Not An Agent")).unwrap();
        assert_eq!(watch.changes().await, [MailboxChange::Folder { agent: ann() }]);
        let new = root.path().join("ann/mail/new");
        fs::create_dir_all(&new).unwrap();
        watch.watch_agent(&ann());
        fs::write(root.path().join("draft"), "x").unwrap();
        fs::rename(root.path().join("draft"), new.join("1.a")).unwrap();
        assert_eq!(watch.changes().await, [MailboxChange::Mail { agent: ann(), name: "1.a".to_owned() }]);
        fs::write(new.join("2.b"), "x").unwrap();
        let written =
            [MailboxChange::Mail { agent: ann(), name: "2.b".to_owned() }, MailboxChange::Unfinished { agent: ann() }];
        assert_eq!(watch.changes().await, written);
        fs::hard_link(new.join("1.a"), new.join("3.c")).unwrap();
        assert_eq!(watch.changes().await, [MailboxChange::Unfinished { agent: ann() }]);
    }
}
