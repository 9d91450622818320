"""Address cards made at random, and what vobject reads in them.

Each is made twice: as programs write it in versions 2.1, 3.0 and 4.0 (ours) and in version 3.0 and UTF-8 (theirs), since the
library keeps to that.
"""
import quopri
import random

import vobject

GIVEN = ["Sarah", "Jürgen", "小明", "Ana María", "Олег"]
FAMILY = ["Lee", "Müller", "王", "O'Neil", "García López", "Петров"]
ORGANIZATIONS = ["Acme GmbH", "Hafen, Söhne; Co", "港口"]
ROLES = ["Developer", "Head of Marketing", "Kranführerin"]
NOTES = ["Likes short, clear mail.\nOn leave in May.", "Größe: 5; Länge: 6", "x" * 200]


def escape(text):
    return text.replace("\\", "\\\\").replace(",", "\\,").replace(";", "\\;").replace("\n", "\\n")


class Card:
    def __init__(self, rng):
        self.rng, self.version = rng, rng.choice(["2.1", "3.0", "4.0"])
        self.ours = ["BEGIN:VCARD", f"VERSION:{self.version}"]
        self.theirs = ["BEGIN:VCARD", "VERSION:3.0"]
        self.groups = 0

    def add(self, name, texts, parameters=""):
        """A property with these parts, parameters as version 3 has them."""
        value = ";".join(escape(text) for text in texts)
        self.theirs.append(f"{name}{parameters}:{value}")
        if self.version != "2.1":
            ours = f"{name}{parameters}:{value}"
            if self.rng.random() < 0.15:
                self.groups += 1
                ours = f"item{self.groups}.{ours}"
            self.ours.append(ours if self.rng.random() < 0.8 else ours[:9] + "\r\n " + ours[9:])
            return
        # Version 2.1: types without a name, quoted-printable in any charset, and only semicolons are escaped.
        old = parameters.replace("TYPE=", "").replace(",", ";")
        if all(text.isascii() and "\n" not in text for text in texts) and self.rng.random() < 0.7:
            self.ours.append(f"{name}{old}:" + ";".join(text.replace(";", "\\;") for text in texts))
            return
        charset = self.rng.choice(["UTF-8", "UTF-8", "ISO-8859-1"])
        try:
            raw = ";".join(text.replace(";", "\\;") for text in texts).encode(charset)
        except UnicodeEncodeError:
            charset, raw = "UTF-8", ";".join(text.replace(";", "\\;") for text in texts).encode()
        coded = quopri.encodestring(raw).decode().rstrip("\n").replace("\n", "=0A").replace("==0A", "=\r\n")
        self.ours.append(f"{name}{old};CHARSET={charset};ENCODING=QUOTED-PRINTABLE:{coded}")

    def end(self):
        for lines in (self.ours, self.theirs):
            lines.append("END:VCARD")


def make(rng):
    card = Card(rng)
    given, family = rng.choice(GIVEN), rng.choice(FAMILY)
    named = rng.random() < 0.8
    if named:
        if rng.random() < 0.8:
            card.add("FN", [f"{given} {family}"])
        card.add("N", [family, given, "", rng.choice(["", "Dr."]), ""])
    elif rng.random() < 0.5:
        card.add("N", ["", "", "", "", ""])
    addresses = [f"p{rng.randrange(100)}@example.org" for _ in range(rng.randint(0 if named else 1, 3))]
    for address in addresses:
        card.add("EMAIL", [address], rng.choice(["", ";TYPE=INTERNET", ";TYPE=INTERNET,WORK"]))
    for _ in range(rng.randint(0, 2)):
        card.add("TEL", [f"+49 30 {rng.randrange(10**6)}"], rng.choice(["", ";TYPE=CELL", ";TYPE=WORK,VOICE"]))
    if named and rng.random() < 0.5:
        card.add("ORG", [rng.choice(ORGANIZATIONS), rng.choice(["Marketing", "Büro"])])
    if rng.random() < 0.4:
        card.add("TITLE", [rng.choice(ROLES)])
    if rng.random() < 0.4:
        card.add("NOTE", [rng.choice(NOTES)])
    card.end()
    return card


def name_of(card):
    """The name, or what somebody without one goes by."""
    if hasattr(card, "fn") and card.fn.value.strip():
        return card.fn.value
    if hasattr(card, "n"):
        name = card.n.value
        parts = [name.prefix, name.given, name.additional, name.family, name.suffix]
        said = " ".join(part for part in parts if part)
        if said:
            return said
    return card.email.value


def shown(card):
    several = lambda name: [one.value for one in getattr(card, f"{name}_list", [])]
    return {
        "name": name_of(card),
        "emails": several("email"),
        "phones": several("tel"),
        "organization": card.org.value[0] if hasattr(card, "org") else None,
        "teams": card.org.value[1:] if hasattr(card, "org") else [],
        "role": card.title.value if hasattr(card, "title") else None,
        "note": card.note.value if hasattr(card, "note") else None,
    }


def case(seed):
    rng = random.Random(seed)
    made = [make(rng) for _ in range(rng.randint(1, 4))]
    end = rng.choice(["\r\n", "\n"])
    theirs = "\r\n".join(line for card in made for line in card.theirs) + "\r\n"
    return {
        "kind": "card",
        "seed": seed,
        "text": end.join(line.replace("\r\n", end) for card in made for line in card.ours) + end,
        "expected": [shown(card) for card in vobject.readComponents(theirs, allowQP=True)],
    }
