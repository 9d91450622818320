//! Which partition a message belongs to. Pure. All that concerns one owner is in one partition, so that its order is
//! kept; which one must never change, as positions are kept by partition.

/// Parameters of FNV-1a for 64 bits.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The partition of a message with this subject, one of so many: by its owner, the third token.
pub fn of(subject: &str, partitions: u32) -> u32 {
    let owner = subject.split('.').nth(2).unwrap_or_default();
    let hash = owner.bytes().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    u32::try_from(hash % u64::from(partitions.max(1))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_one_it_always_was() {
        // Published values of FNV-1a: of nothing, and of "a".
        assert_eq!(of("kairo.user", 1_000), u32::try_from(0xcbf2_9ce4_8422_2325_u64 % 1_000).unwrap());
        assert_eq!(of("kairo.user.a.message", 1_000), u32::try_from(0xaf63_dc4c_8601_ec8c_u64 % 1_000).unwrap());
    }

    #[test]
    fn what_concerns_one_owner_is_together_and_owners_are_spread() {
        assert_eq!(of("kairo.agent.bob.decision", 8), of("kairo.tool.bob.result", 8));
        let partitions: std::collections::BTreeSet<u32> =
            (0..100).map(|number| of(&format!("kairo.agent.agent-{number}.decision"), 8)).collect();
        assert_eq!(partitions, (0..8).collect());
    }
}
