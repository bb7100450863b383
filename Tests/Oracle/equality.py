"""Whether one database holds all that another does, to the byte.

Tables are paired by their place in the schema, columns by theirs in the row. Names are compared, never used to pair.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from engine import EngineError
from fileformat import Malformed, decoded
from indexes import index_complaint
from snapshot import Entry, Snapshot, shown

_HISTORY = b"cipherstore_history"


@dataclass(frozen=True)
class Allowed:
    """What a migration may change; everything else must be equal.

    The rows of a named table keep their rowids and the values of the columns that both have; it may be built anew, with
    its indexes and triggers.
    """

    version: int
    # The names of tables, each with the columns whose values may change or go.
    tables: dict[bytes, frozenset[bytes]] = field(default_factory=dict)


@dataclass
class Verdict:
    """What is lost or changed, and what was damaged before and still is."""

    differences: list[str] = field(default_factory=list)
    inherited: list[bytes] = field(default_factory=list)
    rows: int = 0


def compared(old: Snapshot, new: Snapshot, allowed: Allowed | None = None) -> Verdict:
    """Everything that `new` does not have as `old` has it."""
    verdict = Verdict()
    differ = verdict.differences.append
    try:
        _compare_header(old, new, allowed, verdict)
        pairs = _pairs(old, new, allowed, verdict)
        for before, after in pairs:
            if before.kind == b"table" and before.root and after.root:
                _compare_table(old, before, new, after, allowed, verdict)
        for entry in new.entries:
            if entry.kind == b"index" and entry.root and (complaint := index_complaint(new, entry)):
                differ(complaint)
    except Malformed as error:
        differ(f"the file format: {error}")
    for complaint in sorted(new.complaints - old.complaints):
        differ(f"integrity_check: {shown(complaint)}")
    verdict.inherited = sorted(new.complaints & old.complaints)
    return verdict


def _compare_header(old: Snapshot, new: Snapshot, allowed: Allowed | None, verdict: Verdict) -> None:
    for name, number in old.header.items():
        wanted = allowed.version if allowed and name == "user_version" else number
        if new.header[name] != wanted:
            verdict.differences.append(f"{name} is {new.header[name]}, not {wanted}")


def _pairs(old: Snapshot, new: Snapshot, allowed: Allowed | None, verdict: Verdict) -> list[tuple[Entry, Entry]]:
    """The entries of both schemas that must be equal, and the tables of the same name that a migration may change."""
    differ = verdict.differences.append
    if allowed is None:
        if [rowid for rowid, _ in old.schema] != [rowid for rowid, _ in new.schema]:
            differ("the rows of the schema table have other rowids")
        kept, found, pairs = old.entries, new.entries, []
    else:
        free = set(allowed.tables)
        kept = [entry for entry in old.entries if old.utf8(entry.table) not in free]
        # A history and its counter are made where there were none.
        made = {_HISTORY} | ({b"sqlite_sequence"} - {old.utf8(entry.name) for entry in old.entries})
        found = [entry for entry in new.entries if new.utf8(entry.table) not in free | made]
        pairs = _named_pairs(old, new, free, verdict)
    for place in range(max(len(kept), len(found))):
        before = kept[place] if place < len(kept) else None
        after = found[place] if place < len(found) else None
        if before is None or after is None:
            differ(f"{before or after} is {'lost' if after is None else 'added'}")
        elif (before.kind, before.name, before.table, before.sql, before.root == 0) != (
            after.kind, after.name, after.table, after.sql, after.root == 0,
        ):  # fmt: skip
            differ(f"{before} is {after} now, or has another text")
        else:
            pairs.append((before, after))
    return pairs


def _named_pairs(old: Snapshot, new: Snapshot, names: set[bytes], verdict: Verdict) -> list[tuple[Entry, Entry]]:
    tables = {new.utf8(entry.name): entry for entry in new.entries if entry.kind == b"table"}
    pairs = []
    for before in old.entries:
        name = old.utf8(before.name)
        if before.kind == b"table" and name in names:
            if name in tables:
                pairs.append((before, tables[name]))
            else:
                verdict.differences.append(f"{before} is lost")
    return pairs


def _compare_table(
    old: Snapshot, before: Entry, new: Snapshot, after: Entry, allowed: Allowed | None, verdict: Verdict
) -> None:
    differ = verdict.differences.append
    try:
        left = old.table(before).rows
    except Malformed:
        # A table of the old file that cannot be read: nothing tells what was in it.
        return
    right = new.table(after).rows
    if allowed is not None:
        left, right = _comparable(old, before, left, allowed), _comparable(new, before, right, allowed)
    verdict.rows += len(left)
    lost = Counter(rowid for rowid, _ in left) - Counter(rowid for rowid, _ in right)
    gained = Counter(rowid for rowid, _ in right) - Counter(rowid for rowid, _ in left)
    if lost or gained:
        differ(f"{before}: {lost.total()} of {len(left)} rows are lost and {gained.total()} are new, by their rowids")
        return
    if allowed is not None and (name := old.utf8(before.name)) in allowed.tables:
        _compare_columns(old, before, new, after, allowed.tables[name], verdict)
        return
    unequal = [place for place, (a, b) in enumerate(zip(left, right)) if a != b and not _same(a, b)]
    if not unequal:
        return
    # Records of the same rows may differ in their bytes, such as short ones after ALTER TABLE ADD COLUMN.
    try:
        first, second = old.values(before), new.values(after)
        unequal = [place for place, (a, b) in enumerate(zip(first, second)) if a != b]
        if not unequal and len(first) == len(second) == len(left):
            return
        shown_rows = (first[unequal[0]], second[unequal[0]]) if unequal else ("", "")
    except EngineError:
        shown_rows = (decoded(left[unequal[0]][1]), decoded(right[unequal[0]][1]))
    differ(f"{before}: {len(unequal)} of {len(left)} rows differ, such as {shown_rows[0]!r:.300} <> {shown_rows[1]!r:.300}")


def _same(a: tuple[int | None, bytes], b: tuple[int | None, bytes]) -> bool:
    return a[0] == b[0] and decoded(a[1]) == decoded(b[1])


def _comparable(
    snapshot: Snapshot, table: Entry, rows: list[tuple[int | None, bytes]], allowed: Allowed
) -> list[tuple[int | None, bytes]]:
    """Without the counter of the history, and without the statistics of a table that is built anew."""
    name = snapshot.utf8(table.name)
    if name == b"sqlite_sequence":
        gone = {_HISTORY}
    elif name.startswith(b"sqlite_stat"):
        gone = set(allowed.tables)
    else:
        return rows
    return [row for row in rows if snapshot.utf8(_text(row[1])) not in gone]


def _text(record: bytes) -> bytes:
    """The first value of a record, where it is text."""
    kind, content = decoded(record)[0]
    return content if kind == "t" and isinstance(content, bytes) else b""


def _compare_columns(
    old: Snapshot, before: Entry, new: Snapshot, after: Entry, free: frozenset[bytes], verdict: Verdict
) -> None:
    """The columns of the same name of a table that a migration may have built anew."""
    old_names = [column.name for column in old.columns(before)]
    new_names = [column.name for column in new.columns(after)]
    first, second = old.values(before), new.values(after)
    for place, name in enumerate(old_names):
        if name in free:
            continue
        if name not in new_names:
            verdict.differences.append(f"{before}: column {shown(name)} is lost")
            continue
        other = new_names.index(name)
        unequal = [(a[place], b[other]) for a, b in zip(first, second) if a[place] != b[other]]
        if unequal:
            verdict.differences.append(
                f"{before}: {len(unequal)} values of column {shown(name)} differ, such as "
                f"{unequal[0][0]!r:.200} <> {unequal[0][1]!r:.200}"
            )
