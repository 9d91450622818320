//! The names of the users of issuers. A claim identifies somebody only among the users of its own issuer: two issuers
//! may each know an `ann`, who are two people. Pure.

use data_encoding::HEXLOWER;
use kairo_core::{config::Mistake, ids::Name};
use sha2::{Digest, Sha256};

use super::config::OidcConfig;

/// Longest `user_prefix`, in bytes: names of users have 64 at most.
const MAX_PREFIX: usize = 32;
/// Bytes of an issuer's digest that stand in its prefix where none is configured.
const DIGEST_BYTES: usize = 8;

/// The naming of the users of one issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserNaming {
    /// Stands before what the claim says, with its `-`; empty where nothing does.
    prefix: String,
    /// The prefixes of all other issuers' users; no name of this issuer's users may begin with one.
    others: Vec<String>,
}

impl UserNaming {
    /// Of each issuer. The first of those without a `user_prefix` has its users called as their claim says, as where it is the only
    /// one; further ones have one that follows from what they are called themselves.
    pub fn for_issuers(configs: &[OidcConfig]) -> Vec<Self> {
        let mut is_first = true;
        let prefix = |config: &OidcConfig| {
            let is_bare = config.user_prefix.is_empty() && !config.user_claim.is_empty();
            match (is_bare, config.user_prefix.as_str()) {
                (true, _) if std::mem::take(&mut is_first) => String::new(),
                (true, _) => format!("{}-", derive_prefix(&config.issuer)),
                (false, "") => String::new(),
                (false, prefix) => format!("{prefix}-"),
            }
        };
        let prefixes: Vec<String> = configs.iter().map(prefix).collect();
        let others = |own: usize| {
            let others = prefixes.iter().enumerate().filter(|(at, prefix)| *at != own && !prefix.is_empty());
            others.map(|(_, prefix)| prefix.clone()).collect()
        };
        prefixes.iter().enumerate().map(|(at, prefix)| Self { prefix: prefix.clone(), others: others(at) }).collect()
    }

    /// The user whom a claim names.
    ///
    /// # Errors
    /// If the claim is no valid name, or begins like the names of another issuer's users.
    pub fn user_name(&self, claim: &str, text: &str) -> Result<Name, String> {
        let parsed = |text: &str| Name::parse(text).map_err(|error| format!("{claim}: {error}"));
        let name = parsed(&format!("{}{}", self.prefix, parsed(text)?))?;
        match self.others.iter().find(|other| name.as_str().starts_with(other.as_str())) {
            Some(other) => Err(format!("{claim}: names that begin with {other} are those of another issuer's users")),
            None => Ok(name),
        }
    }
}

fn derive_prefix(issuer: &str) -> String {
    let digest = Sha256::digest(issuer.as_bytes());
    format!("oidc-{}", HEXLOWER.encode(digest.get(..DIGEST_BYTES).unwrap_or_default()))
}

/// Returns the mistakes in the prefixes, with the index of the issuer: no prefix may begin with another.
pub fn prefix_mistakes(configs: &[OidcConfig]) -> Vec<(usize, Mistake)> {
    let mistake = |at: usize, what: String, advice: &str| (at, Mistake::new("user_prefix", what, advice));
    let mut mistakes = Vec::new();
    let given = || configs.iter().enumerate().filter(|(_, config)| !config.user_prefix.is_empty());
    for (at, OidcConfig { user_prefix, .. }) in given() {
        if Name::parse(user_prefix).is_err() || user_prefix.len() > MAX_PREFIX {
            let advice = "choose one of 1 to 32 lower-case letters, digits, - and _";
            mistakes.push(mistake(at, format!("{user_prefix:?} begins no name of a user"), advice));
        }
        let begins = |other: &str| format!("{other}-").starts_with(&format!("{user_prefix}-"));
        if given().any(|(other, config)| other != at && begins(&config.user_prefix)) {
            let what = format!("{user_prefix:?} is how names of another issuer's users begin, too");
            mistakes.push(mistake(at, what, "choose one that no other issuer's begins with"));
        }
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(issuer: &str, user_prefix: &str) -> OidcConfig {
        OidcConfig { issuer: issuer.to_owned(), user_prefix: user_prefix.to_owned(), ..OidcConfig::default() }
    }

    fn users(configs: &[OidcConfig], text: &str) -> Vec<Option<String>> {
        UserNaming::for_issuers(configs)
            .iter()
            .map(|names| names.user_name("sub", text).ok().map(|name| name.to_string()))
            .collect()
    }

    #[test]
    fn users_of_two_issuers_with_the_same_claim_are_two() {
        let [one, two, three] = ["https://one", "https://two", "https://three"].map(|issuer| config(issuer, ""));
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(users(std::slice::from_ref(&one), "ann"), [name("ann")], "who was alone keeps their name");
        let all = users(&[one.clone(), two.clone(), three.clone()], "ann");
        assert_eq!(all[0], name("ann"));
        assert!(all[1].as_ref().is_some_and(|name| name.ends_with("-ann")) && all[1] != all[2], "{all:?}");
        // Whatever comes behind it, and where it is configured beside others.
        assert_eq!(users(&[one.clone(), three, two.clone()], "ann")[2], all[1]);
        let partner = config("https://two", "partner");
        assert_eq!(users(&[partner.clone(), one], "ann"), [name("partner-ann"), name("ann")]);
        assert_eq!(users(&[partner], "ann"), [name("partner-ann")]);
        // Who speaks as any user is called by nobody.
        let service = OidcConfig { user_claim: String::new(), ..config("https://service", "") };
        assert_eq!(users(&[service, two], "ann")[1], name("ann"));
    }

    #[test]
    fn nobody_takes_the_name_of_another_issuers_user() {
        let configs = [config("https://one", ""), config("https://two", "partner"), config("https://three", "")];
        let derived = users(&configs, "ann")[2].clone().unwrap();
        assert_eq!(users(&configs, ""), [None, None, None]);
        for theirs in ["partner-ann", "partner-", &derived] {
            assert_eq!(users(&configs, theirs)[0], None, "{theirs}");
        }
        assert_eq!(users(&configs, "partner")[0].as_deref(), Some("partner"));
        assert_eq!(users(&configs, "partner-ann")[1].as_deref(), Some("partner-partner-ann"));
        let long = "x".repeat(60);
        let found = users(&configs, &long);
        assert!(found[0].is_some() && found[1].is_none(), "{found:?}");
    }

    #[test]
    fn prefixes_that_cannot_be_told_apart_are_refused() {
        let wrong = |prefixes: &[&str]| {
            let configs: Vec<_> = prefixes.iter().map(|prefix| config("https://one", prefix)).collect();
            prefix_mistakes(&configs).into_iter().map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert!(wrong(&["", "", "a", "b", "ab"]).is_empty());
        assert_eq!(wrong(&["a", "a"]), [0, 1]);
        assert_eq!(wrong(&["a", "a-b"]), [0]);
        assert_eq!(wrong(&["A", "b c"]), [0, 1]);
        assert_eq!(wrong(&[&"a".repeat(33)]), [0]);
    }
}
