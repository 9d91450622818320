//! Words of several scripts, and the ways to write one.

use unicode_normalization::UnicodeNormalization as _;

use crate::random::Random;

/// A way to write a word.
#[derive(Clone, Copy, Debug)]
pub enum Writing {
    /// Each letter in one part, or in several.
    Composed,
    Decomposed,
    Capitals,
    /// Letters as wide as Chinese ones.
    Wide,
    /// Katakana as narrow as Latin letters.
    Narrow,
    /// Without accents, points or tone marks.
    Bare,
}

impl Writing {
    pub fn of(self, word: &str) -> String {
        match self {
            Self::Composed => word.nfc().collect(),
            Self::Decomposed => word.nfd().collect(),
            Self::Capitals => word.to_uppercase(),
            Self::Wide => word.chars().map(|letter| moved(letter, '!'..='~', '！')).collect(),
            Self::Narrow => NARROW.iter().fold(word.to_owned(), |word, (wide, narrow)| word.replace(wide, narrow)),
            Self::Bare => word.nfd().filter(|letter| !is_mark(*letter)).nfc().collect(),
        }
    }
}

/// A letter of a range as one of the range that begins there.
fn moved(letter: char, range: std::ops::RangeInclusive<char>, to: char) -> char {
    let there = || char::from_u32(to as u32 + (letter as u32 - *range.start() as u32));
    if range.contains(&letter) { there().unwrap_or(letter) } else { letter }
}

fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}' | '\u{5b0}'..='\u{5bd}' | '\u{64b}'..='\u{652}' | '\u{e47}'..='\u{e4e}')
}

const NARROW: [(&str, &str); 8] =
    [("ガ", "ｶﾞ"), ("パ", "ﾊﾟ"), ("ド", "ﾄﾞ"), ("カ", "ｶ"), ("メ", "ﾒ"), ("ラ", "ﾗ"), ("ス", "ｽ"), ("ト", "ﾄ")];

/// A script in which words are drawn: by syllables, or, where only a dictionary knows where words end, from a list.
#[derive(Clone, Copy, Debug)]
pub enum Script {
    English,
    Accented,
    Greek,
    Cyrillic,
    Arabic,
    Hebrew,
    Devanagari,
    Chinese,
    Japanese,
    Thai,
}

impl Script {
    pub const ALL: [Self; 10] = [
        Self::English,
        Self::Accented,
        Self::Greek,
        Self::Cyrillic,
        Self::Arabic,
        Self::Hebrew,
        Self::Devanagari,
        Self::Chinese,
        Self::Japanese,
        Self::Thai,
    ];

    /// A word, of 4 to 12 letters where it is made of syllables.
    pub fn word(self, random: &mut Random) -> String {
        let mut pick = |choices: &'static [&'static str]| choices[random.index(choices.len())];
        let (firsts, seconds) = match self {
            Self::English => (
                &["b", "d", "f", "g", "k", "l", "m", "p", "r", "s", "t", "v", "st"][..],
                &["a", "e", "i", "o", "u"][..],
            ),
            Self::Accented => {
                (&["b", "ç", "ñ", "g", "ł", "m", "š", "r", "ž", "t"][..], &["ä", "é", "ï", "õ", "ů", "å", "a", "ø"][..])
            }
            Self::Greek => (&["β", "γ", "δ", "κ", "λ", "μ", "π", "ρ"][..], &["ά", "ε", "ή", "ι", "ό", "υ"][..]),
            Self::Cyrillic => (&["б", "в", "г", "д", "ж", "к", "м", "й", "щ"][..], &["а", "ё", "и", "о", "у", "я"][..]),
            Self::Arabic => (&["بَ", "تُ", "جِ", "د", "رّ", "س", "ش", "ف"][..], &["ا", "و", "ي", "ل", "م"][..]),
            Self::Hebrew => (&["בּ", "גָ", "דִ", "ל", "מ", "פּ", "ש"][..], &["א", "ו", "י", "ק", "ר"][..]),
            Self::Devanagari => (&["क", "ग", "च", "त", "प", "म", "ल"][..], &["ा", "ि", "े", "ो", "ु", "न"][..]),
            Self::Chinese => {
                return pick(&["预算", "仓库", "合同", "天气", "音乐", "历史", "飞机", "电脑", "朋友", "学校"])
                    .to_owned();
            }
            Self::Japanese => {
                return pick(&["ガラス", "カメラ", "パスタ", "ドラマ", "トマト", "ナイフ", "ピアノ", "ホテル"])
                    .to_owned();
            }
            Self::Thai => {
                return pick(&["โรงเรียน", "ภาษา", "ธนาคาร", "ตลาด", "ดนตรี", "อาหาร", "สวัสดี", "ประเทศ"]).to_owned();
            }
        };
        let syllables = 2 + random.index(4);
        (0..syllables).flat_map(|_| [firsts, seconds].map(|parts| parts[random.index(parts.len())])).collect()
    }

    pub fn writings(self) -> &'static [Writing] {
        use Writing::{Bare, Capitals, Composed, Decomposed, Narrow, Wide};
        match self {
            Self::English => &[Composed, Capitals, Wide],
            Self::Accented | Self::Greek => &[Composed, Decomposed, Bare, Capitals],
            Self::Cyrillic => &[Composed, Decomposed, Capitals],
            Self::Arabic | Self::Hebrew => &[Composed, Decomposed, Bare],
            Self::Devanagari | Self::Chinese | Self::Thai => &[Composed, Decomposed],
            Self::Japanese => &[Composed, Decomposed, Narrow],
        }
    }

    /// Returns the separators that may stand between words.
    pub fn between(self) -> &'static [&'static str] {
        match self {
            Self::Chinese | Self::Thai => &[""],
            Self::Japanese => &["、", "・"],
            _ => &[" ", ", ", "-", "/", " <", "> ", ". ", "_", " & ", ": "],
        }
    }

    pub fn has_spaces(self) -> bool {
        !matches!(self, Self::Chinese | Self::Japanese | Self::Thai)
    }

    /// Returns true for scripts in which every backend counts letters alike, so that words may be misspelt.
    pub fn may_be_misspelt(self) -> bool {
        matches!(self, Self::English | Self::Cyrillic)
    }

    pub fn may_be_changed(self, word: &str) -> bool {
        !word.contains(['й', 'ё'])
    }

    /// A letter that no word has.
    pub fn letter(self) -> char {
        if matches!(self, Self::Cyrillic) { 'ф' } else { 'z' }
    }
}

