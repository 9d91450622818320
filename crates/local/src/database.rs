//! Kairo's database in a private Postgres, and the role that each service has there.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::cluster::{SUPERUSER, load_or_create_secret};
use crate::error::LocalError;
use crate::stack::Service;

/// The script that makes the roles in a deployment, used here, too.
const ROLES_SQL: &str = include_str!("../../../deploy/postgres-roles.sql");

/// The services that have a role, and its name.
const ROLES: [(Service, &str); 3] = [
    (Service::Projector, "kairo_projector"),
    (Service::Gateway, "kairo_gateway"),
    (Service::ToolRunner, "kairo_tool_runner"),
];

/// The place of Kairo's database, with a URL for each role. URLs hold passwords: not to be logged.
#[derive(Clone)]
pub struct Database {
    /// As superuser: for whoever looks behind the services, and for none of them.
    pub url: String,
    roles: BTreeMap<Service, String>,
}

impl Database {
    /// The database of this name on this port, where the superuser and the roles have these passwords.
    pub fn new(port: u16, name: &str, superuser: &str, passwords: &BTreeMap<Service, String>) -> Self {
        let url = |role: &str, password: &str| format!("postgres://{role}:{password}@127.0.0.1:{port}/{name}");
        let roles =
            ROLES.into_iter().filter_map(|(service, role)| Some((service, url(role, passwords.get(&service)?))));
        Self { url: url(SUPERUSER, superuser), roles: roles.collect() }
    }

    /// The URL for a service, none if it does not go there.
    pub fn service_url(&self, service: Service) -> Option<&str> {
        self.roles.get(&service).map(String::as_str)
    }

    /// Returns the setting with its URL for a service; none if the service does not use it.
    pub fn settings(&self, service: Service) -> Option<(String, String)> {
        Some(("KAIRO_POSTGRES__URL".to_owned(), self.service_url(service)?.to_owned()))
    }

    /// Makes the roles, or gives them what is here, and their passwords.
    pub(crate) async fn make_roles(&self, passwords: &BTreeMap<Service, String>) -> Result<(), LocalError> {
        let mut connection = PgConnection::connect(&self.url).await?;
        sqlx::raw_sql(ROLES_SQL).execute(&mut connection).await?;
        for (service, role) in ROLES {
            let password = passwords.get(&service).map_or("", String::as_str);
            // A password cannot be a parameter; ours are of letters and digits.
            let statement = format!("ALTER ROLE {role} PASSWORD '{password}'");
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
        }
        connection.close().await?;
        Ok(())
    }
}

/// The passwords in this folder, each in a file for its owner alone that is called like the role; made if missing.
pub(crate) fn load_passwords(dir: &Path) -> Result<BTreeMap<Service, String>, LocalError> {
    std::fs::create_dir_all(dir).map_err(LocalError::io("cannot create", dir))?;
    ROLES.into_iter().map(|(service, role)| Ok((service, load_or_create_secret(&dir.join(role))?))).collect()
}

impl fmt::Debug for Database {
    /// Without the passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}
