//! `kairo mcp`

mod callback;

use std::{io::IsTerminal, process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use kairo_proto::v1::{BeginMcpLoginResponse, FinishMcpLoginResponse, McpLogoutResponse};
use serde_json::{Value, json};
use url::Url;

use self::callback::Callback;
use super::Session;
use crate::{Error, event_lines::printable, terminal};

const LOGIN: &str = "\
Examples:
  kairo mcp login linear
  kairo mcp login linear --paste     on a machine without a browser
  kairo mcp login linear --redirect-uri http://localhost:3118/callback     where the client was registered with it

The server must have an oauth table with the grant authorization_code in tool_runner.mcp. The command opens a browser, in
which you sign in at the server's authorization server; it waits for up to 15 minutes until the browser comes back. Tokens
are kept by tool-runner, sealed under privacy.master_key, and renewed by it; whoever calls tools of the server acts with
what you granted.

Exit status: 0 if you are signed in, else 1.";
const LOGOUT: &str = "\
Example:
  kairo mcp logout linear

The tokens are forgotten, and revoked where the authorization server takes that.";

/// So long a person may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
const REDIRECT_URI: &str = "http://127.0.0.1:0/callback";
/// The port in a redirect URI that nobody listens at.
const NO_PORT: u16 = 33_418;

/// Sign in and out at MCP servers
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sign in at an MCP server that uses OAuth
    #[command(after_help = LOGIN)]
    Login(Login),
    /// Sign out there
    #[command(after_help = LOGOUT)]
    Logout {
        /// The server's name in tool_runner.mcp
        #[arg(value_name = "SERVER")]
        server: String,
    },
}

#[derive(Debug, Args)]
struct Login {
    /// The server's name in tool_runner.mcp
    #[arg(value_name = "SERVER")]
    server: String,
    /// Where the browser comes back to, on this machine; port 0 for any that is free
    #[arg(long, value_name = "URI", default_value = REDIRECT_URI)]
    redirect_uri: Url,
    /// Only show the address, and open no browser
    #[arg(long)]
    no_browser: bool,
    /// Wait for nobody: read the address that the browser was sent back to from standard input
    #[arg(long)]
    paste: bool,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    match arguments.command {
        Command::Login(arguments) => login(arguments, session).await,
        Command::Logout { server } => logout(&server, session).await,
    }
}

async fn login(arguments: Login, session: &Session) -> Result<ExitCode, Error> {
    let Login { server, mut redirect_uri, no_browser, paste } = arguments;
    let callback = match paste {
        true => None,
        false => Some(Callback::listen(&mut redirect_uri).await?),
    };
    if paste && redirect_uri.port() == Some(0) {
        let _ = redirect_uri.set_port(Some(NO_PORT));
    }
    let path = path(&server);
    let body = json!({ "redirect_uri": redirect_uri.as_str() });
    let begun: BeginMcpLoginResponse = session.read(session.client.post::<Value>(&path, &body).await?)?;
    // Not to standard output, which is the command's answer.
    eprintln!("Sign in at {server} with a browser:\n\n  {}\n", printable(&begun.address));
    if !no_browser && !paste && std::io::stderr().is_terminal() {
        let _ = open::that_detached(&begun.address);
    }
    let address = match callback {
        Some(callback) => tokio::time::timeout(PATIENCE, callback.wait()).await.unwrap_or_else(|_| {
            Err(Error::Advice(format!("nobody signed in within {} minutes; try again", PATIENCE.as_secs() / 60)))
        })?,
        None => pasted().await?,
    };
    let body = json!({ "address": address });
    let answer: Value = session.client.post(&format!("{path}/finish"), &body).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let FinishMcpLoginResponse { scopes } = session.read(answer)?;
    let granted = if scopes.is_empty() { String::new() } else { format!(" with {}", printable(&scopes.join(", "))) };
    terminal::line(format!("signed in at {server}{granted}"))?;
    Ok(ExitCode::SUCCESS)
}

async fn pasted() -> Result<String, Error> {
    eprintln!("Then paste the address that the browser shows at the end, which begins with http://, and press Enter:");
    let read = tokio::task::spawn_blocking(|| std::io::stdin().lines().next()).await;
    match read {
        Ok(Some(Ok(line))) if !line.trim().is_empty() => Ok(line.trim().to_owned()),
        _ => Err(Error::Advice("no address came on standard input; try again".to_owned())),
    }
}

async fn logout(server: &str, session: &Session) -> Result<ExitCode, Error> {
    let answer: Value = session.client.delete(&path(server)).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let told = match session.read(answer)? {
        McpLogoutResponse { forgotten: false, .. } => format!("nobody was signed in at {server}"),
        McpLogoutResponse { revoked: true, .. } => format!("signed out at {server}; the tokens are revoked"),
        McpLogoutResponse { .. } => {
            format!(
                "signed out at {server}; its authorization server does not revoke tokens, so end the access there, too"
            )
        }
    };
    terminal::line(told)?;
    Ok(ExitCode::SUCCESS)
}

fn path(server: &str) -> String {
    let name: String = url::form_urlencoded::byte_serialize(server.as_bytes()).collect();
    format!("v1/mcp/{name}/login")
}
