"""Databases that are easily copied wrongly, each made of statements in bytes, plaintext and encrypted alike."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import names
from engine import Database, Key, quoted

# Every hazard has this table too, which the migration builds anew; it has further columns by the hazard's names.
TARGET = b"oracle_target"


@dataclass(frozen=True)
class Hazard:
    """A database by the statements that make it."""

    name: str
    script: bytes
    # The columns of the table that the migration builds anew, besides its own.
    target_columns: tuple[bytes, ...] = ()
    # What comes before the first table: page size, encoding.
    settings: bytes = b""
    # What a second connection does, which has read the schema that the script made.
    afterwards: bytes = b""
    # What is done last, before the files are taken under an open connection: a live log, a hot journal.
    live: bytes = b""
    # Whether it may be refused: a name is not valid UTF-8, or the rows themselves are not what the schema says.
    may_be_refused: bool = False
    collations: tuple[bytes, ...] = ()

    def make(self, path: Path, key: Key | None = None) -> None:
        """Writes the database as a killed app leaves it, with its -wal or its -journal."""
        with tempfile.TemporaryDirectory() as workshop:
            file = Path(workshop) / "app.db"
            with self._open(file, key) as database:
                # SQLCipher has page sizes of its own.
                settings = self.settings if key is None else re.sub(rb"PRAGMA page_size = \d+;", b"", self.settings)
                database.run(settings + b"PRAGMA user_version = 1; PRAGMA application_id = 77;")
                database.run(self._target() + self.script)
            with self._open(file, key) as database:
                database.run(self.afterwards)
            with self._open(file, key) as database:
                database.run(self.live)
                for ending in ("", "-wal", "-journal"):
                    if (made := file.with_name(file.name + ending)).exists():
                        shutil.copyfile(made, path.with_name(path.name + ending))

    def _open(self, file: Path, key: Key | None) -> Database:
        database = Database(str(file), key)
        database.run(b"PRAGMA synchronous = OFF;")
        for collation in self.collations:
            database.add_collation(collation)
        return database

    def _target(self) -> bytes:
        columns = b"".join(b", %s TEXT" % quoted(name) for name in self.target_columns)
        values = b"".join(b", 'value %d'" % place for place in range(len(self.target_columns)))
        return (
            b"CREATE TABLE oracle_target(id INTEGER PRIMARY KEY, note TEXT, amount INTEGER%s);" % columns
            + b"INSERT INTO oracle_target VALUES (1, 'one', 10%s), (5, 'five', NULL%s);" % (values, values)
        )


def all_hazards() -> list[Hazard]:
    hazards = [*_names(), *_pairs(), *_collations(), *_structures(), *_damaged_indexes()]
    assert len({hazard.name for hazard in hazards}) == len(hazards)
    return hazards


def _filled(script: bytes, **given: bytes) -> bytes:
    """The script with names, in quotes, in the places of the capital letters that stand alone."""
    return re.sub(rb"\b[%s]\b" % "".join(given).encode(), lambda place: quoted(given[place[0].decode()]), script)


# MARK: One name, N, in every kind of object

_COLUMNS: dict[str, bytes] = {
    "column, no key": b"CREATE TABLE t(N TEXT, age INT); INSERT INTO t VALUES ('Anna', 30), (NULL, 31), (x'00ff', 'x');",
    "column, integer key": b"""CREATE TABLE t(id INTEGER PRIMARY KEY, N, age);
        INSERT INTO t VALUES (3, 'a', 1), (9, 'b', 2);""",
    "column is the rowid": b"CREATE TABLE t(a, N INTEGER PRIMARY KEY); INSERT INTO t VALUES ('a', 7), ('b', 70);",
    "column is the key": b"""CREATE TABLE t(N TEXT PRIMARY KEY, a);
        INSERT INTO t(rowid, N, a) VALUES (5, 'a', 1), (2, 'b', 2);""",
    "column, WITHOUT ROWID": b"""CREATE TABLE t(a, N TEXT, b, PRIMARY KEY(N DESC, a)) WITHOUT ROWID;
        INSERT INTO t VALUES (1, 'x', 2), (2, 'y', 3), (3, 'x', 4);""",
    "indexed column": b"""CREATE TABLE t(a, N); CREATE INDEX i ON t(N, a); CREATE UNIQUE INDEX u ON t(a);
        INSERT INTO t(rowid, a, N) VALUES (10, 1, 'x'), (20, 2, 'y'), (30, 3, NULL);""",
    "column in expressions": b"""CREATE TABLE t(a, N); CREATE INDEX i ON t(a) WHERE N > 5;
        CREATE INDEX j ON t(N + 1, length(N)); INSERT INTO t VALUES (1, 4), (2, 6), (3, 7);""",
    "column of generated ones": b"""CREATE TABLE t(N TEXT, v AS (N || '!'), s AS (length(N)) STORED, UNIQUE(v, s));
        INSERT INTO t VALUES ('Anna'), ('Bo'), ('');""",
    "generated column": b"""CREATE TABLE t(a, N AS (a * 2) STORED UNIQUE, v AS (a * 3));
        INSERT INTO t VALUES (1), (2), (40);""",
    "column and constraints": b"""CREATE TABLE t(a, N NOT NULL, CONSTRAINT N CHECK (N <> 'z'), CONSTRAINT N UNIQUE (N, a));
        INSERT INTO t VALUES (1, 'a'), (2, 'b');""",
    "added column": b"""CREATE TABLE t(a); INSERT INTO t VALUES (1), (2);
        ALTER TABLE t ADD COLUMN N TEXT DEFAULT 'later'; INSERT INTO t VALUES (3, 'given');""",
}
_OBJECTS: dict[str, bytes] = {
    "table": b"CREATE TABLE N(a, b TEXT); INSERT INTO N(rowid, a, b) VALUES (4, 1, 'x'), (8, 2, 'y');",
    "table WITHOUT ROWID": b"CREATE TABLE N(a PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO N VALUES (1, 'x'), (2, 'y');",
    "counted table": b"""CREATE TABLE N(id INTEGER PRIMARY KEY AUTOINCREMENT, N); INSERT INTO N(N) VALUES ('a'), ('b');
        DELETE FROM N WHERE rowid = 2; CREATE INDEX i ON N(N); ANALYZE;""",
    "index": b"""CREATE TABLE t(a, b UNIQUE); CREATE INDEX N ON t(a); INSERT INTO t VALUES (1, 2), (3, 4);""",
    "view": b"CREATE TABLE t(N, b); CREATE VIEW N AS SELECT t.N AS N, b AS c FROM t; INSERT INTO t VALUES (1, 2);",
    "trigger": b"""CREATE TABLE t(N, b); CREATE TABLE log(N); INSERT INTO t VALUES (1, 2);
        CREATE TRIGGER N AFTER UPDATE OF N ON t WHEN new.N > 3 BEGIN INSERT INTO log(N) VALUES (old.N); END;
        UPDATE t SET b = 3; UPDATE t SET N = 9;""",
    "reference": b"""CREATE TABLE N(N INTEGER PRIMARY KEY); CREATE TABLE t(a REFERENCES N(N), b);
        INSERT INTO N VALUES (3); INSERT INTO t VALUES (3, 'x'), (99, 'dangling');""",
    "type": b"CREATE TABLE t(a N, b N DEFAULT 5); INSERT INTO t(a) VALUES ('1'), (2.0), (x'31');",
    "default": b"CREATE TABLE t(a, b DEFAULT N, UNIQUE(b)); INSERT INTO t(a) VALUES (1);",
    "full-text table": b"CREATE VIRTUAL TABLE N USING fts4(a, other); INSERT INTO N(rowid, other) VALUES (3, 'words here');",
    "full-text column": b"CREATE VIRTUAL TABLE s USING fts4(N, other); INSERT INTO s(rowid, other) VALUES (3, 'words here');",
    "R*Tree": b"CREATE VIRTUAL TABLE r USING rtree(id, N, y); INSERT INTO r VALUES (3, 1.0, 2.0);",
}
# For the names that are not of another encoding.
_SHORT = ("column, no key", "column is the key", "column of generated ones", "table", "index", "view", "full-text column")


def _names() -> Iterator[Hazard]:
    kinds = _COLUMNS | _OBJECTS
    for label, name in (names.ENCODED | names.INVALID | names.AWKWARD).items():
        for kind in kinds if label in names.ENCODED or label == "lone ff" else _SHORT:
            if (kind, label) in _IMPOSSIBLE:
                continue
            target = (name,) if kind in _COLUMNS else ()
            yield Hazard(
                f"{kind}: {label}", _filled(kinds[kind], N=name), target, may_be_refused=not names.is_text(name)
            )


# What SQLite itself does not make.
_IMPOSSIBLE = {("full-text column", "empty"), ("full-text column", "rowid")}


# MARK: Two names, A and B

_PAIRS: dict[str, bytes] = {
    "tables": b"""CREATE TABLE A(a, b); CREATE TABLE B(a, b); INSERT INTO A VALUES (1, 'first');
        INSERT INTO B VALUES (2, 'second'), (3, 'third');""",
    "tables of other rowids": b"""CREATE TABLE A(a, b); CREATE TABLE B(a, b); INSERT INTO A(rowid, a) VALUES (1, 'first');
        INSERT INTO B(rowid, a) VALUES (12, 'second'), (13, 'third');""",
    "tables, one empty": b"""CREATE TABLE A(a PRIMARY KEY, b); CREATE TABLE B(a PRIMARY KEY, b); INSERT INTO A(rowid, a) VALUES (1, 'first');""",
    "tables WITHOUT ROWID": b"""CREATE TABLE A(a PRIMARY KEY, b) WITHOUT ROWID; CREATE TABLE B(a PRIMARY KEY, b) WITHOUT ROWID;
        INSERT INTO A VALUES (1, 'first'); INSERT INTO B VALUES (2, 'second');""",
    "columns": b"""CREATE TABLE t(A, B); INSERT INTO t VALUES ('first', 'second'), (1, 2);
        CREATE TABLE k(id INTEGER PRIMARY KEY, A, B); INSERT INTO k VALUES (4, 'first', 'second');
        CREATE INDEX i ON k(A); CREATE INDEX j ON k(B);""",
    "indexes": b"""CREATE TABLE base(a, b); CREATE INDEX A ON base(a); CREATE INDEX B ON base(b);
        INSERT INTO base VALUES (1, 2), (3, 4);""",
    "indexes beside an integer key": b"""CREATE TABLE base(id INTEGER PRIMARY KEY, a, b); CREATE INDEX A ON base(a);
        INSERT INTO base VALUES (1, 'a', 'b'), (3, 'c', 'd'); CREATE TABLE other(a, b UNIQUE, c AS (a || b));
        CREATE INDEX B ON other(c) WHERE a > 0; INSERT INTO other VALUES (1, 2), (3, 4);""",
    "views and triggers": b"""CREATE TABLE base(a, b); CREATE VIEW A AS SELECT a FROM base; CREATE VIEW B AS SELECT b FROM base;
        INSERT INTO base VALUES (1, 2); CREATE TABLE log(a); CREATE TRIGGER A AFTER DELETE ON base BEGIN DELETE FROM log; END;
        CREATE TRIGGER B AFTER INSERT ON base BEGIN DELETE FROM log; END;""",
    "full-text tables": b"""CREATE VIRTUAL TABLE A USING fts4(a); CREATE VIRTUAL TABLE B USING fts4(a);
        INSERT INTO A(rowid, a) VALUES (1, 'first'); INSERT INTO B(rowid, a) VALUES (2, 'second');""",
}


def _pairs() -> Iterator[Hazard]:
    for label, (first, second) in names.PAIRS.items():
        for kind, script in _PAIRS.items():
            if (kind, label) not in {("full-text tables", "empty")}:
                yield Hazard(
                    f"two {kind}: {label}",
                    _filled(script, A=first, B=second),
                    (first, second) if kind == "columns" else (),
                    may_be_refused=not (names.is_text(first) and names.is_text(second)),
                )


def _collations() -> Iterator[Hazard]:
    """An app's own collation, which the command line does not have."""
    for label, name in (names.ENCODED | {"lone ff": b"t\xff"}).items():
        script = b"CREATE TABLE t(a COLLATE N, b); CREATE INDEX i ON t(a); INSERT INTO t VALUES ('x', 1), ('y', 2);"
        yield Hazard(f"collation: {label}", _filled(script, N=name), may_be_refused=True, collations=(name,))


