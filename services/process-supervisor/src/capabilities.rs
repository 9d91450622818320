//! What this service can do, as agents are told.

use kairo_core::ids;
use kairo_proto::v1::{ProcessCapabilities, ToolSpec};
use serde_json::json;

use crate::{limits::Limits, plan::EXECUTOR, policy::Policy};

/// The tool that runs a program.
pub const PROCESS_RUN: &str = "process.run";

/// The tools on offer: none when no program may run. Equal ones have equal versions.
pub fn capabilities(policy: &Policy, limits: &Limits) -> ProcessCapabilities {
    let tools = match policy.programs.is_empty() {
        true => Vec::new(),
        false => vec![process_run(policy, limits)],
    };
    let timeouts: Vec<String> = tools.iter().map(|tool| tool.timeout_ms.to_string()).collect();
    let content: Vec<&str> = tools
        .iter()
        .zip(&timeouts)
        .flat_map(|(tool, timeout)| [&tool.name, &tool.description, &tool.schema, timeout].map(String::as_str))
        .collect();
    ProcessCapabilities { version: ids::named("capabilities", &content).to_string(), tools }
}

fn process_run(policy: &Policy, limits: &Limits) -> ToolSpec {
    let names: Vec<&str> = policy.programs.keys().map(String::as_str).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "program": {"type": "string", "enum": names, "description": "The program to run."},
            "args": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": limits.arguments,
                "description": "Its arguments, one string each. Default none.",
            },
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": limits.time_ms(),
                "description": "Milliseconds after which it is stopped. Default the maximum.",
            },
        },
        "required": ["program"],
        "additionalProperties": false,
    });
    ToolSpec {
        name: PROCESS_RUN.to_owned(),
        description: format!(
            "Runs a program and waits for it to end; answers with its exit code and the end of what it wrote. \
             Programs: {}. There is no shell: every argument reaches the program as it is, without quoting, globs, \
             variables, pipes or redirection. Standard input is empty.",
            names.join(", ")
        ),
        schema: schema.to_string(),
        idempotent: false,
        timeout_ms: limits.time_ms().saturating_add(limits.grace_ms),
        executor: EXECUTOR.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::policy::{Program, Request};

    fn policy(programs: &[&str]) -> Policy {
        let program = |name: &&str| ((*name).to_owned(), Program::Path(format!("/bin/{name}").into()));
        Policy { programs: programs.iter().map(program).collect(), env: BTreeMap::new() }
    }

    #[test]
    fn without_programs_there_is_no_tool() {
        assert!(capabilities(&policy(&[]), &Limits::default()).tools.is_empty());
    }

    #[test]
    fn the_version_depends_on_what_is_said() {
        let version = |programs: &[&str], limits: &Limits| capabilities(&policy(programs), limits).version;
        let echo = version(&["echo"], &Limits::default());
        assert_eq!(echo, version(&["echo"], &Limits::default()));
        assert_ne!(echo, version(&["echo", "ls"], &Limits::default()));
        assert_ne!(echo, version(&["echo"], &Limits { time_s: 1, ..Limits::default() }));
        assert_ne!(echo, version(&[], &Limits::default()));
    }

    #[test]
    fn what_the_schema_names_is_what_a_request_takes() {
        let capabilities = capabilities(&policy(&["echo"]), &Limits::default());
        let schema: serde_json::Value = serde_json::from_str(&capabilities.tools[0].schema).unwrap();
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names.len(), 3, "{names:?}");
        let request = json!({"program": "echo", "args": ["a"], "timeout_ms": 1});
        assert!(names.iter().all(|name| request.get(name.as_str()).is_some()), "{names:?}");
        assert!(serde_json::from_value::<Request>(request).is_ok());
        assert_eq!(schema["properties"]["program"]["enum"], json!(["echo"]));
    }
}
