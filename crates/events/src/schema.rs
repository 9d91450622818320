//! The size of a JSON Schema with all its references written out.
//!
//! Schemas come from whoever offers a tool. A short one can refer to itself in ways that take a validator longer than
//! anybody waits, so it is measured before it is compiled.

use std::fmt;

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Values of a schema when all that it refers to is written out.
pub const MAX_VALUES: usize = 20_000;
/// Deepest nesting of such a schema.
pub const MAX_DEPTH: usize = 64;

/// The size of a schema that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaSize {
    /// Values when all that it refers to is written out, except where it refers to what is being written out.
    pub values: usize,
    /// Places where it refers to what contains them, as a tree refers to its branches. With more than one of them, an
    /// argument that is nested may have to be checked in exponentially many ways.
    pub returns: usize,
}

/// The reason a schema is not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnmeasurableSchema {
    Values,
    Depth,
    /// A reference to something outside the schema.
    Elsewhere(String),
    /// A keyword that changes what references mean.
    Moving(&'static str),
}

impl fmt::Display for UnmeasurableSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Values => write!(f, "it unfolds to more than {MAX_VALUES} values"),
            Self::Depth => write!(f, "it is nested deeper than {MAX_DEPTH} levels"),
            Self::Elsewhere(reference) => {
                write!(f, "it refers to {reference:?}, expected a place within it as in \"#/$defs/name\"")
            }
            Self::Moving(keyword) => write!(f, "it has {keyword}, which is not supported below its top"),
        }
    }
}

/// Measures a schema, in bounded time whatever it is.
///
/// # Errors
/// When it is too large, or what it refers to cannot be told.
pub fn measure(schema: &Value) -> Result<SchemaSize, UnmeasurableSchema> {
    let mut measuring = SchemaMeasurer { root: schema, open: Vec::new(), extent: SchemaSize { values: 0, returns: 0 } };
    measuring.measure_value(schema, SchemaPart::Schema, MAX_DEPTH)?;
    Ok(measuring.extent)
}

/// The place within a schema that a `$ref` names.
pub fn resolve_ref<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
    root.pointer(&pointer)
}

/// The kind of a value in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPart {
    Schema,
    /// Schemas by names that anybody may choose.
    Named,
    /// Of the caller's, in which nothing refers to anything.
    Data,
}

impl SchemaPart {
    fn child_part(self, key: &str) -> Self {
        match (self, key) {
            (Self::Data, _) | (Self::Schema, "default" | "examples" | "enum" | "const") => Self::Data,
            (
                Self::Schema,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
            ) => Self::Named,
            (Self::Schema | Self::Named, _) => Self::Schema,
        }
    }
}

struct SchemaMeasurer<'s> {
    root: &'s Value,
    /// The values that are being written out.
    open: Vec<&'s Value>,
    extent: SchemaSize,
}

