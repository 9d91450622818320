//! Signatures of the gateways over what they alone may write: API keys, tickets, and orders to forget somebody. Whatever else is written
//! in these places counts for nothing, whoever could write it there.
//!
//! All gateways have the same `signing.key` (Ed25519), and nobody else has it but `kairo restore`. Without one nothing is signed, and
//! everything counts.

use std::{fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use kairo_events::sealing;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::config::{Mistake, Secret, Validate};

/// Between what a signature is for and the text that it is over.
const SEPARATOR: u8 = 0;

/// With what gateways sign.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SigningConfig {
    /// Key with which gateways sign what they alone may write (API keys, tickets, orders to forget somebody), 32 bytes as 64 hexadecimal
    /// digits or base64. Every gateway needs the same, and no other service has it. What is not signed counts for nothing then. Empty
    /// signs nothing, which is the default.
    pub key: Secret,
    /// Keys that were `signing.key` before, as long as what they have signed is to count. Default empty.
    pub old_keys: Vec<Secret>,
}

impl Validate for SigningConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let given = Some(("key", &self.key)).filter(|(_, key)| !key.is_empty());
        let old = self.old_keys.iter().map(|key| ("old_keys", key));
        for (field, key) in given.into_iter().chain(old) {
            if let Err(problem) = sealing::parse_key(key.expose()) {
                mistakes.push(Mistake::new(field, problem.to_string(), "make one with: openssl rand -hex 32"));
            }
        }
        if self.key.is_empty() && !self.old_keys.is_empty() {
            let problem = "expected signing.key with it".to_owned();
            mistakes.push(Mistake::new("old_keys", problem, "what is new is signed with the key in force"));
        }
        mistakes
    }
}

/// Signs, and tells what is signed. Cloning it is cheap.
#[derive(Clone, Default)]
pub struct EntrySigner(Option<Arc<SigningKeys>>);

struct SigningKeys {
    current: Ed25519KeyPair,
    /// Public keys whose signatures count: also those of keys before.
    known: Vec<Vec<u8>>,
}

/// A text with its signature.
#[derive(Serialize, Deserialize)]
struct SignedEntry {
    payload: String,
    signature: String,
}

/// Returns true if an entry carries a signature, without verifying it.
pub fn is_signed(stored: &[u8]) -> bool {
    serde_json::from_slice::<SignedEntry>(stored).is_ok()
}

/// The content of an entry that only gateways may write.
#[derive(Debug, PartialEq, Eq)]
pub enum SignedContent<T> {
    Written(T),
    /// By a gateway of another version.
    Unknown,
    /// Not signed with a key that is configured.
    Unsigned,
    /// Nothing that was ever written here.
    Damaged,
}

impl fmt::Debug for EntrySigner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("signatures")
    }
}

impl EntrySigner {
    /// With the keys of the configuration, which is valid.
    pub fn new(config: &SigningConfig) -> Self {
        let keys = key_pair(&config.key).map(|current| {
            let old = config.old_keys.iter().filter_map(key_pair);
            let known = std::iter::once(public_key(&current)).chain(old.map(|key| public_key(&key))).collect();
            SigningKeys { current, known }
        });
        Self(keys.map(Arc::new))
    }

    /// Returns true if a signing key is configured, so that signatures are required.
    pub fn are_required(&self) -> bool {
        self.0.is_some()
    }

    /// The signature over a text, for whoever asks what it is for; empty where nothing is signed.
    pub fn sign(&self, purpose: &str, text: &str) -> String {
        let signed = |keys: &Arc<SigningKeys>| {
            BASE64_STANDARD.encode(keys.current.sign(&signed_message(purpose, text)).as_ref())
        };
        self.0.as_ref().map(signed).unwrap_or_default()
    }

    /// Returns true if a gateway has signed this text for this purpose, or if no signatures are required.
    pub fn is_signed(&self, purpose: &str, text: &str, signature: &str) -> bool {
        let Some(keys) = &self.0 else { return true };
        let Ok(signature) = BASE64_STANDARD.decode(signature) else { return false };
        let message = signed_message(purpose, text);
        keys.known.iter().any(|key| UnparsedPublicKey::new(&ED25519, key).verify(&message, &signature).is_ok())
    }

