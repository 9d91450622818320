//! Columns as rows of the contract show them: an id as a text, a time and JSON as messages have them. Each may be NULL, so
//! a statement says `AS "column!: Id"` of a column that may be.

use kairo_proto::v1::Json;
use prost_types::Timestamp;
use sqlx::{
    Decode, Postgres, Type, ValueRef,
    error::BoxDynError,
    postgres::{PgTypeInfo, PgValueFormat, PgValueRef},
};
use uuid::Uuid;

use crate::sql_values::Time;

/// A `uuid`.
#[derive(Debug)]
pub struct Id(Option<String>);

/// A `timestamptz`.
#[derive(Debug)]
pub struct At(Option<Timestamp>);

/// A `jsonb`, as Postgres writes it.
#[derive(Debug)]
pub struct Object(Option<Json>);

/// A `jsonb` that is a list of texts.
#[derive(Debug)]
pub struct Texts(Vec<String>);

impl From<Texts> for Vec<String> {
    fn from(column: Texts) -> Self {
        column.0
    }
}

impl Type<Postgres> for Texts {
    fn type_info() -> PgTypeInfo {
        <serde_json::Value as Type<Postgres>>::type_info()
    }
}

impl Decode<'_, Postgres> for Texts {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(Self(sqlx::types::Json::decode(value)?.0))
    }
}

macro_rules! shown {
    ($name:ident, $shown:ty, $stored:ty, $read:expr) => {
        impl From<$name> for Option<$shown> {
            fn from(column: $name) -> Self {
                column.0
            }
        }

        impl Type<Postgres> for $name {
            fn type_info() -> PgTypeInfo {
                <$stored as Type<Postgres>>::type_info()
            }
        }

        impl Decode<'_, Postgres> for $name {
            fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
                if value.is_null() { Ok(Self(None)) } else { Ok(Self(Some($read(value)?))) }
            }
        }
    };
}

shown!(Id, String, Uuid, |value| <Uuid as Decode<Postgres>>::decode(value).map(|id| id.to_string()));
shown!(At, Timestamp, Time, |value| <Time as Decode<Postgres>>::decode(value).map(Timestamp::from));
shown!(Object, Json, serde_json::Value, read_jsonb_text);

impl From<Id> for String {
    /// Empty for NULL, which a column that must be there never is.
    fn from(id: Id) -> Self {
        id.0.unwrap_or_default()
    }
}

fn read_jsonb_text(value: PgValueRef<'_>) -> Result<Json, BoxDynError> {
    let bytes = value.as_bytes()?;
    // In binary, a version stands in front of it.
    let bytes = match (value.format(), bytes) {
        (PgValueFormat::Binary, [1, text @ ..]) => text,
        (PgValueFormat::Binary, _) => return Err("expected version 1 of jsonb in binary".into()),
        (PgValueFormat::Text, text) => text,
    };
    Ok(Json { text: std::str::from_utf8(bytes)?.to_owned() })
}
