//! Proof of life and death without looking at process ids: a pipe with a name that a process
//! opens for writing. Its end is seen when the last process that held it is dead.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::sync::oneshot;

pub struct Witness {
    path: PathBuf,
    alive: oneshot::Receiver<()>,
    dead: oneshot::Receiver<()>,
}

impl Witness {
    pub fn new(dir: &Path) -> Self {
        let path = dir.join("witness");
        let status = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(status.success());
        let (tell_alive, alive) = oneshot::channel();
        let (tell_dead, dead) = oneshot::channel();
        let opened = path.clone();
        // A thread of its own: the test can fail while this one still reads.
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(File::open(opened).expect("the pipe opens"));
            let mut line = String::new();
            pipe.read_line(&mut line).expect("a line");
            assert_eq!(line, "alive\n");
            tell_alive.send(()).ok();
            pipe.read_to_end(&mut Vec::new()).expect("the end");
            tell_dead.send(()).ok();
        });
        Self { path, alive, dead }
    }

    /// For a script that opens the pipe itself, and writes `alive`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A shell command that holds the pipe until it is killed, whatever signal it may ignore.
    pub fn command(&self) -> String {
        let path = self.path.display();
        format!("trap '' TERM HUP INT; exec 3>{path}; echo alive >&3; tail -f /dev/null")
    }

    /// The same as a daemon: forked twice, in a session of its own, away from all pipes.
    pub fn daemon(&self) -> String {
        let command = self.command().replace('\'', r#"'"'"'"#);
        format!("(setsid sh -c '{command}' >/dev/null 2>&1 </dev/null &)")
    }

    pub async fn alive(&mut self) {
        (&mut self.alive).await.expect("the process came to life");
    }

    pub async fn dead(self) {
        self.dead.await.expect("the process died");
    }
}
