use std::collections::BTreeMap;

use jiff::Timestamp;
use object_store::memory::InMemory;
use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::{
    manifest::{BackupKind, BackupPart, DATA_KEYS, FORMAT, StreamPart},
    message_line::MessageLine,
    segments::SegmentWriter,
    verification,
};

fn nobody(_: &str) {}

fn storage(objects: &Arc<InMemory>) -> Storage {
    let objects: Arc<InMemory> = Arc::clone(objects);
    Storage::new(objects, "nightly/a", "s3://kairo/nightly/a".parse().unwrap())
}

/// Adds a part to what is worked with: the log up to a message, and the keys of now.
fn add(staged: &StagedBackup, through: u64) {
    let path = staged.path();
    let there = backup_folder::is_backup(path);
    let folder = if there { Folder::open(path, BackupKind::Backup) } else { Folder::create(path) }.unwrap();
    let version = String::new();
    let log = Uuid::from_u128(7);
    let mut manifest = match there {
        true => folder.read_manifest().unwrap(),
        false => Manifest { kairo: BackupKind::Backup, format: FORMAT, version, log, parts: Vec::new() },
    };
    let number = manifest.parts.len() as u32 + 1;
    let after = manifest.log_end();
    let place = folder.create_part_folder(number).unwrap();
    let stream = |name: &str| {
        let mut writer = SegmentWriter::new(path, format!("{place}/{name}"));
        let stored = Timestamp::UNIX_EPOCH;
        let subject = "a".to_owned();
        let headers = Vec::new();
        let data = path.to_string_lossy().as_bytes().to_vec();
        writer.write(&MessageLine { sequence: through, stored, subject, headers, data }).unwrap();
        let files = writer.finish().unwrap();
        let config = Value::Null;
        let consumers = Vec::new();
        (name.to_owned(), StreamPart { config, first_sequence: 1, last_sequence: through, consumers, files })
    };
    let streams = BTreeMap::from([stream(LOG.name), stream(DATA_KEYS)]);
    let replaced = manifest.parts.iter_mut().filter_map(|part| part.streams.remove(DATA_KEYS)).flat_map(|it| it.files);
    let replaced: Vec<_> = replaced.collect();
    let taken = Timestamp::UNIX_EPOCH;
    let routed = BTreeMap::new();
    manifest.parts.push(BackupPart { number, taken, after, through, routed, streams });
    folder.write_manifest(&manifest).unwrap();
    replaced.iter().for_each(|file| folder.destroy(file).unwrap());
}

/// Without what whoever put it there has called it.
fn plain(file: &str) -> String {
    match file.split_once(".jsonl") {
        Some((name, kind)) => format!("{}.jsonl{kind}", &name[..name.len() - 33]),
        None => file.to_owned(),
    }
}

async fn there(storage: &Storage) -> Vec<String> {
    let mut files: Vec<_> = storage.list_files(None).await.unwrap().into_iter().map(|(file, _)| plain(&file)).collect();
    files.sort();
    files
}

#[tokio::test]
async fn parts_are_put_there_and_what_is_replaced_is_removed() {
    let objects = Arc::new(InMemory::new());
    let storage = storage(&objects);
    let first = storage.clone().stage(FetchExtent::Manifest, &nobody).await.unwrap();
    add(&first, 5);
    first.upload_changes(&nobody).await.unwrap();
    // As a command leaves it that was killed while it put its part there.
    storage.objects.put(&storage.key("0002/of-one-that-was-killed"), "x".into()).await.unwrap();
    let second = storage.clone().stage(FetchExtent::End, &nobody).await.unwrap();
    add(&second, 9);
    second.upload_changes(&nobody).await.unwrap();
    let log = |part: &str, at: u64| format!("{part}/KAIRO_EVENTS-{at:020}.jsonl.gz");
    let keys = format!("0002/{DATA_KEYS}-{:020}.jsonl.gz", 9);
    let all = [log("0001", 5), log("0002", 9), keys, MANIFEST.to_owned()];
    assert_eq!(there(&storage).await, all);

    // All of it is there again, and again only what came since.
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("copy");
    assert_eq!(storage.copy_to_folder(&path, &nobody).await.unwrap().log_end(), 9);
    assert_eq!(verification::find_damaged_files(&path, &verification::read_manifest(&path).unwrap()), [""; 0]);
    let third = storage.clone().stage(FetchExtent::Manifest, &nobody).await.unwrap();
    add(&third, 12);
    third.upload_changes(&nobody).await.unwrap();
    let fetched = std::cell::RefCell::new(Vec::new());
    storage.copy_to_folder(&path, &|file| fetched.borrow_mut().push(plain(file))).await.unwrap();
    fetched.borrow_mut().sort();
    assert_eq!(*fetched.borrow(), [log("0003", 12), format!("0003/{DATA_KEYS}-{:020}.jsonl.gz", 12)]);
    let kept = backup_folder::part_files(&path, "0002").unwrap();
    assert_eq!(
        kept.iter().map(|file| plain(file.as_str())).collect::<Vec<_>>(),
        [log("0002", 9)],
        "keys that are replaced are gone"
    );
}

