//! What Kairo is deployed with, and its scripts, before programs that others wrote to judge such files.

use std::{
    ffi::OsStr,
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use tempfile::TempDir;

use super::root;

/// Versions of Kubernetes that manifests are held to.
const KUBERNETES: [&str; 3] = ["1.33", "1.35", "1.37"];
/// What `kubectl apply -k` is given, or includes where somebody wants it.
const KUSTOMIZATIONS: [&str; 4] = ["k8s/base", "k8s/overlays/demo", "k8s/overlays/production", "k8s/keda"];

/// One of the programs that `scripts/setup --tests` installs, in the root of the checkout.
fn validator(program: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let folder = PathBuf::from(std::env::var_os("KAIRO_VALIDATORS").expect("scripts/setup --tests"));
    let mut command = Command::new(folder.join("bin").join(program));
    command.env("PYTHONPATH", folder).current_dir(root()).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn passes(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

/// Every kustomization as it is applied, in a file each.
fn rendered() -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let render = |kustomization: &str| {
        let output = validator("kubectl", ["kustomize", kustomization]);
        passes(&output);
        let file = folder.path().join(kustomization.replace('/', "-") + ".yaml");
        fs::write(&file, output.stdout).unwrap();
        file
    };
    let files = KUSTOMIZATIONS.map(render).to_vec();
    (folder, files)
}

#[test]
fn manifests_are_valid_for_three_versions_of_kubernetes_and_secure() {
    let (folder, files) = rendered();
    let judged = |version: &str, files: &[PathBuf]| {
        let options = ["--strict", "--quiet", "-k", version].map(PathBuf::from);
        validator("kubernetes-validate", options.iter().chain(files))
    };
    for version in KUBERNETES {
        let output = judged(version, &files);
        passes(&output);
        // Of these only their operators know what they look like.
        let unknown = |line: &&str| !line.contains("kind ScaledObject");
        assert_eq!(said(&output).lines().find(unknown), None, "Kubernetes {version}");
    }
    // It does look.
    let wrong = folder.path().join("wrong.yaml");
    let text = fs::read_to_string(&files[0]).unwrap();
    fs::write(&wrong, text.replacen("readinessProbe:", "readynessProbe:", 1)).unwrap();
    let output = judged(KUBERNETES[0], &[wrong]);
    assert!(!output.status.success() && said(&output).contains("readynessProbe"), "{}", said(&output));

    let production = files[2].to_str().unwrap();
    let options = ["--framework", "kubernetes", "--compact", "--quiet", "--skip-download", "--config-file"];
    let options = [["-f", production].as_slice(), &options, &["tests/deployment/checkov.yaml"]].concat();
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
