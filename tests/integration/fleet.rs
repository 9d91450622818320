//! A short run of `scripts/fleet restarts`: every service and every nats-server is restarted in order, and users do not see it.

use std::time::Duration;

use kairo_tests::chaos::{
    self,
    builds::Builds,
    plan::{Course, Settings},
};

#[tokio::test]
async fn a_rolling_restart_of_everything_fails_no_request_and_pays_no_call_twice() {
    let settings = Settings {
        servers: 3,
        model_delay: "100-500".parse().unwrap(),
        course: Course::Restarts,
        ..Settings::new(Duration::from_secs(24), 1, 2)
    };
    let builds = Builds::this().unwrap();
    let report = chaos::run(&settings, &builds, false, |text| println!("{text}")).await.unwrap();
    assert!(report.passed(), "{report}");
}
