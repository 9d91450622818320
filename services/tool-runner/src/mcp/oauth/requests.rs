//! Answering the gateway when a person wants to sign in or out at a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use kairo_core::bus::port::{Heard, Subscription};
use kairo_core::bus::{Bus, BusError};
use kairo_core::subjects::MCP_SIGN_IN;
use kairo_proto::v1::{McpSignInAnswer, McpSignInBegin, McpSignInFinish, McpSignInRequest, mcp_sign_in_request::Ask};
use kairo_proto::words::McpSignInAnswered;
use prost::Message as _;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::login::SignedOut;
use super::sign_in::SignIn;

/// Questions dealt with at once; more are refused.
const AT_ONCE: usize = 16;

/// Sign-ins by the names of their servers; none for a server that is configured without.
pub type SignIns = BTreeMap<String, Option<Arc<SignIn>>>;

/// Answers until it is dropped.
pub struct Answering {
    _listening: AbortOnDropHandle<()>,
}

impl Answering {
    /// Begins to answer, in turn with the other replicas.
    ///
    /// # Errors
    /// When the bus does not let it listen.
    pub async fn begin(bus: &Bus, sign_ins: SignIns) -> Result<Self, BusError> {
        let questions = bus.subscribe_in_turn(MCP_SIGN_IN).await?;
        let listening = bus.spawn(listen(bus.clone(), questions, Arc::new(sign_ins)));
        Ok(Self { _listening: AbortOnDropHandle::new(listening) })
    }
}

async fn listen(bus: Bus, mut questions: Subscription, sign_ins: Arc<SignIns>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(question) = questions.next().await {
        let Heard { reply: Some(reply), payload, .. } = question else { continue };
        let (own, sign_ins, place) = (bus.clone(), sign_ins.clone(), room.clone().try_acquire_owned().ok());
        bus.spawn(async move {
            let answer = match McpSignInRequest::decode(payload) {
                _ if place.is_none() => refused("this tool-runner is asked too much at once; try again in a moment"),
                Ok(request) => answer(&sign_ins, request).await,
                Err(error) => refused(format!("this is no McpSignInRequest: {error}")),
            };
            if let Err(error) = own.say(&reply, answer.encode_to_vec()).await {
                tracing::debug!(%error, "an answer went nowhere");
            }
        });
    }
}

async fn answer(sign_ins: &SignIns, request: McpSignInRequest) -> McpSignInAnswer {
    let McpSignInRequest { server, ask } = request;
    let sign_in = match sign_ins.get(&server) {
        None => {
            let names: Vec<_> = sign_ins.keys().map(String::as_str).collect();
            let known =
                if names.is_empty() { "there is none".to_owned() } else { format!("there is {}", names.join(", ")) };
            let reason = format!("there is no MCP server {server:?} in tool_runner.mcp; {known}");
            let outcome = McpSignInAnswered::NoServer.as_str().to_owned();
            return McpSignInAnswer { outcome, reason, ..Default::default() };
        }
        Some(None) => return refused(format!("the MCP server {server} has no oauth in tool_runner.mcp")),
        Some(Some(sign_in)) => sign_in,
    };
    let outcome = match ask {
        Some(Ask::Begin(McpSignInBegin { redirect_uri })) => {
            sign_in.begin(&redirect_uri).await.map(|address| McpSignInAnswer { address, ..Default::default() })
        }
        Some(Ask::Finish(McpSignInFinish { address })) => sign_in.finish(&address).await.map(|scopes| {
            tracing::info!(server, "somebody signed in at an MCP server");
            McpSignInAnswer { scopes, ..Default::default() }
        }),
        Some(Ask::End(_)) => sign_in.sign_out().await.map(|done| {
            tracing::info!(server, "somebody signed out at an MCP server");
            let (forgotten, revoked) = (done != SignedOut::Nothing, done == SignedOut::Revoked);
            McpSignInAnswer { forgotten, revoked, ..Default::default() }
        }),
        None => Err("this build does not know what is asked".to_owned()),
    };
    match outcome {
        Ok(answer) => McpSignInAnswer { outcome: McpSignInAnswered::Done.as_str().to_owned(), ..answer },
        Err(reason) => refused(reason),
    }
}

fn refused(reason: impl Into<String>) -> McpSignInAnswer {
    let outcome = McpSignInAnswered::Refused.as_str().to_owned();
    McpSignInAnswer { outcome, reason: reason.into(), ..Default::default() }
}
