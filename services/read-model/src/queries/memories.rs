//! What agents remember: searched by words, or listed by day.

use std::collections::BTreeSet;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::{
    MAX_ROWS, ReadError, Snapshot,
    stored::{Key, Text, Time},
};

/// Words of a query that are looked for, and the letters of one.
const WORDS: usize = 16;
const LETTERS: usize = 64;
/// How alike a misspelt word must be, 0 to 1, to one of the subject or the keywords.
pub(crate) const ALIKE: f32 = 0.45;

/// A memory.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct Memory {
    pub agent: String,
    pub memory_id: Uuid,
    /// Whom it was written for; none for all.
    #[sqlx(rename = "user_id")]
    pub user: Option<String>,
    /// journal, person, project, preference, decision, insight, fact, state or secret
    #[serde(rename = "type")]
    pub kind: String,
    /// Whom or what it is about; empty for a journal entry.
    pub subject: String,
    /// With `[secret <name>]` in the place of what was sealed.
    pub content: String,
    pub keywords: Vec<String>,
    /// YYYY-MM-DD, in the agent's time zone.
    pub day: Option<String>,
    pub thread_id: Option<String>,
    pub source_event_ids: Vec<String>,
    #[sqlx(json)]
    pub secrets: Vec<Sealed>,
    /// Of the event that says it.
    #[sqlx(try_from = "i64")]
    pub sequence: u64,
    pub updated_at: Time,
    /// How well it fits the words; 0 where none were asked for.
    pub score: f64,
}

/// What only the holder of the key can read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    pub name: String,
    /// In base64.
    pub sealed: String,
}

/// Which memories; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct MemoriesQuery {
    /// Words of which one at least must occur, or one like it in the subject or the keywords; empty for all memories.
    pub words: String,
    pub agent: Option<String>,
    /// Those written for this user, or for all.
    pub user: Option<String>,
    /// Those written for the user of this thread of the agent, or for all; of a thread that is not known, or that is
    /// nobody's, only those for all.
    pub thread: Option<String>,
    /// Of one of these kinds; empty for any.
    pub kinds: Vec<String>,
    pub memory_id: Option<Uuid>,
    /// About these days, both included.
    pub from: Option<Date>,
    pub to: Option<Date>,
    /// At most so many, and never more than [`MAX_ROWS`].
    pub limit: u32,
}

impl MemoriesQuery {
    /// By index `memories_by_word` or `memories_by_name`, and without words by `memories_of_agent` or
    /// `memories_by_place`. Best first, and without words, the newest day first.
    fn sql(&self) -> QueryBuilder<Postgres> {
        let words = words(&self.words);
        let mut sql = QueryBuilder::new(
            "SELECT agent, memory_id, user_id, kind, subject, content, keywords, day::text AS day, thread_id, \
             source_event_ids, secrets, sequence, updated_at, ",
        );
        if words.is_empty() {
            sql.push("0::float8 AS score FROM memories WHERE true");
        } else {
            // Of letters and digits only, so there is nothing in them that means something to the query.
            let any = words.iter().map(|word| format!("'{word}':*")).collect::<Vec<_>>().join(" | ");
            sql.push("(ts_rank(words, wanted) + alike)::float8 AS score FROM memories, to_tsquery('simple', ");
            sql.push_bind(Text::from(any.as_str()))
                .push(") AS wanted, LATERAL (SELECT max(word_similarity(word, named)) AS alike FROM unnest(");
            sql.push_bind(words.clone()).push("::text[]) AS word) AS likeness WHERE (words @@ wanted OR named %> ANY(");
            sql.push_bind(words.clone()).push("::text[])");
            let unspaced: Vec<String> =
                words.into_iter().filter(|word| !word.is_ascii()).map(|word| format!("%{word}%")).collect();
            if !unspaced.is_empty() {
                // In a script without spaces a word is a part of a longer run.
                sql.push(" OR content LIKE ANY(").push_bind(unspaced.clone()).push("::text[]) OR named LIKE ANY(");
                sql.push_bind(unspaced).push("::text[])");
            }
            sql.push(")");
        }
        self.conditions(&mut sql);
        let order = if self.words.is_empty() { "" } else { "score DESC, " };
        sql.push(format_args!(" ORDER BY {order}day DESC NULLS LAST, sequence DESC, position DESC LIMIT "));
        sql.push_bind(i64::from(self.limit.clamp(1, MAX_ROWS)));
        sql
    }

