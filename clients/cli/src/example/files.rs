//! The examples' files, which are part of this program, and what becomes of them on disk.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use include_dir::{Dir, include_dir};
use jiff::Zoned;
use serde_json::Value;

use super::{conversation::Conversation, template::render};
use crate::Error;

static EXAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../examples");

/// The examples in the order in which they are told about.
pub const NAMES: [&str; 11] = [
    "morning",
    "launch",
    "meeting",
    "research",
    "journal",
    "automation",
    "team",
    "council",
    "composite",
    "reflect",
    "incident",
];

/// An example, its dates filled in.
#[derive(Clone, Debug)]
pub struct Example {
    pub name: &'static str,
    /// When and where it takes place.
    pub now: Zoned,
    /// The definition of its agent, or of its team, as the gateway takes it.
    pub profile: Value,
    /// The definitions of the agents that it is composed of.
    pub members: Vec<Value>,
    /// True if `profile` defines a team.
    pub is_team: bool,
    /// Settings of services that it takes, by the names of environment variables.
    pub settings: BTreeMap<String, String>,
    pub conversation: Conversation,
    /// For the model simulator.
    pub scenario: String,
    /// The files in its agent's folder: paths below it, and contents.
    pub workspace: Vec<(PathBuf, String)>,
    /// The files for the commands that are run when the conversation is over.
    pub investigation: Vec<(PathBuf, String)>,
    /// Mails that arrive later.
    pub incoming: Vec<(String, String)>,
    /// The results of the stand-in for a web search; `None` if the example searches nothing.
    pub web: Option<Value>,
}

impl Example {
    /// The example of this name, as it takes place at `now` in `now`'s zone.
    pub fn open(name: &str, now: &Zoned) -> Result<Self, Error> {
        let Some((name, folder)) = NAMES.iter().find(|known| **known == name).zip(EXAMPLES.get_dir(name)) else {
            let known = NAMES.join(", ");
            return Err(Error::Advice(format!("there is no example {name:?}; there are {known}")));
        };
        let text = |file: &str| {
            let found = folder.get_file(folder.path().join(file)).and_then(|file| file.contents_utf8());
            found.ok_or_else(|| Error::Advice(format!("the example {name} has no {file}")))
        };
        let filled_in = |file: &str| render(&format!("{name}/{file}"), text(file)?, now);
        let has = |file: &str| folder.get_file(folder.path().join(file)).is_some();
        let is_team = has("team.yaml");
        let profile = if is_team { "team.yaml" } else { "agent.yaml" };
        Ok(Self {
            name,
            now: now.clone(),
            profile: yaml(name, profile, &filled_in(profile)?)?,
            members: read_tree(folder, "members", now)?
                .into_iter()
                .map(|(path, text)| yaml(name, &path.display().to_string(), &text))
                .collect::<Result<_, _>>()?,
            is_team,
            settings: match has("settings.yaml") {
                true => yaml(name, "settings.yaml", &filled_in("settings.yaml")?)?,
                false => BTreeMap::new(),
            },
            conversation: yaml(name, "conversation.yaml", &filled_in("conversation.yaml")?)?,
            scenario: text("scenario.yaml")?.to_owned(),
            workspace: read_tree(folder, "workspace", now)?,
            investigation: read_tree(folder, "investigation", now)?,
            incoming: read_tree(folder, "incoming", now)?
                .into_iter()
                .map(|(path, text)| (path.display().to_string(), text))
                .collect(),
            web: match has("web.yaml") {
                true => Some(yaml(name, "web.yaml", &filled_in("web.yaml")?)?),
                false => None,
            },
        })
    }

