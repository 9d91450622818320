//! `kairo replay --with REVISION`: a revision is built once, and held to the build that runs.

use std::{os::unix::fs::PermissionsExt, path::Path};

use kairo_local::StackOptions;
use tokio::process::Command;

/// A program that writes the report which stands in its source, whatever it is asked for: the build of a revision.
const PROGRAM: &str = r#"
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|it| it == "--report").unwrap();
    std::fs::write(&arguments[at + 1], include_str!("report.json")).unwrap();
}
"#;
const MANIFEST: &str = "[package]\nname = \"kairo-cli\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[[bin]]\nname = \"kairo\"\npath = \"main.rs\"\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"kairo-cli\"\nversion = \"0.1.0\"\n";

async fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments);
    let output = git.output().await.unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// One revision that decides as this build does, and one that decided otherwise and is not checked out any more.
pub async fn a_revision_is_built_once_and_compared(file: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let (repository, cache) = (folder.path().join("repository"), folder.path().join("cache"));
    std::fs::create_dir(&repository).unwrap();
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let run = async |arguments: &[&str]| {
        let mut kairo = Command::new(&program);
        kairo.current_dir(&repository).env("XDG_CACHE_HOME", &cache).arg("replay").arg(file).args(arguments);
        let output = kairo.output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let report = repository.join("report.json");
    run(&["--report", report.to_str().unwrap()]).await;
    let same = std::fs::read_to_string(&report).unwrap();
    std::fs::write(&report, same.replacen("\"outcome\":\"same\"", "\"outcome\":\"differs\"", 1)).unwrap();
    assert_ne!(std::fs::read_to_string(&report).unwrap(), same);
    for (name, text) in [("main.rs", PROGRAM), ("Cargo.toml", MANIFEST), ("Cargo.lock", LOCK)] {
        std::fs::write(repository.join(name), text).unwrap();
    }
    git(&repository, &["init", "--quiet"]).await;
    for arguments in [["add", "."].as_slice(), &["commit", "--quiet", "-m", "old"], &["tag", "old"]] {
        git(&repository, arguments).await;
    }
    std::fs::write(&report, &same).unwrap();
    git(&repository, &["commit", "--quiet", "-a", "-m", "new"]).await;
    std::fs::write(repository.join("main.rs"), "what is being written is none of a revision").unwrap();

    let (code, said, told) = run(&["--with", "HEAD"]).await;
    assert!(code == Some(0) && said.contains("0 decisions come out otherwise"), "{said}{told}");
    assert!(told.contains("building HEAD"), "{told}");
    let (code, said, told) = run(&["--with", "old"]).await;
    assert!(code == Some(1) && said.contains("1 decision comes out otherwise"), "{said}{told}");
    let again = run(&["--with", "old"]).await;
    assert_eq!((again.0, again.1), (code, said));
    assert_eq!(again.2, "", "it is built once");

    let (code, _, told) = run(&["--with", "nothing-such"]).await;
    assert!(code == Some(64) && told.contains("found nothing-such"), "{told}");
    git(&repository, &["commit", "--quiet", "-a", "-m", "broken"]).await;
    let (code, _, told) = run(&["--with", "HEAD"]).await;
    assert!(code == Some(1) && told.contains("cargo failed") && told.contains("what is being written"), "{told}");
    assert_eq!(run(&["--with", "HEAD~1"]).await.0, Some(0), "a build that failed is in nobody's way");

    // A build from before there were reports, which tells decisions line by line.
    let old = folder.path().join("old");
    let refuses = "case \"$*\" in *--report*) echo \"error: unexpected argument '--report' found\" >&2; exit 64;; esac";
    std::fs::write(&old, format!("#!/bin/sh\n{refuses}\nexec {} \"$@\"\n", program.display())).unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
    let old = old.to_str().unwrap();
    let (code, said, told) = run(&["--with", old]).await;
    assert!(code == Some(0) && said.contains("0 decisions come out otherwise"), "{said}{told}");
    let (code, _, told) = run(&["--with", old, "--from", "1"]).await;
    assert!(code == Some(64) && told.contains("wrote no report"), "{told}");
}
