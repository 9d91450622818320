//! Login of a client, and events for requests the server refuses.

use async_nats::{ClientError, ConnectErrorKind, ConnectOptions, Event, ServerError};

use crate::{
    bus::{NatsConfig, port::Cause, violations::ViolationCounter},
    permissions::{NatsIdentity, inbox_prefix},
    tls::use_ring,
};

/// The scheme of URLs of servers that encrypt.
pub const TLS: &str = "tls://";

/// Builds the connect options: the user, the credentials, and the trusted authorities.
pub(super) fn connect_options(
    identity: NatsIdentity,
    nats: &NatsConfig,
    violations: &ViolationCounter,
) -> Result<ConnectOptions, Cause> {
    let counted = violations.clone();
    let shown = describe_credential(identity, nats);
    let mut options = ConnectOptions::new()
        // Answers come to inboxes that nobody else may listen to.
        .custom_inbox_prefix(inbox_prefix(identity.name()))
        .event_callback(move |event| {
            report_event(&counted, &shown, event);
            std::future::ready(())
        });
    if !nats.password.is_empty() {
        let user = if nats.user.is_empty() { identity.name() } else { &nats.user };
        options = options.user_and_password(user.to_owned(), nats.password.expose().to_owned());
    }
    if !nats.nkey.is_empty() {
        options = options.nkey(nats.nkey.expose().to_owned());
    }
    if !nats.token.is_empty() {
        options = options.token(nats.token.expose().to_owned());
    }
    if !nats.tls_ca.is_empty() {
        options = options.add_root_certificates(nats.tls_ca.clone().into());
    }
    let encrypts = nats.url.contains(TLS);
    if encrypts {
        use_ring();
    }
    // Also of servers that the first one tells of, which come without a scheme.
    Ok(options.require_tls(encrypts))
}

/// Describes the credential a client presents, and where the server must list it, for the operator who has to find out
/// why the login is refused.
fn describe_credential(identity: NatsIdentity, nats: &NatsConfig) -> String {
    let user = if nats.user.is_empty() { identity.name() } else { &nats.user };
    if !nats.nkey.is_empty() {
        "nats.nkey: look whether its public key is listed among the users of the servers".to_owned()
    } else if !nats.token.is_empty() {
        "nats.token: look whether it is that of the servers".to_owned()
    } else if !nats.password.is_empty() {
        format!("nats.password: look whether it is that of {user} among the users of the servers")
    } else {
        "nothing: set nats.password, nats.nkey or nats.token".to_owned()
    }
}

fn report_event(violations: &ViolationCounter, shown: &str, event: Event) {
    if let Event::ClientError(ClientError::Other(said)) = &event
        && *said == ConnectErrorKind::AuthorizationViolation.to_string()
    {
        tracing::error!("nats-server refuses the login with {shown}");
    }
    if let Event::ServerError(ServerError::Other(said)) = event
        && said.to_lowercase().contains("permissions violation")
    {
        tracing::error!(said, "nats does not permit it");
        violations.count_violation(said);
    }
}
