use std::process::ExitCode;

use kairo_core::process_protection;

fn main() -> ExitCode {
    // It holds API keys, and with `kairo dev` all that services are given.
    if let Err(error) = process_protection::forbid_dumping() {
        eprintln!("kairo: cannot close itself to other programs of its user: {error}");
        return ExitCode::FAILURE;
    }
    serve()
}

#[tokio::main]
async fn serve() -> ExitCode {
    kairo_cli::main().await
}
