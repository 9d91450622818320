//! The memories of agents: searched by words, or listed by day.

use std::collections::BTreeSet;

use jiff::civil::Date;
use kairo_proto::v1::MemoryRow;
use sqlx::{query, types::Json};
use unicode_normalization::UnicodeNormalization as _;
use uuid::Uuid;

use super::{row_limit, to_bigint};
use crate::{
    MAX_ROWS, ReadError, ReadSnapshot,
    output_columns::At,
    search::{fold_text, is_unspaced, tokens},
    sql_values::{SqlKey, SqlText, U64},
};

/// Words of a query that are looked for, and the letters of one.
const WORDS: usize = 16;
const LETTERS: usize = 64;
/// The least similarity, 0 to 1, of a misspelt word to one of the subject or the keywords.
pub(crate) const ALIKE: f32 = 0.45;

/// The memories to return; all conditions must hold.
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

/// The versions of a memory to return; all conditions must hold.
#[derive(Clone, Debug)]
pub struct MemoryHistoryQuery {
    pub agent: String,
    pub memory_id: Uuid,
    /// Those written before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`].
    pub limit: u32,
}

/// A row of either table as the contract has it.
macro_rules! memory {
    ($row:ident) => {
        MemoryRow {
            agent: $row.agent,
            memory_id: $row.memory_id.to_string(),
            user: $row.user_id,
            r#type: $row.kind,
            subject: $row.subject,
            content: $row.content,
            day: $row.day,
            thread_id: $row.thread_id,
            sequence: $row.sequence.into(),
            updated_at: $row.updated_at.into(),
            ..$row.definition.0
        }
    };
}

/// Memories with their score, from somewhere. Parameters from `$1` on are the query's conditions.
macro_rules! memories {
    ($query:ident, $score:literal, $from:literal, $order:literal $(, $parameters:expr)*) => {
        query!(
            r#"SELECT agent, memory_id, user_id, kind, subject, content, day::text AS day, thread_id,
                      definition AS "definition: Json<MemoryRow>", sequence AS "sequence: U64",
                      updated_at AS "updated_at: At", "# + $score + r#" AS "score!"
               FROM memories"# + $from + "
               WHERE ($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id IS NULL OR user_id = $2)
                   AND ($3::text IS NULL OR user_id IS NULL OR user_id = (
                        SELECT user_id FROM threads
                        WHERE user_id <> '' AND threads.thread_id = $3 AND threads.agent = coalesce($1, memories.agent)))
                   AND ($4::text[] IS NULL OR kind = ANY($4)) AND ($5::uuid IS NULL OR memory_id = $5)
                   AND ($6::text IS NULL OR day >= $6::date) AND ($7::text IS NULL OR day <= $7::date)
               " + $order + "memories.day DESC NULLS LAST, sequence DESC, position DESC LIMIT $8",
            $query.agent.as_deref().map(SqlKey::from) as _,
            $query.user.as_deref().map(SqlKey::from) as _,
            $query.thread.as_deref().map(SqlKey::from) as _,
            kind_filter(&$query.kinds) as _,
            $query.memory_id,
            $query.from.map(|day| day.to_string()),
            $query.to.map(|day| day.to_string()),
            row_limit($query.limit)
            $(, $parameters)*
        )
        .map(|row| MemoryRow { score: row.score, ..memory!(row) })
    };
}

/// Selects versions of memories from a given source.
macro_rules! versions {
    ($from:literal, $($parameters:tt)*) => {
        query!(
            r#"SELECT agent, memory_id, user_id, kind, subject, content, day::text AS day, thread_id,
                      definition AS "definition: Json<MemoryRow>", sequence AS "sequence: U64",
                      updated_at AS "updated_at: At"
               FROM "# + $from,
            $($parameters)*
        )
        .map(|row| memory!(row))
    };
}

/// None for any.
fn kind_filter(kinds: &[String]) -> Option<Vec<SqlKey>> {
    (!kinds.is_empty()).then(|| kinds.iter().map(|kind| kind.as_str().into()).collect())
}

