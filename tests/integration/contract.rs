//! What was published once must be readable for ever.
//!
//! `golden/<type>.bin` holds the bytes of a message of each type that was ever published, `golden/<type>.json` what
//! they say. Of fields that came later there is `golden/<type>+<what>` beside it. Files are only ever added: `KAIRO_REGENERATE=1` writes the bytes of a new type from its JSON, and never
//! touches those of an old one.

use std::{collections::BTreeSet, path::PathBuf};

use kairo_proto::{Body, ContentType, v1::ReplicaRow};
use prost::Message as _;
use serde_json::Value;

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// The names of the files, each of which is a type's, or that and what is new in it.
fn kept() -> BTreeSet<String> {
    let files = std::fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path());
    let json = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    json.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn type_of(name: &str) -> &str {
    name.split_once('+').map_or(name, |(type_name, _)| type_name)
}

#[test]
fn golden_bytes_of_every_version_say_what_they_always_said() {
    for name in kept() {
        let type_name = type_of(&name);
        let file = |ending: &str| golden().join(format!("{name}.{ending}"));
        let text = std::fs::read(file("json")).unwrap();
        let told = Body::decode(type_name, ContentType::Json, &text).unwrap();
        let file = file("bin");
        if std::env::var_os("KAIRO_REGENERATE").is_some() && !file.exists() {
            std::fs::write(&file, told.encode()).unwrap();
        }
        let bytes = std::fs::read(&file).expect("a new type: run the test with KAIRO_REGENERATE=1");
        let read = Body::decode(type_name, ContentType::Protobuf, &bytes).unwrap();
        assert_eq!(read, told, "{name}");
        assert_eq!(read.encode(), bytes, "{name} is no longer written as it was");
        // Defaults are left out of the JSON that is written, so what is there must be what was told.
        let Value::Object(written) = read.to_json() else { panic!("{name} is not an object") };
        let Value::Object(told) = serde_json::from_slice(&text).unwrap() else { panic!("{name} is not an object") };
        assert!(written.iter().all(|(key, value)| told.get(key) == Some(value)), "{name}: {written:?}");
    }
}

#[test]
fn every_type_has_golden_bytes() {
    let kept = kept();
    let missing: Vec<_> = Body::TYPES.iter().filter(|type_name| !kept.contains(**type_name)).collect();
    assert!(missing.is_empty(), "no golden bytes of {missing:?}");
}

/// What the replicas of other builds answer is no event; it is kept here all the same, as who is there decides what may be
/// written.
#[test]
fn the_answer_of_a_replica_says_what_it_always_said() {
    let file = |ending: &str| std::fs::read(golden().join(format!("replies/ReplicaRow.{ending}"))).unwrap();
    let told: ReplicaRow = serde_json::from_slice(&file("json")).unwrap();
    assert_eq!(ReplicaRow::decode(file("bin").as_slice()), Ok(told.clone()));
    assert_eq!(told.encode_to_vec(), file("bin"));
}