/// Normalizes a text: lowercase, compatible forms and no marks, except on Cyrillic letters, where a mark makes another
/// letter.
fn plain(text: &str) -> String {
    let mut is_kept = false;
    let letters = text.nfkc().collect::<String>().to_lowercase();
    let kept = letters.nfd().filter(|letter| {
        if !is_mark(*letter) {
            is_kept = matches!(letter, '\u{400}'..='\u{52f}');
        }
        is_kept || !is_mark(*letter)
    });
    kept.nfc().collect()
}

fn words(text: &str) -> Vec<String> {
    plain(text)
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the first three letters of a word.
pub fn beginning(word: &str) -> String {
    plain(word).chars().take(3).collect()
}

/// Returns the number of letters of a word that may be wrong.
pub fn errors_allowed(word: &str) -> usize {
    match plain(word).chars().count() {
        9.. => 2,
        5.. => 1,
        _ => 0,
    }
}

/// Returns true if a text answers a question, word by word, by the rules of docs/search.md.
pub fn answers(text: &str, question: &str, script: Script) -> bool {
    let words_asked = words(question);
    let there = words(text);
    let last = words_asked.len().saturating_sub(1);
    words_asked.iter().enumerate().all(|(at, word)| {
        if !script.has_spaces() {
            return plain(text).contains(word.as_str());
        }
        there.iter().any(|other| is_meant(word, other, at == last))
    })
}

/// Returns true if a text contains one of the words of the question exactly.
pub fn has_a_word(text: &str, question: &str, script: Script) -> bool {
    let there = words(text);
    let is_there =
        |word: &String| if script.has_spaces() { there.contains(word) } else { plain(text).contains(word.as_str()) };
    words(question).iter().any(is_there)
}

fn is_meant(word: &str, other: &str, begins: bool) -> bool {
    if word == other || begins && other.starts_with(word) {
        return true;
    }
    let is_first_wrong = word.chars().next() != other.chars().next();
    let errors = if begins { errors_to_begin(word, other) } else { errors(word, other) };
    errors + usize::from(is_first_wrong) <= errors_allowed(word) && errors > 0
}

/// Returns the fewest errors that turn one word into the other or into its beginning.
pub fn errors_to_begin(word: &str, other: &str) -> usize {
    let word = plain(word);
    let other = plain(other);
    let ends = other.char_indices().map(|(at, _)| at).skip(1).chain([other.len()]);
    ends.filter_map(|end| other.get(..end)).map(|begin| errors(&word, begin)).min().unwrap_or(0)
}

/// Letters to change, add, leave out or swap with the next one to make one of the other.
fn errors(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
    for row in 0..=one.len() {
        for column in 0..=other.len() {
            let mut least = if row == 0 || column == 0 { row.max(column) } else { usize::MAX };
            if row > 0 && column > 0 {
                least = least.min(table[row - 1][column - 1] + usize::from(one[row - 1] != other[column - 1]));
                least = least.min(table[row - 1][column] + 1).min(table[row][column - 1] + 1);
            }
            if row > 1 && column > 1 && one[row - 1] == other[column - 2] && one[row - 2] == other[column - 1] {
                least = least.min(table[row - 2][column - 2] + 1);
            }
            table[row][column] = least;
        }
    }
    table[one.len()][other.len()]
}
