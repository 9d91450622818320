"""Mails made at random, and what Python's email package reads in them."""
import base64
import email
import email.header
import email.policy
import email.utils
import quopri
import random
import re
from urllib.parse import quote

WORDS = {
    "us-ascii": ["Budget", "figures", "quay 7", "see below", "Re: plan", "a=b", "50 percent", "--almost a boundary"],
    "utf-8": ["Grüße", "小明", "Кран", "naïve", "€ 5", "日本語", "emoji 🚢"],
    "iso-8859-1": ["Grüße", "naïve", "señor", "Ærø"],
    "iso-8859-15": ["5 €", "Œuvre"],
    "windows-1252": ["“quoted”", "5 €", "Žižek"],
    "windows-1251": ["Кран", "Привет"],
    "koi8-r": ["Кран", "Привет"],
    "iso-2022-jp": ["日本語", "こんにちは"],
    "shift_jis": ["日本語", "こんにちは"],
    "euc-kr": ["안녕하세요"],
    "gb2312": ["你好", "小明"],
    "gb18030": ["你好", "小明"],
    "big5": ["你好"],
}
DATES = {
    "Mon, 15 Jan 2024 11:30:00 +0100": 1705314600,
    "15 Jan 2024 11:30 +0100": 1705314600,
    "Mon, 15 Jan 2024 05:30:00 EST": 1705314600,
    "Mon, 15 Jan 24 10:30:00 GMT": 1705314600,
    "Mon, 15 Jan 2024 10:30:00 +0000 (UTC)": 1705314600,
    "Mon,15 Jan 2024 10:30:00 +0000": 1705314600,
    "Mon, 15 Jan 2024  10:30:00 -0000": 1705314600,
    "Thu, 29 Feb 2024 23:59:59 -0330": 1709263799,
    "Fri, 1 Mar 2024 12:00:00 +0545": 1709273700,
    "Fri, 30 Feb 2024 25:61:00 +0000": None,
    "yesterday": None,
    "": None,
}


def words(rng, charset, count):
    return " ".join(rng.choice(WORDS[charset] + WORDS["us-ascii"][:4]) for _ in range(count))


def encoded_word(rng, text, charset):
    """RFC 2047."""
    raw = text.encode(charset)
    if rng.random() < 0.5:
        return f"=?{charset}?{rng.choice('Bb')}?{base64.b64encode(raw).decode()}?="
    coded = "".join(chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"={byte:02X}" for byte in raw)
    return f"=?{charset.upper()}?Q?{coded}?="


def header_text(rng, charset):
    text = words(rng, charset, rng.randint(1, 3))
    if text.isascii():
        return text, text
    if rng.random() < 0.3:
        # Several words; the space between two of them is none.
        parts = [rng.choice(WORDS[charset]) for _ in range(2)]
        return rng.choice([" ", "\r\n "]).join(encoded_word(rng, part, charset) for part in parts), "".join(parts)
    return encoded_word(rng, text, charset), text


def person(rng, charset):
    address = rng.choice(["ann@example.org", "b.lee@mail.example.com", "x+y@example.net"])
    kind = rng.randrange(4)
    if kind == 0:
        return address
    if kind == 1:
        return f'"Lee, Sarah" <{address}>'
    if kind == 2:
        return f"<{address}>"
    return f"{header_text(rng, charset)[0]} <{address}>" if charset != "us-ascii" else f"Bob Ray <{address}>"


def body(rng, charset, text):
    """The transfer encoding and the bytes."""
    raw = text.encode(charset)
    kind = rng.choice(["base64", "quoted-printable", "8bit", "none"])
    if kind == "base64":
        return f"Content-Transfer-Encoding: {rng.choice(['base64', 'BASE64'])}\r\n", base64.encodebytes(raw).replace(b"\n", b"\r\n")
    if kind == "quoted-printable" or charset == "iso-2022-jp" and kind == "8bit":
        return "Content-Transfer-Encoding: quoted-printable\r\n", quopri.encodestring(raw).replace(b"\n", b"\r\n")
    if kind == "8bit":
        return "Content-Transfer-Encoding: 8bit\r\n", raw
    return "", raw


def text_part(rng, subtype="plain"):
    charset = rng.choice(list(WORDS))
    text = "\r\n".join(words(rng, charset, rng.randint(1, 5)) for _ in range(rng.randint(1, 3)))
    if text.startswith("--"):
        text = "Hello " + text
    text = text.replace("\r\n--", "\r\n- ")
    if subtype == "html":
        text = f"<html><body><p>{text}</p></body></html>"
    if charset == "us-ascii" and rng.random() < 0.3:
        return b"Content-Type: text/" + subtype.encode() + b"\r\n\r\n" + text.encode() + b"\r\n"
    encoding, raw = body(rng, charset, text)
    quoted = rng.choice([charset, f'"{charset}"', charset.upper()])
    head = f"Content-Type: text/{subtype}; charset={quoted}\r\n{encoding}\r\n"
    return head.encode() + raw + b"\r\n"


