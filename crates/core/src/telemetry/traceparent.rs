//! The W3C trace context header, <https://www.w3.org/TR/trace-context-2/>. Pure.

use std::{
    fmt::{self, Display},
    str::FromStr,
};

use uuid::Uuid;

/// The position of an event in its trace: the `traceparent` header.
///
/// Ids derive from event ids, which are UUIDs already: no random numbers are needed, and an event that is published
/// twice has the same position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Traceparent {
    trace_id: u128,
    span_id: u64,
    sampled: bool,
}

/// A text that is no `traceparent`; the standard says to start a new trace then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent; expected version-traceid-spanid-flags in lower-case hex")]
pub struct InvalidTraceparent;

impl Traceparent {
    /// From its parts; none if an id is zero, which the standard forbids.
    #[must_use]
    pub const fn new(trace_id: u128, span_id: u64, sampled: bool) -> Option<Self> {
        if trace_id == 0 || span_id == 0 {
            return None;
        }
        Some(Self { trace_id, span_id, sampled })
    }

    /// The trace that the event of this id begins. Flagged as sampled: whoever exports may still
    /// drop it.
    #[must_use]
    pub fn root(event_id: Uuid) -> Self {
        // Samplers take the low half for random, but a UUID holds its variant and, in version 7, a
        // counter there.
        let (high, low) = event_id.as_u64_pair();
        let trace_id = u128::from(high) << 64 | u128::from(mix_bits(low));
        Self { trace_id: trace_id.max(1), span_id: span_id(event_id), sampled: true }
    }

    /// The place of the event of this id, caused by the one at `self`.
    #[must_use]
    pub fn child(self, event_id: Uuid) -> Self {
        Self { span_id: span_id(event_id), ..self }
    }

    /// The trace, never zero.
    #[must_use]
    pub const fn trace_id(self) -> u128 {
        self.trace_id
    }

    /// The span, never zero.
    #[must_use]
    pub const fn span_id(self) -> u64 {
        self.span_id
    }

    /// Returns true if the trace may be exported.
    #[must_use]
    pub const fn is_sampled(self) -> bool {
        self.sampled
    }
}

/// The last half of the UUID, which differs between the events of a trace and, thanks to the
/// variant, from zero (except for the nil UUID).
fn span_id(event_id: Uuid) -> u64 {
    event_id.as_u64_pair().1.max(1)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result depends on every
/// bit of `x`, and no two `x` collide.
const fn mix_bits(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace_id, self.span_id)
    }
}

impl FromStr for Traceparent {
    type Err = InvalidTraceparent;

    /// As the standard asks, a later version is read as far as this one goes.
    fn from_str(text: &str) -> Result<Self, InvalidTraceparent> {
        let mut parts = text.splitn(5, '-');
        let mut next = |length| parse_hex(parts.next(), length).ok_or(InvalidTraceparent);
        let version = next(2)?;
        let trace_id = next(32)?;
        let span_id = next(16)?;
        let flags = next(2)?;
        let has_more = parts.next().is_some();
        if version == 0xff || (version == 0 && has_more) {
            return Err(InvalidTraceparent);
        }
        let span_id = u64::try_from(span_id).map_err(|_| InvalidTraceparent)?;
        Self::new(trace_id, span_id, flags & 1 == 1).ok_or(InvalidTraceparent)
    }
}

fn parse_hex(part: Option<&str>, length: usize) -> Option<u128> {
    let part = part.filter(|part| part.len() == length)?;
    // `from_str_radix` alone would allow a sign and capitals.
    let digits = part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    digits.then(|| u128::from_str_radix(part, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARSED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parse(text: &str) -> Result<Traceparent, InvalidTraceparent> {
        text.parse()
    }

    #[test]
    fn what_is_formatted_parses_to_the_same() {
        let parsed = parse(PARSED).unwrap();
        assert_eq!(parsed.trace_id(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(parsed.span_id(), 0x00f0_67aa_0ba9_02b7);
        assert!(parsed.is_sampled());
        assert_eq!(parsed.to_string(), PARSED);
    }

    #[test]
    fn unknown_flags_and_later_versions_are_tolerated() {
        let ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
        assert!(!parse(&format!("00-{ids}-00")).unwrap().is_sampled());
        assert!(!parse(&format!("00-{ids}-fe")).unwrap().is_sampled());
        assert!(parse(&format!("00-{ids}-03")).unwrap().is_sampled());
        assert_eq!(parse(&format!("01-{ids}-01-more-still")), parse(PARSED));
    }

    #[test]
    fn what_the_standard_forbids_is_refused() {
        let ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
        for text in [
            String::new(),
            "garbage".to_owned(),
            format!("ff-{ids}-01"),
            format!("00-{ids}"),
            format!("00-{ids}-1"),
            format!("00-{ids}-01-"),
            format!("00-{ids}-01-more"),
            format!("00-{}-01", ids.to_uppercase()),
            format!("+0-{ids}-01"),
            format!("00-{}-01", "0".repeat(32) + "-00f067aa0ba902b7"),
            format!("00-{}-01", ids.replace("00f067aa0ba902b7", "0000000000000000")),
            format!("00-{}é-01", &ids[..ids.len() - 2]),
        ] {
            assert_eq!(parse(&text), Err(InvalidTraceparent), "{text}");
        }
    }

    #[test]
    fn an_event_is_a_child_in_the_trace_of_its_cause() {
        let root = Traceparent::root(Uuid::now_v7());
        let event_id = Uuid::new_v5(&Uuid::NAMESPACE_OID, b"derived");
        let child = root.child(event_id);
        assert_eq!(child.trace_id(), root.trace_id());
        assert_ne!(child.span_id(), root.span_id());
        assert_eq!(child, root.child(event_id), "the same event stands at the same place");
    }

    #[test]
    fn no_id_is_ever_zero() {
        let root = Traceparent::root(Uuid::nil());
        assert_eq!(parse(&root.to_string()), Ok(root));
    }

    #[test]
    fn the_bits_that_samplers_read_are_spread_evenly() {
        // Each of 16 equal shares of the 63 bits must get some of 4096 traces: that one stays
        // empty by chance has a probability of 1e-114.
        let mut shares = [0; 16];
        for _ in 0..4096 {
            let low = Traceparent::root(Uuid::now_v7()).trace_id() as u64;
            shares[(low >> 60) as usize] += 1;
        }
        assert!(shares.iter().all(|&count| count > 0), "{shares:?}");
    }
}
