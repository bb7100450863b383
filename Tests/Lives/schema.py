"""What an app wants of its database in each version, and how each kind of app says it.

A version changes the schema by one `Change`. From the changes come the SQL of the app's own steps, the declared tables, the
template and the tables with a version each; all of them mean the same.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from random import Random

Version = tuple[int, ...]

PRIMES = [3, 5, 7, 11, 13, 17, 19, 23, 29, 31]


def text(version: Version) -> str:
    return ".".join(map(str, version))


def parsed(version: str) -> Version:
    return tuple(int(part) for part in version.split("."))


def order(version: Version) -> Version:
    """1.10.0 and 1.10 are the same version."""
    while len(version) > 1 and version[-1] == 0:
        version = version[:-1]
    return version


@dataclass
class Schema:
    """Tables with their columns, and the SQL of what belongs to them."""

    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    indexes: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    triggers: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    seeds: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    # New names of columns of item, with the old ones.
    renamed: dict[str, str] = field(default_factory=dict)
    # Declared tables, by the changes that touched them, from which their own versions come.
    touched: dict[str, int] = field(default_factory=dict)

    def create(self, table: str) -> str:
        columns = ", ".join(f"{name} {definition}" for name, definition in self.tables[table].items())
        return f"CREATE TABLE {table}({columns})"

    def index(self, name: str) -> str:
        table, columns = self.indexes[name]
        return f"CREATE INDEX {name} ON {table}({', '.join(columns)})"

    @property
    def extra(self) -> list[str]:
        """The columns of item that came with later versions."""
        return [name for name in self.tables["item"] if name not in BASE["item"]]

    def all_sql(self, *, hooks_only: bool = False) -> list[str]:
        """What makes it; for a declared schema, only what is not declared."""
        made = [] if hooks_only else [self.create(table) for table in self.tables]
        made += [] if hooks_only else [self.index(name) for name in self.indexes]
        for table, rows in self.seeds.items():
            made += [] if hooks_only else [seed(table, row) for row in rows]
        return made + list(self.views.values()) + list(self.triggers.values())


def seed(table: str, row: tuple[int, str]) -> str:
    return f"INSERT INTO {table}(id, name) VALUES ({row[0]}, '{row[1]}')"


def logged(name: str) -> str:
    return f"INSERT INTO steplog(step) VALUES ('{name}')"


BASE = {
    "item": {
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "token": "TEXT NOT NULL UNIQUE",
        "n": "INTEGER NOT NULL DEFAULT 1",
        "mark": "TEXT",
        "body": "BLOB",
        "visits": "INTEGER NOT NULL DEFAULT 0",
    },
    "steplog": {"step": "TEXT NOT NULL"},
    "child": {"id": "INTEGER PRIMARY KEY", "item": "INTEGER REFERENCES item(id)", "token": "TEXT NOT NULL"},
    "audit": {"token": "TEXT NOT NULL"},
    "counter": {"id": "INTEGER PRIMARY KEY", "launches": "INTEGER NOT NULL DEFAULT 0"},
}


def base() -> Schema:
    return Schema(copy.deepcopy(BASE), touched=dict.fromkeys(BASE, 0))


@dataclass
class Change:
    """What a version changes: `sql` does it by statements, `apply` in the mind."""

    version: Version
    kind: str
    number: int
    # Whether a step in Swift does it.
    is_swift: bool = False
    # The column that is renamed or dropped.
    column: str = ""

    @property
    def log(self) -> str:
        return f"to {text(self.version)}"

    @property
    def factor(self) -> int:
        """By which every row's n is multiplied."""
        return PRIMES[self.number % len(PRIMES)] if self.kind in ("multiply", "rebuild") else 1

    def apply(self, schema: Schema) -> None:
        number, item = self.number, schema.tables["item"]
        touched = ["item"]
        match self.kind:
            case "column":
                item[f"c{number}"] = f"TEXT DEFAULT 'd{number}'"
            case "table":
                touched = [f"t{number}"]
                schema.tables[f"t{number}"] = {"id": "INTEGER PRIMARY KEY", "name": "TEXT"}
                schema.seeds[f"t{number}"] = [(place, f"seed {number}.{place}") for place in range(1, 4)]
            case "index":
                schema.indexes[f"i{number}"] = ("item", ["mark", "token"])
            case "trigger":
                schema.triggers[f"g{number}"] = (
                    f"CREATE TRIGGER g{number} AFTER INSERT ON item BEGIN "
                    "INSERT INTO audit(token) VALUES (new.token); END"
                )
                touched = []
            case "view":
                schema.views[f"v{number}"] = f"CREATE VIEW v{number} AS SELECT id, token, n FROM item WHERE n > 0"
                touched = []
            case "rebuild":
                item["mark"] = f"TEXT DEFAULT NULL CHECK (length(mark) <> {number + 1000})"
            case "rename":
                # In its place.
                name = f"r{number}"
                schema.tables["item"] = {name if old == self.column else old: what for old, what in item.items()}
                schema.renamed[name] = self.column
            case "drop":
                del item[self.column]
            case "multiply" | "nothing":
                touched = []
        for table in touched:
            schema.touched[table] = number

    def sql(self, before: Schema, after: Schema) -> list[str]:
        """The statements of an app's own step, behind which the log is written."""
        number = self.number
        match self.kind:
            case "column":
                made = [f"ALTER TABLE item ADD COLUMN c{number} TEXT DEFAULT 'd{number}'"]
            case "table":
                name = f"t{number}"
                made = [after.create(name), *(seed(name, row) for row in after.seeds[name])]
            case "index":
                made = [after.index(f"i{number}")]
            case "trigger":
                made = [after.triggers[f"g{number}"]]
            case "view":
                made = [after.views[f"v{number}"]]
            case "multiply":
                made = [f"UPDATE item SET n = n * {self.factor}"]
            case "rename":
                made = [f"ALTER TABLE item RENAME COLUMN {self.column} TO r{number}"]
            case "rebuild" | "drop":
                names = ", ".join(after.tables["item"])
                values = ", ".join(f"n * {self.factor}" if name == "n" else name for name in after.tables["item"])
                made = [
                    after.create("item").replace("item", "item_new", 1),
                    f"INSERT INTO item_new({names}) SELECT {values} FROM item",
                    "DROP TABLE item",
                    # Views over the table are read by the renaming otherwise.
                    "PRAGMA legacy_alter_table = ON",
                    "ALTER TABLE item_new RENAME TO item",
                    "PRAGMA legacy_alter_table = OFF",
                    *(after.index(name) for name in after.indexes),
                    *after.triggers.values(),
                ]
            case _:
                made = []
        return [*made, logged(self.log)]


