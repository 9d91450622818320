//! Errors in a configuration, described so that users can fix them without reading the source.

use std::{
    fmt::{self, Display},
    io,
    ops::RangeInclusive,
};

/// The source of a configuration value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigOrigin {
    /// The struct's `Default`.
    Default,
    /// The command line.
    Arguments,
    /// The file of this name.
    File(String),
    /// The environment variable of this name.
    Variable(String),
}

impl Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("built-in default"),
            Self::Arguments => f.write_str("command line"),
            Self::File(name) | Self::Variable(name) => f.write_str(name),
        }
    }
}

/// An error in the configuration: its source and key, what was expected, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The source that gave the value; the loader fills it in for what [`Validate`] reports.
    pub origin: ConfigOrigin,
    /// Path of the key, such as `bus.ack_wait_ms`; empty if the mistake concerns the whole source.
    pub key: String,
    /// Description of what was expected. Never quotes the value of a text, which may be a secret.
    pub problem: String,
    /// Instructions to fix the mistake.
    pub advice: String,
    /// True if the only mistake is a key unknown to this build, and the rest was read without it.
    pub(super) is_unknown: bool,
}

impl Mistake {
    /// A mistake in the value of `key`, for use in [`Validate::mistakes`].
    pub fn new(key: impl Into<String>, problem: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            origin: ConfigOrigin::Default,
            key: key.into(),
            problem: problem.into(),
            advice: advice.into(),
            is_unknown: false,
        }
    }

    pub(super) fn with_origin(self, origin: ConfigOrigin) -> Self {
        Self { origin, ..self }
    }

    pub(super) fn unreadable_file(name: String, error: &io::Error) -> Self {
        Self::new(
            "",
            format!("the file cannot be read: {error}"),
            "name a readable TOML file with --config or KAIRO_CONFIG",
        )
        .with_origin(ConfigOrigin::File(name))
    }

    pub(super) fn unknown_key(key: impl Into<String>, known: &[String]) -> Self {
        let advice = match known {
            [] => "remove it".to_owned(),
            known => format!("remove it, or use one of: {}", known.join(", ")),
        };
        Self { is_unknown: true, ..Self::new(key, "is not a known key", advice) }
    }
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{} ", self.key)?;
        }
        write!(f, "{}; {}", self.problem, self.advice)
    }
}

/// Every mistake of a configuration; displayed one per line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", join_lines(.mistakes))]
pub struct ConfigError {
    mistakes: Vec<Mistake>,
}

impl ConfigError {
    /// The mistakes, in the order of their sources.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        self.mistakes
    }
}

impl From<Vec<Mistake>> for ConfigError {
    fn from(mistakes: Vec<Mistake>) -> Self {
        Self { mistakes }
    }
}

fn join_lines(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    lines.join("\n")
}

/// Checks that types cannot express: ranges, and values that must agree with each other.
pub trait Validate {
    /// All mistakes, none if the value can be used. Keys are paths from this value: a section says
    /// `ack_wait_ms`, the configuration that holds it [prefixes](crate::service::section) `bus`.
    fn mistakes(&self) -> Vec<Mistake>;
}

/// Adds a mistake unless `value`, counted in `unit`, lies within `allowed`.
pub fn check<N: PartialOrd + Display>(
    mistakes: &mut Vec<Mistake>,
    key: &str,
    value: N,
    allowed: RangeInclusive<N>,
    unit: &str,
) {
    if !allowed.contains(&value) {
        let low = allowed.start();
        let high = allowed.end();
        mistakes.push(Mistake::new(
            key,
            format!("is {value}, expected {low} to {high} {unit}"),
            "choose a value in that range, or leave it out for the default",
        ));
    }
}
