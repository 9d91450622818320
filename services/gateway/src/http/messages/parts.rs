//! The images and audio of a message: named by the digest of what is stored already, or brought along.

use data_encoding::BASE64;
use kairo_core::media;
use kairo_proto::v1::Part;
use serde_json::Value;

use super::super::{Gateway, objects};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{RequestFields, json_text},
    problem::{FieldError, Problem},
};

/// A part, as a client gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientPart {
    pub name: String,
    pub content: PartContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartContent {
    /// The object stored under this digest.
    Stored(String),
    Inline {
        media_type: &'static str,
        bytes: Vec<u8>,
    },
}

impl ClientPart {
    /// The digest of its bytes, and its name.
    pub fn digest_and_name(&self) -> (String, String) {
        let digest = match &self.content {
            PartContent::Stored(digest) => digest.clone(),
            PartContent::Inline { bytes, .. } => media::digest(bytes),
        };
        (digest, self.name.clone())
    }
}

/// The description of a digest in errors for clients.
const DIGEST: &str = "the SHA-256 of an object in 64 hexadecimal digits, as POST /v1/objects answers it";

/// Reads the field `parts`; what is wrong with it stands in the fields.
pub fn parse(fields: &mut RequestFields<Value>, limits: &GatewayConfig) -> Vec<ClientPart> {
    let most = limits.max_parts;
    let expected = format!("a list of up to {most} parts");
    let few = |value: &Value| value.as_array().filter(|list| list.len() <= most).cloned();
    let list = fields.optional("parts", expected, few).unwrap_or_default();
    let mut parts = Vec::new();
    for (at, value) in list.iter().enumerate() {
        match parse_part(value, limits) {
            Ok(part) => parts.push(part),
            Err(problem) => fields.add_nested_errors(&format!("parts[{at}]"), problem),
        }
    }
    parts
}

fn parse_part(value: &Value, limits: &GatewayConfig) -> Result<ClientPart, Problem> {
    let mut fields = RequestFields::from_nested(value)?;
    let named = |name: &str| media::is_name(name).then(|| name.to_owned());
    let expected = format!("a file name of up to {} bytes, on one line", media::NAME_BYTES);
    let name = fields.optional("name", expected, json_text(named)).unwrap_or_default();
    if !fields.has("data") && !fields.has("media_type") {
        let digest =
            fields.required("digest", DIGEST, json_text(|text| media::is_digest(text).then(|| text.to_owned())));
        // Named, so that it is known to whoever gets both wrong.
        fields.optional::<()>("media_type", "nothing", |_| None);
        fields.optional::<()>("data", "nothing", |_| None);
        return fields.complete(|| Some(ClientPart { name, content: PartContent::Stored(digest?) }));
    }
    let expected = format!("one of {}", media::TYPES.join(", "));
    let media_type = fields.required("media_type", expected, json_text(media::canonical_type));
    let longest = limits.max_part_bytes;
    let decoded = |text: &str| BASE64.decode(text.as_bytes()).ok().filter(|bytes| (1..=longest).contains(&bytes.len()));
    let bytes = fields.required("data", format!("base64 of 1 to {longest} bytes"), json_text(decoded));
    fields.optional::<()>("digest", "no digest beside data", |_| None);
    let unlike = media_type
        .zip(bytes.as_deref())
        .and_then(|(media_type, bytes)| objects::media_type_mismatch(media_type, bytes, "data"));
    if let Some(error) = unlike {
        return Err(Problem::invalid_fields(vec![error]));
    }
    fields
        .complete(|| Some(ClientPart { name, content: PartContent::Inline { media_type: media_type?, bytes: bytes? } }))
}

/// The parts as events name them: what was brought along is stored first, what was named must be there.
pub async fn store_parts(
    gateway: &Gateway,
    caller: &Caller,
    user: &str,
    given: Vec<ClientPart>,
) -> Result<Vec<Part>, Problem> {
    let mut parts = Vec::with_capacity(given.len());
    for (at, ClientPart { name, content }) in given.into_iter().enumerate() {
        let part = match content {
            PartContent::Inline { media_type, bytes } => {
                let field = format!("parts[{at}].data");
                objects::store_checked(gateway, caller, Some(user), media_type, &bytes, &field).await?
            }
            PartContent::Stored(digest) => {
                let found = gateway.refresh_object(&digest).await?;
                let known = found.filter(|part| media::canonical_type(&part.media_type).is_some());
                known.ok_or_else(|| Problem::invalid_fields(vec![unknown_digest(at, digest)]))?
            }
        };
        parts.push(Part { name, ..part });
    }
    Ok(parts)
}

fn unknown_digest(at: usize, digest: String) -> FieldError {
    FieldError { field: format!("parts[{at}].digest"), expected: DIGEST.to_owned(), found: Some(digest) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(parts: &Value) -> Result<Vec<ClientPart>, Vec<String>> {
        let body = json!({ "parts": parts }).to_string();
        let mut fields = RequestFields::from_json(body.as_bytes()).unwrap();
        let parts = parse(&mut fields, &GatewayConfig { max_part_bytes: 9, ..Default::default() });
        let wrong = |problem: Problem| problem.errors.into_iter().map(|error| error.field).collect();
        fields.complete(|| Some(parts)).map_err(wrong)
    }

    #[test]
    fn a_part_is_named_or_brought_along() {
        let digest = media::digest(b"x");
        let data = BASE64.encode(b"GIF89a");
        let parts = read_all(&json!([
            { "digest": digest, "name": "größe.png" },
            { "media_type": "IMAGE/gif", "data": data },
        ]));
        let inline = PartContent::Inline { media_type: "image/gif", bytes: b"GIF89a".to_vec() };
        let expected = [
            ClientPart { name: "größe.png".to_owned(), content: PartContent::Stored(digest) },
            ClientPart { name: String::new(), content: inline },
        ];
        assert_eq!(parts.unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let data = |bytes: &[u8]| BASE64.encode(bytes);
        let cases = [
            (json!("x"), "parts"),
            (json!([7]), "parts[0]"),
            (json!([{}]), "parts[0].digest"),
            (json!([{ "digest": "ABC" }]), "parts[0].digest"),
            (json!([{ "digest": media::digest(b""), "name": "a\nb" }]), "parts[0].name"),
            (json!([{ "digest": media::digest(b""), "mood": 1 }]), "parts[0].mood"),
            (json!([{ "media_type": "image/gif" }]), "parts[0].data"),
            (json!([{ "data": data(b"GIF89a") }]), "parts[0].media_type"),
            (json!([{ "media_type": "image/svg+xml", "data": data(b"GIF89a") }]), "parts[0].media_type"),
            (json!([{ "media_type": "image/png", "data": data(b"GIF89a") }]), "parts[0].data"),
            (json!([{ "media_type": "image/gif", "data": "%" }]), "parts[0].data"),
            (json!([{ "media_type": "image/gif", "data": data(b"GIF89a....") }]), "parts[0].data"),
            (
                json!([{ "media_type": "image/gif", "data": data(b"GIF89a"), "digest": media::digest(b"") }]),
                "parts[0].digest",
            ),
        ];
        for (parts, field) in cases {
            assert_eq!(read_all(&parts).unwrap_err(), [field], "{parts}");
        }
        let nine = json!(vec![json!({ "digest": media::digest(b"") }); 9]);
        assert_eq!(read_all(&nine).unwrap_err(), ["parts"]);
    }
}
