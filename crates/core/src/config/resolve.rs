//! Lays the settings over the defaults and finds every mistake. Pure: what it reads is passed in.

use std::{collections::BTreeMap, io};

use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::{
    LoadedConfig,
    leniency::Leniency,
    mistake::{ConfigError, ConfigOrigin, Mistake, Validate},
    secret::REDACTED,
    sources::{ConfigFile, ConfigSetting, from_environment, from_file},
};

/// The beginning of serde's error for a field that a type does not have.
const UNKNOWN: &str = "unknown field";

/// As [`load`](super::load), with the file's text at hand; `read_file` is asked for `file:PATH`
/// secrets only. What is unknown is passed over at `now` if the settings say so.
///
/// # Errors
/// [`ConfigError`] names every mistake of every source.
pub fn resolve<T>(
    file: Option<&ConfigFile>,
    environment: &BTreeMap<String, String>,
    read_file: &dyn Fn(&str) -> io::Result<String>,
    now: Timestamp,
) -> Result<LoadedConfig<T>, ConfigError>
where
    T: Serialize + DeserializeOwned + Default + Validate,
{
    let defaults = to_tree(&T::default())?;
    let mut mistakes = Vec::new();
    let mut settings = file.map_or_else(Vec::new, |f| from_file(f, &defaults, &mut mistakes));
    settings.extend(from_environment(environment, &defaults, &mut mistakes));

    let leniency = Leniency::from_settings(&settings, now);

    let defaults = Value::Object(defaults);
    let (config, mut merged) = fit_settings::<T>(&defaults, &mut settings, leniency, &mut mistakes)?;
    let written = Value::Object(to_tree(&config)?);
    report_unread(&settings, &merged, &written, &mut mistakes);

    let mut references =
        SecretReferences { environment, read_file, settings: &settings, mistakes: &mut mistakes, followed: false };
    references.resolve_value(&mut merged, &written, &mut Vec::new());
    let config = if references.followed {
        serde_path_to_error::deserialize(&merged).map_err(|e| defect_error(e.inner()))?
    } else {
        config
    };

    report_invalid(&config, &settings, &mut mistakes);
    let (passed_over, mistakes) = leniency.split_mistakes(mistakes);
    if mistakes.is_empty() { Ok(LoadedConfig { config, passed_over }) } else { Err(ConfigError::from(mistakes)) }
}

fn to_tree<T: Serialize>(config: &T) -> Result<Map<String, Value>, ConfigError> {
    match serde_json::to_value(config) {
        Ok(Value::Object(sections)) => Ok(sections),
        Ok(_) => Err(defect_error(&"the configuration type is not a struct")),
        Err(error) => Err(defect_error(&error)),
    }
}

fn defect_error(reason: &dyn std::fmt::Display) -> ConfigError {
    let problem = format!("the program's own defaults cannot be used: {reason}");
    ConfigError::from(vec![Mistake::new("", problem, "report this as a defect")])
}

/// Deserialises, and when that fails, takes the guilty setting's next reading or else reports it
/// and goes on without it, until the rest fits. Every round uses up a reading, so it ends.
fn fit_settings<T: DeserializeOwned>(
    defaults: &Value,
    settings: &mut Vec<ConfigSetting>,
    leniency: Leniency,
    mistakes: &mut Vec<Mistake>,
) -> Result<(T, Value), ConfigError> {
    loop {
        let merged = merge_settings(defaults, settings.iter());
        let error = match serde_path_to_error::deserialize::<_, T>(&merged) {
            Ok(config) => return Ok((config, merged)),
            Err(error) => error,
        };
        let at = path_parts(error.path());
        let culprits = find_culprits::<T>(defaults, settings, &at);
        if culprits.is_empty() {
            mistakes.extend(defect_error(error.inner()).into_mistakes());
            return Err(ConfigError::from(std::mem::take(mistakes)));
        }
        let message = error.inner().to_string();
        if leniency == Leniency::InForce
            && message.starts_with(UNKNOWN)
            && let [culprit] = culprits[..]
            && let Some(setting) = settings.get_mut(culprit)
            && setting.leave_out(&at)
        {
            let unknown = Mistake::unknown_key(join_key(&at), &[]);
            mistakes.push(unknown.with_origin(setting.origin.clone()));
            continue;
        }
        for &i in &culprits {
            // What is wrong with the likeliest reading explains more than the last resort's.
            if let Some(setting) = settings.get_mut(i).filter(|s| s.first_misfit.is_none()) {
                setting.first_misfit = Some(describe_misfit(&at, setting, &message, defaults, leniency));
            }
        }
        let has_more = |&i: &usize| settings.get(i).is_some_and(|s| s.readings.len() > 1);
        match culprits.iter().copied().find(has_more) {
            Some(i) => drop(settings.get_mut(i).map(|s| s.readings.remove(0))),
            None => {
                for i in culprits.into_iter().rev() {
                    mistakes.extend(settings.remove(i).first_misfit);
                }
            }
        }
    }
}

