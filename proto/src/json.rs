//! The JSON of messages. Those of the log have proto3's mapping, with the names of the protos, by their descriptors;
//! requests and answers of clients derive theirs, with the helpers for single fields in this module.

use std::sync::LazyLock;

use prost::{Message, Name};
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions};
use serde::{Deserializer, Serializer, de::Error as _, ser::Error as _};

use crate::DESCRIPTORS;

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| DescriptorPool::decode(DESCRIPTORS).unwrap_or_default());

fn descriptor<M: Name>() -> Option<MessageDescriptor> {
    POOL.get_message_by_name(&M::full_name())
}

/// Writes a message in proto3's mapping.
pub fn serialize<M: Message + Name, S: Serializer>(message: &M, out: S) -> Result<S::Ok, S::Error> {
    let descriptor = descriptor::<M>().ok_or_else(|| S::Error::custom("a message without a descriptor"))?;
    let bytes = message.encode_to_vec();
    let message = DynamicMessage::decode(descriptor, bytes.as_slice()).map_err(S::Error::custom)?;
    message.serialize_with_options(
        out,
        &SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(true),
    )
}

/// Reads a message in proto3's mapping; unknown fields are ignored.
pub fn deserialize<'de, M: Message + Name + Default, D: Deserializer<'de>>(from: D) -> Result<M, D::Error> {
    let descriptor = descriptor::<M>().ok_or_else(|| D::Error::custom("a message without a descriptor"))?;
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(descriptor, from, &options)?;
    message.transcode_to().map_err(D::Error::custom)
}

/// Reads the JSON of a message in proto3's mapping; an unknown field is an error.
///
/// # Errors
/// Names the field, or what was expected in it.
pub fn read_strictly<M: Message + Name + Default>(bytes: &[u8]) -> Result<M, String> {
    let descriptor = descriptor::<M>().ok_or("a message without a descriptor")?;
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let read = DynamicMessage::deserialize_with_options(descriptor, &mut from, &options);
    let message = read.and_then(|message| from.end().map(|()| message)).map_err(|error| error.to_string())?;
    message.transcode_to().map_err(|error| error.to_string())
}

/// Returns true if a field of a request was not given, that is if it has its default.
pub fn is_unset<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

/// A time in RFC 3339.
pub mod time {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};

    use crate::time::{message, read};

    pub fn serialize<S: Serializer>(time: &Option<prost_types::Timestamp>, out: S) -> Result<S::Ok, S::Error> {
        let read = |time| read(time).ok_or_else(|| S::Error::custom("a time beyond the calendar"));
        time.as_ref().map(read).transpose()?.serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<prost_types::Timestamp>, D::Error> {
        Ok(Option::<Timestamp>::deserialize(from).map_err(D::Error::custom)?.map(message))
    }
}

/// Bytes, in base64.
pub mod base64 {
    use ::base64::{Engine, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}
