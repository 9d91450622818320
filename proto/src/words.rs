//! The closed vocabularies of text fields (`kairo/v1/vocabularies.proto`), as enums. A word that this build does not
//! know is kept, and shown as it was written.
//!
//! A field of a vocabulary has a method that returns its word: `task.status_word()`.

use std::fmt;

use crate::v1;

macro_rules! vocabularies {
    ($($(#[$doc:meta])* $name:ident { $($(#[$said:meta])* $variant:ident = $word:literal,)* })*) => {
        /// The words of all vocabularies.
        pub const ALL: &[&[&str]] = &[$($name::WORDS),*];
        $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$said])* $variant,)*
            /// A word of a newer build, or an empty one.
            Unknown(String),
        }

        impl $name {
            /// All words that this build knows.
            pub const WORDS: &[&str] = &[$($word),*];

            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Unknown(word) => word,
                }
            }

            /// Returns the word if this build knows it, and empty text otherwise.
            pub const fn known_word(&self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Unknown(_) => "",
                }
            }

            /// Returns the word as a field holds it.
            pub fn text(&self) -> String {
                self.as_str().to_owned()
            }

            /// Parses a word; `None` if this build does not know it.
            pub fn known(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                Self::known(word).unwrap_or_else(|| Self::Unknown(word.to_owned()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.pad(self.as_str())
            }
        }
    )* };
}

macro_rules! fields {
    () => {};
    (optional $message:ident.$field:ident as $method:ident: $name:ident, $($rest:tt)*) => {
        impl v1::$message {
            pub fn $method(&self) -> Option<$name> {
                self.$field.as_deref().map($name::from)
            }
        }
        fields! { $($rest)* }
    };
    ($message:ident.$field:ident as $method:ident: $name:ident, $($rest:tt)*) => {
        impl v1::$message {
            pub fn $method(&self) -> $name {
                self.$field.as_str().into()
            }
        }
        fields! { $($rest)* }
    };
}

include!("generated/vocabularies.rs");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_what_stands_in_the_log_and_an_unknown_one_is_kept() {
        let task = |status: &str| v1::TaskChanged { status: status.to_owned(), ..Default::default() };
        assert_eq!(task("canceled").status_word(), TaskStatus::Canceled);
        let newer = task("suspended").status_word();
        assert_eq!((newer.as_str(), TaskStatus::known("suspended")), ("suspended", None));
        assert_eq!(newer, TaskStatus::Unknown("suspended".to_owned()));
        for word in TaskStatus::WORDS {
            assert_eq!(TaskStatus::known(word).unwrap().to_string(), *word);
        }
    }

    #[test]
    fn a_word_of_two_parts_stands_in_the_log_as_it_did() {
        assert_eq!(Verdict::DidNotHappen.as_str(), "did_not_happen");
        assert_eq!(v1::TaskRow::default().type_word(), None);
    }
}