/// The settings, by index, that the error at `at` comes from: the innermost that contains it, the
/// last source winning as in [`merge_settings`]. Where serde lost the way (in `flatten` and tagged enums),
/// those beneath `at` that fail on their own, or else all of them.
fn find_culprits<T: DeserializeOwned>(defaults: &Value, settings: &[ConfigSetting], at: &[String]) -> Vec<usize> {
    let containing = settings.iter().enumerate();
    let containing = containing.filter(|(_, setting)| at.starts_with(&setting.path));
    if let Some((i, _)) = containing.max_by_key(|(_, setting)| setting.path.len()) {
        return vec![i];
    }
    let beneath = settings.iter().enumerate();
    let beneath = beneath.filter(|(_, setting)| setting.path.starts_with(at));
    let fails_alone = |setting| T::deserialize(merge_settings(defaults, [setting])).is_err();
    let (guilty, suspect): (Vec<_>, Vec<_>) = beneath.partition(|(_, s)| fails_alone(*s));
    let found = if guilty.is_empty() { suspect } else { guilty };
    found.into_iter().map(|(i, _)| i).collect()
}

fn merge_settings<'a>(defaults: &Value, settings: impl IntoIterator<Item = &'a ConfigSetting>) -> Value {
    let mut merged = defaults.clone();
    for setting in settings {
        if let Some(value) = setting.readings.first() {
            let place = setting.path.iter().fold(&mut merged, |place, key| {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                // Indexing a mutable object inserts what is missing, and it is an object.
                #[allow(clippy::indexing_slicing)]
                &mut place[key]
            });
            *place = value.clone();
        }
    }
    merged
}

fn describe_misfit(
    at: &[String],
    setting: &ConfigSetting,
    message: &str,
    defaults: &Value,
    leniency: Leniency,
) -> Mistake {
    let missing = message.starts_with("missing field");
    let path = if missing || at.len() > setting.path.len() { at } else { &setting.path };
    let mistake = if message.starts_with(UNKNOWN) {
        // Where only a part of the setting is unknown, all of it is left out now, which nobody is lenient about.
        let is_unknown = at == setting.path || leniency != Leniency::InForce;
        Mistake { is_unknown, ..Mistake::unknown_key(join_key(path), &sibling_keys(defaults, path)) }
    } else {
        let advice = match setting.origin {
            ConfigOrigin::Variable(_) => "correct or unset it (lists are comma separated, other lists and tables JSON)",
            _ => "correct it, or leave it out for the default",
        };
        Mistake::new(join_key(path), without_value(message), advice)
    };
    mistake.with_origin(setting.origin.clone())
}

/// Serde's message less the value it quotes, which may be a secret under a wrong key. The expected
/// part comes last and from the type, so cutting at the last mark leaves nothing of the value.
fn without_value(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    match found.split_once(": ") {
        Some(("invalid type" | "invalid value", found)) => {
            let kind = found.split(['`', '"']).next().unwrap_or_default();
            format!("expected {expected}, found {}", kind.trim())
        }
        _ => format!("expected {expected}"),
    }
}

/// Reports every key whose value did not come back when the configuration was written out again:
/// no field took it.
fn report_unread(settings: &[ConfigSetting], merged: &Value, written: &Value, mistakes: &mut Vec<Mistake>) {
    let mut unread = Vec::new();
    find_unread(merged, written, &mut Vec::new(), &mut unread);
    for (path, known) in unread {
        let related = |s: &&ConfigSetting| s.path.starts_with(&path) || path.starts_with(&s.path);
        for setting in settings.iter().filter(related) {
            let mistake = Mistake::unknown_key(join_key(&path), &known);
            mistakes.push(mistake.with_origin(setting.origin.clone()));
        }
    }
}

