//! The tool workers of the configuration: nats-server lets each in as a user of its own.

use std::{path::PathBuf, process::Command};

use kairo_core::ids::Name;
use kairo_local::{NatsUsers, Service, StackOptions};
use serde_json::Value;

use super::progress::say;
use crate::Error;

/// The place of the list of tool workers in the configuration of tool-runner.
const WORKERS: &str = "/tool_runner/tools/workers";

/// The users of nats-server in this folder, with one for each tool worker that tool-runner is configured with.
pub(super) fn load_users(folder: PathBuf) -> Result<NatsUsers, Error> {
    let mut users = NatsUsers::in_dir(folder)?;
    for worker in configured_workers()? {
        users.add_worker(&worker)?;
    }
    Ok(users)
}

/// The workers as tool-runner reads them, from whichever source. None where its configuration has mistakes: it names them
/// when it starts.
fn configured_workers() -> Result<Vec<Name>, Error> {
    let folder = StackOptions::bin_dir_of_this_build();
    let folder = folder.map_err(Error::file("find", "the folder of this program"))?;
    let program = folder.join(Service::ToolRunner.binary());
    let shown = Command::new(&program).arg("--print-config").output().map_err(Error::file("run", &program))?;
    let config = serde_json::from_slice(&shown.stdout).unwrap_or(Value::Null);
    Ok(names(&config))
}

fn names(config: &Value) -> Vec<Name> {
    let workers = config.pointer(WORKERS).and_then(Value::as_array).into_iter().flatten();
    workers.filter_map(|worker| Name::parse(worker.get("name")?.as_str()?).ok()).collect()
}

/// Tells how the workers log in. Their passwords stay in files that only their owner can read.
pub(super) fn print_logins(users: &NatsUsers, nats_url: &str) {
    for (user, file) in users.worker_logins() {
        say(format!("worker   NATS_URL={nats_url} NATS_USER={user} NATS_PASSWORD=\"$(cat {})\"", file.display()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn workers_are_those_that_are_listed_and_have_names() {
        let config = json!({ "tool_runner": { "tools": { "workers": [
            { "name": "billing", "prefix": "b" }, { "name": "Not A Name" }, { "prefix": "x" }, { "name": "shipping" },
        ] } } });
        let listed: Vec<String> = names(&config).iter().map(Name::to_string).collect();
        assert_eq!(listed, ["billing", "shipping"]);
        assert!(names(&Value::Null).is_empty());
    }
}
