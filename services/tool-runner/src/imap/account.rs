//! The mailboxes on IMAP servers, as they are configured.

use std::fmt;

use kairo_core::config::Secret;
use kairo_core::ids::{self, Name};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Longest pause between two looks, in milliseconds: servers hang up on who says nothing for half an hour.
const LONGEST_INTERVAL_MS: u64 = 25 * 60 * 1_000;
/// Mails fetched before they are put into the mailbox together, at most: their numbers go into one command.
const LARGEST_BATCH: usize = 500;

/// A mailbox on a server, whose mail comes to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImapConfig {
    /// The agent that the mail is for.
    pub agent: String,
    /// `imaps://user:password@host/INBOX`, or `imap://…`, which is not encrypted. What is special in a URL is
    /// percent-encoded; without a path it is the INBOX. `env:NAME` or `file:PATH` keep the password out of files.
    pub url: Secret,
    /// Interval at which the server is polled for mail, in milliseconds, besides its notifications. Default 60 000.
    pub interval_ms: u64,
    /// True if the server is asked to announce mail at once, where it can (IDLE). Default true.
    pub idle: bool,
    /// True if mail that was there before the mailbox was first read is fetched. Default true.
    pub existing: bool,
    /// Most bytes fetched of one mail; the rest is cut off. Default 10 485 760.
    pub max_mail_bytes: u32,
    /// Mails that are fetched before they are put into the mailbox together. Default 20.
    pub batch: usize,
    /// Time limit for the server per command, in milliseconds. Default 60 000.
    pub timeout_ms: u64,
}

impl Default for ImapConfig {
    fn default() -> Self {
        Self {
            agent: String::new(),
            url: Secret::default(),
            interval_ms: 60_000,
            idle: true,
            existing: true,
            max_mail_bytes: 10 * 1024 * 1024,
            batch: 20,
            timeout_ms: 60_000,
        }
    }
}

impl ImapConfig {
    /// Every mistake, each naming its key. The URL is not repeated: it holds a password.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if Name::parse(&self.agent).is_err() {
            mistakes.push("agent: must be the name of an agent".to_owned());
        }
        if let Err(problem) = ImapAccount::parse(self.url.expose()) {
            mistakes.push(format!("url: {problem}"));
        }
        if !(1..=LONGEST_INTERVAL_MS).contains(&self.interval_ms) {
            mistakes.push(format!("interval_ms: must be 1 to {LONGEST_INTERVAL_MS}"));
        }
        if self.max_mail_bytes == 0 {
            mistakes.push("max_mail_bytes: must be at least 1".to_owned());
        }
        if !(1..=LARGEST_BATCH).contains(&self.batch) {
            mistakes.push(format!("batch: must be 1 to {LARGEST_BATCH}"));
        }
        if self.timeout_ms == 0 {
            mistakes.push("timeout_ms: must be at least 1".to_owned());
        }
        mistakes
    }
}

/// The account that a URL describes. Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ImapAccount {
    pub encrypted: bool,
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub mailbox: String,
}

