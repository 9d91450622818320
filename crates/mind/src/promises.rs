//! Detects promises of work by rule, for when no model can be asked. The lists hold phrases with which speakers of a
//! language take something on; a language that is missing is left to the model.

/// Beginnings of promises in languages that part words with spaces, in small letters. They count at the beginning of a word.
const SPACED: [&str; 67] = [
    // English
    "i will ",
    "i'll ",
    "i shall ",
    "i am going to ",
    "i'm going to ",
    "let me ",
    "will do",
    "right away",
    "consider it done",
    "i'm on it",
    "on it.",
    "on it!",
    // German
    "ich werde ",
    "ich kümmere mich",
    "kümmere mich",
    "mache ich",
    "mach ich",
    "erledige ich",
    "wird gemacht",
    "wird erledigt",
    "ich erledige ",
    "ich buche ",
    "ich bestelle ",
    "ich reserviere ",
    "ich suche ",
    "ich schaue ",
    "ich prüfe ",
    // French
    "je vais ",
    "je m'en occupe",
    "je m'occupe",
    "j'y vais",
    "je le fais",
    "je la fais",
    "tout de suite",
    // Spanish
    "voy a ",
    "me encargo",
    "me ocupo",
    "lo haré",
    "lo hago",
    "enseguida",
    // Italian
    "me ne occupo",
    "ci penso io",
    "lo faccio subito",
    "provvedo",
    "vado a ",
    // Portuguese
    "vou ",
    "eu trato",
    "trato disso",
    "eu cuido",
    // Dutch
    "ik zal ",
    "ik ga ",
    "ik regel",
    "komt voor elkaar",
    // Swedish, Danish, Norwegian
    "jag ska ",
    "jag fixar",
    "jeg skal ",
    "jeg ordner",
    // Polish, Czech
    "zajmę się",
    "zrobię",
    "zařídím",
    "postarám se",
    // Russian, Ukrainian
    "займусь",
    "сделаю",
    "забронирую",
    "зроблю",
    // Vietnamese, Indonesian
    "tôi sẽ ",
    "saya akan ",
];

/// Ends of words that make a promise: the future of verbs.
const ENDINGS: [&str; 8] = ["acağım", "eceğim", "करूँगा", "करूंगा", "करूँगी", "करूंगी", "हूँगा", "दूँगा"];

/// Phrases of promises in languages that do not part words, or put them together.
const UNSPACED: [&str; 29] = [
    // Chinese
    "我来",
    "我來",
    "我会",
    "我會",
    "我这就",
    "我這就",
    "这就去",
    "這就去",
    "马上",
    "馬上",
    "我去",
    "我帮",
    "我幫",
    "帮您",
    "帮你",
    "我将",
    "交给我",
    "交給我",
    // Japanese
    "いたします",
    "致します",
    "しておきます",
    "手配します",
    "予約します",
    "かしこまりました",
    // Korean
    "하겠습니다",
    "할게요",
    "드릴게요",
    "드리겠습니다",
    "겠습니다",
];

/// Phrases that begin like a promise and are none, in small letters.
const NONE: [&str; 15] = [
    "i will be ",
    "i'll be ",
    "i will not ",
    "let me know",
    "i'll wait",
    "i will wait",
    "i shall be ",
    "i will never ",
    "ich werde nicht ",
    "ich werde immer",
    "je vais bien",
    "je vais très bien",
    "voy a estar",
    "我会说",
    "我会一直",
];

/// Returns true if words promise work that is to be done behind them.
pub(super) fn is_promise(words: &str) -> bool {
    let mut plain = words.to_lowercase().replace('’', "'");
    NONE.iter().for_each(|none| plain = plain.replace(none, "|"));
    let is_at_word = |beginning: &&str| {
        plain
            .match_indices(*beginning)
            .any(|(at, _)| !plain[..at].chars().next_back().is_some_and(char::is_alphanumeric))
    };
    let is_at_end = |ending: &&str| {
        let behind = |at: usize| plain[at + ending.len()..].chars().next();
        plain.match_indices(*ending).any(|(at, _)| !behind(at).is_some_and(char::is_alphanumeric))
    };
    SPACED.iter().any(is_at_word)
        || ENDINGS.iter().any(is_at_end)
        || UNSPACED.iter().any(|promise| plain.contains(promise))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_take_work_on_are_promises_in_many_languages() {
        let promises = [
            "Sure, I will book the crane.",
            "I’ll look into it.",
            "Okay - let me check the tides for you.",
            "好的，我来订。",
            "马上为您查询厦门港的潮汐。",
            "Gern! Ich kümmere mich um die Fässer.",
            "Klar, mache ich.",
            "Je vais réserver le ferry.",
            "Claro, me encargo de las grúas.",
            "Certo, ci penso io!",
            "Vou reservar o guindaste.",
            "Ik regel het.",
            "Хорошо, я забронирую склад.",
            "承知しました。クレーンを手配します。",
            "네, 예약하겠습니다.",
            "Vinci hemen ayarlayacağım.",
            "Tôi sẽ đặt cần cẩu.",
        ];
        for words in promises {
            assert!(is_promise(words), "{words}");
        }
    }

    #[test]
    fn words_that_merely_answer_are_none() {
        let answers = [
            "Hello! How can I help?",
            "The tide is at 4.",
            "I will be happy to help whenever you like.",
            "Let me know what you need.",
            "Nothing is left to do.",
            "你好！有什么可以帮忙的吗？",
            "潮水四点到。",
            "Guten Tag! Worum geht es?",
            "Je vais bien, merci.",
            "Da nada.",
        ];
        for words in answers {
            assert!(!is_promise(words), "{words}");
        }
    }
}
