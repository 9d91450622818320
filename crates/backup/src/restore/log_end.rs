//! The end of a restored log, and its configuration then.

use std::path::Path;

use kairo_core::{
    bus::provision::{TRIMMED, topology::config_without_trim_limit},
    carry_forward::CARRIED,
};
use serde_json::{Value, json};

use super::RestorePoint;
use crate::{
    error::BackupError,
    manifest::{LOG, Manifest},
    message_line::MessageLine,
    restore_plan::Cut,
    segments::SegmentLines,
};

/// The last message that is wanted.
///
/// # Errors
/// If the backup has no such end, or the log would not have all that must stand.
pub fn find_cut(path: &Path, manifest: &Manifest, at: RestorePoint) -> Result<Cut, BackupError> {
    let is_wanted = |line: &MessageLine| match at {
        RestorePoint::Sequence(sequence) => line.sequence <= sequence,
        RestorePoint::Time(time) => line.stored <= time,
    };
    let through = manifest.log_end();
    if let RestorePoint::Sequence(beyond) = at
        && beyond > through
    {
        return Err(BackupError::Refused(format!("--at {beyond}: the backup holds the log up to {through}")));
    }
    let files = manifest.stream_files(LOG.name);
    // In files before the last one whose first message is wanted, all are.
    let mut last = None;
    for file in files.iter().rev() {
        for line in SegmentLines::new(path, vec![file.clone()]) {
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
    check_carried_messages(path, manifest, last.sequence)?;
    Ok(last)
}

/// Checks that a log that ends there has all that must stand: in one trimmed before the backup was begun, all messages
/// carried forward.
fn check_carried_messages(path: &Path, manifest: &Manifest, end: u64) -> Result<(), BackupError> {
    let begins = manifest.begins_behind();
    let first = manifest.parts.first().and_then(|part| part.streams.get(LOG.name)).filter(|_| begins > 0);
    let mut carried = 0;
    for line in first.into_iter().flat_map(|log| SegmentLines::new(path, log.files.clone())) {
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
pub fn restored_config(kept: &Value, first: u64, through: u64) -> Value {
    let mut config = config_without_trim_limit(kept).unwrap_or_else(|| kept.clone());
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
        let restored = |first, through| restored_config(&kept, first, through);
        let of_all = json!({ "max_msgs": -1, "discard": "new", "metadata": {} });
        assert_eq!(restored(1, 80), of_all, "nothing of it is gone");
        assert_eq!(restored(50, 80)["metadata"], json!({ TRIMMED: "70" }));
        assert_eq!(restored(50, 60)["metadata"], json!({ TRIMMED: "60" }));
    }
}
