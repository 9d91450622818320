//! The end of a restored log, and its configuration then.

use std::path::Path;

use kairo_core::{
    bus::provision::{TRIMMED, wanted::unlimited},
    carried::CARRIED,
};
use serde_json::{Value, json};

use super::At;
use crate::{
    error::BackupError,
    line::Line,
    manifest::{LOG, Manifest},
    plan::Cut,
    segments::Lines,
};

/// The last message that is wanted.
///
/// # Errors
/// If the backup has no such end, or the log would not have all that must stand.
pub fn cut(path: &Path, manifest: &Manifest, at: At) -> Result<Cut, BackupError> {
    let is_wanted = |line: &Line| match at {
        At::Sequence(sequence) => line.sequence <= sequence,
        At::Time(time) => line.stored <= time,
    };
    let through = manifest.through();
    if let At::Sequence(beyond) = at
        && beyond > through
    {
        return Err(BackupError::Refused(format!("--at {beyond}: the backup holds the log up to {through}")));
    }
    let files = manifest.grown(LOG.name);
    // In files before the last one whose first message is wanted, all are.
    let mut last = None;
    for file in files.iter().rev() {
        for line in Lines::of(path, vec![file.clone()]) {
            let line = line?;
            if !is_wanted(&line) {
                break;
            }
            last = Some(Cut { sequence: line.sequence, stored: line.stored });
        }
        if last.is_some() {
            break;
        }
    }
    let nothing = || BackupError::Refused("--at: the backup has nothing of the log from before".to_owned());
    let last = last.ok_or_else(nothing)?;
    stands(path, manifest, last.sequence)?;
    Ok(last)
}

/// Checks that a log that ends there has all that must stand: in one trimmed before the backup was begun, all messages
/// carried forward.
fn stands(path: &Path, manifest: &Manifest, end: u64) -> Result<(), BackupError> {
    let begins = manifest.begins_behind();
    let first = manifest.parts.first().and_then(|part| part.streams.get(LOG.name)).filter(|_| begins > 0);
    let mut carried = 0;
    for line in first.into_iter().flat_map(|log| Lines::of(path, log.files.clone())) {
        let line = line?;
        carried = if line.header(CARRIED).is_some() { line.sequence } else { carried };
    }
    match carried > end {
        true => Err(BackupError::Refused(format!(
            "--at: the log would end at {end}; the backup begins behind {begins}, and what must stand of before was carried forward up \
             to message {carried}: name that or a later one"
        ))),
        false => Ok(()),
    }
}

/// Returns the configuration of the restored log: without a limit that trimmed it when it was kept, and trimmed no
/// farther than it goes.
pub fn config(kept: &Value, first: u64, through: u64) -> Value {
    let mut config = unlimited(kept).unwrap_or_else(|| kept.clone());
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(trimmed) = metadata.remove(TRIMMED)
        && let Some(trimmed) = trimmed.as_str().and_then(|trimmed| trimmed.parse::<u64>().ok())
        && first > 1
    {
        metadata.insert(TRIMMED.to_owned(), json!(trimmed.min(through).to_string()));
    }
    config
}

#[cfg(test)]
mod tests {
    use kairo_core::bus::provision::TRIMMING;

    use super::*;

    #[test]
    fn a_log_is_restored_without_its_limit_and_as_trimmed_as_what_there_is_of_it() {
        let kept = json!({
            "max_msgs": 9, "discard": "old",
            "metadata": { TRIMMED: "70", TRIMMING: r#"{"max_msgs":-1,"discard":"new"}"# },
        });
        let restored = |first, through| config(&kept, first, through);
        let of_all = json!({ "max_msgs": -1, "discard": "new", "metadata": {} });
        assert_eq!(restored(1, 80), of_all, "nothing of it is gone");
        assert_eq!(restored(50, 80)["metadata"], json!({ TRIMMED: "70" }));
        assert_eq!(restored(50, 60)["metadata"], json!({ TRIMMED: "60" }));
    }
}
