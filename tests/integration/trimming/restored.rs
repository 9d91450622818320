//! A log that was trimmed, lost, and restored from a backup of what was left of it: the archive goes on, and it is trimmed again.

use crate::{
    backup::{an_agent_that_knows_people, done, refused},
    forgetting::{AGENT as KEEPER, MARK, OTHER, wanted},
};

use super::*;

/// A word that eve says.
const OF_EVE: &str = "evergreen";

#[tokio::test]
async fn a_log_that_is_restored_without_its_beginning_is_archived_and_trimmed_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (path, backup) = (at("archive"), at("backup"));
    let mut world = wanted().env_of_all("KAIRO_ARCHIVE__FOLDER", &path).start().await;
    an_agent_that_knows_people(&world).await;
    let through = at_rest(&world, &[&path]).await;
    let whole = done(&world, &["backup", "-o", &at("whole")]).await;
    trimmed(&world, &path, through + 1).await;
    let through = trimmed_while_it_is_read(&mut world, &path, &at("torn")).await;

    done(&world, &["backup", "-o", &backup]).await;
    world.ask_as("bob", KEEPER, "run again").await;
    assert_eq!(world.post("/v1/users/eve/forget", &json!({})).await.0, 202);
    world.forgotten("eve").await;
    world.settled().await;
    world.projected().await;
    world.services_stop().await;
    let end = done(&world, &["backup", "--onto", &backup]).await["through"].as_u64().unwrap();
    let why = refused(&world, &["backup", "--onto", &at("whole")], 1).await;
    let after = whole["through"].as_u64().unwrap() + 1;
    assert!(why.contains(&format!("messages {after} to")) && why.contains("backup -o"), "{why}");

    let tables = world.tables_hold().await;
    world.streams_are_lost().await;
    // What must stand of before would be missing.
    let why = refused(&world, &["restore", &backup, "--at", &(through + 1).to_string()], 1).await;
    assert!(why.contains("was carried forward up to message"), "{why}");
    let restored = done(&world, &["restore", &backup]).await;
    assert_eq!(restored["through"], json!(end), "{restored}");
    world.look_again().await;
    world.tables_are_made_again(&tables).await;
    world.services_start().await;
    world.settled().await;
    assert!(world.bus.log_start().await.unwrap().first > 1);
    the_archive_goes_on(&mut world, &path).await;
    nobody_who_was_forgotten_is_known(&mut world, &path).await;
    world.verified().await;
    world.end().await;
}

/// It is trimmed farther while a backup is taken, which waits for the first of what it reads of the log; up to where.
async fn trimmed_while_it_is_read(world: &mut World, path: &str, backup: &str) -> u64 {
    world.ask_as("bob", KEEPER, "run more").await;
    let through = at_rest(world, &[path]).await;
    let relay = Relay::holding_behind(&world.nats.url(), "CONSUMER.CREATE.KAIRO_EVENTS").await;
    let mut taking = command(world, &["backup", "-o", backup]);
    taking.env("KAIRO_NATS__URL", relay.url()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let taking = taking.spawn().unwrap();
    timeout(DEADLINE, relay.holds()).await.expect("it never came so far");
    trimmed(world, path, through + 1).await;
    relay.release();
    let output = timeout(DEADLINE, taking.wait_with_output()).await.expect("it never ended").unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the log was trimmed while it was read"), "{output:?}");
    through
}

/// The archive of the log before is that of this one from now on, when somebody says so.
async fn the_archive_goes_on(world: &mut World, path: &str) {
    let output = command(world, &["archive", path]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--restored` goes on with it"), "{output:?}");
    let again = archived(world, &[path, "--restored"]).await;
    assert_eq!(again["begins_behind"], 0, "it has all of it: {again}");
    proven(world, path).await;
    world.ask_as("bob", KEEPER, "run new").await;
    let through = at_rest(world, &[path, "--restored"]).await;
    let done = trimmed(world, path, through + 1).await;
    assert_eq!(done["begins"], json!(through + 1), "{done}");
    as_it_was_made(world).await;
    proven(world, path).await;
}

/// Not in what is folded from the archive and the log, and not in what models are asked.
async fn nobody_who_was_forgotten_is_known(world: &mut World, path: &str) {
    assert_eq!(world.post("/v1/users/ann/forget", &json!({})).await.0, 202);
    world.forgotten("ann").await;
    without_snapshots(world).await;
    world.ask_as("bob", KEEPER, "what do you know?").await;
    let requests = world.model_requests().await;
    let last = requests.iter().map(Value::to_string).find(|it| it.contains("what do you know?")).unwrap();
    assert!(last.contains(OTHER) && !last.contains(MARK) && !last.contains(OF_EVE), "{last}");
    let (status, state) = world.get(&format!("/v1/agents/{KEEPER}/state")).await;
    let state = state.to_string();
    assert!(status == 200 && state.contains(OTHER) && !state.contains(MARK) && !state.contains(OF_EVE), "{state}");
    world.settled().await;
    proven(world, path).await;
}
