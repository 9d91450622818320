//! The objects of an incident file: the bytes of the images, audio and video that its messages name. Each stands there once, in
//! a line of its own, in the order in which the messages name them. Who writes or reads them has one at a time in memory.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use kairo_events::media;
use kairo_proto::v1::Part;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{SECTION, to_hex};

/// Largest object that is written or read, in bytes: no gateway takes a larger one (`gateway.max_part_bytes`).
pub const LARGEST: u64 = 64 * 1024 * 1024;
/// Longest line of an object, in bytes: it is in base64, and says what it is.
pub const LINE: u64 = base64_len(LARGEST) + AROUND;
/// Largest part of an object's line beside its bytes, in bytes.
const AROUND: u64 = 1_024;
/// Digests of missing objects that a manifest lists.
const LISTED: usize = 1_000;
/// The beginning of every object's line.
const BEGINNING: &str = "{\"object\":\"";

/// The objects that the messages of a file name: those stored, missing and left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objects {
    /// The number of objects in the file; `bytes` is their size before base64.
    pub count: u64,
    pub bytes: u64,
    /// The number of objects no longer stored at the export; `missing_digests` lists the first of them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub missing: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_digests: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOutObjects>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<ObjectSection>,
}

/// Objects that were not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutObjects {
    pub count: u64,
    pub because: Reason,
}

/// The reason for which objects are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The exporter of the file wanted none.
    Unwanted,
    /// The file is redacted, and images, audio and video cannot be.
    Redacted,
    /// The log was read from a file that has none.
    NotAtHand,
}

/// Lines of objects that follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectSection {
    pub objects: u64,
    /// SHA-256 of the lines with their ends, in hex.
    pub sha256: String,
}

impl Objects {
    /// Of so many that are not written.
    pub fn left_out(count: u64, because: Reason) -> Self {
        Self {
            left_out: Some(LeftOutObjects { count, because }).filter(|left_out| left_out.count > 0),
            ..Self::default()
        }
    }

    /// Returns true if the messages name no objects.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.missing == 0 && self.left_out.is_none()
    }
}

/// Bytes of an object in base64.
pub const fn base64_len(bytes: u64) -> u64 {
    bytes.div_ceil(3).saturating_mul(4)
}

/// Objects that are written one after the other.
#[derive(Debug, Default)]
pub struct ObjectWriter {
    objects: Objects,
    section: Sha256,
    lines: u64,
}

impl ObjectWriter {
    /// The line of the next one, with its end. The bytes are those of the part's digest.
    pub fn write(&mut self, part: &Part, bytes: &[u8]) -> String {
        let media_type = Cow::Borrowed(part.media_type.as_str());
        let line = ObjectLine { object: &part.digest, media_type, base64: &STANDARD.encode(bytes) };
        let line = serde_json::to_string(&line).unwrap_or_default() + "\n";
        self.objects.count += 1;
        self.objects.bytes += bytes.len() as u64;
        self.section.update(&line);
        self.lines += 1;
        if self.lines == SECTION {
            self.close();
        }
        line
    }

    /// The next one is not stored any more.
    pub fn record_missing(&mut self, part: &Part) {
        self.objects.missing += 1;
        if self.objects.missing_digests.len() < LISTED {
            self.objects.missing_digests.push(part.digest.clone());
        }
    }

    fn close(&mut self) {
        let sha256 = to_hex(std::mem::take(&mut self.section).finalize());
        self.objects.sections.push(ObjectSection { objects: std::mem::take(&mut self.lines), sha256 });
    }

    /// Closes the last section and returns the manifest's entry on the objects.
    pub fn finish(mut self) -> Objects {
        if self.lines > 0 {
            self.close();
        }
        self.objects
    }
}

/// One as it stands in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub digest: String,
    pub media_type: String,
    pub bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct ObjectLine<'l> {
    object: &'l str,
    #[serde(borrow)]
    media_type: Cow<'l, str>,
    base64: &'l str,
}

