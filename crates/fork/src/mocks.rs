//! The answers of tools in a fork that were given in advance. Pure.

use kairo_proto::words::ToolErrorKind;
use kairo_tool_runner::tool::{CallResult, ToolError};
use serde::Deserialize;
use serde_json::Value;

/// Answers in their order: the first that fits is taken.
#[derive(Clone, Debug, Default)]
pub struct Mocks(Vec<Mock>);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mock {
    tool: String,
    /// The arguments that a call must have; it may have others, too.
    #[serde(default)]
    arguments: serde_json::Map<String, Value>,
    result: Option<Value>,
    /// It fails, for this reason.
    error: Option<String>,
}

impl Mocks {
    /// Reads a list in YAML, each with `tool`, `result` or `error`, and where it is not for every call the `arguments` it is for.
    ///
    /// # Errors
    /// If the list is wrong; the error says where.
    pub fn parse(yaml: &str) -> Result<Self, String> {
        let mocks: Vec<Mock> = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        let wrong = mocks.iter().position(|mock| mock.result.is_some() == mock.error.is_some());
        match wrong {
            Some(at) => Err(format!(
                "[{at}] ({}): expected either `result` or `error`",
                mocks.get(at).map_or("", |it| &it.tool)
            )),
            None => Ok(Self(mocks)),
        }
    }

    /// Returns the result given for a call, if there is one.
    pub fn find(&self, tool: &str, arguments: &Value) -> Option<CallResult> {
        let fits = |mock: &&Mock| {
            let has = |(name, value): (&String, &Value)| arguments.get(name) == Some(value);
            mock.tool == tool && mock.arguments.iter().all(has)
        };
        self.0.iter().find(fits).map(|mock| match (&mock.result, &mock.error) {
            (Some(result), _) => Ok(result.clone()),
            (None, why) => Err(ToolError::new(ToolErrorKind::Failed, why.clone().unwrap_or_default())),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_that_fits_answers() {
        let mocks = Mocks::parse(
            "- { tool: book, arguments: { slot: 9 }, error: taken }\n- { tool: book, result: { booked: true } }\n",
        );
        let mocks = mocks.unwrap();
        let failed = Err(ToolError::new(ToolErrorKind::Failed, "taken"));
        assert_eq!(mocks.find("book", &json!({ "slot": 9, "for": "ann" })), Some(failed));
        assert_eq!(mocks.find("book", &json!({ "slot": 10 })), Some(Ok(json!({ "booked": true }))));
        assert_eq!(mocks.find("other", &json!({})), None);
    }

    #[test]
    fn what_is_no_mock_is_told_with_its_place() {
        for (yaml, told) in [
            ("- tool: book", "[0] (book): expected either `result` or `error`"),
            ("- { tool: a, result: 1, error: no }", "[0] (a)"),
            ("- { tool: a, results: 1 }", "results"),
            ("tool: book", "line 1"),
        ] {
            let error = Mocks::parse(yaml).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
