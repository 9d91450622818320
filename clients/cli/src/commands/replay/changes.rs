//! Changes to replay decisions with: a prompt, a catalogue and limits, as the command line names them.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use clap::Args;
use kairo_mind::{
    replay::changes::{ReplayChanges, ReplayLimit},
    request::Tool,
};
use kairo_proto::{Body, v1::ToolCatalogue};
use serde_json::{Value, json};

use crate::Error;

/// Largest file of a prompt or a catalogue, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;
/// Highest value of a limit.
const HIGHEST: u32 = 10_000;

/// Make the decisions again with something else than the log says
#[derive(Clone, Debug, Default, Args)]
pub struct ReplayChangeOptions {
    /// The prompt of the agents that are looked at, from this file
    #[arg(long, value_name = "FILE")]
    prompt: Option<PathBuf>,
    /// The tools there are, from this JSON file: a list of tools, or a catalogue as `kairo events --json` shows it
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// A limit of deciding: max_steps, model_tries, outage_tries, parallel_tools, chain_steps or listed_tools; can be repeated
    #[arg(long = "limit", value_parser = limit, value_name = "NAME=NUMBER")]
    limits: Vec<(ReplayLimit, u32)>,
}

impl ReplayChangeOptions {
    /// Reads what they name.
    pub fn load(&self) -> Result<ReplayChanges, Error> {
        let prompt = self.prompt.as_deref().map(read_trimmed_text).transpose()?;
        let tools = self.catalogue.as_deref().map(read_tools).transpose()?;
        Ok(ReplayChanges { prompt, tools, limits: self.limits.clone() })
    }

    /// Returns the options as command-line arguments for another build.
    pub fn to_arguments(&self) -> Vec<std::ffi::OsString> {
        let file = |name: &str, path: &Option<PathBuf>| match path {
            Some(path) => vec![name.into(), path.clone().into_os_string()],
            None => Vec::new(),
        };
        let limits = self.limits.iter().map(|(limit, value)| format!("--limit={}={value}", limit.name()).into());
        let named = [file("--prompt", &self.prompt), file("--catalogue", &self.catalogue)].concat();
        named.into_iter().chain(limits).collect()
    }
}

/// Reads the text of a file, without the line end that editors put there.
pub(in crate::commands) fn read_trimmed_text(path: &Path) -> Result<String, Error> {
    read_text(path).map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The text of a file of a bounded size.
pub(in crate::commands) fn read_text(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    match read.map_err(Error::unreadable(path))? as u64 > LARGEST {
        true => Err(Error::Usage(format!("{}: expected at most {LARGEST} bytes", path.display()))),
        false => Ok(text),
    }
}

fn read_tools(path: &Path) -> Result<Vec<Tool>, Error> {
    let wrong = |why: String| {
        Error::Usage(format!(
            "{}: expected a JSON list of tools with name, description and schema, or a catalogue: {why}",
            path.display()
        ))
    };
    let read: Value = serde_json::from_str(&read_text(path)?).map_err(|error| wrong(error.to_string()))?;
    let read = if read.is_array() { json!({ "tools": read }) } else { read };
    let body = Body::read_strictly(ToolCatalogue::TYPE, read.to_string().as_bytes());
    let catalogue = ToolCatalogue::try_from(body.map_err(|error| wrong(error.to_string()))?);
    let tools = catalogue.map(|catalogue| catalogue.tools).unwrap_or_default();
    for tool in &tools {
        let schema: Result<Value, _> = serde_json::from_str(&tool.schema);
        if tool.name.is_empty() || !schema.is_ok_and(|schema| schema.is_object()) {
            return Err(wrong(format!("tool {:?}: expected a name, and a schema that is JSON as text", tool.name)));
        }
    }
    Ok(tools.into_iter().map(Tool::from).collect())
}

/// For clap.
fn limit(text: &str) -> Result<(ReplayLimit, u32), String> {
    let names = ReplayLimit::ALL.map(ReplayLimit::name).join(", ");
    let expected = || format!("expected one of {names}, = and a number from 1 to {HIGHEST}, such as max_steps=5");
    let (name, value) = text.split_once('=').ok_or_else(expected)?;
    let limit = ReplayLimit::ALL.into_iter().find(|limit| limit.name() == name.trim()).ok_or_else(expected)?;
    let value = value.trim().parse().ok().filter(|value| (1..=HIGHEST).contains(value));
    Ok((limit, value.ok_or_else(expected)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_known_and_within_bounds() {
        assert_eq!(limit("max_steps=5"), Ok((ReplayLimit::MaxSteps, 5)));
        for wrong in ["max_steps", "max_stepz=5", "max_steps=0", "max_steps=10001", "max_steps=many"] {
            assert!(limit(wrong).unwrap_err().contains("such as max_steps=5"), "{wrong}");
        }
    }

    #[test]
    fn a_catalogue_is_a_list_of_tools_or_one_of_the_log_and_mistakes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tools.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_tools(&path).map(|tools| tools.len()).map_err(|error| error.to_string())
        };
        let tool = r#"{ "name": "tools.now", "description": "the time", "schema": "{}" }"#;
        assert_eq!(read(&format!("[{tool}]")), Ok(1));
        assert_eq!(read(&format!(r#"{{ "version": "c2", "tools": [{tool}, {tool}] }}"#)), Ok(2));
        for (text, named) in
            [("{", "EOF"), (r#"[{ "nmae": "x" }]"#, "nmae"), (r#"[{ "name": "x", "schema": "no" }]"#, "tool \"x\"")]
        {
            let error = read(text).unwrap_err();
            assert!(error.contains(named) && error.contains("tools.json"), "{error}");
        }
    }
}
