//! The two servers that a Kairo needs.

use crate::{Database, LocalError, NatsOptions, NatsServer, PgOptions, Postgres};

/// nats-server and Postgres, with a database for Kairo. Dropping them kills both.
#[derive(Debug)]
pub struct Servers {
    pub nats: NatsServer,
    pub postgres: Postgres,
    /// Kairo's, with a role for each service.
    pub database: Database,
}

impl Servers {
    /// Starts both at once.
    pub async fn start(nats: NatsOptions, postgres: PgOptions) -> Result<Self, LocalError> {
        let (nats, postgres) = tokio::join!(NatsServer::start(nats), Postgres::start(postgres));
        let nats = nats?;
        let postgres = postgres?;
        let database = postgres.create_kairo_database("kairo").await?;
        Ok(Self { nats, postgres, database })
    }
}
