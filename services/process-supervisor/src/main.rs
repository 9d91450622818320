use std::process::ExitCode;

use kairo_core::{process_protection, service, subjects::Service};
use kairo_process_supervisor::guard;

fn main() -> ExitCode {
    // The parts this program plays in processes of its own, which the service starts. They come before anything of
    // the service is set up: a guard has no threads, no runtime and no configuration.
    let role = std::env::args_os().nth(1);
    let played = match role.as_ref().and_then(|role| role.to_str()) {
        Some("guard") => {
            process_protection::forbid_dumping().map_err(|error| error.to_string()).and_then(|()| run_guard())
        }
        // It becomes the program, and is told nothing that is not the program's.
        Some("launch") => guard::launch::run().map_err(|error| error.to_string()),
        Some("init") => process_protection::forbid_dumping()
            .and_then(|()| guard::namespace::init())
            .map_err(|error| error.to_string()),
        Some("probe") => process_protection::forbid_dumping()
            .and_then(|()| guard::namespace::probe())
            .map_err(|error| error.to_string()),
        Some("probe-inside") => guard::namespace::probe_inside().map_err(|error| error.to_string()),
        Some("probe-network") => process_protection::forbid_dumping()
            .and_then(|()| guard::namespace::probe_network())
            .map_err(|error| error.to_string()),
        Some("probe-network-inside") => guard::namespace::probe_network_inside().map_err(|error| error.to_string()),
        Some("probe-seccomp") => guard::system_calls::probe().map_err(|error| error.to_string()),
        _ => return service::main(Service::ProcessSupervisor, kairo_process_supervisor::run),
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kairo-process-supervisor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_guard() -> Result<(), String> {
    guard::run().map_err(|error| error.to_string())
}
