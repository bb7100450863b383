"""Whether one database holds all that another does, to the byte.

Tables are paired by their place in the schema, columns by theirs in the row. Names are compared, never used to pair.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from engine import EngineError, Row
from fileformat import Malformed, decoded
from indexes import index_complaint
from snapshot import Entry, Snapshot, shown

_HISTORY = b"cipherstore_history"
# The endings of the tables that a full-text table computes.
_COMPUTED = (b"_segdir", b"_segments", b"_docsize", b"_stat", b"_data", b"_idx")
# Columns that take all of the rowid's names.
_HIDING = {b"rowid", b"_rowid_", b"oid"}


@dataclass(frozen=True)
class Change:
    """What a migration may change in a table."""

    # Columns with their new names, or with None where their values may change.
    columns: dict[bytes, bytes | None] = field(default_factory=dict)
    may_gain_rows: bool = False


@dataclass(frozen=True)
class Allowed:
    """What a migration may change; everything else must be equal.

    The rows of a named table keep their rowids and the values of the columns that both have; it may be built anew, with
    its indexes and triggers.
    """

    # The new user_version; None where it may be any.
    version: int | None
    tables: dict[bytes, Change] = field(default_factory=dict)


@dataclass(frozen=True)
class Recovered:
    """What a recovery may change besides the order of the schema and the journal mode."""

    # The table for rows that were deleted, as far as the file shows.
    apart: bytes | None


@dataclass
class Verdict:
    """What is lost or changed, and what was damaged before and still is."""

    differences: list[str] = field(default_factory=list)
    inherited: list[str] = field(default_factory=list)
    rows: int = 0


def compared(
    old: Snapshot, new: Snapshot, allowed: Allowed | None = None, recovered: Recovered | None = None
) -> Verdict:
    """Everything that `new` does not have as `old` has it."""
    verdict = Verdict()
    differ = verdict.differences.append
    try:
        _compare_header(old, new, allowed, verdict, recovered is not None)
        pairs = _recovered_pairs(old, new, recovered, verdict) if recovered else _pairs(old, new, allowed, verdict)
        for before, after in pairs:
            if before.kind == b"table" and before.root and after.root:
                if recovered and old.is_keyed(before):
                    _compare_keyed(old, before, new, after, verdict)
                else:
                    _compare_table(old, before, new, after, allowed, verdict)
        known = [complaint for entry in old.entries if (complaint := _index_complaint(old, entry))]
        found = [complaint for entry in new.entries if (complaint := _index_complaint(new, entry))]
        verdict.inherited += [complaint for complaint in found if complaint in known]
        verdict.differences += [complaint for complaint in found if complaint not in known]
    except Malformed as error:
        differ(f"the file format: {error}")
    for line in sorted(new.complaints - old.complaints):
        differ(f"integrity_check: {shown(line)}")
    verdict.inherited += [shown(line) for line in sorted(new.complaints & old.complaints)]
    return verdict


def _index_complaint(snapshot: Snapshot, entry: Entry) -> str | None:
    return index_complaint(snapshot, entry) if entry.kind == b"index" and entry.root else None


def _compare_header(
    old: Snapshot, new: Snapshot, allowed: Allowed | None, verdict: Verdict, is_recovered: bool
) -> None:
    for name, number in old.header.items():
        if is_recovered and name == "journal mode":
            continue
        wanted = allowed.version if allowed and name == "user_version" else number
        if wanted is not None and new.header[name] != wanted:
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


def _recovered_pairs(
    old: Snapshot, new: Snapshot, recovered: Recovered, verdict: Verdict
) -> list[tuple[Entry, Entry]]:
    """The entries of both schemas, in any order, except for what a full-text table computes from its text."""
    found = {(entry.kind, entry.name): entry for entry in new.entries}
    found = {key: entry for key, entry in found.items() if new.utf8(entry.name) != recovered.apart}
    texts = [old.utf8(entry.name) for entry in old.entries if entry.kind == b"table" and not entry.root]
    pairs = []
    for before in old.entries:
        after = found.pop((before.kind, before.name), None)
        if after is None:
            verdict.differences.append(f"{before} is lost")
        elif (before.table, before.sql, before.root == 0) != (after.table, after.sql, after.root == 0):
            verdict.differences.append(f"{before} has another text or table")
        elif not any(old.utf8(before.name) == text + ending for text in texts for ending in _COMPUTED):
            pairs.append((before, after))
    verdict.differences += [f"{entry} is added" for entry in found.values()]
    return pairs


def _compare_keyed(old: Snapshot, before: Entry, new: Snapshot, after: Entry, verdict: Verdict) -> None:
    """The rows of a table WITHOUT ROWID, whose order is another one if its collation was changed."""
    left, right = (Counter(decoded(record) for _, record in s.table(entry).rows) for s, entry in
                   ((old, before), (new, after)))  # fmt: skip
    verdict.rows += left.total()
    if left != right:
        left, right = Counter(old.values(before)), Counter(new.values(after))
    if left != right:
        verdict.differences.append(f"{before}: {(left - right).total()} rows are lost, {(right - left).total()} are new")


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
    if allowed is not None and old.utf8(before.name) == b"sqlite_sequence":
        _compare_counters(old, left, new, right, allowed, verdict)
        return
    change = allowed.tables.get(old.utf8(before.name)) if allowed is not None else None
    if change is not None and change.may_gain_rows:
        kept = {rowid for rowid, _ in left}
        right = [row for row in right if row[0] in kept]
    if change is None and _HIDING <= {name.lower() for name in old.columns(before)}:
        # No SQL reaches the rowids of such a table; the order of its rows is what shows.
        left, right = [(None, record) for _, record in left], [(None, record) for _, record in right]
    lost = Counter(rowid for rowid, _ in left) - Counter(rowid for rowid, _ in right)
    gained = Counter(rowid for rowid, _ in right) - Counter(rowid for rowid, _ in left)
    if lost or gained:
        differ(f"{before}: {lost.total()} of {len(left)} rows are lost and {gained.total()} are new, by their rowids")
        return
    if change is not None:
        _compare_columns(old, before, new, after, change, verdict)
        return
    unequal = [place for place, (a, b) in enumerate(zip(left, right, strict=True)) if a != b and not _same(a, b)]
    if not unequal:
        return
    # Records of the same rows may differ in their bytes, such as short ones after ALTER TABLE ADD COLUMN.
    try:
        first, second = old.values(before), new.values(after)
        unequal = [place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b]
        if not unequal and len(first) == len(second) == len(left):
            return
        shown_rows = (first[unequal[0]], second[unequal[0]]) if unequal else ("", "")
    except EngineError:
        shown_rows = (decoded(left[unequal[0]][1]), decoded(right[unequal[0]][1]))
    differ(
        f"{before}: {len(unequal)} of {len(left)} rows differ, such as {shown_rows[0]!r:.300} <> {shown_rows[1]!r:.300}"
    )


def _same(a: tuple[int | None, bytes], b: tuple[int | None, bytes]) -> bool:
    return a[0] == b[0] and decoded(a[1]) == decoded(b[1])


def _comparable(
    snapshot: Snapshot, table: Entry, rows: list[tuple[int | None, bytes]], allowed: Allowed
) -> list[tuple[int | None, bytes]]:
    """Without the statistics of a table that is built anew."""
    if not snapshot.utf8(table.name).startswith(b"sqlite_stat"):
        return rows
    return [row for row in rows if snapshot.utf8(_text(row[1])) not in allowed.tables]


def _compare_counters(
    old: Snapshot, left: list[tuple[int | None, bytes]], new: Snapshot, right: list[tuple[int | None, bytes]],
    allowed: Allowed, verdict: Verdict,
) -> None:  # fmt: skip
    """The rows of sqlite_sequence; the counter of a table that is built anew may be another row, and not be less."""
    before, after = ([decoded(record) for _, record in rows] for rows in (left, right))
    lost = Counter(before) - Counter(after)
    added = list((Counter(after) - Counter(before)).elements())
    for row in lost:
        larger = [other for other in added if other[0] == row[0] and _count_of(other) >= _count_of(row)]
        if not (larger and old.utf8(_text_of(row)) in allowed.tables):
            verdict.differences.append(f"sqlite_sequence: {row!r:.200} is lost")
    for row in added:
        if new.utf8(_text_of(row)) not in {*allowed.tables, _HISTORY}:
            verdict.differences.append(f"sqlite_sequence: {row!r:.200} is new")


def _text(record: bytes) -> bytes:
    return _text_of(decoded(record))


def _text_of(row: Row) -> bytes:
    """The first value, where it is text."""
    kind, content = row[0]
    return content if kind == "t" and isinstance(content, bytes) else b""


def _count_of(row: Row) -> int:
    return row[1][1] if isinstance(row[1][1], int) else 0


def _compare_columns(
    old: Snapshot, before: Entry, new: Snapshot, after: Entry, change: Change, verdict: Verdict
) -> None:
    """The columns that a table still has after a migration that may have built it anew."""
    old_names = old.columns(before)
    new_names = new.columns(after)
    first, second = _by_rowid(old, before), _by_rowid(new, after)
    for place, name in enumerate(old_names):
        new_name = change.columns.get(name, name)
        if new_name is None:
            continue
        if new_name not in new_names:
            verdict.differences.append(f"{before}: column {shown(name)} is lost")
            continue
        other = new_names.index(new_name)
        unequal = [(a[place], second[rowid][other]) for rowid, a in first.items() if a[place] != second[rowid][other]]
        if unequal:
            verdict.differences.append(
                f"{before}: {len(unequal)} values of column {shown(name)} differ, such as "
                f"{unequal[0][0]!r:.200} <> {unequal[0][1]!r:.200}"
            )


def _by_rowid(snapshot: Snapshot, table: Entry) -> dict[int | None, Row]:
    rowids = [rowid for rowid, _ in snapshot.table(table).rows]
    return dict(zip(rowids, snapshot.values(table), strict=True))