@dataclass
class Evolution:
    """All versions of an app's schema, the first of them made by its baseline."""

    versions: list[Version]
    changes: list[Change]
    schemas: list[Schema]

    def level(self, version: Version) -> int:
        """How many of the versions a database of that version has reached."""
        return sum(1 for known in self.versions if order(known) <= order(version)) - 1


def evolve(random: Random, kind: str) -> Evolution:
    count = random.randint(4, 9)
    if kind in ("dotted", "swift-dotted"):
        # Each of them above the one before; some releases have no step.
        long = ["1.0.0", "1.2.0", "1.9.2", "1.10.0", "1.10.1", "1.11.0", "2.0.0", "2.0.10", "2.1.0", "10.0.0"]
        # As a number 1.10 is 1.1, and 1.20 is 1.2.
        short = ["1.0", "1.1", "1.5", "1.9", "1.10", "1.11", "1.20", "2.0", "2.5", "2.10"]
        pool = random.choice([long, short])
        versions = [parsed(version) for version in sorted(random.sample(pool, count), key=lambda text: order(parsed(text)))]
    else:
        versions = [(number,) for number in range(1, count + 1)]
    schemas, changes = [base()], []
    for number, version in enumerate(versions[1:], 1):
        schema = copy.deepcopy(schemas[-1])
        kinds = ["column", "table", "index", "multiply", "multiply", "rebuild", "rename", "nothing"]
        if not schema.triggers:
            kinds.append("trigger")
        if not schema.views and kind != "versions":
            kinds.append("view")
        if kind == "tables":
            kinds.append("drop")
        chosen = random.choice(kinds)
        change = Change(version, chosen, number, is_swift=random.random() < 0.4)
        if chosen in ("rename", "drop"):
            free = [name for name in schema.extra if name not in schema.renamed]
            if not free:
                change.kind = "column"
            else:
                change.column = random.choice(free)
        change.apply(schema)
        changes.append(change)
        schemas.append(schema)
    return Evolution(versions, changes, schemas)
