//! Searching the tables themselves.

use std::collections::BTreeMap;

use kairo_proto::{
    v1::{HitRow, SearchResponse},
    words::SearchBackend,
};
use sqlx::{FromRow, Postgres, QueryBuilder, Row as _};

use super::{
    DocumentKind, MAX_HITS, SearchQuery,
    highlight::snippet,
    rows::{SearchRow, union_of_kinds},
    to_search_facets,
    words::{SearchWord, parse_words},
};
use crate::{
    ReadError, ReadSnapshot,
    sql_values::{SqlKey, SqlText, Time},
};

/// The facets in the order of their bits, of which one that is 0 says that the row counts values of it.
const FACETS: [&str; 4] = ["kind", "agent", "type", "status"];
/// The suffix of a lexeme that begins a word.
const BEGINNING: &str = ":*";
const COUNT: &str = "SELECT count(*), NULL, 15 FROM found";
const COUNTS: &str = "SELECT count(*), coalesce(kind, agent, type, status), grouping(kind, agent, type, status) \
                      FROM found GROUP BY GROUPING SETS ((), (kind), (agent), (type), (status))";

impl ReadSnapshot {
    /// Returns the hits, best first; without words, last changed first. By indexes `…_by_word` and `…_by_likeness`.
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchResponse, ReadError> {
        let words = parse_words(&query.words);
        let mut connection = self.connection().await;
        let mut sql = matching_rows_sql(query, &words);
        sql.push(if query.facets { COUNTS } else { COUNT });
        let rows = sql.build().fetch_all(&mut **connection).await?;
        let mut total = 0;
        let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for row in rows {
            let (count, value, bits): (i64, Option<String>, i32) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let count = u64::try_from(count).unwrap_or(0);
            let facet = FACETS.iter().rev().enumerate().find(|(bit, _)| bits & (1 << bit) == 0);
            match (facet, value) {
                (Some((_, facet)), Some(value)) => {
                    _ = counts.entry((*facet).to_owned()).or_default().insert(value, count);
                }
                (None, _) => total = count,
                // Those that have no value.
                (Some(_), None) => {}
            }
        }
        let mut sql = matching_rows_sql(query, &words);
        let limit = query.limit.clamp(1, MAX_HITS);
        sql.push("SELECT * FROM found ORDER BY score DESC, updated_at DESC, sequence DESC, kind, agent, id LIMIT ");
        sql.push_bind(i64::from(limit));
        sql.push(" OFFSET ").push_bind(i64::from(query.offset()));
        let rows = sql.build().fetch_all(&mut **connection).await?;
        let hits = rows.iter().map(|row| to_hit_row(row, &words)).collect::<Result<Vec<_>, sqlx::Error>>()?;
        Ok(SearchResponse {
            hits: hits.into_iter().flatten().collect(),
            total,
            facets: query.facets.then(|| to_search_facets(counts)),
            backend: SearchBackend::Postgres.text(),
            position: self.position(),
        })
    }
}

fn to_hit_row(row: &sqlx::postgres::PgRow, words: &[SearchWord]) -> sqlx::Result<Option<HitRow>> {
    let score = row.try_get("score")?;
    let updated_at: Time = row.try_get("updated_at")?;
    Ok(SearchRow::from_row(row)?.into_document().map(|document| HitRow {
        snippet: snippet(&document.text, words),
        kind: document.kind.name().to_owned(),
        id: document.id,
        agent: document.agent,
        user: document.user,
        title: document.title,
        r#type: document.kind_of,
        status: document.status,
        updated_at: Some(updated_at.into()),
        score,
        thread_id: document.thread,
    }))
}

/// `WITH found AS` all that fits.
fn matching_rows_sql(query: &SearchQuery, words: &[SearchWord]) -> QueryBuilder<Postgres> {
    let mut sql = QueryBuilder::new("WITH found AS (SELECT rows.*, ");
    if words.is_empty() {
        sql.push("0::float8 AS score");
    } else {
        push_score(words, &mut sql);
    }
    let kinds = if query.kinds.is_empty() { &DocumentKind::ALL[..] } else { &query.kinds };
    sql.push(format_args!(" FROM {} WHERE true", union_of_kinds(kinds)));
    words.iter().for_each(|word| push_occurrence(word, &mut sql));
    push_conditions(query, &mut sql);
    sql.push(") ");
    sql
}