#[tokio::test]
async fn who_wrote_meanwhile_is_noticed() {
    let objects = Arc::new(InMemory::new());
    let storage = storage(&objects);
    let [one, other] = [storage.clone(), storage.clone()];
    let [one, other] =
        [one.stage(FetchExtent::Manifest, &nobody).await, other.stage(FetchExtent::Manifest, &nobody).await];
    let one = one.unwrap();
    let other = other.unwrap();
    add(&one, 5);
    // Of the same name, and not the same.
    add(&other, 5);
    one.upload_changes(&nobody).await.unwrap();
    let refused = other.upload_changes(&nobody).await.unwrap_err().to_string();
    assert!(refused.contains("s3://kairo/nightly/a meanwhile"), "{refused}");
    assert_eq!(storage.load_manifest().await.unwrap().unwrap().0.log_end(), 5);
    // What is there is that of the one, whole, and nothing of the other's.
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("copy");
    let manifest = storage.copy_to_folder(&path, &nobody).await.unwrap();
    assert_eq!(verification::find_damaged_files(&path, &manifest), [""; 0]);
    assert_eq!(there(&storage).await.len(), 3);
}

#[tokio::test]
async fn a_path_that_leads_elsewhere_is_refused_and_errors_name_the_place() {
    let objects = Arc::new(InMemory::new());
    let storage = storage(&objects);
    let staged = storage.clone().stage(FetchExtent::Everything, &nobody).await.unwrap();
    let nothing = verification::read_manifest(staged.path()).unwrap_err();
    let told = staged.replace_folder_path_in_error(nothing).to_string();
    assert!(told.starts_with("s3://kairo/nightly/a: it holds no manifest.json"), "{told}");
    let first = storage.clone().stage(FetchExtent::Manifest, &nobody).await.unwrap();
    add(&first, 5);
    first.upload_changes(&nobody).await.unwrap();
    let (manifest, _) = storage.load_manifest().await.unwrap().unwrap();
    let own = manifest.newest_stream_part(DATA_KEYS).unwrap().files[0].path.to_string();
    let text = String::from_utf8(manifest.to_text().unwrap()).unwrap();
    for wrong in ["../elsewhere", "../../elsewhere", "/etc/passwd", "0001/../x", "manifest.json"] {
        storage.objects.put(&storage.key(MANIFEST), text.replace(&own, wrong).into()).await.unwrap();
        let copy = tempfile::tempdir().unwrap();
        let refused = storage.copy_to_folder(&copy.path().join("a/b/c"), &nobody).await.unwrap_err().to_string();
        assert!(refused.contains("s3://kairo/nightly/a/manifest.json"), "{wrong}: {refused}");
        assert_eq!(std::fs::read_dir(copy.path()).unwrap().count(), 0, "nothing was begun");
    }
}

/// A place with a backup, and a copy of it.
async fn copied() -> (Storage, TempDir, Manifest) {
    let storage = storage(&Arc::new(InMemory::new()));
    let staged = storage.clone().stage(FetchExtent::Manifest, &nobody).await.unwrap();
    add(&staged, 5);
    staged.upload_changes(&nobody).await.unwrap();
    let copy = tempfile::tempdir().unwrap();
    let manifest = storage.copy_to_folder(&copy.path().join("copy"), &nobody).await.unwrap();
    (storage, copy, manifest)
}

#[tokio::test]
async fn a_file_that_is_there_in_its_size_and_is_another_is_fetched_again() {
    let (storage, copy, manifest) = copied().await;
    let path = copy.path().join("copy");
    for entry in manifest.files() {
        let at = entry.path.full_path(&path);
        let mut bytes = std::fs::read(&at).unwrap();
        let last = bytes.last_mut().unwrap();
        *last ^= 1;
        std::fs::write(&at, &bytes).unwrap();
    }
    storage.copy_to_folder(&path, &nobody).await.unwrap();
    assert_eq!(verification::find_damaged_files(&path, &manifest), [""; 0]);
    // One that is as it was is left alone.
    storage.copy_to_folder(&path, &|file| panic!("{file} is there")).await.unwrap();
}

#[tokio::test]
async fn what_somebody_put_in_the_place_of_a_file_is_not_taken_and_no_longer_than_the_file_was() {
    let (storage, _copy, manifest) = copied().await;
    let entry = manifest.newest_stream_part(LOG.name).unwrap().files[0].clone();
    let key = storage.key(entry.path.as_str());
    let bytes = storage.objects.get(&key).await.unwrap().bytes().await.unwrap().to_vec();
    let mut other = bytes.clone();
    *other.last_mut().unwrap() ^= 1;
    for wrong in [other, bytes[1..].to_vec(), [bytes.as_slice(), b"more"].concat(), Vec::new()] {
        storage.objects.put(&key, wrong.into()).await.unwrap();
        let copy = tempfile::tempdir().unwrap();
        let path = copy.path().join("copy");
        let refused = storage.copy_to_folder(&path, &nobody).await.unwrap_err().to_string();
        assert!(refused.contains(entry.path.as_str()) && refused.contains("not the file"), "{refused}");
        assert!(!entry.path.full_path(&path).exists());
    }
}

#[tokio::test]
async fn what_a_link_in_a_part_leads_to_is_put_nowhere() {
    let objects = Arc::new(InMemory::new());
    let storage = storage(&objects);
    let staged = storage.clone().stage(FetchExtent::Manifest, &nobody).await.unwrap();
    add(&staged, 5);
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::symlink(secret.path(), staged.path().join("0001/link.jsonl.gz.owners")).unwrap();
    staged.upload_changes(&nobody).await.unwrap();
    assert_eq!(there(&storage).await.len(), 3, "{:?}", there(&storage).await);
}
