"""A reader of SQLite's file format: b-trees, overflow chains and records of a plaintext image.

No name and no statement is involved: a row is found by the root page that the schema table gives.

Source: SQLite, "Database File Format", sections 1 and 2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from engine import Row, Value

_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13


class Malformed(Exception):
    """The image is not of the format."""


class Image:
    """A database, page after page."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 512 or not data.startswith(b"SQLite format 3\0"):
            raise Malformed("no header")
        self._data = data
        size = int.from_bytes(data[16:18], "big")
        self._page_size = 65536 if size == 1 else size
        self._usable = self._page_size - data[20]

    def number(self, offset: int, width: int = 4) -> int:
        """A field of the header."""
        return int.from_bytes(self._data[offset : offset + width], "big")

    def table(self, root: int) -> Iterator[tuple[int, bytes]]:
        """Each row of a table with rowids, with its record, in their order."""
        for page, kind, cells in self._walk(root, {_TABLE_INTERIOR, _TABLE_LEAF}):
            if kind == _TABLE_LEAF:
                for cell in cells:
                    length, place = _varint(page, cell)
                    rowid, place = _varint(page, place)
                    yield _signed(rowid), self._payload(page, place, length, self._usable - 35)

    def index(self, root: int) -> Iterator[bytes]:
        """Each record of an index, or of a table without rowids, in their order."""
        largest = (self._usable - 12) * 64 // 255 - 23
        for page, kind, cells in self._walk(root, {_INDEX_INTERIOR, _INDEX_LEAF}):
            for cell in cells:
                length, place = _varint(page, cell + (4 if kind == _INDEX_INTERIOR else 0))
                yield self._payload(page, place, length, largest)

    def is_index(self, root: int) -> bool:
        """Whether a b-tree is an index or a table without rowids, by its root."""
        page, header = self._page(root)
        return page[header] in (_INDEX_INTERIOR, _INDEX_LEAF)

    def _page(self, number: int) -> tuple[bytes, int]:
        start = (number - 1) * self._page_size
        if number < 1 or start + self._page_size > len(self._data):
            raise Malformed(f"page {number} is not in the file")
        return self._data[start : start + self._page_size], 100 if number == 1 else 0

    def _walk(self, root: int, kinds: set[int]) -> Iterator[tuple[bytes, int, list[int]]]:
        """The pages of a b-tree, the cells of an interior index page each after its left child."""
        seen: set[int] = set()

        def visit(number: int) -> Iterator[tuple[bytes, int, list[int]]]:
            if number in seen:
                raise Malformed(f"page {number} is in a tree twice")
            seen.add(number)
            page, header = self._page(number)
            kind = page[header]
            if kind not in kinds:
                raise Malformed(f"page {number} has type {kind}")
            count = int.from_bytes(page[header + 3 : header + 5], "big")
            is_leaf = kind in (_INDEX_LEAF, _TABLE_LEAF)
            first = header + (8 if is_leaf else 12)
            cells = list(struct.unpack_from(f">{count}H", page, first))
            if is_leaf:
                yield page, kind, cells
                return
            for cell in cells:
                yield from visit(int.from_bytes(page[cell : cell + 4], "big"))
                yield page, kind, [cell]
            yield from visit(int.from_bytes(page[header + 8 : header + 12], "big"))

        yield from visit(root)

    def _payload(self, page: bytes, place: int, length: int, largest: int) -> bytes:
        if length <= largest:
            return self._whole(page[place : place + length], length)
        smallest = (self._usable - 12) * 32 // 255 - 23
        local = smallest + (length - smallest) % (self._usable - 4)
        if local > largest:
            local = smallest
        parts = [page[place : place + local]]
        left = length - local
        following = int.from_bytes(page[place + local : place + local + 4], "big")
        while left > 0:
            overflow, _ = self._page(following)
            following = int.from_bytes(overflow[:4], "big")
            parts.append(overflow[4 : min(self._usable, 4 + left)])
            left -= len(parts[-1])
        return self._whole(b"".join(parts), length)

    @staticmethod
    def _whole(payload: bytes, length: int) -> bytes:
        if len(payload) != length:
            raise Malformed("a record is cut off")
        return payload


def decoded(record: bytes) -> Row:
    """The values of a record; text in the encoding of the database."""
    end, place = _varint(record, 0)
    body = end
    values: list[Value] = []
    while place < end:
        kind, place = _varint(record, place)
        value, body = _value(record, kind, body)
        values.append(value)
    return tuple(values)


def _value(record: bytes, kind: int, place: int) -> tuple[Value, int]:
    if kind == 0:
        return ("n", None), place
    if kind in (8, 9):
        return ("i", kind - 8), place
    if kind >= 12:
        end = place + (kind - 12) // 2
        if end > len(record):
            raise Malformed("a value is cut off")
        return ("t" if kind % 2 else "b", record[place:end]), end
    width = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}.get(kind)
    if width is None:
        raise Malformed(f"a value has type {kind}")
    data = record[place : place + width]
    return (("r", data) if kind == 7 else ("i", int.from_bytes(data, "big", signed=True))), place + width


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[place + index]
        value = value << 7 | byte & 127
        if byte < 128:
            return value, place + index + 1
    return value << 8 | data[place + 8], place + 9


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
