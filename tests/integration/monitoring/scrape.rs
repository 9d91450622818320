//! The metrics that a service serves at `/metrics`, read by a third-party parser.

use std::{
    collections::BTreeMap,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use kairo_core::metrics::CONTENT_TYPE;
use kairo_local::Replica;
use serde::Deserialize;

/// A metric, with all of its series.
#[derive(Debug, Deserialize)]
pub struct Family {
    pub name: String,
    pub kind: String,
    pub unit: String,
    pub says: String,
    pub samples: Vec<Sample>,
}

#[derive(Debug, Deserialize)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
    /// The labels of one value that it counts.
    pub exemplar: Option<BTreeMap<String, String>>,
}

/// The metrics of a replica.
pub async fn scrape(http: &reqwest::Client, replica: &Replica) -> Vec<Family> {
    let url = format!("{}/metrics", replica.health_url().unwrap());
    let answer = http.get(&url).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], CONTENT_TYPE);
    parse(&answer.text().await.unwrap())
}

fn parse(text: &str) -> Vec<Family> {
    let python = std::env::var_os("KAIRO_OPENMETRICS_PYTHON").expect("run ./scripts/setup --tests");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("openmetrics/parse.py");
    let mut command = Command::new(python);
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "this is no OpenMetrics:\n{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The sum of all samples of this name with these labels.
pub fn sum(families: &[Family], name: &str, labels: &[(&str, &str)]) -> f64 {
    let samples = families.iter().flat_map(|family| &family.samples).filter(|sample| sample.name == name);
    let fits = |sample: &&Sample| {
        labels.iter().all(|(label, value)| sample.labels.get(*label).map(String::as_str).unwrap_or_default() == *value)
    };
    samples.filter(fits).map(|sample| sample.value).sum()
}