/// Adds the score of a row, 0 to 1: rows with more of the exact words rank first, then rows with more occurrences of
/// them or with some in the title.
fn push_score(words: &[SearchWord], sql: &mut QueryBuilder<Postgres>) {
    sql.push("((");
    for word in words {
        sql.push("(words @@ to_tsquery('simple', ")
            .push_bind(SqlText::from(quote_lexeme(&word.text).as_str()))
            .push("))::int + ");
    }
    let any = words.iter().map(to_lexeme).collect::<Vec<_>>().join(" | ");
    sql.push("ts_rank(words, to_tsquery('simple', ").push_bind(SqlText::from(any.as_str()));
    sql.push(format_args!("))) / {})::float8 AS score", words.len() + 1));
}

/// A word for `to_tsquery`. It is of letters and digits only, so there is nothing in it that means something there.
fn to_lexeme(word: &SearchWord) -> String {
    format!("{}{}", quote_lexeme(&word.text), if word.begins { BEGINNING } else { "" })
}

fn quote_lexeme(text: &str) -> String {
    format!("'{text}'")
}

fn push_occurrence(word: &SearchWord, sql: &mut QueryBuilder<Postgres>) {
    sql.push(" AND (words @@ to_tsquery('simple', ").push_bind(SqlText::from(to_lexeme(word).as_str())).push(")");
    if word.max_typos() > 0 {
        push_misspelling(word, sql);
    }
    if word.is_unspaced() {
        sql.push(" OR fuzzy LIKE ").push_bind(SqlText::from(format!("%{}%", word.text).as_str()));
    }
    sql.push(")");
}

/// ` OR` a misspelling of the word occurs: the indexes find what has a trace of it, of which each is looked at.
fn push_misspelling(word: &SearchWord, sql: &mut QueryBuilder<Postgres>) {
    let traces = word.misspelling_traces();
    sql.push(" OR (");
    let mut any = sql.separated(" OR ");
    if !traces.beginnings.is_empty() {
        let beginnings: Vec<String> =
            traces.beginnings.iter().map(|text| format!("{}{BEGINNING}", quote_lexeme(text))).collect();
        any.push("words @@ to_tsquery('simple', ");
        any.push_bind_unseparated(SqlText::from(beginnings.join(" | ").as_str())).push_unseparated(")");
    }
    for part in &traces.parts {
        any.push("fuzzy LIKE ").push_bind_unseparated(SqlText::from(format!("%{part}%").as_str()));
    }
    sql.push(") AND search_resembles(words, ").push_bind(SqlText::from(word.text.as_str()));
    sql.push(format_args!(", {}, {})", word.max_typos(), word.begins));
}

fn push_conditions(query: &SearchQuery, sql: &mut QueryBuilder<Postgres>) {
    for (column, value) in [("agent", &query.agent), ("type", &query.kind_of), ("status", &query.status)] {
        if let Some(value) = value {
            sql.push(format_args!(" AND {column} = ")).push_bind(SqlKey::from(value.as_str()));
        }
    }
    if let Some(user) = &query.user {
        // What is written for all is a memory or inner state; a thread of nobody is not everybody's, and a message is always
        // somebody's.
        sql.push(" AND (user_id = ").push_bind(SqlKey::from(user.as_str()));
        sql.push(" OR (user_id IS NULL AND kind IN ('memory', 'state')))");
    }
    if let Some(from) = query.from {
        sql.push(" AND day >= ").push_bind(super::day_number(from));
    }
    if let Some(to) = query.to {
        sql.push(" AND day <= ").push_bind(super::day_number(to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_in_the_statement() {
        let statement = |query: &SearchQuery| {
            let sql = matching_rows_sql(query, &parse_words(&query.words));
            let text = sql.sql().as_str().to_owned();
            text.split_once(" AS rows WHERE ").map(|(_, conditions)| conditions.to_owned()).unwrap()
        };
        assert_eq!(statement(&SearchQuery::default()), "true) ");
        let query = SearchQuery { words: "'); -- it quays".into(), agent: Some("bob".into()), ..Default::default() };
        assert_eq!(
            statement(&query),
            "true AND (words @@ to_tsquery('simple', $4)) AND (words @@ to_tsquery('simple', $5) \
             OR (words @@ to_tsquery('simple', $6) OR fuzzy LIKE $7 OR fuzzy LIKE $8) AND search_resembles(words, $9, 1, true)) \
             AND agent = $10) "
        );
    }
}
