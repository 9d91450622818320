//! The rights of readers, if gateway and tool-runner have roles of their own in Postgres
//! (`deploy/postgres-roles.sql`).
//!
//! projector owns everything, and grants the rights listed here: on the registry and the existing generations when it
//! starts, and on each generation in the transaction that makes it. A role that does not exist is passed over, so
//! that an installation with one role for all goes on as it is.

use std::fmt::Write;

use sqlx::{AssertSqlSafe, Connection, PgConnection, query_scalar, raw_sql};

use crate::TABLES;

/// A role that may read, and what it may.
#[derive(Clone, Copy, Debug)]
pub struct ReaderRole {
    pub role: &'static str,
    /// Tables of the registry.
    pub registry: &'static [&'static str],
    /// The requests it may make of projector, as the registry's functions of these names and arguments.
    pub requests: &'static [&'static str],
    /// Tables of each generation.
    pub tables: ReadableTables,
}

/// The tables of a generation that a reader may read.
#[derive(Clone, Copy, Debug)]
pub enum ReadableTables {
    /// All of them.
    All,
    /// These, and of each these columns; all of them if none is named.
    Only(&'static [(&'static str, &'static [&'static str])]),
}

/// All of them.
pub const READERS: [ReaderRole; 2] = [
    ReaderRole {
        role: "kairo_gateway",
        registry: &["generations", "positions", "set_aside", "refused_documents"],
        requests: &["request_rebuild(text, integer)", "request_swap(text, integer)", "request_drop(bigint)"],
        tables: ReadableTables::All,
    },
    ReaderRole {
        role: "kairo_tool_runner",
        registry: &["generations", "positions"],
        requests: &[],
        // Whose a thread is decides whose memories are found.
        tables: ReadableTables::Only(&[("memories", &[]), ("threads", &["agent", "thread_id", "user_id"])]),
    },
];

const ROLES: &str = "SELECT rolname::text FROM pg_roles WHERE rolname = ANY($1)";
const MADE: &str = "SELECT tablename::text FROM pg_tables WHERE schemaname = $1";
/// The generations that have tables; whoever makes those of another one lets readers in, too.
const PLACES: &str = "
    SELECT place FROM generations
    WHERE projection = 'read-model' AND state NOT IN ('asked', 'dropping') AND to_regnamespace(place) IS NOT NULL
    ORDER BY generation";

impl ReaderRole {
    /// Statements that let it into the registry.
    fn registry_grants(&self) -> String {
        let Self { role, registry, requests, .. } = self;
        let mut sql =
            format!("GRANT USAGE ON SCHEMA public TO {role}; GRANT SELECT ON {} TO {role};", registry.join(", "));
        for request in *requests {
            // Writing to a String cannot fail.
            let _ = write!(sql, "GRANT EXECUTE ON FUNCTION {request} TO {role};");
        }
        sql
    }

    /// Statements that let it into a generation that has these tables; one of another version may lack some.
    fn generation_grants(&self, place: &str, made: &[String]) -> String {
        let role = self.role;
        let mut sql = format!("GRANT USAGE ON SCHEMA {place} TO {role};");
        for (table, columns) in self.tables.to_list().into_iter().filter(|(table, _)| made.iter().any(|it| it == table))
        {
            let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
            // Writing to a String cannot fail.
            let _ = write!(sql, "GRANT SELECT{columns} ON {place}.{table} TO {role};");
        }
        sql
    }
}

impl ReadableTables {
    fn to_list(self) -> Vec<(&'static str, &'static [&'static str])> {
        const ALL: &[&str] = &[];
        match self {
            Self::All => TABLES.into_iter().map(|table| (table, ALL)).collect(),
            Self::Only(tables) => tables.to_vec(),
        }
    }
}

/// Lets readers into the registry, and into the generations that there are.
pub(crate) async fn grant_all(connection: &mut PgConnection) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    // So that nobody removes a generation meanwhile.
    raw_sql("LOCK TABLE generations IN ACCESS SHARE MODE").execute(&mut *transaction).await?;
    let readers = existing_readers(&mut transaction).await?;
    let sql: String = readers.iter().map(ReaderRole::registry_grants).collect();
    raw_sql(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
    let places: Vec<String> = query_scalar(PLACES).fetch_all(&mut *transaction).await?;
    for place in places {
        grant_generation(&mut transaction, &place).await?;
    }
    transaction.commit().await
}

/// Lets readers into the tables in this schema, which are of a generation.
pub async fn grant_generation(connection: &mut PgConnection, place: &str) -> sqlx::Result<()> {
    let readers = existing_readers(connection).await?;
    let made: Vec<String> = query_scalar(MADE).bind(place).fetch_all(&mut *connection).await?;
    let sql: String = readers.iter().map(|reader| reader.generation_grants(place, &made)).collect();
    raw_sql(AssertSqlSafe(sql)).execute(connection).await?;
    Ok(())
}

/// Those whose role exists here.
async fn existing_readers(connection: &mut PgConnection) -> sqlx::Result<Vec<ReaderRole>> {
    let roles: Vec<String> = query_scalar(ROLES).bind(READERS.map(|reader| reader.role)).fetch_all(connection).await?;
    Ok(READERS.into_iter().filter(|reader| roles.iter().any(|role| role == reader.role)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TABLES_SQL;

    fn table_names() -> Vec<String> {
        TABLES.map(str::to_owned).to_vec()
    }

    #[test]
    fn every_table_is_read_by_gateway_and_what_memory_search_needs_by_tool_runner() {
        let [gateway, tool_runner] = READERS;
        let sql = gateway.generation_grants("kairo_7", &table_names());
        for table in TABLES {
            assert!(sql.contains(&format!("GRANT SELECT ON kairo_7.{table} TO kairo_gateway;")), "{table}: {sql}");
        }
        assert_eq!(
            tool_runner.generation_grants("kairo_7", &table_names()),
            "GRANT USAGE ON SCHEMA kairo_7 TO kairo_tool_runner;\
             GRANT SELECT ON kairo_7.memories TO kairo_tool_runner;\
             GRANT SELECT (agent, thread_id, user_id) ON kairo_7.threads TO kairo_tool_runner;"
        );
    }

    /// The list of tables equals the tables made, so that whoever adds a table decides on its readers.
    #[test]
    fn the_tables_that_are_listed_are_those_that_are_made() {
        let made = TABLES_SQL.lines().filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split(' ').next());
        assert_eq!(made.collect::<Vec<_>>(), TABLES);
        for reader in READERS {
            assert!(reader.tables.to_list().iter().all(|(table, _)| TABLES.contains(table)), "{reader:?}");
        }
    }

    #[test]
    fn what_another_version_lacks_is_passed_over() {
        let [_, tool_runner] = READERS;
        assert_eq!(
            tool_runner.generation_grants("kairo_7", &["log".to_owned()]),
            "GRANT USAGE ON SCHEMA kairo_7 TO kairo_tool_runner;"
        );
    }
}
