//! The users of a nats-server: one for each identity, with what it may do.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use kairo_events::{
    ids::Name,
    permissions::{self, NatsIdentity},
};

use crate::{cluster::load_or_create_secret, error::LocalError};

/// Passwords, each in a file of its own that only its owner can read, and public nkeys beside them.
#[derive(Clone)]
pub struct NatsUsers {
    dir: PathBuf,
    passwords: BTreeMap<NatsIdentity, String>,
    nkeys: Vec<(NatsIdentity, String)>,
    /// Tool workers by their names, and their passwords.
    workers: BTreeMap<Name, String>,
}

/// A server's URL, with the user and password to log in.
#[derive(Clone)]
pub struct Login {
    pub url: String,
    pub user: String,
    pub password: String,
    /// The authority that vouches for servers that encrypt.
    pub tls_ca: Option<PathBuf>,
}

impl fmt::Debug for Login {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("url", &self.url).field("user", &self.user).finish_non_exhaustive()
    }
}

impl NatsUsers {
    /// Those of this folder; passwords that are missing are made.
    pub fn in_dir(dir: impl Into<PathBuf>) -> Result<Self, LocalError> {
        let dir = dir.into();
        fs::create_dir_all(&dir).map_err(LocalError::io("cannot create", &dir))?;
        let mut users = Self { dir, passwords: BTreeMap::new(), nkeys: Vec::new(), workers: BTreeMap::new() };
        for identity in NatsIdentity::ALL {
            users.passwords.insert(identity, load_or_create_secret(&users.password_file(identity))?);
        }
        Ok(users)
    }

    /// Returns the file with the password of an identity; the file has the identity's name.
    pub fn password_file(&self, identity: NatsIdentity) -> PathBuf {
        self.dir.join(identity.name())
    }

    /// The password of an identity: not to be shown.
    pub fn password(&self, identity: NatsIdentity) -> &str {
        self.passwords.get(&identity).map_or("", String::as_str)
    }

    /// Lets whoever has the seed of this public nkey be that identity, too.
    pub fn allow_nkey(&mut self, identity: NatsIdentity, nkey: impl Into<String>) {
        self.nkeys.push((identity, nkey.into()));
    }

    /// Lets the user with the password of that identity in no more; its nkeys stay.
    pub fn revoke_password(&mut self, identity: NatsIdentity) {
        self.passwords.remove(&identity);
    }

    /// Lets the tool worker of this name in; its user's name is `worker-` and that.
    pub fn add_worker(&mut self, worker: &Name) -> Result<(), LocalError> {
        let password = load_or_create_secret(&self.dir.join(worker_user(worker)))?;
        self.workers.insert(worker.clone(), password);
        Ok(())
    }

    /// The user and the password of a tool worker that was let in: not to be shown.
    pub fn worker_login(&self, worker: &Name) -> Option<(String, &str)> {
        self.workers.get(worker).map(|password| (worker_user(worker), password.as_str()))
    }

    /// The users of the tool workers that were let in, and the files with their passwords.
    pub fn worker_logins(&self) -> impl Iterator<Item = (String, PathBuf)> {
        self.workers.keys().map(worker_user).map(|user| {
            let file = absolute(&self.dir.join(&user));
            (user, file)
        })
    }

    /// Returns the users as the server's configuration lists them.
    pub(crate) fn authorization(&self) -> String {
        let passwords = self.passwords.iter().map(|(identity, password)| {
            let user = identity.name();
            let variable = identity.permissions_variable();
            (*identity, format!("{{ user: \"{user}\", password: \"{password}\", permissions: ${variable} }}"))
        });
        let nkeys =
            self.nkeys.iter().map(|(identity, nkey)| (*identity, permissions::render_nkey_user(nkey, *identity)));
        let workers = self.workers.iter().map(|(worker, password)| {
            let user = worker_user(worker);
            let permissions = permissions::render_worker(worker);
            format!("{{ user: \"{user}\", password: \"{password}\", permissions: {permissions} }}")
        });
        permissions::render_all() + &permissions::render_accounts(passwords.chain(nkeys), workers)
    }

    /// Returns the settings that tell a service its identity; the password stays in its file.
    pub fn settings(&self, identity: NatsIdentity) -> [(String, String); 2] {
        let file = absolute(&self.password_file(identity));
        [
            ("KAIRO_NATS__USER".to_owned(), identity.name().to_owned()),
            ("KAIRO_NATS__PASSWORD".to_owned(), format!("file:{}", file.display())),
        ]
    }
}

impl fmt::Debug for NatsUsers {
    /// Without the passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("dir", &self.dir).field("nkeys", &self.nkeys).finish_non_exhaustive()
    }
}

fn worker_user(worker: &Name) -> String {
    format!("worker-{worker}")
}

/// Services may start in another folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn passwords_are_made_once_and_for_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let one = NatsUsers::in_dir(dir.path()).unwrap();
        let again = NatsUsers::in_dir(dir.path()).unwrap();
        for identity in NatsIdentity::ALL {
            let password = one.password(identity);
            assert!(password.len() >= 32 && password == again.password(identity));
            let mode = fs::metadata(one.password_file(identity)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            assert!(!format!("{one:?} {:?}", one.settings(identity)).contains(password));
        }
    }
}
