//! Tests of the errors for a bad configuration.

use super::*;

fn resolve_variables<T>(environment: &[(&str, &str)]) -> Result<T, ConfigError>
where
    T: Serialize + DeserializeOwned + Default + Validate,
{
    let no_file = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
    resolve(None, &owned(environment).collect(), &no_file, Timestamp::UNIX_EPOCH).map(|loaded| loaded.config)
}

#[test]
fn unknown_keys_and_sections_are_refused_wherever_they_are() {
    let toml = "
        loose = 1
        [buss]
        url = 'x'
        [bus]
        ack_wait = 5
        [tool_runner.limits]
        memory_bytes = 1
        wait_s = 1
        depth = 1
    ";
    let variables = [("KAIRO_BUS__ACK", "5"), ("KAIRO_NOWHERE__X", "5"), ("KAIRO_BUS____X", "5")];
    assert_lines(
        resolve_with(toml, &variables),
        &[
            "kairo.toml: buss is not a known section; remove it, or use one of: agent_runtime, ",
            "kairo.toml: loose is not a known section",
            "KAIRO_BUS____X: bus..x is not a key: a part of it is empty",
            "KAIRO_NOWHERE__X: nowhere is not a known section",
            "KAIRO_BUS__ACK: bus.ack is not a known key; remove it, or use one of: \
             ack_wait_ms, name, password, url",
            "kairo.toml: bus.ack_wait is not a known key",
            "kairo.toml: tool_runner.limits.depth is not a known key; remove it, or use one of: \
             memory_bytes, wait_s",
        ],
    );
}

#[test]
fn every_mistake_of_every_kind_is_named_at_once() {
    let toml = "
        [bus]
        url = 5
        ack_wait_ms = 7
        nmae = 'x'
        [tool_runner]
        enabled = 'yes'
        [[tool_runner.mcp]]
        name = 'time'
        transport = 'stdio'
    ";
    let variables = [("KAIRO_TOOL_RUNNER__SHARE", "half"), ("KAIRO_BUS__PASSWORD", "env:UNSET")];
    let mut lines = lines(resolve_with(toml, &variables));
    lines.sort();
    let expected = [
        "KAIRO_BUS__PASSWORD: bus.password refers to UNSET, which is not set",
        "KAIRO_TOOL_RUNNER__SHARE: tool_runner.share expected f64, found string",
        "kairo.toml: bus.ack_wait_ms is 7, expected 100 to 600000 milliseconds",
        "kairo.toml: bus.nmae is not a known key",
        "kairo.toml: bus.url expected a string, found integer",
        "kairo.toml: tool_runner.enabled expected a boolean, found string",
        "kairo.toml: tool_runner.mcp.0 missing field `command`",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\nis not\n{expected}");
        assert!(line.contains("; "), "no advice in {line}");
    }
}

#[test]
fn a_variable_that_hides_a_mistake_in_the_file_leaves_it_hidden() {
    let toml = "[bus]\nack_wait_ms = 'soon'";
    let good = [("KAIRO_BUS__ACK_WAIT_MS", "500")];
    assert_eq!(resolve_with(toml, &good).unwrap().bus.ack_wait_ms, 500);
    let bad = [("KAIRO_BUS__ACK_WAIT_MS", "later")];
    assert_lines(
        resolve_with(toml, &bad),
        &[
            "KAIRO_BUS__ACK_WAIT_MS: bus.ack_wait_ms expected u64, found string",
            "kairo.toml: bus.ack_wait_ms expected u64, found string",
        ],
    );
}

#[test]
fn unknown_keys_are_found_also_where_the_type_denies_them() {
    #[derive(Debug, Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Strict {
        bus: Inner,
    }
    #[derive(Debug, Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Inner {
        url: String,
    }
    impl Validate for Strict {
        fn mistakes(&self) -> Vec<Mistake> {
            Vec::new()
        }
    }
    let variables = [("KAIRO_BUS__URI", "x"), ("KAIRO_BUS__URN", "x")];
    let error = resolve_variables::<Strict>(&variables).unwrap_err();
    assert_eq!(
        error.to_string(),
        "KAIRO_BUS__URI: bus.uri is not a known key; remove it, or use one of: url\n\
         KAIRO_BUS__URN: bus.urn is not a known key; remove it, or use one of: url"
    );
}

#[test]
fn sections_may_be_flattened_from_a_shared_struct() {
    #[derive(Debug, Default, Serialize, Deserialize)]
    struct Service {
        #[serde(flatten)]
        shared: Config,
    }
    impl Validate for Service {
        fn mistakes(&self) -> Vec<Mistake> {
            self.shared.mistakes()
        }
    }
    let variables = [
        ("KAIRO_BUS__ACK_WAIT_MS", "soon"),
        ("KAIRO_BUS__NAME", "5"),
        ("KAIRO_TOOL_RUNNER__SHARE", "half"),
        ("KAIRO_BUS__ULR", "x"),
    ];
    let error = resolve_variables::<Service>(&variables).unwrap_err();
    let mut keys: Vec<&str> = error.mistakes().iter().map(|m| m.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["bus.ack_wait_ms", "bus.ulr", "tool_runner.share"]);
}

#[test]
fn no_mistake_quotes_what_may_be_a_secret() {
    let toml = "
        [bus]
        passwrod = 'hunter2'
        ack_wait_ms = 'hunter2, expected hunter2'
        password = ['hunter2']
        [tool_runner]
        mcp = [{ name = 'x', transport = 'http', url = 5, token = 'hunter2' }]
        limits = 'hunter2'
        [tool_runner.keys]
        search = 5
    ";
    let variables =
        [("KAIRO_TOOL_RUNNER__ENABLED", "hunter2"), ("KAIRO_TOOL_RUNNER__HOSTS", r#"{"token": "hunter2"}"#)];
    let broken = "[bus]\npassword = 'hunter2";
    for lines in [lines(resolve_with(toml, &variables)), lines(resolve_with(broken, &[]))] {
        assert!(!lines.join("\n").contains("hunter2"), "{lines:#?}");
    }
    assert_lines(resolve_with(broken, &[]), &["kairo.toml: line 2 is not TOML: "]);
}

#[test]
fn mistakes_of_the_command_line_and_of_the_environment_come_together() {
    let args = ["--config=/nowhere/kairo.toml", "--verbose=hunter2", "hunter2", "--config"];
    let variables = [("KAIRO_BUS__ACK_WAIT_MS", "5")];
    assert_lines(
        load(args.map(str::to_owned), owned(&variables)).map(|loaded| loaded.config),
        &[
            "command line: the option --verbose is unknown; use --config FILE",
            "command line: an argument is unknown; use --config FILE",
            "command line: --config is not followed by a file name; use --config FILE",
            "KAIRO_BUS__ACK_WAIT_MS: bus.ack_wait_ms is 5, expected 100 to 600000 milliseconds",
        ],
    );
    let args = ["--config=/nowhere/kairo.toml"].map(str::to_owned);
    assert_lines(
        load(args, Vec::new()).map(|loaded| loaded.config),
        &["/nowhere/kairo.toml: the file cannot be read: "],
    );
}
