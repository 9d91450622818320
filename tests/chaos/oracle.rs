//! The world outside Kairo, where effects happen and are counted.
//!
//! Effects under a key are a web server's: as a real one would, it does an effect once for each key it is asked with.
//! An effect that was asked for with two keys has happened twice. Effects of processes are lines in a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path as UrlPath, State},
    http::HeaderMap,
    routing::get,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Outcome, journal::locked, random::Random};

/// The script of a program with an effect, run with FILE EFFECT SECONDS. Its child must die with it.
pub const PROGRAM: &str = r#"
echo "$2" >>"$1"
sleep "$3" &
wait
echo "did $2"
"#;

/// Counts effects.
pub struct Oracle {
    address: SocketAddr,
    file: PathBuf,
    keyed: Arc<Keyed>,
}

struct Keyed {
    seed: u64,
    /// The keys each effect was asked for with.
    keys: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

/// The count of each effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    pub keyed: BTreeMap<String, usize>,
    pub unkeyed: BTreeMap<String, usize>,
}

impl Effects {
    /// Adds those that happened elsewhere: under a key, and without.
    pub fn add(&mut self, (keyed, unkeyed): (BTreeMap<String, usize>, BTreeMap<String, usize>)) {
        self.keyed.extend(keyed);
        self.unkeyed.extend(unkeyed);
    }
}

impl Oracle {
    /// Serves on loopback until the program ends. Processes write into a file in `folder`.
    pub async fn start(seed: u64, folder: &Path) -> Outcome<Self> {
        let keyed = Arc::new(Keyed { seed, keys: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new().route("/effects/{effect}", get(ask)).with_state(keyed.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, file: folder.join("effects"), keyed })
    }

    /// `HOST:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns the file that processes write to.
    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn effects(&self) -> Effects {
        let keys = locked(&self.keyed.keys);
        let keyed = keys.iter().map(|(effect, keys)| (effect.clone(), keys.len())).collect();
        let lines = std::fs::read_to_string(&self.file).unwrap_or_default();
        let mut unkeyed = BTreeMap::new();
        lines.lines().for_each(|effect| *unkeyed.entry(effect.to_owned()).or_default() += 1);
        Effects { keyed, unkeyed }
    }
}

async fn ask(State(keyed): State<Arc<Keyed>>, UrlPath(effect): UrlPath<String>, headers: HeaderMap) -> Json<Value> {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    keyed.happens(&effect, key);
    // It has happened, and whoever asked does not know yet: the moment in which to be killed.
    tokio::time::sleep(pause(keyed.seed, &effect)).await;
    Json(json!({ "effect": effect }))
}

impl Keyed {
    /// Without a key nobody can tell that two requests mean the same.
    fn happens(&self, effect: &str, key: Option<&str>) {
        let mut all = locked(&self.keys);
        let keys = all.entry(effect.to_owned()).or_default();
        let key = key.map_or_else(|| format!("request {} without a key", keys.len()), str::to_owned);
        keys.insert(key);
    }
}

/// Mostly short, and now and then longer than a delivery waits for a sign of life.
fn pause(seed: u64, effect: &str) -> Duration {
    let mut random = Random::new(seed, effect);
    Duration::from_millis(if random.below(8) == 0 { 2_500 } else { random.below(600) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(keys: &[Option<&str>]) -> usize {
        let keyed = Keyed { seed: 0, keys: Mutex::default() };
        keys.iter().for_each(|key| keyed.happens("e", *key));
        let keys = locked(&keyed.keys);
        keys["e"].len()
    }

    #[test]
    fn an_effect_happens_once_for_each_key() {
        assert_eq!(asked(&[Some("a"), Some("a")]), 1);
        assert_eq!(asked(&[Some("a"), Some("b")]), 2);
        assert_eq!(asked(&[None, None]), 2);
    }

    #[tokio::test]
    async fn the_key_is_read_from_the_request() {
        let folder = tempfile::tempdir().unwrap();
        let quick = (0..).find(|seed| pause(*seed, "e") < Duration::from_millis(20)).unwrap();
        let oracle = Oracle::start(quick, folder.path()).await.unwrap();
        let client = reqwest::Client::new();
        let url = format!("http://{}/effects/e", oracle.host());
        let ask =
            || async { client.get(&url).header("Idempotency-Key", "a").send().await.unwrap().status().is_success() };
        assert_eq!(tokio::join!(ask(), ask()), (true, true));
        assert_eq!(oracle.effects().keyed, BTreeMap::from([("e".to_owned(), 1)]));
    }

    #[tokio::test]
    async fn an_effect_of_a_process_is_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let oracle = Oracle::start(0, folder.path()).await.unwrap();
        for _ in 0..2 {
            let mut program = tokio::process::Command::new("/bin/sh");
            program.args(["-c", PROGRAM, "effect"]).arg(oracle.file()).args(["e", "0"]);
            assert_eq!(program.output().await.unwrap().stdout, b"did e\n");
        }
        assert_eq!(oracle.effects().unkeyed, BTreeMap::from([("e".to_owned(), 2)]));
    }
}
