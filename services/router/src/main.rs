use std::process::ExitCode;

use kairo_core::{service, subjects::Service};

fn main() -> ExitCode {
    service::main(Service::Router, kairo_router::run)
}
