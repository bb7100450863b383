"""Whether an index has for each row of its table one entry with the row's values and rowid."""

from __future__ import annotations

import struct
from collections import Counter

from engine import EngineError, Row, Value
from fileformat import decoded
from snapshot import Column, Entry, Snapshot


def index_complaint(snapshot: Snapshot, index: Entry) -> str | None:
    """What does not fit, where it can be told from records alone and integrity_check has not told of the index.

    Left to integrity_check: partial indexes, expressions, columns that are not stored, tables without rowids, and rows
    that are older than a column. It also looks every row up, which is how the order of an index is checked.
    """
    table = next((entry for entry in snapshot.entries if entry.kind == b"table" and entry.name == index.table), None)
    if table is None or not snapshot.has_rowids(table) or snapshot.complains_of(index):
        return None
    if index.sql is not None and b"where" in index.sql.replace(b"\0", b"").lower():
        return None
    entries = [decoded(record) for record in snapshot.index(index)]
    rows = snapshot.table(table).rows
    if len(entries) != len(rows):
        return f"{index} has {len(entries)} entries for {len(rows)} rows"
    try:
        columns, places = snapshot.columns(table), snapshot.index_columns(index)
    except EngineError:
        return None
    stored = [place for place, column in enumerate(columns) if not column.is_virtual]
    if not places or any(place != -1 and place not in stored for place in places):
        return None
    wanted: Counter[Row] = Counter()
    for rowid, record in rows:
        values = decoded(record)
        if len(values) != len(stored) or rowid is None:
            return None
        wanted[tuple(_key(place, rowid, values, columns, stored) for place in places)] += 1
    missing = wanted - Counter(tuple(_number(value) for value in entry) for entry in entries)
    if missing:
        return f"{index} has no entry for {missing.total()} rows, such as {next(iter(missing))!r:.300}"
    return None


def _key(place: int, rowid: int, values: Row, columns: list[Column], stored: list[int]) -> Value:
    if place == -1 or columns[place].is_rowid:
        return ("i", rowid)
    return _number(values[stored.index(place)])


def _number(value: Value) -> Value:
    """Whole numbers of both storage classes are one value in an index."""
    kind, content = value
    if kind == "r" and isinstance(content, bytes):
        real = struct.unpack(">d", content)[0]
        if real.is_integer() and abs(real) < 1 << 53:
            return ("i", int(real))
    return value
