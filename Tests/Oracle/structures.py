"""Hazards of structure: values, keys, encodings, logs, journals, modules and texts of the schema."""

from __future__ import annotations

from collections.abc import Iterator

import names
from engine import quoted
from hazard import NUMBERS, Hazard, filled, schema_text
from named import COLUMNS, OBJECTS

_WIDE = 1990


def _wide(last: bytes, tail: bytes = b"") -> bytes:
    columns = b", ".join(b"c%d" % place for place in range(_WIDE)) + b", " + quoted(last) + tail
    return (
        b"CREATE TABLE w(%s); INSERT INTO w(rowid, c0, c1500, %s) VALUES (7, 'first', 2, 'last'), (3, 1, NULL, "
        b"'other');" % (columns, quoted(last))
    )


_ROWS = b"CREATE TABLE t(a, b TEXT); INSERT INTO t(rowid, a, b) VALUES (4, 1, 'x'), (8, 2, 'y');"


def structure_hazards() -> Iterator[Hazard]:
    many = NUMBERS % 400
    yield Hazard("nothing but the target", b"")
    for size in (512, 1024, 8192, 65536):
        yield Hazard(
            f"pages of {size} bytes",
            b"CREATE TABLE t(a, b); CREATE INDEX i ON t(b); %s INSERT INTO t SELECT i, hex(zeroblob(i * 7)) FROM n;"
            % many,
            settings=b"PRAGMA page_size = %d;" % size,
        )
    for encoding in (b"UTF-16le", b"UTF-16be"):
        for label in ("utf-8", "emoji", "decomposed", "controls", "quote", "bidirectional"):
            name = (names.ENCODED | names.AWKWARD)[label]
            script = b"".join(filled(COLUMNS[kind].replace(b" t", b" t%d" % place), N=name)
                              for place, kind in enumerate(("column, no key", "column is the key")))  # fmt: skip
            settings = b"PRAGMA encoding = '%s';" % encoding
            yield Hazard(f"{encoding.decode()}: {label}", script, (name,), settings)
            yield Hazard(f"{encoding.decode()}, table: {label}", filled(OBJECTS["table"], N=name), (), settings)
    for last in (b"last", b"\xe9t\xe9"):
        refused = not names.is_text(last)
        yield Hazard(f"{_WIDE} columns: {last!r}", _wide(last), may_be_refused=refused)
        yield Hazard(f"{_WIDE} columns and UNIQUE: {last!r}", _wide(last, b" UNIQUE"), may_be_refused=refused)
    for mode in (b"FULL", b"INCREMENTAL"):
        yield Hazard(
            f"auto_vacuum {mode.decode()}",
            b"CREATE TABLE t(a, b); %s INSERT INTO t SELECT i, zeroblob(900) FROM n; DELETE FROM t WHERE a %% 3 > 0;"
            % many,
            settings=b"PRAGMA auto_vacuum = %s;" % mode,
        )
    for label, name in (("plain", b"name"), ("utf-8", "姓名".encode()), ("gbk", "姓名".encode("gbk"))):
        refused = not names.is_text(name)
        script = filled(COLUMNS["column, no key"], N=name)
        more = filled(
            b"PRAGMA wal_autocheckpoint = 0; INSERT INTO t(N, age) VALUES ('in the log', 1); "
            b"DELETE FROM t WHERE age = 30;",
            N=name,
        )
        yield Hazard(
            f"log: {label}",
            script,
            (name,),
            afterwards=b"PRAGMA journal_mode = WAL;",
            live=more,
            may_be_refused=refused,
        )
        yield Hazard(
            f"whole database in the log: {label}", b"", (name,), afterwards=b"PRAGMA journal_mode = WAL;",
            live=b"PRAGMA wal_autocheckpoint = 0;" + script + more, may_be_refused=refused,
        )  # fmt: skip
        yield Hazard(
            f"hot journal: {label}",
            filled(b"CREATE TABLE t(N, a); %s INSERT INTO t SELECT 'row ' || i, zeroblob(500) FROM n;" % many, N=name),
            live=filled(b"PRAGMA cache_size = 1; BEGIN; UPDATE t SET N = 'changed'; "
            b"DELETE FROM t WHERE rowid > 50;", N=name),
            may_be_refused=refused,
        )  # fmt: skip
    yield Hazard(
        "values of every kind",
        b"""CREATE TABLE t(a, i INTEGER, r REAL, t TEXT, n NUMERIC, b BLOB);
        INSERT INTO t VALUES (NULL, '1x', '2x', 3, '1e5x', 'text'), (1e999, -1e999, 3, 4.0, '0100', 5), (-0.0,
        -0.0, -0.0, -0.0, -0.0, -0.0),
        (9223372036854775807, -9223372036854775808, 9007199254740993, 1.0, 1.5, 0), ('', x'', '', '', '', ''),
        (CAST(x'610062' AS TEXT), x'610062', 0.1, CAST(x'ff80c0' AS TEXT), 1e300, CAST(x'c328' AS TEXT)), (4.0,
        4.0, 4, 4, 4.0, 4.0);
        CREATE TABLE u AS SELECT * FROM t; CREATE INDEX i ON t(r, i);
        CREATE TABLE w(r REAL PRIMARY KEY, t) WITHOUT ROWID;
        INSERT OR IGNORE INTO w SELECT r, t FROM t WHERE r IS NOT NULL;""",
    )
    yield Hazard(
        "rowids",
        b"""CREATE TABLE t(a); INSERT INTO t(rowid, a) VALUES (-9223372036854775808, 1), (-1, 2), (0, 3),
        (9223372036854775807, 4);
        CREATE TABLE u(a UNIQUE); INSERT INTO u(rowid, a) SELECT rowid, 9 - a FROM t;
        CREATE TABLE g(a, b AS (a + 1) UNIQUE);
        INSERT INTO g(rowid, a) SELECT rowid, a FROM t;""",
    )
    yield Hazard(
        "every name of the rowid is taken",
        b"""CREATE TABLE t(rowid, _rowid_, oid); INSERT INTO t VALUES (1, 2, 3), (4, 5, 6), (7, 8, 9);
        DELETE FROM t WHERE oid = 6;
        CREATE TABLE u(rowid TEXT, _rowid_ UNIQUE, oid);
        INSERT INTO u VALUES ('a', 2, 3), ('b', 5, 6), ('c', 8, 9); DELETE FROM u WHERE oid = 6;
        CREATE TABLE g(rowid, a AS (rowid || 'x') UNIQUE, OID, _ROWID_); INSERT INTO g VALUES (1, 2, 3), (4, 5, 6);
        DELETE FROM g WHERE rowid = 1;""",
        (b"oid", b"ROWID", b"_rowid_"),
    )  # fmt: skip
    for name in (
        b"main",
        b"temp",
        b"legacy",
        b"source",
        b"original",
        b"copy",
        b"target",
        b"plain",
        b"plaintext",
        b"encrypted",
        b"t.a",
        b"sqlite",
    ):
        yield Hazard(
            f"table called {name.decode()}", filled(OBJECTS["table"] + COLUMNS["column is the key"], N=name), (name,)
        )
    yield Hazard(
        "double quotes for text",
        b"""CREATE TABLE t(a CHECK (a <> "text"), b DEFAULT "text", c); INSERT INTO t(a, c) VALUES (1, 'text'), (2, 3);
        CREATE INDEX i ON t(a) WHERE c = "text"; CREATE INDEX j ON t(c || "text");
        CREATE VIEW v AS SELECT "text" AS x FROM t;
        CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET c = "text"; END;
        CREATE TABLE g(a, b AS (a || "text") UNIQUE); INSERT INTO g VALUES (1), (2);""",
    )
    yield Hazard("legacy format and DESC", b"CREATE TABLE t(a, b); CREATE INDEX i ON t(a DESC); "
    b"INSERT INTO t VALUES (1, 2), (3, 4);",
                 settings=b"PRAGMA legacy_file_format = ON; VACUUM;")  # fmt: skip
    yield Hazard("default cache size", _ROWS, settings=b"PRAGMA default_cache_size = 333;")
    yield Hazard(
        "counters",
        b"""CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a); INSERT INTO t(a) VALUES (1), (2), (3);
        DELETE FROM t WHERE id > 1;
        CREATE TABLE u(id INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE v(id INTEGER PRIMARY KEY AUTOINCREMENT);
        INSERT INTO v VALUES (10);
        UPDATE sqlite_sequence SET seq = 'not a number' WHERE name = 'v';
        INSERT INTO sqlite_sequence VALUES ('gone', 55), ('t', 99), (NULL, NULL), (x'ff', 2);""",
    )  # fmt: skip
    yield Hazard(
        "statistics",
        b"""CREATE TABLE t(a, b); CREATE INDEX i ON t(a); CREATE INDEX j ON t(b, a);
        %s INSERT INTO t SELECT i, i %% 9 FROM n; ANALYZE;
        INSERT INTO sqlite_stat1 VALUES ('gone', 'gone', '5 5'), (NULL, NULL, NULL), (CAST(x'ff' AS TEXT), 'i',
        'unordered');"""
        % many,
    )
    yield Hazard(
        "rows that break their constraints",
        b"""PRAGMA ignore_check_constraints = ON; CREATE TABLE t(a CHECK (a > 5), b NOT NULL, c REFERENCES gone(x));
        INSERT INTO t VALUES (1, 2, 3), (9, 9, 9); CREATE TABLE s(a INTEGER CHECK (a > 5)) STRICT;
        INSERT INTO s VALUES (1);""",
    )
    yield Hazard("NULL in a NOT NULL column", b"CREATE TABLE t(a, b); INSERT INTO t VALUES (NULL, 1), (2, NULL);",
                 afterwards=schema_text(b"(a, b)", b"(a NOT NULL, b NOT NULL)"))  # fmt: skip
    yield Hazard(
        "views and triggers that do not work",
        _ROWS + b"""CREATE VIEW v AS SELECT nowhere(a), gone FROM missing;
        CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO missing VALUES (1); END;
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
        b"""CREATE TABLE t(a, b); CREATE VIRTUAL TABLE f USING fts4(content="t", a, b);
        %s INSERT INTO t(rowid, a) SELECT i * 3, 'word' || i FROM n;
        INSERT INTO f(docid, a) SELECT rowid, a FROM t; CREATE VIRTUAL TABLE g USING fts3(a);
        INSERT INTO g SELECT a FROM t; DELETE FROM g WHERE rowid < 9;
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
        yield Hazard(f"schema text with {label}", _ROWS, afterwards=schema_text(old, new),
                     may_be_refused=not names.is_text(new) or label == "an end",
                     may_be_unalterable=label in ("a tab", "a line"))  # fmt: skip
    yield Hazard(
        "long chains of pages",
        b"""CREATE TABLE t(id INTEGER PRIMARY KEY, b, c);
        %s INSERT INTO t SELECT i, hex(zeroblob(i * 40)), zeroblob(i * 90) FROM n;
        CREATE INDEX i ON t(b); CREATE TABLE w(a, b, PRIMARY KEY(b, a)) WITHOUT ROWID;
        INSERT INTO w SELECT id, b FROM t;
        DELETE FROM t WHERE id %% 3 = 0;"""
        % (NUMBERS % 120),
        settings=b"PRAGMA page_size = 512;",
    )
    yield Hazard(
        "many tables",
        b"".join(filled(b"CREATE TABLE N(N, a UNIQUE); "
        b"INSERT INTO N VALUES ('x', %d);" % place, N=b"\xd0%c" % (0x80 + place))
                 for place in range(64)),
        may_be_refused=False,
    )  # fmt: skip
