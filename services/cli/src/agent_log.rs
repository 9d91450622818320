//! An agent's part of the log, from the gateway or from a file that was kept of it, message by message.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
    ops::ControlFlow,
    path::Path,
};

use kairo_core::ids::Name;
use kairo_proto::v1::{GetAgentLogResponse, LogMessage};

use crate::{Error, client::Client};

/// Whether whoever reads has seen enough.
pub type Went = Result<ControlFlow<()>, Error>;

/// Reads a file that holds one message a line, until `take` has seen enough.
///
/// # Errors
/// Where it cannot be read, with the line that is no message, and whatever `take` says.
pub fn of_file(path: &Path, mut take: impl FnMut(&LogMessage) -> Went) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::file("read", path))?;
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.map_err(Error::file("read", path))?;
        let unreadable = |error: serde_json::Error| {
            Error::Advice(format!(
                "{}, line {number}: expected a message as --save writes them, {error}",
                path.display()
            ))
        };
        if take(&serde_json::from_str(&line).map_err(unreadable)?)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Reads an agent's part of the log from the gateway, until `take` has seen enough. What is kept in `save` is kept to the end,
/// for the build that understands it.
///
/// # Errors
/// Where the gateway cannot be asked or the file not be written, and whatever `take` says.
pub async fn of_agent(
    client: &Client,
    agent: &Name,
    save: Option<&Path>,
    mut take: impl FnMut(&LogMessage) -> Went,
) -> Result<(), Error> {
    let mut saved = match save {
        Some(path) => Some((path, File::create(path).map_err(Error::file("write", path))?)),
        None => None,
    };
    let mut after = Some(0_u64);
    while let Some(from) = after {
        let query = [("after", from.to_string())];
        let page: GetAgentLogResponse = client.get(&format!("v1/agents/{agent}/log"), &query).await?;
        for message in &page.messages {
            if let Some((path, file)) = &mut saved {
                let line = serde_json::to_string(message).unwrap_or_default();
                writeln!(file, "{line}").map_err(Error::file("write", *path))?;
            }
            if take(message)?.is_break() && saved.is_none() {
                return Ok(());
            }
        }
        after = page.next_after;
    }
    Ok(())
}
