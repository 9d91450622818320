//! The statements that are checked when they are compiled: what was written down of them is what Postgres says, and each
//! query goes by its index.

mod cases;

use std::{fs, path::Path};

use kairo_local::{Postgres, Tools};
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Executor, PgConnection, SqlSafeStr, postgres::PgConnectOptions, query_scalar,
    raw_sql,
};
use tempfile::TempDir;

use cases::CASES;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const ROWS: &str = include_str!("queries/rows.sql");

/// A Postgres with the schema of the read model, in the default schema.
async fn postgres() -> (PgConnection, Postgres, TempDir) {
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let folder = tempfile::tempdir().unwrap();
    let options = tools.ephemeral_postgres_in(folder.path().join("postgres")).unwrap();
    let postgres = Postgres::start(options).await.unwrap();
    let url: PgConnectOptions = postgres.url("postgres").parse().unwrap();
    let mut connection = url.connect().await.unwrap();
    let read_model = Path::new(ROOT).join("crates/read-model");
    let mut scripts: Vec<_> =
        fs::read_dir(read_model.join("migrations")).unwrap().map(|file| file.unwrap().path()).collect();
    scripts.sort();
    scripts.extend(["model/tables.sql", "model/indexes.sql"].map(|file| read_model.join(file)));
    for script in scripts {
        raw_sql(AssertSqlSafe(fs::read_to_string(script).unwrap())).execute(&mut connection).await.unwrap();
    }
    (connection, postgres, folder)
}

/// Returns the query data that `scripts/prepare-queries` wrote.
fn written() -> Vec<Value> {
    let files = fs::read_dir(Path::new(ROOT).join(".sqlx")).unwrap().map(|file| file.unwrap().path());
    files.map(|file| serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()).collect()
}

fn statement(data: &Value) -> String {
    data["query"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_was_written_down_of_statements_is_what_postgres_says() {
    let (mut connection, _postgres, _folder) = postgres().await;
    let written = written();
    assert!(written.len() > 50, "{}", written.len());
    for data in written {
        let statement = statement(&data);
        let said = (&mut connection).describe(AssertSqlSafe(statement.clone()).into_sql_str()).await;
        let said = serde_json::to_value(said.unwrap_or_else(|error| panic!("{error}: {statement}"))).unwrap();
        // Not what can be null: Postgres tells it from how it would join, which follows how full tables are.
        for part in ["columns", "parameters"] {
            assert_eq!(said[part], data["describe"][part], "run scripts/prepare-queries: {statement}");
        }
    }
}

#[tokio::test]
async fn every_query_goes_by_its_index() {
    let (mut connection, _postgres, _folder) = postgres().await;
    raw_sql(ROWS).execute(&mut connection).await.unwrap();
    // As the connections of those who ask have it.
    raw_sql("SET plan_cache_mode = force_custom_plan").execute(&mut connection).await.unwrap();
    let statements = written();
    let queries = statements.iter().map(statement).filter(|text| {
        let text = text.trim_start();
        ["SELECT", "WITH RECURSIVE", "WITH called", "WITH counted"].iter().any(|begin| text.starts_with(begin))
    });
    let queries: Vec<(String, String)> =
        queries.map(|text| (text.split_whitespace().collect::<Vec<_>>().join(" "), text)).collect();
    let mut seen = vec![false; queries.len()];
    for (part, parameters, indexes) in CASES {
        let found: Vec<usize> = (0..queries.len()).filter(|at| queries[*at].0.contains(part)).collect();
        let [at] = found[..] else { panic!("{} queries have {part}", found.len()) };
        seen[at] = true;
        let plan = plan(&mut connection, &queries[at].1, parameters).await;
        let goes_by =
            |index: &str| plan.contains(&format!("using {index} ")) || plan.contains(&format!("on {index}  "));
        for alternatives in indexes.split(' ') {
            assert!(alternatives.split('|').any(goes_by), "{part} {parameters} must go by {alternatives}:\n{plan}");
        }
        assert!(!plan.contains("Seq Scan"), "{part} {parameters}:\n{plan}");
    }
    let unseen: Vec<_> = queries.iter().zip(seen).filter(|(_, seen)| !seen).map(|(query, _)| &query.0).collect();
    assert!(unseen.is_empty(), "no case says what these go by: {unseen:#?}");
}

async fn plan(connection: &mut PgConnection, statement: &str, parameters: &str) -> String {
    let parameters = parameters.replace("{ID}", "md5('77')::uuid").replace("{END}", "9223372036854775807");
    let parameters = if parameters.is_empty() { String::new() } else { format!("({parameters})") };
    raw_sql(AssertSqlSafe(format!("PREPARE asked AS {statement}"))).execute(&mut *connection).await.unwrap();
    let explain = AssertSqlSafe(format!("EXPLAIN EXECUTE asked{parameters}"));
    let lines: Vec<String> = query_scalar(explain).fetch_all(&mut *connection).await.unwrap();
    raw_sql("DEALLOCATE asked").execute(&mut *connection).await.unwrap();
    lines.join("\n")
}
