//! Images, audio and video of messages: which kinds are taken, how they are told apart, how they are spoken of where only words
//! will do. Pure.

use kairo_proto::v1::{AgentImported, AgentMessage, Part, ToolResult, UserMessage};
use kairo_proto::{Body, words};
use sha2::{Digest, Sha256};

use crate::envelope::Modality;

/// The kind of parts that are video.
pub const VIDEO: &str = "video";

/// Every media type a part may have.
pub const TYPES: [&str; 12] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "audio/wav",
    "audio/mpeg",
    "audio/mp4",
    "audio/ogg",
    "audio/webm",
    "audio/flac",
    "video/mp4",
    "video/webm",
];

/// Bytes of a file of WebM within which it says what its tracks are.
const TRACKS_WITHIN: usize = 65_536;
/// Characters of a digest.
const DIGEST_CHARS: usize = 64;
/// Longest name of a part, in bytes.
pub const NAME_BYTES: usize = 255;

/// The media type as it is written here, if it may be that of a part: letters of any case are taken, parameters such as
/// codecs are not kept, and some have a second name.
pub fn canonical_type(media_type: &str) -> Option<&'static str> {
    let plain = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let plain = match plain.as_str() {
        "image/jpg" => "image/jpeg",
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
        "audio/mp3" => "audio/mpeg",
        "audio/m4a" | "audio/x-m4a" => "audio/mp4",
        "audio/x-flac" => "audio/flac",
        "video/x-m4v" => "video/mp4",
        other => other,
    };
    TYPES.into_iter().find(|known| *known == plain)
}

