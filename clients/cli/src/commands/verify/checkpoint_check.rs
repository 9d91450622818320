//! The checkpoint a log is compared with, and the check of its signature.

use std::{fs, path::Path};

use kairo_core::ids::Name;
use kairo_replay::{
    checkpoint::{self, Checkpoint, CheckpointComparer, CheckpointComparison, CheckpointDifference},
    proof::Proof,
};
use serde::Serialize;

use crate::{
    Error,
    agent_log::{self, LogSource},
    signing_key::PublicKey,
};

/// Largest checkpoint that is read, in bytes.
const LARGEST: u64 = 256 * 1024 * 1024;

/// A checkpoint that a log is held to.
pub(super) struct CheckpointCheck {
    checkpoint: Checkpoint,
    signature: SignatureCheck,
    /// The difference in the log's id, if the checkpoint is of another log.
    other: Option<CheckpointDifference>,
}

/// The result of checking a checkpoint's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SignatureCheck {
    /// The signature of the named key.
    Good,
    /// The signature of the key that the checkpoint names, which anybody could have made.
    OfItsOwnKey,
    Bad,
    None,
}

/// The result of comparing a log with a checkpoint.
#[derive(Debug, Serialize)]
pub(super) struct CheckpointResult {
    pub sequence: u64,
    pub signature: SignatureCheck,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<CheckpointDifference>,
    /// The reason why it was not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// The number of agents compared; `None` if the whole log was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<usize>,
    /// The part of what it covers that is in the log, if the whole log was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<CheckpointComparison>,
    /// The agents it covers that the log lacks, if the whole log was compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<Name>,
    /// True if a file ends before the checkpoint does, so that it cannot have all that the checkpoint covers.
    #[serde(skip)]
    pub is_short: bool,
}

impl CheckpointCheck {
    /// Reads a checkpoint; with a key, it must be signed with that.
    pub fn read(path: &Path, public_key: Option<&Path>) -> Result<Self, Error> {
        let public_key = public_key.map(PublicKey::from_file).transpose()?;
        let size = fs::metadata(path).map_err(Error::file("read", path))?.len();
        let wrong = |why: String| Error::Usage(format!("{}: {why}", path.display()));
        if size > LARGEST {
            return Err(wrong(format!("expected at most {LARGEST} bytes, found {size}")));
        }
        let line = fs::read_to_string(path).map_err(Error::file("read", path))?;
        let checkpoint = Checkpoint::parse(&line).map_err(|error| wrong(error.to_string()))?;
        let has_signed = |key: &PublicKey| key.has_signed(&checkpoint.signed_part(&line), &checkpoint.signature);
        let signature = match (public_key, checkpoint.signature.is_empty()) {
            (Some(key), _) if has_signed(&key) => SignatureCheck::Good,
            (Some(_), _) => SignatureCheck::Bad,
            (None, true) => SignatureCheck::None,
            (None, false) if has_signed(&PublicKey::from_base64(&checkpoint.public_key)) => SignatureCheck::OfItsOwnKey,
            (None, false) => SignatureCheck::Bad,
        };
        Ok(Self { checkpoint, signature, other: None })
    }

    /// Compares the log named in the checkpoint with the log that is read.
    pub async fn compare_log_id(&mut self, source: &LogSource<'_>, all: bool) -> Result<(), Error> {
        if let (true, Some(client)) = (all, source.client()) {
            let page = agent_log::fetch_log_page(client, u64::MAX).await.map_err(Error::into_unavailable)?;
            let expected = self.checkpoint.log.clone();
            let found = page.log;
            self.other = (expected != found).then_some(CheckpointDifference::Log { expected, found });
        }
        Ok(())
    }

    pub fn sequence(&self) -> u64 {
        self.checkpoint.sequence
    }

    pub fn start_comparing(&self) -> CheckpointComparer<'_> {
        CheckpointComparer::new(&self.checkpoint)
    }

    /// Returns the result of the comparison: `compared` is the comparison of the whole log; without it, the digests of
    /// agents up to the checkpoint are compared. A file may end before.
    pub fn judge(
        self,
        compared: Option<CheckpointComparison>,
        proof: &Proof,
        ends_at: Option<u64>,
    ) -> CheckpointResult {
        let Self { checkpoint, signature, other } = self;
        let sequence = checkpoint.sequence;
        let all = compared.is_some();
        let ends = ends_at.filter(|end| *end < sequence);
        let ends =
            ends.map(|end| format!("the file was exported up to message {end}, and the checkpoint is at {sequence}"));
        let is_short = ends.is_some();
        let stopped = proof.stopped.as_ref().filter(|stopped| stopped.sequence <= sequence && !all);
        let stopped = stopped.map(|stopped| format!("message {} takes a newer build", stopped.sequence));
        let not_compared = ends.or(stopped);
        let of_agents = || checkpoint::compare_agents(&checkpoint, &proof.heads);
        let difference = match (&not_compared, all) {
            (Some(_), false) => None,
            (_, false) => of_agents(),
            // Sections have all that agents have.
            (_, true) => other.or_else(|| compared.as_ref().and_then(|compared| compared.difference.clone())),
        };
        let lacking = if all { checkpoint::missing_agents(&checkpoint, &proof.heads) } else { Vec::new() };
        let agents = (!all).then_some(proof.heads.len());
        let not_compared = not_compared.filter(|_| !all);
        CheckpointResult { sequence, signature, difference, not_compared, agents, compared, lacking, is_short }
    }
}

impl CheckpointResult {
    pub fn fits(&self) -> bool {
        let has_all = self.difference.is_none() && !self.is_short;
        has_all && self.signature != SignatureCheck::Bad
    }
}
