use std::process::ExitCode;

use kairo_core::{service, subjects::Service};
use kairo_process_supervisor::guard;

fn main() -> ExitCode {
    // The parts this program plays in processes of its own, which the service starts. They come before anything of
    // the service is set up: a guard has no threads, no runtime and no configuration.
    let role = std::env::args_os().nth(1);
    let played = match role.as_ref().and_then(|role| role.to_str()) {
        Some("guard") => guard::run().map_err(|error| error.to_string()),
        Some("launch") => guard::launch::run().map_err(|error| error.to_string()),
        _ => return serve(),
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kairo-process-supervisor: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The service itself. The programs it runs may have its user, and none of them shall read its memory or its
/// environment, where secrets are.
fn serve() -> ExitCode {
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        eprintln!("kairo-process-supervisor: cannot close itself to the programs it runs: {error}");
        return ExitCode::FAILURE;
    }
    service::main(Service::ProcessSupervisor, kairo_process_supervisor::run)
}
