"""Names as old apps have them: in eight encodings, with what needs quoting, and pairs that are easily taken for one."""

from __future__ import annotations

# Each in the encoding that an app of the time and place would have written into its SQL.
ENCODED: dict[str, bytes] = {
    "utf-8": "姓名é".encode(),
    "latin-1": "prénom".encode("latin-1"),
    "cp1252": "prix €“”".encode("cp1252"),
    "gbk": "姓名".encode("gbk"),
    # The second byte of the first character is a backslash, as in Big5's below.
    "shift-jis": "表示".encode("shift-jis"),
    "euc-kr": "이름".encode("euc-kr"),
    "big5": "功能".encode("big5"),
    "koi8-r": "имя".encode("koi8-r"),
}

INVALID: dict[str, bytes] = {
    "lone ff": b"t\xff",
    "only ff": b"\xff",
    "overlong": b"a\xc0\x80b",
    "surrogate": b"a\xed\xa0\x80",
    "cut-off": b"a\xe5\xa7",
    "beyond": b"a\xf5\x80\x80\x80",
    "mixed": b"\xe5\xa7\x93\xd0\xd5\"'`]\xff",
}

AWKWARD: dict[str, bytes] = {
    "empty": b"",
    "blank": b" ",
    "controls": bytes(range(1, 32)) + b"\x7f",
    "quote": b'a"b',
    "only-quotes": b'""',
    "apostrophe": b"a'b",
    "backtick": b"a`b",
    "brackets": b"a[b]c]",
    "percent": b"100%s%n%d%@",
    "newline": b"line\nbreak\r\n",
    "comment": b"a--b /* c */ ;",
    "keyword": b"select",
    "rowid": b"rowid",
    "literal": b"NULL",
    "number": b"1e5",
    "parameter": b"?1 :a @b $c",
    "backslash": b"a\\nb\\",
    "slash": b"../a/b",
    "mark": b"\xef\xbb\xbfa",
    "replacement": b"\xef\xbf\xbd",
    "noncharacter": "a\uffff\ufdd0".encode(),
    "bidirectional": "a\u202e\u2066b\u200b".encode(),
    "emoji": "👩‍👩‍👧‍👦".encode(),
    "decomposed": b"e\xcc\x81",
    "long": b"n" * 3000 + "é".encode() * 3000,
    "long-invalid": b"n" * 3000 + b"\xe9" * 3000,
}

# Two names that SQLite takes for different ones.
PAIRS: dict[str, tuple[bytes, bytes]] = {
    "repaired": (b"t\xff", b"t\xef\xbf\xbd"),
    "repaired-first": (b"t\xef\xbf\xbd", b"t\xff"),
    "both-invalid": (b"t\xfe", b"t\xff"),
    "cut-off": (b"t\xe5\xa7", b"t\xe5"),
    "canonical": (b"caf\xc3\xa9", b"cafe\xcc\x81"),
    "singleton": ("\u2126".encode(), "\u03a9".encode()),
    "case": ("É".encode(), "é".encode()),
    "case-invalid": (b"\xc9t\xe9", b"\xe9t\xe9"),
    "kelvin": ("\u212a".encode(), b"k"),
    "long s": ("\u017f".encode(), b"s"),
    "blank": (b"t", b"t "),
    "control": (b"t", b"t\x01"),
    "empty": (b"", b" "),
}


def is_text(name: bytes) -> bool:
    """Whether a name is valid UTF-8, so that nothing may be refused for it."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
