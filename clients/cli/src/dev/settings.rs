//! The configuration of each service on a development machine.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use kairo_core::{config::Secret, permissions::NatsIdentity};
use kairo_local::{Database, NatsUsers, Service, ServiceSettings};
use serde_json::json;

use super::model::Model;

/// The variable by which forks in the gateway ask models: here they do, unless it is set otherwise.
const FORK_MODELS: &str = "KAIRO_GATEWAY__FORK_MODELS";

/// The variable in which somebody may give the administrator's key.
pub(super) const ADMIN_KEY: &str = "KAIRO_GATEWAY__ADMIN_KEY";
/// The variable in which somebody may give the gateway's signing key.
pub(super) const SIGNING_KEY: &str = "KAIRO_SIGNING__KEY";

/// The programs agents may run as processes, as far as installed: these can do no harm.
const PROGRAMS: [&str; 2] = ["echo", "sleep"];

/// The user is asked before these run: they show files of the agent's choosing, or do whatever it says. (`date` shows
/// files with its option `--file`.)
const PROGRAMS_WITH_CONSENT: [&str; 4] = ["date", "ls", "cat", "python3"];

/// A job of a minute that says how far it is, for `start a long job`. The script is ours, whatever arguments an agent
/// adds.
const COUNTDOWN: &str = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo \"::progress $i/60 step $i of 60\"; \
                         echo \"working on step $i\"; sleep 1; done";

/// Partitions of the log: a machine of one's own has few replicas to share them.
const PARTITIONS: u32 = 16;

/// The heartbeat of replicas in milliseconds: the first replica works after a number of these.
const BEAT_MS: u32 = 100;

/// The services in the order of their start: what others need comes first.
pub(super) const ORDER: [Service; 6] = [
    Service::Projector,
    Service::ProcessSupervisor,
    Service::ToolRunner,
    Service::AgentRuntime,
    Service::Router,
    Service::Gateway,
];

/// The addresses, folders and keys of the machine.
pub(super) struct Wiring {
    pub(super) nats_url: String,
    /// The users that services are on it.
    pub(super) users: NatsUsers,
    /// The database, in which each service has a role of its own.
    pub(super) database: Database,
    pub(super) simulator_url: Option<String>,
    pub(super) gateway_port: u16,
    /// The folder in which agents' processes start.
    pub(super) work_dir: PathBuf,
    /// The folder of agents' own files.
    pub(super) workspaces: PathBuf,
    /// The key that seals agents' secrets.
    pub(super) secret_key: String,
    /// The key that protects the data keys of users.
    pub(super) master_key: String,
    /// The key with which the gateway signs.
    pub(super) signing_key: String,
    /// The administrator's key: its holder may do everything at the gateway.
    pub(super) admin_key: Secret,
}

