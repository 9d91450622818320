//! Deployments match the programs: every program is started somewhere, and every setting is one that its program
//! knows. No container runs here.

mod chart;
mod image;
mod manifests;
mod programs;
mod rendered;
mod validators;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use kairo_core::permissions::NatsIdentity;
use kairo_local::{Postgres, Service, StackOptions, Tools};
use kairo_tests::certificates::Authority;
use serde_json::Value;
use sqlx::{Connection, PgConnection};

const TLS: &str = "k8s/components/tls";
const NKEYS: &str = "k8s/components/nkeys";
/// The placeholder for every value that a deployment takes from its secrets: all are texts, one is a URL, one is a key.
const SECRET: &str = "postgres://kairo:secret@database/kairo";
/// The services that go to Postgres, as their names stand in variables.
const IN_POSTGRES: [(Service, &str); 3] =
    [(Service::Projector, "PROJECTOR"), (Service::Gateway, "GATEWAY"), (Service::ToolRunner, "TOOL_RUNNER")];
const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

/// The error with which compose stops while a secret is not set, as written in the variable's expansion.
const NEEDED: &str = ":?run scripts/secrets once, which makes it}";

/// The settings that belong together: file names from the root, and the TOML file among them.
const DEPLOYMENTS: [(&str, &[&str], Option<&str>); 4] = [
    ("one machine", &[], Some("deploy/kairo.toml")),
    ("compose", &["docker-compose.yml"], None),
    ("demo", &["k8s/base", "k8s/overlays/demo"], Some("k8s/base/kairo.toml")),
    ("production", &["k8s/base", "k8s/overlays/production", "k8s/components"], Some("k8s/base/kairo.toml")),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The text of a file, or of all YAML files in a folder and below, without comments that stand alone.
fn text(path: &str) -> String {
    fn collect(path: &Path, lines: &mut Vec<String>) {
        if path.is_dir() {
            let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
            entries.sort();
            let is_read = |path: &&PathBuf| path.is_dir() || path.extension().is_some_and(|end| end == "yaml");
            entries.iter().filter(is_read).for_each(|path| collect(path, lines));
            return;
        }
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        lines.extend(text.lines().filter(|line| !line.trim_start().starts_with('#')).map(str::to_owned));
    }
    let mut lines = Vec::new();
    collect(&root().join(path), &mut lines);
    lines.join("\n")
}

/// The variables named `KAIRO_…`, with their values: `NAME: value` in compose; `NAME=value`, or `name: NAME, value: value`, in
/// Kubernetes, where one that comes from a secret has nothing behind its name. One to a line.
fn variables(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some(start) = line.find("KAIRO_") else { continue };
        let line = &line[start..];
        let (name, rest) = line.split_at(line.find([':', ',', ' ', '=']).unwrap_or(line.len()));
        // In place of the password, where it is.
        if name == "KAIRO_NATS__NKEY" {
            continue;
        }
        let rest = rest.trim_start_matches([',', ':', ' ', '=']).trim_start_matches("value: ");
        let value = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => rest.split(quote).nth(1).unwrap(),
            Some('$') => default_of(rest),
            Some(_) => rest.split([' ', '"', ']']).next().unwrap(),
            None if name.ends_with("_KEY") => KEY,
            None if name.ends_with("_KEYS") => "[]",
            None => SECRET,
        };
        found.insert(name.to_owned(), value.to_owned());
    }
    found
}

/// Returns what compose substitutes for `${NAME:-default}` when nothing is set, or for a secret without a default once
/// `scripts/secrets` has run.
fn default_of(value: &str) -> &str {
    if value.contains(NEEDED) {
        return KEY;
    }
    let default = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')?.split_once(":-"));
    default.unwrap_or_else(|| panic!("{value} has no default, so it is needed")).1
}

/// Runs a service's program with nothing but these variables.
fn run(service: Service, argument: &str, environment: &BTreeMap<String, String>) -> Output {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join(service.binary());
    let mut command = Command::new(&program);
    command.arg(argument).env_clear().envs(environment);
    command.output().unwrap_or_else(|error| panic!("{}: {error}; build it first", program.display()))
}

/// The environment of a deployment: its variables, its file, and what its secrets are.
fn environment(files: &[&str], toml: Option<&str>) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    for path in files {
        environment.extend(variables(&text(path)));
    }
    if let Some(toml) = toml {
        environment.insert("KAIRO_CONFIG".to_owned(), root().join(toml).display().to_string());
    }
    for name in ["DATABASE_URL", "NATS_PASSWORD"] {
        environment.insert(name.to_owned(), SECRET.to_owned());
    }
    if toml.is_some_and(|toml| text(toml).contains("env:KAIRO_MASTER_KEY")) {
        environment.insert("KAIRO_MASTER_KEY".to_owned(), KEY.to_owned());
    }
    environment
}

