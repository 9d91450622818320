//! `kairo export`: all that is held of a user as one document, written as its pages come.

use std::{
    fs::{self, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use jiff::Timestamp;
use kairo_core::ids::Name;
use kairo_proto::words::ExportSection;
use serde_json::{Value, json};

use super::{GatewaySession, name};
use crate::{Error, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo export --user ann -o ann.json
  kairo export --user ann | jq '.messages[] | .message.text'
  kairo export --user ann | jq '.counts'

It is for a person who asks what there is of them. One JSON document with a list for each section: threads, messages, tasks,
memories, inner_state (every time that a key was written), approvals, choices, briefings, plans, actions (the tools that were
called on their behalf, with arguments and results), processes, and model_calls. Each piece says where it came from: agent,
event_id, sequence in the log, thread_id. Images, audio and video are named by the digests of their bytes, with the url to fetch
them from (by GET, with an API key). Sections are in the order of the log.

A piece is `forgotten` if what it said is gone since `kairo forget` was run for the user; forgotten_through says up to where in
the log that was. What an agent wrote for all its users, in memories and inner state without a user, is nobody's, and is not
told. What was asked of the models, word for word, is not told either: see kairo state and kairo thoughts.

It takes an API key with the scope admin. A file is written for its owner alone (mode 0600), and is there once it is whole.
How far it is stands on standard error.

Exit status: 0 if the document is whole, else 1.";

/// The format of the document and its version.
const FORMAT: &str = "kairo.user/1";
/// Pieces of a page.
const PAGE: u32 = 200;
/// Number of pieces between two progress lines on standard error.
const TOLD: u64 = 5_000;

/// Write everything that is held of a user into one document, with where each piece came from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExportArgs {
    /// The user
    #[arg(long, value_name = "NAME", value_parser = name)]
    user: Name,
    /// File to write, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(arguments: ExportArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let pieces = match &arguments.output {
        None => {
            write_document(&arguments.user, session, &mut terminal::JsonOutput(BufWriter::new(io::stdout()))).await?
        }
        Some(path) => export_to_file(&arguments.user, session, path).await?,
    };
    writeln!(io::stderr(), "{pieces} pieces are held of {}", arguments.user)?;
    Ok(ExitCode::SUCCESS)
}

/// A file is there once it is whole, and nobody else may read it.
async fn export_to_file(user: &Name, session: &GatewaySession, path: &Path) -> Result<u64, Error> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    // One that was left behind may be readable by others.
    _ = fs::remove_file(&partial);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial);
    let mut file = BufWriter::new(file.map_err(Error::file("create", &partial))?);
    let written = write_document(user, session, &mut file).await;
    if written.is_err() {
        // What went wrong is said; that a piece of it stays is not worth more words.
        _ = fs::remove_file(&partial);
    }
    let pieces = written?;
    file.flush().and_then(|()| fs::rename(&partial, path)).map_err(Error::file("write", path))?;
    Ok(pieces)
}

/// Writes the document; how many pieces it has.
async fn write_document(user: &Name, session: &GatewaySession, out: &mut impl Write) -> Result<u64, Error> {
    let path = format!("v1/users/{user}/export");
    let mut document = UserDocument::new(out);
    let mut after = None::<String>;
    let mut told = 0;
    loop {
        let mut query = vec![("limit", PAGE.to_string())];
        query.extend(after.clone().map(|after| ("after", after)));
        let mut page: Value = session.client.get(&path, &query).await?;
        if after.is_none() {
            document.write_head(user, session.client.url(), &page)?;
        }
        let rows = page.get_mut("rows").and_then(Value::as_array_mut).map(std::mem::take);
        for row in session.require_field("rows", rows)? {
            document.add_piece(session.client.url(), row)?;
        }
        let pieces = document.piece_count();
        if pieces >= told + TOLD {
            told = pieces;
            writeln!(io::stderr(), "{pieces} pieces so far")?;
        }
        after = page.get("next_after").and_then(Value::as_str).map(str::to_owned);
        if after.is_none() {
            document.finish()?;
            return Ok(pieces);
        }
    }
}

/// The document as it is written: sections one after the other, each a list.
struct UserDocument<'o, W> {
    out: &'o mut W,
    /// The number of pieces in each section begun so far.
    counts: Vec<u64>,
}

impl<'o, W: Write> UserDocument<'o, W> {
    fn new(out: &'o mut W) -> Self {
        Self { out, counts: Vec::new() }
    }

