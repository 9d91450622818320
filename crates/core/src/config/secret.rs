//! Text that must not be shown.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The placeholder for a secret wherever it is shown, by which the loader also recognizes secrets.
pub(super) const REDACTED: &str = "<redacted>";

/// A configured text that never appears in a log, an error or a dump; [`Secret::expose`] is the
/// only way to it.
///
/// In a file or variable it is written as it is, or as `env:NAME` or `file:PATH`, which
/// [`load`](super::load) replaces by what they refer to (less trailing line ends).
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(SecretText);

#[derive(Clone, PartialEq, Eq)]
enum SecretText {
    /// From the source code, so known to everyone: serialises as itself, which lets a `Default`
    /// that holds one pass through the loader.
    Known(&'static str),
    Hidden(String),
}

impl Secret {
    /// A secret from outside.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(SecretText::Hidden(text))
    }

    /// A default written in the source, hence no secret; for use in `Default` only.
    #[must_use]
    pub const fn public_default(text: &'static str) -> Self {
        Self(SecretText::Known(text))
    }

    /// The text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        match &self.0 {
            SecretText::Known(text) => text,
            SecretText::Hidden(text) => text,
        }
    }

    /// Returns true if the text is empty, which is no secret.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }
}

impl Default for Secret {
    fn default() -> Self {
        Self::public_default("")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match &self.0 {
            SecretText::Known(text) => text,
            SecretText::Hidden(_) => REDACTED,
        })
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Serde's own error would quote what it found.
        Cow::<str>::deserialize(deserializer)
            .map(|text| Self::new(text.into_owned()))
            .map_err(|_| D::Error::custom("expected a text, env:NAME or file:PATH"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("hunter2".to_owned());
        let shown = format!("{secret} {secret:?} {}", serde_json::to_string(&secret).unwrap());
        assert_eq!(shown, "<redacted> <redacted> \"<redacted>\"");
    }

    #[test]
    fn a_default_passes_through_serialisation() {
        let json = serde_json::to_string(&Secret::public_default("default")).unwrap();
        let read: Secret = serde_json::from_str(&json).unwrap();
        assert_eq!(read.expose(), "default");
        assert_eq!(format!("{:?}", Secret::public_default("default")), REDACTED);
    }
}