/// The environment of a service: what suits development, over it what our own environment says, over that what holds
/// this machine together.
pub(super) fn for_service(
    service: Service,
    wiring: &Wiring,
    model: &Model,
    environment: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let set = |name: &str, value: String| (name.to_owned(), value);
    let mut settings = match service {
        Service::AgentRuntime => {
            let mut settings = model.settings(wiring.simulator_url.as_deref());
            settings.push(set("KAIRO_AGENT_RUNTIME__SECRET_KEY", wiring.secret_key.clone()));
            settings
        }
        Service::ProcessSupervisor => vec![
            set("KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs(environment, |path| path.is_file())),
            set("KAIRO_PROCESS_SUPERVISOR__WORK_DIR", wiring.work_dir.display().to_string()),
        ],
        Service::ToolRunner => vec![set("KAIRO_TOOL_RUNNER__WORKSPACE__ROOT", wiring.workspaces.display().to_string())],
        // Forks ask the same models.
        Service::Gateway => {
            [search_engine_settings(environment), model.settings(wiring.simulator_url.as_deref())].concat()
        }
        Service::Projector => search_engine_settings(environment),
        _ => Vec::new(),
    };
    settings.push(set("KAIRO_BUS__BEAT_MS", BEAT_MS.to_string()));
    settings.push(set("KAIRO_PRIVACY__MASTER_KEY", wiring.master_key.clone()));
    settings.extend(nats_settings(service.identity(), wiring, environment));
    settings.extend(wiring.database.settings(service));
    if service == Service::Gateway {
        if !environment.contains_key(FORK_MODELS) {
            settings.push(set(FORK_MODELS, "true".to_owned()));
        }
        settings.push(set(SIGNING_KEY, wiring.signing_key.clone()));
        settings.push(set(ADMIN_KEY, wiring.admin_key.expose().to_owned()));
        settings.push(set("KAIRO_GATEWAY__LISTEN", format!("127.0.0.1:{}", wiring.gateway_port)));
    }
    settings
}

/// The environment of `kairo provision`.
pub(super) fn for_provisioner(wiring: &Wiring, environment: &BTreeMap<String, String>) -> Vec<(String, String)> {
    nats_settings(Some(NatsIdentity::Provision), wiring, environment)
}

/// Returns our own environment, overridden with the address of NATS and the identity there.
fn nats_settings(
    identity: Option<NatsIdentity>,
    wiring: &Wiring,
    environment: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut settings = vec![set("KAIRO_NATS__PARTITIONS", &PARTITIONS.to_string())];
    settings.extend(service_variables(environment));
    settings.push(set("KAIRO_NATS__URL", &wiring.nats_url));
    // This server knows no tokens, and is on this machine.
    settings.extend(["TOKEN", "NKEY", "TLS_CA"].map(|name| set(&format!("KAIRO_NATS__{name}"), "")));
    settings.extend(identity.into_iter().flat_map(|identity| wiring.users.settings(identity)));
    settings
}

/// A search engine under the names that it has itself, where there is one.
fn search_engine_settings(environment: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let names = [("KAIRO_SEARCH__MEILI_URL", "MEILI_URL"), ("KAIRO_SEARCH__MEILI_KEY", "MEILI_MASTER_KEY")];
    let set = |(name, own): (&str, &str)| Some((name.to_owned(), environment.get(own)?.clone()));
    names.into_iter().filter_map(set).collect()
}

/// The simulator's own settings are not of the services' kind.
pub(super) fn configure_simulator(settings: &mut ServiceSettings, port: u16, environment: &BTreeMap<String, String>) {
    settings.arg("--listen").arg(format!("127.0.0.1:{port}"));
    if let Some(scenario) = environment.get("KAIRO_SIM_SCENARIO") {
        settings.env("KAIRO_SIM_SCENARIO", scenario);
    }
}

/// The variables that configure services: see [`kairo_core::config`].
fn service_variables(environment: &BTreeMap<String, String>) -> impl Iterator<Item = (String, String)> {
    let configures = |name: &str| name == "KAIRO_CONFIG" || (name.starts_with("KAIRO_") && name.contains("__"));
    environment.iter().filter(move |(name, _)| configures(name)).map(|(name, value)| (name.clone(), value.clone()))
}

/// The allow-list as JSON: names, and where they are on the `PATH`.
fn programs(environment: &BTreeMap<String, String>, is_program: impl Fn(&Path) -> bool) -> String {
    let path = environment.get("PATH").map_or("/usr/bin:/bin", String::as_str);
    let find = |name: &str| -> Option<PathBuf> {
        let dirs = path.split(':').map(Path::new).filter(|dir| dir.is_absolute());
        dirs.map(|dir| dir.join(name)).find(|program| is_program(program))
    };
    let free = PROGRAMS.into_iter().filter_map(|name| Some((name, json!(find(name)?))));
    let asking = PROGRAMS_WITH_CONSENT.into_iter();
    let asking = asking.filter_map(|name| Some((name, json!({ "path": find(name)?, "consent": true }))));
    let countdown = find("sh").map(|shell| ("countdown", json!({ "path": shell, "args": ["-c", COUNTDOWN] })));
    json!(free.chain(asking).chain(countdown).collect::<BTreeMap<_, _>>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wiring() -> Wiring {
        Wiring {
            nats_url: "nats://127.0.0.1:1".into(),
            users: NatsUsers::in_dir(tempfile::tempdir().unwrap().path()).unwrap(),
            database: Database::new(2, "kairo", "superuser", &passwords()),
            simulator_url: Some("http://127.0.0.1:3".into()),
            gateway_port: 4,
            work_dir: "/data/processes".into(),
            workspaces: "/data/workspaces".into(),
            secret_key: "07".repeat(32),
            master_key: "08".repeat(32),
            signing_key: "09".repeat(32),
            admin_key: Secret::new("0a".repeat(32)),
        }
    }

    fn passwords() -> BTreeMap<Service, String> {
        ORDER.into_iter().map(|service| (service, format!("of-{}", service.binary()))).collect()
    }

    fn settings(service: Service, environment: &[(&str, &str)]) -> BTreeMap<String, String> {
        let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        // Collected in order, so that a later value takes the place of an earlier one, as it does in a process.
        for_service(service, &wiring(), &Model::Simulator, &environment).into_iter().collect()
    }

    #[test]
    fn our_environment_overrides_what_suits_development_but_not_the_wiring() {
        let given = [
            ("KAIRO_MODELS__HEAVY__MODEL", "mine"),
            ("KAIRO_NATS__URL", "nats://elsewhere"),
            ("KAIRO_NATS__TOKEN", "of-elsewhere"),
            ("KAIRO_URL", "http://elsewhere"),
            ("HOME", "/root"),
        ];
        let settings = settings(Service::AgentRuntime, &given);
        assert_eq!(settings["KAIRO_MODELS__HEAVY__MODEL"], "mine");
        assert_eq!(settings["KAIRO_MODELS__HEAVY__BASE_URL"], "http://127.0.0.1:3/v1");
        assert_eq!(settings["KAIRO_NATS__URL"], "nats://127.0.0.1:1");
        assert_eq!(settings["KAIRO_NATS__USER"], "agent-runtime");
        assert!(settings["KAIRO_NATS__PASSWORD"].starts_with("file:") && settings["KAIRO_NATS__TOKEN"].is_empty());
        assert!(!settings.contains_key("KAIRO_URL") && !settings.contains_key("HOME"));
    }

    #[test]
    fn a_password_of_postgres_goes_only_to_the_service_whose_it_is() {
        for service in ORDER {
            let told = settings(service, &[]);
            for (of, password) in passwords() {
                let has_role = matches!(of, Service::Projector | Service::ToolRunner | Service::Gateway);
                let has_it = told.values().any(|value| value.contains(&format!("{password}@")));
                assert_eq!(has_it, of == service && has_role, "{service:?} has that of {of:?}");
            }
            assert!(!told.values().any(|value| value.contains("superuser")), "{service:?}");
        }
    }

    #[test]
    fn only_installed_programs_are_allowed_and_only_from_absolute_folders() {
        let environment = BTreeMap::from([("PATH".to_owned(), ".:/a:/b".to_owned())]);
        let installed = ["./date", "/b/echo", "/a/cat", "/b/cat"].map(PathBuf::from);
        let programs = programs(&environment, |path| installed.iter().any(|program| program == path));
        assert_eq!(programs, r#"{"cat":{"consent":true,"path":"/a/cat"},"echo":"/b/echo"}"#);
    }

    #[test]
    fn nothing_runs_unasked_that_does_what_an_agent_says_or_shows_what_it_wants() {
        let environment = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]);
        let programs: serde_json::Value = serde_json::from_str(&programs(&environment, |_| true)).unwrap();
        let free = |program: &serde_json::Value| program.get("consent") != Some(&json!(true));
        let unasked: Vec<&str> =
            programs.as_object().unwrap().iter().filter(|(_, it)| free(it)).map(|(name, _)| name.as_str()).collect();
        assert_eq!(unasked, ["countdown", "echo", "sleep"]);
        assert_eq!(programs["countdown"]["args"][0], "-c", "an agent's arguments come behind the script");
        assert_eq!(programs["python3"], json!({ "path": "/bin/python3", "consent": true }));
    }
}