fn find_unread(given: &Value, written: &Value, path: &mut Vec<String>, unread: &mut Vec<(Vec<String>, Vec<String>)>) {
    each_child(given, |name, given| {
        path.push(name.to_owned());
        match (child_of(written, name), written) {
            (Some(written), _) => find_unread(given, written, path, unread),
            (None, Value::Object(fields)) => {
                unread.push((path.clone(), fields.keys().cloned().collect()));
            }
            // The field reads this shape and writes another.
            (None, _) => {}
        }
        path.pop();
    });
}

/// Replaces `env:NAME` and `file:PATH` by what they refer to, in the values that were written out
/// redacted: only a [`Secret`](super::Secret) is.
struct SecretReferences<'a> {
    environment: &'a BTreeMap<String, String>,
    read_file: &'a dyn Fn(&str) -> io::Result<String>,
    settings: &'a [ConfigSetting],
    mistakes: &'a mut Vec<Mistake>,
    followed: bool,
}

impl SecretReferences<'_> {
    fn resolve_value(&mut self, given: &mut Value, written: &Value, path: &mut Vec<String>) {
        match given {
            Value::String(text) if written == REDACTED => match self.read_target(text) {
                Some(Ok(target)) => {
                    target.trim_end_matches(['\r', '\n']).clone_into(text);
                    self.followed = true;
                }
                Some(Err(problem)) => {
                    let advice = "provide it, or leave the key out for the default";
                    let mistake = Mistake::new(join_key(path), problem, advice);
                    self.mistakes.push(mistake.with_origin(origin_of(self.settings, path)));
                }
                None => {}
            },
            Value::Object(fields) => {
                for (name, given) in fields {
                    self.resolve_child(name, given, written, path);
                }
            }
            Value::Array(items) => {
                for (i, given) in items.iter_mut().enumerate() {
                    self.resolve_child(&i.to_string(), given, written, path);
                }
            }
            _ => {}
        }
    }

    fn resolve_child(&mut self, name: &str, given: &mut Value, written: &Value, path: &mut Vec<String>) {
        if let Some(written) = child_of(written, name) {
            path.push(name.to_owned());
            self.resolve_value(given, written, path);
            path.pop();
        }
    }

    fn read_target(&self, text: &str) -> Option<Result<String, String>> {
        if let Some(name) = text.strip_prefix("env:") {
            let value = self.environment.get(name).filter(|value| !value.is_empty());
            Some(value.cloned().ok_or_else(|| format!("refers to {name}, which is not set")))
        } else {
            let path = text.strip_prefix("file:")?;
            Some((self.read_file)(path).map_err(|e| format!("refers to {path}, unreadable: {e}")))
        }
    }
}

/// Adds what the type's [`Validate`] finds, except about keys that are already reported: those
/// still have their defaults.
fn report_invalid<T: Validate>(config: &T, settings: &[ConfigSetting], mistakes: &mut Vec<Mistake>) {
    for found in config.mistakes() {
        if !mistakes.iter().any(|known| known.key == found.key) {
            let path: Vec<String> = found.key.split('.').map(str::to_owned).collect();
            let origin = origin_of(settings, &path);
            mistakes.push(found.with_origin(origin));
        }
    }
}

/// The source that has the last word on `path`.
fn origin_of(settings: &[ConfigSetting], path: &[String]) -> ConfigOrigin {
    let related = |s: &&ConfigSetting| path.starts_with(&s.path) || s.path.starts_with(path);
    let last = settings.iter().rev().find(related);
    last.map_or(ConfigOrigin::Default, |setting| setting.origin.clone())
}

fn each_child(value: &Value, mut visit: impl FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| visit(name, value)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(i, value)| visit(&i.to_string(), value));
        }
        _ => {}
    }
}

fn child_of<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    }
}

/// The keys beside `path` in the defaults, which are those that the struct has.
fn sibling_keys(defaults: &Value, path: &[String]) -> Vec<String> {
    let parents = path.split_last().map_or(&[][..], |(_, parents)| parents);
    let parent = parents.iter().try_fold(defaults, |value, name| child_of(value, name));
    match parent {
        Some(Value::Object(fields)) => fields.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

fn path_parts(path: &serde_path_to_error::Path) -> Vec<String> {
    let parts = path.iter().map_while(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    });
    parts.collect()
}

fn join_key(path: &[String]) -> String {
    path.join(".")
}
