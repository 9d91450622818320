//! `kairo mcp`

mod callback;

use std::{io::IsTerminal, process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use kairo_core::ids::Name;
use kairo_proto::{
    time,
    v1::{BeginMcpLoginResponse, FinishMcpLoginResponse, ListMcpSignInsResponse, McpLogoutResponse},
};
use serde_json::{Value, json};
use url::Url;

use self::callback::OauthCallback;
use super::{GatewaySession, name};
use crate::{Error, event_lines::printable, table::table, terminal};

const LOGIN: &str = "\
Examples:
  kairo mcp login linear
  kairo mcp login linear --user ann  where each user signs in
  kairo mcp login linear --paste     on a machine without a browser
  kairo mcp login linear --redirect-uri http://localhost:3118/callback     where the client was registered with it

The server must have an oauth table with the grant authorization_code in tool_runner.mcp. The command opens a browser, in
which you sign in at the server's authorization server; it waits for up to 15 minutes until the browser comes back. Tokens
are kept by tool-runner, sealed under privacy.master_key, and renewed by it. Whoever calls tools of the server acts with what
you granted; with --user, the calls of that user alone do.

Without --user it takes a key of the scope admin; with it, one of the scope write that may act as that user.

Exit status: 0 if you are signed in, else 1.";
const LOGOUT: &str = "\
Examples:
  kairo mcp logout linear
  kairo mcp logout linear --user ann

The tokens are forgotten, and revoked where the authorization server takes that.";

const SIGN_INS: &str = "\
Examples:
  kairo mcp sign-ins
  kairo mcp sign-ins --user ann

Without --user it takes a key of the scope admin.";

/// So long a person may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
const REDIRECT_URI: &str = "http://127.0.0.1:0/callback";
/// The port in a redirect URI that nobody listens at.
const NO_PORT: u16 = 33_418;

/// Sign in and out at MCP servers
#[derive(Debug, Args)]
pub(super) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Sign in at an MCP server that uses OAuth
    #[command(after_help = LOGIN)]
    Login(McpLoginArgs),
    /// Sign out there
    #[command(after_help = LOGOUT)]
    Logout {
        /// The server's name in tool_runner.mcp
        #[arg(value_name = "SERVER")]
        server: String,
        /// User who signs out, where each user signs in
        #[arg(long, value_parser = name, value_name = "NAME")]
        user: Option<Name>,
    },
    /// Show who is signed in
    #[command(name = "sign-ins", after_help = SIGN_INS)]
    SignIns {
        /// Only the sign-ins of this user
        #[arg(long, value_parser = name, value_name = "NAME")]
        user: Option<Name>,
    },
}

#[derive(Debug, Args)]
struct McpLoginArgs {
    /// The server's name in tool_runner.mcp
    #[arg(value_name = "SERVER")]
    server: String,
    /// User who signs in, where each user does
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// Address the browser comes back to, on this machine; port 0 for any that is free
    #[arg(long, value_name = "URI", default_value = REDIRECT_URI)]
    redirect_uri: Url,
    /// Only show the address, and open no browser
    #[arg(long)]
    no_browser: bool,
    /// Wait for nobody: read the address that the browser was sent back to from standard input
    #[arg(long)]
    paste: bool,
}

pub(super) async fn run(arguments: McpArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        McpCommand::Login(arguments) => login(arguments, session).await,
        McpCommand::Logout { server, user } => logout(&server, user.as_ref(), session).await,
        McpCommand::SignIns { user } => list_sign_ins(user.as_ref(), session).await,
    }
}

async fn login(arguments: McpLoginArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let McpLoginArgs { server, user, mut redirect_uri, no_browser, paste } = arguments;
    let callback = match paste {
        true => None,
        false => Some(OauthCallback::listen(&mut redirect_uri).await?),
    };
    if paste && redirect_uri.port() == Some(0) {
        let _ = redirect_uri.set_port(Some(NO_PORT));
    }
    let path = login_path(&server);
    let body = with_user(json!({ "redirect_uri": redirect_uri.as_str() }), user.as_ref());
    let begun: BeginMcpLoginResponse = session.parse_answer(session.client.post::<Value>(&path, &body).await?)?;
    // Not to standard output, which is the command's answer.
    eprintln!("Sign in at {server} with a browser:\n\n  {}\n", printable(&begun.address));
    if !no_browser && !paste && std::io::stderr().is_terminal() {
        let _ = open::that_detached(&begun.address);
    }
    let address = match callback {
        Some(callback) => tokio::time::timeout(PATIENCE, callback.wait_for_address()).await.unwrap_or_else(|_| {
            Err(Error::Advice(format!("nobody signed in within {} minutes; try again", PATIENCE.as_secs() / 60)))
        })?,
        None => read_pasted_address().await?,
    };
    let body = with_user(json!({ "address": address }), user.as_ref());
    let answer: Value = session.client.post(&format!("{path}/finish"), &body).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let FinishMcpLoginResponse { scopes } = session.parse_answer(answer)?;
    let granted = if scopes.is_empty() { String::new() } else { format!(" with {}", printable(&scopes.join(", "))) };
    let whom = user.map(|user| format!("{user} is ")).unwrap_or_default();
    terminal::line(format!("{whom}signed in at {server}{granted}"))?;
    Ok(ExitCode::SUCCESS)
}

async fn read_pasted_address() -> Result<String, Error> {
    eprintln!("Then paste the address that the browser shows at the end, which begins with http://, and press Enter:");
    let read = tokio::task::spawn_blocking(|| std::io::stdin().lines().next()).await;
    match read {
        Ok(Some(Ok(line))) if !line.trim().is_empty() => Ok(line.trim().to_owned()),
        _ => Err(Error::Advice("no address came on standard input; try again".to_owned())),
    }
}

fn with_user(mut body: Value, user: Option<&Name>) -> Value {
    if let (Some(user), Value::Object(fields)) = (user, &mut body) {
        fields.insert("user".to_owned(), json!(user.as_str()));
    }
    body
}

async fn logout(server: &str, user: Option<&Name>, session: &GatewaySession) -> Result<ExitCode, Error> {
    let of_user = user.map(|user| format!("?user={user}")).unwrap_or_default();
    let answer: Value = session.client.delete(&format!("{}{of_user}", login_path(server))).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let told = match session.parse_answer(answer)? {
        McpLogoutResponse { forgotten: false, .. } => match user {
            Some(user) => format!("{user} was not signed in at {server}"),
            None => format!("nobody was signed in at {server}"),
        },
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

async fn list_sign_ins(user: Option<&Name>, session: &GatewaySession) -> Result<ExitCode, Error> {
    let query: Vec<_> = user.map(|user| ("user", user.to_string())).into_iter().collect();
    let answer: Value = session.client.get("v1/mcp/sign-ins", &query).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ListMcpSignInsResponse { sign_ins } = session.parse_answer(answer)?;
    if sign_ins.is_empty() {
        terminal::line("nobody is signed in")?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = sign_ins.into_iter().map(|row| {
        let since = row.since.as_ref().and_then(time::read);
        let since = since.map_or_else(|| "-".to_owned(), |since| since.strftime("%Y-%m-%d %H:%M:%SZ").to_string());
        let user = row.user.unwrap_or_else(|| "all users".to_owned());
        [printable(&row.server), printable(&user), since, printable(&row.scopes.join(", "))]
    });
    for line in table(["server", "user", "since", "scopes"], rows) {
        terminal::line(line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn login_path(server: &str) -> String {
    let name: String = url::form_urlencoded::byte_serialize(server.as_bytes()).collect();
    format!("v1/mcp/{name}/login")
}
