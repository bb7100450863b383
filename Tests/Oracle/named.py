"""Hazards of names: one name or two in every kind of schema object."""

from __future__ import annotations

from collections.abc import Iterator

import names
from hazard import Hazard, filled

# MARK: One name, N, in every kind of object

COLUMNS: dict[str, bytes] = {
    "column, no key": b"CREATE TABLE t(N TEXT, age INT); "
    b"INSERT INTO t VALUES ('Anna', 30), (NULL, 31), (x'00ff', 'x');",
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
    "column and constraints": b"""CREATE TABLE t(a, N NOT NULL, CONSTRAINT N CHECK (N <> 'z'),
        CONSTRAINT N UNIQUE (N, a));
        INSERT INTO t VALUES (1, 'a'), (2, 'b');""",
    "added column": b"""CREATE TABLE t(a); INSERT INTO t VALUES (1), (2);
        ALTER TABLE t ADD COLUMN N TEXT DEFAULT 'later'; INSERT INTO t VALUES (3, 'given');""",
}
OBJECTS: dict[str, bytes] = {
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
    "full-text table": b"CREATE VIRTUAL TABLE N USING fts4(a, other); "
    b"INSERT INTO N(rowid, other) VALUES (3, 'words here');",
    "full-text column": b"CREATE VIRTUAL TABLE s USING fts4(N, other); "
    b"INSERT INTO s(rowid, other) VALUES (3, 'words here');",
    "R*Tree": b"CREATE VIRTUAL TABLE r USING rtree(id, N, y); INSERT INTO r VALUES (3, 1.0, 2.0);",
}
# For the names that are not of another encoding.
_SHORT = (
    "column, no key",
    "column is the key",
    "column of generated ones",
    "table",
    "index",
    "view",
    "full-text column",
)


def name_hazards() -> Iterator[Hazard]:
    kinds = COLUMNS | OBJECTS
    for label, name in (names.ENCODED | names.INVALID | names.AWKWARD).items():
        for kind in kinds if label in names.ENCODED or label == "lone ff" else _SHORT:
            if (kind, label) in _IMPOSSIBLE:
                continue
            target = (name,) if kind in COLUMNS else ()
            yield Hazard(
                f"{kind}: {label}", filled(kinds[kind], N=name), target, may_be_refused=not names.is_text(name)
            )


# What SQLite itself does not make.
_IMPOSSIBLE = {("full-text column", "empty"), ("full-text column", "rowid")}


# MARK: Two names, A and B

_PAIRS: dict[str, bytes] = {
    "tables": b"""CREATE TABLE A(a, b); CREATE TABLE B(a, b); INSERT INTO A VALUES (1, 'first');
        INSERT INTO B VALUES (2, 'second'), (3, 'third');""",
    "tables of other rowids": b"""CREATE TABLE A(a, b); CREATE TABLE B(a, b);
        INSERT INTO A(rowid, a) VALUES (1, 'first');
        INSERT INTO B(rowid, a) VALUES (12, 'second'), (13, 'third');""",
    "tables, one empty": b"""CREATE TABLE A(a PRIMARY KEY, b); CREATE TABLE B(a PRIMARY KEY, b);
        INSERT INTO A(rowid, a) VALUES (1, 'first');""",
    "tables WITHOUT ROWID": b"""CREATE TABLE A(a PRIMARY KEY, b) WITHOUT ROWID;
        CREATE TABLE B(a PRIMARY KEY, b) WITHOUT ROWID;
        INSERT INTO A VALUES (1, 'first'); INSERT INTO B VALUES (2, 'second');""",
    "columns": b"""CREATE TABLE t(A, B); INSERT INTO t VALUES ('first', 'second'), (1, 2);
        CREATE TABLE k(id INTEGER PRIMARY KEY, A, B); INSERT INTO k VALUES (4, 'first', 'second');
        CREATE INDEX i ON k(A); CREATE INDEX j ON k(B);""",
    "indexes": b"""CREATE TABLE base(a, b); CREATE INDEX A ON base(a); CREATE INDEX B ON base(b);
        INSERT INTO base VALUES (1, 2), (3, 4);""",
    "indexes beside an integer key": b"""CREATE TABLE base(id INTEGER PRIMARY KEY, a, b); CREATE INDEX A ON base(a);
        INSERT INTO base VALUES (1, 'a', 'b'), (3, 'c', 'd'); CREATE TABLE other(a, b UNIQUE, c AS (a || b));
        CREATE INDEX B ON other(c) WHERE a > 0; INSERT INTO other VALUES (1, 2), (3, 4);""",
    "views and triggers": b"""CREATE TABLE base(a, b); CREATE VIEW A AS SELECT a FROM base;
        CREATE VIEW B AS SELECT b FROM base;
        INSERT INTO base VALUES (1, 2); CREATE TABLE log(a);
        CREATE TRIGGER A AFTER DELETE ON base BEGIN DELETE FROM log; END;
        CREATE TRIGGER B AFTER INSERT ON base BEGIN DELETE FROM log; END;""",
    "full-text tables": b"""CREATE VIRTUAL TABLE A USING fts4(a); CREATE VIRTUAL TABLE B USING fts4(a);
        INSERT INTO A(rowid, a) VALUES (1, 'first'); INSERT INTO B(rowid, a) VALUES (2, 'second');""",
}


def pair_hazards() -> Iterator[Hazard]:
    for label, (first, second) in names.PAIRS.items():
        for kind, script in _PAIRS.items():
            if (kind, label) not in {("full-text tables", "empty")}:
                yield Hazard(
                    f"two {kind}: {label}",
                    filled(script, A=first, B=second),
                    (first, second) if kind == "columns" else (),
                    may_be_refused=not (names.is_text(first) and names.is_text(second)),
                )


def collation_hazards() -> Iterator[Hazard]:
    """An app's own collation, which the command line does not have."""
    for label, name in (names.ENCODED | {"lone ff": b"t\xff"}).items():
        script = b"CREATE TABLE t(a COLLATE N, b); CREATE INDEX i ON t(a); INSERT INTO t VALUES ('x', 1), ('y', 2);"
        yield Hazard(f"collation: {label}", filled(script, N=name), may_be_refused=True, collations=(name,))
