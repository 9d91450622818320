//! The Helm chart is what kustomize makes, with what people change as values.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

use super::{
    rendered::{COMPONENTS, OF_PRODUCTION, documents, id, production, render, undigested},
    root,
    validators::said,
};

const CHART: &str = "k8s/helm/kairo";

/// Helm; none where it could not be installed.
fn helm() -> Option<PathBuf> {
    let program = std::env::var_os("KAIRO_HELM").map(PathBuf::from);
    if program.is_none() {
        eprintln!("skipped: Helm is not installed, run ./scripts/setup --tests");
    }
    program
}

fn run(helm: &Path, arguments: &[&str], values: &[String]) -> Output {
    let set = values.iter().flat_map(|value| ["--set", value]);
    let mut command = Command::new(helm);
    // Nothing of whoever runs the tests is read.
    let home = tempfile::tempdir().unwrap();
    command.env("HOME", home.path()).env_remove("KUBECONFIG").current_dir(root());
    command.args(arguments).args(set).output().unwrap()
}

fn template(helm: &Path, values: &[String]) -> String {
    let output = run(helm, &["template", "kairo", CHART, "--namespace", "kairo"], values);
    assert!(output.status.success(), "{values:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// `components.cloudnativePg`, as the chart has it.
fn switch(component: &str, on: bool) -> String {
    let mut words = component.split('-');
    let first = words.next().unwrap().to_owned();
    let name = words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..]);
    format!("components.{name}={on}")
}

fn by_id(documents: Vec<Value>) -> BTreeMap<String, Value> {
    let own = documents.into_iter().filter(|document| document["kind"] != "Namespace");
    own.map(|mut document| {
        sort_variables(&mut document);
        (id(&document), document)
    })
    .collect()
}

/// Sorts environment variables by name: their order depends on whether a component is named by the overlay or beside
/// it. None refers to another.
fn sort_variables(node: &mut Value) {
    match node {
        Value::Object(fields) => {
            if let Some(Value::Array(variables)) = fields.get_mut("env") {
                variables.sort_by_key(|variable| variable["name"].to_string());
            }
            fields.values_mut().for_each(sort_variables);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_variables),
        _ => {}
    }
}

fn of_kustomize(text: &str) -> BTreeMap<String, Value> {
    by_id(documents(&undigested(text)))
}

/// Without what only a chart has: a job's revision, and digests of what pods are given.
fn of_helm(text: &str) -> BTreeMap<String, Value> {
    let mut documents = documents(text);
    for document in &mut documents {
        if document["kind"] == "Job" {
            let name = document["metadata"]["name"].as_str().unwrap();
            document["metadata"]["name"] = name.strip_suffix("-1").unwrap().into();
        }
        let Some(pod) = document.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut) else {
            continue;
        };
        if let Some(annotations) = pod.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|name, _| !name.starts_with("checksum/"));
            if annotations.is_empty() {
                pod.remove("annotations");
            }
        }
    }
    by_id(documents)
}

#[test]
fn the_chart_renders_to_what_kustomize_does() {
    let Some(helm) = helm() else { return };
    for (combination, text) in render(production()) {
        let values: Vec<String> = combination.components.iter().map(|component| switch(component, true)).collect();
        let (kustomize, chart) = (of_kustomize(&text), of_helm(&template(&helm, &values)));
        let name = combination.name();
        assert!(kustomize.keys().eq(chart.keys()), "{name}: {:?} / {:?}", kustomize.keys(), chart.keys());
        for (id, document) in &kustomize {
            assert_eq!(document, &chart[id], "{name}: {id}");
        }
    }
}

#[test]
fn values_change_what_people_change_and_a_mistake_in_them_is_named() {
    let Some(helm) = helm() else { return };
    let all = COMPONENTS.map(|component| switch(component, true));
    let passes = run(&helm, &["lint", "--strict", CHART], &all);
    assert!(passes.status.success(), "{}", said(&passes));
    let elsewhere = run(&helm, &["template", "kairo", CHART, "--namespace", "elsewhere"], &all);
    let text = String::from_utf8(elsewhere.stdout).unwrap();
    assert!(text.contains("gateway.elsewhere.svc") && !text.contains("kairo.svc"), "names are of the namespace");
    let off = OF_PRODUCTION.map(|component| switch(component, false));
    let changes = ["images.kairo=registry.example/kairo@sha256:0", "replicas.gateway=5", "storage.nats=1Ti"];
    let more = ["settings.KAIRO_TELEMETRY__LOG=debug", "secrets.kairo=elsewhere", "storageClass=fast"];
    let values = [off.as_slice(), &changes.map(str::to_owned), &more.map(str::to_owned)].concat();
    let chart = of_helm(&template(&helm, &values));
    assert!(!chart.keys().any(|id| id.ends_with(" backup") || id.starts_with("ServiceAccount")), "{:?}", chart.keys());
    let gateway = &chart["Deployment gateway"]["spec"];
    assert_eq!(gateway["replicas"], 5);
    let container = &gateway["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example/kairo@sha256:0");
    let variable = |name: &str| container["env"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(variable("KAIRO_API_KEY")["valueFrom"]["secretKeyRef"]["name"], "elsewhere", "{container}");
    let volume = &chart["StatefulSet nats"]["spec"]["volumeClaimTemplates"][0]["spec"];
    assert_eq!(
        (&volume["resources"]["requests"]["storage"], &volume["storageClassName"]),
        (&"1Ti".into(), &"fast".into())
    );
    assert_eq!(chart["ConfigMap settings"]["data"]["KAIRO_TELEMETRY__LOG"], "debug");
    for (wrong, named) in [("replicas.gatewy=3", "gatewy"), ("settings.KAIRO_GATEWAY__MAX_STREAMS=7", "want string")] {
        let refused = run(&helm, &["template", "kairo", CHART], &[wrong.to_owned()]);
        assert!(!refused.status.success() && said(&refused).contains(named), "{}", said(&refused));
    }
}

/// Files by their paths from a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), text);
            }
        }
    }
    found
}

#[test]
fn the_chart_is_generated() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(root().join("scripts/chart")).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let (committed, generated) = (files(&root().join(CHART)), files(folder.path()));
    let differs: Vec<&PathBuf> =
        committed.keys().chain(generated.keys()).filter(|path| committed.get(*path) != generated.get(*path)).collect();
    assert!(differs.is_empty(), "run scripts/chart and commit what it writes: {differs:?}");
}
