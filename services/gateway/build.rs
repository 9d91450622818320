//! Says where the console is that the gateway embeds: as `clients/console` was built, or a page that says how to.

use std::{env, path::PathBuf, process::exit};

/// Set to build a release without the console.
const WITHOUT: &str = "KAIRO_WITHOUT_CONSOLE";

fn main() {
    println!("cargo::rerun-if-env-changed={WITHOUT}");
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let console = here.join("../../clients/console");
    let built = console.join("dist");
    if built.join("index.html").is_file() {
        println!("cargo::rerun-if-changed={}", built.display());
        println!("cargo::rustc-env=KAIRO_CONSOLE={}", built.display());
        return;
    }
    let told = env::var_os(WITHOUT).is_some_and(|value| !value.is_empty());
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") && !told {
        eprintln!("{} is not there: run scripts/setup, which builds it with Node, or set {WITHOUT}=1", built.display());
        exit(1);
    }
    // A folder that is not there would count as changed each time, so it is the one that it will be in.
    println!("cargo::rerun-if-changed={}", console.display());
    println!("cargo::rustc-env=KAIRO_CONSOLE={}", here.join("src/console/missing").display());
}
