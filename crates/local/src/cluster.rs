//! A Postgres database cluster on the disk: made once, or copied from a template.
//!
//! Its folder holds `cluster/` (PGDATA) and `password`, both readable by the server's user alone. A
//! template is such a folder that never ran.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::LocalError;
use crate::lock::DirLock;
use crate::nats::TlsFiles;
use crate::placement::{OPEN, UnixAccount, ephemeral_root, reachable_dir, remove_dir};

/// The superuser of every cluster made here.
pub(crate) const SUPERUSER: &str = "kairo";

/// Settings of a server whose files [`PostgresCluster::encrypt`] wrote.
pub(crate) const ENCRYPTED: [&str; 4] =
    ["ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key", "hba_file=pg_hba_encrypted.conf"];
/// It lets in who brings a password over an encrypted connection.
const HBA: &str = "hostssl all all 127.0.0.1/32 scram-sha-256\n";

/// A cluster that can be started.
#[derive(Clone)]
pub(crate) struct PostgresCluster {
    /// The folder as it was asked for; possibly a link to `real`.
    dir: PathBuf,
    real: PathBuf,
    pub(crate) password: String,
    pub(crate) account: Option<UnixAccount>,
}

impl PostgresCluster {
    /// The cluster in `dir`, made if it is not there. Blocks, for a second or so when it is made.
    pub(crate) fn open_or_create(
        bin_dir: &Path,
        dir: &Path,
        template: Option<&Path>,
        ephemeral: bool,
    ) -> Result<Self, LocalError> {
        let account = UnixAccount::for_server(&data_dir_in(dir))?;
        let open = if ephemeral { ephemeral_root(account) } else { PathBuf::from(OPEN) };
        let real = reachable_dir(dir, account, &open)?;
        let installed = major_version(bin_dir)?;
        if !data_dir_in(&real).exists() {
            match template {
                Some(templates) => {
                    let template = ensure_template(bin_dir, &installed, templates)?;
                    copy(&template, &real)?;
                }
                None => create(bin_dir, &real, account, &[])?,
            }
        }
        let data = data_dir_in(&real);
        let found = read(&data.join("PG_VERSION"))?;
        if found != installed {
            return Err(LocalError::PostgresVersion { path: data, found, installed });
        }
        Ok(Self { password: read(&password_file_in(&real))?, dir: dir.to_owned(), real, account })
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        data_dir_in(&self.real)
    }

    /// Puts a certificate and its key where the server finds them, and whom it lets in.
    pub(crate) fn encrypt(&self, files: &TlsFiles) -> Result<(), LocalError> {
        for (from, name) in [(&files.certificate, "server.crt"), (&files.key, "server.key")] {
            self.write_server_file(name, &fs::read(from).map_err(LocalError::io("cannot read", from))?)?;
        }
        self.write_server_file("pg_hba_encrypted.conf", HBA.as_bytes())
    }

    /// A file for the server alone.
    fn write_server_file(&self, name: &str, content: &[u8]) -> Result<(), LocalError> {
        let path = self.data_dir().join(name);
        fs::write(&path, content)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)))
            .map_err(LocalError::io("cannot write", &path))?;
        self.account.map_or(Ok(()), |account| account.take_ownership(&path))
    }

    /// Removes it for good.
    pub(crate) fn remove(&self) -> std::io::Result<()> {
        remove_dir(&self.dir)
    }
}

impl fmt::Debug for PostgresCluster {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("dir", &self.dir).field("account", &self.account).finish_non_exhaustive()
    }
}

fn data_dir_in(dir: &Path) -> PathBuf {
    dir.join("cluster")
}

fn password_file_in(dir: &Path) -> PathBuf {
    dir.join("password")
}

fn read(path: &Path) -> Result<String, LocalError> {
    let text = fs::read_to_string(path).map_err(LocalError::io("cannot read", path))?;
    Ok(text.trim().to_owned())
}

/// The template for this version of Postgres, made by whichever of several processes comes first.
fn ensure_template(bin_dir: &Path, version: &str, templates: &Path) -> Result<PathBuf, LocalError> {
    fs::create_dir_all(templates).map_err(LocalError::io("cannot create", templates))?;
    let dir = templates.join(format!("postgres-{version}"));
    let _lock = DirLock::acquire_blocking(&dir.with_added_extension("lock"))?;
    let account = UnixAccount::for_server(&data_dir_in(&dir))?;
    let real = reachable_dir(&dir, account, Path::new(OPEN))?;
    if !data_dir_in(&real).exists() {
        // Small log segments halve what every copy has to write.
        create(bin_dir, &real, account, &["--wal-segsize=1"])?;
    }
    Ok(real)
}

