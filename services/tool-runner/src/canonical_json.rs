//! One text per JSON value, whatever order its keys arrived in.

use serde_json::Value;

/// JSON without spaces and with the keys of every object sorted. `serde_json` sorts them itself
/// unless some crate of the build turns its `preserve_order` feature on, so it is not relied on.
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by_key(|(key, _)| key.as_str());
            write_sequence(members, ['{', '}'], out, |(key, member), out| {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(member, out);
            });
        }
        Value::Array(items) => write_sequence(items, ['[', ']'], out, write),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

fn write_sequence<T>(
    items: impl IntoIterator<Item = T>,
    [open, close]: [char; 2],
    out: &mut String,
    mut write_item: impl FnMut(T, &mut String),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_item(item, out);
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value = json!({"b": [1, {"z": null, "a": "q\"uote"}], "a": {}});
        assert_eq!(canonical_json(&value), r#"{"a":{},"b":[1,{"a":"q\"uote","z":null}]}"#);
    }
}
