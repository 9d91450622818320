//! What follows from the protos and their options (`kairo/v1/options.proto`): messages, the lists of types, what an rpc
//! is called and who may use it. It is committed, and held to the protos by a test, so that building needs no generator.

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

/// A file and what it holds; the path is one from the root of the project.
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
