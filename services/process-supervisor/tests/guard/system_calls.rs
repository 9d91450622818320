//! Tests the system calls that a program may make. Needs a kernel with seccomp; prints a note where there is none.

use std::net::TcpListener;
use std::path::Path;

use kairo_process_supervisor::confinement::KernelConfinement;
use kairo_process_supervisor::protocol::{Access, ExitOutcome, Spec};

use crate::{BINARY, run, shell};

/// Returns true if this kernel filters system calls; prints a note if not.
fn enforced() -> bool {
    let enforced = KernelConfinement::detect(Path::new(BINARY)).system_calls;
    if !enforced {
        eprintln!("SKIPPED: this kernel does not filter system calls, so there is nothing to test");
    }
    enforced
}

/// Returns a Perl program under the filter that may use these ports.
fn filtered(script: &str, args: &[String], connect: &[u16]) -> Spec {
    let access = Access {
        required: false,
        read: vec!["/".into()],
        write: vec!["/tmp".into()],
        connect: connect.to_vec(),
        listen: Vec::new(),
    };
    let args = ["-e", script].into_iter().map(str::to_owned).chain(args.iter().cloned()).collect();
    Spec { program: "/usr/bin/perl".into(), args, access: Some(access), seccomp: true, ..shell("") }
}

/// Opens the socket that its arguments name, and prints the outcome.
const OPEN: &str = "socket(my $s, shift, shift, shift) ? print qq(open) : print $!";

const STREAM: i32 = 1;
const UNIX: i32 = 1;
const IP: [i32; 2] = [2, 10];
/// With a flag, as programs ask for them.
const CLOSE_ON_EXEC: i32 = 0o2_000_000;

async fn opened(family: i32, kind: i32, protocol: i32, connect: &[u16]) -> bool {
    let args = [family, kind, protocol].map(|number| number.to_string());
    run(filtered(OPEN, &args, connect)).await.stdout == "open"
}

/// In one program, since there are many: of all families and kinds, the sockets that can be opened, as `family kind
/// protocol`.
async fn all_opened(protocols: &[i32], connect: &[u16]) -> Vec<(i32, i32, i32)> {
    let script = "for my $f (0..49) { for my $k (1..6, 10) { for my $p (@ARGV) { \
                  print qq($f $k $p\n) if socket(my $s, $f, $k, $p) } } }";
    let protocols: Vec<String> = protocols.iter().map(ToString::to_string).collect();
    let out = run(filtered(script, &protocols, connect)).await;
    assert_eq!(out.exit.outcome, ExitOutcome::Exited { code: 0 }, "{}", out.stderr);
    let numbers = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse().expect("a number"));
        (numbers.next().expect("a family"), numbers.next().expect("a kind"), numbers.next().expect("a protocol"))
    };
    out.stdout.lines().map(numbers).collect()
}

#[tokio::test]
async fn a_program_without_ports_opens_sockets_of_the_machine_alone() {
    if !enforced() {
        return;
    }
    // Every protocol of IP that a kernel may know, multipath TCP and SMC among them.
    let protocols: Vec<i32> = (0..=262).collect();
    let opened = all_opened(&protocols, &[]).await;
    assert!(!opened.is_empty() && opened.iter().all(|(family, ..)| *family == UNIX), "{opened:?}");
}

#[tokio::test]
async fn a_program_with_ports_opens_sockets_of_tcp_and_udp_and_no_others() {
    if !enforced() {
        return;
    }
    let protocols: Vec<i32> = (0..=262).collect();
    let all = all_opened(&protocols, &[443]).await;
    let usual = |(family, kind, protocol): &(i32, i32, i32)| match (kind, protocol) {
        _ if *family == UNIX => true,
        (1, 0 | 6) | (2, 0 | 17) => IP.contains(family),
        _ => false,
    };
    let unusual: Vec<_> = all.iter().filter(|socket| !usual(socket)).collect();
    assert!(unusual.is_empty(), "{unusual:?}");
    assert!(all.contains(&(2, 1, 6)) && all.contains(&(2, 2, 17)), "{all:?}");
    assert!(opened(IP[0], STREAM | CLOSE_ON_EXEC, 0, &[443]).await, "with a flag, too");
    assert!(!opened(IP[0], STREAM | CLOSE_ON_EXEC, 262, &[443]).await);
}

