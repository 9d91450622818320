//! Monitoring of Kairo: the metrics that every service serves, the dashboards and alerts built on them, and the
//! documents that describe them.

mod prometheus;
mod query;
mod running;
pub mod scrape;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use kairo_core::metrics::table::{Metric, MetricKind, MetricUnit, TABLE};
use serde_json::Value;

use query::named;

const START: &str = "<!-- metrics -->\n";
const END: &str = "<!-- /metrics -->";
/// The rules of `alerts.yaml` as the operator of Prometheus wants them.
const RULE: &str =
    "# Generated from deploy/monitoring/alerts.yaml: KAIRO_REGENERATE=1 cargo nextest run -p kairo-tests monitoring
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: kairo
spec:
";
/// The metric that Prometheus itself records for every target.
const OF_PROMETHEUS: &str = "up";
const LABELS_OF_PROMETHEUS: [&str; 2] = ["job", "instance"];
/// The bound of a bucket.
const BOUND: &str = "le";
/// The placeholder for the range that Grafana chooses.
const INTERVAL: &str = "[$__rate_interval]";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn monitoring() -> PathBuf {
    root().join("deploy/monitoring")
}

/// Compares a file, or what is marked in it, with what it should be; or writes it.
fn is_written(path: &Path, wanted: &str) {
    if std::env::var_os("KAIRO_REGENERATE").is_some() {
        fs::write(path, wanted).unwrap();
    }
    let told = fs::read_to_string(path).unwrap_or_default();
    assert!(told == wanted, "{}: run KAIRO_REGENERATE=1 cargo nextest run -p kairo-tests monitoring", path.display());
}

/// The table of metrics, in Markdown.
fn table() -> String {
    let mut text = String::from(
        "| OpenTelemetry | OpenMetrics | type | unit | labels | service | says |\n|---|---|---|---|---|---|---|\n",
    );
    for metric in TABLE {
        let every = metric.services.len() == kairo_core::subjects::Service::ALL.len();
        let services: Vec<&str> = metric.services.iter().map(|service| service.name()).collect();
        let services = if every { "every one".to_owned() } else { services.join(", ") };
        let labels: Vec<String> = metric.exposed_labels().iter().map(|label| format!("`{label}`")).collect();
        let suffix =
            if matches!(metric.kind, MetricKind::Counter | MetricKind::ObservedCounter) { "_total" } else { "" };
        let unit = match metric.unit {
            MetricUnit::YesOrNo => "0 or 1",
            unit => unit.symbol(),
        };
        let (name, family, kind) = (metric.name, metric.family_name(), metric.kind.openmetrics_type());
        let labels = labels.join(", ");
        writeln!(text, "| `{name}` | `{family}{suffix}` | {kind} | {unit} | {labels} | {services} | {} |", metric.says)
            .unwrap();
    }
    text
}

#[test]
fn the_table_of_metrics_is_that_of_the_code() {
    let path = root().join("docs/metrics.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(START).expect("the table's beginning is marked");
    let (_, after) = rest.split_once(END).expect("the table's end is marked");
    is_written(&path, &format!("{before}{START}{}{END}{after}", table()));
}

#[test]
fn every_alert_is_told_of_with_what_to_do() {
    let text = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let told: BTreeSet<&str> = text.split('`').filter(|word| word.starts_with("Kairo")).collect();
    let alerts = alerts();
    let names: BTreeSet<&str> = alerts.iter().map(|alert| alert["alert"].as_str().unwrap()).collect();
    assert_eq!(told, names);
    for alert in &alerts {
        let texts = &alert["annotations"];
        assert!(texts["summary"].is_string() && texts["action"].is_string(), "{alert}");
        assert!(matches!(alert["labels"]["severity"].as_str(), Some("critical" | "warning" | "info")), "{alert}");
    }
}

#[test]
fn the_operator_of_prometheus_is_given_the_same_rules() {
    let rules = fs::read_to_string(monitoring().join("alerts.yaml")).unwrap();
    let groups = rules.lines().skip_while(|line| !line.starts_with("groups:"));
    let spec: String = groups.map(|line| format!("  {line}\n")).collect();
    is_written(&root().join("k8s/components/monitoring/prometheus-rule.yaml"), &format!("{RULE}{spec}"));
}

#[test]
fn kubernetes_reads_metrics_where_services_serve_them() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let parse = |path: &str| -> Value { serde_saphyr::from_str(&read(path)).unwrap() };
    let monitor = parse("k8s/components/monitoring/pod-monitor.yaml");
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    assert_eq!(endpoint["path"], "/metrics");
    let service = parse("k8s/base/every-service.yaml");
    let ports = &service["spec"]["template"]["spec"]["containers"][0]["ports"];
    let port = ports.as_array().unwrap().iter().find(|port| port["name"] == endpoint["port"]).unwrap();
    let policy = parse("k8s/components/monitoring/network-policy.yaml");
    assert_eq!(policy["spec"]["ingress"][0]["ports"][0]["port"], port["containerPort"]);
    let chosen = &monitor["spec"]["selector"]["matchLabels"];
    assert_eq!(chosen, &policy["spec"]["podSelector"]["matchLabels"]);
    let (label, value) = chosen.as_object().unwrap().iter().next().unwrap();
    for service in prometheus::services() {
        let file = format!("k8s/base/{}.yaml", service.binary().trim_start_matches("kairo-"));
        assert!(read(&file).contains(&format!("{label}: {}", value.as_str().unwrap())), "{file}");
    }
}

