//! Trials of a fleet: one kind of thing that befalls it at a time, and the rest left alone, so that what is seen is its doing.

use std::time::Duration;

use super::{Blow, Course, Fault, SERVICES, Settings, Target};
use crate::chaos::random::Random;

/// Between two times that the leader of the log is killed.
const LEADER_EVERY: Duration = Duration::from_secs(30);
/// The duration of a fault that is mended afterwards.
const LASTS: Duration = Duration::from_secs(12);

/// Returns the faults of a trial; none in other courses.
pub fn faults(settings: &Settings) -> Vec<Fault> {
    let mut random = Random::new(settings.seed, "trials");
    match settings.course {
        Course::Chaos | Course::Walk | Course::SideBySide => Vec::new(),
        Course::Restarts => restarts(settings, &mut random),
        Course::Leaders => leaders(settings, &mut random),
        Course::Partition => each_server(settings, |server| Blow::CutOff { server, lasts: LASTS }),
        Course::DiskFull => each_server(settings, |server| Blow::FillDisk { server, lasts: LASTS }),
        Course::LogFull => {
            vec![Fault { at: settings.time / 3, target: Target::Store, blow: Blow::FillLog { lasts: LASTS } }]
        }
    }
}

/// Every replica of every service is asked to end and started again, one at a time, and then every server, which is told to be a
/// lame duck first.
fn restarts(settings: &Settings, random: &mut Random) -> Vec<Fault> {
    let mut replicas: Vec<Target> = SERVICES
        .into_iter()
        .flat_map(|service| (0..settings.replicas).map(move |index| Target::Replica(service, index)))
        .collect();
    random.shuffle(&mut replicas);
    let replicas = replicas.into_iter().map(|target| (target, Blow::RestartInTurn));
    let servers = (0..settings.servers).map(|server| (Target::Nats, Blow::LameDuck { server }));
    evenly(settings.time, replicas.chain(servers).collect())
}

fn leaders(settings: &Settings, random: &mut Random) -> Vec<Fault> {
    let times = (1..).map(|number| LEADER_EVERY * number).take_while(|at| *at < settings.time);
    let kill = |at| {
        let down = Duration::from_millis(random.between(500, 5_000));
        Fault { at, target: Target::Nats, blow: Blow::Kill { down } }
    };
    times.map(kill).collect()
}

fn each_server(settings: &Settings, blow: impl Fn(usize) -> Blow) -> Vec<Fault> {
    evenly(settings.time, (0..settings.servers).map(|server| (Target::Nats, blow(server))).collect())
}

/// One after the other, so that the last has time to be put right.
fn evenly(time: Duration, moves: Vec<(Target, Blow)>) -> Vec<Fault> {
    let slot = time / u32::try_from(moves.len() + 1).unwrap_or(u32::MAX);
    moves.into_iter().zip(1..).map(|((target, blow), number)| Fault { at: slot * number, target, blow }).collect()
}
