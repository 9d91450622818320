//! The read models: how far they are, and what operators have done with them.

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, query_scalar};
use tokio::time::timeout;

use super::{DEADLINE, World};

/// Queries the position of the live tables; null while there are none.
const POSITION: &str = "
    SELECT min(sequence) FROM positions JOIN generations USING (generation)
    WHERE projection = 'read-model' AND state = 'live'";

impl World {
    /// Waits until the read model holds all of the log.
    pub async fn projected(&self) {
        let mut database = PgConnection::connect(&self.database.url).await.unwrap();
        let projected = async {
            loop {
                let position: Option<i64> = query_scalar(POSITION).fetch_one(&mut database).await.unwrap();
                if u64::try_from(position.unwrap_or(0)).unwrap() == self.end_of_log().await {
                    return;
                }
            }
        };
        // Nobody tells when it has caught up: asking is all there is.
        timeout(DEADLINE, projected).await.expect("the read model never caught up");
    }

    /// Changes the live tables behind projector's back.
    pub async fn execute(&self, sql: &'static str) {
        let mut database = PgConnection::connect(&self.database.url).await.unwrap();
        sqlx::query(sql).execute(&mut database).await.unwrap();
    }

    /// Returns a projection as the gateway shows it.
    pub async fn projection(&self, name: &str) -> Value {
        let (status, answer) = self.get("/v1/projections").await;
        assert_eq!(status, 200, "{answer}");
        let all = answer["projections"].as_array().unwrap();
        all.iter().find(|projection| projection["name"] == name).unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Asks for a rebuild; the number of the generation.
    pub async fn begin_rebuild(&self, name: &str) -> i64 {
        let (status, answer) = self.post(&format!("/v1/projections/{name}/rebuild"), &json!({})).await;
        assert_eq!(status, 202, "{answer}");
        answer["rebuilding"][0]["generation"].as_i64().unwrap()
    }

    /// Waits until a generation is what is looked for; the gateway may have nobody to ask meanwhile.
    pub async fn generation_until(&self, name: &str, number: i64, fits: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = async {
            loop {
                let (_, answer) = self.get("/v1/projections").await;
                let all = answer["projections"].as_array().into_iter().flatten().filter(|it| it["name"] == name);
                let mut generations = all.flat_map(|it| it["generations"].as_array().unwrap());
                last = generations.find(|it| it["generation"] == number).unwrap_or(&answer).clone();
                if fits(&last) {
                    return;
                }
            }
        };
        // Nobody tells: asking is all there is.
        let found = timeout(DEADLINE, found).await;
        assert!(found.is_ok(), "generation {number} of {name} never came to that: {last}");
        last
    }

    /// Waits until a generation is the live one. It must not be found to differ.
    pub async fn swapped(&self, name: &str, number: i64) {
        let ended = |it: &Value| ["live", "kept", "failed", "differing"].contains(&it["state"].as_str().unwrap_or(""));
        let ended = self.generation_until(name, number, ended).await;
        assert_eq!(ended["state"], "live", "{ended}");
    }

    /// Sees that the tables hold what the log says: a clean rebuild gives the same rows.
    pub async fn verified(&self) {
        self.projected().await;
        let clean = self.begin_rebuild("read-model").await;
        self.swapped("read-model", clean).await;
        self.digests_are_equal().await;
    }

    /// Sees that no two generations at the same position hold different rows.
    pub async fn digests_are_equal(&self) -> Value {
        let (status, digests) = self.get("/v1/projections/read-model/digests").await;
        assert_eq!((status, &digests["equal"]), (200, &json!(true)), "{digests:#}");
        digests
    }
}
