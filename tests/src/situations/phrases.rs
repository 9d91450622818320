//! Phrases of people and programs in each language. Some letters are written in several parts (a letter and a combining
//! mark), as some keyboards do.

/// A language of people who speak with agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    English,
    Chinese,
    German,
    Spanish,
    Arabic,
}

/// The kinds of value that fill a gap in a sentence.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Name,
    Place,
    Number,
    Money,
    Date,
}

/// The sentences of a language. `{name}`, `{place}` and `{number}` are drawn once for a sentence; `{value}` of a fact is what is
/// corrected.
#[derive(Debug)]
pub struct Phrases {
    pub names: &'static [&'static str],
    pub places: &'static [&'static str],
    /// An amount; `{}` is the number.
    pub money: &'static str,
    /// Days of months; `{}` is the day.
    pub months: &'static [&'static str],
    pub facts: &'static [(&'static str, Kind)],
    pub requests: &'static [&'static str],
    pub small_talk: &'static [&'static str],
    pub status_questions: &'static [&'static str],
    pub progress: &'static [&'static str],
}

impl Language {
    pub const ALL: [Self; 5] = [Self::English, Self::Chinese, Self::German, Self::Spanish, Self::Arabic];

    /// Its name, as part of the name of an agent.
    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "english",
            Self::Chinese => "chinese",
            Self::German => "german",
            Self::Spanish => "spanish",
            Self::Arabic => "arabic",
        }
    }

    pub(super) const fn phrases(self) -> &'static Phrases {
        match self {
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
            Self::German => &GERMAN,
            Self::Spanish => &SPANISH,
            Self::Arabic => &ARABIC,
        }
    }

    /// A number in the digits of the language.
    pub(super) fn digits(self, number: u64) -> String {
        let western = number.to_string();
        match self {
            Self::Arabic => western
                .chars()
                .map(|digit| char::from_u32('٠' as u32 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit))
                .collect(),
            Self::English | Self::Chinese | Self::German | Self::Spanish => western,
        }
    }
}

const ENGLISH: Phrases = Phrases {
    names: &["Zoe\u{308} Okafor", "Tomasz", "Priya Raman", "Sinead O’Hara", "Mr Baptiste"],
    places: &["Harrow Lane", "the north yard", "Tromso\u{308}", "Pier 4", "the old mill"],
    money: "${}.50",
    months: &["{} January", "{} May", "{} August", "{} November"],
    facts: &[
        ("The pump of {place} is in hall {value}, behind door {number}.", Kind::Number),
        ("{name} pays {value} for locker {number} at {place}.", Kind::Money),
        ("The lease {number} of {place} ends on {value} at noon.", Kind::Date),
        ("Whoever calls about crane {number} at {place} asks for {value} first.", Kind::Name),
    ],
    requests: &[
        "Please find out what repair {number} at {place} costs.",
        "Could you write to {name} about invoice {number}?",
        "Book crane {number} for {name} at {place}, would you.",
        "I need the figures of order {number} from {place} by tonight.",
    ],
    small_talk: &[
        "Good morning from {place}, {name} here, desk {number}!",
        "Thanks, {name} says that was lovely, all {number} of us.",
        "It rains in {place} again, day {number}.",
    ],
    status_questions: &[
        "Any news on number {number}, {name} wonders?",
        "Where do things stand with {number} at {place}?",
        "Is {number} nearly done?",
    ],
    progress: &["plate {number} for {place}", "weighed crate {number}, {name}", "row {number} counted"],
};

const CHINESE: Phrases = Phrases {
    names: &["王小梅", "李建国", "欧阳娜娜", "陈师傅", "刘工"],
    places: &["青岛港", "三号仓库", "苏州河边", "北门", "老厂区"],
    money: "{}元",
    months: &["1月{}日", "5月{}日", "9月{}日", "12月{}日"],
    facts: &[
        ("{place}的水泵在{value}号厂房，门牌{number}。", Kind::Number),
        ("{name}在{place}租{number}号柜，每月{value}。", Kind::Money),
        ("{place}的{number}号合同到{value}中午为止。", Kind::Date),
        ("{place}{number}号吊车的事先问{value}，不要打总机。", Kind::Name),
    ],
    requests: &[
        "请查一下{place}{number}号维修要花多少钱。",
        "麻烦你给{name}写封信，说说{number}号发票。",
        "帮{name}在{place}订{number}号吊车。",
        "今晚之前我要{place}{number}号订单的数字。",
    ],
    small_talk: &[
        "早上好，我是{place}{number}室的{name}！",
        "谢谢，{name}说我们{number}个人都很满意。",
        "{place}又下雨了，第{number}天。",
    ],
    status_questions: &[
        "{name}想知道{number}号怎么样了？",
        "{place}的{number}号现在到哪一步了？",
        "{number}号快好了吗？",
    ],
    progress: &["正在处理{place}的{number}号", "{name}称完了{number}号箱", "第{number}行已核对"],
};

