//! Replacing every replica by one of another build, and back.

use super::{Blow, Build, Fault, SERVICES, Settings, Target};
use crate::chaos::random::Random;

/// The build of all replicas after each pass; they begin with the older one.
const PASSES: [Build; 3] = [Build::Newer, Build::Older, Build::Newer];

/// Three passes over all replicas in an order of its own each, of which the last leaves nobody of the older build; and then
/// the promotion. The messages of the rest of the time come in the new epoch.
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
    let slot = settings.promoted_at() / u32::try_from(moves.len()).unwrap_or(u32::MAX);
    moves.into_iter().zip(1..).map(|((target, blow), number)| Fault { at: slot * number, target, blow }).collect()
}
