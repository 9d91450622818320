//! Clients of our own, which nats-server knows by the user of an identity.

use async_nats::ConnectOptions;
use kairo_core::{bus::NatsConfig, config::Secret, tls::use_ring};
use kairo_local::Login;

/// For a bus.
pub fn config(login: &Login) -> NatsConfig {
    let Login { url, user, password, tls_ca } = login.clone();
    let tls_ca = tls_ca.map(|file| file.display().to_string()).unwrap_or_default();
    NatsConfig { url, user, password: Secret::new(password), tls_ca, ..Default::default() }
}

/// For a client without a bus.
pub fn options(login: &Login) -> ConnectOptions {
    let options = ConnectOptions::with_user_and_password(login.user.clone(), login.password.clone());
    match &login.tls_ca {
        None => options,
        Some(authority) => {
            use_ring();
            options.add_root_certificates(authority.clone()).require_tls(true)
        }
    }
}
