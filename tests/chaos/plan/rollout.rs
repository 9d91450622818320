//! Replacing every replica by one of another build, and back.

use super::{Blow, Build, Fault, SERVICES, Settings, Target};
use crate::chaos::random::Random;

/// Which build all are of after each pass; they begin as the older one.
const PASSES: [Build; 3] = [Build::Newer, Build::Older, Build::Newer];

/// Three passes over all replicas in an order of its own each, of which the last leaves nobody of the older build; and then
/// the promotion. All that in the first two thirds of the time, so that there is something to be done in the new epoch.
pub fn walk(settings: &Settings) -> Vec<Fault> {
    let mut random = Random::new(settings.seed, "rollout");
    let mut moves = Vec::new();
    for build in PASSES {
        let mut services = SERVICES;
        random.shuffle(&mut services);
        for service in services {
            for index in 0..settings.replicas {
                let killed = random.below(2) == 0;
                moves.push((Target::Replica(service, index), Blow::Replace { build, killed }));
            }
        }
    }
    moves.push((Target::Fleet, Blow::Promote));
    let slot = settings.time * 2 / 3 / u32::try_from(moves.len()).unwrap_or(u32::MAX);
    moves.into_iter().zip(1..).map(|((target, blow), number)| Fault { at: slot * number, target, blow }).collect()
}
