//! Command line, file and environment, taken apart into settings. Pure: texts come in.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    SECTIONS,
    mistake::{ConfigOrigin, Mistake},
};

const PREFIX: &str = "KAIRO_";
const SEPARATOR: &str = "__";

/// A configuration file's name, for error texts, and its text.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    /// As the user gave it.
    pub name: String,
    /// TOML.
    pub text: String,
}

/// A value that a source provides for a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConfigSetting {
    pub origin: ConfigOrigin,
    pub path: Vec<String>,
    /// Possible readings of the value, likeliest first; never empty. A variable is only text, so the
    /// right reading is known once one fits its field.
    pub readings: Vec<Value>,
    /// The reason that the first reading did not fit, once it has been tried.
    pub first_misfit: Option<Mistake>,
}

impl ConfigSetting {
    fn new(origin: ConfigOrigin, path: Vec<String>, readings: Vec<Value>) -> Self {
        Self { origin, path, readings, first_misfit: None }
    }

    /// Takes out what lies at `at` within its likeliest reading. False if that is all of it, or not there.
    pub fn leave_out(&mut self, at: &[String]) -> bool {
        let within = at.strip_prefix(self.path.as_slice()).and_then(<[String]>::split_last);
        let (Some((field, parents)), Some(reading)) = (within, self.readings.first_mut()) else { return false };
        let parent = parents.iter().try_fold(reading, |value, name| match value {
            Value::Object(fields) => fields.get_mut(name),
            Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
            _ => None,
        });
        parent.and_then(Value::as_object_mut).is_some_and(|fields| fields.remove(field).is_some())
    }
}

/// The file that `--config` names, and what is wrong with the arguments.
pub(super) fn config_argument(args: impl IntoIterator<Item = String>) -> (Option<String>, Vec<Mistake>) {
    let mut args = args.into_iter();
    let mut named = None;
    let mut mistakes = Vec::new();
    let mut refuse = |problem: String| {
        let mistake = Mistake::new("", problem, "use --config FILE");
        mistakes.push(mistake.with_origin(ConfigOrigin::Arguments));
    };
    while let Some(arg) = args.next() {
        if let Some(name) = arg.strip_prefix("--config=") {
            named = Some(name.to_owned());
        } else if arg == "--config" {
            named = args.next();
            if named.is_none() {
                refuse("--config is not followed by a file name".to_owned());
            }
        } else {
            // A stray argument may be anything, so only an option's name is repeated.
            let option = arg.split('=').next().filter(|name| name.starts_with("--"));
            refuse(match option {
                Some(name) => format!("the option {name} is unknown"),
                None => "an argument is unknown".to_owned(),
            });
        }
    }
    (named, mistakes)
}

/// The settings in `file`, as far as they are for a service of these `defaults`.
pub(super) fn from_file(
    file: &ConfigFile,
    defaults: &Map<String, Value>,
    mistakes: &mut Vec<Mistake>,
) -> Vec<ConfigSetting> {
    let origin = ConfigOrigin::File(file.name.clone());
    let mut settings = Vec::new();
    let table = match file.text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => {
            // Not the error's `Display`, which shows the line, with a secret perhaps.
            let before = error.span().and_then(|span| file.text.get(..span.start));
            let line = before.map_or(1, |text| text.matches('\n').count() + 1);
            let problem = format!("line {line} is not TOML: {}", error.message());
            let mistake = Mistake::new("", problem, "correct that line");
            mistakes.push(mistake.with_origin(origin));
            return settings;
        }
    };
    for (section, value) in table {
        match section_owner(&section, defaults) {
            SectionOwner::This => {
                let default = defaults.get(&section);
                split_table(&origin, vec![section], toml_to_json(value), default, &mut settings);
            }
            SectionOwner::Another => {}
            SectionOwner::Nobody => mistakes.push(unknown_section(section, origin.clone())),
        }
    }
    settings
}

/// The settings among the variables, as far as they are for a service of these `defaults`.
pub(super) fn from_environment(
    environment: &BTreeMap<String, String>,
    defaults: &Map<String, Value>,
    mistakes: &mut Vec<Mistake>,
) -> Vec<ConfigSetting> {
    let mut settings = Vec::new();
    for (name, text) in environment {
        let upper = name.to_ascii_uppercase();
        let Some(path) = upper.strip_prefix(PREFIX) else {
            continue;
        };
        if text.is_empty() || !path.contains(SEPARATOR) {
            continue;
        }
        let origin = ConfigOrigin::Variable(name.clone());
        let path: Vec<String> = path.split(SEPARATOR).map(str::to_ascii_lowercase).collect();
        let section = path.first().map_or("", String::as_str);
        if path.iter().any(String::is_empty) {
            let problem = "is not a key: a part of it is empty";
            let advice = "name it KAIRO_<SECTION>__<KEY>";
            mistakes.push(Mistake::new(path.join("."), problem, advice).with_origin(origin));
            continue;
        }
        match section_owner(section, defaults) {
            SectionOwner::This => settings.push(ConfigSetting::new(origin, path, possible_readings(text))),
            SectionOwner::Another => {}
            SectionOwner::Nobody => mistakes.push(unknown_section(section, origin)),
        }
    }
    settings
}

enum SectionOwner {
    This,
    Another,
    Nobody,
}

fn section_owner(section: &str, defaults: &Map<String, Value>) -> SectionOwner {
    if defaults.contains_key(section) {
        SectionOwner::This
    } else if SECTIONS.contains(&section) {
        SectionOwner::Another
    } else {
        SectionOwner::Nobody
    }
}

fn unknown_section(section: impl Into<String>, origin: ConfigOrigin) -> Mistake {
    let known = SECTIONS.join(", ");
    let advice = format!("remove it, or use one of: {known}");
    Mistake { is_unknown: true, ..Mistake::new(section, "is not a known section", advice) }.with_origin(origin)
}

/// Splits a table into one setting per key, so that each mistake is found on its own, but only as
/// deep as the default is a struct: what the type makes of a map, a list or an optional table is
/// for serde to say.
fn split_table(
    origin: &ConfigOrigin,
    path: Vec<String>,
    value: Value,
    default: Option<&Value>,
    settings: &mut Vec<ConfigSetting>,
) {
    match (value, default) {
        (Value::Object(table), Some(Value::Object(fields))) if !fields.is_empty() => {
            for (key, value) in table {
                let mut path = path.clone();
                path.push(key.clone());
                split_table(origin, path, value, fields.get(&key), settings);
            }
        }
        (value, _) => settings.push(ConfigSetting::new(origin.clone(), path, vec![value])),
    }
}

/// JSON other than a string, then the text itself, then a comma separated list.
fn possible_readings(text: &str) -> Vec<Value> {
    let json = serde_json::from_str(text).ok().filter(|value: &Value| !value.is_string());
    let list = text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(Value::from).collect();
    let mut readings: Vec<Value> = json.into_iter().collect();
    readings.extend([Value::from(text), list]);
    readings
}

fn toml_to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(flag) => Value::from(flag),
        toml::Value::Datetime(time) => Value::from(time.to_string()),
        toml::Value::Array(items) => items.into_iter().map(toml_to_json).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(k, v)| (k, toml_to_json(v))).collect(),
    }
}
