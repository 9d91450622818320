use std::{collections::BTreeMap, os::unix::fs::symlink};

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::{
    manifest::{BackupPart, DATA_KEYS, FORMAT, LOG, StreamPart},
    message_line::MessageLine,
    segments::SegmentWriter,
};

/// A backup of one part, with a file of the log and one of keys.
fn backup(path: &Path) -> (Folder, Manifest) {
    let folder = Folder::create(path).unwrap();
    let place = folder.create_part_folder(1).unwrap();
    let stream = |name: &str| {
        let mut writer = SegmentWriter::new(path, format!("{place}/{name}"));
        let stored = Timestamp::UNIX_EPOCH;
        let subject = "a".to_owned();
        writer
            .write(&MessageLine { sequence: 7, stored, subject, headers: Vec::new(), data: b"secret".to_vec() })
            .unwrap();
        let files = writer.finish().unwrap();
        let config = Value::Null;
        let consumers = Vec::new();
        (name.to_owned(), StreamPart { config, first_sequence: 1, last_sequence: 7, consumers, files })
    };
    let streams = BTreeMap::from([stream(LOG.name), stream(DATA_KEYS)]);
    let taken = Timestamp::UNIX_EPOCH;
    let routed = BTreeMap::new();
    let parts = vec![BackupPart { number: 1, taken, after: 0, through: 7, routed, streams }];
    let manifest =
        Manifest { kairo: BackupKind::Backup, format: FORMAT, version: String::new(), log: Uuid::nil(), parts };
    folder.write_manifest(&manifest).unwrap();
    (folder, manifest)
}

fn keys(manifest: &Manifest) -> &FileEntry {
    manifest.newest_stream_part(DATA_KEYS).unwrap().files.first().unwrap()
}

/// The text of its manifest with this path in the place of that of the keys.
fn with_path(path: &Path, to: &str) -> Result<Manifest, BackupError> {
    let file = path.join(MANIFEST);
    let mut manifest: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    manifest["parts"][0]["streams"][DATA_KEYS]["files"][0]["path"] = json!(to);
    fs::write(&file, manifest.to_string()).unwrap();
    read_manifest(path)
}

#[test]
fn a_manifest_names_files_of_its_parts_and_nothing_else() {
    let both = tempfile::tempdir().unwrap();
    let path = both.path().join("backup");
    let (folder, manifest) = backup(&path);
    drop(folder);
    let own = keys(&manifest).path.to_string();
    let log = manifest.newest_stream_part(LOG.name).unwrap().files[0].path.to_string();
    let victim = both.path().join("victim").display().to_string();
    let ways_out = ["../victim", "../../victim", "0001/../../victim", "0001/../manifest.json", &victim, "/etc/passwd"];
    // Beneath the folder, and yet nothing that a part has, or something else's.
    let others = ["manifest.json", "lock", "0002/KV_KAIRO_DATA_KEYS-1.jsonl.gz", "0001/a/b", "0001/other", "", &log];
    for wrong in ways_out.into_iter().chain(others) {
        let told = with_path(&path, wrong).unwrap_err().to_string();
        assert!(told.contains(MANIFEST), "{wrong:?}: {told}");
    }
    assert_eq!(with_path(&path, &own).unwrap(), manifest);
}

#[test]
fn a_manifest_is_read_up_to_its_longest_and_through_no_link() {
    let both = tempfile::tempdir().unwrap();
    let path = both.path().join("backup");
    drop(backup(&path));
    fs::rename(path.join(MANIFEST), both.path().join(MANIFEST)).unwrap();
    symlink(both.path().join(MANIFEST), path.join(MANIFEST)).unwrap();
    assert!(read_manifest(&path).unwrap_err().to_string().contains("links are not followed"));
    fs::remove_file(path.join(MANIFEST)).unwrap();
    File::create(path.join(MANIFEST)).unwrap().set_len(MOST + 1).unwrap();
    assert!(read_manifest(&path).unwrap_err().to_string().contains("longer than"));
}

#[test]
fn what_is_destroyed_is_the_file_of_the_backup_and_not_what_stands_in_its_place() {
    for is_folder_linked in [false, true] {
        let both = tempfile::tempdir().unwrap();
        let path = both.path().join("backup");
        let elsewhere = both.path().join("elsewhere");
        let (folder, manifest) = backup(&path);
        let keys = keys(&manifest);
        let (_, name) = keys.path.split();
        fs::create_dir(&elsewhere).unwrap();
        let victim = elsewhere.join(name);
        fs::write(&victim, "theirs").unwrap();
        match is_folder_linked {
            true => {
                fs::remove_dir_all(path.join(part_folder_name(1))).unwrap();
                symlink(&elsewhere, path.join(part_folder_name(1))).unwrap();
            }
            false => {
                fs::remove_file(keys.path.full_path(&path)).unwrap();
                symlink(&victim, keys.path.full_path(&path)).unwrap();
            }
        }
        assert!(folder.destroy(keys).unwrap_err().to_string().contains("link"));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
    }
}

#[test]
fn a_file_with_further_names_is_written_over_only_where_it_is_what_was_kept() {
    let both = tempfile::tempdir().unwrap();
    let path = both.path().join("backup");
    let (folder, manifest) = backup(&path);
    let keys = keys(&manifest);
    let other = both.path().join("other");
    let at = keys.path.full_path(&path);
    // A copy of the folder by links has the same keys: they are to be gone there, too.
    fs::hard_link(&at, &other).unwrap();
    folder.destroy(keys).unwrap();
    assert!(!at.exists() && fs::read(&other).unwrap().iter().all(|byte| *byte == 0));
    fs::write(&other, "theirs").unwrap();
    fs::hard_link(&other, &at).unwrap();
    folder.destroy(keys).unwrap();
    assert_eq!((at.exists(), fs::read_to_string(&other).unwrap().as_str()), (false, "theirs"));
    folder.destroy(keys).unwrap();
}

#[test]
fn a_part_is_not_begun_and_no_lock_taken_through_a_link() {
    let both = tempfile::tempdir().unwrap();
    let path = both.path().join("backup");
    let elsewhere = both.path().join("elsewhere");
    let (folder, _) = backup(&path);
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, path.join(part_folder_name(2))).unwrap();
    assert!(folder.create_part_folder(2).is_err());
    drop(folder);
    fs::remove_file(path.join(LOCK)).unwrap();
    symlink(elsewhere.join("lock"), path.join(LOCK)).unwrap();
    assert!(Folder::open(&path, BackupKind::Backup).is_err());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}