/// A word of a query.
#[derive(Debug, PartialEq, Eq)]
struct QueryWord {
    /// In small letters, with its accents: stems are found by these.
    written: String,
    /// The word as it is compared.
    folded: String,
}

/// The words of a query, each once.
fn query_words(query: &str) -> Vec<QueryWord> {
    let mut seen = BTreeSet::new();
    let query: String = query.nfkc().flat_map(char::to_lowercase).collect();
    let words = tokens(&query).map(|(_, word)| word.chars().take(LETTERS).collect::<String>());
    let words = words.flat_map(|word| letter_pairs(&word).into_iter().chain([word]).collect::<Vec<_>>());
    let words = words.map(|written| QueryWord { folded: fold_text(&written), written });
    words.filter(|word| seen.insert(word.folded.clone())).take(WORDS).collect()
}

/// The pairs of letters of a run in a script without spaces, in which nobody knows where a word ends; none of any other.
fn letter_pairs(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    match letters.len() > 2 && letters.iter().all(|letter| is_unspaced(*letter)) {
        true => letters.windows(2).map(|pair| pair.iter().collect()).collect(),
        false => Vec::new(),
    }
}

impl ReadSnapshot {
    /// The memories that fit, best first, and without words, the newest day first: those with most of the exact words, then with most
    /// other forms of them, then with words that begin so or are like them. By index `memories_by_word`, `memories_by_form` or
    /// `memories_by_name`, and without words by `memories_of_agent` or `memories_by_place`.
    pub async fn search_memories(&self, query: &MemoriesQuery) -> Result<Vec<MemoryRow>, ReadError> {
        let words = query_words(&query.words);
        let connection = &mut **self.connection().await;
        if words.is_empty() {
            let all = memories!(query, "0::float8", "", "ORDER BY ");
            return Ok(all.fetch_all(connection).await?);
        }
        let (written, words): (Vec<String>, Vec<String>) =
            words.into_iter().map(|QueryWord { written, folded }| (written, folded)).unzip();
        // Of letters and digits only, so there is nothing in them that means something to the query.
        let any = words.iter().map(|word| format!("'{word}':*")).collect::<Vec<_>>().join(" | ");
        let exactly = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" | ");
        // In a script without spaces a word is a part of a longer run.
        let unspaced = words.iter().filter(|word| !word.is_ascii()).map(|word| format!("%{word}%"));
        let unspaced = Some(unspaced.collect::<Vec<_>>()).filter(|parts| !parts.is_empty());
        let fitting = memories!(
            query,
            "(rank + ts_rank(words, to_tsquery('simple', $12)) / 1000)::float8",
            ", LATERAL (
                SELECT sum(CASE
                    WHEN word ~ '[^ -~]' AND position(word IN search_folded(left(content, 10000))) > 0 THEN 1
                    -- Words that stand in most sentences say little.
                    WHEN words @@ plainto_tsquery('simple', word) AND 0 IN (length(to_tsvector('english', written)),
                        length(to_tsvector('german', written)), length(to_tsvector('spanish', written))) THEN 0.001
                    WHEN words @@ plainto_tsquery('simple', word) THEN 1
                    WHEN tsvector_to_array(forms) && tsvector_to_array(to_tsvector('english', written)
                        || to_tsvector('german', written) || to_tsvector('spanish', written)) THEN 0.05
                    WHEN words @@ to_tsquery('simple', '''' || word || ''':*') THEN 0.003
                    ELSE word_similarity(word, search_folded(named)) * 0.002
                END) AS rank FROM unnest($10::text[], $13::text[]) AS asked (word, written)) AS ranked",
            r#"AND (agent, memory_id) IN (
                       SELECT found.agent, found.memory_id FROM memories AS found
                       WHERE found.words @@ to_tsquery('simple', $9)
                       UNION ALL
                       SELECT found.agent, found.memory_id FROM memories AS found
                       WHERE found.forms @@ (
                           SELECT string_agg('''' || stem || '''', ' | ')::tsquery
                           FROM unnest($13) AS written, unnest(tsvector_to_array(to_tsvector('english', written)
                               || to_tsvector('german', written) || to_tsvector('spanish', written))) AS stem)
                       UNION ALL
                       SELECT found.agent, found.memory_id FROM unnest($10) AS word
                       JOIN memories AS found ON search_folded(found.named) %> word
                       UNION ALL
                       SELECT found.agent, found.memory_id FROM memories AS found
                       WHERE $11::text[] IS NOT NULL
                           AND search_folded(left(found.named, 1000) || ' ' || left(found.content, 10000)) LIKE ANY($11))
               ORDER BY "score!" DESC, "#,
            SqlText::from(any.as_str()) as _,
            &words,
            unspaced.as_deref(),
            SqlText::from(exactly.as_str()) as _,
            &written
        );
        Ok(fitting.fetch_all(connection).await?)
    }

    /// All that a memory said, the newest first. What was only written again with its keywords is not told twice. By index
    /// `memory_versions_of_memory`.
    pub async fn memory_history(&self, wanted: &MemoryHistoryQuery) -> Result<Vec<MemoryRow>, ReadError> {
        let versions = versions!(
            "(SELECT *, lag(content) OVER written AS content_before, lag(subject) OVER written AS subject_before,
                     lag(kind) OVER written AS kind_before,
                     lag(definition -> 'source_event_ids') OVER written AS sources_before
              FROM memory_versions WHERE agent = $1 AND memory_id = $2
              WINDOW written AS (ORDER BY sequence, position)) AS version
             WHERE (content, subject, kind, definition -> 'source_event_ids') IS DISTINCT FROM
                   (content_before, subject_before, kind_before, sources_before) AND sequence < $3
             ORDER BY sequence DESC FETCH FIRST ($4) ROWS WITH TIES",
            SqlKey::from(wanted.agent.as_str()) as _,
            wanted.memory_id,
            to_bigint(wanted.before.unwrap_or(u64::MAX)),
            row_limit(wanted.limit)
        );
        Ok(versions.fetch_all(&mut **self.connection().await).await?)
    }

    /// Returns the memories that these events wrote for a user. By index `memories_of_user`.
    pub(super) async fn memories_of(&self, user: &str, events: &[Uuid]) -> Result<Vec<MemoryRow>, ReadError> {
        let query = MemoriesQuery { user: Some(user.to_owned()), limit: MAX_ROWS, ..MemoriesQuery::default() };
        let memories =
            memories!(query, "0::float8", "", "AND user_id IS NOT NULL AND event_id = ANY($9) ORDER BY ", events);
        Ok(memories.fetch_all(&mut **self.connection().await).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_letters_and_digits_each_once_and_not_too_many() {
        let words = |query: &str| query_words(query).into_iter().map(|word| word.folded).collect::<Vec<_>>();
        assert_eq!(words("Q2 budget: the BUDGET (Sarah's)"), ["q2", "budget", "the", "sarah", "s"]);
        assert_eq!(words("预算 会议"), ["预算", "会议"]);
        assert_eq!(words("预算会议 tea"), ["预算", "算会", "会议", "预算会议", "tea"]);
        assert_eq!(words("' | & ! :* \\ \0"), Vec::<String>::new());
        let many: String = (0..1_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(words(&many).len(), WORDS);
        assert_eq!(words(&"x".repeat(100_000))[0].len(), LETTERS);
    }

    #[test]
    fn words_keep_their_accents_for_the_sake_of_their_stems() {
        let one = |written: &str, folded: &str| QueryWord { written: written.into(), folded: folded.into() };
        assert_eq!(query_words("Comio\u{301} JO\u{308}RG jorg"), [one("comió", "comio"), one("jörg", "jorg")]);
    }
}
