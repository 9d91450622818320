//! How a client logs in, and how it hears what the server refuses it.

use async_nats::{ConnectOptions, Event, ServerError};

use crate::{
    bus::{NatsConfig, port::Cause, violations::Violations},
    permissions::{Identity, inbox_prefix},
    tls::use_ring,
};

/// The scheme of URLs of servers that encrypt.
pub const TLS: &str = "tls://";

/// As who, with what, and trusting whom.
pub(super) fn options(identity: Identity, nats: &NatsConfig, violations: &Violations) -> Result<ConnectOptions, Cause> {
    let counted = violations.clone();
    let mut options = ConnectOptions::new()
        // Answers come to inboxes that nobody else may listen to.
        .custom_inbox_prefix(inbox_prefix(identity.name()))
        .event_callback(move |event| {
            note(&counted, event);
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

fn note(violations: &Violations, event: Event) {
    if let Event::ServerError(ServerError::Other(said)) = event
        && said.to_lowercase().contains("permissions violation")
    {
        tracing::error!(said, "nats does not permit it");
        violations.count(said);
    }
}
