"""What the life knows to be true of its database, from what was acknowledged and what the documents say.

A `State` is compared with what is on the disk after every event. Where a process was killed, several states are possible,
and the one that is found counts from then on.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from observe import Content, Key
from schema import Evolution, Version, parsed, text


@dataclass
class Row:
    """A row of item, as its writer was told that it is."""

    body: bytes | None
    # Several, where another process may have migrated before or after it was written.
    n: set[int] = field(default_factory=lambda: {1})
    mark: set[str | None] = field(default_factory=lambda: {None})
    visits: set[int] = field(default_factory=lambda: {0})
    extra: dict[str, str | None] = field(default_factory=dict)
    # None where its writer died before it was told.
    id: int | None = None
    # Written by an old release beside a newer one: columns may be either's.
    is_mixed: bool = False


def _stamp(found: Content) -> str | None:
    """As what the history says that the store left the database."""
    events = [event for event, _, _ in found.history]
    for event in reversed(events):
        if event in ("encrypted", "openedPlaintext"):
            return "plaintext" if event == "openedPlaintext" else "encrypted"
    return "encrypted" if "created" in events else None


@dataclass
class State:
    """A database in one moment."""

    evolution: Evolution
    # None: there is nothing, or nothing in it.
    level: int | None = None
    key: Key | None = None
    # The version that counts.
    version: Version = (0,)
    is_adopted: bool = False
    # As what CipherStore left it: plaintext or encrypted.
    stamp: str | None = None
    rows: dict[str, Row] = field(default_factory=dict)
    children: dict[str, str] = field(default_factory=dict)
    audit: list[str] = field(default_factory=list)
    audit_may: set[str] = field(default_factory=set)
    steps: list[str] = field(default_factory=list)
    launches: set[int] = field(default_factory=lambda: {0})
    backfilled: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    # Rows of processes of this very moment, one of which may migrate before or after they are written.
    beside: set[str] = field(default_factory=set)
    # Columns and tables that the app dropped and the store withheld.
    withheld: set[str] = field(default_factory=set)
    # What the app's own record must say; None where it is not looked at.
    record: object = None
    # Set by left-over code that wrote an older version there.
    user_version: int | None = None
    # The same, once the store has seen it: whether it mends the number or only tells of it is not said.
    seen_version: int | None = None

    def copy(self) -> State:
        return State(
            **{
                **self.__dict__,
                "rows": copy.deepcopy(self.rows),
                **{
                    name: copy.copy(getattr(self, name))
                    for name in ("children", "audit", "audit_may", "steps", "launches", "backfilled", "pending", "withheld", "beside")
                },
            }
        )

    # What happens to it

    def install(self, level: int, steps: list[str]) -> None:
        """An empty database at a level."""
        self.level, self.steps = level, steps
        self.rows, self.children, self.audit, self.audit_may, self.launches = {}, {}, [], set(), {0}
        self.backfilled, self.pending, self.withheld = set(), set(), set()
        self.is_adopted, self.stamp, self.user_version, self.seen_version = False, None, None, None

    def migrate(self, level: int, *, changes_data: bool = True, withholds: bool = False) -> None:
        """Every step up to a level, once."""
        assert self.level is not None
        there = self.evolution.schemas[self.level].tables["item"]
        for change in self.evolution.changes[self.level : level]:
            for token, row in self.rows.items():
                if changes_data:
                    earlier = row.n if token in self.beside else set()
                    row.n = {n * change.factor for n in row.n} | earlier
                if token in self.beside:
                    row.is_mixed = True
                    self.audit_may.add(token)
                match change.kind:
                    case "column":
                        row.extra[f"c{change.number}"] = f"d{change.number}"
                    case "rename":
                        row.extra[f"r{change.number}"] = row.extra.pop(change.column, None)
                    case "drop":
                        if not withholds or change.column not in there:
                            row.extra.pop(change.column, None)
            # What the database never had is not made to be withheld.
            if change.kind == "drop" and withholds and change.column in there:
                self.withheld.add(change.column)
            if changes_data:
                self.steps.append(change.log)
        self.level = level

    def insert(self, token: str, body: bytes | None, extra: dict[str, str | None], id_: int | None) -> None:
        assert self.level is not None
        schema = self.evolution.schemas[self.level]
        values = {name: f"d{name[1:]}" if name[0] == "c" else None for name in schema.extra}
        for name in schema.renamed:
            values[name] = f"d{schema.renamed[name][1:]}"
        for name in self.withheld:
            values[name] = f"d{name[1:]}"
        values.update(extra)
        self.rows[token] = Row(body=body, extra=values, id=id_)
        if schema.triggers:
            self.audit.append(token)

    def backfill(self, name: str) -> None:
        """It has visited every row that was there, each once."""
        self.pending.discard(name)
        if name in self.backfilled:
            return
        self.backfilled.add(name)
        for token, row in self.rows.items():
            earlier = row.visits if token in self.beside else set()
            row.visits = {visits + 1 for visits in row.visits} | earlier

    def rebase(self, found: Content) -> bool:
        """Takes an older moment of this database for what counts; false where it is none."""
        levels = [level for level in range(self.level + 1) if self._is_level(level, found)]
        if not levels or found.items.keys() - self.rows.keys():
            return False
        self.level = levels[-1]
        versions = [to for event, _, to in found.history if event in ("adopted", "created", "migrated")]
        if not versions or _stamp(found) is None or parsed(versions[-1]) != self.evolution.versions[self.level]:
            return False
        self.is_adopted, self.version = True, self.evolution.versions[self.level]
        self.stamp = _stamp(found)
        self.key, self.record, self.user_version = found.key, None, None
        self.steps, self.launches, self.children = found.steps, {found.launches}, dict(found.children)
        self.rows = {
            token: Row(item.body, {item.n}, {item.mark}, {item.visits}, dict(item.extra), item.id)
            for token, item in found.items.items()
        }
        self.audit, self.audit_may, self.withheld = list(found.audit), set(), set()
        return True

    def _is_level(self, level: int, found: Content) -> bool:
        schema = self.evolution.schemas[level]
        objects = schema.indexes.keys() | schema.triggers.keys() | schema.views.keys()
        tables = {name: columns for name, columns in found.tables.items() if name in schema.tables or name[0] == "t"}
        return found.objects == objects and {name: set(columns) for name, columns in schema.tables.items()} == {
            name: set(columns) for name, columns in tables.items() if name != "tb_clientstage" and name != "tableVersion"
        }

    # Comparing

    def differences(self, found: Content | None) -> list[str]:
        """What is not as it must be."""
        if found is None or found.is_blank:
            return [] if self.level is None else ["there is no database, or one without tables"]
        if self.level is None:
            return ["there is a database"]
        told: list[str] = []

        def expect(what: str, wanted: object, is_: object) -> None:
            if wanted != is_:
                told.append(f"{what}: {is_!r:.200} instead of {wanted!r:.200}")

        told += found.complaints
        expect("key", self.key, found.key)
        if found.twice:
            told.append(f"rows twice: {found.twice}")
        expect("steps", self.steps, found.steps)
        missing = self.rows.keys() - found.items.keys()
        if missing:
            told.append(f"rows missing: {sorted(missing)}")
        strange = found.items.keys() - self.rows.keys()
        if strange:
            told.append(f"rows that nobody wrote, or that were deleted: {sorted(strange)}")
        for token, row in self.rows.items():
            item = found.items.get(token)
            if item is None:
                continue
            if item.n not in row.n:
                told.append(f"{token}: n is {item.n} instead of {sorted(row.n)}")
            if item.mark not in row.mark:
                told.append(f"{token}: mark is {item.mark} instead of {row.mark}")
            expect(f"{token}: body", row.body, item.body)
            visits = {seen + more for seen in row.visits for more in range(len(self.pending) + 1)}
            if item.visits not in visits:
                told.append(f"{token}: {item.visits} visits instead of {sorted(visits)}")
            if row.id is not None:
                expect(f"{token}: rowid", row.id, item.id)
            if not row.is_mixed:
                expect(f"{token}: columns", row.extra, item.extra)
        expect("children", self.children, found.children)
        sure = sorted(token for token in found.audit if token not in self.audit_may)
        expect("audit", sorted(token for token in self.audit if token not in self.audit_may), sure)
        schema = self.evolution.schemas[self.level]
        for table, columns in schema.tables.items():
            wanted = set(columns) | (self.withheld if table == "item" else set())
            expect(f"columns of {table}", wanted, set(found.tables.get(table, ())))
        expect("seeds", schema.seeds, found.seeds)
        objects = schema.indexes.keys() | schema.triggers.keys() | schema.views.keys()
        expect("indexes, triggers, views", objects, {name for name in found.objects if not name.startswith("sqlite_")})
        if found.launches not in self.launches:
            told.append(f"launch statements ran {found.launches} times instead of {sorted(self.launches)}")
        if self.is_adopted:
            versions = [to for event, _, to in found.history if event in ("adopted", "created", "migrated")]
            expect("version of the history", text(self.version), versions[-1] if versions else None)
            expect("stamp", self.stamp, _stamp(found))
            if len(self.version) == 1 and self.user_version is None and found.user_version != self.seen_version:
                expect("user_version", self.version[0], found.user_version)
        if self.user_version is not None:
            expect("user_version", self.user_version, found.user_version)
        if self.record is not None:
            expect("the app's record", self.record, found.record)
        return told

    def adopt(self, found: Content | None) -> None:
        """What could be either is what was found."""
        if found is None or self.level is None:
            return
        for token, row in self.rows.items():
            item = found.items[token]
            row.n, row.mark, row.id = {item.n}, {item.mark}, item.id
            if not self.pending:
                row.visits = {item.visits}
            if row.is_mixed:
                row.extra, row.is_mixed = dict(item.extra), False
        self.launches = {found.launches}
        self.audit, self.audit_may = list(found.audit), set()
        if self.seen_version is not None and found.user_version == self.seen_version:
            self.user_version = self.seen_version
        self.seen_version = None
