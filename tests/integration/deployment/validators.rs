//! Kairo's deployment files and scripts, checked by third-party validators.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

use super::{
    rendered::{demo, production, render, texts, undigested},
    root,
};

/// Versions of Kubernetes that manifests are held to.
const KUBERNETES: [&str; 3] = ["1.33", "1.35", "1.37"];
/// Custom resources without a schema here: only their operators know their shape.
const OF_OPERATORS: [&str; 6] = ["Certificate", "Cluster", "Issuer", "PodMonitor", "PrometheusRule", "ScaledObject"];

/// One of the programs that `scripts/setup --tests` installs, in the root of the checkout.
pub fn validator(program: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let folder = PathBuf::from(std::env::var_os("KAIRO_VALIDATORS").expect("scripts/setup --tests"));
    let mut command = Command::new(folder.join("bin").join(program));
    command.env("PYTHONPATH", folder).current_dir(root()).args(arguments).output().unwrap()
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn passes(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

#[test]
fn manifests_are_valid_for_three_versions_of_kubernetes_and_secure() {
    let folder = tempfile::tempdir().unwrap();
    let rendered = render([demo(), production()].concat());
    // Most of what combinations are made of they have in common.
    let undigested: Vec<String> = rendered.iter().map(|(_, text)| undigested(text)).collect();
    let distinct: BTreeSet<&str> = undigested.iter().flat_map(|text| texts(text)).collect();
    let all = folder.path().join("all.yaml");
    fs::write(&all, Vec::from_iter(distinct).join("---\n")).unwrap();
    let judged = |version: &str, file: &Path| {
        let options = ["--strict", "--quiet", "-k", version].map(Path::new);
        validator("kubernetes-validate", options.into_iter().chain([file]))
    };
    let all_judged = thread::scope(|scope| {
        let (judged, all) = (&judged, &all);
        let threads = KUBERNETES.map(|version| scope.spawn(move || judged(version, all)));
        threads.map(|thread| thread.join().unwrap())
    });
    for (version, output) in KUBERNETES.into_iter().zip(all_judged) {
        passes(&output);
        let unknown = |line: &&str| !OF_OPERATORS.iter().any(|kind| line.contains(&format!("kind {kind} ")));
        assert_eq!(said(&output).lines().find(unknown), None, "Kubernetes {version}");
    }
    // It does look.
    let wrong = folder.path().join("wrong.yaml");
    fs::write(&wrong, rendered[0].1.replacen("readinessProbe:", "readynessProbe:", 1)).unwrap();
    let output = judged(KUBERNETES[0], &wrong);
    assert!(!output.status.success() && said(&output).contains("readynessProbe"), "{}", said(&output));

    // Whatever there can be in production.
    let (_, most) = rendered.last().unwrap();
    let production = folder.path().join("production.yaml");
    fs::write(&production, most).unwrap();
    let options = ["--framework", "kubernetes", "--compact", "--quiet", "--skip-download", "--config-file"];
    let options =
        [["-f", production.to_str().unwrap()].as_slice(), &options, &["tests/deployment/checkov.yaml"]].concat();
    passes(&validator("checkov", options));
}

#[test]
fn compose_dockerfile_yaml_and_scripts_have_nothing_to_find_fault_with() {
    passes(&validator("check-jsonschema", ["--builtin-schema", "vendor.compose-spec", "docker-compose.yml"]));
    passes(&validator("hadolint", ["deploy/Dockerfile"]));
    let options = ["--strict", "-c", "tests/deployment/yamllint.yaml"];
    passes(&validator(
        "yamllint",
        [options.as_slice(), &["docker-compose.yml", "k8s", "deploy", "tests/deployment"]].concat(),
    ));
    let scripts: Vec<PathBuf> =
        fs::read_dir(root().join("scripts")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_shell =
        |path: &&PathBuf| fs::read_to_string(path).unwrap().lines().next().is_some_and(|line| line.ends_with("bash"));
    let scripts: Vec<&PathBuf> = scripts.iter().filter(is_shell).collect();
    assert!(scripts.len() > 5, "{scripts:?}");
    passes(&validator("shellcheck", scripts));
    passes(&validator("shellcheck", [".ci/run"]));
}