/// The configuration in force.
fn config(service: Service, environment: &BTreeMap<String, String>) -> Value {
    let output = run(service, "--print-config", environment);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} refuses {environment:#?}: {complaint}", service.binary());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn services() -> impl Iterator<Item = Service> {
    Service::ALL.into_iter().filter(|service| !matches!(service, Service::ModelSim))
}

/// Returns true if the setting of this name arrived in one of the configurations. A service that ignores the section
/// does not show it.
fn arrived(configs: &[Value], name: &str) -> bool {
    let path = name.trim_start_matches("KAIRO_").to_lowercase().replace("__", "/");
    configs.iter().any(|config| config.pointer(&format!("/{path}")).is_some())
}

#[test]
fn every_program_is_in_the_image_and_is_started_by_every_deployment() {
    let dockerfile = fs::read_to_string(root().join("deploy/Dockerfile")).unwrap();
    for service in Service::ALL {
        let program = service.binary();
        assert!(dockerfile.contains(&format!("-p {program} ")), "the image does not build {program}");
        assert!(dockerfile.contains(&format!("target/release/{program}")), "the image lacks {program}");
        for (deployment, files, _) in DEPLOYMENTS.into_iter().filter(|(_, files, _)| !files.is_empty()) {
            let started = files.iter().any(|path| text(path).contains(&format!("command: [{program}]")));
            let wanted = deployment != "production" || !matches!(service, Service::ModelSim);
            assert_eq!(started, wanted, "{program} in {deployment}");
        }
    }
}

/// The variables that `kairo nkeys` makes for nats-server.
fn nkeys() -> BTreeMap<String, String> {
    let (program, folder) =
        (StackOptions::bin_dir_of_this_build().unwrap().join("kairo"), tempfile::tempdir().unwrap());
    let made = Command::new(program).arg("nkeys").arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made = fs::read_to_string(folder.path().join("nats-nkeys.env")).unwrap();
    made.lines().map(|line| line.split_once('=').unwrap()).map(|(name, key)| (name.into(), key.into())).collect()
}

/// nats-server understands its configurations, with and without TLS, and they hold the permissions of every user.
#[test]
fn the_configurations_of_nats_server_are_understood() {
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let nkeys = nkeys();
    for folders in [&["deploy"][..], &["k8s/base"], &["k8s/base", TLS], &["k8s/base", NKEYS], &["k8s/base", TLS, NKEYS]]
    {
        let together = tempfile::tempdir().unwrap();
        let authority = Authority::create(together.path().join("ca.crt")).unwrap();
        let server = authority.server(together.path()).unwrap();
        fs::rename(server.certificate, together.path().join("tls.crt")).unwrap();
        fs::rename(server.key, together.path().join("tls.key")).unwrap();
        for folder in folders {
            let files = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
            for path in files.filter(|path| path.extension().is_some_and(|end| end == "conf")) {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.replace("/etc/nats/tls", together.path().to_str().unwrap());
                fs::write(together.path().join(path.file_name().unwrap()), text).unwrap();
            }
        }
        let config = together.path().join("nats.conf");
        let mut command = Command::new(tools.nats_server().unwrap());
        command.arg("-t").arg("--config").arg(&config).env("POD_NAME", "nats-0").env("MAX_FILE_STORE", "1GB");
        let users = together.path().join("nats-users.conf");
        let users = fs::read_to_string(if users.exists() { &users } else { &config }).unwrap();
        for identity in NatsIdentity::ALL {
            let (user, variable) = (identity.name(), identity.variable_name());
            let (known, secret) = match folders.contains(&NKEYS) {
                true => (format!("nkey: $NATS_NKEY_{variable}"), nkeys[&format!("NATS_NKEY_{variable}")].as_str()),
                false => (format!("user: {user}, password: $NATS_PASSWORD_{variable}"), "secret"),
            };
            command.env(known.split('$').next_back().unwrap(), secret);
            assert!(
                users.contains(&format!("{{ {known}, permissions: $PERMISSIONS_{variable} }}")),
                "{folders:?}: {user}"
            );
        }
        let tested = command.output().unwrap();
        assert!(tested.status.success(), "{folders:?}: {}", String::from_utf8_lossy(&tested.stderr));
    }
}

