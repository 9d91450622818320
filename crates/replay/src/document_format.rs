//! Reads the format version of a document. It is read before anything else, as a newer version may look otherwise.

use serde::{Deserialize, de::DeserializeOwned};

/// The version that a document says it is of, if it says that it is of this kind.
///
/// # Errors
/// If the text is no JSON, or of another kind.
pub fn read_version<K: DeserializeOwned>(text: &[u8]) -> Result<u32, serde_json::Error> {
    #[derive(Deserialize)]
    struct FormatHeader<K> {
        #[serde(rename = "kairo")]
        _kairo: K,
        format: u32,
    }
    serde_json::from_slice::<FormatHeader<K>>(text).map(|told| told.format)
}
