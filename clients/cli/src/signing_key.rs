//! The Ed25519 key that checkpoints are signed with, in a file as others write such keys too: PKCS #8 in PEM ([RFC 8410]), with the
//! public one beside it. It stands in no configuration and no event, only its file is named.
//!
//! [RFC 8410]: https://www.rfc-editor.org/rfc/rfc8410

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use data_encoding::BASE64;
use ring::{
    rand::{SecureRandom, SystemRandom},
    signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey},
};

use crate::Error;

/// DER prefix of the 32 bytes of a private key; `PUBLIC` is the prefix of a public key.
const PRIVATE: &[u8] =
    &[0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
const PUBLIC: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Characters of a line of PEM.
const LINE: usize = 64;

/// The public key of a file, 32 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

/// Writes a new private key to `path`, readable by its owner only, and the public key beside it. Returns the path of
/// the public key.
///
/// # Errors
/// Fails if either file exists already or cannot be written.
pub fn make(path: &Path) -> Result<PathBuf, Error> {
    let mut seed = [0; 32];
    SystemRandom::new().fill(&mut seed).map_err(|_| Error::Advice("the system has no random numbers".to_owned()))?;
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|error| Error::Advice(error.to_string()))?;
    let mut public = path.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    let write = |path: &Path, mode: u32, text: String| {
        let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
        made.and_then(|mut made| made.write_all(text.as_bytes())).map_err(Error::file("write", path))
    };
    write(path, 0o600, pem("PRIVATE KEY", &[PRIVATE, &seed].concat()))?;
    write(&public, 0o644, pem("PUBLIC KEY", &[PUBLIC, pair.public_key().as_ref()].concat()))?;
    Ok(public)
}

/// Signs the text that `text` builds from the public key, and returns the signature and that key, both in base64.
/// `reference` is a path, `file:PATH` or `env:NAME`.
///
/// # Errors
/// Fails if `reference` holds no key; the error does not quote its content.
pub fn sign(reference: &str, text: impl FnOnce(&str) -> String) -> Result<(String, String), Error> {
    let der = match reference.strip_prefix("env:") {
        Some(name) => std::env::var(name).ok().and_then(|text| decode_pem(&text, "PRIVATE KEY")),
        None => decode_pem(&contents(Path::new(reference.strip_prefix("file:").unwrap_or(reference)))?, "PRIVATE KEY"),
    };
    let pair = der.and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok());
    let pair = pair.ok_or_else(|| wrong(reference, "an Ed25519 key, PKCS #8 in PEM"))?;
    let public = BASE64.encode(pair.public_key().as_ref());
    let signature = pair.sign(text(&public).as_bytes());
    Ok((BASE64.encode(signature.as_ref()), public))
}

impl PublicKey {
    /// Reads a public key from a PEM file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or holds no public key.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let der = decode_pem(&contents(path)?, "PUBLIC KEY").unwrap_or_default();
        let key = der.strip_prefix(PUBLIC).filter(|key| key.len() == 32);
        let key = key.map(|key| Self(key.to_vec()));
        key.ok_or_else(|| wrong(&path.display().to_string(), "an Ed25519 public key in PEM"))
    }

    /// One in base64, such as a checkpoint names; any bytes may be one.
    pub fn from_base64(text: &str) -> Self {
        Self(BASE64.decode(text.as_bytes()).unwrap_or_default())
    }

    /// Returns true if `signature`, in base64, is this key's signature of `text`.
    pub fn has_signed(&self, text: &str, signature: &str) -> bool {
        let signature = BASE64.decode(signature.as_bytes()).unwrap_or_default();
        UnparsedPublicKey::new(&ED25519, &self.0).verify(text.as_bytes(), &signature).is_ok()
    }
}

fn pem(what: &str, der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(LINE).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", lines.join("\n"))
}

fn contents(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file("read", path))
}

fn decode_pem(text: &str, what: &str) -> Option<Vec<u8>> {
    let begin = format!("-----BEGIN {what}-----");
    let end = format!("-----END {what}-----");
    let within = text.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end));
    let within: Option<String> = within.map(|(within, _)| within.split_whitespace().collect());
    BASE64.decode(within?.as_bytes()).ok()
}

fn wrong(reference: &str, expected: &str) -> Error {
    Error::Usage(format!("{reference}: expected {expected}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_one_key_has_signed_no_other_has_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let one = folder.path().join("one");
        let other = folder.path().join("other");
        let keys = [&one, &other].map(|path| PublicKey::from_file(&make(path).unwrap()).unwrap());
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(make(&one).is_err(), "a key is never written over");
        let reference = format!("file:{}", one.display());
        let (signature, public) = sign(&reference, |public| format!("text {public}")).unwrap();
        let text = format!("text {public}");
        assert_eq!(PublicKey::from_base64(&public), keys[0]);
        assert!(keys[0].has_signed(&text, &signature) && !keys[1].has_signed(&text, &signature));
        assert!(!keys[0].has_signed("text", &signature) && !keys[0].has_signed(&text, ""));
    }

    #[test]
    fn a_file_that_is_no_key_is_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "hunter2").unwrap();
        let told = [sign(path.to_str().unwrap(), str::to_owned).unwrap_err(), PublicKey::from_file(&path).unwrap_err()];
        assert!(told.iter().all(|error| matches!(error, Error::Usage(_)) && !error.to_string().contains("hunter2")));
        let public = make(&folder.path().join("made")).unwrap();
        assert!(
            sign(public.to_str().unwrap(), str::to_owned).is_err()
                && PublicKey::from_file(&folder.path().join("made")).is_err()
        );
    }
}
