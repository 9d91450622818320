//! The overlays as kustomize renders them, with and without components.

use std::{fs, path::PathBuf, sync::LazyLock, thread};

use serde_json::Value;

use super::{root, validators::validator};

/// Each as `k8s/components` has it.
pub const COMPONENTS: [&str; 12] = [
    "backup",
    "backup-s3",
    "archive",
    "trim",
    "identities",
    "tls",
    "cloudnative-pg",
    "meilisearch",
    "monitoring",
    "keda",
    "otel-collector",
    // Behind those whose jobs it changes.
    "nkeys",
];
/// Components that need another one: each with the component it builds on.
const ON_TOP: [(&str, &str); 2] = [("backup-s3", "backup"), ("trim", "archive")];
/// Those that the overlay for production names itself.
pub const OF_PRODUCTION: [&str; 2] = ["backup", "identities"];
/// Components that the demo cannot take, since it brings a Postgres and passwords of its own.
const NOT_IN_THE_DEMO: [&str; 2] = ["cloudnative-pg", "nkeys"];
/// The number of combinations rendered at once.
const AT_ONCE: usize = 4;

/// An overlay with components that it does not name itself.
#[derive(Clone, Debug)]
pub struct Combination {
    pub overlay: &'static str,
    pub components: Vec<&'static str>,
}

pub fn demo() -> Vec<Combination> {
    let those = COMPONENTS.into_iter().filter(|component| !NOT_IN_THE_DEMO.contains(component));
    combinations("demo", those.collect())
}

pub fn production() -> Vec<Combination> {
    let those = COMPONENTS.into_iter().filter(|component| !OF_PRODUCTION.contains(component));
    combinations("production", those.collect())
}

/// None of them, each of them with what it stands on, and all of them.
fn combinations(overlay: &'static str, those: Vec<&'static str>) -> Vec<Combination> {
    let below = |component: &str| ON_TOP.iter().find(|(on_top, _)| *on_top == component).map(|(_, below)| *below);
    let each = those.iter().map(|component| {
        let missing = below(component).filter(|below| those.contains(below));
        missing.into_iter().chain([*component]).collect()
    });
    let all = [Vec::new()].into_iter().chain(each).chain([those.clone()]);
    all.map(|components| Combination { overlay, components }).collect()
}

impl Combination {
    pub fn name(&self) -> String {
        [[self.overlay].as_slice(), &self.components].concat().join("+")
    }

    /// Returns the manifests that `kubectl` would apply.
    pub fn render(&self) -> String {
        // Beside the sources, as kustomize takes relative paths only, in a folder that git ignores.
        let folder = tempfile::tempdir_in(root().join(".kairo")).unwrap();
        let components: Vec<String> =
            self.components.iter().map(|name| format!("../../k8s/components/{name}")).collect();
        let kustomization = serde_json::json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": "kairo",
            "resources": [format!("../../k8s/overlays/{}", self.overlay)],
            "components": components,
        });
        fs::write(folder.path().join("kustomization.yaml"), kustomization.to_string()).unwrap();
        let output = validator("kubectl", [PathBuf::from("kustomize"), folder.path().to_owned()]);
        assert!(output.status.success(), "{}: {}", self.name(), String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Each with what it renders to.
pub fn render(combinations: Vec<Combination>) -> Vec<(Combination, String)> {
    let mut rendered = Vec::new();
    for some in combinations.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|one| scope.spawn(|| (one.clone(), one.render()))).collect();
            rendered.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        });
    }
    rendered
}

/// Without the digests of what they hold in names of ConfigMaps.
pub fn undigested(text: &str) -> String {
    static DIGEST: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new("(?m)(name: (?:kairo|nats|settings|otel-collector))-[2456789bcdfghkmt]{10}$").unwrap()
    });
    DIGEST.replace_all(text, "$1").into_owned()
}

/// The documents of a text, each as it stands there.
pub fn texts(text: &str) -> impl Iterator<Item = &str> {
    static END: LazyLock<regex::Regex> = LazyLock::new(|| regex::Regex::new("(?m)^---\n").unwrap());
    END.split(text).filter(|document| document.lines().any(|line| !line.is_empty() && !line.starts_with('#')))
}

pub fn documents(text: &str) -> Vec<Value> {
    texts(text).map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// `Deployment gateway`, as people say it.
pub fn id(document: &Value) -> String {
    format!("{} {}", document["kind"].as_str().unwrap(), document["metadata"]["name"].as_str().unwrap())
}

/// The pods that a workload is made of.
pub fn pod(document: &Value) -> Option<&Value> {
    ["/spec/template", "/spec/jobTemplate/spec/template"]
        .into_iter()
        .filter_map(|path| document.pointer(path))
        .find(|template| template["spec"]["containers"].is_array())
}
