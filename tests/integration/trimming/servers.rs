//! A log of three servers is trimmed while one of them is killed. Each removes by itself what a limit is for, so none may be away then.

use super::{limit::in_force, *};

#[tokio::test]
async fn a_log_of_three_servers_is_trimmed_alike_by_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive").to_str().unwrap().to_owned();
    let wanted = Wanted::new(USUAL).servers(3).monitored();
    let mut world = wanted.env_of_all("KAIRO_ARCHIVE__FOLDER", &path).start().await;
    told_the_time(&world).await;
    say(&world, "@other hello").await;
    let through = at_rest(&world, &[&path]).await;

    let killed = world.kill_follower().await;
    answers(&world).await;
    let away = not_trimmed(&world, &path, through + 1).await;
    assert!(away.contains(&format!("nats-server nats-{killed} has a copy of the log, and is away")), "{away}");
    assert_eq!(world.bus.log_start().await.unwrap().first, 1);
    world.restart_server(killed).await;

    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    let mut trimming = trim(&world, &path, through + 1).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
    carried(&world, &mut trimming, through).await;
    let killed = world.kill_leader().await;
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    world.settled().await;
    world.restart_server(killed).await;
    let ended = timeout(DEADLINE, trimming.wait()).await.expect("it waits for somebody").unwrap();
    assert_eq!(ended.code(), Some(0), "what it has carried is there, whoever leads");
    goes_on(&mut world, &path, through).await;

    limit::more_than_the_margin(&world).await;
    let through = at_rest(&world, &[&path]).await;
    killed_in_force(&mut world, &path, through).await;
    trimmed(&world, &path, through + 1).await;
    goes_on(&mut world, &path, through).await;
    proven(&world, &path).await;
    // Made of the archive and the log, it holds what the one does that was there all the while.
    world.verified().await;
    world.end().await;
}

/// The gateway may have been a client of the server that was killed.
async fn answers(world: &World) {
    let answers = async { while world.get("/v1/status").await.0 != 200 {} };
    timeout(DEADLINE, answers).await.expect("the gateway answers nobody");
}

/// The command and the server that leads are killed while the log has its limit, and that server comes back when it has it no more.
async fn killed_in_force(world: &mut World, path: &str, through: u64) {
    let relay = Relay::holding_behind(&world.nats.url(), limit::UPDATE).await;
    let mut trim = trim_but(world, path, through + 1, "1ms");
    trim.env("KAIRO_NATS__URL", relay.url()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut trimming = trim.spawn().unwrap();
    in_force(world, &mut trimming).await;
    let killed = world.kill_leader().await;
    trimming.kill().await.unwrap();
    let told = command(world, &["provision", "--wait", "1m"]).output().await.unwrap();
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(1), "{told:?}");
    assert!(said.contains(&format!("nats-{killed} was away")) && said.contains("empty folder"), "{said}");
    as_it_was_made(world).await;
    world.empty_server(killed).await;
    world.restart_server(killed).await;
}

/// All copies are alike, and agents go on that are loaded anew.
async fn goes_on(world: &mut World, path: &str, through: u64) {
    as_it_was_made(world).await;
    for name in [AGENT, "other"] {
        assert!(world.ask(name, "time please").await.starts_with("It is"));
    }
    without_snapshots(world).await;
    assert_eq!(say(world, "hello").await, "other", "with whom bob speaks is carried forward");
    proven(world, path).await;
    world.settled().await;
    // Whoever follows may do so a moment later.
    let alike = async {
        loop {
            let copies = world.copies().await;
            if copies.iter().all(|(first, last)| (*first, *last) == (through + 1, copies[0].1)) {
                return;
            }
        }
    };
    timeout(DEADLINE, alike).await.expect("the copies differ");
}
