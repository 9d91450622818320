use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kairo_cli::main().await
}
