//! The content of one message of a chat client: words, and the images and audio that it brings along. Pure.
//!
//! Nothing is fetched: an image that is named by an address elsewhere is refused.

use data_encoding::BASE64;
use kairo_core::media;
use serde_json::Value;

use super::super::error::ChatError;
use crate::{
    config::GatewayConfig,
    http::{
        messages::parts::{ClientPart, PartContent},
        objects,
    },
};

/// Kinds of parts that are images, audio or video.
const SHOWN: [&str; 4] = ["image_url", "input_audio", "video_url", "file"];

/// A message as it was read.
pub struct ChatContent<'m> {
    /// Its texts, below each other.
    pub words: String,
    /// Its other parts, each with its place for errors.
    shown: Vec<(String, &'m Value)>,
}

/// Reads the content of the message at a place.
pub fn parse(content: &Value, at: usize) -> Result<ChatContent<'_>, ChatError> {
    let name = format!("messages[{at}].content");
    let parts = match content {
        Value::String(text) => return Ok(ChatContent { words: text.clone(), shown: Vec::new() }),
        Value::Array(parts) => parts,
        _ => return Err(ChatError::invalid(Some(&name), format!("{name}: text or a list of parts is expected"))),
    };
    let mut texts = Vec::new();
    let mut shown = Vec::new();
    for (part_at, part) in parts.iter().enumerate() {
        let name = format!("{name}[{part_at}]");
        match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
            (Some("text"), Some(text)) => texts.push(text),
            (Some(kind), _) if SHOWN.contains(&kind) => shown.push((name, part)),
            (Some("text") | None, _) => {
                return Err(ChatError::invalid(
                    Some(&name),
                    format!("{name}: a part of type text with a text is expected"),
                ));
            }
            (Some(other), _) => {
                let other: String = other.chars().take(80).collect();
                let known = "only text, image_url, input_audio, video_url and file";
                let message = format!("{name}: parts of type {other} are not supported, {known}");
                return Err(ChatError::unsupported_parameter(&name, message));
            }
        }
    }
    Ok(ChatContent { words: texts.join("\n"), shown })
}

/// Its texts alone, below each other, whatever else it shows.
pub fn parse_words(content: &Value, at: usize) -> Result<String, ChatError> {
    match content {
        Value::Null => Ok(String::new()),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            Ok(texts.collect::<Vec<_>>().join("\n"))
        }
        _ => parse(content, at).map(|told| told.words),
    }
}

impl ChatContent<'_> {
    /// Returns the text and, for each part that is not text, its type in brackets, where only words will do.
    pub fn to_words(&self) -> String {
        let kinds = self.shown.iter().map(|(_, part)| part.get("type").and_then(Value::as_str).unwrap_or_default());
        let kinds = kinds.map(|kind| format!("[{kind}]"));
        std::iter::once(self.words.clone()).chain(kinds).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.shown.is_empty()
    }

    /// Returns a text that tells the content from others: its words, and a digest of each image and audio.
    pub fn fingerprint(&self) -> String {
        let digests = self.shown.iter().map(|(_, part)| media::digest(part.to_string().as_bytes()));
        std::iter::once(self.words.clone())
            .chain(digests.map(|digest| format!("[{digest}]")))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The images and audio it brings.
    pub fn parse_parts(&self, limits: &GatewayConfig) -> Result<Vec<ClientPart>, ChatError> {
        if let Some((name, _)) = self.shown.get(limits.max_parts) {
            let most = limits.max_parts;
            return Err(ChatError::invalid(
                Some(name),
                format!("{name}: up to {most} images and pieces of audio are expected"),
            ));
        }
        self.shown.iter().map(|(name, part)| parse_part(name, part, limits)).collect()
    }
}

fn parse_part(name: &str, part: &Value, limits: &GatewayConfig) -> Result<ClientPart, ChatError> {
    let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    if let (Some(data), Some(format)) = (text("/input_audio/data"), text("/input_audio/format")) {
        let media_type = match format {
            "mp3" => "audio/mpeg".to_owned(),
            "opus" => "audio/ogg".to_owned(),
            format => format!("audio/{format}"),
        };
        return decode_part(&format!("{name}.input_audio"), &media_type, data, "", limits);
    }
    if let Some(url) = text("/image_url/url") {
        return decode_data_url(&format!("{name}.image_url.url"), url, "", limits);
    }
    if let Some(url) = text("/video_url/url") {
        return decode_data_url(&format!("{name}.video_url.url"), url, "", limits);
    }
    if let Some(url) = text("/file/file_data") {
        let file_name = text("/file/filename").filter(|name| media::is_name(name)).unwrap_or_default();
        return decode_data_url(&format!("{name}.file.file_data"), url, file_name, limits);
    }
    let expected = "an image_url with a url, an input_audio with data and format, or a file with file_data is expected";
    Err(ChatError::invalid(Some(name), format!("{name}: {expected}")))
}