#[tokio::test]
async fn data_is_not_sent_with_the_request_to_connect() {
    if !enforced() {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("a port").port();
    let script = "use Socket; my $to = sockaddr_in(shift, INADDR_LOOPBACK); socket(my $s, 2, 1, 0) or die $!; \
                  defined send($s, q(x), 0x20000000, $to) ? print qq(sent) : print $!";
    // Landlock of newer kernels sees it, too, and refuses it for the port.
    for allowed in [port, port ^ 1] {
        let out = run(filtered(script, &[port.to_string()], &[allowed])).await;
        assert_eq!(out.stdout, "Permission denied", "{}", out.stderr);
    }
    let connects = "use IO::Socket::INET; IO::Socket::INET->new(q(127.0.0.1:).shift) ? print qq(connected) : print $!";
    let out = run(filtered(connects, &[port.to_string()], &[port])).await;
    assert_eq!(out.stdout, "connected", "the usual way is open: {}", out.stderr);
}

#[tokio::test]
async fn a_program_has_no_power_over_the_kernel() {
    if !enforced() || !cfg!(target_arch = "x86_64") {
        return;
    }
    // By the numbers of x86-64: unshare and clone with a new user namespace, clone3, setns, io_uring_setup, io_uring_enter,
    // io_uring_register, keyctl, add_key, request_key, bpf, perf_event_open, userfaultfd; and socket as x32 numbers it.
    let calls: [(&str, &str); 14] = [
        ("272, 0x10000000", "Permission denied"),
        ("272, 0x10020000", "Permission denied"),
        ("56, 0x10000011, 0, 0, 0, 0", "Permission denied"),
        ("435, 0, 0", "Function not implemented"),
        ("308, 0, 0", "Permission denied"),
        ("425, 1, 0", "Permission denied"),
        ("426, 0, 0, 0, 0, 0", "Permission denied"),
        ("427, 0, 0, 0, 0", "Permission denied"),
        ("250, 0, 0, 0", "Permission denied"),
        ("248, 0, 0, 0, 0, 0", "Permission denied"),
        ("249, 0, 0, 0, 0", "Permission denied"),
        ("321, 0, 0, 0", "Permission denied"),
        ("298, 0, 0, 0, 0, 0", "Permission denied"),
        ("0x40000029, 2, 1, 0", "Function not implemented"),
    ];
    for (call, refused) in calls {
        let out = run(filtered(&format!("syscall({call}) >= 0 ? print qq(done) : print $!"), &[], &[])).await;
        assert_eq!(out.stdout, refused, "{call}: {}", out.stderr);
    }
}

#[tokio::test]
async fn programs_and_their_threads_start_as_ever() {
    if !enforced() {
        return;
    }
    let script = "my @all = map { my $p = fork // die $!; if (!$p) { exit 0 } $p } 1..3; waitpid($_, 0) for @all; \
                  print `echo one | cat`";
    let out = run(filtered(script, &[], &[])).await;
    assert_eq!((out.exit.outcome, out.stdout.as_str()), (ExitOutcome::Exited { code: 0 }, "one\n"), "{}", out.stderr);
}

#[tokio::test]
async fn a_program_without_ports_is_alone_in_its_network() {
    let enforced = KernelConfinement::detect(Path::new(BINARY));
    if !enforced.pids || !enforced.network {
        eprintln!("SKIPPED: this machine does not allow networks of their own, so there is nothing to test");
        return;
    }
    let script = "ls /sys/class/net 2>/dev/null; cat /proc/net/dev | grep -c :";
    let interfaces = |out: String| out.lines().last().and_then(|count| count.parse::<usize>().ok());
    let alone = run(Spec { pid_namespace: true, network_namespace: true, ..shell(script) }).await;
    assert_eq!(interfaces(alone.stdout), Some(1), "its own loopback: {}", alone.stderr);
}