/// The alerts, as they are declared.
fn alerts() -> Vec<Value> {
    let text = fs::read_to_string(monitoring().join("alerts.yaml")).unwrap();
    let rules: Value = serde_saphyr::from_str(&text).unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

fn dashboards() -> Vec<PathBuf> {
    let files = fs::read_dir(monitoring().join("dashboards")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

#[test]
fn every_dashboard_is_deployed() {
    let text = fs::read_to_string(monitoring().join("dashboards/kustomization.yaml")).unwrap();
    let component: Value = serde_saphyr::from_str(&text).unwrap();
    let deployed = component["configMapGenerator"][0]["files"].as_array().unwrap();
    let deployed: BTreeSet<&str> = deployed.iter().map(|file| file.as_str().unwrap()).collect();
    let files = dashboards();
    assert_eq!(deployed, files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect());
}

/// Returns the queries by which KEDA decides on the number of replicas.
fn scaled() -> Vec<Asked> {
    let text = fs::read_to_string(root().join("k8s/components/keda/scaled-objects.yaml")).unwrap();
    let objects = text.split("\n---\n").map(|object| serde_saphyr::from_str::<Value>(object).unwrap());
    let asked = objects.flat_map(|object| {
        let by = object["metadata"]["name"].as_str().unwrap().to_owned();
        let triggers = object["spec"]["triggers"].as_array().unwrap().clone();
        triggers.into_iter().map(move |trigger| Asked {
            by: format!("replicas of {by}"),
            query: trigger["metadata"]["query"].as_str().unwrap().to_owned(),
            shown: BTreeSet::new(),
        })
    });
    let asked: Vec<Asked> = asked.collect();
    assert!(asked.len() > 4, "all that lag are scaled");
    asked
}

/// A query of a dashboard, an alert or KEDA.
struct Asked {
    by: String,
    query: String,
    /// Labels that a text shows of what is found.
    shown: BTreeSet<String>,
}

fn queries() -> Vec<Asked> {
    let mut asked: Vec<Asked> = Vec::new();
    for alert in alerts() {
        let summary = alert["annotations"]["summary"].as_str().unwrap();
        let shown = summary.split("$labels.").skip(1).map(|rest| rest.split([' ', '}']).next().unwrap().to_owned());
        asked.push(Asked {
            by: alert["alert"].as_str().unwrap().to_owned(),
            query: alert["expr"].as_str().unwrap().to_owned(),
            shown: shown.collect(),
        });
    }
    asked.extend(scaled());
    for path in dashboards() {
        let dashboard: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                let legend = target["legendFormat"].as_str().unwrap();
                let shown = legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap().to_owned());
                asked.push(Asked {
                    by: format!(
                        "{}: {}",
                        path.file_stem().unwrap().to_string_lossy(),
                        panel["title"].as_str().unwrap()
                    ),
                    query: target["expr"].as_str().unwrap().to_owned(),
                    shown: shown.collect(),
                });
            }
        }
    }
    asked
}

/// The metrics by the names that queries find them by.
fn by_sample() -> BTreeMap<String, &'static Metric> {
    TABLE.iter().flat_map(|metric| metric.sample_names().into_iter().map(move |name| (name, *metric))).collect()
}

