//! Other people's validators of documents.

use std::process::Stdio;

use tokio::{io::AsyncWriteExt, process::Command};

/// Runs the validator named by this environment variable and returns true if the document is valid, with the output;
/// none on a machine where it is not installed.
pub async fn verdict(variable: &str, document: &str) -> Option<(bool, String)> {
    let program = std::env::var_os(variable)?;
    let validating = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
    let mut validating = validating.unwrap();
    let mut input = validating.stdin.take().unwrap();
    input.write_all(document.as_bytes()).await.unwrap();
    drop(input);
    let output = validating.wait_with_output().await.unwrap();
    Some((output.status.success(), String::from_utf8(output.stdout).unwrap()))
}