/// Runs the scripts that a deployment runs on a new server, with the same program: the roles exist, with their
/// passwords.
#[tokio::test]
async fn the_roles_of_postgres_are_made_and_can_log_in() {
    let (tools, folder) = (Tools::of_this_checkout().expect("run ./scripts/test"), tempfile::tempdir().unwrap());
    let options = tools.ephemeral_postgres_in(folder.path().join("postgres")).unwrap();
    let postgres = Postgres::start(options).await.unwrap();
    let url = postgres.create_database("kairo").await.unwrap();
    let passwords = IN_POSTGRES.map(|(_, name)| (format!("POSTGRES_PASSWORD_{name}"), format!("of-{name}")));
    let psql = |passwords: &[(String, String)]| {
        let mut command = Command::new(tools.postgres_bin().unwrap().join("psql"));
        command.args(["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname", &url]);
        for file in ["postgres-roles.sql", "postgres-passwords.sql"] {
            command.arg("--file").arg(root().join("deploy").join(file));
        }
        command.envs(passwords.iter().cloned()).output().unwrap()
    };
    assert!(!psql(&passwords[1..]).status.success(), "a password is missing");
    // However often.
    for _ in 0..2 {
        let made = psql(&passwords);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let superuser = url.split('@').next().unwrap();
    for (_, name) in IN_POSTGRES {
        let role = format!("kairo_{}", name.to_lowercase());
        let own = url.replace(superuser, &format!("postgres://{role}:of-{name}"));
        PgConnection::connect(&own).await.unwrap_or_else(|error| panic!("{role}: {error}"));
        for file in ["docker-compose.yml", "k8s/overlays/demo", "k8s/components/cloudnative-pg"] {
            assert!(text(file).contains(&format!("postgres://{role}:")), "{role} in {file}");
        }
    }
}

/// Each is given its own secret, and none of another.
#[test]
fn each_service_goes_to_postgres_as_itself() {
    for (service, name) in IN_POSTGRES {
        let file = format!("k8s/base/{}.yaml", service.binary().trim_start_matches("kairo-"));
        let keys: Vec<String> =
            text(&file).split("DATABASE_URL").skip(1).map(|rest| rest[..rest.find(' ').unwrap()].to_owned()).collect();
        assert_eq!(keys, [format!("_{name}")], "{file}");
        let compose = text("docker-compose.yml");
        let section = compose.split(&format!("command: [{}]", service.binary())).nth(1).unwrap();
        let section = section.split("command: [").next().unwrap();
        let role =
            format!("DATABASE_URL: postgres://kairo_{}:${{POSTGRES_PASSWORD_{name}{NEEDED}@", name.to_lowercase());
        assert!(section.contains(&role) && section.matches("POSTGRES_PASSWORD").count() == 1, "{section}");
    }
}

#[test]
fn every_setting_is_one_that_a_program_knows() {
    for (deployment, files, toml) in DEPLOYMENTS {
        let environment = environment(files, toml);
        let configs: Vec<Value> = services().map(|service| config(service, &environment)).collect();
        let simulator = run(Service::ModelSim, "--help", &BTreeMap::new());
        // Help is wrapped at the width of a terminal.
        let simulator = String::from_utf8(simulator.stdout).unwrap();
        let simulator = simulator.split_whitespace().collect::<Vec<_>>().join(" ");
        let image = text("deploy/Dockerfile");
        for name in environment.keys().filter(|name| name.starts_with("KAIRO_") && *name != "KAIRO_CONFIG") {
            // What `kairo` brings when it is run beside the gateway.
            let commands_own = ["KAIRO_API_KEY", "KAIRO_URL"].contains(&name.as_str());
            // What the file of one machine refers to.
            let referred_to = toml.is_some_and(|toml| text(toml).contains(&format!("\"env:{name}\"")));
            let of_the_build = image.contains(&format!("ARG {name}="));
            let known = commands_own
                || referred_to
                || of_the_build
                || arrived(&configs, name)
                || simulator.contains(&format!("[env: {name}=]"));
            assert!(known, "nothing reads {name} of {deployment}");
        }
    }
}

#[test]
fn a_setting_that_nobody_knows_is_found() {
    let environment = BTreeMap::from([("KAIRO_GATEWAY__LISTENS".to_owned(), "x".to_owned())]);
    assert!(!run(Service::Gateway, "--print-config", &environment).status.success());
}

#[test]
fn services_have_time_to_drain_before_they_are_killed() {
    let seconds = |path: &str, key: &str| -> u64 {
        let text = text(path);
        let value = text.split(key).nth(1).unwrap_or_else(|| panic!("{key} in {path}"));
        value.trim_start().split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let (_, compose, _) = DEPLOYMENTS[1];
    let (_, kubernetes, toml) = DEPLOYMENTS[3];
    for (given, environment) in [
        (seconds("docker-compose.yml", "stop_grace_period:"), environment(compose, None)),
        (seconds("k8s/base/every-service.yaml", "terminationGracePeriodSeconds:"), environment(kubernetes, toml)),
    ] {
        for service in services() {
            let config = config(service, &environment);
            // A gateway serves on before it drains.
            let lame_duck = config["gateway"]["lame_duck_ms"].as_u64().unwrap_or(0);
            for what in ["drain_ms", "handover_ms"] {
                let wanted = config["bus"][what].as_u64().unwrap() + lame_duck;
                assert!(given * 1000 > wanted + 5_000, "{}: {given} s for {what} = {wanted}", service.binary());
            }
        }
    }
}

#[test]
fn nothing_but_the_gateway_is_published_and_that_only_here() {
    let compose = text("docker-compose.yml");
    let published: Vec<&str> = compose.lines().filter(|line| line.trim_start().starts_with("ports:")).collect();
    assert_eq!(published, [r#"    ports: ["127.0.0.1:7420:7420"]"#]);
}

#[test]
fn no_secret_of_compose_is_published() {
    let compose = text("docker-compose.yml");
    for name in MADE {
        let used: Vec<&str> = compose.split(&format!("${{{name}:")).skip(1).collect();
        assert!(!used.is_empty(), "{name}");
        assert!(used.iter().all(|rest| rest.starts_with(NEEDED.trim_start_matches(':'))), "{name} has a default");
    }
    // Whatever else is a secret may be missing, and is then none.
    for line in
        compose.lines().filter(|line| ["_KEY:-", "_TOKEN:-", "_PASSWORD:-"].iter().any(|end| line.contains(end)))
    {
        assert!(line.contains(":-}"), "{line}");
    }
}

#[test]
fn what_users_say_is_sealed_in_every_deployment() {
    for (deployment, files, toml) in DEPLOYMENTS {
        let environment = environment(files, toml);
        for service in services() {
            let key = &config(service, &environment)["privacy"]["master_key"];
            assert!(key.is_string() && *key != "", "{} of {deployment}: {key}", service.binary());
        }
        // A container is not told all of that: each service's own variables hold the key.
        for file in files.iter().filter(|file| file.ends_with("compose.yml")) {
            let compose = text(file);
            for started in compose.split("command: [kairo-").skip(1).filter(|it| !it.starts_with("model-sim")) {
                let own = started.split("command: [").next().unwrap();
                assert!(own.contains("*sealing"), "{file}: kairo-{own}");
            }
        }
    }
}

/// The secrets that `scripts/secrets` generates.
const MADE: [&str; 16] = [
    "KAIRO_API_KEY",
    "KAIRO_MASTER_KEY",
    "KAIRO_SIGNING_KEY",
    "MEILI_MASTER_KEY",
    "NATS_PASSWORD_AGENT_RUNTIME",
    "NATS_PASSWORD_GATEWAY",
    "NATS_PASSWORD_OUTSIDE",
    "NATS_PASSWORD_PROCESS_SUPERVISOR",
    "NATS_PASSWORD_PROJECTOR",
    "NATS_PASSWORD_PROVISION",
    "NATS_PASSWORD_ROUTER",
    "NATS_PASSWORD_TOOL_RUNNER",
    "POSTGRES_PASSWORD",
    "POSTGRES_PASSWORD_GATEWAY",
    "POSTGRES_PASSWORD_PROJECTOR",
    "POSTGRES_PASSWORD_TOOL_RUNNER",
];

#[test]
fn secrets_are_made_once_and_only_their_owner_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("env");
    // Without an end of its line, as it may be written by hand.
    fs::write(&file, "NATS_PASSWORD_ROUTER=mine").unwrap();
    let make = || {
        assert!(Command::new(root().join("scripts/secrets")).arg(&file).status().unwrap().success());
        fs::read_to_string(&file).unwrap()
    };
    let made = make();
    let values: BTreeMap<&str, &str> = made.lines().map(|line| line.split_once('=').unwrap()).collect();
    assert_eq!(values.keys().copied().collect::<Vec<_>>(), MADE);
    assert_eq!(values["NATS_PASSWORD_ROUTER"], "mine");
    assert_ne!(values["KAIRO_API_KEY"], values["POSTGRES_PASSWORD"]);
    assert!(values["KAIRO_API_KEY"].len() > 64);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(make(), made);
    let environment = [
        ("KAIRO_GATEWAY__ADMIN_KEY", "KAIRO_API_KEY"),
        ("KAIRO_PRIVACY__MASTER_KEY", "KAIRO_MASTER_KEY"),
        ("KAIRO_SIGNING__KEY", "KAIRO_SIGNING_KEY"),
    ];
    config(Service::Gateway, &environment.map(|(name, made)| (name.to_owned(), values[made].to_owned())).into());
    assert!(fs::read_to_string(root().join(".gitignore")).unwrap().lines().any(|line| line == "/.env"));
}