const GERMAN: Phrases = Phrases {
    names: &["Jo\u{308}rg Weiß", "Frau Özdemir", "Anneliese", "Ju\u{308}rgen Groß", "Herr Łukasik"],
    places: &["der Hafenstraße", "Ko\u{308}ln-Süd", "der alten Mühle", "Halle Nord", "Görlitz"],
    money: "{},50 €",
    months: &["{}. Januar", "{}. Ma\u{308}rz", "{}. August", "{}. Dezember"],
    facts: &[
        ("Die Pumpe in {place} steht in Halle {value}, hinter Tür {number}.", Kind::Number),
        ("{name} zahlt {value} für das Schließfach {number} in {place}.", Kind::Money),
        ("Der Vertrag {number} in {place} endet am {value} um zwölf.", Kind::Date),
        ("Wegen Kran {number} in {place} fragt man zuerst {value}, nicht die Zentrale.", Kind::Name),
    ],
    requests: &[
        "Bitte finde heraus, was die Reparatur {number} in {place} kostet.",
        "Kannst du {name} wegen der Rechnung {number} schreiben?",
        "Buche bitte Kran {number} für {name} in {place}.",
        "Ich brauche bis heute Abend die Zahlen des Auftrags {number} aus {place}.",
    ],
    small_talk: &[
        "Guten Morgen aus {place}, hier ist {name}, Zimmer {number}!",
        "Danke, {name} fand es schön, wir alle {number} auch.",
        "In {place} regnet es wieder, Tag {number}.",
    ],
    status_questions: &[
        "Gibt es Neues zu Nummer {number}, fragt {name}?",
        "Wie steht es um {number} in {place}?",
        "Ist {number} bald so weit?",
    ],
    progress: &["Platte {number} für {place}", "Kiste {number} gewogen, {name}", "Zeile {number} gezählt"],
};

const SPANISH: Phrases = Phrases {
    names: &["Mari\u{301}a Ibáñez", "Íñigo", "Begon\u{303}a", "el señor Quispe", "Lucía Peña"],
    places: &["la calle del Puerto", "Logron\u{303}o", "el molino viejo", "la nave norte", "Cádiz"],
    money: "{},50 euros",
    months: &["{} de enero", "{} de marzo", "{} de agosto", "{} de diciembre"],
    facts: &[
        ("La bomba de {place} está en la nave {value}, tras la puerta {number}.", Kind::Number),
        ("{name} paga {value} por la taquilla {number} en {place}.", Kind::Money),
        ("El contrato {number} de {place} acaba el {value} a mediodía.", Kind::Date),
        ("Por la grúa {number} de {place} se pregunta antes a {value}, no en centralita.", Kind::Name),
    ],
    requests: &[
        "Averigua, por favor, cuánto cuesta la reparación {number} en {place}.",
        "¿Puedes escribir a {name} por la factura {number}?",
        "Reserva la grúa {number} para {name} en {place}.",
        "Necesito las cifras del pedido {number} de {place} antes de esta noche.",
    ],
    small_talk: &[
        "¡Buenos días desde {place}, soy {name}, mesa {number}!",
        "Gracias, a {name} le encantó, y a los {number} también.",
        "En {place} llueve otra vez, día {number}.",
    ],
    status_questions: &[
        "¿Hay novedades del {number}, pregunta {name}?",
        "¿Cómo va lo de {number} en {place}?",
        "¿Falta mucho para {number}?",
    ],
    progress: &["placa {number} para {place}", "caja {number} pesada, {name}", "fila {number} contada"],
};

const ARABIC: Phrases = Phrases {
    names: &["مُنَى الخطيب", "يوسف", "الأستاذ قاسم", "هُدَى", "سلمى بن عيسى"],
    places: &["الميناء الشمالي", "شارع النخيل", "المُستودَع القديم", "طنجة", "حيّ السلام"],
    money: "{} درهمًا",
    months: &["{} يناير", "{} مارس", "{} أغسطس", "{} ديسمبر"],
    facts: &[
        ("المِضخّة في {place} في القاعة {value} خلف الباب {number}.", Kind::Number),
        ("{name} يدفع {value} عن الخزانة {number} في {place}.", Kind::Money),
        ("ينتهي العقد {number} في {place} يوم {value} ظُهرًا.", Kind::Date),
        ("بشأن الرافعة {number} في {place} يُسأل {value} أوّلًا.", Kind::Name),
    ],
    requests: &[
        "من فضلك اعرف كم يكلّف الإصلاح {number} في {place}.",
        "هل يمكنك أن تكتب إلى {name} بشأن الفاتورة {number}؟",
        "احجز الرافعة {number} باسم {name} في {place}.",
        "أحتاج أرقام الطلب {number} من {place} قبل الليلة.",
    ],
    small_talk: &[
        "صباح الخير من {place}، معك {name} من المكتب {number}!",
        "شكرًا، {name} سعيد، ونحن {number} أيضًا.",
        "المطر يهطل في {place} من جديد، اليوم {number}.",
    ],
    status_questions: &[
        "هل من جديد عن {number}؟ يسأل {name}",
        "إلى أين وصل {number} في {place}؟",
        "هل اقترب {number} من النهاية؟",
    ],
    progress: &["اللوح {number} من {place}", "وُزِن الصندوق {number}، {name}", "عُدّ الصفّ {number}"],
};