impl ImapAccount {
    /// # Errors
    /// Returns the expected form of the URL.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "must be imaps://user:password@host/INBOX";
        let url = Url::parse(text).map_err(|_| FORM)?;
        let (encrypted, port) = match url.scheme() {
            "imaps" => (true, 993),
            "imap" => (false, 143),
            _ => return Err(FORM),
        };
        if url.query().is_some() || url.fragment().is_some() {
            return Err(FORM);
        }
        let host = match url.host().ok_or(FORM)? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let plain = |text: &str| {
            let text =
                percent_decode_str(text).decode_utf8().map_err(|_| "user, password and mailbox must be UTF-8")?;
            match text.contains(char::is_control) {
                true => Err("user, password and mailbox must have no control characters"),
                false => Ok(text.into_owned()),
            }
        };
        let user = plain(url.username())?;
        let password = plain(url.password().unwrap_or_default())?;
        if user.is_empty() || password.is_empty() {
            return Err(FORM);
        }
        let mailbox = match plain(url.path().trim_start_matches('/'))? {
            path if path.is_empty() => "INBOX".to_owned(),
            path if path.is_ascii() => path,
            _ => return Err("the mailbox's name must be written as the server has it, in modified UTF-7"),
        };
        Ok(Self { encrypted, host, port: url.port().unwrap_or(port), user, password, mailbox })
    }

    /// Stands for the mailbox in names of files; the password is no part of it.
    pub fn key(&self) -> String {
        let port = self.port.to_string();
        let key = ids::from_parts("imap", &[&self.host, &port, &self.user, &self.mailbox]).simple().to_string();
        key.chars().take(16).collect()
    }

    /// A text of the server, cut and without the password should it repeat it.
    pub fn redact_text(&self, text: &str) -> String {
        /// Characters of it that are shown.
        const SHOWN: usize = 300;
        // Part of it is in quotes, with what is special escaped.
        let quoted = self.password.escape_debug().to_string();
        let text = text.replace(&quoted, "***").replace(&self.password, "***");
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect()
    }
}

impl fmt::Display for ImapAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encrypted { "imaps" } else { "imap" };
        write!(f, "{scheme}://{}@{}:{}/{}", self.user, self.host, self.port, self.mailbox)
    }
}

impl fmt::Debug for ImapAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_the_mail_is() {
        let account = ImapAccount::parse("imaps://ann%40example.org:p%2Fw%40rd@mail.example.org/Work/In").unwrap();
        assert_eq!(account.to_string(), "imaps://ann@example.org@mail.example.org:993/Work/In");
        assert_eq!((account.password.as_str(), format!("{account:?}").contains("p/w")), ("p/w@rd", false));
        let plain = ImapAccount::parse("imap://a:b@[::1]:1143").unwrap();
        assert_eq!((plain.host.as_str(), plain.port, plain.mailbox.as_str()), ("::1", 1143, "INBOX"));
        assert_eq!(plain.key(), ImapAccount::parse("imap://a:other@[::1]:1143/INBOX").unwrap().key());
        assert_ne!(plain.key(), ImapAccount::parse("imap://a:b@[::1]:1143/Work").unwrap().key());
        assert_eq!(plain.redact_text("NO b is\r\nwrong"), "NO *** is  wrong");
        let special = ImapAccount::parse("imap://a:b%22%5Cc@host").unwrap();
        assert_eq!(special.redact_text(&format!("{:?} b\"\\c", "b\"\\c")), "\"***\" ***");
        assert_eq!(plain.redact_text(&"x".repeat(100_000)).len(), 300);
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_being_repeated() {
        for url in [
            "",
            "mail.example.org",
            "https://hidden:hidden@host",
            "imaps://host/INBOX",
            "imaps://hidden@host",
            "imaps://:hidden@host",
            "imaps://hidden:hidden@host/INBOX?x",
            "imaps://hidden:hid%0d%0aden@host",
            "imaps://hidden:hidden@host/%ff",
            "imaps://hidden:hidden@host/Entw%C3%BCrfe",
        ] {
            let error = ImapAccount::parse(url).unwrap_err();
            assert!(!error.contains("hid"), "{url}");
        }
    }

    #[test]
    fn every_mistake_is_named() {
        let url = Secret::new("imaps://a:b@host".to_owned());
        let right = ImapConfig { agent: "ann".to_owned(), url, ..ImapConfig::default() };
        assert_eq!(right.mistakes(), [""; 0]);
        let wrong =
            ImapConfig { interval_ms: u64::MAX, max_mail_bytes: 0, batch: 0, timeout_ms: 0, ..Default::default() };
        let mistakes = wrong.mistakes();
        for (mistake, key) in
            mistakes.iter().zip(["agent: ", "url: ", "interval_ms: ", "max_mail_bytes: ", "batch: ", "timeout_ms: "])
        {
            assert!(mistake.starts_with(key), "{mistakes:?}");
        }
        assert_eq!(mistakes.len(), 6);
    }
}
