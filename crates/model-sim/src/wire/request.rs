//! The request of a client, as far as the simulator looks at it; all else is accepted and ignored.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

use super::{
    context_block,
    part::{ContentPart, ReceivedPart},
};

#[derive(Debug, Deserialize)]
pub struct ChatRequest<'a> {
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "deserialize_messages")]
    pub messages: Vec<RequestMessage<'a>>,
    #[serde(borrow, default)]
    pub tools: Option<Vec<OfferedTool<'a>>>,
    /// A word, or the tool that is to be called.
    #[serde(default)]
    pub tool_choice: Option<serde_json::Value>,
    #[serde(default)]
    pub stream: Option<bool>,
    #[serde(default)]
    pub stream_options: Option<StreamOptions>,
    /// The user the request is for: names the conversation if it is there.
    #[serde(default)]
    pub user: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct StreamOptions {
    #[serde(default)]
    pub include_usage: Option<bool>,
}

#[derive(Debug)]
pub struct RequestMessage<'a> {
    pub role: Cow<'a, str>,
    /// Of a user or a tool without the blocks in it.
    pub content: MessageText<'a>,
    /// The contents of the blocks in it.
    pub told: Vec<String>,
    pub tool_calls: Option<Vec<PastCall<'a>>>,
    pub tool_call_id: Option<String>,
}

/// A message as it comes.
#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: MessageText<'a>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<PastCall<'a>>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

/// The messages, each for itself where the words of several stand in one.
fn deserialize_messages<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<RequestMessage<'a>>, D::Error> {
    let messages = Vec::<WireMessage<'a>>::deserialize(deserializer)?;
    Ok(messages.into_iter().flat_map(WireMessage::into_messages).collect())
}

impl<'a> WireMessage<'a> {
    fn into_messages(self) -> Vec<RequestMessage<'a>> {
        let Self { role, content: MessageText(text, parts), mut tool_calls, mut tool_call_id } = self;
        let texts = match role.as_ref() {
            "user" => context_block::messages(text),
            "tool" => vec![context_block::split(text)],
            _ => vec![(text, Vec::new())],
        };
        let last = texts.len().saturating_sub(1);
        let mut parts = Some(parts);
        let message = |(at, (text, told)): (usize, (Cow<'_, str>, Vec<String>))| RequestMessage {
            role: role.clone(),
            content: MessageText(
                Cow::Owned(text.into_owned()),
                if at == last { parts.take().unwrap_or_default() } else { Vec::new() },
            ),
            told,
            tool_calls: tool_calls.take(),
            tool_call_id: tool_call_id.take(),
        };
        texts.into_iter().enumerate().map(message).collect()
    }
}

impl RequestMessage<'_> {
    /// Returns true if a user or a tool says something in it.
    pub fn has_words(&self) -> bool {
        self.told.is_empty() || !self.content.0.is_empty() || !self.content.1.is_empty()
    }
}

/// A tool call that an earlier answer made.
#[derive(Debug, Deserialize)]
pub struct PastCall<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub function: FunctionName<'a>,
}

#[derive(Debug, Deserialize)]
pub struct OfferedTool<'a> {
    /// Absent in tools that are not functions.
    #[serde(borrow, default)]
    pub function: Option<FunctionName<'a>>,
}

#[derive(Debug, Deserialize)]
pub struct FunctionName<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
}

/// The content of a message: a string, or the text of its parts, one to a line. A part that is not
/// text counts as its type in brackets, such as `[image_url]`. Beside it, its images and audio.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MessageText<'a>(pub Cow<'a, str>, pub Vec<ReceivedPart>);

impl<'de: 'a, 'a> Deserialize<'de> for MessageText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = MessageText<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string, a list of content parts or null")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(MessageText(Cow::Borrowed(text), Vec::new()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(MessageText(Cow::Owned(text.to_owned()), Vec::new()))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(MessageText::default())
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut lines = Vec::new();
                let mut received = Vec::new();
                while let Some(part) = parts.next_element::<ContentPart<'de>>()? {
                    received.extend(part.to_received_part().map_err(serde::de::Error::custom)?);
                    lines.push(part.text.unwrap_or_else(|| format!("[{}]", part.kind)));
                }
                Ok(MessageText(Cow::Owned(lines.join("\n")), received))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> MessageText<'_> {
        serde_json::from_str(json).expect("it is content")
    }

    #[test]
    fn content_may_be_a_string_parts_or_null() {
        assert!(matches!(text(r#""plain""#).0, Cow::Borrowed("plain")));
        assert_eq!(text(r#""a\nb""#).0, "a\nb");
        assert_eq!(text("null").0, "");
        let parts = r#"[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"u"}}]"#;
        assert_eq!(text(parts).0, "see\n[image_url]");
    }

    #[test]
    fn images_and_audio_are_known_by_their_bytes() {
        let parts = r#"[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,Ynl0ZXM="}},
            {"type":"input_audio","input_audio":{"data":"","format":"mp3"}},{"type":"image_url","image_url":{"url":"http://a"}}]"#;
        let received = text(parts).1;
        let told: Vec<_> = received.iter().map(|part| (part.kind, part.media_type.as_str(), part.size)).collect();
        assert_eq!(told, [("image", "image/png", 5), ("audio", "audio/mpeg", 0), ("image", "", 0)]);
        // printf bytes | sha256sum
        assert_eq!(received[0].sha256, "277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9");
        let broken = r#"[{"type":"input_audio","input_audio":{"data":"%","format":"wav"}}]"#;
        assert!(serde_json::from_str::<MessageText<'_>>(broken).is_err());
    }

    #[test]
    fn nulls_and_unknown_fields_are_tolerated() {
        let request: ChatRequest<'_> = serde_json::from_str(
            r#"{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":null,
                "refusal":null}],"tools":null,"stream":null,"stream_options":null,"top_k":3}"#,
        )
        .expect("it is a request");
        assert_eq!(request.messages.len(), 1);
    }
}
