//! Tests of an older build that reads a newer configuration.

use super::*;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Strict {
    config: Reading,
    bus: StrictBus,
    servers: Vec<Server>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Reading {
    lenient_until: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StrictBus {
    ack_wait_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Server {
    name: String,
}

/// As [`Config`], which passes over what it does not know.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Loose {
    config: Reading,
    bus: Bus,
    tool_runner: ToolRunner,
}

impl Validate for Loose {
    fn mistakes(&self) -> Vec<Mistake> {
        Vec::new()
    }
}

impl Validate for Strict {
    fn mistakes(&self) -> Vec<Mistake> {
        let reading = ReadingConfig { lenient_until: self.config.lenient_until.clone() };
        reading.mistakes().into_iter().map(|it| Mistake { key: format!("config.{}", it.key), ..it }).collect()
    }
}

const NEWER: &str = "
    [config]
    lenient_until = 2026-12-31
    [newer]
    x = 1
    [bus]
    ack_wait_ms = 7
    ack_patience_ms = 8
    [[servers]]
    name = 'one'
    colour = 'red'
";

fn read<T>(toml: &str, environment: &[(&str, &str)], now: &str) -> Result<LoadedConfig<T>, ConfigError>
where
    T: Serialize + DeserializeOwned + Default + Validate,
{
    let file = ConfigFile { name: "kairo.toml".to_owned(), text: toml.to_owned() };
    let no_file = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
    resolve(Some(&file), &owned(environment).collect(), &no_file, now.parse().unwrap())
}

#[test]
fn until_its_date_what_a_newer_build_may_know_is_named_and_passed_over() {
    let variables = [("KAIRO_BUS__LATER", "1"), ("KAIRO_CONFIG__LENIENT_UNTIL", "2027-01-01T12:00:00Z")];
    for now in ["2026-12-31T23:59:59Z", "2027-01-01T11:59:59Z"] {
        let LoadedConfig { config, passed_over } = read::<Strict>(NEWER, &variables, now).unwrap();
        assert_eq!(config.bus, StrictBus { ack_wait_ms: 7 });
        assert_eq!(config.servers, [Server { name: "one".to_owned() }], "the rest of a list is kept");
        let mut keys: Vec<&str> = passed_over.iter().map(|unknown| unknown.key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["bus.ack_patience_ms", "bus.later", "newer", "servers.0.colour"]);
    }
    // Also where the type itself does not refuse what it does not know.
    let loose = "config.lenient_until = 2026-12-31\nbus.later = 1\ntool_runner.limits = { memory_bytes = 1, wait_s = 2, x = 3 }";
    let LoadedConfig { config, passed_over } = read::<Loose>(loose, &[], "2026-12-01T00:00:00Z").unwrap();
    assert_eq!(config.tool_runner.limits, Some(Limits { memory_bytes: 1, wait_s: 2 }));
    let keys: Vec<&str> = passed_over.iter().map(|unknown| unknown.key.as_str()).collect();
    assert_eq!(keys, ["bus.later", "tool_runner.limits.x"]);
}

#[test]
fn after_its_date_it_is_refused_by_name() {
    let told = read::<Strict>(NEWER, &[], "2027-01-01T00:00:00Z").unwrap_err().to_string();
    for key in ["newer", "bus.ack_patience_ms", "servers.0.colour"] {
        let line = told.lines().find(|line| line.contains(&format!(" {key} is not a known"))).unwrap_or_default();
        assert!(line.ends_with("(config.lenient_until was over at 2027-01-01T00:00:00Z)"), "{key}: {told}");
    }
}

#[test]
fn nothing_else_is_passed_over_and_a_date_that_is_none_is_refused() {
    let wrong = "[config]\nlenient_until = 2026-12-31\n[bus]\nack_wait_ms = 'soon'";
    let told = read::<Strict>(wrong, &[], "2026-01-01T00:00:00Z").unwrap_err().to_string();
    assert!(told.starts_with("kairo.toml: bus.ack_wait_ms expected u64"), "{told}");
    let told = read::<Strict>("config.lenient_until = 'soon'", &[], "2026-01-01T00:00:00Z").unwrap_err().to_string();
    assert!(told.contains("config.lenient_until expected a date"), "{told}");
}
