"""All that a database holds, read from a copy of its files."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from engine import Database, EngineError, Key, Row, quoted
from fileformat import Image, Malformed, decoded

# Offsets of the header's numbers that a copy must keep.
_HEADER = {"default cache size": 48, "auto_vacuum": 52, "encoding": 56, "user_version": 60, "application_id": 68}
_ENCODINGS = {1: "utf-8", 2: "utf-16-le", 3: "utf-16-be"}


@dataclass(frozen=True)
class Entry:
    """A row of the schema table; its text in the encoding of the database."""

    kind: bytes
    name: bytes
    table: bytes
    sql: bytes | None
    root: int

    def __str__(self) -> str:
        return f"{self.kind.decode(errors='replace')} {shown(self.name)}"


@dataclass
class Table:
    """The records of a table in their order; the rowids of a table without them are None."""

    entry: Entry
    rows: list[tuple[int | None, bytes]] = field(default_factory=list)


class Snapshot:
    """A database at one moment; the files themselves are not opened."""

    def __init__(self, path: Path, key: Key | None = None, collations: tuple[bytes, ...] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory()
        copy = Path(self._folder.name) / "copy.db"
        for ending in ("", "-wal", "-journal"):
            if (beside := path.with_name(path.name + ending)).exists():
                shutil.copyfile(beside, copy.with_name(copy.name + ending))
        if key is not None and path.read_bytes()[:16] == b"SQLite format 3\0" and not key.plaintext_header:
            raise Malformed("the file is not encrypted")
        self._database = Database(str(copy), key)
        for collation in collations:
            self._database.add_collation(collation)
        self._image = Image(self._database.image())

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
        self._folder.cleanup()

    @cached_property
    def header(self) -> dict[str, int]:
        numbers = {name: self._image.number(offset) for name, offset in _HEADER.items()}
        # In a file without auto_vacuum the field at 64 has no meaning; 1 there is INCREMENTAL.
        numbers["auto_vacuum"] = (numbers["auto_vacuum"] != 0) + (self._image.number(64) != 0)
        numbers["encoding"] = numbers["encoding"] or 1
        numbers["journal mode"] = self._image.number(18, 2)
        return numbers

    @cached_property
    def schema(self) -> list[tuple[int, Entry]]:
        """The schema table's rows with their rowids."""
        entries = []
        for rowid, record in self._image.table(1):
            values = decoded(record)
            kind, name, table, sql = (values[i][1] for i in (0, 1, 2, 4))
            root = values[3][1] or 0
            if not (isinstance(kind, bytes) and isinstance(name, bytes) and isinstance(table, bytes)):
                raise Malformed(f"schema row {rowid} is not of text")
            if not (sql is None or isinstance(sql, bytes)) or not isinstance(root, int):
                raise Malformed(f"schema row {rowid} is not of text")
            entries.append((rowid, Entry(self.utf8(kind), name, table, sql, root)))
        return entries

    @property
    def entries(self) -> list[Entry]:
        return [entry for _, entry in self.schema]

    def table(self, entry: Entry) -> Table:
        if self._image.is_index(entry.root):
            return Table(entry, [(None, record) for record in self._image.index(entry.root)])
        return Table(entry, list(self._image.table(entry.root)))

    def is_keyed(self, entry: Entry) -> bool:
        return self._image.is_index(entry.root)

    def index(self, entry: Entry) -> list[bytes]:
        return list(self._image.index(entry.root))

    def index_anew(self, entry: Entry) -> list[bytes]:
        """The records of an index after it was built anew; nothing of it stays."""
        self._database.run(b"BEGIN; REINDEX main." + quoted(self.utf8(entry.name)) + b";")
        try:
            return list(Image(self._database.image()).index(entry.root))
        finally:
            self._database.run(b"ROLLBACK;")

    def values(self, entry: Entry) -> list[Row]:
        """The rows of a table as SQLite shows them, by the positions of their columns."""
        return list(self._database.rows(b"SELECT * FROM main." + quoted(self.utf8(entry.name)) + b" NOT INDEXED"))

    def columns(self, entry: Entry) -> list[bytes]:
        """The names of a table's columns in UTF-8, those of computed ones too."""
        rows = self._database.rows(b"SELECT name FROM pragma_table_xinfo(?)", self.utf8(entry.name))
        return [name[1] if isinstance(name[1], bytes) else b"" for (name,) in rows]

    @cached_property
    def complaints(self) -> frozenset[bytes]:
        """What SQLite's own check reports, without the numbers of pages, which a copy need not keep."""
        try:
            found = [row[0][1] for row in self._database.rows(b"PRAGMA integrity_check(100000)")]
        except EngineError as error:
            return frozenset([b"cannot be checked: " + str(error).encode()])
        lines = [line for text in found if isinstance(text, bytes) for line in text.split(b"\n")]
        return frozenset(
            re.sub(rb"\d+", b"#", line) if line.startswith((b"Tree", b"Page", b"Freelist", b"***")) else line
            for line in lines
            if line not in (b"", b"ok")
        )

    def utf8(self, text: bytes) -> bytes:
        """A text of the schema as SQL has it."""
        encoding = _ENCODINGS[self.header["encoding"]]
        if encoding == "utf-8":
            return text
        return text.decode(encoding, "replace").encode("utf-8")


def shown(name: bytes) -> str:
    """A name in a message."""
    text = repr(name)[1:]
    return text if len(text) < 80 else f"{text[:60]}… ({len(name)} bytes)"
