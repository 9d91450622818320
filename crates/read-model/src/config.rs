//! The configuration of the connection to Postgres.

use std::time::Duration;

use kairo_core::{
    config::{Mistake, Secret, Validate, check},
    tls::use_ring,
};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::ReadError;

/// Section `postgres`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`. Default `postgres://kairo@127.0.0.1:5432/kairo`. With
    /// `?sslmode=verify-full` the connection is encrypted, and an authority must vouch for the server's name: one that
    /// the system knows or that `sslrootcert=` names, a file in PEM; without, the connection is encrypted if the server
    /// offers that, and the server is not verified.
    ///
    /// projector needs sessions of its own (its lock lives in one), so a pooler in front must not share sessions.
    pub url: Secret,
    /// Maximum number of connections one replica uses for queries, shared among callers; others wait. Default 8.
    pub max_connections: u32,
    /// Longest wait for a connection within the caller's share, and as long again for Postgres where it is away, in
    /// milliseconds. Default 3000.
    pub acquire_timeout_ms: u64,
    /// Longest time a statement may take, in milliseconds. Default 10000.
    pub statement_timeout_ms: u64,
}

impl Default for PostgresConfig {
    fn default() -> Self {
        Self {
            url: Secret::public_default("postgres://kairo@127.0.0.1:5432/kairo"),
            max_connections: 8,
            acquire_timeout_ms: 3_000,
            statement_timeout_ms: 10_000,
        }
    }
}

impl PostgresConfig {
    /// Returns the options that every connection is opened with.
    ///
    /// # Errors
    /// When the URL cannot be read; the error does not quote it.
    pub fn connect_options(&self) -> Result<PgConnectOptions, ReadError> {
        let options: PgConnectOptions = self.url.expose().parse()?;
        if matches!(options.get_ssl_mode(), PgSslMode::VerifyCa) {
            // Which sqlx does not say itself for this mode.
            use_ring();
        }
        let statement_timeout = self.statement_timeout_ms.to_string();
        // A transaction that nobody goes on with, as when its process is frozen, keeps a rebuild away no longer.
        let limits = ["statement_timeout", "idle_in_transaction_session_timeout"];
        let options = options.options(limits.map(|limit| (limit, &statement_timeout)));
        // By itself Postgres would look into the schema that is named as the user, which may be that of the views.
        Ok(options.application_name("kairo").options([("search_path", "public")]))
    }

    /// Returns the connection options for queries: each is planned with its parameters known, so that optional
    /// conditions (`$1::text IS NULL OR agent = $1`) stand in the way of no index.
    ///
    /// # Errors
    /// As above.
    pub fn query_options(&self) -> Result<PgConnectOptions, ReadError> {
        Ok(self.connect_options()?.options([("plan_cache_mode", "force_custom_plan")]))
    }

    pub(crate) fn acquire_timeout(&self) -> Duration {
        Duration::from_millis(self.acquire_timeout_ms)
    }
}

impl Validate for PostgresConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let scheme = self.url.expose().split("://").next();
        if !matches!(scheme, Some("postgres" | "postgresql")) || self.connect_options().is_err() {
            let advice = "write it as postgres://user:password@host:port/database";
            mistakes.push(Mistake::new("url", "expected the URL of a Postgres database", advice));
        }
        check(&mut mistakes, "max_connections", self.max_connections, 1..=1_000, "connections");
        check(&mut mistakes, "acquire_timeout_ms", self.acquire_timeout_ms, 100..=60_000, "milliseconds");
        check(&mut mistakes, "statement_timeout_ms", self.statement_timeout_ms, 100..=600_000, "milliseconds");
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_can_be_used() {
        assert_eq!(PostgresConfig::default().mistakes(), []);
    }

    #[test]
    fn a_url_of_something_else_is_a_mistake_that_is_not_quoted() {
        let url = Secret::new("mysql://ann:hunter2@db".to_owned());
        let mistakes = PostgresConfig { url, ..Default::default() }.mistakes();
        assert_eq!(mistakes.len(), 1);
        assert!(!mistakes[0].to_string().contains("hunter2"));
    }
}
