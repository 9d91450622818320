//! Texts, JSON and times as Postgres stores them. All data from the log passes through here, so that nothing an
//! outsider writes (a NUL, an endless key) can stop the projection. Numbers that are never negative pass here, too.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sqlx::{
    Decode, Encode, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueFormat, PgValueRef, types::Oid},
};
use uuid::Uuid;

/// The replacement for a NUL, which Postgres cannot hold.
const NUL_SHOWN: &str = "\u{fffd}";

/// A text of any length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Type)]
#[sqlx(transparent)]
pub struct SqlText(String);

impl SqlText {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SqlText {
    fn from(text: &str) -> Self {
        Self(text.replace('\0', NUL_SHOWN))
    }
}

/// A text that is looked up, hence short: an index holds no row above 2704 bytes. A longer one is kept as its
/// beginning and a digest of all of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Type)]
#[sqlx(transparent)]
pub struct SqlKey(String);

impl SqlKey {
    /// Longest key, in bytes.
    pub const MAX_LEN: usize = 200;

    /// `None` for an empty text.
    pub fn non_empty(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SqlKey {
    fn from(text: &str) -> Self {
        if text.len() <= Self::MAX_LEN {
            return Self(text.replace('\0', NUL_SHOWN));
        }
        let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes());
        let beginning: String = text.chars().take(32).collect();
        Self(format!("{}~{digest}", beginning.replace('\0', NUL_SHOWN)))
    }
}

/// JSON as text, to be cast to `jsonb` by the statement.
#[derive(Clone, Debug, PartialEq, Eq, Type)]
#[sqlx(transparent)]
pub struct SqlJson(String);

impl SqlJson {
    pub fn from_value(value: &impl Serialize) -> Self {
        let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        // A NUL is always written in this way; what merely looks like one is sorted out below.
        match text.contains("\\u0000").then(|| serde_json::from_str(&text)) {
            Some(Ok(mut value)) => {
                show_nuls(&mut value);
                Self(value.to_string())
            }
            _ => Self(text),
        }
    }

    /// JSON that is kept as text; what is not JSON becomes a JSON text.
    pub fn from_text(text: &str) -> Self {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => Self::from_value(&value),
            Err(_) => Self::from_value(&text),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn show_nuls(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace('\0', NUL_SHOWN),
        Value::Array(values) => values.iter_mut().for_each(show_nuls),
        Value::Object(fields) => {
            let old = std::mem::take(fields);
            fields.extend(old.into_iter().map(|(key, mut value)| {
                show_nuls(&mut value);
                (key.replace('\0', NUL_SHOWN), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A time, a `timestamptz` in Postgres, which keeps microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Time(pub Timestamp);

impl From<Time> for prost_types::Timestamp {
    fn from(time: Time) -> Self {
        kairo_proto::time::message(time.0)
    }
}

/// Microseconds from 1970 to 2000, where Postgres counts from.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;
/// `timestamptz` and its array, from `pg_type.dat`.
const TIMESTAMPTZ: PgTypeInfo = PgTypeInfo::with_oid(Oid(1184));
const TIMESTAMPTZ_ARRAY: PgTypeInfo = PgTypeInfo::with_oid(Oid(1185));

impl Type<Postgres> for Time {
    fn type_info() -> PgTypeInfo {
        TIMESTAMPTZ
    }
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        time.0
    }
}

impl PgHasArrayType for Time {
    fn array_type_info() -> PgTypeInfo {
        TIMESTAMPTZ_ARRAY
    }
}

impl Encode<'_, Postgres> for Time {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<Postgres>>::encode(self.0.as_microsecond() - POSTGRES_EPOCH, buffer)
    }
}

impl Decode<'_, Postgres> for Time {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        let since_2000 = match value.format() {
            PgValueFormat::Binary => i64::from_be_bytes(value.as_bytes()?.try_into()?),
            PgValueFormat::Text => return Err("expected a time in binary, as prepared statements return it".into()),
        };
        Ok(Self(Timestamp::from_microsecond(since_2000.saturating_add(POSTGRES_EPOCH))?))
    }
}

/// A `bigint` that is never negative, such as a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct U64(u64);

/// An `integer` that is never negative, such as a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct U32(u32);

macro_rules! unsigned {
    ($name:ident, $inner:ty, $signed:ty) => {
        impl From<$name> for $inner {
            fn from(number: $name) -> Self {
                number.0
            }
        }

        impl Type<Postgres> for $name {
            fn type_info() -> PgTypeInfo {
                <$signed as Type<Postgres>>::type_info()
            }
        }

        impl Decode<'_, Postgres> for $name {
            fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
                Ok(Self(<$signed as Decode<Postgres>>::decode(value)?.try_into()?))
            }
        }
    };
}

unsigned!(U64, u64, i64);
unsigned!(U32, u32, i32);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nuls_are_shown_wherever_they_hide() {
        assert_eq!(SqlText::from("a\0b"), SqlText("a\u{fffd}b".to_owned()));
        assert_eq!(SqlKey::from("a\0b").as_str(), "a\u{fffd}b");
        let value = json!({"k\0": ["\0", {"x": "\0y"}], "plain": "\\u0000"});
        let shown = json!({"k\u{fffd}": ["\u{fffd}", {"x": "\u{fffd}y"}], "plain": "\\u0000"});
        assert_eq!(serde_json::from_str::<Value>(SqlJson::from_value(&value).as_str()).unwrap(), shown);
    }

    #[test]
    fn long_keys_stay_apart_and_are_short() {
        let one = "x".repeat(5_000);
        let other = "x".repeat(5_001);
        assert_ne!(SqlKey::from(one.as_str()), SqlKey::from(other.as_str()));
        assert_eq!(SqlKey::from(one.as_str()), SqlKey::from(one.as_str()));
        let widest = "\u{10ffff}".repeat(5_000);
        assert!(SqlKey::from(widest.as_str()).as_str().len() <= SqlKey::MAX_LEN);
        let longest = "k".repeat(SqlKey::MAX_LEN);
        assert_eq!(SqlKey::from(longest.as_str()).as_str(), longest);
    }

    #[test]
    fn text_that_is_not_json_is_kept_as_text() {
        assert_eq!(SqlJson::from_text("{\"a\":1}").as_str(), "{\"a\":1}");
        assert_eq!(SqlJson::from_text("{oops").as_str(), "\"{oops\"");
    }
}
