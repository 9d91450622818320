//! Every type that was ever published must stay readable for ever.
//!
//! `golden/<type>.bin` holds the bytes of a message of each type that was ever published, `golden/<type>.json` what
//! they say. Fields added later have a `golden/<type>+<what>` beside it. Files are only ever added:
//! `KAIRO_REGENERATE=1` writes the bytes of a new type from its JSON, and never touches those of an old one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use kairo_proto::{Body, ContentType, DESCRIPTORS, v1::ReplicaRow};
use prost::Message as _;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorSet};
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

/// `compat/kairo.v1.bin` is the contract as the version before had it. Fields may be added; what was there keeps its number, its
/// name, its type and whether there are several, in messages of the log as well as in those of the HTTP interface.
#[test]
fn the_contract_of_the_version_before_is_kept() {
    let before = std::fs::read(golden().join("../../compat/kairo.v1.bin")).unwrap();
    let (before, now) = (FileDescriptorSet::decode(&*before).unwrap(), FileDescriptorSet::decode(DESCRIPTORS).unwrap());
    let now: BTreeMap<String, Field> = fields(&now).into_iter().collect();
    let mut checked = 0;
    for (place, field) in fields(&before) {
        assert_eq!(now.get(&place), Some(&field), "{place} was there before, and is another or gone");
        checked += 1;
    }
    assert!(checked > 1_000, "{checked} fields are not the contract");
}

/// The parts of a field or of an enum's value that must stay: its name, and of a field also its type and label.
type Field = (String, Option<i32>, Option<String>, Option<i32>);

/// Every field and every value, by its message or enum and its number.
fn fields(files: &FileDescriptorSet) -> Vec<(String, Field)> {
    let mut all = Vec::new();
    for file in &files.file {
        let package = file.package();
        file.message_type.iter().for_each(|message| of_message(package, message, &mut all));
        file.enum_type.iter().for_each(|declared| of_enum(package, declared, &mut all));
    }
    all
}

fn of_message(within: &str, message: &DescriptorProto, all: &mut Vec<(String, Field)>) {
    let name = format!("{within}.{}", message.name());
    all.extend(message.field.iter().map(|field| {
        let kept = (field.name().to_owned(), field.r#type, field.type_name.clone(), field.label);
        (format!("{name} {}", field.number()), kept)
    }));
    message.nested_type.iter().for_each(|nested| of_message(&name, nested, all));
    message.enum_type.iter().for_each(|declared| of_enum(&name, declared, all));
}

fn of_enum(within: &str, declared: &EnumDescriptorProto, all: &mut Vec<(String, Field)>) {
    let name = format!("{within}.{}", declared.name());
    let values = declared.value.iter();
    all.extend(values.map(|it| (format!("{name} {}", it.number()), (it.name().to_owned(), None, None, None))));
}

#[test]
fn every_type_has_golden_bytes() {
    let kept = kept();
    let missing: Vec<_> = Body::TYPES.iter().filter(|type_name| !kept.contains(**type_name)).collect();
    assert!(missing.is_empty(), "no golden bytes of {missing:?}");
}

/// The status of a replica is no event, but replicas of other builds answer with it. It is kept here all the same, as
/// the replicas that are running decide what may be written.
#[test]
fn the_answer_of_a_replica_says_what_it_always_said() {
    let file = |ending: &str| std::fs::read(golden().join(format!("replies/ReplicaRow.{ending}"))).unwrap();
    let told: ReplicaRow = serde_json::from_slice(&file("json")).unwrap();
    assert_eq!(ReplicaRow::decode(file("bin").as_slice()), Ok(told.clone()));
    assert_eq!(told.encode_to_vec(), file("bin"));
}
