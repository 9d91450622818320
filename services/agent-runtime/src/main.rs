use std::process::ExitCode;

use kairo_core::{service, subjects::Service};

fn main() -> ExitCode {
    service::main(Service::AgentRuntime, kairo_agent_runtime::run)
}
