//! `kairo keys`, and the key that the command itself brings.

use std::{fs, path::Path, process::ExitCode, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use kairo_core::{config::Secret, ids::Name};
use kairo_proto::{
    time,
    v1::{ListKeysResponse, MakeKeyRequest, MakeKeyResponse},
    words,
};
use serde_json::Value;

use super::{GatewaySession, caps::CapOptions, duration, name};
use crate::{Error, event_lines::printable, rows, table::table, terminal};

/// The API key of whoever runs the command.
const VARIABLE: &str = "KAIRO_API_KEY";

/// Look after the API keys of the gateway
#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key and show it: it cannot be shown again
    #[command(
        after_help = "Examples:\n  kairo keys create --name shop --scope read,write --agent default --expires 30d\n  \
                            kairo keys create --name ann-phone --scope read,write --user ann\n  \
                            kairo keys create --name trial --scope write --cap-tokens-per-day 50000"
    )]
    Create(KeyCreateArgs),
    /// Show every key, but not its secret
    #[command(after_help = "Example:\n  kairo keys list")]
    List,
    /// Make a key worthless, at once
    #[command(after_help = "Example:\n  kairo keys revoke mjz5cqn2x7bd3kfa")]
    Revoke {
        /// The id of the key, as shown by `kairo keys list`
        #[arg(value_name = "ID", value_parser = key_id)]
        key_id: String,
    },
}

#[derive(Debug, Args)]
struct KeyCreateArgs {
    /// Holder of the key, in your own words
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Scopes of the key: read, write, admin
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
    scope: Vec<KeyScopeArg>,
    /// Only for this agent; may be given more than once
    #[arg(long, value_name = "AGENT", value_parser = name)]
    agent: Vec<Name>,
    /// Only for this user
    #[arg(long, value_name = "USER", value_parser = name)]
    user: Option<Name>,
    /// For so long, such as 12h or 30d
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,
    #[command(flatten)]
    caps: CapOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyScopeArg {
    Read,
    Write,
    Admin,
}

impl KeyScopeArg {
    fn to_scope(self) -> words::Scope {
        match self {
            Self::Read => words::Scope::Read,
            Self::Write => words::Scope::Write,
            Self::Admin => words::Scope::Admin,
        }
    }
}

pub(super) async fn run(arguments: KeysArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        KeysCommand::Create(wanted) => create_key(wanted, session).await?,
        KeysCommand::List => list_keys(session).await?,
        KeysCommand::Revoke { key_id } => {
            let answer: Value = session.client.delete(&format!("v1/keys/{key_id}")).await?;
            match session.json {
                true => terminal::json(&answer)?,
                false => terminal::line(format!("{key_id} is revoked"))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn create_key(wanted: KeyCreateArgs, session: &GatewaySession) -> Result<(), Error> {
    let expires_at = wanted.expires.map(|within| {
        let too_far = || Error::Advice("--expires: that is after the end of the calendar".to_owned());
        Timestamp::now().checked_add(within).map_err(|_| too_far())
    });
    let wanted = MakeKeyRequest {
        name: wanted.name,
        scopes: wanted.scope.into_iter().map(|scope| scope.to_scope().text()).collect(),
        agents: wanted.agent.iter().map(Name::to_string).collect(),
        user: wanted.user.map(|user| user.to_string()).unwrap_or_default(),
        expires_at: expires_at.transpose()?.map(time::message),
        caps: wanted.caps.into_caps(),
    };
    let answer: Value = session.client.post("v1/keys", &wanted).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(());
    }
    let MakeKeyResponse { key_id, key, .. } = session.parse_answer(answer)?;
    // The key alone goes to standard output, for `> file`.
    eprintln!("Keep this key, it is not shown again. `kairo keys revoke {key_id}` makes it worthless.");
    terminal::line(&key)?;
    Ok(())
}

async fn list_keys(session: &GatewaySession) -> Result<(), Error> {
    let Some(ListKeysResponse { keys }) = session.get_or_print_json("v1/keys", &[]).await? else { return Ok(()) };
    let or = |text: String, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text };
    let at = |time, never: &str| rows::time(time).map_or_else(|| never.to_owned(), |at| format!("{at:.0}"));
    let rows = keys.into_iter().map(|key| {
        [
            key.key_id,
            printable(&key.name),
            key.scopes.join(","),
            or(key.agents.join(","), "all"),
            key.user.unwrap_or_else(|| "all".to_owned()),
            at(key.created, ""),
            at(key.expires_at, "never"),
        ]
    });
    let heads = ["id", "name", "scopes", "agents", "user", "created", "expires"];
    table(heads, rows).into_iter().try_for_each(terminal::line)?;
    Ok(())
}

/// The key that the command brings: from the environment, else from the file.
pub(super) fn load_api_key(file: Option<&Path>) -> Result<Option<Secret>, Error> {
    let named = std::env::var(VARIABLE).ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    let (key, from) = match (named, file) {
        (Some(key), _) => (key, VARIABLE.to_owned()),
        (None, Some(file)) => {
            let read = fs::read_to_string(file).map_err(Error::file("read", file))?;
            (read.trim().to_owned(), file.display().to_string())
        }
        (None, None) => return Ok(None),
    };
    // What it is instead is not said: it may be another secret.
    match !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(Some(Secret::new(key))),
        false => Err(Error::Advice(format!(
            "{from} holds no API key: one is a single word, as `kairo keys create` shows it"
        ))),
    }
}

/// An id goes into a path.
fn key_id(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    fits.then(|| text.to_owned()).ok_or_else(|| "expected an id as `kairo keys list` shows it".to_owned())
}

/// Days have 24 hours.
fn lifetime(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.trim().parse::<i64>().ok());
    match days.and_then(|days| days.checked_mul(24)).and_then(SignedDuration::try_from_hours) {
        Some(days) if days.is_positive() => Duration::try_from(days).map_err(|error| error.to_string()),
        Some(_) => Err("expected a length of time such as 12h or 30d".to_owned()),
        None => duration(text).map_err(|_| "expected a length of time such as 12h or 30d".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_days_or_less() {
        assert_eq!(lifetime("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(lifetime("12h"), Ok(Duration::from_secs(12 * 3_600)));
        for bad in ["0d", "-1d", "d", "1y", "", "9223372036854775807d"] {
            assert!(lifetime(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_in_a_file_is_one_word_and_never_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "kairo_a_b\n").unwrap();
        let key = load_api_key(Some(file.path())).unwrap().unwrap();
        assert_eq!((key.expose(), format!("{key:?}").as_str()), ("kairo_a_b", "<redacted>"));
        for text in ["", "hunter2 hunter3", "hunter2\nhunter3"] {
            fs::write(file.path(), text).unwrap();
            let error = load_api_key(Some(file.path())).unwrap_err().to_string();
            assert!(error.contains("no API key") && !error.contains("hunter"), "{error}");
        }
    }

    #[test]
    fn an_id_is_what_the_list_shows() {
        assert!(key_id("mjz5cqn2x7bd3kfa").is_ok());
        for bad in ["", "a/b", "kairo_a_b", "A"] {
            assert!(key_id(bad).is_err(), "{bad}");
        }
    }
}
