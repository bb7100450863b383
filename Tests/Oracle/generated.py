"""Databases whose schema and rows a seed determines."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hazard import NUMBERS, Hazard

_TYPES = ("", "INTEGER", "TEXT", "VARCHAR(9)", "REAL", "NUMERIC", "BLOB", "DECIMAL(10,2)", "BOOLEAN", "DATETIME")
_COLLATIONS = ("", "", "", " COLLATE NOCASE", " COLLATE RTRIM", " COLLATE BINARY")
_DEFAULTS = ("1.10", "'1e3'", "-1.50", "0x10", "x'00ff'", "NULL", "1e3", "9223372036854775807", "'it''s'", "TRUE", "-0.0")
_TEXTS = ("'a'", "'Ab '", "''", "'é'", "char(65279) || 'b'", "'1.50'", "char(0x1f600)", "'x' || char(0) || 'y'")


def generated_hazards(count: int, first: int = 0) -> Iterator[Hazard]:
    for seed in range(first, first + count):
        made = _Generator(random.Random(seed))
        yield Hazard(f"generated {seed}", made.script().encode(), settings=made.settings().encode())


class _Generator:
    def __init__(self, random: random.Random) -> None:
        self._random = random

    def _is(self, chance: float) -> bool:
        return self._random.random() < chance

    def settings(self) -> str:
        pick = self._random.choice
        return (
            f"PRAGMA page_size = {pick((512, 1024, 4096, 8192, 65536))}; PRAGMA encoding = '{pick(('UTF-8', 'UTF-16le', 'UTF-16be'))}';"
            f"PRAGMA auto_vacuum = {pick(('NONE', 'NONE', 'FULL', 'INCREMENTAL'))}; PRAGMA secure_delete = {pick((0, 1))};"
        )

    def script(self) -> str:
        lines = [line for number in range(self._random.randint(1, 4)) for line in self._table(f"t{number}")]
        if self._is(0.2):
            module = self._random.choice(("fts3(body)", "fts4(body, tokenize=porter)", "fts5(body, prefix=2)"))
            lines.append(f"CREATE VIRTUAL TABLE words USING {module}")
            lines.append(f"{self._numbers(80)} INSERT INTO words(body) SELECT 'word ' || i || ' of ' || (i % 9) FROM n")
        if self._is(0.1):
            lines.append("CREATE VIRTUAL TABLE places USING rtree(id, x, y)")
            lines.append(f"{self._numbers(200)} INSERT INTO places SELECT i, i % 17, i % 17 + 1 FROM n")
        if self._is(0.3):
            lines.append("CREATE VIEW seen AS SELECT * FROM t0")
            lines.append("CREATE TRIGGER told AFTER DELETE ON t0 BEGIN SELECT 1; END")
        if self._is(0.2):
            lines.append("ANALYZE")
        lines.append(f"PRAGMA user_version = {self._random.randint(0, 99)}")
        return ";\n".join(lines) + ";"

    def _numbers(self, most: int) -> str:
        return (NUMBERS % self._random.randint(1, most)).decode()

    def _table(self, name: str) -> Iterator[str]:
        pick = self._random.choice
        kind = pick(("rows", "rows", "alias", "counted", "keyed", "keyed"))
        columns = [f"c{place} {pick(_TYPES)}{pick(_COLLATIONS)}" for place in range(self._random.randint(2, 6))]
        if kind in ("alias", "counted"):
            columns[0] = "c0 INTEGER PRIMARY KEY" + (" AUTOINCREMENT" if kind == "counted" else "")
        count = len(columns)
        if self._is(0.25):
            columns.append(f"made AS ({pick(('c1 || c0', 'length(c1)', 'c1 IS NULL'))}) {pick(('STORED', 'VIRTUAL'))}")
        if self._is(0.2) and kind != "keyed":
            columns.append("UNIQUE(c1, c0)")
        if kind == "keyed":
            key = self._random.sample(range(count), self._random.randint(1, 2))
            columns.append("PRIMARY KEY(" + ", ".join(f"c{k}{pick(_COLLATIONS)}{pick(('', ' DESC'))}" for k in key) + ")")
        yield f"CREATE TABLE {name}({', '.join(columns)})" + (" WITHOUT ROWID" if kind == "keyed" else "")
        yield from self._indexes(name, count)
        names = ", ".join(f"c{place}" for place in range(count))
        for _ in range(self._random.randint(1, 3)):
            start = self._random.randint(-500, 500)
            values = ", ".join(self._value(place, start, kind) for place in range(count))
            yield f"{self._numbers(pick((3, 50, 400)))} INSERT OR IGNORE INTO {name}({names}) SELECT {values} FROM n"
        if self._is(0.4):
            yield f"DELETE FROM {name} WHERE {pick(('length(c1) > 5', 'c0 % 3 = 0', 'c1 IS NULL'))}"
        if self._is(0.4) and kind != "keyed":
            # The rows are shorter than the table from now on.
            default = pick(_DEFAULTS)
            yield f"ALTER TABLE {name} ADD COLUMN later {pick(_TYPES)} DEFAULT {default}"
        if self._is(0.2):
            yield f"CREATE TABLE gone(a); INSERT INTO gone SELECT zeroblob(90000); DROP TABLE gone"

    def _value(self, place: int, start: int, kind: str) -> str:
        pick = self._random.choice
        if place == 0 and kind != "rows":
            return f"{start} + i * {pick((1, 3, 70000))}"
        return pick((
            f"i * {start}", f"i / {pick((2, 7))}.0", "NULL", f"{pick(_TEXTS)} || i", pick(_TEXTS), "zeroblob(i % 40)",
            f"randomblob({pick((3, 200, 3000))})", "hex(randomblob(i % 300))", "i % 2", "-9223372036854775808 + i", "1e300 * i",
            "'text ' || (i % 50)",
        ))  # fmt: skip

    def _indexes(self, name: str, count: int) -> Iterator[str]:
        pick = self._random.choice
        for number in range(self._random.randint(0, 3)):
            parts = ", ".join(
                pick((f"c{place}", f"c{place} DESC", f"c{place} COLLATE NOCASE", f"abs(length(c{place}))"))
                for place in self._random.sample(range(count), self._random.randint(1, min(2, count)))
            )
            where = pick(("", "", f" WHERE c{self._random.randrange(count)} IS NOT NULL"))
            yield f"CREATE INDEX {name}_{number} ON {name}({parts}){where}"