impl<'s> SchemaMeasurer<'s> {
    fn measure_value(&mut self, value: &'s Value, part: SchemaPart, levels: usize) -> Result<(), UnmeasurableSchema> {
        let levels = levels.checked_sub(1).ok_or(UnmeasurableSchema::Depth)?;
        self.extent.values += 1;
        if self.extent.values > MAX_VALUES {
            return Err(UnmeasurableSchema::Values);
        }
        match value {
            Value::Object(fields) => {
                let inner = !std::ptr::eq(value, self.root);
                self.open.push(value);
                for (key, field) in fields {
                    match (part, key.as_str(), field) {
                        (SchemaPart::Schema, "$ref", Value::String(reference)) => self.follow_ref(reference, levels)?,
                        (SchemaPart::Schema, "$dynamicRef", Value::String(_)) => {
                            return Err(UnmeasurableSchema::Moving("$dynamicRef"));
                        }
                        (SchemaPart::Schema, "$recursiveRef", Value::String(_)) => {
                            return Err(UnmeasurableSchema::Moving("$recursiveRef"));
                        }
                        (SchemaPart::Schema, "$id", Value::String(_)) if inner => {
                            return Err(UnmeasurableSchema::Moving("$id"));
                        }
                        (SchemaPart::Schema, "id", Value::String(_)) if inner => {
                            return Err(UnmeasurableSchema::Moving("id"));
                        }
                        (_, key, field) => self.measure_value(field, part.child_part(key), levels)?,
                    }
                }
                self.open.pop();
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.measure_value(item, part, levels))?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    fn follow_ref(&mut self, reference: &str, levels: usize) -> Result<(), UnmeasurableSchema> {
        let elsewhere = || UnmeasurableSchema::Elsewhere(reference.chars().take(100).collect());
        let place = resolve_ref(self.root, reference).ok_or_else(elsewhere)?;
        if self.open.iter().any(|open| std::ptr::eq(*open, place)) {
            self.extent.returns += 1;
            self.extent.values += 1;
            return Ok(());
        }
        self.measure_value(place, SchemaPart::Schema, levels)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn of(schema: &Value) -> Result<(usize, usize), String> {
        measure(schema).map(|extent| (extent.values, extent.returns)).map_err(|error| error.to_string())
    }

    /// Each definition refers twice to the next.
    fn doubling(count: usize) -> Value {
        let mut defs: Map<String, Value> = (0..count)
            .map(|at| {
                let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
                (format!("d{at}"), json!({"allOf": [next, next]}))
            })
            .collect();
        defs.insert(format!("d{count}"), json!({"type": "string"}));
        json!({"type": "object", "$defs": defs, "$ref": "#/$defs/d0"})
    }

    #[test]
    fn what_is_referred_to_counts_each_time() {
        assert_eq!(of(&json!({"type": "string"})), Ok((2, 0)));
        let schema = json!({"$defs": {"a b": {"type": "string"}}, "anyOf": [{"$ref": "#/$defs/a%20b"}, true]});
        assert_eq!(of(&schema), Ok((9, 0)));
        assert!(of(&doubling(3)).is_ok());
    }

    #[test]
    fn what_unfolds_without_end_is_told_at_once() {
        for count in [12, 20] {
            assert_eq!(measure(&doubling(count)), Err(UnmeasurableSchema::Values), "{count}");
        }
        assert!(measure(&doubling(500)).is_err());
        // Each refers to all: they unfold in as many ways as they can be put in order.
        let all: Vec<Value> = (0..30).map(|at| json!({"$ref": format!("#/$defs/d{at}")})).collect();
        let defs: Map<String, Value> = (0..30).map(|at| (format!("d{at}"), json!({"anyOf": all}))).collect();
        assert!(measure(&json!({"$defs": defs})).is_err());
        let deep = (0..MAX_DEPTH).fold(json!({}), |inner, _| json!({"not": inner}));
        assert_eq!(measure(&deep), Err(UnmeasurableSchema::Depth));
        assert_eq!(measure(&json!({"enum": vec![0; MAX_VALUES]})), Err(UnmeasurableSchema::Values));
    }

    #[test]
    fn what_refers_to_what_contains_it_returns() {
        let tree = json!({"$defs": {"node": {"properties": {"children": {"items": {"$ref": "#/$defs/node"}}}}}});
        assert_eq!(of(&tree).unwrap().1, 1);
        assert_eq!(of(&json!({"$ref": "#"})), Ok((2, 1)));
        assert_eq!(of(&json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}})).unwrap().1, 2);
    }

    #[test]
    fn references_are_read_only_where_they_are_some() {
        let examples = json!({
            "$id": "https://example.org/tool",
            "properties": {
                "$ref": {"type": "string"},
                "id": {"type": "string", "default": {"$ref": "nowhere", "id": "x"}, "examples": [{"$id": "y"}]},
                "default": {"$ref": "#/$defs/a"},
            },
            "$defs": {"a": {"const": {"id": "z"}}},
        });
        assert!(of(&examples).is_ok(), "{:?}", of(&examples));
        for (schema, problem) in [
            (json!({"$ref": "https://example.org/schema.json"}), "refers to \"https://example.org/schema.json\""),
            (json!({"properties": {"default": {"$ref": "#/$defs/none"}}}), "refers to \"#/$defs/none\""),
            (json!({"$ref": "#name"}), "refers to \"#name\""),
            (json!({"$dynamicRef": "#meta"}), "$dynamicRef"),
            (json!({"not": {"$id": "x"}}), "$id"),
            (json!({"not": {"id": "x"}}), "has id"),
        ] {
            let error = of(&schema).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