/// Returns the media type that the bytes show; none if no part may have it. The first bytes tell, except in two
/// containers, which are video if they have a video track.
pub fn sniff_type(bytes: &[u8]) -> Option<&'static str> {
    let at = |from: usize, mark: &[u8]| bytes.get(from..from + mark.len()) == Some(mark);
    match bytes {
        _ if at(0, b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if at(0, b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if at(0, b"GIF87a") || at(0, b"GIF89a") => Some("image/gif"),
        _ if at(0, b"RIFF") && at(8, b"WEBP") => Some("image/webp"),
        _ if at(0, b"RIFF") && at(8, b"WAVE") => Some("audio/wav"),
        _ if at(4, b"ftyp") && has_video_handler(bytes) => Some("video/mp4"),
        _ if at(4, b"ftyp") => Some("audio/mp4"),
        _ if at(0, b"OggS") => Some("audio/ogg"),
        _ if at(0, b"\x1a\x45\xdf\xa3") && has_video_codec(bytes) => Some("video/webm"),
        _ if at(0, b"\x1a\x45\xdf\xa3") => Some("audio/webm"),
        _ if at(0, b"fLaC") => Some("audio/flac"),
        _ if at(0, b"ID3") => Some("audio/mpeg"),
        // A frame of MPEG audio without a tag in front: the sync word and a layer.
        [0xff, second, ..] if second & 0xe0 == 0xe0 && second & 0x06 != 0 => Some("audio/mpeg"),
        _ => None,
    }
}

/// Returns true if a file of MP4 has a track with a handler of video: `hdlr`, a version, flags and a reserved word,
/// `vide`. It may stand at the end of the file.
fn has_video_handler(bytes: &[u8]) -> bool {
    bytes.windows(16).any(|window| window.starts_with(b"hdlr") && window.ends_with(b"vide"))
}

/// Returns true if a file of WebM has a track with a codec for video, whose name follows the element's id and its
/// length. Tracks stand before what they hold.
fn has_video_codec(bytes: &[u8]) -> bool {
    let head = bytes.get(..TRACKS_WITHIN).unwrap_or(bytes);
    head.windows(4).any(|window| matches!(window, [0x86, _, b'V', b'_']))
}

/// The SHA-256 of some bytes, in hexadecimal digits: the name of what they are.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns true if a text is a digest as [`digest`] writes it.
pub fn is_digest(text: &str) -> bool {
    text.len() == DIGEST_CHARS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns true if a text may be the name of a part: of at most [`NAME_BYTES`] bytes, without control characters.
pub fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES && !text.chars().any(char::is_control)
}

/// Returns the modality of a message with these parts: that of its first part, or text if it has none. Video counts as
/// moving images: the event format has no word of its own for it.
pub fn modality_of(parts: &[Part]) -> Modality {
    match parts.first().map(|part| (words::Modality::from(kind_of(part)), kind_of(part))) {
        Some((words::Modality::Image, _) | (_, VIDEO)) => Modality::Image,
        Some((words::Modality::Audio, _)) => Modality::Audio,
        _ => Modality::Text,
    }
}

/// Returns the text with the state, as people and models see it: `[state] {"door": "open"}`.
pub fn with_state(text: &str, state: &str) -> String {
    match (text.is_empty(), state.is_empty()) {
        (_, true) => text.to_owned(),
        (true, false) => format!("[state] {state}"),
        (false, false) => format!("{text}\n[state] {state}"),
    }
}

/// The images, audio and video that an event names, in their order.
pub fn named_parts(body: &Body) -> impl Iterator<Item = &Part> {
    let said = UserMessage::of(body).map(|message| &message.parts);
    let delivered = AgentMessage::of(body).map(|message| &message.parts);
    let came = ToolResult::of(body).map(|result| &result.parts);
    let imported = AgentImported::of(body).into_iter().flat_map(|imported| &imported.messages);
    said.or(delivered).or(came).into_iter().chain(imported.map(|message| &message.parts)).flatten()
}

/// `image`, `audio` or `video`.
pub fn kind_of(part: &Part) -> &str {
    part.media_type.split('/').next().unwrap_or_default()
}

/// A part where it cannot be shown: `[image photo.png, 120 kB]`.
pub fn describe_part(part: &Part) -> String {
    let name = if part.name.is_empty() { &part.media_type } else { &part.name };
    format!("[{} {name}, {}]", kind_of(part), format_size(part.size))
}

/// Words with what belongs to them, for whom only words will do.
pub fn text_with_parts(text: &str, parts: &[Part]) -> String {
    let words = (!text.is_empty()).then(|| text.to_owned());
    words.into_iter().chain(parts.iter().map(describe_part)).collect::<Vec<_>>().join("\n")
}

fn format_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..999_500 => format!("{} kB", (bytes + 500) / 1_000),
        _ => format!("{}.{} MB", (bytes + 50_000) / 1_000_000, (bytes + 50_000) % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{AgentDecision, ImportedMessage};

    use super::*;

    #[test]
    fn what_bytes_are_is_told_by_how_they_begin() {
        let cases: [(&[u8], Option<&str>); 20] = [
            (b"\x89PNG\r\n\x1a\n....", Some("image/png")),
            (b"\xff\xd8\xff\xe0..JFIF", Some("image/jpeg")),
            (b"GIF89a..", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVEfmt ", Some("audio/wav")),
            (b"\0\0\0\x20ftypM4A ", Some("audio/mp4")),
            (b"OggS\0\x02", Some("audio/ogg")),
            (b"\x1a\x45\xdf\xa3", Some("audio/webm")),
            (b"\0\0\0\x20ftypisom....moov..hdlr\0\0\0\0\0\0\0\0vide", Some("video/mp4")),
            (b"\0\0\0\x20ftypisom....moov..hdlr\0\0\0\0\0\0\0\0soun", Some("audio/mp4")),
            (b"\x1a\x45\xdf\xa3webm...\x86\x85V_VP9", Some("video/webm")),
            (b"\x1a\x45\xdf\xa3webm...\x86\x86A_OPUS", Some("audio/webm")),
            (b"fLaC\0\0", Some("audio/flac")),
            (b"ID3\x04\0", Some("audio/mpeg")),
            (b"\xff\xfb\x90\x64", Some("audio/mpeg")),
            // AAC has no layer there; a PDF, a page, nothing.
            (b"\xff\xf1\x50\x80", None),
            (b"%PDF-1.7", None),
            (b"<html>", None),
            (b"", None),
            (b"RIFF\0\0", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(sniff_type(bytes), expected, "{bytes:?}");
        }
        for media_type in TYPES {
            assert_eq!(canonical_type(media_type), Some(media_type));
        }
        assert_eq!(canonical_type("Audio/OGG; codecs=opus"), Some("audio/ogg"));
        assert_eq!(canonical_type("image/jpg"), Some("image/jpeg"));
        assert_eq!(
            (canonical_type("image/svg+xml"), canonical_type("text/plain"), canonical_type("")),
            (None, None, None)
        );
    }

    #[test]
    fn a_digest_is_that_of_the_standard_and_written_in_one_way() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(b""), empty);
        assert!(is_digest(empty));
        for bad in ["", &empty.to_uppercase(), &empty[1..], &format!("{empty}0"), &empty.replace('e', "g")] {
            assert!(!is_digest(bad), "{bad}");
        }
    }

    #[test]
    fn a_part_is_spoken_of_by_kind_name_and_size() {
        let part = |media_type: &str, name: &str, size| Part {
            media_type: media_type.into(),
            name: name.into(),
            size,
            ..Default::default()
        };
        let photo = part("image/png", "photo.png", 119_600);
        assert_eq!(describe_part(&photo), "[image photo.png, 120 kB]");
        assert_eq!(describe_part(&part("audio/wav", "", 999)), "[audio audio/wav, 999 bytes]");
        assert_eq!(describe_part(&part("audio/wav", "a", 999_500)), "[audio a, 1.0 MB]");
        assert_eq!(describe_part(&part("audio/wav", "a", 12_345_678)), "[audio a, 12.3 MB]");
        assert_eq!(text_with_parts("Look.", std::slice::from_ref(&photo)), "Look.\n[image photo.png, 120 kB]");
        assert_eq!(text_with_parts("", std::slice::from_ref(&photo)), "[image photo.png, 120 kB]");
        assert_eq!((text_with_parts("Look.", &[]), modality_of(&[])), ("Look.".to_owned(), Modality::Text));
        assert_eq!(modality_of(&[photo]), Modality::Image);
        let film = part("video/mp4", "film.mp4", 2_000_000);
        assert_eq!(
            (describe_part(&film).as_str(), modality_of(&[film])),
            ("[video film.mp4, 2.0 MB]", Modality::Image)
        );
    }

    #[test]
    fn events_name_what_belongs_to_their_messages() {
        let part = |digest: &str| Part { digest: digest.into(), ..Default::default() };
        let digests = |body: Body| named_parts(&body).map(|part| part.digest.clone()).collect::<Vec<_>>();
        let parts = vec![part("a"), part("b")];
        assert_eq!(digests(UserMessage { parts: parts.clone(), ..Default::default() }.into()), ["a", "b"]);
        assert_eq!(digests(AgentMessage { parts: parts.clone(), ..Default::default() }.into()), ["a", "b"]);
        assert_eq!(digests(ToolResult { parts: parts.clone(), ..Default::default() }.into()), ["a", "b"]);
        let message = |parts| ImportedMessage { parts, ..Default::default() };
        let messages = vec![message(parts), message(Vec::new()), message(vec![part("c")])];
        assert_eq!(digests(AgentImported { messages, ..Default::default() }.into()), ["a", "b", "c"]);
        assert!(digests(AgentDecision::default().into()).is_empty());
    }

    #[test]
    fn a_state_is_told_as_such_below_the_words() {
        assert_eq!(with_state("", r#"{"door":"open"}"#), r#"[state] {"door":"open"}"#);
        assert_eq!(with_state("Look.", "{}"), "Look.\n[state] {}");
        assert_eq!((with_state("Look.", ""), with_state("", "")), ("Look.".to_owned(), String::new()));
    }

    #[test]
    fn a_name_is_short_and_fits_a_line() {
        assert!(is_name("") && is_name("größe 🦀.png") && is_name(&"x".repeat(NAME_BYTES)));
        assert!(!is_name("a\nb") && !is_name(&"x".repeat(NAME_BYTES + 1)));
    }
}
