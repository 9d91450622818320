//! Consistency between manifests: network policies, replicas that survive the loss of a machine, and references.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rendered::{demo, documents, id, pod, production, render};

/// Everything there can be, as it is applied.
fn everything() -> Vec<Value> {
    documents(&production().pop().unwrap().render())
}

fn of_kind<'d>(documents: &'d [Value], kind: &str) -> Vec<&'d Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns true if a selector matches these labels.
fn chooses(selector: &Value, labels: &Value) -> bool {
    let mut exact = selector["matchLabels"].as_object().into_iter().flatten();
    let one_of = list(&selector["matchExpressions"]);
    exact.all(|(label, value)| &labels[label] == value)
        && one_of.iter().all(|one| {
            assert_eq!(one["operator"], "In", "{one}");
            list(&one["values"]).contains(&labels[one["key"].as_str().unwrap()])
        })
}

#[test]
fn what_has_replicas_stays_when_a_machine_goes() {
    let documents = everything();
    let budgets = of_kind(&documents, "PodDisruptionBudget");
    let mut held = 0;
    for workload in
        documents.iter().filter(|document| ["Deployment", "StatefulSet"].iter().any(|kind| document["kind"] == *kind))
    {
        if workload["spec"]["replicas"] == 1 {
            continue;
        }
        let (id, pod) = (id(workload), pod(workload).unwrap());
        let labels = &pod["metadata"]["labels"];
        let own: Vec<_> = budgets.iter().filter(|budget| chooses(&budget["spec"]["selector"], labels)).collect();
        assert_eq!(own.len(), 1, "{id} has one PodDisruptionBudget");
        let spread: BTreeSet<&str> = list(&pod["spec"]["topologySpreadConstraints"])
            .iter()
            .filter(|constraint| chooses(&constraint["labelSelector"], labels))
            .map(|constraint| constraint["topologyKey"].as_str().unwrap())
            .collect();
        assert_eq!(spread, ["kubernetes.io/hostname", "topology.kubernetes.io/zone"].into(), "{id}");
        held += 1;
    }
    assert_eq!((held, budgets.len()), (8, 8), "six services, nats-server and the collector");
}

/// The value of a variable of the first container; panics where it has none, or takes it from elsewhere.
fn variable<'d>(documents: &'d [Value], wanted: &str, name: &str) -> &'d str {
    let document = documents.iter().find(|document| id(document) == wanted).unwrap();
    let environment = list(&pod(document).unwrap()["spec"]["containers"][0]["env"]);
    let found = environment.iter().find(|it| it["name"] == name);
    found.and_then(|it| it["value"].as_str()).unwrap_or_else(|| panic!("{name} of {wanted}"))
}

#[test]
fn alerts_know_what_the_log_may_take() {
    for (combination, text) in render([demo().remove(0), production().remove(0)].into()) {
        let documents = documents(&text);
        let limit: u64 = variable(&documents, "Deployment gateway", "KAIRO_GATEWAY__LOG_LIMIT_BYTES").parse().unwrap();
        let stored = variable(&documents, "StatefulSet nats", "MAX_FILE_STORE");
        // nats-server takes GB for 1024 × 1024 × 1024 bytes.
        let gigabytes: u64 = stored.strip_suffix("GB").unwrap().parse().unwrap();
        assert_eq!(limit, gigabytes << 30, "{}", combination.name());
    }
}

#[test]
fn every_service_is_given_the_master_key() {
    for (combination, text) in render([demo().remove(0), production().remove(0)].into()) {
        let mut services = 0;
        for document in documents(&text) {
            let containers = pod(&document).map_or(&[][..], |pod| list(&pod["spec"]["containers"]));
            for container in containers {
                let program = container["command"][0].as_str().unwrap_or_default();
                if !program.starts_with("kairo-") || program == "kairo-model-sim" {
                    continue;
                }
                let key = list(&container["env"]).iter().find(|it| it["name"] == "KAIRO_PRIVACY__MASTER_KEY");
                let of_secret = key.map(|key| &key["valueFrom"]["secretKeyRef"]);
                let is_needed = of_secret.is_some_and(|it| it["key"] == "MASTER_KEY" && it["optional"] != true);
                assert!(is_needed, "{program} of {}: {key:?}", combination.name());
                services += 1;
            }
        }
        assert_eq!(services, 7, "six services, and the job that builds the read model");
    }
}

