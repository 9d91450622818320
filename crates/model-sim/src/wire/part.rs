//! The images and audio in a request: what they are, and a digest of the very bytes that came.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// An image or a piece of audio, as rules and templates see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceivedPart {
    /// `image`, `audio` or `video`.
    pub kind: &'static str,
    /// Such as `image/png`; empty for an image that is only named by a URL.
    pub media_type: String,
    /// Bytes, once the base64 is decoded.
    pub size: usize,
    /// Of those bytes, in hexadecimal digits; empty where there are none.
    pub sha256: String,
}

/// A content part, as far as it is looked at.
#[derive(Deserialize)]
pub struct ContentPart<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(borrow, default)]
    image_url: Option<ImageUrl<'a>>,
    #[serde(borrow, default)]
    input_audio: Option<InputAudio<'a>>,
    #[serde(borrow, default)]
    video_url: Option<ImageUrl<'a>>,
}

#[derive(Deserialize)]
struct ImageUrl<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
}

#[derive(Deserialize)]
struct InputAudio<'a> {
    #[serde(borrow)]
    data: Cow<'a, str>,
    #[serde(borrow)]
    format: Cow<'a, str>,
}

impl ContentPart<'_> {
    /// The image, audio or video that it is; none if it is none of them.
    ///
    /// # Errors
    /// If its base64 is none.
    pub fn to_received_part(&self) -> Result<Option<ReceivedPart>, String> {
        for (kind, given) in [("image", &self.image_url), ("video", &self.video_url)] {
            let Some(given) = given else { continue };
            let Some((media_type, data)) = data_url(&given.url) else {
                return Ok(Some(ReceivedPart { kind, ..ReceivedPart::default() }));
            };
            return decode_part(kind, media_type.to_owned(), data).map(Some);
        }
        let Some(audio) = &self.input_audio else { return Ok(None) };
        let media_type = match audio.format.as_ref() {
            "mp3" => "audio/mpeg".to_owned(),
            format => format!("audio/{format}"),
        };
        decode_part("audio", media_type, &audio.data).map(Some)
    }
}

fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

fn decode_part(kind: &'static str, media_type: String, data: &str) -> Result<ReceivedPart, String> {
    let bytes = STANDARD.decode(data).map_err(|error| format!("the base64 of a part of type {kind}: {error}"))?;
    let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(ReceivedPart { kind, media_type, size: bytes.len(), sha256 })
}
