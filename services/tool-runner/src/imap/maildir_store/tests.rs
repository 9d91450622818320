//! Tests that kill the process that keeps mail between any two of its steps.

use std::fs;

use tempfile::TempDir;

use super::*;

struct Office {
    keeping: MaildirStore,
    root: TempDir,
}

const OPENED: OpenedMailbox = OpenedMailbox { uid_validity: 7, uid_next: Some(4) };

impl Office {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let agent = Name::parse("ann").unwrap();
        let keeping = MaildirStore { root: root.path().join("w"), agent, key: "k".to_owned(), max_files: 100 };
        Self { keeping, root }
    }

    /// The names in a folder of the mailbox, in order.
    fn names(&self, folder: &str) -> Vec<String> {
        let folder = fs::read_dir(self.path(folder)).into_iter().flatten();
        let mut names: Vec<String> = folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join("w/ann/mail").join(path)
    }
}

fn about(uid: u32, received: i64) -> MailMetadata {
    MailMetadata { uid, size: 1, received: Some(received) }
}

fn state(uid: u32) -> FetchPosition {
    FetchPosition { uid, ..FetchPosition::resume_in(None, OPENED, true) }
}

#[test]
fn what_is_put_into_the_mailbox_is_there_once() {
    let office = Office::new();
    assert_eq!(office.keeping.recover_position().unwrap(), None);
    office.keeping.draft(7, 1, b"one").unwrap();
    office.keeping.draft(7, 3, b"three").unwrap();
    assert_eq!(office.names("new"), [""; 0]);
    office.keeping.deliver(&state(3), &[1, 3]).unwrap();
    assert_eq!(office.names("new"), ["imap-k.7.1", "imap-k.7.3"]);
    assert_eq!(
        (office.names("imap"), office.keeping.recover_position().unwrap()),
        (vec!["k.state".to_owned()], Some(state(3)))
    );
    // Without the state it is fetched again, but not put beside what somebody has read.
    fs::rename(office.path("new/imap-k.7.1"), office.path("cur/imap-k.7.1:2,S")).unwrap();
    fs::remove_file(office.path("imap/k.state")).unwrap();
    office.keeping.draft(7, 1, b"one").unwrap();
    office.keeping.deliver(&state(1), &[1]).unwrap();
    assert_eq!(office.names("new"), ["imap-k.7.3"]);
}

#[test]
fn whoever_is_killed_leaves_nothing_behind_that_comes_twice_or_not_at_all() {
    // Before the state says so: it is fetched again.
    let office = Office::new();
    office.keeping.draft(7, 1, b"one").unwrap();
    assert_eq!(office.keeping.recover_position().unwrap(), None);
    assert_eq!((office.names("new").len(), office.names("imap").len()), (0, 0));

    // After that, with one of two moved, which somebody deleted.
    office.keeping.draft(7, 1, b"one").unwrap();
    office.keeping.draft(7, 2, b"two").unwrap();
    office.keeping.draft(7, 3, b"three").unwrap();
    office.keeping.draft(6, 1, b"of another time").unwrap();
    fs::write(office.path("imap/imap-other.7.1"), b"of another account").unwrap();
    office.keeping.deliver(&state(2), &[1]).unwrap();
    fs::remove_file(office.path("new/imap-k.7.1")).unwrap();
    assert_eq!(office.keeping.recover_position().unwrap(), Some(state(2)));
    assert_eq!(office.names("new"), ["imap-k.7.2"]);
    assert_eq!(office.names("imap"), ["imap-other.7.1", "k.state"]);
    assert_eq!(fs::read(office.path("new/imap-k.7.2")).unwrap(), b"two");
    fs::write(office.path("imap/k.state"), "{").unwrap();
    assert_eq!(office.keeping.recover_position().unwrap(), None);
}

#[test]
fn one_process_holds_an_account() {
    let office = Office::new();
    let held = office.keeping.try_lock().unwrap();
    assert!(held.is_some() && office.keeping.try_lock().unwrap().is_none());
    let other = MaildirStore { key: "l".to_owned(), ..office.keeping.clone() };
    assert!(other.try_lock().unwrap().is_some());
    drop(held);
    assert!(office.keeping.try_lock().unwrap().is_some());
}

#[test]
fn one_goes_on_where_one_was() {
    assert_eq!(FetchPosition::resume_in(None, OPENED, true).uid, 0);
    assert_eq!(FetchPosition::resume_in(None, OPENED, false).uid, 3);
    let was = state(2).advance_to(3, &[about(2, 50), about(3, 40)]);
    assert_eq!((was.uid, was.newest), (3, Some(50)));
    assert_eq!(was.advance_to(4, &[]).newest, Some(50));
    assert_eq!(FetchPosition::resume_in(Some(was), OPENED, false), was);
    assert!(!was.was_fetched_before(&about(9, 1)));
}

#[test]
fn mails_that_are_numbered_anew_are_told_by_their_time() {
    let was = state(3).advance_to(3, &[about(3, 50)]);
    let anew = FetchPosition::resume_in(Some(was), OpenedMailbox { uid_validity: 8, uid_next: Some(5) }, false);
    assert_eq!((anew.uid_validity, anew.uid, anew.newest), (8, 0, Some(50)));
    let had: Vec<bool> = [about(1, 49), about(2, 50), about(3, 51), about(5, 1)]
        .iter()
        .map(|mail| anew.was_fetched_before(mail))
        .collect();
    assert_eq!(had, [true, false, false, false]);
    assert!(!anew.was_fetched_before(&MailMetadata { received: None, ..about(1, 0) }));
    // Somebody who takes over in the middle still knows.
    let text = serde_json::to_vec(&anew.advance_to(1, &[])).unwrap();
    assert_eq!(serde_json::from_slice::<FetchPosition>(&text).unwrap().renumbered, anew.renumbered);
}
