//! What there is to replace.

use std::fmt;

use serde::Serialize;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The name of a user.
    User,
    /// By what a person or a key is known to the gateway.
    Login,
    Email,
    Phone,
    Iban,
    Card,
    Ip,
    /// Of an address of the web.
    Credentials,
    Secret,
    /// What whoever exports has named, as a word or by a pattern.
    Word,
    Pattern,
}

impl Kind {
    /// Whether it is a name by which other things may be called, too.
    pub(super) const fn is_name(self) -> bool {
        matches!(self, Self::User | Self::Login)
    }

    /// Whether its tokens are plain words: names must be names, and what is announced as a secret must look like one to the mind,
    /// which takes secrets out of what it remembers.
    pub(super) const fn is_plain(self) -> bool {
        matches!(self, Self::User | Self::Login | Self::Secret)
    }

    pub(super) const fn ignores_case(self) -> bool {
        matches!(self, Self::User | Self::Email | Self::Word)
    }
}

/// As it stands in tokens and in manifests.
impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}