# MARK: Structures

_NUMBERS = b"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
_WIDE = 1990


def _wide(last: bytes, tail: bytes = b"") -> bytes:
    columns = b", ".join(b"c%d" % place for place in range(_WIDE)) + b", " + quoted(last) + tail
    return (
        b"CREATE TABLE w(%s); INSERT INTO w(rowid, c0, c1500, %s) VALUES (7, 'first', 2, 'last'), (3, 1, NULL, 'other');"
        % (columns, quoted(last))
    )


def _schema_text(old: bytes, new: bytes, name: bytes = b"t") -> bytes:
    """Writes a text into the schema table that SQLite itself would not have written."""
    return b"PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, x'%s', x'%s') WHERE name = '%s';" % (
        old.hex().encode(), new.hex().encode(), name,
    )  # fmt: skip


_ROWS = b"CREATE TABLE t(a, b TEXT); INSERT INTO t(rowid, a, b) VALUES (4, 1, 'x'), (8, 2, 'y');"


def _structures() -> Iterator[Hazard]:
    many = _NUMBERS % 400
    yield Hazard("nothing but the target", b"")
    for size in (512, 1024, 8192, 65536):
        yield Hazard(
            f"pages of {size} bytes",
            b"CREATE TABLE t(a, b); CREATE INDEX i ON t(b); %s INSERT INTO t SELECT i, hex(zeroblob(i * 7)) FROM n;" % many,
            settings=b"PRAGMA page_size = %d;" % size,
        )
    for encoding in (b"UTF-16le", b"UTF-16be"):
        for label in ("utf-8", "emoji", "decomposed", "controls", "quote", "bidirectional"):
            name = (names.ENCODED | names.AWKWARD)[label]
            script = b"".join(_filled(_COLUMNS[kind].replace(b" t", b" t%d" % place), N=name)
                              for place, kind in enumerate(("column, no key", "column is the key")))  # fmt: skip
            settings = b"PRAGMA encoding = '%s';" % encoding
            yield Hazard(f"{encoding.decode()}: {label}", script, (name,), settings)
            yield Hazard(f"{encoding.decode()}, table: {label}", _filled(_OBJECTS["table"], N=name), (), settings)
    for last in (b"last", b"\xe9t\xe9"):
        refused = not names.is_text(last)
        yield Hazard(f"{_WIDE} columns: {last!r}", _wide(last), may_be_refused=refused)
        yield Hazard(f"{_WIDE} columns and UNIQUE: {last!r}", _wide(last, b" UNIQUE"), may_be_refused=refused)
    for mode in (b"FULL", b"INCREMENTAL"):
        yield Hazard(
            f"auto_vacuum {mode.decode()}",
            b"CREATE TABLE t(a, b); %s INSERT INTO t SELECT i, zeroblob(900) FROM n; DELETE FROM t WHERE a %% 3 > 0;" % many,
            settings=b"PRAGMA auto_vacuum = %s;" % mode,
        )
    for label, name in (("plain", b"name"), ("utf-8", "姓名".encode()), ("gbk", "姓名".encode("gbk"))):
        refused = not names.is_text(name)
        script = _filled(_COLUMNS["column, no key"], N=name)
        more = _filled(b"PRAGMA wal_autocheckpoint = 0; INSERT INTO t(N, age) VALUES ('in the log', 1); DELETE FROM t WHERE age = 30;", N=name)
        yield Hazard(f"log: {label}", script, (name,), afterwards=b"PRAGMA journal_mode = WAL;", live=more, may_be_refused=refused)
        yield Hazard(
            f"whole database in the log: {label}", b"", (name,), afterwards=b"PRAGMA journal_mode = WAL;",
            live=b"PRAGMA wal_autocheckpoint = 0;" + script + more, may_be_refused=refused,
        )  # fmt: skip
        yield Hazard(
            f"hot journal: {label}",
            _filled(b"CREATE TABLE t(N, a); %s INSERT INTO t SELECT 'row ' || i, zeroblob(500) FROM n;" % many, N=name),
            live=_filled(b"PRAGMA cache_size = 1; BEGIN; UPDATE t SET N = 'changed'; DELETE FROM t WHERE rowid > 50;", N=name),
            may_be_refused=refused,
        )  # fmt: skip
    yield Hazard(
        "values of every kind",
        b"""CREATE TABLE t(a, i INTEGER, r REAL, t TEXT, n NUMERIC, b BLOB);
        INSERT INTO t VALUES (NULL, '1x', '2x', 3, '1e5x', 'text'), (1e999, -1e999, 3, 4.0, '0100', 5), (-0.0, -0.0, -0.0, -0.0, -0.0, -0.0),
        (9223372036854775807, -9223372036854775808, 9007199254740993, 1.0, 1.5, 0), ('', x'', '', '', '', ''),
        (CAST(x'610062' AS TEXT), x'610062', 0.1, CAST(x'ff80c0' AS TEXT), 1e300, CAST(x'c328' AS TEXT)), (4.0, 4.0, 4, 4, 4.0, 4.0);
        CREATE TABLE u AS SELECT * FROM t; CREATE INDEX i ON t(r, i); CREATE TABLE w(r REAL PRIMARY KEY, t) WITHOUT ROWID;
        INSERT OR IGNORE INTO w SELECT r, t FROM t WHERE r IS NOT NULL;""",
    )
    yield Hazard(
        "rowids",
        b"""CREATE TABLE t(a); INSERT INTO t(rowid, a) VALUES (-9223372036854775808, 1), (-1, 2), (0, 3), (9223372036854775807, 4);
        CREATE TABLE u(a UNIQUE); INSERT INTO u(rowid, a) SELECT rowid, 9 - a FROM t; CREATE TABLE g(a, b AS (a + 1) UNIQUE);
        INSERT INTO g(rowid, a) SELECT rowid, a FROM t;""",
    )
    yield Hazard(
        "every name of the rowid is taken",
        b"""CREATE TABLE t(rowid, _rowid_, oid); INSERT INTO t VALUES (1, 2, 3), (4, 5, 6), (7, 8, 9); DELETE FROM t WHERE oid = 6;
        CREATE TABLE u(rowid TEXT, _rowid_ UNIQUE, oid); INSERT INTO u VALUES ('a', 2, 3), ('b', 5, 6), ('c', 8, 9); DELETE FROM u WHERE oid = 6;
        CREATE TABLE g(rowid, a AS (rowid || 'x') UNIQUE, OID, _ROWID_); INSERT INTO g VALUES (1, 2, 3), (4, 5, 6); DELETE FROM g WHERE rowid = 1;""",
        (b"oid", b"ROWID", b"_rowid_"),
    )  # fmt: skip
    for name in (b"main", b"temp", b"legacy", b"source", b"original", b"copy", b"target", b"plain", b"plaintext", b"encrypted", b"t.a", b"sqlite"):
        yield Hazard(f"table called {name.decode()}", _filled(_OBJECTS["table"] + _COLUMNS["column is the key"], N=name), (name,))
    yield Hazard(
        "double quotes for text",
        b"""CREATE TABLE t(a CHECK (a <> "text"), b DEFAULT "text", c); INSERT INTO t(a, c) VALUES (1, 'text'), (2, 3);
        CREATE INDEX i ON t(a) WHERE c = "text"; CREATE INDEX j ON t(c || "text"); CREATE VIEW v AS SELECT "text" AS x FROM t;
        CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET c = "text"; END;
        CREATE TABLE g(a, b AS (a || "text") UNIQUE); INSERT INTO g VALUES (1), (2);""",
    )
    yield Hazard("legacy format and DESC", b"CREATE TABLE t(a, b); CREATE INDEX i ON t(a DESC); INSERT INTO t VALUES (1, 2), (3, 4);",
                 settings=b"PRAGMA legacy_file_format = ON; VACUUM;")  # fmt: skip
    yield Hazard("default cache size", _ROWS, settings=b"PRAGMA default_cache_size = 333;")
    yield Hazard(
        "counters",
        b"""CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a); INSERT INTO t(a) VALUES (1), (2), (3); DELETE FROM t WHERE id > 1;
        CREATE TABLE u(id INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE v(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO v VALUES (10);
        UPDATE sqlite_sequence SET seq = 'not a number' WHERE name = 'v';
        INSERT INTO sqlite_sequence VALUES ('gone', 55), ('t', 99), (NULL, NULL), (x'ff', 2);""",
    )  # fmt: skip
    yield Hazard(
        "statistics",
        b"""CREATE TABLE t(a, b); CREATE INDEX i ON t(a); CREATE INDEX j ON t(b, a); %s INSERT INTO t SELECT i, i %% 9 FROM n; ANALYZE;
        INSERT INTO sqlite_stat1 VALUES ('gone', 'gone', '5 5'), (NULL, NULL, NULL), (CAST(x'ff' AS TEXT), 'i', 'unordered');"""
        % many,
    )
    yield Hazard(
        "rows that break their constraints",
        b"""PRAGMA ignore_check_constraints = ON; CREATE TABLE t(a CHECK (a > 5), b NOT NULL, c REFERENCES gone(x));
        INSERT INTO t VALUES (1, 2, 3), (9, 9, 9); CREATE TABLE s(a INTEGER CHECK (a > 5)) STRICT; INSERT INTO s VALUES (1);""",
    )
    yield Hazard("NULL in a NOT NULL column", b"CREATE TABLE t(a, b); INSERT INTO t VALUES (NULL, 1), (2, NULL);",
                 afterwards=_schema_text(b"(a, b)", b"(a NOT NULL, b NOT NULL)"))  # fmt: skip
    yield Hazard(
        "views and triggers that do not work",
        _ROWS + b"""CREATE VIEW v AS SELECT nowhere(a), gone FROM missing; CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO missing VALUES (1); END;
        CREATE VIEW w AS SELECT * FROM v; CREATE TRIGGER s INSTEAD OF INSERT ON w BEGIN SELECT raise(ABORT, 'no'); END;
        CREATE TRIGGER b BEFORE INSERT ON t BEGIN SELECT raise(FAIL, 'never'); END;""",
    )  # fmt: skip
    yield Hazard(
        "a module that is not there",
        _ROWS + b"CREATE TABLE m_data(a); INSERT INTO m_data VALUES (5);",
        afterwards=b"""PRAGMA writable_schema = ON; INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql)
        VALUES ('table', 'm', 'm', 0, 'CREATE VIRTUAL TABLE m USING nobody(a, "b c")');""",
    )
    yield Hazard(
        "full text without its own content",
        b"""CREATE TABLE t(a, b); CREATE VIRTUAL TABLE f USING fts4(content="t", a, b); %s INSERT INTO t(rowid, a) SELECT i * 3, 'word' || i FROM n;
        INSERT INTO f(docid, a) SELECT rowid, a FROM t; CREATE VIRTUAL TABLE g USING fts3(a); INSERT INTO g SELECT a FROM t; DELETE FROM g WHERE rowid < 9;
        CREATE VIRTUAL TABLE r USING rtree(id, x, y); INSERT INTO r SELECT rowid, rowid, rowid + 1 FROM t;"""
        % many,
    )  # fmt: skip
    for label, old, new in (
        ("two blanks", b"CREATE TABLE", b"CREATE  TABLE"),
        ("a tab", b"CREATE TABLE", b"CREATE\tTABLE"),
        ("a line", b"CREATE TABLE", b"CREATE\n\r\x0cTABLE"),
        ("small letters", b"CREATE TABLE t", b"create table t"),
        ("comments", b"CREATE TABLE t(a", b"CREATE TABLE t/* " + b"\xff -- */ (--\xd0\xd5\n a"),
        ("an end", b"TEXT)", b"TEXT) ; -- \xff"),
        ("brackets", b"t(a, b TEXT", b"[t](`a`, 'b' TEXT"),
    ):
        yield Hazard(f"schema text with {label}", _ROWS, afterwards=_schema_text(old, new),
                     may_be_refused=not names.is_text(new) or label == "an end")  # fmt: skip
    yield Hazard(
        "long chains of pages",
        b"""CREATE TABLE t(id INTEGER PRIMARY KEY, b, c); %s INSERT INTO t SELECT i, hex(zeroblob(i * 40)), zeroblob(i * 90) FROM n;
        CREATE INDEX i ON t(b); CREATE TABLE w(a, b, PRIMARY KEY(b, a)) WITHOUT ROWID; INSERT INTO w SELECT id, b FROM t;
        DELETE FROM t WHERE id %% 3 = 0;"""
        % (_NUMBERS % 120),
        settings=b"PRAGMA page_size = 512;",
    )
    yield Hazard(
        "many tables",
        b"".join(_filled(b"CREATE TABLE N(N, a UNIQUE); INSERT INTO N VALUES ('x', %d);" % place, N=b"\xd0%c" % (0x80 + place))
                 for place in range(64)),
        may_be_refused=False,
    )  # fmt: skip


