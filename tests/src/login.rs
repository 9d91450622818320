//! Clients of our own, which nats-server knows by the user of an identity.

use async_nats::ConnectOptions;
use kairo_core::{bus::NatsConfig, config::Secret};
use kairo_local::Login;

/// For a bus.
pub fn config(login: &Login) -> NatsConfig {
    let Login { url, user, password } = login.clone();
    NatsConfig { url, user, password: Secret::new(password), ..Default::default() }
}

/// For a client without a bus.
pub fn options(login: &Login) -> ConnectOptions {
    ConnectOptions::with_user_and_password(login.user.clone(), login.password.clone())
}
