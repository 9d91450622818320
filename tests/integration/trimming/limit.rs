//! `kairo trim`, killed at the very moment at which the log has its limit: what is archived is lost from the log, and nothing else,
//! until whoever comes next puts back what was.

use async_nats::HeaderMap;
use futures::future::join_all;

use super::*;

/// More than the margin that is always left.
const OTHERS: usize = 1_100;
/// The API subject by which trimming changes the log's stream.
pub const UPDATE: &str = "STREAM.UPDATE.KAIRO_EVENTS";

#[tokio::test]
async fn a_log_that_is_left_with_its_limit_loses_what_is_archived_alone_until_somebody_puts_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive").to_str().unwrap().to_owned();
    let mut world = two_agents(&path).await;
    more_than_the_margin(&world).await;
    let backup = folder.path().join("backup").to_str().unwrap().to_owned();
    for next in [&["provision"][..], &["trim", &path, "--before", "2"], &["archive", &path], &["backup", "-o", &backup]]
    {
        world.ask(AGENT, "time please").await;
        let through = at_rest(&world, &[&path]).await;
        killed_in_force(&world, &path, through).await;
        goes_on(&mut world, &path, through).await;
        let mut next = command(&world, next);
        let output = next.env("KAIRO_URL", world.url("")).output().await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        as_it_was_made(&world).await;
    }
    let begins = world.bus.log_start().await.unwrap().first;
    world.ask(AGENT, "time please").await;
    assert_eq!(world.bus.log_start().await.unwrap().first, begins, "it loses nothing any more");
    // Made of the archive and the log, it holds what the one does that was there all the while.
    world.verified().await;
    world.end().await;
}

/// Messages of another system.
pub async fn more_than_the_margin(world: &World) {
    join_all((0..OTHERS).map(|_| world.publish("kairo.system.shop.sold", HeaderMap::new(), "{}"))).await;
}

/// It is killed before it hears that the log has its limit.
async fn killed_in_force(world: &World, path: &str, through: u64) {
    let relay = Relay::holding_behind(&world.nats.url(), UPDATE).await;
    let mut trim = trim_but(world, path, through + 1, "1ms");
    trim.env("KAIRO_NATS__URL", relay.url()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut trimming = trim.spawn().unwrap();
    in_force(world, &mut trimming).await;
    trimming.kill().await.unwrap();
}

/// Waits until the log has its limit.
pub async fn in_force(world: &World, trimming: &mut Child) {
    // Nobody tells: asking is all there is.
    let in_force = async { while !log_config(world).await.metadata.contains_key(TRIMMING) {} };
    tokio::select! {
        in_force = timeout(DEADLINE, in_force) => in_force.expect("the log never had its limit"),
        ended = trimming.wait() => panic!("it has heard nothing, and ended: {ended:?}"),
    }
}

/// Agents go on, also those that are loaded anew; who starts says what is the matter.
async fn goes_on(world: &mut World, path: &str, through: u64) {
    let begins = world.bus.log_start().await.unwrap().first;
    assert!(begins > 1 && begins + 1_000 <= through + 1, "the margin is left: it begins at {begins}");
    world.ask(AGENT, "time please").await;
    without_snapshots(world).await;
    let log = std::fs::read_to_string(world.logs().join("kairo-agent-runtime-0.log")).unwrap();
    assert!(log.contains("loses its oldest message with each new one"), "{log}");
    for name in [AGENT, "other"] {
        assert!(world.ask(name, "time please").await.starts_with("It is"));
    }
    world.settled().await;
    let check = command(world, &["provision", "--check"]).output().await.unwrap();
    assert_eq!(check.status.code(), Some(1), "{check:?}");
    assert!(String::from_utf8_lossy(&check.stdout).contains("discard is"), "{check:?}");

    let there: Vec<u64> = world.raw_log().await.iter().map(|raw| raw.sequence).collect();
    let (first, last) = (there[0], *there.last().unwrap());
    assert!(begins < first && first <= through + 1, "{begins}, {first}: it has its limit, and nothing new is lost");
    assert!(last > through && there.iter().copied().eq(first..=last), "nothing is missing from {first} to {last}");
    proven(world, path).await;
}
