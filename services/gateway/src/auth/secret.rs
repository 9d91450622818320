//! The text of a key, `kairo_<key_id>_<secret>`, and its hash. Pure but for the chance that [`generate_key`] draws.
//!
//! The secret is 256 random bits, so a plain SHA-256 is enough: there is nothing to guess that a slow hash, as for
//! passwords, would protect.

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "kairo";
/// Random bytes of an id, and of a secret.
const ID_BYTES: usize = 10;
const SECRET_BYTES: usize = 32;
/// Longest text that is looked at, in bytes.
const MAX_BYTES: usize = 512;

/// The SHA-256 digest of a key, stored in its place.
#[derive(Clone, Debug)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// Returns true if this is the key. Compares in constant time, so that timing does not reveal how much is right.
    pub fn matches(&self, key: &str) -> bool {
        self.0.ct_eq(&Self::of(key).0).into()
    }

    pub fn to_hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok().map(Self)
    }
}

/// A key that nobody has yet: its id, and its text.
pub fn generate_key() -> Result<(String, String), getrandom::Error> {
    let mut id = [0; ID_BYTES];
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut id)?;
    getrandom::fill(&mut secret)?;
    let [id, secret] = [id.as_slice(), secret.as_slice()].map(|bytes| BASE32_NOPAD.encode(bytes).to_lowercase());
    let key = format!("{PREFIX}_{id}_{secret}");
    Ok((id, key))
}

/// The text of a ticket that nobody has yet.
pub fn generate_ticket() -> Result<String, getrandom::Error> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret)?;
    Ok(BASE32_NOPAD.encode(&secret).to_lowercase())
}

/// Returns true if the text has the form of a ticket.
pub fn is_ticket(text: &str) -> bool {
    is_base32(text, SECRET_BYTES)
}

/// The id in the text of a key.
pub fn key_id(key: &str) -> Option<&str> {
    let (id, _) = key.strip_prefix(PREFIX)?.strip_prefix('_')?.split_once('_')?;
    (key.len() <= MAX_BYTES && is_key_id(id)).then_some(id)
}

pub fn is_key_id(text: &str) -> bool {
    is_base32(text, ID_BYTES)
}

fn is_base32(text: &str, bytes: usize) -> bool {
    text.len() == BASE32_NOPAD.encode_len(bytes)
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_hash_alone() {
        let (id, key) = generate_key().unwrap();
        assert_eq!(key_id(&key), Some(id.as_str()));
        assert_eq!(key.len(), "kairo_".len() + 16 + 1 + 52);
        let kept = SecretHash::from_hex(&SecretHash::of(&key).to_hex()).unwrap();
        assert!(kept.matches(&key) && !kept.matches(&format!("{key}a")) && !kept.matches(""));
        assert_ne!(generate_key().unwrap().1, key);
        // The published digest of "abc".
        assert!(SecretHash::of("abc").to_hex().starts_with("ba7816bf8f01cfea"));
    }

    #[test]
    fn what_is_no_key_has_no_id() {
        let id16 = "a".repeat(16);
        assert_eq!(key_id(&format!("kairo_{id16}_x")), Some(id16.as_str()));
        let long = format!("kairo_{id16}_{}", "x".repeat(10_000));
        for text in [
            "",
            "kairo",
            "kairo__",
            "kairo_ab_x",
            "Bearer",
            "kairo_AAAAAAAAAAAAAAAA_x",
            "kairo_aaaa.aaaa>aaaaaa_x",
            &long,
        ] {
            assert_eq!(key_id(text), None, "{text:.40}");
        }
        for text in ["", "00", "zz"] {
            assert!(SecretHash::from_hex(text).is_none());
        }
    }
}
