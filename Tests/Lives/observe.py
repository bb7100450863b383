"""What is on the disk, read without the store: Python's SQLite for plaintext, and the SQLCipher of sqlcipher3-binary.

Files are copied first, so that reading changes nothing, and a copy is recovered as the next connection would.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlcipher3 import dbapi2 as sqlcipher

HEADER = b"SQLite format 3\0"
OURS = ("cipherstore_",)


@dataclass(frozen=True)
class Key:
    """A raw key as x'…' or a passphrase, with its rounds."""

    text: str
    rounds: int | None = None


@dataclass
class Item:
    """A row of the table item."""

    id: int
    n: int
    mark: str | None
    body: bytes | None
    visits: int
    # Columns that came later.
    extra: dict[str, str | None]


@dataclass
class Content:
    """A database as plain SQL shows it."""

    key: Key | None
    user_version: int
    tables: dict[str, list[str]]
    objects: set[str]
    items: dict[str, Item]
    twice: list[str]
    steps: list[str]
    children: dict[str, str | None]
    audit: list[str]
    seeds: dict[str, list[tuple[int, str]]]
    launches: int
    history: list[tuple[str, str | None, str | None]]
    record: object
    complaints: list[str] = field(default_factory=list)

    @property
    def is_blank(self) -> bool:
        return "item" not in self.tables


class Unreadable(Exception):
    """The file is no database, or none that a known key opens."""


def copied(database: Path, scratch: Path) -> Path:
    """A copy of the database with its log or journal."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    for ending in ("", "-wal", "-journal"):
        source = database.with_name(database.name + ending)
        if source.exists():
            shutil.copyfile(source, scratch / source.name)
    return scratch / database.name


def is_plaintext(database: Path) -> bool | None:
    """None where there is nothing."""
    if not database.exists() or database.stat().st_size == 0:
        return None
    with database.open("rb") as file:
        return file.read(16) == HEADER


@contextlib.contextmanager
def connected(database: Path, key: Key | None) -> Iterator[sqlite3.Connection]:
    if key is None:
        connection = sqlite3.connect(database, isolation_level=None)
    else:
        connection = sqlcipher.connect(str(database), isolation_level=None)
        connection.execute("PRAGMA cipher_log_level = NONE")
        quoted = key.text.replace("'", "''")
        connection.execute(f"PRAGMA key = \"{key.text}\"" if key.rounds is None else f"PRAGMA key = '{quoted}'")
        if key.rounds is not None:
            connection.execute(f"PRAGMA kdf_iter = {key.rounds}")
    try:
        yield connection
    finally:
        connection.close()


def observe(database: Path, keys: list[Key], scratch: Path, record: str | None) -> Content | None:
    """Reads a copy with the first key that fits; None where there is nothing."""
    match is_plaintext(database):
        case None:
            return None
        case True:
            with connected(copied(database, scratch), None) as connection:
                return read(connection, None, record)
        case False:
            for key in keys:
                with connected(copied(database, scratch), key) as connection:
                    try:
                        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                    except sqlcipher.DatabaseError:
                        continue
                    return read(connection, key, record)
    raise Unreadable("no key that the life ever had opens the file")


def read(connection: sqlite3.Connection, key: Key | None, record: str | None) -> Content:
    def rows(sql: str) -> list[tuple]:
        return connection.execute(sql).fetchall()

    def table(name: str, sql: str) -> list[tuple]:
        return rows(sql) if name in tables else []

    try:
        complaints = [row[0] for row in rows("PRAGMA integrity_check") if row[0] != "ok"]
        complaints += [f"foreign key: {row}" for row in rows("PRAGMA foreign_key_check")]
        if key is not None:
            # It looks at the file alone, without the log.
            rows("PRAGMA wal_checkpoint(TRUNCATE)")
            complaints += [row[0] for row in rows("PRAGMA cipher_integrity_check")]
        schema = rows("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
        tables = {
            name: [column[1] for column in rows(f'PRAGMA table_info("{name}")')] for kind, name in schema if kind == "table"
        }
        items, twice = {}, []
        if "item" in tables:
            extra = [name for name in tables["item"] if name not in ("id", "token", "n", "mark", "body", "visits")]
            names = ", ".join(["id", "token", "n", "mark", "body", "visits", *extra])
            # Without the index of the tokens, in which a row could be twice or missing.
            for id_, token, n, mark, body, visits, *rest in rows(f"SELECT {names} FROM item NOT INDEXED"):
                if token in items:
                    twice.append(token)
                items[token] = Item(id_, n, mark, body, visits, dict(zip(extra, rest)))
        children = table("child", "SELECT child.token, item.token FROM child LEFT JOIN item ON item.id = child.item")
        found = None
        if record is not None and record.split(" ")[0] in tables:
            found = rows("SELECT " + record.partition(" ")[2])
        return Content(
            key=key,
            user_version=rows("PRAGMA user_version")[0][0],
            tables={name: columns for name, columns in tables.items() if not name.startswith(OURS)},
            objects={name for kind, name in schema if kind != "table" and not name.startswith(OURS)},
            items=items,
            twice=twice + [token for token, count in _counts(row[0] for row in children) if count > 1],
            steps=[row[0] for row in table("steplog", "SELECT step FROM steplog ORDER BY rowid")],
            children=dict(children),
            audit=[row[0] for row in table("audit", "SELECT token FROM audit")],
            seeds={
                name: rows(f"SELECT id, name FROM {name} ORDER BY id") for name in tables if name[0] == "t" and name[1:].isdigit()
            },
            launches=(table("counter", "SELECT coalesce(sum(launches), 0) FROM counter") or [(0,)])[0][0],
            history=table(
                "cipherstore_history", "SELECT event, fromVersion, toVersion FROM cipherstore_history ORDER BY id"
            ),
            record=found,
            complaints=complaints,
        )
    except (sqlite3.DatabaseError, sqlcipher.DatabaseError) as error:
        raise Unreadable(str(error)) from error


def _counts(values: Iterator[str]) -> list[tuple[str, int]]:
    counted: dict[str, int] = {}
    for value in values:
        counted[value] = counted.get(value, 0) + 1
    return list(counted.items())
