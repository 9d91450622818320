//! The values with a JSON form of their own: a position in the log is `"7.1"`, or `7` for a whole message, which may
//! also be read from text; and JSON stands as itself.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use serde_json::Value;

use crate::v1::{Json, Place};

impl Json {
    /// Returns the parsed value; null for a text that is not JSON.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self { text: value.to_string() }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<Value>(&self.text).map_err(serde::ser::Error::custom)?.serialize(out)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::from(&Value::deserialize(from)?))
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.position {
            Some(position) => out.collect_str(&format_args!("{}.{position}", self.sequence)),
            None => out.serialize_u64(self.sequence),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = match Written::deserialize(from)? {
            Written::Number(sequence) => return Ok(Self { sequence, position: None }),
            Written::Text(text) => text,
        };
        let (sequence, position) = match text.split_once('.') {
            Some((sequence, position)) => (sequence, Some(position.parse().map_err(Error::custom)?)),
            None => (text.as_str(), None),
        };
        Ok(Self { sequence: sequence.parse().map_err(Error::custom)?, position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_what_it_says() {
        let text = r#"{"a":[18446744073709551615,0.5,null],"b":"\u0000"}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!((json.text.as_str(), serde_json::to_string(&json).unwrap().as_str()), (text, text));
        assert!(serde_json::to_string(&Json::default()).is_err());
    }

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let places = [Place { sequence: 7, position: Some(0) }, Place { sequence: u64::MAX, position: None }];
        for place in places {
            let text = serde_json::to_string(&place).unwrap();
            assert_eq!(serde_json::from_str::<Place>(&text).unwrap(), place, "{text}");
        }
        assert_eq!(serde_json::from_str::<Place>(r#""7""#).unwrap(), Place { sequence: 7, position: None });
        for wrong in [r#""7.""#, r#""x""#, "-1", "null", "{}"] {
            assert!(serde_json::from_str::<Place>(wrong).is_err(), "{wrong}");
        }
    }
}
