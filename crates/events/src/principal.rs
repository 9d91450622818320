//! The principal that entered an event: CloudEvents' Auth Context extension
//! (<https://github.com/cloudevents/spec/blob/main/cloudevents/extensions/authcontext.md>).
//!
//! The gateway sets it on everything that it writes for somebody, by what it knows of them and never by what they
//! claim. The router passes it on with what it delivers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Kind of a principal that brings an API key.
const API_KEY: &str = "api_key";

/// The principal who entered an event, as the gateway knew them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The kind of principal: `api_key`, `app_user`, `unauthenticated`, or what a newer build says.
    pub kind: String,
    /// The id within that kind; empty for none.
    pub id: String,
}

impl Principal {
    /// Returns the principal who brought the API key of this id.
    pub fn api_key(id: &str) -> Self {
        Self::new(API_KEY, id)
    }

    /// Returns true if the principal has an API key.
    pub fn is_api_key(&self) -> bool {
        self.kind == API_KEY
    }

    /// Somebody on the gateway's own machine, where no key is required.
    pub fn loopback() -> Self {
        Self::new("unauthenticated", "loopback")
    }

    /// Returns the user whom this issuer knows as this subject (OpenID Connect): only both together name somebody.
    pub fn app_user(issuer: &str, subject: &str) -> Self {
        Self::new("app_user", &format!("{issuer}|{subject}"))
    }

    fn new(kind: &str, id: &str) -> Self {
        Self { kind: kind.to_owned(), id: id.to_owned() }
    }
}

/// As clients are shown it: `api_key:<id>`.
impl fmt::Display for Principal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id.as_str() {
            "" => out.write_str(&self.kind),
            id => write!(out, "{}:{id}", self.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_is_shown_by_what_it_is_known_by() {
        assert_eq!(Principal::api_key("k7").to_string(), "api_key:k7");
        assert_eq!(Principal::loopback().to_string(), "unauthenticated:loopback");
        assert_eq!(Principal::new("system", "").to_string(), "system");
    }
}
