//! The faults of a run, and how often each comes.

use crate::chance::Chance;

/// Tells the draw of desertions from others of a seed.
const DESERTION: u64 = 0x6465_7365_7274;

/// Rates in a thousand: of the blows of a storm, or of the operations named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A replica dies: all it knows is lost.
    pub crash: u64,
    /// A replica stands still, and goes on later from where it was.
    pub freeze: u64,
    /// A process supervisor stands still while a program runs, for longer than others wait for it.
    pub standstill: u64,
    /// Nobody of a service is there: all die or stand still, and none comes in their place for a while.
    pub desertion: u64,
    /// The whole host stands still: every replica, and the time that passes meanwhile is lost to all.
    pub pause: u64,
    /// A replica is asked to stop, in good order.
    pub stop: u64,
    /// One replica more is there.
    pub join: u64,
    /// A replica's connection is gone for a while.
    pub cut: u64,
    /// The server is restarted: everybody's connection is gone, and what it had in memory.
    pub restart: u64,
    /// A stream has no leader for a while.
    pub leaderless: u64,
    /// The log takes nothing for a while.
    pub full: u64,
    /// A message that is out is delivered again although whoever has it is well.
    pub redelivery: u64,
    /// A message is there a second time, by nobody's guard.
    pub copy: u64,
    /// The bucket of snapshots and checkpoints is deleted, as anybody may at any time.
    pub wiped: u64,
    /// The bucket of owners, or of members, is emptied.
    pub forgotten: u64,
    /// Of requests: they are lost.
    pub lost_request: u64,
    /// Of requests: what was asked is done, and the answer is lost.
    pub lost_answer: u64,
    /// Of settled deliveries: the server does not hear of it.
    pub lost_ack: u64,
    /// Of reads: a server answers that has not seen the newest messages.
    pub lag: u64,
    /// Of guarded writes: the server has another one in process.
    pub in_process: u64,
    /// Of timers that go off: it does so again later.
    pub repeated_timer: u64,
    /// Agents are offered tools without being told yet that they need consent.
    pub outdated_catalogue: bool,
    /// The log is made again before anything of it matters: what is kept beside it is of another log.
    pub recreated: bool,
    /// Clocks are off by up to so many milliseconds.
    pub skew: u64,
    /// Agents that rest are let go of.
    pub little_memory: bool,
    /// Programs work for a while, whatever they are asked to do.
    pub long_programs: bool,
}

impl Faults {
    /// Each seed has some of them, some more than others: what hides behind a common fault shows without it. Some seeds
    /// have none: there, everything is done once and at once.
    pub fn drawn(chance: &mut Chance) -> Self {
        if chance.permille(60) {
            return Self::default();
        }
        if chance.permille(100) {
            return Self::few_but_long(chance);
        }
        let mut rate = |most: usize| if chance.permille(450) { 0 } else { 1 + chance.below(most) as u64 };
        Self {
            crash: rate(120),
            freeze: rate(120),
            standstill: 0,
            desertion: 0,
            pause: rate(20),
            stop: rate(60),
            join: rate(40),
            cut: rate(60),
            restart: rate(25),
            leaderless: rate(40),
            full: rate(20),
            redelivery: rate(150),
            copy: rate(30),
            wiped: rate(25),
            forgotten: rate(25),
            lost_request: rate(30),
            lost_answer: rate(40),
            lost_ack: rate(120),
            lag: rate(250),
            in_process: rate(150),
            repeated_timer: rate(400),
            skew: 10 * rate(200),
            outdated_catalogue: chance.permille(200),
            recreated: chance.permille(60),
            little_memory: chance.permille(300),
            long_programs: false,
        }
    }

    /// Draws faults and, in every third seed, times in which nobody of a service is there. These are drawn apart, so
    /// that the others are as they were.
    pub fn of(seed: u64, chance: &mut Chance) -> Self {
        let (drawn, mut apart) = (Self::drawn(chance), Chance::new(seed ^ DESERTION));
        let is_quiet = drawn == Self::default() || drawn.long_programs || !apart.permille(333);
        let desertion = if is_quiet { 0 } else { 10 + apart.below(60) as u64 };
        Self { desertion, ..drawn }
    }

    /// Replicas that are given up for lost although they come back: where nobody is cut off and little else goes wrong, a
    /// program must be over by the time that its supervisor is said to be lost.
    fn few_but_long(chance: &mut Chance) -> Self {
        let mut rate = |most: usize| if chance.permille(500) { 0 } else { 1 + chance.below(most) as u64 };
        Self {
            standstill: 200,
            long_programs: true,
            freeze: rate(20),
            lost_ack: rate(60),
            lag: rate(100),
            skew: 10 * rate(200),
            ..Self::default()
        }
    }

    /// Returns true if no fault of the run could cost an answer that was paid for.
    pub fn is_fair(&self) -> bool {
        let Self { copy, repeated_timer, outdated_catalogue, skew, little_memory, long_programs, .. } = *self;
        // These cost nobody an answer.
        let harmless =
            Self { copy, repeated_timer, outdated_catalogue, skew, little_memory, long_programs, ..Self::default() };
        *self == harmless
    }
}
