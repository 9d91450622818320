//! Chooses the images, audio and video of a request that the model is shown, and words the note on the others. Pure.

use base64::{Engine, engine::general_purpose::STANDARD};
use kairo_core::media;
use kairo_mind::chat_completions::ShownPart;
use kairo_proto::v1::Part;
use kairo_proto::words::Modality;

use crate::config::ModelConfig;

/// A part that is shown.
pub fn encode_shown(media_type: String, bytes: &[u8]) -> ShownPart {
    ShownPart::Data { media_type, base64: STANDARD.encode(bytes) }
}

/// Returns each part with the reason why it is not shown; none for those that are. The newest come first: if not all
/// fit, the oldest are only mentioned.
pub fn choose_shown<'p>(
    parts: impl DoubleEndedIterator<Item = &'p Part>,
    config: &ModelConfig,
) -> Vec<(&'p Part, Option<&'static str>)> {
    let mut count = 0;
    let mut bytes = 0_u64;
    let why_not = |part: &'p Part| {
        let taken = match Modality::from(media::kind_of(part)) {
            Modality::Image => config.images,
            Modality::Audio => config.audio,
            _ => config.video && media::kind_of(part) == media::VIDEO,
        };
        if !taken {
            return (part, Some("you are not shown such"));
        }
        // What comes before one that does not fit is older still.
        (count, bytes) = (count + 1, bytes.saturating_add(part.size));
        let fits = count <= config.max_parts && bytes <= config.max_parts_bytes;
        (part, (!fits).then_some("no longer shown"))
    };
    let mut chosen: Vec<_> = parts.rev().map(why_not).collect();
    chosen.reverse();
    chosen
}

/// The bytes of those that are shown.
pub fn bytes(chosen: &[(&Part, Option<&'static str>)]) -> u64 {
    chosen.iter().filter(|(_, why_not)| why_not.is_none()).map(|(part, _)| part.size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(media_type: &str, size: u64) -> Part {
        Part { media_type: media_type.into(), size, ..Default::default() }
    }

    fn shown(parts: &[Part], config: &ModelConfig) -> Vec<bool> {
        choose_shown(parts.iter(), config).into_iter().map(|(_, why_not)| why_not.is_none()).collect()
    }

    #[test]
    fn the_newest_are_shown_as_far_as_they_fit() {
        let parts = [part("image/png", 1), part("image/png", 5), part("audio/wav", 4), part("image/png", 2)];
        let config = |max_parts, max_parts_bytes| ModelConfig { max_parts, max_parts_bytes, ..Default::default() };
        assert_eq!(shown(&parts, &config(9, 99)), [true, true, true, true]);
        assert_eq!(shown(&parts, &config(2, 99)), [false, false, true, true]);
        // One that would fit again is not shown behind one that does not: what is missing is what is old.
        assert_eq!(shown(&parts, &config(9, 7)), [false, false, true, true]);
        assert_eq!(shown(&parts, &config(0, 99)), [false, false, false, false]);
        assert_eq!(bytes(&choose_shown(parts.iter(), &config(9, 7))), 6);
    }

    #[test]
    fn what_a_model_does_not_take_makes_room_for_the_rest() {
        let parts = [part("image/png", 1), part("audio/wav", 9), part("video/mp4", 1)];
        let config = ModelConfig { audio: false, max_parts: 1, max_parts_bytes: 1, ..Default::default() };
        assert_eq!(shown(&parts, &config), [true, false, false]);
        let config = ModelConfig { audio: false, video: true, max_parts: 2, ..Default::default() };
        assert_eq!(shown(&parts, &config), [true, false, true]);
    }
}