# MARK: Damaged indexes


def _damaged_indexes() -> Iterator[Hazard]:
    damage: dict[str, bytes] = {
        "entries missing": _NUMBERS % 100 + b"INSERT INTO d SELECT 'k' || (i + 1000), i + 1000, 'later' FROM n;",
        "entries without rows": b"DELETE FROM d WHERE b % 5 = 0;",
        "entries of other values": b"UPDATE d SET a = a || 'x', b = b + 5000 WHERE b % 7 = 0;",
        "keys twice": b"INSERT INTO d SELECT a, b, 'again' FROM d WHERE b < 4;",
    }
    # The table, the index's own statement where it has one, and whether it is UNIQUE.
    indexes: dict[str, tuple[bytes, bytes, bool]] = {
        "automatic index": (b"d(a TEXT UNIQUE, b INT, c)", b"", True),
        "automatic index of a key": (b"d(a TEXT, b INT, c, PRIMARY KEY(a))", b"", True),
        "index": (b"d(a TEXT, b INT, c)", b"CREATE INDEX di ON d(a, b)", False),
        "UNIQUE index": (b"d(a TEXT, b INT, c)", b"CREATE UNIQUE INDEX di ON d(b)", True),
        "UNIQUE index beside an integer key": (b"d(a TEXT, b INT, c, id INTEGER PRIMARY KEY)", b"CREATE UNIQUE INDEX di ON d(b)", True),
        "partial index": (b"d(a TEXT, b INT, c)", b"CREATE INDEX di ON d(a) WHERE b > 3", False),
        "expression index": (b"d(a TEXT, b INT, c)", b"CREATE INDEX di ON d(length(a) + b)", False),
    }
    for kind, (table, index, is_unique) in indexes.items():
        name = b"di" if index else b"sqlite_autoindex_d_1"
        bare = b"CREATE TABLE d(a TEXT, b INT, c%s)" % (b", id INTEGER PRIMARY KEY" if b" id " in table else b"")
        for label, statement in damage.items():
            if b" id " in table:
                statement = statement.replace(b"INTO d ", b"INTO d(a, b, c) ")
            yield Hazard(
                f"{kind}: {label}",
                b"CREATE TABLE %s; %s; %s INSERT INTO d%s SELECT 'k' || i, i, 'row' FROM n;"
                % (table, index, _NUMBERS % 300, b"(a, b, c)" if b" id " in table else b""),
                afterwards=_hidden(name, bare, b"CREATE TABLE " + table, statement),
                may_be_refused=is_unique and label == "keys twice",
            )
    for label, before, after in (
        ("collation", b"COLLATE NOCASE", b""),
        ("direction", b"DESC", b"ASC"),
        ("column", b"(a", b"(c, a"),
    ):
        yield Hazard(
            f"index after another {label}",
            b"CREATE TABLE d(a TEXT, b INT, c); CREATE INDEX di ON d(a %s, b); %s INSERT INTO d SELECT char(65 + i %% 26 + 32 * (i %% 2)) || i, i, i FROM n;"
            % (b"DESC" if label == "direction" else b"COLLATE NOCASE", _NUMBERS % 200),
            afterwards=_schema_text(before, after, b"di"),
        )  # fmt: skip
    yield Hazard(
        "key of a table WITHOUT ROWID after another collation",
        b"CREATE TABLE d(a TEXT COLLATE NOCASE PRIMARY KEY, b) WITHOUT ROWID; %s INSERT INTO d SELECT char(65 + i %% 26 + 32 * (i %% 2)) || i, i FROM n;"
        % (_NUMBERS % 200),
        afterwards=_schema_text(b"COLLATE NOCASE ", b"", b"d"),
        may_be_refused=True,
    )  # fmt: skip


def _hidden(index: bytes, bare: bytes, table: bytes, statement: bytes) -> bytes:
    """Runs a statement while SQLite does not know of an index."""
    return b"""PRAGMA writable_schema = ON; CREATE TEMP TABLE kept AS SELECT rowid AS place, * FROM sqlite_master WHERE name = '%s';
        DELETE FROM sqlite_master WHERE name = '%s'; UPDATE sqlite_master SET sql = '%s' WHERE name = 'd';
        PRAGMA writable_schema = RESET; %s; PRAGMA writable_schema = ON;
        INSERT INTO sqlite_master(rowid, type, name, tbl_name, rootpage, sql) SELECT place, type, name, tbl_name, rootpage, sql FROM kept;
        UPDATE sqlite_master SET sql = '%s' WHERE name = 'd'; PRAGMA writable_schema = RESET;""" % (
        index, index, bare, statement, table,
    )  # fmt: skip
