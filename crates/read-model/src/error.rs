//! The errors of queries.

use std::error::Error;

/// The kind of an error, which tells whether asking again may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// Postgres is away, starting, overloaded or not set up yet: the same query may succeed later.
    Unavailable,
    /// Postgres does not let this role in, or does not let it do that. It may later: projector grants rights when it
    /// starts.
    Denied,
    /// Something is wrong with the query or the schema.
    Other,
}

/// The reason for which a query has no answer.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .kind.describe())]
pub struct ReadError {
    pub kind: ReadErrorKind,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

impl ReadErrorKind {
    fn describe(self) -> &'static str {
        match self {
            ReadErrorKind::Unavailable => "postgres is unavailable",
            ReadErrorKind::Denied => {
                "postgres refuses the role of postgres.url (deploy/postgres-roles.sql makes kairo_gateway and \
                 kairo_tool_runner, and projector lets them in when it starts)"
            }
            ReadErrorKind::Other => "the read model cannot answer",
        }
    }

    fn from_sqlx(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => ReadErrorKind::Unavailable,
            // The position, the one row that must be there: projector has yet to bring the schema up.
            sqlx::Error::RowNotFound => ReadErrorKind::Unavailable,
            sqlx::Error::Database(error) if error.code().is_some_and(|code| is_transient(&code)) => {
                ReadErrorKind::Unavailable
            }
            sqlx::Error::Database(error) if error.code().is_some_and(|code| is_denial(&code)) => ReadErrorKind::Denied,
            _ => ReadErrorKind::Other,
        }
    }
}

impl ReadError {
    /// Something that is not about Postgres.
    pub(crate) fn from_other(source: impl Error + Send + Sync + 'static) -> Self {
        Self { kind: ReadErrorKind::Other, source: source.into() }
    }
}

impl From<sqlx::Error> for ReadError {
    fn from(error: sqlx::Error) -> Self {
        Self { kind: ReadErrorKind::from_sqlx(&error), source: error.into() }
    }
}

impl From<sqlx::migrate::MigrateError> for ReadError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        match error {
            sqlx::migrate::MigrateError::Execute(error) => error.into(),
            other => Self { kind: ReadErrorKind::Other, source: other.into() },
        }
    }
}

/// Returns true if the error of an SQLSTATE may pass
/// (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
fn is_transient(code: &str) -> bool {
    // Connection, rollback, resources, operator intervention, system.
    const CLASSES: [&str; 5] = ["08", "40", "53", "57", "58"];
    // Lock not available; database, table, column or function that projector has yet to make.
    const CODES: [&str; 5] = ["55P03", "3D000", "42P01", "42703", "42883"];
    CODES.contains(&code) || CLASSES.iter().any(|class| code.starts_with(class))
}

/// Returns true if an SQLSTATE is about the role that asks: its identity, or its rights.
fn is_denial(code: &str) -> bool {
    code == "42501" || code.starts_with("28")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        for code in ["08006", "40001", "53300", "57P01", "57P03", "42P01"] {
            assert!(is_transient(code), "{code}");
        }
        for code in ["22021", "23505", "42601", "54000"] {
            assert!(!is_transient(code), "{code}");
        }
        for code in ["28000", "28P01", "42501"] {
            assert!(is_denial(code) && !is_transient(code), "{code}");
        }
        assert_eq!(ReadErrorKind::from_sqlx(&sqlx::Error::PoolTimedOut), ReadErrorKind::Unavailable);
        assert_eq!(ReadErrorKind::from_sqlx(&sqlx::Error::RowNotFound), ReadErrorKind::Unavailable);
        assert_eq!(ReadErrorKind::from_sqlx(&sqlx::Error::InvalidArgument(String::new())), ReadErrorKind::Other);
    }
}