def file_part(rng):
    name = rng.choice(["plan.pdf", "Übersicht.pdf", "小明.docx", "a b.txt", "long-" + "x" * 70 + ".bin"])
    kind = rng.randrange(4)
    if name.isascii() and kind < 2:
        named = f'Content-Disposition: attachment; filename="{name}"'
    elif kind == 2 and len(name) > 50:
        named = f'Content-Disposition: attachment;\r\n filename*0="{name[:30]}";\r\n filename*1="{name[30:]}"'
    else:
        named = f"Content-Disposition: attachment;\r\n filename*=utf-8''{quote(name)}"
    head = f"Content-Type: application/octet-stream\r\n{named}\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    return head.encode() + base64.encodebytes(rng.randbytes(20)).replace(b"\n", b"\r\n")


def message_part(rng, depth):
    head = rng.choice(
        [
            "Content-Type: message/rfc822\r\n",
            "Content-Type: message/rfc822\r\nContent-Disposition: attachment\r\n",
            'Content-Type: message/rfc822; name="forwarded.eml"\r\nContent-Disposition: attachment; filename="forwarded.eml"\r\n',
            "Content-Type: Message/RFC822\r\nContent-Disposition: inline\r\nContent-Transfer-Encoding: 7bit\r\n",
        ]
    )
    return head.encode() + b"\r\n" + message(rng, depth + 1)


def content(rng, depth):
    kind = rng.choice(["text", "text", "alternative", "mixed", "mixed", "mixed", "digest"])
    if kind == "text" or depth > 3:
        return text_part(rng)
    boundary = f"=_{rng.randrange(10**9)}_{depth}"
    if kind == "alternative":
        parts = [text_part(rng), text_part(rng, "html")]
    elif kind == "digest":
        parts = [b"\r\n" + message(rng, depth + 1) for _ in range(rng.randint(1, 3))]
    else:
        parts = [text_part(rng)]
        for _ in range(rng.randint(1, 4)):
            parts.append(rng.choice([file_part, text_part, lambda rng: message_part(rng, depth), lambda rng: message_part(rng, depth)])(rng))
    head = f"Content-Type: multipart/{kind}; boundary=\"{boundary}\"\r\n\r\n".encode()
    lines = rng.choice([b"", b"This is a message in several parts.\r\n"])
    for part in parts:
        lines += f"--{boundary}\r\n".encode() + part + b"\r\n"
    return head + lines + f"--{boundary}--\r\n".encode()


def message(rng, depth=0):
    charset = rng.choice(list(WORDS))
    lines = [f"From: {person(rng, charset)}"]
    lines.append("To: " + ", ".join(person(rng, charset) for _ in range(rng.randint(1, 3))))
    if rng.random() < 0.9:
        lines.append(f"Subject: {header_text(rng, charset)[0]}")
    date = rng.choice(list(DATES))
    if rng.random() < 0.9:
        lines.append(f"Date: {date}")
    lines.append("MIME-Version: 1.0")
    rng.shuffle(lines)
    return "\r\n".join(lines).encode() + b"\r\n" + content(rng, depth)


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def decoded(value):
    return squeezed(str(email.header.make_header(email.header.decode_header(value or ""))))


def people(message, header):
    pairs = email.utils.getaddresses(message.get_all(header, []))
    return [[decoded(name), address] for name, address in pairs if name or address]


def texts(part, found):
    """The texts to be read, those of attached mails among them, in order."""
    kind = part.get_content_type()
    if kind == "multipart/alternative":
        plain = [one for one in part.get_payload() if one.get_content_type() == "text/plain"]
        texts(plain[0], found)
    elif part.is_multipart():
        if kind == "message/rfc822":
            found.append("MAIL " + decoded(part.get_payload(0)["Subject"]))
        for one in part.get_payload():
            texts(one, found)
    elif kind == "text/plain":
        raw = part.get_payload(decode=True)
        found.append(squeezed(raw.decode(part.get_content_charset("us-ascii"), "replace")))
    return found


def attachments(part, found):
    for one in part.walk():
        name = one.get_filename()
        if one.get_content_maintype() == "application":
            found.append(decoded(email.utils.collapse_rfc2231_value(name)))
    return found


def case(seed):
    rng = random.Random(seed)
    raw = message(rng)
    parsed = email.message_from_bytes(raw, policy=email.policy.compat32)
    date = parsed["Date"]
    return {
        "kind": "mail",
        "seed": seed,
        "raw": base64.b64encode(raw).decode(),
        "from": people(parsed, "From"),
        "to": people(parsed, "To"),
        "subject": decoded(parsed["Subject"]),
        "date": DATES[date.strip()] if date is not None and date.strip() in DATES else None,
        "texts": texts(parsed, []),
        "files": attachments(parsed, []),
    }
