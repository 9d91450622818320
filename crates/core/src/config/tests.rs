use std::io;

use serde::Deserialize;

use super::*;

mod lenient;
mod mistakes;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Config {
    bus: Bus,
    tool_runner: ToolRunner,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Bus {
    url: String,
    ack_wait_ms: u64,
    name: Option<String>,
    password: Secret,
}

impl Default for Bus {
    fn default() -> Self {
        Self {
            url: "nats://127.0.0.1:4222".to_owned(),
            ack_wait_ms: 30_000,
            name: None,
            password: Secret::public_default("default"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct ToolRunner {
    enabled: bool,
    share: f64,
    hosts: Vec<String>,
    limits: Option<Limits>,
    mcp: Vec<Mcp>,
    keys: BTreeMap<String, Secret>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Limits {
    memory_bytes: u64,
    wait_s: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Mcp {
    name: String,
    #[serde(flatten)]
    transport: Transport,
    #[serde(default)]
    token: Option<Secret>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "lowercase")]
enum Transport {
    Stdio { command: String },
    Http { url: String },
}

impl Validate for Config {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let ack_wait = self.bus.ack_wait_ms;
        check(&mut mistakes, "bus.ack_wait_ms", ack_wait, 100..=600_000, "milliseconds");
        mistakes
    }
}

fn resolve_with(toml: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let file = ConfigFile { name: "kairo.toml".to_owned(), text: toml.to_owned() };
    let read_file = |path: &str| match path {
        "/run/secrets/nats" => Ok("from a file\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    resolve(Some(&file), &owned(environment).collect(), &read_file, Timestamp::UNIX_EPOCH).map(|loaded| loaded.config)
}

fn owned(environment: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
}

fn lines(result: Result<Config, ConfigError>) -> Vec<String> {
    let error = result.expect_err("mistakes were expected").to_string();
    error.lines().map(str::to_owned).collect()
}

fn assert_lines(result: Result<Config, ConfigError>, expected: &[&str]) {
    let lines = lines(result);
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\nis not\n{expected}");
    }
}

#[test]
fn nothing_given_is_the_default() {
    assert_eq!(resolve_with("", &[]).unwrap().bus.ack_wait_ms, 30_000);
    assert_eq!(resolve_with("", &[]).unwrap().bus.password.expose(), "default");
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let toml = "[bus]\nack_wait_ms = 1000\nname = 'file'";
    let config = resolve_with(toml, &[("KAIRO_BUS__NAME", "variable")]).unwrap();
    let expected = Bus {
        ack_wait_ms: 1000,
        name: Some("variable".to_owned()),
        password: Secret::new("default".to_owned()),
        ..Bus::default()
    };
    assert_eq!(config.bus, expected);
}

#[test]
fn a_variable_is_read_as_its_field_needs_it() {
    let config = resolve_with(
        "",
        &[
            ("KAIRO_BUS__NAME", "12345"),
            ("kairo_bus__ack_wait_ms", "5000"),
            ("KAIRO_TOOL_RUNNER__ENABLED", "true"),
            ("KAIRO_TOOL_RUNNER__SHARE", "1"),
            ("KAIRO_TOOL_RUNNER__HOSTS", "a.example, b.example"),
            ("KAIRO_TOOL_RUNNER__LIMITS__MEMORY_BYTES", "1024"),
            ("KAIRO_TOOL_RUNNER__LIMITS__WAIT_S", "3"),
            ("KAIRO_TOOL_RUNNER__MCP", r#"[{"name": "time", "transport": "stdio", "command": "mcp-time"}]"#),
        ],
    )
    .unwrap();
    assert_eq!(config.bus.name.as_deref(), Some("12345"));
    assert_eq!(config.bus.ack_wait_ms, 5000);
    let expected = ToolRunner {
        enabled: true,
        share: 1.0,
        hosts: vec!["a.example".to_owned(), "b.example".to_owned()],
        limits: Some(Limits { memory_bytes: 1024, wait_s: 3 }),
        mcp: vec![Mcp {
            name: "time".to_owned(),
            transport: Transport::Stdio { command: "mcp-time".to_owned() },
            token: None,
        }],
        keys: BTreeMap::new(),
    };
    assert_eq!(config.tool_runner, expected);
}

#[test]
fn lists_of_strings_need_no_second_item() {
    for (text, expected) in [("a", vec!["a"]), ("5", vec!["5"]), (r#"["a,b"]"#, vec!["a,b"])] {
        let config = resolve_with("", &[("KAIRO_TOOL_RUNNER__HOSTS", text)]).unwrap();
        assert_eq!(config.tool_runner.hosts, expected);
    }
}

#[test]
fn lists_of_tables_come_from_a_file() {
    let toml = "
        [[tool_runner.mcp]]
        name = 'time'
        transport = 'stdio'
        command = 'mcp-time'
        [[tool_runner.mcp]]
        name = 'search'
        transport = 'http'
        url = 'http://127.0.0.1:1'
        token = 'env:SEARCH_TOKEN'
    ";
    let config = resolve_with(toml, &[("SEARCH_TOKEN", "hush")]).unwrap();
    let [_, search] = config.tool_runner.mcp.as_slice() else {
        panic!("two servers were given");
    };
    let token = search.token.as_ref().map(Secret::expose);
    assert_eq!(token, Some("hush"));
}

#[test]
fn other_services_sections_and_other_variables_are_passed_over() {
    let toml = "[gateway]\nlisten = 1\n[projector.batch]\nrows = 'x'";
    let others = [
        ("KAIRO_GATEWAY__LISTEN", "x"),
        ("KAIRO_MODEL_URL", "http://x"),
        ("KAIRO_CONFIG", "x"),
        ("PATH", "x"),
        ("KAIRO_BUS__ACK_WAIT_MS", ""),
    ];
    assert!(resolve_with(toml, &others).is_ok());
}

#[test]
fn secrets_are_read_from_where_they_are_said_to_be() {
    for (given, expected) in [
        ("plain", "plain"),
        ("12345", "12345"),
        ("env:NATS_PASSWORD", "from the environment"),
        ("file:/run/secrets/nats", "from a file"),
    ] {
        let variables = [("KAIRO_BUS__PASSWORD", given), ("NATS_PASSWORD", "from the environment")];
        let config = resolve_with("", &variables).unwrap();
        assert_eq!(config.bus.password.expose(), expected);
    }
    let toml = "[tool_runner.keys]\nsearch = 'env:SEARCH'\nplain = 'x'";
    let keys = resolve_with(toml, &[("SEARCH", "hush")]).unwrap().tool_runner.keys;
    assert_eq!(keys["search"].expose(), "hush");
    assert_lines(
        resolve_with("[bus]\npassword = 'file:/nowhere'", &[]),
        &["kairo.toml: bus.password refers to /nowhere, unreadable: "],
    );
    let name = resolve_with("[bus]\nname = 'env:HOME'", &[("HOME", "/root")]).unwrap().bus.name;
    assert_eq!(name.as_deref(), Some("env:HOME"), "only secrets are references");
}

#[test]
fn load_reads_the_file_it_is_pointed_to() {
    let path = std::env::temp_dir().join(format!("kairo-config-{}.toml", uuid::Uuid::new_v4()));
    std::fs::write(&path, "[bus]\nack_wait_ms = 1234").unwrap();
    let name = path.to_str().unwrap().to_owned();
    let by_variable = vec![("KAIRO_CONFIG".to_owned(), name.clone())];
    let nowhere = vec![("KAIRO_CONFIG".to_owned(), "/nowhere".to_owned())];
    for (args, environment) in [
        (vec!["--config".to_owned(), name.clone()], nowhere),
        (vec![format!("--config={name}")], Vec::new()),
        (Vec::new(), by_variable),
    ] {
        let config: Config = load(args, environment).unwrap().config;
        assert_eq!(config.bus.ack_wait_ms, 1234);
    }
    std::fs::remove_file(path).unwrap();
}