    fn piece_count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Writes the head of the document: its format, user, gateway and time.
    fn write_head(&mut self, user: &Name, gateway: &str, page: &Value) -> io::Result<()> {
        let told = |field: &str| page.get(field).cloned().unwrap_or_default();
        let head = [
            ("format", json!(FORMAT)),
            ("user", json!(user)),
            ("gateway", json!(gateway)),
            ("exported_at", json!(Timestamp::now())),
            ("position", told("position")),
            ("forgotten_through", told("forgotten_through")),
        ];
        for (at, (field, value)) in head.into_iter().enumerate() {
            write!(self.out, "{}\n  \"{field}\": {value}", if at == 0 { "{" } else { "," })?;
        }
        Ok(())
    }

    /// Adds a piece to its section. Pieces come section by section, by [`ExportSection::WORDS`]; those of a section that a newer
    /// gateway has are left out.
    fn add_piece(&mut self, gateway: &str, mut piece: Value) -> io::Result<()> {
        let section = piece.as_object_mut().and_then(|piece| piece.remove("section"));
        let is_it = |word: &&str| section.as_ref().and_then(Value::as_str) == Some(*word);
        let Some(section) = ExportSection::WORDS.iter().position(is_it) else { return Ok(()) };
        self.open_section(section)?;
        add_object_urls(gateway, &mut piece);
        let Some(count) = self.counts.last_mut() else { return Ok(()) };
        write!(self.out, "{}\n    {piece}", if *count == 0 { "" } else { "," })?;
        *count += 1;
        Ok(())
    }

    /// Goes on to a section, past those that have nothing.
    fn open_section(&mut self, section: usize) -> io::Result<()> {
        for word in ExportSection::WORDS.iter().take(section + 1).skip(self.counts.len()) {
            let last = if self.counts.is_empty() { "" } else { "\n  ]" };
            write!(self.out, "{last},\n  \"{word}\": [")?;
            self.counts.push(0);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.open_section(ExportSection::WORDS.len() - 1)?;
        let counts: serde_json::Map<String, Value> = ExportSection::WORDS
            .iter()
            .zip(&self.counts)
            .map(|(word, count)| ((*word).to_owned(), json!(count)))
            .collect();
        writeln!(self.out, "\n  ],\n  \"counts\": {}\n}}", Value::Object(counts))?;
        self.out.flush()
    }
}

/// Says of images, audio and video where their bytes are.
fn add_object_urls(gateway: &str, piece: &mut Value) {
    let parts = piece.pointer_mut("/message/parts").and_then(Value::as_array_mut);
    for part in parts.into_iter().flatten() {
        let Some(digest) = part.get("digest").and_then(Value::as_str).map(str::to_owned) else { continue };
        if let Some(part) = part.as_object_mut() {
            part.insert("url".to_owned(), json!(format!("{gateway}/v1/objects/{digest}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: &str = "http://127.0.0.1:7420";

    fn document(pieces: &[Value]) -> Value {
        let mut out = Vec::new();
        let mut document = UserDocument::new(&mut out);
        let page = json!({ "position": 9, "forgotten_through": null });
        document.write_head(&Name::parse("ann").unwrap(), GATEWAY, &page).unwrap();
        for piece in pieces {
            document.add_piece(GATEWAY, piece.clone()).unwrap();
        }
        document.finish().unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_document_has_every_section_with_its_pieces() {
        let parts = json!([{ "digest": "0f", "media_type": "image/png" }]);
        let written = document(&[
            json!({ "section": "messages", "sequence": 1, "message": { "text": "a", "parts": parts } }),
            json!({ "section": "messages", "sequence": 2, "message": { "text": "b", "parts": [] } }),
            json!({ "section": "actions", "sequence": 3 }),
            json!({ "section": "of a newer gateway", "sequence": 4 }),
        ]);
        assert_eq!((&written["user"], &written["position"]), (&json!("ann"), &json!(9)));
        for section in ExportSection::WORDS {
            let pieces = written[section].as_array().unwrap().len();
            assert_eq!(written["counts"][section], json!(pieces), "{section}");
        }
        assert_eq!((written["messages"].as_array().unwrap().len(), &written["actions"][0]["sequence"]), (2, &json!(3)));
        let url = &written["messages"][0]["message"]["parts"][0]["url"];
        assert_eq!(url, "http://127.0.0.1:7420/v1/objects/0f");
    }

    #[test]
    fn a_document_of_nothing_is_one() {
        let written = document(&[]);
        assert!(ExportSection::WORDS.iter().all(|section| written[section] == json!([])));
    }
}
