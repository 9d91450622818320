//! The bytes of snapshots: compressed, sealed, and in parts.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use kairo_core::{
    bus::{Bus, BusError, data_keys::DataKeyHolder},
    ids::Name,
};
use serde::{Serialize, de::DeserializeOwned};
use uuid::Uuid;

/// First byte of an entry: the snapshot itself, or the number of its parts and what they add up to.
pub(super) const WHOLE: u8 = 1;
pub(super) const IN_PARTS: u8 = 2;
/// Added where it is sealed with the agent's data key.
pub(super) const SEALED: u8 = 64;
/// The largest size that a snapshot may unpack to, in bytes.
const UNPACKED: u64 = 256 * 1024 * 1024;

/// Sealed with the agent's data key, where content is sealed; and whether it is.
pub(crate) async fn seal_content(
    bus: &Bus,
    agent: &Name,
    place: &str,
    packed: Vec<u8>,
) -> Result<(Vec<u8>, bool), BusError> {
    Ok(match bus.seal_bytes(DataKeyHolder::Agent(agent.as_str()), place, &packed).await? {
        Some(sealed) => (sealed, true),
        None => (packed, false),
    })
}

/// Returns the bytes as they were before `sealed`; `None` if nobody can open them any more.
pub(crate) async fn open_content(
    bus: &Bus,
    agent: &Name,
    place: &str,
    packed: Vec<u8>,
    is_sealed: bool,
) -> Result<Option<Vec<u8>>, BusError> {
    match is_sealed {
        true => bus.open_bytes(DataKeyHolder::Agent(agent.as_str()), place, &packed).await,
        false => Ok(Some(packed)),
    }
}

/// The head as it is of one that is not sealed, and whether it is.
pub(super) fn split_seal_flag(head: &[u8]) -> (Vec<u8>, bool) {
    let mut head = head.to_vec();
    match head.first_mut() {
        Some(kind) if *kind >= SEALED => {
            *kind -= SEALED;
            (head, true)
        }
        _ => (head, false),
    }
}

/// Returns the number of other entries that belong to this one.
pub(super) fn part_count(head: &[u8]) -> usize {
    match head {
        [IN_PARTS, count, ..] => usize::from(*count),
        _ => 0,
    }
}

pub(super) fn join_parts(head: &[u8], parts: &[Bytes]) -> Option<Vec<u8>> {
    match head {
        [WHOLE, packed @ ..] => Some(packed.to_vec()),
        [IN_PARTS, _, wanted @ ..] => {
            let packed = parts.concat();
            // Parts of another one may have been written since.
            (digest(&packed).as_bytes() == wanted).then_some(packed)
        }
        _ => None,
    }
}

pub(crate) fn pack(snapshot: &impl Serialize) -> (Vec<u8>, usize) {
    let json = serde_json::to_vec(snapshot).unwrap_or_default();
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(json.len() / 3), Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(&json);
    (encoder.finish().unwrap_or_default(), json.len())
}

pub(crate) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Option<T> {
    let mut json = Vec::new();
    DeflateDecoder::new(packed).take(UNPACKED).read_to_end(&mut json).ok()?;
    serde_json::from_slice(&json).ok()
}

/// Computes the digest of the joined parts.
pub(super) fn digest(packed: &[u8]) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, packed)
}
