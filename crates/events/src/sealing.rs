//! Secrets that go into the log so that only the holder of a key can read them: AES-256-GCM-SIV
//! ([RFC 8452](https://www.rfc-editor.org/rfc/rfc8452)).
//!
//! The nonce follows from where the secret stands, so sealing it again gives the same bytes and a decision that is made
//! twice is the same one. This mode allows that: a nonce used twice shows no more than whether two texts are equal.

use aes_gcm_siv::{
    Aes256GcmSiv, KeyInit, Nonce,
    aead::{Aead, Payload},
};
use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use uuid::Uuid;

use crate::ids;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Bytes of a nonce, which stands in front of what is sealed.
const NONCE_BYTES: usize = 12;

/// A key.
pub type SealingKey = [u8; KEY_BYTES];

/// The reason a text was not sealed, or not opened.
#[derive(Debug, thiserror::Error, Clone, Copy, PartialEq, Eq)]
pub enum SealingError {
    #[error("expected 32 bytes as 64 hexadecimal digits or as base64")]
    NotAKey,
    #[error("the text is too long to be sealed")]
    TooLong,
    /// Another key, another place, or bytes that were changed.
    #[error("the key does not open it: it was sealed with another one, or was changed")]
    NotOpened,
}

/// Seals a secret of the memory `id`, where it goes by this name.
///
/// # Errors
/// For a text of more bytes than the mode allows, 64 GiB.
pub fn seal_secret(key: &SealingKey, id: Uuid, name: &str, secret: &str) -> Result<Vec<u8>, SealingError> {
    seal_at(key, ids::from_parts("sealed", &[&id.to_string(), name]), secret.as_bytes())
}

/// Opens what was sealed for the memory `id` under this name.
///
/// # Errors
/// When it was sealed with another key or for another place, or was changed since.
pub fn open_secret(key: &SealingKey, id: Uuid, name: &str, sealed: &[u8]) -> Result<String, SealingError> {
    let text = open_at(key, ids::from_parts("sealed", &[&id.to_string(), name]), sealed)?;
    String::from_utf8(text).map_err(|_| SealingError::NotOpened)
}

/// Seals bytes for this place.
///
/// # Errors
/// For more bytes than the mode allows, 64 GiB.
pub fn seal_at(key: &SealingKey, place: Uuid, bytes: &[u8]) -> Result<Vec<u8>, SealingError> {
    let nonce =
        Nonce::try_from(place.as_bytes().get(..NONCE_BYTES).unwrap_or_default()).map_err(|_| SealingError::TooLong)?;
    let payload = Payload { msg: bytes, aad: place.as_bytes() };
    let sealed = Aes256GcmSiv::new(key.into()).encrypt(&nonce, payload).map_err(|_| SealingError::TooLong)?;
    Ok([nonce.as_slice(), &sealed].concat())
}

/// Opens what was sealed for this place.
///
/// # Errors
/// When it was sealed with another key or for another place, or was changed since.
pub fn open_at(key: &SealingKey, place: Uuid, sealed: &[u8]) -> Result<Vec<u8>, SealingError> {
    let (nonce, text) = sealed.split_at_checked(NONCE_BYTES).ok_or(SealingError::NotOpened)?;
    let nonce = Nonce::try_from(nonce).map_err(|_| SealingError::NotOpened)?;
    let payload = Payload { msg: text, aad: place.as_bytes() };
    Aes256GcmSiv::new(key.into()).decrypt(&nonce, payload).map_err(|_| SealingError::NotOpened)
}

/// Reads a key: 64 hexadecimal digits, or base64 of 32 bytes in either alphabet, padded or not.
///
/// # Errors
/// When it is neither; the error does not quote it.
pub fn parse_key(text: &str) -> Result<SealingKey, SealingError> {
    let text = text.trim();
    let bytes = match decode_hex(text) {
        Some(bytes) => bytes,
        None => decode_base64(text).ok_or(SealingError::NotAKey)?,
    };
    bytes.try_into().map_err(|_| SealingError::NotAKey)
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 2 * KEY_BYTES {
        return None;
    }
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let byte = |pair: &[u32]| u8::try_from(pair.iter().fold(0, |byte, digit| byte * 16 + digit)).ok();
    digits?.chunks(2).map(byte).collect()
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let read = |alphabet| GeneralPurpose::new(alphabet, lenient).decode(text).ok();
    read(&base64::alphabet::STANDARD).or_else(|| read(&base64::alphabet::URL_SAFE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SealingKey = [7; KEY_BYTES];

    #[test]
    fn what_is_sealed_is_opened_by_the_same_key_in_the_same_place_only() {
        let id = Uuid::from_u128(1);
        let sealed = seal_secret(&KEY, id, "password", "hunter2").unwrap();
        assert_eq!(open_secret(&KEY, id, "password", &sealed).as_deref(), Ok("hunter2"));
        assert_eq!(sealed, seal_secret(&KEY, id, "password", "hunter2").unwrap());
        assert!(!sealed.windows(7).any(|bytes| bytes == b"hunter2"));

        let refused = Err(SealingError::NotOpened);
        assert_eq!(open_secret(&[8; 32], id, "password", &sealed), refused);
        assert_eq!(open_secret(&KEY, Uuid::from_u128(2), "password", &sealed), refused);
        assert_eq!(open_secret(&KEY, id, "pin", &sealed), refused);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(open_secret(&KEY, id, "password", &changed), refused, "byte {at}");
            assert_eq!(open_secret(&KEY, id, "password", &sealed[..at]), refused, "{at} bytes");
        }
    }

    #[test]
    fn sealing_never_changes() {
        let sealed = seal_secret(&KEY, Uuid::from_u128(7), "password", "hunter2").unwrap();
        let shown: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown, "bc4b353b8dcd55899c3c1134471e743d126c5d58a041a6c8cedcb91b4bc047eded9e5f");
    }

    #[test]
    fn keys_are_hexadecimal_or_base64() {
        let hexadecimal = "07".repeat(32);
        let standard = base64::engine::general_purpose::STANDARD.encode([0xfb; 32]);
        let url_safe = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode([0xfb; 32]);
        assert_eq!(parse_key(&hexadecimal), Ok(KEY));
        assert_eq!(parse_key(&format!("{}\n", hexadecimal.to_uppercase())), Ok(KEY));
        assert_eq!((parse_key(&standard), parse_key(&url_safe)), (Ok([0xfb; 32]), Ok([0xfb; 32])));
        for bad in ["", "hunter2", &"07".repeat(31), &"0g".repeat(32), &"07".repeat(33), &"ä".repeat(32)] {
            assert_eq!(parse_key(bad), Err(SealingError::NotAKey), "{bad}");
        }
    }
}
