//! A short run of `scripts/fleet --upgrade`: from one build of all services to the next and back, replica by replica, under
//! load, and then the promotion.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use kairo_local::StackOptions;
use serde_json::{Value, json};

const PREVIOUS: &str = "from the previous build";

/// Two builds: the older, and the program of the newer that makes the run.
struct Pair {
    told: &'static str,
    older: PathBuf,
    program: PathBuf,
}

/// From the previous build to this one, where `scripts/previous` has built it, and else from this one to a synthetic one.
fn pair() -> Pair {
    let this = StackOptions::bin_dir_of_this_build().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let asked = Command::new(root.join("scripts/previous")).arg("--cached").output().unwrap();
    if asked.status.success() {
        let older = PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim());
        return Pair { told: PREVIOUS, older, program: this.join("kairo-chaos") };
    }
    let program = this.parent().unwrap().join("synthetic/kairo-chaos");
    let advice =
        "there is no other build to go to: run scripts/synthetic, or scripts/previous, and build this one again";
    assert!(program.is_file(), "{advice}");
    Pair { told: "to a synthetic build, as the previous one is not built", older: this, program }
}

#[test]
fn every_service_is_upgraded_and_taken_back_under_load_and_nothing_is_lost_or_doubled() {
    let Pair { told, older, program } = pair();
    println!("{told}");
    let mut run = Command::new(program);
    run.arg("--older").arg(&older).args(["--seconds", "36", "--seed", "4", "--json"]).stderr(Stdio::inherit());
    if told == PREVIOUS {
        run.arg("--other-words");
    }
    let ran = run.output().unwrap();
    let report: Value = serde_json::from_slice(&ran.stdout).expect("the run could not be made");
    assert!(ran.status.success(), "{told}: {report:#}");
    assert_eq!((&report["faults"]["promoted"], &report["lost"], &report["doubled"]), (&json!(1), &json!(0), &json!(0)));
    // Every replica there, back, and there again.
    assert_eq!(report["faults"]["replaced"], 36, "{report:#}");
    let again = report["older_again"].as_str().unwrap();
    println!("the older build on the promoted log: {again}");
    assert!(again == "refused to start" || told == PREVIOUS, "{again}");
}
