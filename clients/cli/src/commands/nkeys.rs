//! `kairo nkeys`

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use kairo_core::permissions::{NatsIdentity, render_accounts, render_all, render_nkey_user};
use nkeys::{KeyPair, KeyPairType};
use serde_json::json;

use crate::{Error, terminal};

const EXAMPLES: &str = "\
Example:
  kairo nkeys /etc/kairo/nkeys

Makes FOLDER/<name>.seed for each service, `provision` and `outside`, which only its owner may read, and
FOLDER/nats-users.conf with the public keys, and what each may do. A service shows that it has its seed, which never
leaves it: nats-server knows nothing worth stealing. FOLDER/nats-nkeys.env has the public keys as variables, for the
component nkeys on Kubernetes.

  1. In nats.conf, in place of nats-permissions.conf and accounts { … }:  include \"nats-users.conf\"
  2. Give each service its own seed as nats.nkey, as file:/etc/kairo/nkeys/router.seed, and neither nats.user nor
     nats.password.

Seeds that are there stay, and what each may do is that of this version: run it again before services of another one
start. To replace a seed, remove its file and run it again; docs/operating.md says how without an outage.";

/// The file of users that nats-server includes.
const USERS: &str = "nats-users.conf";
/// The file of variables that the component for Kubernetes takes.
const VARIABLES: &str = "nats-nkeys.env";
const HEAD: &str = "\
# The accounts of nats-server with their users by nkeys, and what each may do: made by `kairo nkeys`, not to be edited. Include it in
# place of nats-permissions.conf and the accounts.

";

/// Make an nkey for everybody who logs in to nats-server, and the list of users with them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NkeysArgs {
    /// Folder of the seeds and of the list of users
    folder: PathBuf,
}

pub(super) fn run(arguments: &NkeysArgs, json: bool) -> Result<ExitCode, Error> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
    let mut keys = Vec::new();
    for identity in NatsIdentity::ALL {
        keys.push((identity, load_or_create_key(&folder.join(format!("{}.seed", identity.name())))?));
    }
    let users = folder.join(USERS);
    let listed = keys.iter().map(|(identity, key)| (*identity, render_nkey_user(key, *identity)));
    let text = format!("{HEAD}{}\n{}", render_all(), render_accounts(listed, []));
    fs::write(&users, text).map_err(Error::file("write", &users))?;
    let variables = folder.join(VARIABLES);
    let public: String =
        keys.iter().map(|(identity, key)| format!("NATS_NKEY_{}={key}\n", identity.variable_name())).collect();
    fs::write(&variables, public).map_err(Error::file("write", &variables))?;
    if json {
        let keys: serde_json::Map<_, _> =
            keys.into_iter().map(|(identity, key)| (identity.name().to_owned(), key.into())).collect();
        terminal::json(&json!({ "users": users, "variables": variables, "public_keys": keys }))?;
    } else {
        for (identity, key) in keys {
            terminal::line(format!("{key} {}", identity.name()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The public key of the seed in this file, which is made if there is none.
fn load_or_create_key(path: &Path) -> Result<String, Error> {
    let seed = match fs::read_to_string(path) {
        Ok(seed) => seed,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let seed =
                KeyPair::new_user().seed().map_err(|error| Error::Advice(format!("no key can be made: {error}")))?;
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            // Without an end of line, which would be taken for a part of it in a Secret of Kubernetes.
            made.and_then(|mut made| made.write_all(seed.as_bytes())).map_err(Error::file("write", path))?;
            seed
        }
        Err(error) => return Err(Error::file("read", path)(error)),
    };
    // What is there is not quoted: it may be another secret.
    let pair = KeyPair::from_seed(seed.trim()).ok().filter(|pair| pair.key_pair_type() == KeyPairType::User);
    let pair = pair.ok_or_else(|| Error::Usage(format!("{}: expected the seed of a user's nkey", path.display())))?;
    Ok(pair.public_key())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_seed_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("router.seed");
        let public = load_or_create_key(&path).unwrap();
        assert!(public.starts_with('U') && load_or_create_key(&path).unwrap() == public);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for other in ["hunter2".to_owned(), KeyPair::new_account().seed().unwrap()] {
            fs::write(&path, &other).unwrap();
            let error = load_or_create_key(&path).unwrap_err();
            assert!(matches!(&error, Error::Usage(told) if !told.contains(&other)), "{error}");
        }
    }
}
