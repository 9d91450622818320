//! What goes wrong in a run, and how often.

use crate::chance::Chance;

/// Rates in a thousand: of steps, or of the operations named.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A replica dies: all it knows is lost, all it holds is delivered again.
    pub crash: u64,
    /// A replica stands still, while others are given what it holds; it goes on later from where it was.
    pub freeze: u64,
    /// A delivery comes again although whoever has it is well.
    pub redelivery: u64,
    /// A message is there a second time, by nobody's guard.
    pub copy: u64,
    /// The server has forgotten all claims.
    pub forgotten_claims: u64,
    /// Of writes: the request is lost.
    pub lost_request: u64,
    /// Of writes: it is written, and the answer is lost.
    pub lost_answer: u64,
    /// Of failed writes: nobody tries again, so that the work fails as a whole.
    pub impatience: u64,
    /// Of reads: a server answers that has not seen the newest messages.
    pub lag: u64,
    /// Of settled deliveries: the server does not hear of it.
    pub lost_ack: u64,
    /// Of questions whether something is held: the connection is young, so that nobody may be given up for lost.
    pub young: u64,
    /// Of timers that go off: it does so again later.
    pub repeated_timer: u64,
    /// Of timers to be taken back: it stays.
    pub overlooked_timer: u64,
    /// Whether agents are offered tools without being told yet that they need consent.
    pub outdated_catalogue: bool,
    /// Of visits: what is in memory was forgotten.
    pub forgotten_mind: u64,
}

impl Faults {
    /// Each seed has some of them, some more than others: what hides behind a common fault shows without it.
    pub fn drawn(chance: &mut Chance) -> Self {
        let mut rate = |most: usize| if chance.permille(450) { 0 } else { 1 + chance.below(most) as u64 };
        Self {
            crash: rate(25),
            freeze: rate(25),
            redelivery: rate(40),
            copy: rate(4),
            forgotten_claims: rate(5),
            lost_request: rate(80),
            lost_answer: rate(120),
            impatience: rate(500),
            lag: rate(150),
            lost_ack: rate(120),
            young: rate(200),
            repeated_timer: rate(400),
            overlooked_timer: rate(500),
            forgotten_mind: rate(200),
            outdated_catalogue: chance.permille(200),
        }
    }
}
