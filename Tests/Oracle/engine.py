"""SQLCipher by its C interface, as the package sqlcipher3-binary brings it.

Python's own `execute` takes `str` only, and a name in a schema need not be valid UTF-8. Here SQL, names and values are
bytes, and nothing is ever decoded. A plaintext database is opened without a key.

Source: the headers of SQLite 3.51 and SQLCipher 4.12, "C-language Interface Specification for SQLite".
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_double, c_uint, c_void_p
from dataclasses import dataclass

import sqlcipher3._sqlite3

# A value with its storage class: n(ull), i(nteger), r(eal, as its eight bytes), t(ext), b(lob).
Value = tuple[str, object]
Row = tuple[Value, ...]

_ROW, _DONE = 100, 101
_READ_WRITE, _CREATE = 2, 4
_TRANSIENT = c_void_p(-1)
_COLLATION = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_void_p, c_int, c_void_p)


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(sqlcipher3._sqlite3.__file__)
    signatures: dict[str, tuple[object, list[object]]] = {
        "open_v2": (c_int, [c_char_p, POINTER(c_void_p), c_int, c_char_p]),
        "close_v2": (c_int, [c_void_p]),
        "key": (c_int, [c_void_p, c_char_p, c_int]),
        "prepare_v2": (c_int, [c_void_p, c_void_p, c_int, POINTER(c_void_p), POINTER(c_void_p)]),
        "step": (c_int, [c_void_p]),
        "finalize": (c_int, [c_void_p]),
        "bind_text": (c_int, [c_void_p, c_int, c_char_p, c_int, c_void_p]),
        "column_count": (c_int, [c_void_p]),
        "column_type": (c_int, [c_void_p, c_int]),
        "column_int64": (c_int64, [c_void_p, c_int]),
        "column_double": (c_double, [c_void_p, c_int]),
        "column_blob": (c_void_p, [c_void_p, c_int]),
        "column_text": (c_void_p, [c_void_p, c_int]),
        "column_bytes": (c_int, [c_void_p, c_int]),
        "errmsg": (c_char_p, [c_void_p]),
        "serialize": (c_void_p, [c_void_p, c_char_p, POINTER(c_int64), c_uint]),
        "free": (None, [c_void_p]),
        "create_collation_v2": (c_int, [c_void_p, c_char_p, c_int, c_void_p, _COLLATION, c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, "sqlite3_" + name)
        function.restype, function.argtypes = result, arguments
    return library


_C = _load()


class EngineError(Exception):
    """SQLite or SQLCipher said no."""


@dataclass(frozen=True)
class Key:
    """What opens an encrypted file: a passphrase, or a raw key as x'64 or 96 hex digits'."""

    text: bytes
    compatibility: int | None = None
    plaintext_header: int = 0


def _reversed(_context: int, left_count: int, left: int, right_count: int, right: int) -> int:
    a, b = ctypes.string_at(left, left_count)[::-1], ctypes.string_at(right, right_count)[::-1]
    return (a > b) - (a < b)


_REVERSED = _COLLATION(_reversed)


class Database:
    """A connection."""

    def __init__(self, path: str, key: Key | None = None) -> None:
        self._handle = c_void_p()
        self._check(_C.sqlite3_open_v2(path.encode(), byref(self._handle), _READ_WRITE | _CREATE, None))
        if key is not None:
            self._check(_C.sqlite3_key(self._handle, key.text, len(key.text)))
            self.run(b"PRAGMA cipher_log_level = NONE;")
            if key.compatibility is not None:
                self.run(b"PRAGMA cipher_compatibility = %d" % key.compatibility)
            if key.plaintext_header:
                self.run(b"PRAGMA cipher_plaintext_header_size = %d" % key.plaintext_header)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._handle:
            _C.sqlite3_close_v2(self._handle)
            self._handle = c_void_p()

    def run(self, script: bytes) -> None:
        """Runs any number of statements."""
        buffer = ctypes.create_string_buffer(script)
        start, end = ctypes.addressof(buffer), ctypes.addressof(buffer) + len(script)
        while start < end:
            statement, tail = c_void_p(), c_void_p()
            self._check(_C.sqlite3_prepare_v2(self._handle, start, end - start, byref(statement), byref(tail)), script)
            try:
                if statement:
                    for _ in self._steps(statement, script):
                        pass
            finally:
                _C.sqlite3_finalize(statement)
            start = tail.value or end

    def rows(self, sql: bytes, *texts: bytes) -> Iterator[Row]:
        """The rows of one statement, whose parameters are text."""
        statement = c_void_p()
        buffer = ctypes.create_string_buffer(sql)
        address = ctypes.addressof(buffer)
        self._check(_C.sqlite3_prepare_v2(self._handle, address, len(sql), byref(statement), None), sql)
        try:
            for index, text in enumerate(texts):
                self._check(_C.sqlite3_bind_text(statement, index + 1, text, len(text), _TRANSIENT), sql)
            count = _C.sqlite3_column_count(statement)
            for _ in self._steps(statement, sql):
                yield tuple(_value(statement, column) for column in range(count))
        finally:
            _C.sqlite3_finalize(statement)

    def image(self) -> bytes:
        """Every page as the connection sees it: decrypted, with what is in the log, a plaintext database."""
        size = c_int64()
        address = _C.sqlite3_serialize(self._handle, b"main", byref(size), 0)
        if not address:
            raise EngineError("the pages cannot be read: " + self._message())
        try:
            return ctypes.string_at(address, size.value)
        finally:
            _C.sqlite3_free(address)

    def add_collation(self, name: bytes) -> None:
        """Registers an order that no built-in collation has."""
        self._check(_C.sqlite3_create_collation_v2(self._handle, name, 1, None, _REVERSED, None))

    def _steps(self, statement: c_void_p, sql: bytes) -> Iterator[None]:
        while (code := _C.sqlite3_step(statement)) == _ROW:
            yield
        if code != _DONE:
            self._check(code, sql)

    def _check(self, code: int, sql: bytes = b"") -> None:
        if code != 0:
            raise EngineError(f"{self._message()} ({code}) {sql[:300]!r}")

    def _message(self) -> str:
        text: bytes = _C.sqlite3_errmsg(self._handle)
        return text.decode(errors="backslashreplace")


def _value(statement: c_void_p, column: int) -> Value:
    match _C.sqlite3_column_type(statement, column):
        case 1:
            return ("i", _C.sqlite3_column_int64(statement, column))
        case 2:
            return ("r", struct.pack(">d", _C.sqlite3_column_double(statement, column)))
        case 3:
            return ("t", _bytes(statement, column, _C.sqlite3_column_text))
        case 4:
            return ("b", _bytes(statement, column, _C.sqlite3_column_blob))
        case _:
            return ("n", None)


def _bytes(statement: c_void_p, column: int, get: Callable[[c_void_p, int], int | None]) -> bytes:
    address = get(statement, column)
    count = _C.sqlite3_column_bytes(statement, column)
    return ctypes.string_at(address, count) if address and count else b""


def quoted(name: bytes) -> bytes:
    """A name in SQL."""
    return b'"' + name.replace(b'"', b'""') + b'"'