/// The reason for which a line does not hold the object it claims.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    #[error("its line is cut off")]
    CutOff,
    #[error("its line is longer than {LINE} bytes")]
    TooLong,
    #[error("expected a digest, a media type and bytes in base64: {0}")]
    Unreadable(String),
    #[error("its bytes are not those of its digest")]
    OtherBytes,
}

impl Object {
    /// Reads the line of one, with its end.
    ///
    /// # Errors
    /// If the line is no object, or its bytes do not match its digest.
    pub fn parse(line: &[u8]) -> Result<Self, ObjectError> {
        let unreadable = |error: &dyn std::fmt::Display| ObjectError::Unreadable(error.to_string());
        if line.len() as u64 > LINE {
            return Err(ObjectError::TooLong);
        }
        let line = line.strip_suffix(b"\n").ok_or(ObjectError::CutOff)?;
        let ObjectLine { object, media_type, base64 } =
            serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        let bytes = STANDARD.decode(base64).map_err(|error| unreadable(&error))?;
        match media::digest(&bytes) == object {
            true => Ok(Self { digest: object.to_owned(), media_type: media_type.into_owned(), bytes }),
            false => Err(ObjectError::OtherBytes),
        }
    }
}

/// The digest that a line begins with, also where the rest of it is not as it was.
pub(super) fn leading_digest(line: &[u8]) -> Option<&str> {
    let digest = line.strip_prefix(BEGINNING.as_bytes())?.split(|byte| *byte == b'"').next()?;
    std::str::from_utf8(digest).ok().filter(|digest| media::is_digest(digest))
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::image;

    #[test]
    fn an_object_is_read_as_it_was_written_and_whatever_is_changed_of_it_is_told() {
        let bytes = b"\x89PNG\r\n\x1a\n\0\xff";
        let line = ObjectWriter::default().write(&image(bytes), bytes);
        let digest = media::digest(bytes);
        let media_type = "image/png".to_owned();
        assert_eq!(Object::parse(line.as_bytes()), Ok(Object { digest, media_type, bytes: bytes.to_vec() }));
        assert_eq!(leading_digest(line.as_bytes()), Some(media::digest(bytes).as_str()));
        // Wherever it is cut off, and whatever letter is another, but for those of the media type: these are in the sum alone.
        for at in 0..line.len() {
            assert_eq!(Object::parse(&line.as_bytes()[..at]), Err(ObjectError::CutOff), "{at}");
            let mut other = line.clone().into_bytes();
            other[at] ^= 1;
            let is_named = line[..at].ends_with("image/png") || line[..at].contains("media_type\":\"");
            let is_media_type = is_named && !line[..at].contains("\",\"base64");
            assert!(Object::parse(&other).is_err() || is_media_type, "{at} of {line}");
        }
    }

    #[test]
    fn a_manifest_counts_them_in_sections_and_lists_the_first_that_are_missing() {
        let mut adding = ObjectWriter::default();
        (0..SECTION + 1).for_each(|at| drop(adding.write(&image(&at.to_be_bytes()), &at.to_be_bytes())));
        (0..LISTED + 1).for_each(|at| adding.record_missing(&image(&at.to_be_bytes())));
        let objects = adding.finish();
        assert_eq!((objects.count, objects.bytes), (SECTION + 1, (SECTION + 1) * 8));
        assert_eq!(objects.sections.iter().map(|section| section.objects).collect::<Vec<_>>(), [SECTION, 1]);
        assert_eq!((objects.missing, objects.missing_digests.len()), (LISTED as u64 + 1, LISTED));
        assert!(ObjectWriter::default().finish().is_empty() && Objects::left_out(0, Reason::Redacted).is_empty());
        assert!(!Objects::left_out(1, Reason::Redacted).is_empty() && !objects.is_empty());
    }

    #[test]
    fn the_largest_fits_its_line() {
        let part = Part { media_type: "video/webm".into(), digest: media::digest(b""), ..Part::default() };
        let around = ObjectWriter::default().write(&part, b"").len() as u64;
        assert!(base64_len(LARGEST) + around <= LINE, "{around}");
        assert_eq!([0, 1, 3, 4].map(base64_len), [0, 1, 3, 4].map(|size| STANDARD.encode(vec![0; size]).len() as u64));
    }
}
