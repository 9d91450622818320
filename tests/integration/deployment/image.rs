//! `scripts/image`, as far as it goes without root and minutes: what it is told, and what it takes from the Dockerfile.

use std::{
    fs,
    process::{Command, Output},
};

use kairo_local::Service;

use super::{root, validators::said};

fn image(arguments: &[&str]) -> Output {
    Command::new(root().join("scripts/image")).args(arguments).output().unwrap()
}

#[test]
fn mistakes_are_named_before_anything_is_built() {
    let help = image(&["--help"]);
    assert!(help.status.success() && said(&help).contains("--binaries FOLDER"), "{}", said(&help));
    let folder = tempfile::tempdir().unwrap();
    let nothing_in_it = folder.path().to_str().unwrap();
    for (arguments, named) in [
        (["--binary", nothing_in_it].as_slice(), "usage: scripts/image"),
        (&["--tag"], "--tag expects a value"),
        (&["--output", ""], "--output expects a value"),
        (&["--binaries", nothing_in_it], "has no program kairo: expected all of: kairo kairo-agent-runtime "),
    ] {
        let output = image(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(named), "{arguments:?}: {}", said(&output));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// It follows the Dockerfile from this line on, and copies what the stage before would have left.
#[test]
fn the_dockerfile_has_what_the_script_takes_from_it() {
    let dockerfile = fs::read_to_string(root().join("deploy/Dockerfile")).unwrap();
    let (build, runtime) = dockerfile.split_once("\nFROM debian:${DEBIAN_RELEASE}-slim AS runtime\n").unwrap();
    assert!(build.contains("\nARG DEBIAN_RELEASE=") && runtime.contains("\nCOPY --from=build /out/ /\n"));
    assert!(!runtime.contains("\nFROM "), "it is the last stage");
    let script = fs::read_to_string(root().join("scripts/image")).unwrap();
    for path in ["/usr/local/bin", "/usr/share/doc/kairo", "/usr/share/doc/kairo/kairo.cdx.json"] {
        assert!(build.contains(&format!("/out{path}")) && script.contains(path), "{path}");
    }
    let ignored = fs::read_to_string(root().join("deploy/Dockerfile.dockerignore")).unwrap();
    assert!(ignored.lines().any(|line| line == "!scripts/sbom"), "the bill of materials is made in there");
    let listed = dockerfile.matches("target/release/kairo").count();
    assert_eq!(listed, Service::ALL.len() + 1, "the services, the simulator and the command");
}
