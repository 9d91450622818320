//! The kinds of values to replace.

use std::fmt;

use serde::Serialize;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
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
    /// A word that the exporting person named; `Pattern` matches one of their patterns.
    Word,
    Pattern,
}

impl ValueKind {
    /// Returns true for a name that other things may have, too.
    pub(super) const fn is_name(self) -> bool {
        matches!(self, Self::User | Self::Login)
    }

    /// Returns true if the tokens are plain words: names must be names, and a secret's token must look like a secret
    /// to the mind, which takes secrets out of its memories.
    pub(super) const fn is_plain(self) -> bool {
        matches!(self, Self::User | Self::Login | Self::Secret)
    }

    pub(super) const fn ignores_case(self) -> bool {
        matches!(self, Self::User | Self::Email | Self::Word)
    }
}

/// Writes the kind as it stands in tokens and in manifests.
impl fmt::Display for ValueKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}