#[test]
fn what_is_named_is_there() {
    let documents = everything();
    let names = |kind: &str| -> BTreeSet<&str> {
        of_kind(&documents, kind).into_iter().map(|document| document["metadata"]["name"].as_str().unwrap()).collect()
    };
    let (maps, claims, accounts) = (names("ConfigMap"), names("PersistentVolumeClaim"), names("ServiceAccount"));
    for workload in &documents {
        let Some(pod) = pod(workload) else { continue };
        let id = id(workload);
        let named = |kind: &str, known: &BTreeSet<&str>, name: &Value| {
            assert!(name.is_null() || known.contains(name.as_str().unwrap()), "{id}: no {kind} {name}");
        };
        named("ServiceAccount", &accounts, &pod["spec"]["serviceAccountName"]);
        for volume in list(&pod["spec"]["volumes"]) {
            named("ConfigMap", &maps, &volume["configMap"]["name"]);
            named("PersistentVolumeClaim", &claims, &volume["persistentVolumeClaim"]["claimName"]);
        }
        for container in list(&pod["spec"]["containers"]).iter().chain(list(&pod["spec"]["initContainers"])) {
            list(&container["envFrom"])
                .iter()
                .for_each(|from| named("ConfigMap", &maps, &from["configMapRef"]["name"]));
            let mut before = BTreeSet::new();
            for variable in list(&container["env"]) {
                // Kubernetes fills in only what stands before.
                for name in variable["value"].as_str().unwrap_or_default().split("$(").skip(1) {
                    let name = name.split(')').next().unwrap();
                    assert!(before.contains(name), "{id}: {name} stands behind {variable}");
                }
                before.insert(variable["name"].as_str().unwrap());
            }
        }
    }
}

/// Somebody who speaks to somebody, by labels: pods of the namespace, or a namespace besides.
enum Peer<'l> {
    Pod(&'l Value),
    Namespace(&'l str),
}

impl Peer<'_> {
    fn is_in(&self, peers: &[Value]) -> bool {
        let in_one = |peer: &Value| match self {
            Self::Pod(labels) => peer["podSelector"].is_object() && chooses(&peer["podSelector"], labels),
            Self::Namespace(name) => {
                let labels = serde_json::json!({ "kubernetes.io/metadata.name": name });
                peer["namespaceSelector"].is_object() && chooses(&peer["namespaceSelector"], &labels)
            }
        };
        peers.is_empty() || peers.iter().any(in_one)
    }
}

/// Returns true if the policies let a pod connect to a peer on a port (`Egress`), or the peer to the pod (`Ingress`).
fn lets(policies: &[&Value], direction: &str, pod: &Value, peer: &Peer<'_>, port: u16) -> bool {
    let (rules, peers) = if direction == "Egress" { ("egress", "to") } else { ("ingress", "from") };
    policies
        .iter()
        .map(|policy| &policy["spec"])
        .filter(|spec| list(&spec["policyTypes"]).contains(&direction.into()) && chooses(&spec["podSelector"], pod))
        .flat_map(|spec| list(&spec[rules]))
        .any(|rule| list(&rule["ports"]).iter().any(|open| open["port"] == port) && peer.is_in(list(&rule[peers])))
}

#[test]
fn policies_let_through_what_must_get_through_and_nothing_else() {
    let documents = everything();
    let policies = of_kind(&documents, "NetworkPolicy");
    let postgres = serde_json::json!({ "cnpg.io/cluster": "postgres" });
    let labels = |name: &str| -> &Value {
        if name == "postgres" {
            return &postgres;
        }
        let mut named = documents.iter().filter_map(pod).map(|pod| &pod["metadata"]["labels"]);
        named.find(|labels| labels["app.kubernetes.io/name"] == name).unwrap_or_else(|| panic!("no {name}"))
    };
    let speaks = |from: &str, to: &str, port: u16| {
        let (from, to) = (labels(from), labels(to));
        lets(&policies, "Egress", from, &Peer::Pod(to), port) && lets(&policies, "Ingress", to, &Peer::Pod(from), port)
    };
    let services = ["agent-runtime", "gateway", "process-supervisor", "projector", "router", "tool-runner"];
    for name in services.into_iter().chain(["provision", "read-model", "backup", "archive", "trim"]) {
        assert!(speaks(name, "nats", 4222), "{name} to the log");
        assert!(speaks(name, "otel-collector", 4317), "{name} to the collector");
        assert_eq!(
            speaks(name, "postgres", 5432),
            ["gateway", "projector", "read-model", "tool-runner"].contains(&name),
            "{name}"
        );
        assert_eq!(speaks(name, "meilisearch", 7700), ["gateway", "projector", "read-model"].contains(&name), "{name}");
        assert_eq!(speaks(name, "gateway", 7420), name == "trim", "{name} to the gateway");
        let scraped = |namespace| lets(&policies, "Ingress", labels(name), &Peer::Namespace(namespace), 8080);
        assert!(scraped("monitoring") && !scraped("elsewhere"), "{name} is read by Prometheus");
        let names = lets(&policies, "Egress", labels(name), &Peer::Namespace("kube-system"), 53);
        assert!(names, "{name} looks names up");
    }
    assert!(speaks("nats", "nats", 6222) && !speaks("nats", "meilisearch", 7700));
    let collector = labels("otel-collector");
    assert!(lets(&policies, "Egress", collector, &Peer::Namespace("monitoring"), 4317), "what is collected goes on");
    let operator = Peer::Namespace("cnpg-system");
    assert!(lets(&policies, "Ingress", &postgres, &operator, 8000), "the operator sees how Postgres is");
    assert!(speaks("postgres", "postgres", 5432) && speaks("postgres", "postgres", 8000));
}
