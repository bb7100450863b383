"""Compares two databases, each plaintext or encrypted, and prints what the second has lost or changed.

usage: oracle.py OLD NEW [--old-key FILE] [--new-key FILE] [--old-format N] [--new-format N]
                         [--old-header BYTES] [--new-header BYTES] [--migrated VERSION [--table NAME]…]

With --migrated, the version is the new one, a history of CipherStore's is no difference, and the tables that are named
may be built anew: they keep their rows, and the values of the columns that they had.

A key file has a passphrase or a raw key, as the command line takes it. Ends with 1 where something differs.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from engine import EngineError, Key
from equality import Allowed, Change, compared
from fileformat import Malformed
from snapshot import Snapshot


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    for which in ("old", "new"):
        parser.add_argument(f"--{which}-key", type=Path)
        parser.add_argument(f"--{which}-format", type=int)
        parser.add_argument(f"--{which}-header", type=int, default=0)
    parser.add_argument("--migrated", type=int, metavar="VERSION")
    parser.add_argument("--table", action="append", default=[], type=os.fsencode)
    arguments = parser.parse_args()
    allowed = None
    if arguments.migrated is not None:
        allowed = Allowed(arguments.migrated, dict.fromkeys(arguments.table, Change()))
    try:
        with (
            Snapshot(arguments.old, _key(arguments.old_key, arguments.old_format, arguments.old_header)) as old,
            Snapshot(arguments.new, _key(arguments.new_key, arguments.new_format, arguments.new_header)) as new,
        ):
            verdict = compared(old, new, allowed)
    except (EngineError, Malformed, OSError) as error:
        print(f"cannot be read: {error}")
        return 1
    for line in verdict.differences:
        print(line)
    for complaint in verdict.inherited:
        print(f"damaged before, and still: {complaint}", file=sys.stderr)
    return 1 if verdict.differences else 0


def _key(path: Path | None, cipher_format: int | None, header: int) -> Key | None:
    if path is None:
        return None
    return Key(path.read_bytes().removesuffix(b"\n"), cipher_format, header)


if __name__ == "__main__":
    sys.exit(main())
