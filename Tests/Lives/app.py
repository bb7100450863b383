"""The kinds of app: how each keeps its schema and version, before the store and with it."""

from __future__ import annotations

import json
import plistlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from random import Random

from schema import Change, Evolution, Schema, Version, evolve, logged, order, seed, text

# How an app keeps its schema, and where it may record the version.
KINDS = {
    "numbered": ["next", "user_version"],
    "dotted": ["stage"],
    "swift": ["user_version", "meta", "closure"],
    "swift-dotted": ["meta", "closure"],
    "tables": ["user_version", "plist", "meta"],
    "template": ["records"],
    "versions": ["none"],
    "none": ["user_version", "meta"],
}

# The table and what is selected of it, for the oracle; the first word is the table.
RECORDS = {
    "next": "db_version db_version_num FROM db_version",
    "stage": "tb_clientstage version FROM tb_clientstage WHERE id = '1' AND tableno = '0'",
    "meta": "meta value FROM meta WHERE name = 'schema'",
    "records": "Records value FROM Records WHERE name = 'DBVersion'",
    "none": "tableVersion name, version FROM tableVersion ORDER BY name",
}


@dataclass
class App:
    """One app through all its releases."""

    kind: str
    record: str
    evolution: Evolution
    folder: Path
    # What is added to the number in the table meta.
    offset: int = 0
    # The type of the column that records the version.
    affinity: str = "TEXT"
    counts_launches: bool = False

    @property
    def runs_steps(self) -> bool:
        return self.kind in ("numbered", "dotted", "swift", "swift-dotted")

    @property
    def is_declared(self) -> bool:
        return self.kind in ("tables", "template", "versions")

    # Without the store

    def record_sql(self, version: Version, level: int) -> list[str]:
        """What writes the app's own record of its version."""
        match self.record:
            case "user_version":
                return [f"PRAGMA user_version = {version[0]}"]
            case "next":
                return [
                    "CREATE TABLE IF NOT EXISTS db_version(db_version_num INTEGER)",
                    "DELETE FROM db_version",
                    f"INSERT INTO db_version VALUES ({version[0] + 1})",
                ]
            case "stage":
                return [
                    "CREATE TABLE IF NOT EXISTS tb_clientstage(id TEXT, tableno TEXT, version TEXT)",
                    "DELETE FROM tb_clientstage",
                    f"INSERT INTO tb_clientstage VALUES ('1', '0', '{text(version)}')",
                ]
            case "meta":
                return [
                    f"CREATE TABLE IF NOT EXISTS meta(name TEXT, value {self.affinity})",
                    "DELETE FROM meta WHERE name = 'schema'",
                    f"INSERT INTO meta VALUES ('schema', '{self._meta(version)}')",
                ]
            case "records":
                return [
                    "CREATE TABLE IF NOT EXISTS Records(name TEXT PRIMARY KEY, value TEXT)",
                    f"INSERT OR REPLACE INTO Records VALUES ('DBVersion', '{text(version)}')",
                ]
            case "none":
                made = [
                    "CREATE TABLE IF NOT EXISTS tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE)",
                    "DELETE FROM tableVersion",
                ]
                schema = self.evolution.schemas[level]
                return made + [
                    f"INSERT INTO tableVersion(name, version) VALUES ('{name}', {self._table_version(schema, name)})"
                    for name in schema.tables
                ]
        return []

    def _meta(self, version: Version) -> str:
        return text(version) if len(version) > 1 else str(version[0] - self.offset)

    def _table_version(self, schema: Schema, table: str) -> float:
        return (10 + schema.touched[table]) / 10

    def recorded(self, version: Version, level: int) -> object:
        """The record's rows as the oracle selects them."""
        match self.record:
            case "next":
                return [(version[0] + 1,)]
            case "stage" | "records":
                return [(text(version),)]
            case "meta":
                return [(self._meta(version),)] if self.affinity == "TEXT" else None
            case "none":
                schema = self.evolution.schemas[level]
                return sorted((name, self._table_version(schema, name)) for name in schema.tables)
        return None

    def write_outside(self, version: Version) -> None:
        """The record that is a file beside the database."""
        if self.record == "closure":
            (self.folder / "data" / "version.txt").write_text(text(version))
        if self.record == "plist":
            with (self.folder / "data" / "schema.plist").open("wb") as file:
                plistlib.dump({"dbVersion": version[0]}, file)

    def steps(self, level: int) -> tuple[list[str], list[str]]:
        """What makes a database of a level without the store, and what its log says then."""
        if not self.runs_steps:
            return [*self.evolution.schemas[level].all_sql(), self._first_counter, logged("install")], ["install"]
        made, log = self.baseline, ["base"]
        for change in self.evolution.changes[:level]:
            made = made + self.step(change)
            log = log + [change.log]
        return made, log

    def upgrade(self, since: int, level: int) -> list[str]:
        return [statement for change in self.evolution.changes[since:level] for statement in self.step(change)]

    _first_counter = "INSERT INTO counter VALUES (1, 0)"

    @property
    def baseline(self) -> list[str]:
        made = self.evolution.schemas[0].all_sql() + [self._first_counter, logged("base")]
        # The app makes the table of its record itself; the store keeps what is there.
        return made

    def step(self, change: Change) -> list[str]:
        level = self.evolution.changes.index(change)
        return change.sql(self.evolution.schemas[level], self.evolution.schemas[level + 1])

    # With the store

    _counting = "UPDATE counter SET launches = launches + 1"

    def ship(self, level: int, version: Version, options: dict, number: int) -> dict:
        """Writes what a release brings in files, and returns what its source code says."""
        folder = self.folder / f"release-{number}"
        folder.mkdir(exist_ok=True)
        enabled = options["enabled"]
        made: dict = {
            "directory": str(self.folder / "data"),
            "database": "app.db",
            "version": self._number(version),
            "encryption": {**options, "enabled": enabled},
            "hooks": self._hooks(level),
        }
        if self.kind in ("swift", "swift-dotted", "none"):
            made["recordedVersion"] = self._recorded()
            if self.kind != "none":
                made["steps"] = {
                    "isDotted": self.kind == "swift-dotted",
                    "baseline": {"version": self._number(self.evolution.versions[0]), "sql": self.baseline, "isSwift": False},
                    "updates": [
                        {"version": self._number(change.version), "sql": self.step(change), "isSwift": change.is_swift}
                        for change in self.evolution.changes[:level]
                    ],
                    "everyLaunch": [self._counting] if self.counts_launches else [],
                }
            return made
        names = (
            "sinceVersion", "unexpectedPlaintext", "whenDisabled", "keepBackup", "maximumAttempts", "onRepeatedFailure",
            "kdfIterations",
        )
        configuration: dict = {
            "dbName": "app.db",
            "dbVersion": self._number(version),
            "encryption": {"enabled": True, **{name: options[name] for name in names if name in options}},
            **self._source(level, version, folder),
        }
        if self.kind == "tables" and "destructiveChanges" in options:
            configuration["destructiveChanges"] = options["destructiveChanges"]
        recorded = self._recorded()
        if self.record == "plist":
            recorded = {"source": "plist", "file": "schema.plist", "key": "dbVersion"}
        elif recorded is not None:
            recorded = {"source": "table", "table": "meta", "column": "value", "where": {"name": "schema"}}
            recorded["offset"] = self.offset
        if recorded is not None:
            configuration["recordedVersion"] = recorded
        if number % 2:
            path = folder / "configuration.plist"
            with path.open("wb") as file:
                plistlib.dump(configuration, file)
        else:
            path = folder / "configuration.json"
            path.write_text(json.dumps(configuration))
        made["configurationFile"] = str(path)
        return made

    def _number(self, version: Version) -> int | str:
        return version[0] if len(version) == 1 else text(version)

    def _recorded(self) -> dict | None:
        if self.record == "meta":
            return {"table": "meta", "column": "value", "filter": {"name": "schema"}, "offset": self.offset}
        if self.record == "closure":
            return {"file": str(self.folder / "data" / "version.txt")}
        return None

    def _source(self, level: int, version: Version, folder: Path) -> dict:
        schema = self.evolution.schemas[level]
        if self.kind in ("numbered", "dotted"):
            steps = folder / "steps"
            steps.mkdir(exist_ok=True)
            files = {"default": self.baseline}
            for change in self.evolution.changes[:level]:
                files[f"update_{text(change.version)}"] = self.step(change)
            if self.counts_launches:
                files["launch"] = [self._counting]
            for name, statements in files.items():
                with (steps / f"sql_{name}.plist").open("wb") as file:
                    plistlib.dump(statements, file)
            return {"updates": {"directory": "steps"}}
        columns = {table: [{name: what} for name, what in schema.tables[table].items()] for table in schema.tables}
        if self.kind == "tables":
            indexes: dict[str, dict] = {}
            for name, (table, parts) in schema.indexes.items():
                indexes.setdefault(table, {})[name] = parts
            options = {table: {"indexes": found} for table, found in indexes.items()}
            if schema.renamed:
                options.setdefault("item", {})["renamedColumns"] = schema.renamed
            made = {"dbTables": [{table: parts} for table, parts in columns.items()]}
            return {**made, **({"tableOptions": options} if options else {})}
        if self.kind == "template":
            self._make_template(schema, version, folder / "template.db")
            renamed = {"renamedColumns": {"item": schema.renamed}} if schema.renamed else {}
            return {"template": {"file": "template.db", **renamed}}
        tables = {}
        for table, parts in columns.items():
            tables[table] = {"version": self._table_version(schema, table), "columns": parts}
            mine = [schema.index(name) for name, (owner, _) in schema.indexes.items() if owner == table]
            if mine:
                tables[table]["indexes"] = mine
            if table == "item" and schema.triggers:
                tables[table]["triggers"] = list(schema.triggers.values())
            if table == "item" and schema.renamed:
                tables[table]["renamedColumns"] = schema.renamed
        return {"tableVersions": tables}

    def _make_template(self, schema: Schema, version: Version, path: Path) -> None:
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path, isolation_level=None)
        for statement in [*schema.all_sql(), *self.record_sql(version, 0)]:
            connection.execute(statement)
        connection.close()

    def _hooks(self, level: int) -> dict:
        if self.runs_steps:
            return {}
        schema = self.evolution.schemas[level]
        if self.kind == "none":
            install = schema.all_sql()
        elif self.kind == "tables":
            install = [seed(table, row) for table, rows in schema.seeds.items() for row in rows]
            install += schema.all_sql(hooks_only=True)
        elif self.kind == "versions":
            install = [seed(table, row) for table, rows in schema.seeds.items() for row in rows]
        else:
            install = []
        upgrades = []
        for place, change in enumerate(self.evolution.changes[:level]):
            after = self.evolution.schemas[place + 1]
            statements = self.step(change) if self.kind == "none" else self._hook(change, after)
            upgrades.append({"version": self._number(change.version), "sql": statements, "isSwift": True})
        hooks: dict = {"firstInstall": [*install, self._first_counter, logged("install")], "upgrades": upgrades}
        if self.counts_launches:
            hooks["everyLaunch"] = [self._counting]
        return hooks

    def _hook(self, change: Change, after: Schema) -> list[str]:
        """What a hook does beside the declared schema."""
        made = [f"UPDATE item SET n = n * {change.factor}"] if change.factor != 1 else []
        if change.kind == "table" and self.kind != "template":
            made += [seed(f"t{change.number}", row) for row in after.seeds[f"t{change.number}"]]
        if self.kind == "tables":
            made += [after.triggers[f"g{change.number}"]] if change.kind == "trigger" else []
            made += [after.views[f"v{change.number}"]] if change.kind == "view" else []
        return [*made, logged(change.log)]


def make_app(random: Random, folder: Path, kind: str) -> App:
    record = random.choice(KINDS[kind])
    evolution = evolve(random, kind)
    app = App(kind, record, evolution, folder)
    if record == "meta" and kind in ("swift", "tables", "none"):
        app.offset = random.choice([0, 0, -1, 1])
    app.counts_launches = random.random() < 0.3
    return app
