//! Descriptions of incident files, for `kairo incident show` and after an export.

use std::path::Path;

use kairo_replay::incident::{
    Manifest,
    objects::{Objects, Reason},
};
use serde::Serialize;

use crate::{Error, event_lines::printable, terminal};

/// Digests of missing objects that people are shown.
const SHOWN: usize = 10;

#[derive(Serialize)]
struct ManifestSummary<'m> {
    file: &'m Path,
    #[serde(flatten)]
    manifest: &'m Manifest,
}

pub fn print_manifest(manifest: &Manifest, path: &Path, json: bool) -> Result<(), Error> {
    if json {
        return Ok(terminal::json(&ManifestSummary { file: path, manifest })?);
    }
    let Manifest { version, format, agent, messages, decisions, around, redacted, .. } = manifest;
    let path = path.display().to_string();
    terminal::line(format!("{}: {messages} messages of {agent}, {decisions} decisions", printable(&path)))?;
    terminal::line(format!("  exported by version {}, in format {format}", printable(version)))?;
    if let Some(at) = around {
        terminal::line(format!("  around message {at}"))?;
    }
    if *redacted {
        terminal::line("  redacted: tokens stand for what is personal or secret")?;
    }
    Ok(format_counts(manifest).into_iter().try_for_each(terminal::line)?)
}

/// Returns lines on the replacements by kind and on the objects.
pub fn format_counts(manifest: &Manifest) -> Vec<String> {
    let replaced = manifest.replaced.iter().map(|(kind, count)| format!("  {count} {}", printable(kind)));
    replaced.chain(manifest.objects.iter().flat_map(format_objects)).collect()
}

fn format_objects(objects: &Objects) -> Vec<String> {
    let Objects { count, bytes, missing, missing_digests, left_out, .. } = objects;
    let mut lines = Vec::new();
    if *count > 0 {
        lines.push(format!("  {}, {bytes} bytes", object_count(*count)));
    }
    if *missing > 0 {
        lines.push(format!("  {} missing: no longer stored", object_count(*missing)));
        lines.extend(missing_digests.iter().take(SHOWN).map(|digest| format!("    {}", printable(digest))));
    }
    lines.extend(left_out.map(|left_out| {
        let because = match left_out.because {
            Reason::Unwanted => "as was asked for",
            Reason::Redacted => "images, audio and video cannot be redacted",
            Reason::NotAtHand => "the log was read from a file that has none",
        };
        format!("  {} left out: {because}", object_count(left_out.count))
    }));
    lines
}

fn object_count(count: u64) -> String {
    match count {
        1 => "1 object".to_owned(),
        count => format!("{count} objects"),
    }
}
