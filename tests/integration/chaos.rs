//! A short run of `scripts/chaos`, with a seed that is always the same and a model that misbehaves.

use std::time::Duration;

use kairo_tests::chaos::{self, builds::Builds, plan::Settings};

#[tokio::test]
async fn everything_is_done_once_while_everything_is_killed() {
    let misbehaviour = "0.2".parse().unwrap();
    let settings = Settings { misbehaviour, ..Settings::new(Duration::from_secs(15), 3, 2) };
    let builds = Builds::this().unwrap();
    let report = chaos::run(&settings, &builds, false, |text| println!("{text}")).await.unwrap();
    assert!(report.passed(), "{report}");
}
