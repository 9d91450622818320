//! Tests the files and ports that a program may reach. Needs a kernel with Landlock; prints a note where there is none.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use kairo_process_supervisor::confinement::KernelConfinement;
use kairo_process_supervisor::protocol::{Access, ExitOutcome, Spec};
use tempfile::{TempDir, tempdir};

use crate::{BINARY, run, shell};

/// Returns true if this kernel has Landlock; prints a note if not.
fn enforced() -> bool {
    let enforced = KernelConfinement::detect(Path::new(BINARY)).files;
    if !enforced {
        eprintln!("SKIPPED: this kernel has no Landlock (Linux 6.2), so there is nothing to test");
    }
    enforced
}

/// Creates a folder with two agents' folders; a program runs in the first.
fn folders() -> TempDir {
    let root = tempdir().expect("a folder");
    for agent in ["ann", "bob"] {
        fs::create_dir(root.path().join(agent)).expect("a folder");
        fs::write(root.path().join(agent).join("secret"), agent).expect("written");
    }
    root
}

fn restricted(root: &Path, script: &str) -> Spec {
    let read = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/nowhere"].map(Into::into).into();
    let mut spec = shell(script);
    spec.cwd = root.join("ann");
    spec.access = Some(Access { required: true, read, write: Vec::new(), connect: Vec::new(), listen: Vec::new() });
    spec
}

#[tokio::test]
async fn a_program_works_in_its_folder_and_nowhere_else() {
    if !enforced() {
        return;
    }
    let root = folders();
    let script = "cat secret && echo new > file && mkdir deep && mv file deep/file && cat deep/file > /dev/null && ls \
                  deep";
    let works = run(restricted(root.path(), script)).await;
    assert_eq!((works.exit.outcome, works.stderr.as_str()), (ExitOutcome::Exited { code: 0 }, ""));
    assert_eq!(works.stdout, "annfile\n");

    let bob = root.path().join("bob");
    let bob = bob.display();
    for script in [
        "ls /var".to_owned(),
        "ls ..".to_owned(),
        format!("cat {bob}/secret"),
        "cat ../bob/secret".to_owned(),
        format!("echo x > {bob}/secret"),
        format!("rm {bob}/secret"),
        format!("ln {bob}/secret stolen"),
        format!("truncate -s 0 {bob}/secret"),
        "echo x > /etc/kairo-was-here".to_owned(),
        "cat /proc/1/cmdline".to_owned(),
    ] {
        let refused = run(restricted(root.path(), &script)).await;
        assert_ne!(refused.exit.outcome, ExitOutcome::Exited { code: 0 }, "{script}");
        // A link to what one may not reach would cross from one tree of files into another.
        let complaint = if script.starts_with("ln") { "cross-device link" } else { "ermission denied" };
        assert!(refused.stderr.contains(complaint), "{script}: {}", refused.stderr);
        // It is the restriction that it fails for.
        if script.starts_with("cat") || script.starts_with("ls") {
            let mut free = restricted(root.path(), &script);
            free.access = None;
            assert_eq!(run(free).await.exit.outcome, ExitOutcome::Exited { code: 0 }, "{script}");
        }
    }
    assert_eq!(fs::read_to_string(root.path().join("bob/secret")).expect("still there"), "bob");
}

#[tokio::test]
async fn what_is_configured_may_be_written_and_the_program_itself_executed() {
    if !enforced() {
        return;
    }
    let root = folders();
    let shared = root.path().join("bob");
    let mut spec = restricted(root.path(), &format!("echo new > {}/secret", shared.display()));
    spec.access.as_mut().expect("restricted").write.push(shared.clone());
    assert_eq!(run(spec).await.exit.outcome, ExitOutcome::Exited { code: 0 });
    assert_eq!(fs::read_to_string(shared.join("secret")).expect("still there"), "new\n");

    // In a folder that is not listed; and as little as any kernel enforces will do.
    let program = root.path().join("true");
    fs::copy("/bin/true", &program).expect("copied");
    let mut spec = restricted(root.path(), "");
    spec.program = program;
    spec.access.as_mut().expect("restricted").required = false;
    assert_eq!(run(spec).await.exit.outcome, ExitOutcome::Exited { code: 0 });
}

#[tokio::test]
async fn a_program_cannot_kill_its_guard() {
    if !KernelConfinement::detect(Path::new(BINARY)).signals {
        eprintln!("SKIPPED: this kernel's Landlock has no signal scopes (Linux 6.12), so there is nothing to test");
        return;
    }
    let root = folders();
    let killer = run(restricted(root.path(), "kill -9 $PPID; tail -f /dev/null & kill $! && exit 7")).await;
    assert_eq!(killer.exit.outcome, ExitOutcome::Exited { code: 7 }, "its own children it may signal");
    assert!(killer.stderr.contains("not permitted"), "{}", killer.stderr);
}

/// Connects to a port of this machine, then listens on any free one.
const TCP: &str = "use IO::Socket::INET; \
                   IO::Socket::INET->new(q(127.0.0.1:).shift) ? print qq(connected\n) : print qq($!\n); \
                   IO::Socket::INET->new(Listen => 1, LocalAddr => q(127.0.0.1:0)) ? print qq(listens\n) : print qq($!\n)";

#[tokio::test]
async fn tcp_is_for_the_ports_that_are_listed() {
    if !KernelConfinement::detect(Path::new(BINARY)).ports {
        eprintln!("SKIPPED: this kernel's Landlock has no TCP (Linux 6.7), so there is nothing to test");
        return;
    }
    let root = folders();
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("a port").port();
    let tried = async |access: fn(&mut Access, u16)| {
        let mut spec = restricted(root.path(), "");
        spec.program = "/usr/bin/perl".into();
        spec.args = vec!["-e".to_owned(), TCP.to_owned(), port.to_string()];
        access(spec.access.as_mut().expect("restricted"), port);
        run(spec).await.stdout
    };
    assert_eq!(tried(|_, _| {}).await, "Permission denied\nPermission denied\n", "none by default");
    assert_eq!(tried(|access, port| access.connect = vec![port]).await, "connected\nPermission denied\n");
    // Port 0 stands for those that the kernel chooses.
    assert_eq!(tried(|access, _| access.listen = vec![0]).await, "Permission denied\nlistens\n");
    assert_eq!(tried(|access, port| access.connect = vec![port ^ 1]).await, "Permission denied\nPermission denied\n");
}
