//! The capabilities of this service, as announced to agents.

use kairo_core::ids;
use kairo_proto::v1::{ProcessCapabilities, ToolArgument, ToolSpec};
use serde_json::{Map, Value, json};

use crate::{
    action_plan::{EXECUTOR, PROCESS_RUN, PROCESS_SPAWN},
    limits::ProcessLimits,
    policy::Policy,
};

/// The longest time to start a process once there is room for it, in milliseconds.
const START_MS: u64 = 10_000;
/// The argument that names the program.
const PROGRAM: &str = "program";

/// The tools on offer: none when no program may run. Equal ones have equal versions.
pub fn build_capabilities(policy: &Policy, limits: &ProcessLimits) -> ProcessCapabilities {
    let tools = match policy.programs.is_empty() {
        true => Vec::new(),
        false => vec![process_run_tool(policy, limits), process_spawn_tool(policy, limits)],
    };
    let timeouts: Vec<String> = tools.iter().map(|tool| tool.timeout_ms.to_string()).collect();
    let content: Vec<&str> = tools
        .iter()
        .zip(&timeouts)
        .flat_map(|(tool, timeout)| [&tool.name, &tool.description, &tool.schema, timeout].map(String::as_str))
        // Builds before it said nothing of this.
        .chain(["acts outside"])
        .collect();
    ProcessCapabilities { version: ids::from_parts("capabilities", &content).to_string(), tools }
}

fn process_run_tool(policy: &Policy, limits: &ProcessLimits) -> ToolSpec {
    ToolSpec {
        name: PROCESS_RUN.to_owned(),
        description: format!(
            "Runs a program and waits for it to end; answers with its exit code and the end of what it wrote. {} \
             Standard input is empty.",
            describe_programs(policy)
        ),
        schema: schema(policy, limits, json!({})),
        idempotent: false,
        timeout_ms: limits.time_ms().saturating_add(limits.grace_ms),
        executor: EXECUTOR.to_owned(),
        needs_approval: false,
        needs_approval_with: calls_needing_approval(policy),
        // What a page or a mail says must not start programs.
        acts_outside: true,
        ..ToolSpec::default()
    }
}

fn process_spawn_tool(policy: &Policy, limits: &ProcessLimits) -> ToolSpec {
    let stdin = json!({
        "type": "boolean",
        "description": "Whether to open its standard input, for process.write; else it is empty. Default false.",
    });
    ToolSpec {
        name: PROCESS_SPAWN.to_owned(),
        description: format!(
            "Starts a program and answers at once with its process_id, while it goes on by itself. {} It is stopped \
             after timeout_ms; at most {} processes may run at a time. A program says how far it is by writing a line \
             such as `::progress 42% <message>`, `::progress 3/10 <message>` or `::progress - <message>`, which \
             becomes its progress and no output.",
            describe_programs(policy),
            limits.per_agent,
        ),
        schema: schema(policy, limits, json!({ "stdin": stdin })),
        idempotent: false,
        timeout_ms: START_MS,
        executor: EXECUTOR.to_owned(),
        needs_approval: false,
        needs_approval_with: calls_needing_approval(policy),
        // What a page or a mail says must not start programs.
        acts_outside: true,
        ..ToolSpec::default()
    }
}

/// The calls that a human must consent to.
fn calls_needing_approval(policy: &Policy) -> Vec<ToolArgument> {
    let needing = policy.programs.iter().filter(|(_, program)| program.needs_approval());
    needing.map(|(name, _)| ToolArgument { name: PROGRAM.to_owned(), value: name.clone() }).collect()
}

fn describe_programs(policy: &Policy) -> String {
    let named = policy.programs.iter().map(|(name, program)| match program.needs_approval() {
        true => format!("{name} (the user is asked first)"),
        false => name.clone(),
    });
    let names: Vec<String> = named.collect();
    format!(
        "Programs: {}. There is no shell: every argument reaches the program as it is, without quoting, globs, \
         variables, pipes or redirection.",
        names.join(", ")
    )
}

/// The arguments both tools take, and `more`.
fn schema(policy: &Policy, limits: &ProcessLimits, more: Value) -> String {
    let names: Vec<&str> = policy.programs.keys().map(String::as_str).collect();
    let common = json!({
        PROGRAM: {"type": "string", "enum": names, "description": "The program to run."},
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
    });
    let properties: Map<String, Value> =
        [common, more].into_iter().filter_map(|properties| properties.as_object().cloned()).flatten().collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": ["program"],
        "additionalProperties": false,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Program, ProgramRequest};

    fn policy(programs: &[&str]) -> Policy {
        let program = |name: &&str| ((*name).to_owned(), Program::Path(format!("/bin/{name}").into()));
        Policy { programs: programs.iter().map(program).collect(), ..Policy::default() }
    }

    #[test]
    fn without_programs_there_is_no_tool() {
        assert!(build_capabilities(&policy(&[]), &ProcessLimits::default()).tools.is_empty());
    }

    #[test]
    fn the_version_depends_on_what_is_said() {
        let version = |programs: &[&str], limits: &ProcessLimits| build_capabilities(&policy(programs), limits).version;
        let echo = version(&["echo"], &ProcessLimits::default());
        assert_eq!(echo, version(&["echo"], &ProcessLimits::default()));
        assert_ne!(echo, version(&["echo", "ls"], &ProcessLimits::default()));
        assert_ne!(echo, version(&["echo"], &ProcessLimits { time_s: 1, ..ProcessLimits::default() }));
        assert_ne!(echo, version(&[], &ProcessLimits::default()));
    }

    #[test]
    fn what_needs_consent_is_said_to_whoever_asks_for_it_and_to_the_model() {
        let mut policy = policy(&["echo"]);
        let free = build_capabilities(&policy, &ProcessLimits::default());
        assert!(free.tools.iter().all(|tool| tool.needs_approval_with.is_empty()));
        let python = json!({"path": "/usr/bin/python3", "consent": true});
        policy.programs.insert("python3".to_owned(), serde_json::from_value(python).unwrap());
        let asking = build_capabilities(&policy, &ProcessLimits::default());
        for tool in &asking.tools {
            let python = ToolArgument { name: "program".to_owned(), value: "python3".to_owned() };
            assert_eq!((tool.needs_approval, &tool.needs_approval_with), (false, &vec![python]));
            assert!(tool.description.contains("echo, python3 (the user is asked first)"), "{}", tool.description);
        }
        assert_ne!(free.version, asking.version);
    }

    #[test]
    fn what_the_schemas_name_is_what_a_request_takes() {
        let capabilities = build_capabilities(&policy(&["echo"]), &ProcessLimits::default());
        let [run, spawn] = capabilities.tools.as_slice() else { panic!("two tools") };
        let common = json!({"program": "echo", "args": ["a"], "timeout_ms": 1});
        let with_stdin = json!({"program": "echo", "args": ["a"], "timeout_ms": 1, "stdin": true});
        for (tool, name, request) in [(run, PROCESS_RUN, common), (spawn, PROCESS_SPAWN, with_stdin)] {
            assert_eq!(tool.name, name);
            let schema: Value = serde_json::from_str(&tool.schema).unwrap();
            let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
            let takes: Vec<&String> = request.as_object().unwrap().keys().collect();
            assert_eq!(names, takes);
            assert!(serde_json::from_value::<ProgramRequest>(request).is_ok());
            assert_eq!(schema["properties"]["program"]["enum"], json!(["echo"]));
        }
        assert!(spawn.description.contains("::progress"), "{}", spawn.description);
    }
}
