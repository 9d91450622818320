use std::process::ExitCode;

use kairo_core::{service, subjects::Service};

fn main() -> ExitCode {
    service::main(Service::ToolRunner, kairo_tool_runner::run)
}