/// Runs initdb into a folder beside the final one: a half-made cluster never has the final name.
fn create(bin_dir: &Path, real: &Path, account: Option<UnixAccount>, options: &[&str]) -> Result<(), LocalError> {
    let partial = real.join("cluster.partial");
    discard(&partial)?;
    fs::create_dir(&partial).map_err(LocalError::io("cannot create", &partial))?;
    let password = password_file_in(real);
    write_secret(&password)?;
    if let Some(account) = account {
        account.take_ownership(&partial)?;
        account.take_ownership(&password)?;
    }
    let mut initdb = command_as_account(account, &bin_dir.join("initdb"));
    initdb
        .arg("--pgdata")
        .arg(&partial)
        .arg("--pwfile")
        .arg(&password)
        .args(["--username", SUPERUSER, "--auth=scram-sha-256"])
        // Text is UTF-8 and its case follows Unicode; messages are English, as we read them.
        .args(["--encoding=UTF8", "--locale=C.UTF-8", "--lc-messages=C"])
        .args(options)
        // initdb wants to be able to return to where it started.
        .current_dir(real);
    run(&mut initdb)?;
    move_into_place(&partial, real)
}

/// Copies a template's cluster and password, keeping their owner.
fn copy(template: &Path, real: &Path) -> Result<(), LocalError> {
    let partial = real.join("cluster.partial");
    discard(&partial)?;
    let pairs = [(password_file_in(template), password_file_in(real)), (data_dir_in(template), partial.clone())];
    for (from, to) in pairs {
        run(Command::new("cp").args(["--archive", "--reflink=auto", "--no-target-directory"]).args([from, to]))?;
    }
    move_into_place(&partial, real)
}

fn move_into_place(partial: &Path, real: &Path) -> Result<(), LocalError> {
    fs::rename(partial, data_dir_in(real)).map_err(LocalError::io("cannot rename", partial))
}

fn discard(partial: &Path) -> Result<(), LocalError> {
    match fs::remove_dir_all(partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LocalError::io("cannot remove", partial)(error))
        }
        _ => Ok(()),
    }
}

/// The password in a file, made if it is not there.
pub(crate) fn load_or_create_secret(path: &Path) -> Result<String, LocalError> {
    if !path.exists() {
        write_secret(path)?;
    }
    read(path)
}

/// A new random password of 122 bits, for its owner's eyes only.
pub(crate) fn write_secret(path: &Path) -> Result<(), LocalError> {
    if path.exists() {
        fs::remove_file(path).map_err(LocalError::io("cannot remove", path))?;
    }
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(uuid::Uuid::new_v4().simple().to_string().as_bytes()))
        .map_err(LocalError::io("cannot write", path))
}

/// "15" of "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)".
fn major_version(bin_dir: &Path) -> Result<String, LocalError> {
    let program = bin_dir.join("postgres");
    if !program.is_file() {
        return Err(LocalError::MissingProgram { program });
    }
    let output = run(Command::new(program).arg("--version"))?;
    Ok(parse_major_version(&String::from_utf8_lossy(&output.stdout)))
}

fn parse_major_version(version: &str) -> String {
    version.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect()
}

fn command_as_account(account: Option<UnixAccount>, program: &Path) -> Command {
    match account {
        Some(account) => {
            let mut command = Command::new("setpriv");
            command.args(account.setpriv_args()).arg("--").arg(program);
            command
        }
        None => Command::new(program),
    }
}

fn run(command: &mut Command) -> Result<Output, LocalError> {
    let program = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .find(|word| !word.as_encoded_bytes().starts_with(b"-") && *word != "setpriv")
        .unwrap_or(OsStr::new("setpriv"))
        .to_string_lossy()
        .into_owned();
    let output = command.output().map_err(|source| LocalError::Spawn { name: program.clone(), source })?;
    match output.status.success() {
        true => Ok(output),
        false => Err(LocalError::CommandFailed {
            program,
            exit: output.status,
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_the_first_number() {
        assert_eq!(parse_major_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0)"), "15");
        assert_eq!(parse_major_version("postgres (PostgreSQL) 18beta1"), "18");
    }
}
