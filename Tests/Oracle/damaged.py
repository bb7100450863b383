"""Hazards of indexes that do not fit their tables."""

from __future__ import annotations

from collections.abc import Iterator

from hazard import NUMBERS, Hazard, schema_text


def damaged_index_hazards() -> Iterator[Hazard]:
    damage: dict[str, bytes] = {
        "entries missing": NUMBERS % 100 + b"INSERT INTO d SELECT 'k' || (i + 1000), i + 1000, 'later' FROM n;",
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
        "UNIQUE index beside an integer key": (
            b"d(a TEXT, b INT, c, id INTEGER PRIMARY KEY)",
            b"CREATE UNIQUE INDEX di ON d(b)",
            True,
        ),
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
                % (table, index, NUMBERS % 300, b"(a, b, c)" if b" id " in table else b""),
                afterwards=_hidden(name, bare, b"CREATE TABLE " + table, statement),
                may_be_refused=is_unique and label == "keys twice",
                may_lack_rows=label == "entries without rows",
            )
    for label, before, after in (
        ("collation", b"COLLATE NOCASE", b""),
        ("direction", b"DESC", b"ASC"),
        ("column", b"(a", b"(c, a"),
    ):
        yield Hazard(
            f"index after another {label}",
            b"CREATE TABLE d(a TEXT, b INT, c); CREATE INDEX di ON d(a %s, b); "
            b"%s INSERT INTO d SELECT char(65 + i %% 26 + 32 * (i %% 2)) || i, i, i FROM n;"
            % (b"DESC" if label == "direction" else b"COLLATE NOCASE", NUMBERS % 200),
            afterwards=schema_text(before, after, b"di"),
        )  # fmt: skip
    yield Hazard(
        "key of a table WITHOUT ROWID after another collation",
        b"CREATE TABLE d(a TEXT COLLATE NOCASE PRIMARY KEY, b) WITHOUT ROWID; "
        b"%s INSERT INTO d SELECT char(65 + i %% 26 + 32 * (i %% 2)) || i, i FROM n;"
        % (NUMBERS % 200),
        afterwards=schema_text(b"COLLATE NOCASE ", b"", b"d"),
        may_be_refused=True,
    )  # fmt: skip


def _hidden(index: bytes, bare: bytes, table: bytes, statement: bytes) -> bytes:
    """Runs a statement while SQLite does not know of an index."""
    return b"""PRAGMA writable_schema = ON;
        CREATE TEMP TABLE kept AS SELECT rowid AS place, * FROM sqlite_master WHERE name = '%s';
        DELETE FROM sqlite_master WHERE name = '%s'; UPDATE sqlite_master SET sql = '%s' WHERE name = 'd';
        PRAGMA writable_schema = RESET; %s; PRAGMA writable_schema = ON;
        INSERT INTO sqlite_master(rowid, type, name, tbl_name, rootpage, sql) SELECT place, type, name, tbl_name,
        rootpage, sql FROM kept;
        UPDATE sqlite_master SET sql = '%s' WHERE name = 'd'; PRAGMA writable_schema = RESET;""" % (
        index, index, bare, statement, table,
    )  # fmt: skip
