//! The images and audio that messages name.

use sqlx::query_scalar;

use crate::{ReadError, ReadSnapshot};

impl ReadSnapshot {
    /// Those of the digests that some message names. By index `messages_by_part`.
    pub async fn named_objects(&self, digests: &[String]) -> Result<Vec<String>, ReadError> {
        let named = query_scalar!(
            r#"
            SELECT wanted.digest AS "digest!" FROM UNNEST($1::text[]) AS wanted (digest)
            WHERE EXISTS (
                SELECT FROM messages
                WHERE parts <> '[]' AND parts @> jsonb_build_array(jsonb_build_object('digest', wanted.digest))
            )"#,
            digests
        );
        Ok(named.fetch_all(&mut **self.connection().await).await?)
    }
}
