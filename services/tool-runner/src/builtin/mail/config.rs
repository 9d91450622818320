//! The configuration for sending mail and noticing incoming mail.

use kairo_core::config::Secret;
use lettre::message::Mailbox;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::imap::ImapConfig;

/// Stands for the name of the agent in the sender's address.
const AGENT: &str = "{agent}";

/// The tool `email.send` and the events `email.received`. Both need `workspace.root`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MailConfig {
    /// The sender of mails, an address or `Name <address>`; `{agent}` stands for the agent's name. Default
    /// `{agent}@localhost`.
    pub from: String,
    /// The server that mails are handed to: `smtps://user:password@host`, or `smtp://host:port`, which is not encrypted
    /// unless `?tls=required` follows. Default none: a mail is kept in the agent's `mail/Sent` and goes nowhere else.
    pub smtp_url: Option<Secret>,
    /// Longest wait for the server's answer to one command, in milliseconds. Default 30 000.
    pub smtp_timeout_ms: u64,
    /// Maximum number of recipients of one mail, copies included. Default 100.
    pub max_recipients: usize,
    /// Largest text of a mail to send, in bytes. Default 1 048 576.
    pub max_body_bytes: usize,
    /// Largest attachments of a mail to send, in bytes together. Default 10 485 760.
    pub max_attachments_bytes: usize,
    /// True if mail that arrives in an agent's `mail/new` becomes an event. Default true.
    pub watch: bool,
    /// Interval between scans of all folders, besides watching them, in milliseconds: a folder shared over a network
    /// does not report files put there by another machine. Default 60 000.
    pub rescan_ms: u64,
    /// Maximum bytes of a mail's text that its event holds. Default 16 384.
    pub max_event_text_bytes: usize,
    /// Mailboxes on IMAP servers, whose mail is fetched into agents' `mail/new`. Default none.
    pub imap: Vec<ImapConfig>,
}

impl Default for MailConfig {
    fn default() -> Self {
        Self {
            from: format!("{AGENT}@localhost"),
            smtp_url: None,
            smtp_timeout_ms: 30_000,
            max_recipients: 100,
            max_body_bytes: 1024 * 1024,
            max_attachments_bytes: 10 * 1024 * 1024,
            watch: true,
            rescan_ms: 60_000,
            max_event_text_bytes: 16 * 1024,
            imap: Vec::new(),
        }
    }
}

impl MailConfig {
    /// The sender of an agent's mails; none when the configuration makes no address.
    pub fn sender(&self, agent: &str) -> Option<Mailbox> {
        self.from.replace(AGENT, agent).parse().ok()
    }

    /// Every mistake, each naming its key.
    pub fn mistakes(&self) -> impl Iterator<Item = String> {
        let numbers = [
            ("smtp_timeout_ms", self.smtp_timeout_ms == 0),
            ("max_recipients", self.max_recipients == 0),
            ("max_body_bytes", self.max_body_bytes == 0),
            ("rescan_ms", self.rescan_ms == 0),
            ("max_event_text_bytes", self.max_event_text_bytes == 0),
        ];
        let zeros = numbers.into_iter().filter(|(_, is_zero)| *is_zero);
        let from = self.sender("agent").is_none();
        // The text is not repeated: it may hold a password.
        let url = self.smtp_url.as_ref().is_some_and(|url| !is_smtp_url(url.expose()));
        [
            from.then(|| format!("from: must be an address such as {AGENT}@example.org, or a name and <address>")),
            url.then(|| "smtp_url: must be smtps://user:password@host or smtp://host:port".to_owned()),
        ]
        .into_iter()
        .flatten()
        .chain(zeros.map(|(key, _)| format!("{key}: must be at least 1")))
        .chain(self.imap.iter().enumerate().flat_map(|(index, account)| {
            account.mistakes().into_iter().map(move |mistake| format!("imap[{index}].{mistake}"))
        }))
    }
}

fn is_smtp_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "smtp" | "smtps") && url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_is_the_agent() {
        let sender = |from: &str| MailConfig { from: from.to_owned(), ..MailConfig::default() }.sender("ann-1");
        assert_eq!(MailConfig::default().sender("ann-1").unwrap().to_string(), "ann-1@localhost");
        assert_eq!(sender("Kairo <{agent}@example.org>").unwrap().to_string(), "Kairo <ann-1@example.org>");
        assert_eq!(sender("office"), None);
    }

    #[test]
    fn every_mistake_is_named() {
        assert_eq!(MailConfig::default().mistakes().count(), 0);
        let wrong = MailConfig {
            from: "nobody".to_owned(),
            smtp_url: Some(Secret::new("http://user:hidden@host".to_owned())),
            max_recipients: 0,
            ..MailConfig::default()
        };
        let mistakes: Vec<String> = wrong.mistakes().collect();
        assert_eq!(mistakes.len(), 3, "{mistakes:?}");
        assert!(!mistakes.concat().contains("hidden"), "{mistakes:?}");
    }
}