    fn conditions(&self, sql: &mut QueryBuilder<Postgres>) {
        if let Some(agent) = &self.agent {
            sql.push(" AND agent = ").push_bind(Key::from(agent.as_str()));
        }
        if let Some(user) = &self.user {
            sql.push(" AND (user_id IS NULL OR user_id = ").push_bind(Key::from(user.as_str())).push(")");
        }
        if let Some(thread) = &self.thread {
            sql.push(" AND (user_id IS NULL OR user_id = (SELECT user_id FROM threads WHERE user_id <> '' ");
            sql.push("AND threads.thread_id = ");
            sql.push_bind(Key::from(thread.as_str())).push(" AND threads.agent = ");
            match &self.agent {
                Some(agent) => sql.push_bind(Key::from(agent.as_str())),
                None => sql.push("memories.agent"),
            };
            sql.push("))");
        }
        if !self.kinds.is_empty() {
            let kinds: Vec<Key> = self.kinds.iter().map(|kind| kind.as_str().into()).collect();
            sql.push(" AND kind = ANY(").push_bind(kinds).push(")");
        }
        if let Some(memory) = self.memory_id {
            sql.push(" AND memory_id = ").push_bind(memory);
        }
        if let Some(from) = self.from {
            sql.push(" AND day >= ").push_bind(from.to_string()).push("::text::date");
        }
        if let Some(to) = self.to {
            sql.push(" AND day <= ").push_bind(to.to_string()).push("::text::date");
        }
    }
}

/// The words of a query, in small letters, each once.
fn words(query: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(|word| word.chars().take(LETTERS).collect::<String>().to_lowercase());
    words.filter(|word| seen.insert(word.clone())).take(WORDS).collect()
}

impl Snapshot {
    /// The memories that fit, best first.
    pub async fn memories(&self, query: &MemoriesQuery) -> Result<Vec<Memory>, ReadError> {
        Ok(query.sql().build_query_as().fetch_all(&mut **self.connection().await).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_in_the_statement() {
        let all = MemoriesQuery { limit: 7, ..Default::default() };
        let sql = all.sql();
        let sql = sql.sql();
        let (_, conditions) = sql.as_str().split_once(" FROM ").unwrap();
        assert_eq!(
            conditions,
            "memories WHERE true ORDER BY day DESC NULLS LAST, sequence DESC, position DESC LIMIT $1"
        );
        let some = MemoriesQuery {
            words: "'); -- budget & Müller".into(),
            agent: Some("bob".into()),
            from: Some(jiff::civil::date(2026, 11, 20)),
            ..Default::default()
        };
        let sql = some.sql();
        assert!(
            sql.sql()
                .as_str()
                .contains("LIKE ANY($4::text[]) OR named LIKE ANY($5::text[])) AND agent = $6 AND day >= $7")
        );
    }

    #[test]
    fn words_are_letters_and_digits_each_once_and_not_too_many() {
        assert_eq!(words("Q2 budget: the BUDGET (Sarah's)"), ["q2", "budget", "the", "sarah", "s"]);
        assert_eq!(words("预算 会议"), ["预算", "会议"]);
        assert_eq!(words("' | & ! :* \\ \0"), Vec::<String>::new());
        let many: String = (0..1_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(words(&many).len(), WORDS);
        assert_eq!(words(&"x".repeat(100_000))[0].len(), LETTERS);
    }
}
