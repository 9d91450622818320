//! The folder of the agents' files, and the limits for reading them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The tools on agents' own files: mail, calendar, contacts, documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceConfig {
    /// Absolute path of the folder that holds one folder per agent, each with `mail/` (a Maildir), `calendar/`
    /// (`*.ics`), `contacts/` (`*.vcf`) and `documents/`. Missing folders are made, closed to other users; links are
    /// refused. Runners that are to share the work share this folder. Default none, which removes the tools.
    pub root: Option<PathBuf>,
    /// Maximum bytes read of each file. Default 2 097 152.
    pub max_file_bytes: usize,
    /// Maximum number of files read in one folder. Default 20 000.
    pub max_files: usize,
    /// Longest text of a message, in bytes; the rest is cut off. Default 65 536.
    pub max_text_bytes: usize,
    /// Maximum number of messages, calendar entries or people in the result of one call. Default 100.
    pub max_results: usize,
    /// Maximum number of occurrences of one recurring calendar entry examined within the time a call is about. Default
    /// 5 000.
    pub max_occurrences: usize,
}

impl Default for WorkspaceConfig {
    fn default() -> Self {
        Self {
            root: None,
            max_file_bytes: 2 * 1024 * 1024,
            max_files: 20_000,
            max_text_bytes: 64 * 1024,
            max_results: 100,
            max_occurrences: 5_000,
        }
    }
}

impl WorkspaceConfig {
    /// Every mistake, each naming its key.
    pub fn mistakes(&self) -> impl Iterator<Item = String> {
        let relative = self.root.as_ref().is_some_and(|root| !root.is_absolute());
        let numbers = [
            ("max_file_bytes", self.max_file_bytes),
            ("max_files", self.max_files),
            ("max_text_bytes", self.max_text_bytes),
            ("max_results", self.max_results),
            ("max_occurrences", self.max_occurrences),
        ];
        let zeros = numbers.into_iter().filter(|(_, value)| *value == 0);
        relative
            .then(|| "root: must be an absolute path".to_owned())
            .into_iter()
            .chain(zeros.map(|(key, _)| format!("{key}: must be at least 1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_named() {
        assert_eq!(WorkspaceConfig::default().mistakes().count(), 0);
        let wrong =
            WorkspaceConfig { root: Some("kairo".into()), max_files: 0, max_results: 0, ..WorkspaceConfig::default() };
        let mistakes: Vec<String> = wrong.mistakes().collect();
        assert_eq!(
            mistakes,
            ["root: must be an absolute path", "max_files: must be at least 1", "max_results: must be at least 1"]
        );
    }
}
