"""A database that is easily copied wrongly, made of statements in bytes, plaintext and encrypted alike."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engine import Database, Key, quoted

# Every hazard has this table too, which the migration builds anew; it has further columns by the hazard's names.
TARGET = b"oracle_target"

# The numbers from 1 to the one that is filled in, as rows of n.
NUMBERS = b"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "


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
    # Whether a migration may: SQLite's own ALTER TABLE takes the schema for damaged.
    may_be_unalterable: bool = False
    # Whether rows may be missing: the encryption keeps the original, and the database is neither decrypted nor rekeyed.
    may_lack_rows: bool = False
    collations: tuple[bytes, ...] = ()
    has_target: bool = True

    def make(self, path: Path, key: Key | None = None) -> None:
        """Writes the database as a killed app leaves it, with its -wal or its -journal."""
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / "app.db"
            with self._open(file, key) as database:
                # SQLCipher has page sizes of its own.
                settings = self.settings if key is None else re.sub(rb"PRAGMA page_size = \d+;", b"", self.settings)
                database.run(settings)
                if self.has_target:
                    database.run(self._target())
                database.run(self.script)
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
            b"PRAGMA user_version = 1; PRAGMA application_id = 77;"
            + b"CREATE TABLE oracle_target(id INTEGER PRIMARY KEY, note TEXT, amount INTEGER%s);" % columns
            + b"INSERT INTO oracle_target VALUES (1, 'one', 10%s), (5, 'five', NULL%s);" % (values, values)
        )


def filled(script: bytes, **given: bytes) -> bytes:
    """The script with names, in quotes, in the places of the capital letters that stand alone."""
    return re.sub(rb"\b[%s]\b" % "".join(given).encode(), lambda place: quoted(given[place[0].decode()]), script)


def schema_text(old: bytes, new: bytes, name: bytes = b"t") -> bytes:
    """Writes a text into the schema table that SQLite itself would not have written."""
    statement = b"UPDATE sqlite_master SET sql = replace(sql, x'%s', x'%s') WHERE name = '%s';"
    return b"PRAGMA writable_schema = ON;" + statement % (old.hex().encode(), new.hex().encode(), name)