/// Returns the mistakes in a query: unknown metrics and labels.
fn mistakes(query: &str, shown: &BTreeSet<String>, known: &BTreeMap<String, &'static Metric>) -> Vec<String> {
    let named = named(query);
    let mut mistakes = Vec::new();
    let mut labels: BTreeSet<String> = LABELS_OF_PROMETHEUS.map(str::to_owned).into();
    for (name, chosen) in &named.metrics {
        let own: BTreeSet<String> = match known.get(name) {
            Some(metric) => metric.exposed_labels().into_iter().collect(),
            None if name == OF_PROMETHEUS => BTreeSet::new(),
            None => {
                mistakes.push(format!("there is no metric {name}"));
                continue;
            }
        };
        let is_bound = |label: &str| label == BOUND && name.ends_with("_bucket");
        let is_own =
            |label: &&String| own.contains(*label) || LABELS_OF_PROMETHEUS.contains(&label.as_str()) || is_bound(label);
        mistakes.extend(chosen.iter().filter(|label| !is_own(label)).map(|label| format!("{name} has no {label}")));
        if name.ends_with("_bucket") {
            labels.insert(BOUND.to_owned());
        }
        labels.extend(own);
    }
    let told = named.grouped.iter().chain(shown);
    mistakes.extend(told.filter(|label| !labels.contains(*label)).map(|label| format!("nothing has {label}")));
    mistakes
}

#[test]
fn every_query_names_metrics_and_labels_that_there_are() {
    let known = by_sample();
    let queries = queries();
    let mut wrong = Vec::new();
    for Asked { by, query, shown } in &queries {
        let found = mistakes(query, shown, &known);
        wrong.extend(found.into_iter().map(|mistake| format!("{by}: {mistake} ({query})")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Nobody counts for nobody.
    let named: BTreeSet<&str> = queries
        .iter()
        .flat_map(|asked| named(&asked.query).metrics)
        .filter_map(|(name, _)| known.get(&name).map(|metric| metric.name))
        .collect();
    let unseen: Vec<&str> = TABLE.iter().map(|metric| metric.name).filter(|name| !named.contains(name)).collect();
    assert!(unseen.is_empty(), "no dashboard and no alert shows {unseen:?}");
    // That they would be found.
    for (query, shown) in
        [("sum(kairo_no_such_total)", ""), ("kairo_log_size_bytes{tier=\"x\"}", ""), ("kairo_service_ready", "tier")]
    {
        let shown: BTreeSet<String> = shown.split_whitespace().map(str::to_owned).collect();
        assert_eq!(mistakes(query, &shown, &known).len(), 1, "{query}");
    }
}

/// A program of Prometheus; none where it could not be installed.
fn program(variable: &str) -> Option<PathBuf> {
    let program = std::env::var_os(variable).map(PathBuf::from);
    if program.is_none() {
        eprintln!("skipped: Prometheus is not installed, run ./scripts/setup --tests");
    }
    program
}

#[test]
fn prometheus_understands_the_rules_and_they_fire_when_they_should() {
    let Some(promtool) = program("KAIRO_PROMTOOL") else { return };
    for arguments in [
        ["check", "rules", "alerts.yaml"],
        ["check", "config", "prometheus.yml"],
        ["test", "rules", "alerts.test.yaml"],
    ] {
        let output = Command::new(&promtool).args(arguments).current_dir(monitoring()).output().unwrap();
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).join("\n");
        assert!(output.status.success(), "promtool {arguments:?}: {said}");
    }
    // What KEDA asks is asked of Prometheus, too.
    let folder = tempfile::tempdir().unwrap();
    let asked = scaled().into_iter().map(|asked| serde_json::json!({ "record": "asked", "expr": asked.query }));
    let rules = serde_json::json!({ "groups": [{ "name": "asked", "rules": asked.collect::<Vec<_>>() }] });
    fs::write(folder.path().join("asked.yaml"), rules.to_string()).unwrap();
    let output = Command::new(&promtool).args(["check", "rules", "asked.yaml"]).current_dir(folder.path()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "promtool: {}", String::from_utf8_lossy(&output.stderr));
    // Each alert is tried.
    let tests = fs::read_to_string(monitoring().join("alerts.test.yaml")).unwrap();
    let tests: Value = serde_saphyr::from_str(&tests).unwrap();
    let tried = tests["tests"].as_array().unwrap().iter().flat_map(|test| test["alert_rule_test"].as_array().unwrap());
    let (mut fires, mut rests) = (BTreeSet::new(), BTreeSet::new());
    for alert in tried {
        let name = alert["alertname"].as_str().unwrap().to_owned();
        let of = if alert["exp_alerts"].as_array().unwrap().is_empty() { &mut rests } else { &mut fires };
        of.insert(name);
    }
    let names: BTreeSet<String> = alerts().iter().map(|alert| alert["alert"].as_str().unwrap().to_owned()).collect();
    assert_eq!(fires, names, "each fires in a test");
    assert_eq!(rests, names, "and in a test each does not");
}
