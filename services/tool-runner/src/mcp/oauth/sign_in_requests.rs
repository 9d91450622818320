//! Answering the gateway when a person wants to sign in or out at a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use jiff::Timestamp;
use kairo_core::bus::port::{LiveMessage, LiveSubscription};
use kairo_core::bus::{Bus, BusError, kv::BucketEntry};
use kairo_core::ids::Name;
use kairo_core::subjects::{MCP_SIGN_IN, SIGN_INS_BUCKET};
use kairo_proto::time;
use kairo_proto::v1::{
    McpSignInAnswer, McpSignInBegin, McpSignInFinish, McpSignInRequest, McpSignInRow, mcp_sign_in_request::Ask,
};
use kairo_proto::words::McpSignInAnswered;
use prost::Message as _;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::login::SignOutOutcome;
use super::user_sign_ins::SignIns;

/// Questions dealt with at once; more are refused.
const AT_ONCE: usize = 16;

/// Sign-ins by the names of their servers; none for a server that is configured without.
pub type SignInsByServer = BTreeMap<String, Option<SignIns>>;

/// Answers until it is dropped.
pub struct SignInResponder {
    _listening: AbortOnDropHandle<()>,
}

impl SignInResponder {
    /// Begins to answer, in turn with the other replicas.
    ///
    /// # Errors
    /// When the bus does not let it listen.
    pub async fn start(bus: &Bus, sign_ins: SignInsByServer) -> Result<Self, BusError> {
        let questions = bus.subscribe_shared(MCP_SIGN_IN).await?;
        let listening = bus.spawn(answer_requests(bus.clone(), questions, Arc::new(sign_ins)));
        Ok(Self { _listening: AbortOnDropHandle::new(listening) })
    }
}

async fn answer_requests(bus: Bus, mut questions: LiveSubscription, sign_ins: Arc<SignInsByServer>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(question) = questions.next().await {
        let LiveMessage { reply: Some(reply), payload, .. } = question else { continue };
        let own = bus.clone();
        let sign_ins = sign_ins.clone();
        let place = room.clone().try_acquire_owned().ok();
        bus.spawn(async move {
            let answer = match McpSignInRequest::decode(payload) {
                _ if place.is_none() => {
                    refusal_answer("this tool-runner is asked too much at once; try again in a moment")
                }
                Ok(request) => answer_request(&own, &sign_ins, request).await,
                Err(error) => refusal_answer(format!("this is no McpSignInRequest: {error}")),
            };
            if let Err(error) = own.send_live(&reply, answer.encode_to_vec()).await {
                tracing::debug!(%error, "an answer went nowhere");
            }
        });
    }
}

async fn answer_request(bus: &Bus, sign_ins: &SignInsByServer, request: McpSignInRequest) -> McpSignInAnswer {
    let McpSignInRequest { server, user, ask } = request;
    let user = match Some(user).filter(|user| !user.is_empty()).map(|user| Name::parse(&user)).transpose() {
        Ok(user) => user,
        Err(error) => return refusal_answer(error.to_string()),
    };
    let outcome = match ask {
        Some(Ask::List(_)) => list_sign_ins(sign_ins, user.as_ref())
            .await
            .map(|sign_ins| McpSignInAnswer { sign_ins, ..Default::default() }),
        Some(Ask::Forget(_)) => sign_out_everywhere(bus, sign_ins, user.as_ref()).await,
        Some(ask) => match find_sign_ins(sign_ins, &server) {
            Ok(of_server) => sign_in_or_out(&server, of_server, user.as_ref(), ask).await,
            Err(answer) => return *answer,
        },
        None => Err("this build does not know what is asked".to_owned()),
    };
    match outcome {
        Ok(answer) => McpSignInAnswer { outcome: McpSignInAnswered::Done.as_str().to_owned(), ..answer },
        Err(reason) => refusal_answer(reason),
    }
}

fn find_sign_ins<'s>(sign_ins: &'s SignInsByServer, server: &str) -> Result<&'s SignIns, Box<McpSignInAnswer>> {
    match sign_ins.get(server) {
        None => {
            let names: Vec<_> = sign_ins.keys().map(String::as_str).collect();
            let known =
                if names.is_empty() { "there is none".to_owned() } else { format!("there is {}", names.join(", ")) };
            let reason = format!("there is no MCP server {server:?} in tool_runner.mcp; {known}");
            let outcome = McpSignInAnswered::NoServer.as_str().to_owned();
            Err(Box::new(McpSignInAnswer { outcome, reason, ..Default::default() }))
        }
        Some(None) => Err(Box::new(refusal_answer(format!("the MCP server {server} has no oauth in tool_runner.mcp")))),
        Some(Some(of_server)) => Ok(of_server),
    }
}

