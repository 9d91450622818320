//! Tells the code which commit it is built from: decisions name it.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

fn main() {
    println!("cargo::rerun-if-env-changed=KAIRO_COMMIT");
    // Where there is no repository, as in an image, whoever builds may say it; else nobody knows.
    let commit = env::var("KAIRO_COMMIT").ok().filter(|commit| !commit.is_empty()).or_else(checked_out);
    println!("cargo::rustc-env=KAIRO_COMMIT={}", commit.unwrap_or_default());
}

fn checked_out() -> Option<String> {
    let commit = git(&["rev-parse", "HEAD"])?;
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for moving in [Some("HEAD".to_owned()), branch, Some("packed-refs".to_owned())].into_iter().flatten() {
        let path = git(&["rev-parse", "--git-path", &moving])?;
        // One that is not there would count as changed each time.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    Some(commit)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