fn decode_data_url(name: &str, url: &str, file_name: &str, limits: &GatewayConfig) -> Result<ClientPart, ChatError> {
    let parts = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((media_type, data)) = parts else {
        let expected = "a data URL such as data:image/png;base64,... is expected: nothing is fetched from elsewhere";
        return Err(ChatError::unsupported_parameter(name, format!("{name}: {expected}")));
    };
    decode_part(name, media_type, data, file_name, limits)
}

fn decode_part(
    name: &str,
    media_type: &str,
    data: &str,
    file_name: &str,
    limits: &GatewayConfig,
) -> Result<ClientPart, ChatError> {
    let wrong = |expected: String| ChatError::invalid(Some(name), format!("{name}: {expected}"));
    let media_type = media::canonical_type(media_type)
        .ok_or_else(|| wrong(format!("one of {} is expected", media::TYPES.join(", "))))?;
    let bytes = BASE64.decode(data.as_bytes()).map_err(|error| wrong(format!("base64 is expected: {error}")))?;
    let longest = limits.max_part_bytes;
    if bytes.len() > longest {
        return Err(wrong(format!("at most {longest} bytes are expected (gateway.max_part_bytes)")));
    }
    if let Some(error) = objects::media_type_mismatch(media_type, &bytes, name) {
        return Err(wrong(format!("{} are expected", error.expected)));
    }
    Ok(ClientPart { name: file_name.to_owned(), content: PartContent::Inline { media_type, bytes } })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_content(part: Value) -> Result<Vec<ClientPart>, (u16, Option<String>)> {
        let limits = GatewayConfig { max_part_bytes: 11, max_parts: 1, ..Default::default() };
        let told = |content: &Value| parse(content, 3)?.parse_parts(&limits);
        told(&json!([part])).map_err(|error| (error.status.as_u16(), error.param))
    }

    #[test]
    fn images_audio_and_files_are_brought_along() {
        let gif = format!("data:image/gif;base64,{}", BASE64.encode(b"GIF89a"));
        let image = read_content(json!({ "type": "image_url", "image_url": { "url": gif, "detail": "low" } })).unwrap();
        let content = PartContent::Inline { media_type: "image/gif", bytes: b"GIF89a".to_vec() };
        assert_eq!(image, [ClientPart { name: String::new(), content: content.clone() }]);
        let file = read_content(json!({ "type": "file", "file": { "file_data": gif, "filename": "a.gif" } })).unwrap();
        assert_eq!(file, [ClientPart { name: "a.gif".to_owned(), content }]);
        let film = b"\x1a\x45\xdf\xa3\x86\x85V_VP9";
        let url = format!("data:video/webm;base64,{}", BASE64.encode(film));
        let video = read_content(json!({ "type": "video_url", "video_url": { "url": url } })).unwrap();
        let content = PartContent::Inline { media_type: "video/webm", bytes: film.to_vec() };
        assert_eq!(video, [ClientPart { name: String::new(), content }]);
        let audio = json!({ "type": "input_audio", "input_audio": { "data": BASE64.encode(b"ID3"), "format": "mp3" } });
        let content = PartContent::Inline { media_type: "audio/mpeg", bytes: b"ID3".to_vec() };
        assert_eq!(read_content(audio).unwrap(), [ClientPart { name: String::new(), content }]);
    }

    #[test]
    fn what_cannot_be_taken_is_named() {
        let url = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
        for bad in [
            url("https://example.com/a.png"),
            url("data:image/svg+xml;base64,AAAA"),
            url("data:image/png;base64,%"),
            url(&format!("data:image/png;base64,{}", BASE64.encode(b"GIF89a"))),
            url(&format!("data:image/gif;base64,{}", BASE64.encode(b"GIF89a......"))),
        ] {
            let expected = (400, Some("messages[3].content[0].image_url.url".to_owned()));
            assert_eq!(read_content(bad.clone()).unwrap_err(), expected, "{bad}");
        }
        for (bad, param) in [
            (json!({ "type": "file", "file": { "file_id": "f" } }), "messages[3].content[0]"),
            (json!({ "type": "image_url", "image_url": "data:" }), "messages[3].content[0]"),
            (
                json!({ "type": "input_audio", "input_audio": { "data": "", "format": "pcm16" } }),
                "messages[3].content[0].input_audio",
            ),
        ] {
            assert_eq!(read_content(bad.clone()).unwrap_err(), (400, Some(param.to_owned())), "{bad}");
        }
    }

    #[test]
    fn a_message_is_told_from_others_by_what_it_shows() {
        let mark = |url: &str| {
            let part = json!({ "type": "image_url", "image_url": { "url": url } });
            parse(&json!([{ "type": "text", "text": "Look." }, part]), 0).ok().map(|told| told.fingerprint())
        };
        assert!(mark("data:a").is_some() && mark("data:a") == mark("data:a") && mark("data:a") != mark("data:b"));
        assert_eq!(parse(&json!("Look."), 0).ok().map(|told| told.fingerprint()), Some("Look.".to_owned()));
    }
}