    /// Its agent; of a team, the one that leads it.
    pub fn agent(&self) -> &str {
        let name = if self.is_team { "team" } else { "agent" };
        self.profile.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its zone.
    pub fn zone(&self) -> &str {
        self.now.time_zone().iana_name().unwrap_or("UTC")
    }

    /// Writes what the agent finds in its folder below `root`; returns that folder.
    pub fn write_workspace(&self, root: &Path) -> Result<PathBuf, Error> {
        let folder = root.join(self.agent());
        write_files(&folder, &self.workspace)?;
        for part in ["mail/new", "mail/cur", "mail/tmp"] {
            create_folder(&folder.join(part))?;
        }
        Ok(folder)
    }

    /// Writes what commands find that are run when the conversation is over below `root`; returns the folder to run them in.
    pub fn write_investigation(&self, root: &Path) -> Result<PathBuf, Error> {
        let folder = root.join("investigation");
        write_files(&folder, &self.investigation)?;
        Ok(folder)
    }

    /// Delivers a mail as mail servers do: it is written elsewhere and appears at once and whole.
    pub fn deliver(&self, folder: &Path, mail: &str) -> Result<(), Error> {
        let Some((name, text)) = self.incoming.iter().find(|(name, _)| name == mail) else {
            return Err(Error::Advice(format!("the example {} has no incoming/{mail}", self.name)));
        };
        let written = folder.join("mail/tmp").join(name);
        let delivered = folder.join("mail/new").join(name);
        write(&written, text)?;
        fs::rename(&written, &delivered).map_err(Error::file("deliver", delivered.clone()))
    }
}

/// The first line of an example's README that is not its title.
pub fn readme_summary(name: &str) -> &'static str {
    let readme = EXAMPLES.get_file(format!("{name}/README.md")).and_then(|file| file.contents_utf8());
    let lines = readme.into_iter().flat_map(str::lines);
    lines.map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default()
}

fn yaml<T: serde::de::DeserializeOwned>(name: &str, file: &str, text: &str) -> Result<T, Error> {
    serde_saphyr::from_str(text).map_err(|error| Error::Advice(format!("the example's file {name}/{file}: {error}")))
}

/// All files below a folder of an example, filled in.
fn read_tree(example: &Dir<'_>, below: &str, now: &Zoned) -> Result<Vec<(PathBuf, String)>, Error> {
    let root = example.path().join(below);
    let mut folders: Vec<_> = example.get_dir(&root).into_iter().collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        folders.extend(folder.dirs());
        for file in folder.files() {
            let name = file.path().display().to_string();
            let text = file.contents_utf8().ok_or_else(|| Error::Advice(format!("{name} is no text")))?;
            let path = file.path().strip_prefix(&root).unwrap_or(file.path());
            found.push((disk_path(path), render(&name, text, now)?));
        }
    }
    found.sort();
    Ok(found)
}

/// Mail that was read has a flag in its file's name, with a colon that not every file system can hold.
fn disk_path(path: &Path) -> PathBuf {
    match path.starts_with("mail/cur") {
        true => PathBuf::from(format!("{}:2,S", path.display())),
        false => path.to_owned(),
    }
}

/// Writes files into a folder, which is made.
fn write_files(folder: &Path, files: &[(PathBuf, String)]) -> Result<(), Error> {
    create_folder(folder)?;
    for (path, text) in files {
        let path = folder.join(path);
        create_folder(path.parent().unwrap_or(folder))?;
        write(&path, text)?;
    }
    Ok(())
}

/// Makes a folder that is its owner's alone, if it is not there.
fn create_folder(folder: &Path) -> Result<(), Error> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Error::file("create", folder))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    written.map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::template::morning;

    #[test]
    fn every_example_can_be_read_on_any_day() {
        let mut now = morning(jiff::Timestamp::now());
        for _ in 0..8 {
            for name in NAMES {
                let example = Example::open(name, &now).unwrap_or_else(|error| panic!("{error}"));
                assert!(!example.agent().is_empty() && !example.conversation.scenes.is_empty(), "{name}");
                let profile = if example.is_team { &example.profile["lead"] } else { &example.profile };
                assert_eq!(profile["time_zone"], example.zone());
                assert!(readme_summary(name).len() > 20, "{name}");
            }
            now = now.tomorrow().unwrap();
        }
        let unknown = Example::open("lunch", &now).unwrap_err().to_string();
        assert!(unknown.contains("morning, launch"), "{unknown}");
    }

    #[test]
    fn a_workspace_is_written_as_tools_read_it() {
        let now = morning(jiff::Timestamp::now());
        let example = Example::open("morning", &now).unwrap();
        let root = tempfile::tempdir().unwrap();
        let folder = example.write_workspace(root.path()).unwrap();
        assert!(folder.join("mail/new").is_dir());
        let written = fs::read_dir(folder.join("calendar")).unwrap().count();
        assert!(written > 0);
        let example = Example::open("automation", &now).unwrap();
        let folder = example.write_workspace(root.path()).unwrap();
        let (mail, _) = example.incoming.first().unwrap();
        example.deliver(&folder, mail).unwrap();
        assert!(folder.join("mail/new").join(mail).is_file() && !folder.join("mail/tmp").join(mail).exists());
        assert!(example.deliver(&folder, "nothing.eml").is_err());
    }
}
