//! Actors that are wrong on purpose: what the invariants are worth.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Decisions are written without the guard of their subject.
    UnguardedDecision,
    /// A runner does not look into the ledger, and writes to it without a guard.
    LedgerIgnored,
    /// A runner takes every tool for one that may be called twice.
    EverythingRepeats,
    /// A runner runs a tool before it is entered in the ledger.
    EffectFirst,
    /// Results are written without looking whether there is one.
    UnguardedResult,
    /// A supervisor opens the gate before it is entered in the ledger that the process exists.
    GateFirst,
    /// A supervisor opens the gate without looking whether the process was canceled meanwhile.
    GateAnyway,
    /// A delivery is acknowledged before it is dealt with.
    AckFirst,
    /// An append whose answer was lost takes another replica's event for its own when only id and body are the same:
    /// the time of what stands in the log is part of what is folded.
    SameWordsAreOurs,
    /// A ledger forgets entries while it looks for one among them.
    ForgetfulLedger,
    /// A router makes up a new id each time.
    FreshIds,
    /// A runner calls tools that need a human's consent without looking for it.
    ConsentIgnored,
    /// A decision is acknowledged before its timers are set.
    EffectsAckFirst,
    /// Timers that go off are forgotten before the log knows.
    LostTimer,
    /// An agent takes whatever is due for the time that comes next.
    OccurrenceIgnored,
}

impl Flaw {
    pub const ALL: [Flaw; 15] = [
        Flaw::UnguardedDecision,
        Flaw::LedgerIgnored,
        Flaw::EverythingRepeats,
        Flaw::EffectFirst,
        Flaw::UnguardedResult,
        Flaw::GateFirst,
        Flaw::GateAnyway,
        Flaw::AckFirst,
        Flaw::SameWordsAreOurs,
        Flaw::ForgetfulLedger,
        Flaw::FreshIds,
        Flaw::ConsentIgnored,
        Flaw::EffectsAckFirst,
        Flaw::LostTimer,
        Flaw::OccurrenceIgnored,
    ];
}
