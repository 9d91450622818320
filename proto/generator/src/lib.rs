//! Generates code and documents from the protos and their options (`kairo/v1/options.proto`): messages, the lists of
//! types, the names of rpcs and who may use them. The output is committed, and a test compares it to the protos, so
//! that building needs no generator.

mod contract;
mod home;
mod messages;
mod openapi;
mod personal;
mod rpcs;
mod types;
mod vocabularies;

use std::path::PathBuf;

use contract::Contract;

/// The path of a file, from the root of the project, and its content.
pub type Generated = (String, Vec<u8>);

/// The root of the project.
pub fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

/// All files.
pub fn generate() -> anyhow::Result<Vec<Generated>> {
    let contract = Contract::read()?;
    let mut files = messages::files(&contract)?;
    files.push(types::file(&contract)?);
    files.push(personal::file(&contract)?);
    files.push(vocabularies::file(&contract)?);
    files.extend(rpcs::files(&contract)?);
    files.extend(openapi::files(&contract)?);
    files.push(home::file(&contract)?);
    Ok(files)
}
