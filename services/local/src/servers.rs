//! The two servers that a Kairo needs.

use crate::{LocalError, NatsOptions, NatsServer, PgOptions, Postgres};

/// nats-server and Postgres, with a database for Kairo. Dropping them kills both.
#[derive(Debug)]
pub struct Servers {
    pub nats: NatsServer,
    pub postgres: Postgres,
    /// The URL of the database, with its password: not to be logged.
    pub database: String,
}

impl Servers {
    /// Starts both at once.
    pub async fn start(nats: NatsOptions, postgres: PgOptions) -> Result<Self, LocalError> {
        let (nats, postgres) = tokio::join!(NatsServer::start(nats), Postgres::start(postgres));
        let (nats, postgres) = (nats?, postgres?);
        let database = postgres.create_database("kairo").await?;
        Ok(Self { nats, postgres, database })
    }
}