/// Signs somebody in or out.
async fn sign_in_or_out(
    server: &str,
    of_server: &SignIns,
    user: Option<&Name>,
    ask: Ask,
) -> Result<McpSignInAnswer, String> {
    let sign_in = of_server
        .for_user(user)
        .map_err(|reason| format!("the MCP server {server} cannot be signed in at so: {reason}"))?;
    let answer = match ask {
        Ask::Begin(McpSignInBegin { redirect_uri }) => {
            let address = sign_in.begin(&redirect_uri).await?;
            return Ok(McpSignInAnswer { address, ..Default::default() });
        }
        Ask::Finish(McpSignInFinish { address }) => {
            let scopes = sign_in.finish(&address).await?;
            tracing::info!(server, "somebody signed in at an MCP server");
            McpSignInAnswer { scopes, ..Default::default() }
        }
        Ask::End(_) => {
            let done = sign_in.sign_out().await?;
            tracing::info!(server, "somebody signed out at an MCP server");
            let forgotten = done != SignOutOutcome::Nothing;
            let revoked = done == SignOutOutcome::Revoked;
            McpSignInAnswer { forgotten, revoked, ..Default::default() }
        }
        Ask::List(_) | Ask::Forget(_) => McpSignInAnswer::default(),
    };
    of_server.announce_change();
    Ok(answer)
}

/// Lists the sign-ins at each server: of one user, or of everybody, including those that servers have for all.
async fn list_sign_ins(sign_ins: &SignInsByServer, user: Option<&Name>) -> Result<Vec<McpSignInRow>, String> {
    let row = |server: &str, user: Option<&Name>, scopes: Vec<String>, since: Option<Timestamp>| McpSignInRow {
        server: server.to_owned(),
        user: user.map(Name::to_string),
        scopes,
        since: since.map(time::message),
    };
    let mut rows = Vec::new();
    for (server, of_server) in sign_ins {
        match (of_server, user) {
            (Some(SignIns::Users(users)), Some(user)) => {
                let granted = users.for_user(user).load_grant().await.map_err(|error| error.to_string())?;
                rows.extend(granted.map(|(scopes, since)| row(server, Some(user), scopes, since)));
            }
            (Some(SignIns::Users(users)), None) => {
                let mut signed_in = users.list_signed_in().await.map_err(|error| error.to_string())?;
                signed_in.sort_by(|one, other| one.user.cmp(&other.user));
                rows.extend(signed_in.into_iter().map(|one| row(server, Some(&one.user), one.scopes, one.since)));
            }
            (Some(SignIns::Server(sign_in)), None) => {
                let granted = sign_in.load_grant().await.map_err(|error| error.to_string())?;
                rows.extend(granted.map(|(scopes, since)| row(server, None, scopes, since)));
            }
            (Some(SignIns::Server(_)), Some(_)) | (None, _) => {}
        }
    }
    Ok(rows)
}

/// Signs a user out everywhere.
async fn sign_out_everywhere(
    bus: &Bus,
    sign_ins: &SignInsByServer,
    user: Option<&Name>,
) -> Result<McpSignInAnswer, String> {
    let user = user.ok_or("no user is named")?;
    let mut forgotten = false;
    let mut revoked = true;
    for of_server in sign_ins.values().flatten() {
        let SignIns::Users(users) = of_server else { continue };
        let done = users.sign_out(user).await?;
        forgotten |= done != SignOutOutcome::Nothing;
        revoked &= done != SignOutOutcome::Forgotten;
    }
    // Also those of servers that are not configured any more, at which nobody can be signed out.
    let left = bus.read_values(SIGN_INS_BUCKET, &format!("*.{user}")).await.map_err(|error| error.to_string())?;
    for BucketEntry { key, revision, .. } in left {
        bus.delete_value(SIGN_INS_BUCKET, &key, revision).await.map_err(|error| error.to_string())?;
        (forgotten, revoked) = (true, false);
    }
    Ok(McpSignInAnswer { forgotten, revoked: forgotten && revoked, ..Default::default() })
}

fn refusal_answer(reason: impl Into<String>) -> McpSignInAnswer {
    let outcome = McpSignInAnswered::Refused.as_str().to_owned();
    McpSignInAnswer { outcome, reason: reason.into(), ..Default::default() }
}
