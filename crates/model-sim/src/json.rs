//! Reaching into JSON that may not be what it should be. Pure.

use serde_json::Value;

static NOTHING: Value = Value::Null;

/// Returns the value at a JSON pointer, such as `/choices/0/delta`; null if there is nothing.
pub(crate) fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or(&NOTHING)
}

/// Sets a field, if it is of an object.
pub(crate) fn set_field(value: &mut Value, key: &str, new: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(key.to_owned(), new);
    }
}

/// Takes a field away, if it is there.
pub(crate) fn remove_field(value: &mut Value, key: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(key);
    }
}
