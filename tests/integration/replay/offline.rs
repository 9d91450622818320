//! Files of a log are looked into without a network.

use std::path::Path;

use kairo_local::StackOptions;
use tokio::process::Command;

use super::AGENT;

/// Each command says the same where there is no network, not even loopback.
pub async fn no_network_is_needed(file: &Path) {
    let (log, beside) = (file.to_str().unwrap(), |name: &str| file.with_file_name(name).to_str().unwrap().to_owned());
    let (incident, report, prompt) = (beside("offline.kairo"), beside("offline.json"), beside("offline.md"));
    std::fs::write(&prompt, "You answer in rhymes.").unwrap();
    let commands: [&[&str]; 8] = [
        &["incident", "export", "--agent", AGENT, "--file", log, "--output", &incident],
        &["replay", log, "--prompt", &prompt, "--report", &report],
        &["replay", &incident, "--json"],
        &["state", AGENT, "--file", &incident, "--first", "size(in_flight) > 0"],
        &["whatif", &incident, "--drop", "99999"],
        &["diff", &report, &report],
        &["incident", "run", &incident],
        &["incident", "test", &incident, "--prompt", &prompt],
    ];
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    for arguments in commands {
        let online = Command::new(&program).args(arguments).output().await.unwrap();
        let mut offline = Command::new("unshare");
        let offline =
            offline.args(["--map-root-user", "--net", "--"]).arg(&program).args(arguments).output().await.unwrap();
        assert_eq!(offline, online, "{arguments:?}");
        assert!(online.status.code().is_some_and(|code| code != 69), "{arguments:?}: {online:?}");
    }
    // It is a place without a network: what takes the gateway says so.
    let mut ask = Command::new("unshare");
    let ask = ask.args(["--map-root-user", "--net", "--"]).arg(&program).args(["incident", "export", "--agent", AGENT]);
    let ask = ask.args(["--url", "http://127.0.0.1:7420", "--output", &incident]).output().await.unwrap();
    assert_eq!(ask.status.code(), Some(69), "{ask:?}");
}