    /// Encodes a value for this key of this bucket, signed if signatures are required.
    ///
    /// # Errors
    /// Returns an error if the value cannot be written as JSON.
    pub fn encode_entry<T: Serialize>(&self, bucket: &str, key: &str, value: &T) -> serde_json::Result<Vec<u8>> {
        if !self.are_required() {
            return serde_json::to_vec(value);
        }
        let payload = serde_json::to_string(value)?;
        let signature = self.sign(&entry_purpose(bucket, key), &payload);
        serde_json::to_vec(&SignedEntry { payload, signature })
    }

    /// Verifies and decodes the entry of this key of this bucket.
    pub fn decode_entry<T: DeserializeOwned>(&self, bucket: &str, key: &str, stored: &[u8]) -> SignedContent<T> {
        let signed: Option<SignedEntry> = serde_json::from_slice(stored).ok();
        let Some(SignedEntry { payload, signature }) = signed else {
            return match serde_json::from_slice(stored) {
                Ok(_) if self.are_required() => SignedContent::Unsigned,
                Ok(value) => SignedContent::Written(value),
                Err(_) => SignedContent::Damaged,
            };
        };
        match serde_json::from_str(&payload) {
            _ if !self.is_signed(&entry_purpose(bucket, key), &payload, &signature) => SignedContent::Unsigned,
            Ok(value) => SignedContent::Written(value),
            Err(_) => SignedContent::Unknown,
        }
    }
}

fn key_pair(key: &Secret) -> Option<Ed25519KeyPair> {
    Ed25519KeyPair::from_seed_unchecked(&sealing::parse_key(key.expose()).ok()?).ok()
}

fn public_key(key: &Ed25519KeyPair) -> Vec<u8> {
    key.public_key().as_ref().to_vec()
}

/// A signature in one place is none in another.
fn entry_purpose(bucket: &str, key: &str) -> String {
    format!("{bucket}.{key}")
}

fn signed_message(purpose: &str, text: &str) -> Vec<u8> {
    [purpose.as_bytes(), &[SEPARATOR], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn signatures(key: u8, old: &[u8]) -> EntrySigner {
        let secret = |byte: &u8| Secret::new(format!("{byte:02x}").repeat(32));
        EntrySigner::new(&SigningConfig { key: secret(&key), old_keys: old.iter().map(secret).collect() })
    }

    #[test]
    fn what_was_signed_with_a_key_of_before_counts_until_that_is_taken_away() {
        let written = signatures(1, &[]).encode_entry("KEYS", "a", &7).unwrap();
        assert_eq!(signatures(2, &[1]).decode_entry("KEYS", "a", &written), SignedContent::Written(7));
        assert_eq!(signatures(2, &[]).decode_entry::<u32>("KEYS", "a", &written), SignedContent::Unsigned);
    }

    #[test]
    fn without_a_key_everything_counts_that_can_be_read() {
        let none = EntrySigner::default();
        assert_eq!(
            none.decode_entry("KEYS", "a", &none.encode_entry("KEYS", "a", &7).unwrap()),
            SignedContent::Written(7)
        );
        assert_eq!(
            none.decode_entry("KEYS", "a", &signatures(1, &[]).encode_entry("KEYS", "a", &7).unwrap()),
            SignedContent::Written(7)
        );
        assert_eq!(none.decode_entry::<u32>("KEYS", "a", br#"{"stream":"KV_KEYS","seq":3}"#), SignedContent::Damaged);
        assert_eq!(signatures(1, &[]).decode_entry::<u32>("KEYS", "a", b"7"), SignedContent::Unsigned);
    }

    proptest! {
        #[test]
        fn a_signature_is_for_one_text_in_one_place(
            text in ".{0,40}", other in ".{0,40}", key in "[a-z]{1,5}", place in "[a-z]{1,5}", flipped in 0..256_usize,
        ) {
            let signatures = signatures(1, &[]);
            let signature = signatures.sign(&entry_purpose("B", &key), &text);
            prop_assert!(signatures.is_signed(&entry_purpose("B", &key), &text, &signature));
            prop_assert_eq!(signatures.is_signed(&entry_purpose("B", &place), &text, &signature), place == key);
            prop_assert_eq!(signatures.is_signed(&entry_purpose("B", &key), &other, &signature), other == text);
            let written = signatures.encode_entry("B", &key, &text).unwrap();
            let mut damaged = written.clone();
            let at = flipped % damaged.len();
            damaged[at] ^= 1;
            if let SignedContent::Written(found) = signatures.decode_entry::<String>("B", &key, &damaged) {
                prop_assert_eq!(found, text.clone());
            }
            prop_assert_eq!(signatures.decode_entry("B", &key, &written), SignedContent::Written(text));
        }
    }
}
