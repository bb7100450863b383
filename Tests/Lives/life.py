"""One app's life: what happens to it, drawn from a seed, and whether each thing ended as the documents say."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import observe
from app import KINDS, RECORDS, App, make_app
from model import State
from observe import Content, Key, Unreadable
from schema import Version, order, text
from subject import CALLS, CALLS_OF_CONVERSION, End, Process, Run

ROUNDS = 1000
# What a full disk may be called.
FULL = {"noSpace", "inputOutput", "sqlite13", "sqlite10"}
# Apps that run Swift of their own at an upgrade.
BREAKABLE = {"swift", "swift-dotted", "tables", "template", "versions", "none"}
# One that is whole; not those that are being written.
BACKUP = re.compile(r"app\.db-plaintext(?!-[0-9a-f]{16}$).*")
CONVERTING = ("encrypted", "rekeyed", "decrypted")


class Fault(Exception):
    """The store did what it must not."""


@dataclass
class Vault:
    """A place where the app's key is."""

    kind: str
    name: str
    secret: str
    path: Path | None = None

    def description(self) -> dict:
        match self.kind:
            case "file":
                return {"kind": "file", "path": str(self.path), "create": True}
            case "passphrase":
                return {"kind": "passphrase", "text": self.secret}
            case "environment":
                return {"kind": "environment", "name": self.name}
        return {"kind": "raw", "hex": self.secret}

    @property
    def key(self) -> Key | None:
        """None where it has made none yet, or dropped it."""
        if self.kind == "file":
            assert self.path
            return Key(self.path.read_text().strip()) if self.path.exists() else None
        if self.kind == "passphrase":
            return Key(self.secret, ROUNDS)
        return Key(f"x'{self.secret}'")


@dataclass
class Operation:
    """One transaction of the app's."""

    name: str
    sql: str
    values: list[str]
    # Applied to the state once it is known to be in the file; given the rowid where it was told.
    effect: Callable[[State, int | None], None]

    def description(self) -> dict:
        return {"name": self.name, "sql": self.sql, "values": self.values}


@dataclass
class Release:
    """A release of the app as it is on a device, with the flags of this launch."""

    number: int
    level: int
    version: Version
    options: dict
    main: Vault
    former: Vault | None = None
    # None, or how the provider fails.
    failure: dict | None = None
    # Whether its newest step has a mistake that only running it shows.
    is_broken: bool = False

    def __str__(self) -> str:
        told = [f"release {self.number} of {text(self.version)}"]
        told += [f"{name}={what}" for name, what in self.options.items()]
        told.append(f"key={self.former.name + '>' if self.former else ''}{self.main.name}")
        if self.is_broken:
            told.append("its step fails")
        if self.failure:
            told.append(f"provider fails: {self.failure['kind']} {self.failure.get('error', '')} after {self.failure['after']}")
        return " ".join(told)


@dataclass
class Backup:
    """The app's folder in an earlier moment."""

    files: dict[str, bytes]
    state: State
    keys: dict[str, bytes]
    plaintext_backup: bool


@dataclass
class Candidate:
    """A way in which a launch may have ended."""

    state: State
    outcome: str | None = None
    refusals: frozenset[str] = frozenset()


@dataclass
class Life:
    seed: int
    folder: Path
    program: Path
    told: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    # The world

    def begin(self) -> None:
        random = self.random = Random(self.seed)
        self.data = self.folder / "data"
        self.keys = self.folder / "keys"
        self.data.mkdir(parents=True)
        self.keys.mkdir()
        self.database = self.data / "app.db"
        kind = random.choice(list(KINDS))
        self.app: App = make_app(random, self.folder, kind)
        evolution = self.app.evolution
        if kind == "swift-dotted" and self.app.record == "meta":
            self.app.affinity = random.choice(["TEXT", "TEXT", "REAL"])
        self.tokens = itertools.count(1)
        self.names = itertools.count(1)
        self.state = State(evolution)
        self.attempts = self.shadows = self.begun = 0
        self.kept_backup = False
        self.persists = False
        self.is_begun = False
        self.backups: list[Backup] = []
        self.vaults: list[Vault] = []
        self.seen_keys: list[Key] = []
        self.legacy_levels = 0
        if random.random() < 0.85:
            self.legacy_levels = random.randint(0, len(evolution.versions) - 2)
        self.first_hook = self.legacy_levels if kind == "versions" else 0
        self.make_vaults()
        self.make_releases()
        self.backfills: dict[int, str] = {}
        if random.random() < 0.3:
            levels = range(1, len(evolution.versions))
            self.backfills = {level: f"backfill {level}" for level in random.sample(levels, 1)}

    def make_vaults(self) -> None:
        random = self.random
        count = 1 + (random.random() < 0.35) + (random.random() < 0.1)
        kinds = ["raw", "raw", "file", "file", "environment"]
        passphrases = random.random() < 0.1
        self.rounds = ROUNDS if passphrases else None
        for number in range(count):
            kind = "passphrase" if passphrases else random.choice(kinds)
            secret = random.randbytes(32).hex()
            self.vaults.append(Vault(kind, f"KEY_{number}", secret, self.keys / f"key-{number}"))

    def make_releases(self) -> None:
        """The releases with the store, in the order in which they are published."""
        random, evolution = self.random, self.app.evolution
        self.releases: list[Release] = []
        level, vault, since = self.legacy_levels, 0, None
        last = len(evolution.versions) - 1
        enabled = random.random() < 0.6
        shipped_plaintext = level
        self.drops = random.choice(["allow", "withhold", "refuse"])
        while level < last or len(self.releases) < 3:
            if self.releases:
                level = min(last, level + random.choice([0, 1, 1, 2]))
                if random.random() < 0.3:
                    enabled = not enabled
                if vault + 1 < len(self.vaults) and random.random() < 0.4:
                    vault += 1
            if not enabled or not self.releases:
                shipped_plaintext = level
            options: dict = {"enabled": enabled}
            if self.rounds:
                options["kdfIterations"] = self.rounds
            if random.random() < 0.8:
                options["whenDisabled"] = "decrypt"
            if enabled and since is None and level > shipped_plaintext and random.random() < 0.3:
                since = level
            if since is not None:
                options["sinceVersion"] = self.app._number(evolution.versions[since])
            if random.random() < 0.1:
                options["unexpectedPlaintext"] = "encrypt"
            if self.app.kind == "tables" and self.drops != "withhold":
                options["destructiveChanges"] = self.drops
            if random.random() < 0.2:
                options["keepBackup"] = True
            if random.random() < 0.3:
                options["shadow"] = not enabled
            if random.random() < 0.15:
                options["maximumAttempts"] = random.choice([1, 2])
            if random.random() < 0.3:
                options["onRepeatedFailure"] = "openPlaintext"
            former = self.vaults[vault - 1] if vault and random.random() < 0.8 else None
            release = Release(len(self.releases) + 1, level, evolution.versions[level], options, self.vaults[vault], former)
            can_break = level and (not self.app.runs_steps or evolution.changes[level - 1].is_swift)
            if can_break and self.app.kind in BREAKABLE and level > self.first_hook and random.random() < 0.06:
                self.releases.append(Release(**{**release.__dict__, "is_broken": True}))
                release.number += 1
            self.releases.append(release)

    # The life

    def live(self) -> None:
        self.begin()
        random = self.random
        self.tell(
            f"{self.app.kind}, version in {self.app.record} {self.app.affinity if self.app.record == 'meta' else ''}, "
            f"versions {' '.join(text(version) for version in self.app.evolution.versions)}, "
            f"changes {' '.join(change.kind + ('*' if change.is_swift else '') for change in self.app.evolution.changes)}"
        )
        if self.legacy_levels or random.random() < 0.5:
            self.live_without_store()
        self.current = 0
        for _ in range(random.randint(5, 14)):
            self.event()
        self.settle()

    def event(self) -> None:
        random = self.random
        if random.random() < 0.45:
            self.current = min(len(self.releases) - 1, self.current + random.choice([1, 1, 2]))
        events: dict[Callable[[], None], int] = {
            self.launch_normally: 40,
            self.launch_and_die: 40,
            self.launch_on_full_disk: 8,
            self.launch_several: 8,
            self.launch_older: 4,
            self.launch_with_failing_provider: 5,
            self.launch_with_flag_turned: 6,
            self.write_by_legacy_code: 8,
            self.write_records: 7,
            self.back_up: 9,
            self.restore: 7,
            self.swap_plaintext: 2,
            self.launch_beside_idle: 4,
        }
        chosen = random.choices(list(events), list(events.values()))[0]
        chosen()

    def settle(self) -> None:
        """The last release is launched until it is at rest, and then once more, which must change nothing."""
        self.current = len(self.releases) - 1
        release = self.releases[self.current]
        for _ in range(3):
            if self.run_one(release).opened:
                break
            refused = self.last_refusal
            if refused == "repeatedFailure":
                release = self.changed(release, onRepeatedFailure="openPlaintext", maximumAttempts=50)
            elif refused == "backupExists":
                release = self.changed(release, keepBackup=False)
            elif self.backups:
                self.restore()
            else:
                break
        else:
            return
        run = self.run_one(release)
        if run.opened and run.opened["launch"] != "unchanged":
            raise Fault(f"a second launch of the same release is a {run.opened['launch']}")

    def changed(self, release: Release, **options: object) -> Release:
        made = Release(**{**release.__dict__, "options": {**release.options, **options}, "number": len(self.releases) + 1})
        self.releases.append(made)
        return made

    # Without the store

    def legacy_connection(self) -> sqlite3.Connection:
        return sqlite3.connect(self.database, isolation_level=None)

    def live_without_store(self) -> None:
        random, app = self.random, self.app
        # Tables with a version each say nothing of the whole database's.
        level = self.legacy_levels if app.kind == "versions" else random.randint(0, self.legacy_levels)
        connection = self.legacy_connection()
        if random.random() < 0.15:
            connection.execute(f"PRAGMA page_size = {random.choice([512, 1024, 8192, 65536])}")
        if random.random() < 0.1:
            connection.execute("PRAGMA encoding = 'UTF-16le'")
        if random.random() < 0.1:
            connection.execute(f"PRAGMA auto_vacuum = {random.choice([1, 2])}")
        mode = random.choice(["DELETE", "WAL", "WAL", "TRUNCATE", "PERSIST"])
        connection.execute(f"PRAGMA journal_mode = {mode}")
        self.persists = mode in ("PERSIST", "TRUNCATE")
        made, log = app.steps(level)
        self.state.install(level, log)
        self.record_legacy(connection, level, made)
        for _ in range(random.randint(0, 3)):
            self.legacy_operations(connection, random.randint(1, 6))
            if self.state.level < self.legacy_levels and random.random() < 0.5:
                level = random.randint(self.state.level, self.legacy_levels)
                since = self.state.level
                self.state.migrate(level)
                self.record_legacy(connection, level, app.upgrade(since, level))
        self.tell(f"legacy app: {len(self.state.rows)} rows at {text(self.state.version)}")
        if random.random() < 0.35:
            # Its last moment is one in which it was killed.
            self.leave_amidst(connection)
        connection.close()
        self.check("the legacy app")

    def record_legacy(self, connection: sqlite3.Connection, level: int, statements: Iterable[str]) -> None:
        app, version = self.app, self.app.evolution.versions[level]
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN")
        for statement in [*statements, *app.record_sql(version, level)]:
            connection.execute(statement)
        connection.execute("COMMIT")
        app.write_outside(version)
        self.state.version = (0,) if app.kind == "versions" else version
        self.state.record = app.recorded(version, level)

    def legacy_operations(self, connection: sqlite3.Connection, count: int) -> None:
        for operation in self.operations(self.state, self.state.level, count):
            values = [bytes.fromhex(value[2:]) if value.startswith("x:") else value for value in operation.values]
            cursor = connection.execute(operation.sql, values)
            operation.effect(self.state, cursor.lastrowid if operation.sql.startswith("INSERT INTO item") else None)

    def leave_amidst(self, connection: sqlite3.Connection) -> None:
        """Puts the files as they are amidst a transaction in the place of those that a closing connection leaves."""
        self.tell("the legacy app is killed amidst a transaction")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        self.legacy_operations(connection, 2)
        connection.execute("BEGIN")
        connection.execute("UPDATE item SET body = zeroblob(9000), mark = 'lost'")
        connection.execute("INSERT INTO item(token, body) VALUES ('never', zeroblob(9000))")
        held = self.folder / "held"
        held.mkdir()
        for name in ("app.db", "app.db-wal", "app.db-journal"):
            file = self.data / name
            if file.exists():
                # Not by this process, which would drop the connection's locks.
                subprocess.run(["cp", str(file), str(held / file.name)], check=True)
        connection.close()
        self.remove_database()
        for file in held.iterdir():
            shutil.move(file, self.data / file.name)
        held.rmdir()

    def remove_database(self, *, keeping: str = "") -> None:
        for name in ("app.db", "app.db-wal", "app.db-shm", "app.db-journal"):
            if name != keeping:
                (self.data / name).unlink(missing_ok=True)

    # Transactions

    def operations(self, state: State, level: int, count: int) -> list[Operation]:
        """What a user does, all of it about rows that no other process of the moment touches."""
        random, schema = self.random, self.app.evolution.schemas[level]
        free = [token for token in state.rows if token not in state.children.values() and token not in self.taken]
        made = []
        for _ in range(count):
            name = f"o{next(self.names)}"
            choice = random.random()
            if choice < 0.15 and free:
                token = free.pop(random.randrange(len(free)))
                made.append(Operation(name, "UPDATE item SET mark = ? WHERE token = ?", [name, token], self._marks(token, name)))
            elif choice < 0.25 and free:
                token = free.pop(random.randrange(len(free)))
                made.append(Operation(name, "DELETE FROM item WHERE token = ?", [token], self._deletes(token)))
            elif choice < 0.35 and free:
                token = free.pop(random.randrange(len(free)))
                child = f"child of {token} by {name}"
                sql = "INSERT INTO child(item, token) SELECT id, ? FROM item WHERE token = ?"
                made.append(Operation(name, sql, [child, token], self._bears(token, child)))
            else:
                token = f"{self.seed}.{next(self.tokens)}"
                size = random.choice([0, 1, 40, 300, 3000, 3000, 20000])
                body = random.randbytes(size) if random.random() < 0.9 else None
                extra = {column: random.choice([token + column, None]) for column in schema.extra}
                columns, marks, values = ["token", "body"], ["?", "?" if body is not None else "NULL"], [token]
                if body is not None:
                    values.append("x:" + body.hex())
                for column, value in extra.items():
                    columns.append(column)
                    marks.append("?" if value is not None else "NULL")
                    values += [] if value is None else [value]
                sql = f"INSERT INTO item({', '.join(columns)}) VALUES ({', '.join(marks)})"
                made.append(Operation(name, sql, values, self._inserts(token, body, extra)))
        self.taken |= {value for operation in made for value in operation.values if value in state.rows}
        return made

    taken: set[str] = field(default_factory=set)

    @staticmethod
    def _marks(token: str, mark: str) -> Callable[[State, int | None], None]:
        def effect(state: State, _: int | None) -> None:
            state.rows[token].mark = {mark}

        return effect

    @staticmethod
    def _deletes(token: str) -> Callable[[State, int | None], None]:
        return lambda state, _: state.rows.pop(token) and None

    @staticmethod
    def _bears(token: str, child: str) -> Callable[[State, int | None], None]:
        return lambda state, _: state.children.__setitem__(child, token)

    @staticmethod
    def _inserts(token: str, body: bytes | None, extra: dict) -> Callable[[State, int | None], None]:
        return lambda state, rowid: state.insert(token, body, extra, rowid)

    # Launches

    @property
    def release(self) -> Release:
        return self.releases[self.current]

    last_refusal: str | None = None

    def launch_normally(self) -> None:
        self.run_one(self.release)

    def launch_older(self) -> None:
        self.run_one(self.random.choice(self.releases[: self.current + 1]))

    def launch_with_flag_turned(self) -> None:
        release = self.release
        enabled = not release.options["enabled"]
        self.run_one(Release(**{**release.__dict__, "options": {**release.options, "enabled": enabled, "shadow": False}}))

    def launch_with_failing_provider(self) -> None:
        random, release = self.random, self.release
        failure: dict = {"after": random.randint(0, 4), "kind": random.choice(["failing", "failing", "changing"])}
        if failure["kind"] == "failing":
            failure["error"] = random.choice(["locked", "unavailable", "thrown"])
        self.run_one(Release(**{**release.__dict__, "failure": failure, "former": None}))

    def launch_and_die(self) -> None:
        """Killed where this launch comes to, as far as that can be told."""
        random, release = self.random, self.release
        had_keys = {vault.name: vault.key for vault in self.vaults}
        self.begun = self.attempts
        outcome = self.predictions(self.state, release, had_keys, full=False, shared=False)[0].outcome
        if outcome is None:
            self.launch_normally()
            return
        converts = outcome in CONVERTING or outcome == "created" and release.options["enabled"]
        upgrades = self.state.level is not None and self.state.level < release.level
        choice = random.random()
        if choice < 0.4:
            places = ["opened", "before", "asleep", "within", "behind", "ending", "closed"]
            places += ["ask", "quiescing", "building", "proving", "swapping"] * converts
            places += ["step"] * 2 * (upgrades or outcome == "created") + ["visit"] * 2 * bool(self.backfills)
            places += ["rotated", "dropped"] * (release.former is not None)
            self.run_one(release, death={"place": random.choice(places), "number": random.choice([1, 1, 1, 2, 3])})
        elif choice < 0.55:
            self.run_one(release, end=End(after=random.uniform(0.003, 0.05)))
        else:
            calls = CALLS_OF_CONVERSION if converts else CALLS
            call = random.choices(list(calls), [weight for weight, _ in calls.values()])[0]
            self.run_one(release, end=End(call=call, number=random.randint(1, calls[call][1])))

    def launch_on_full_disk(self) -> None:
        if self.random.random() < 0.4:
            call = self.random.choice(["pwrite64", "ftruncate", "fallocate", "fdatasync"])
            self.run_one(self.release, end=End(call=call, number=self.random.randint(1, 40), is_full=True))
            return
        self.run_one(self.release, end=End(size=self.random.choice([0, 1, 4, 12, 30, 50, 80, 120]) * 1024 + 100))

    def launch_beside_idle(self) -> None:
        """Another program has the plaintext file open, and does nothing."""
        if self.state.key is not None or self.state.level is None:
            return
        self.tell("the sqlite3 program has the file open")
        other = subprocess.Popen(
            ["sqlite3", "-bail", str(self.database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert other.stdin and other.stdout
        other.stdin.write("SELECT count(*) FROM item;\n")
        other.stdin.flush()
        other.stdout.readline()
        try:
            self.run_one(self.release, beside=True)
        finally:
            other.communicate()

    def launch_several(self) -> None:
        random = self.random
        releases = [self.release] * random.randint(2, 3)
        earlier = self.releases[self.current - 1]
        # With another key, one could be made and dropped before anyone looks.
        if random.random() < 0.3 and self.current and earlier.main is self.release.main:
            releases[0] = earlier
        ends = [End(after=random.uniform(0.01, 0.08)) if random.random() < 0.25 else End() for _ in releases]
        self.run_several(releases, ends)

    def run_one(
        self, release: Release, end: End | None = None, death: dict | None = None, *, beside: bool = False
    ) -> Run:
        return self.run_several([release], [end or End()], death, beside=beside)[0]

    def run_several(
        self, releases: list[Release], ends: list[End], death: dict | None = None, *, beside: bool = False
    ) -> list[Run]:
        """Launches side by side, and judges what they said and what they left."""
        random = self.random
        self.taken = set()
        before = {file.name: file.read_bytes() for file in self.data.glob("app.db*")}
        self.is_begun = observe.is_plaintext(self.database) is True
        self.note_keys()
        had_keys = {vault.name: vault.key for vault in self.vaults}
        works, descriptions = [], []
        for number, release in enumerate(releases):
            level = release.level
            # Rows that were there before the app was opened at its level.
            work = self.operations(self.expected_rows(release), level, random.choice([0, 1, 2, 3, 5]))
            described = self.described(release)
            described["work"] = [operation.description() for operation in work]
            described["ending"] = random.choice(["close", "close", "exit"])
            described["death"] = death
            if beside:
                described["busyTimeout"] = 100
            path = self.folder / f"launch-{number}.json"
            path.write_text(json.dumps(described))
            works.append(work)
            descriptions.append(path)
        environment = {vault.name: f"x'{vault.secret}'" for vault in self.vaults if vault.kind == "environment"}
        started = [Process(self.program, path, end, environment) for path, end in zip(descriptions, ends)]
        runs = [process.wait(json.loads(path.read_text())) for process, path in zip(started, descriptions)]
        for release, end, run in zip(releases, ends, runs):
            self.count(run, end)
            ending = f" {end}" if str(end) else f" dies at {death['place']} {death['number']}" if death else ""
            self.tell(f"{release}{ending}: {self.summary(run)}")
        self.note_keys()
        for run in runs:
            if run.hung:
                raise Fault("it hangs")
            if not run.killed and run.status not in (0, 3, 5):
                raise Fault(f"it ended with status {run.status}: {run.errors[-300:]}")
        self.judge(releases, ends, runs, works, before, had_keys, death, beside)
        return runs

    def expected_rows(self, release: Release) -> State:
        """The rows that there are, with none where the release makes the database."""
        return self.state

    def described(self, release: Release) -> dict:
        described = self.app.ship(release.level, release.version, release.options, release.number)
        if self.first_hook and "upgrades" in described["hooks"]:
            described["hooks"]["upgrades"] = described["hooks"]["upgrades"][self.first_hook :]
        if release.is_broken:
            steps = described["hooks"].get("upgrades") or described["steps"]["updates"]
            steps[-1]["sql"].append("INSERT INTO nowhere VALUES (1)")
        main = release.main.description()
        if release.failure:
            main = {**release.failure, "of": main, "other": {"kind": "raw", "hex": "ab" * 32}}
        described["key"] = main
        if release.former:
            drops = str(release.former.path) if release.former.kind == "file" else None
            former = {**release.former.description(), "create": False}
            described["key"] = {"kind": "rotation", "from": former, "to": main, "drops": drops}
        described["backfills"] = [name for level, name in self.backfills.items() if level <= release.level]
        return described

    def summary(self, run: Run) -> str:
        told = [f"opened {run.opened['outcome']} {run.opened['launch']} {run.opened['warnings'] or ''}"] if run.opened else []
        told += [f"refused {run.refused} {run.reason[:160]}"] if run.refused else []
        told += [f"{len(run.did)} transactions"] if run.did else []
        told += [f"failed {run.failed} {run.reason[:160]}"] if run.failed else []
        told += ["killed"] if run.killed else ["closed"] if run.closed else [f"status {run.status}"]
        return ", ".join(told)

    def count(self, run: Run, end: End) -> None:
        self.counts["launches"] += 1
        self.counts["kills"] += run.killed
        self.counts["opened"] += run.opened is not None
        self.counts["rows"] += len(run.did)
        if run.opened:
            self.counts[f"outcome {run.opened['outcome']}"] += 1
        if run.refused:
            self.counts[f"refused {run.refused}"] += 1
        self.counts["full disks"] += end.is_disk
        self.last_refusal = run.refused

    # Judging

    def predictions(
        self, state: State, release: Release, had_keys: dict[str, Key | None], *, full: bool, shared: bool
    ) -> list[Candidate]:
        """How a launch may end by the documents."""
        options, refusals, made = release.options, set(), []
        enabled = options["enabled"]
        main, former = release.main.key, release.former and (had_keys[release.former.name] or release.former.key)
        had_main = had_keys[release.main.name]
        fails = set()
        if release.failure:
            if release.failure["kind"] == "changing":
                fails = {"keyChanged", "keyDoesNotFit"}
            else:
                fails = {"keyStoreLocked"} if release.failure["error"] == "locked" else {"keyUnavailable"}
        never = bool(release.failure) and release.failure["after"] == 0
        if release.failure and release.failure["kind"] == "changing":
            # Another key from the beginning is a key.
            never = False
            if release.failure["after"] == 0:
                main = Key("x'" + "ab" * 32 + "'")
                had_main = main
                fails = set()
        # A disk that takes no more leaves a journal where there should be none, which another connection could have made.
        elsewhere = {"busy"} if shared or full else set()
        disk = FULL if full else set()

        def opens(outcome: str, key: Key | None, stamp: str | None, *, refusable: set[str]) -> None:
            fresh = state.level is None
            runs = self.app.runs_steps if fresh else state.level < release.level
            drops = self.drops == "refuse" and not fresh and bool(state.withheld or self.dropped(state, release))
            reasons = {"migration", "configuration"} if release.is_broken and runs else set()
            reasons |= {"destructiveChanges"} if drops else set()
            if reasons:
                refusals.update(reasons | refusable)
                return
            after = state.copy()
            self.open(after, release, key, stamp)
            made.append(Candidate(after, outcome))
            if refusable:
                made.append(Candidate(state, None, frozenset(refusable)))

        def puts_off() -> None:
            """What keeps a change of an encrypted file from being made now puts it off."""
            if full or shared or self.begun >= options.get("maximumAttempts", 5):
                opens("opened", state.key, state.stamp, refusable=set())

        if state.level is None:
            # A plaintext database whose maker was killed before it had tables is there, and is empty.
            outcomes = ["created"] if not self.is_begun else ["created", "openedPlaintext" if not enabled else "encrypted"]
            if never and enabled:
                refusals |= fails
            for outcome in outcomes * (not never or not enabled):
                key, stamp = (main, "encrypted") if enabled else (None, "plaintext")
                opens(outcome, key, stamp, refusable=disk | elsewhere | (fails if enabled else set()))
        elif state.key is None:
            newer = order(state.version) > order(release.version)
            if newer:
                refusals.add("downgrade")
            if not enabled:
                if not newer:
                    opens("openedPlaintext", None, "plaintext", refusable=disk | elsewhere)
            else:
                since = options.get("sinceVersion")
                legacy = state.stamp is None
                if since is not None:
                    legacy = order(state.version) < order((since,) if isinstance(since, int) else _parsed(since))
                accepts = state.stamp == "plaintext" or legacy or options.get("unexpectedPlaintext") == "encrypt"
                if not accepts:
                    refusals.add("unexpectedPlaintext")
                elif not newer:
                    # One that another history left is not this file's.
                    if never:
                        refusals |= fails
                    else:
                        opens("encrypted", main, "encrypted", refusable=disk | elsewhere | fails)
                    if self.begun >= options.get("maximumAttempts", 5):
                        if options.get("onRepeatedFailure") == "openPlaintext":
                            opens("openedPlaintext", None, "plaintext", refusable=disk)
                        else:
                            refusals.add("repeatedFailure")
        else:
            newer = order(state.version) > order(release.version)
            # A key that this very launch, or one beside it, has made.
            made_now = state.key is not self.state.key and state.key == main
            fits = (state.key == had_main or made_now) and not never
            turns = former is not None and state.key == former
            if newer:
                refusals.add("downgrade")
            if not fits and not turns:
                refusals |= fails
                if not never:
                    refusals.add("keyDoesNotFit")
                if had_main is None:
                    refusals.add("keyUnavailable")
            elif not enabled and options.get("whenDisabled") != "decrypt":
                refusals.add("encryptionDisabled")
            elif not newer and not enabled:
                opens("decrypted", None, "plaintext", refusable=disk | elsewhere | fails)
                puts_off()
            elif not newer and fits:
                opens("opened", state.key, state.stamp, refusable=disk | fails)
            elif not newer:
                opens("rekeyed", main, state.stamp, refusable=disk | elsewhere | fails)
                puts_off()
        if refusals or disk:
            made.append(Candidate(state, None, frozenset(refusals | disk)))
        if state.user_version is not None and state.is_adopted:
            made.append(Candidate(state, None, frozenset({"recordedVersion"})))
        if self.app.affinity == "REAL":
            made.append(Candidate(state, None, frozenset({"recordedVersion"})))
        return made

    def dropped(self, state: State, release: Release) -> set[str]:
        """The columns of the database that the release declares no more."""
        there = self.app.evolution.schemas[state.level].tables["item"]
        changes = self.app.evolution.changes[state.level : release.level]
        return {change.column for change in changes if change.kind == "drop" and change.column in there}

    def open(self, state: State, release: Release, key: Key | None, stamp: str | None) -> None:
        """What opening makes of a database."""
        app = self.app
        if state.level is None:
            log = ["install"]
            if app.runs_steps:
                log = ["base"] + [change.log for change in app.evolution.changes[: release.level]]
            state.install(release.level, log)
            state.record = app.recorded(release.version, release.level) if app.record in ("records", "none") else None
            state.launches = {0}
        else:
            self.migrate(state, release)
            if state.record is not None:
                state.record = app.recorded(release.version, release.level)
        state.key, state.stamp, state.version, state.is_adopted = key, stamp, release.version, True
        state.seen_version, state.user_version = state.user_version, None
        if app.counts_launches:
            state.launches = {count + 1 for count in state.launches}

    def migrate(self, state: State, release: Release) -> None:
        withholds = release.options.get("destructiveChanges", "withhold") != "allow"
        first = max(state.level, min(self.first_hook, release.level))
        state.migrate(first, changes_data=False, withholds=withholds)
        state.migrate(max(release.level, state.level), withholds=withholds)

    def judge(
        self, releases: list[Release], ends: list[End], runs: list[Run], works: list[list[Operation]],
        before: dict[str, bytes], had_keys: dict[str, Key | None], death: dict | None, beside: bool,
    ) -> None:  # fmt: skip
        state = self.state
        full = any(end.is_disk for end in ends)
        shared = len(releases) > 1 or beside
        state = state.copy()
        state.beside = set()
        # Those that are killed beside another count for it.
        self.begun = self.attempts + (sum(run.killed for run in runs) if len(runs) > 1 else 0)
        # In which order several opened the database is not known, nor whether one that was killed did.
        ways: list[State] = []
        for places in itertools.permutations(range(len(releases))):
            self.follow(state, places, releases, runs, works, had_keys, full, shared, ways)
        if not ways:
            allowed = [
                candidate.outcome or "/".join(sorted(candidate.refusals))
                for candidate in self.predictions(state, releases[0], had_keys, full=full, shared=shared)
            ]
            raise Fault(f"by the documents it ends with {' or '.join(allowed) or 'nothing'}")
        found = self.look()
        best: list[str] | None = None
        for way in ways:
            told = way.differences(found)
            if not told:
                best = []
                way.adopt(found)
                self.state = way
                break
            if best is None or len(told) < len(best):
                best = told
        if best:
            raise Fault("; ".join(best[:6]))
        for release, run in zip(releases, runs):
            self.account(release, run, state, alone=len(runs) == 1)
        self.kept_backup = any(BACKUP.fullmatch(file.name) for file in self.data.iterdir())
        self.check_files(releases, runs, before, full, beside)

    def follow(
        self, state: State, places: tuple[int, ...], releases: list[Release], runs: list[Run],
        works: list[list[Operation]], had_keys: dict[str, Key | None], full: bool, shared: bool,
        ways: list[State],
    ) -> None:  # fmt: skip
        """Collects the states to which the launches lead, one after the other."""
        if len(ways) > 200:
            return
        if not places:
            ways.append(state)
            return
        place, rest = places[0], places[1:]
        release, run, work = releases[place], runs[place], works[place]

        def go_on(after: State) -> None:
            self.follow(after, rest, releases, runs, works, had_keys, full, shared, ways)

        for candidate in self.predictions(state, release, had_keys, full=full, shared=shared):
            if candidate.outcome is None:
                if run.refused in candidate.refusals:
                    go_on(state)
                continue
            cut_short = full and run.refused in FULL
            if run.refused and not cut_short:
                continue
            if run.opened is None:
                # It ended before it could say what it had done.
                if run.killed or cut_short:
                    after = self.pending(candidate.state.copy(), release)
                    go_on(after)
                    if candidate.outcome == "openedPlaintext" and candidate.state.stamp != state.stamp:
                        # Between the migration and the stamp.
                        unstamped = candidate.state.copy()
                        unstamped.stamp = state.stamp
                        go_on(self.pending(unstamped, release))
                continue
            if run.opened["outcome"] != candidate.outcome:
                continue
            for after in self.worked(candidate.state.copy(), release, run, work, full or shared):
                go_on(after)
        if run.killed and run.opened is None:
            go_on(state)

    def pending(self, state: State, release: Release) -> State:
        names = [name for level, name in self.backfills.items() if level <= release.level]
        state.pending |= {name for name in names if name not in state.backfilled}
        return state

    def worked(self, state: State, release: Release, run: Run, work: list[Operation], may_fail: bool) -> list[State]:
        """The states after a store's transactions: of one that was not acknowledged, with and without it."""
        self.pending(state, release)
        for name in run.visited:
            state.backfill(name)
        if run.failed and not may_fail:
            raise Fault(f"a transaction failed: {run.failed} {run.reason}")
        mixed = state.level is not None and state.level > release.level
        for place, operation in enumerate(work):
            if operation.name in run.did:
                changes, rowid = run.did[operation.name]
                if changes != 1:
                    # Its row was written or deleted in another history.
                    if operation.sql.startswith("INSERT INTO item"):
                        raise Fault(f"{operation.name} changed {changes} rows")
                    continue
                self.act(operation, state, rowid, mixed)
                continue
            # A commit whose log could not be synced may be found in it by the next opening.
            unsure = run.failed is not None and run.failed[0] == operation.name and _is_io(run.failed[1])
            if (run.killed and not run.failed or unsure) and not state.pending:
                with_it = state.copy()
                try:
                    self.act(operation, with_it, None, mixed)
                except KeyError:
                    return [state]
                return [state, with_it]
            break
        return [state]

    def act(self, operation: Operation, state: State, rowid: int | None, mixed: bool) -> None:
        is_insert = operation.sql.startswith("INSERT INTO item")
        operation.effect(state, rowid if is_insert else None)
        if is_insert:
            state.beside.add(operation.values[0])
        if mixed and is_insert:
            state.rows[operation.values[0]].is_mixed = True

    def account(self, release: Release, run: Run, before: State, *, alone: bool) -> None:
        """What outlives the database in the life's mind."""
        converts = before.level is not None and (
            (before.key is None) == release.options["enabled"] or before.key not in (None, release.main.key)
        )
        if run.opened:
            if run.opened["outcome"] == "encrypted" and release.options.get("keepBackup") and alone:
                self.check_backup(before)
            if run.opened["outcome"] in (*CONVERTING, "created"):
                self.attempts = self.shadows = 0
            if run.opened["to"] != text(release.version):
                raise Fault(f"the report says version {run.opened['to']}")
            if release.options.get("shadow") and not release.options["enabled"] and before.level is not None:
                wanted = "shadow" if before.key is None else None
                if run.opened.get("shadow") != wanted:
                    self.counts["shadow failed"] += 1
        elif run.killed and converts:
            self.attempts += 1
        elif run.killed and release.options.get("shadow"):
            self.shadows += 1

    def check_files(
        self, releases: list[Release], runs: list[Run], before: dict[str, bytes], full: bool, beside: bool
    ) -> None:
        names = {file.name for file in self.data.glob("app.db?*")}
        if all(run.opened for run in runs):
            allowed = {"app.db-wal", "app.db-shm"}
            if self.persists:
                # A spent journal, which this journal mode keeps.
                allowed.add("app.db-journal")
            allowed |= {name for name in names if BACKUP.fullmatch(name) and (self.kept_backup or name in before)}
            kills = max(self.attempts, self.shadows)
            if full or any(release.options.get("maximumAttempts", 5) <= kills for release in releases):
                # What could not be done is tried again by the next launch.
                allowed.add("app.db-attempt")
            elif all(run.closed for run in runs) and not beside:
                allowed -= {"app.db-wal", "app.db-shm"}
            left = names - allowed
            if left:
                raise Fault(f"left beside: {sorted(left)}")
        untouched = {"downgrade", "encryptionDisabled", "unexpectedPlaintext", "keyDoesNotFit", "staleSidecar"}
        if len(runs) == 1 and runs[0].refused in untouched and set(before) == {"app.db"}:
            if self.database.read_bytes() != before["app.db"]:
                raise Fault(f"refused as {runs[0].refused}, and the file was changed")

    def check_backup(self, before: State) -> None:
        """The plaintext file that is kept holds what the database held."""
        backup = max(
            (file for file in self.data.iterdir() if BACKUP.fullmatch(file.name)), key=lambda file: file.stat().st_mtime_ns,
            default=None,
        )  # fmt: skip
        if backup is None:
            raise Fault("no backup was kept")
        found = observe.observe(backup, [], self.folder / "scratch", RECORDS.get(self.app.record))
        told = before.differences(found)
        if told:
            raise Fault("the backup is not what the database was: " + "; ".join(told[:6]))

    # The oracle

    def note_keys(self) -> None:
        for vault in self.vaults:
            key = vault.key
            if key is not None and key not in self.seen_keys:
                self.seen_keys.append(key)

    def look(self) -> Content | None:
        keys = [*self.seen_keys, Key("x'" + "ab" * 32 + "'")]
        try:
            return observe.observe(self.database, keys, self.folder / "scratch", RECORDS.get(self.app.record))
        except Unreadable as error:
            raise Fault(f"the database cannot be read: {error}") from error

    def check(self, what: str) -> None:
        found = self.look()
        told = self.state.differences(found)
        if told:
            raise Fault(f"after {what}: " + "; ".join(told[:6]))
        self.state.adopt(found)

    # Around the store

    def write_by_legacy_code(self) -> None:
        """Code that was left over writes rows while the file is plaintext."""
        if self.state.key is not None or self.state.level is None:
            return
        self.taken = set()
        connection = self.legacy_connection()
        self.legacy_operations(connection, self.random.randint(1, 4))
        if self.random.random() < 0.3:
            self.leave_amidst(connection)
        connection.close()
        self.tell("left-over code writes rows")
        self.check("left-over code")

    def write_records(self) -> None:
        """Code that was left over writes the version that it was of into the app's record, or into user_version."""
        random, app, state = self.random, self.app, self.state
        if state.level is None or not state.is_adopted or app.kind == "versions":
            return
        level = random.randint(0, min(state.level, self.legacy_levels))
        version = app.evolution.versions[level]
        writes_number = app.record in ("user_version", "closure", "plist")
        if writes_number and len(version) > 1:
            return
        if not writes_number and state.record is None:
            return
        statements = [f"PRAGMA user_version = {version[0]}"] if writes_number else app.record_sql(version, level)
        self.tell(f"left-over code records version {text(version)} in {app.record}")
        if state.key is None:
            connection = self.legacy_connection()
        else:
            connection = observe.sqlcipher.connect(str(self.database), isolation_level=None)
            connection.execute("PRAGMA cipher_log_level = NONE")
            if state.key.rounds is None:
                connection.execute(f'PRAGMA key = "{state.key.text}"')
            else:
                connection.execute(f"PRAGMA key = '{state.key.text}'")
                connection.execute(f"PRAGMA kdf_iter = {state.key.rounds}")
        for statement in statements:
            connection.execute(statement)
        connection.close()
        if writes_number:
            state.user_version = version[0]
            if version[0] == state.version[0]:
                state.user_version = None
        else:
            state.record = app.recorded(version, level)
        self.check("left-over code")

    def back_up(self) -> None:
        names = ("app.db", "app.db-wal", "app.db-journal", "version.txt", "schema.plist")
        files = {name: (self.data / name).read_bytes() for name in names if (self.data / name).exists()}
        if "app.db" not in files or self.state.level is None:
            return
        keys = {file.name: file.read_bytes() for file in self.keys.iterdir()}
        self.tell(f"backup of {' '.join(files)}")
        self.backups.append(Backup(files, self.state.copy(), keys, self.kept_backup))

    def restore(self) -> None:
        """An earlier copy of the files takes their place; the keys may be those of today."""
        if not self.backups:
            return
        backup = self.random.choice(self.backups)
        log = self.data / "app.db-wal"
        if (
            list(backup.files)[:2] != ["app.db", "app.db-wal"]
            and log.exists()
            and log.stat().st_size
            and self.random.random() < 0.5
        ):
            self.open_with_stale_log(backup)
        self.remove_database()
        files = dict(backup.files)
        if self.random.random() < 0.3:
            # The database alone: what it held when its log was last moved into it.
            files.pop("app.db-wal", None)
        for name, content in files.items():
            (self.data / name).write_bytes(content)
        with_keys = self.random.random() < 0.5
        if with_keys:
            for name, content in backup.keys.items():
                path = self.keys / name
                if not path.exists():
                    path.write_bytes(content)
                    path.chmod(0o600)
        self.state = backup.state.copy()
        if len(files) < len(backup.files):
            found = self.look_leniently()
            if found is None or found.is_blank or found.complaints or self.backfills or not self.state.rebase(found):
                # Its log was being moved into it when it was copied: no backup at all.
                (self.data / "app.db-wal").write_bytes(backup.files["app.db-wal"])
                self.state = backup.state.copy()
                files = backup.files
        self.tell(f"restored {' '.join(files)} of version {text(self.state.version)}{', with keys' if with_keys else ''}")
        self.counts["restores"] += 1
        self.check("restoring")

    def open_with_stale_log(self, backup: Backup) -> None:
        """The database alone is copied back, and the log of what was there stays: refused, or read as the one or the other.

        Nothing tells apart two copies with the same bytes in place of the change counter: see docs/RELIABILITY.md.
        """
        counter = slice(24, 28)
        if self.database.read_bytes()[counter] == backup.files["app.db"][counter]:
            self.counts["stale logs that cannot be detected"] += 1
            return
        self.remove_database(keeping="app.db-wal")
        self.database.write_bytes(backup.files["app.db"])
        before = self.look_leniently()
        if before is not None and any(not state.differences(before) for state in (self.state, backup.state)):
            return
        release = self.releases[-1]
        self.tell(f"restored the database alone of version {text(backup.state.version)}, beside a newer log")
        self.counts["stale logs"] += 1
        path = self.folder / "launch-0.json"
        path.write_text(json.dumps({**self.described(release), "work": [], "ending": "close"}))
        environment = {vault.name: f"x'{vault.secret}'" for vault in self.vaults if vault.kind == "environment"}
        run = Process(self.program, path, End(), environment).wait({})
        self.count(run, End())
        self.tell(f"{release}: {self.summary(run)}")
        if run.opened:
            raise Fault("opened with a log of another generation")

    def look_leniently(self) -> Content | None:
        try:
            return self.look()
        except Fault:
            return None

    def swap_plaintext(self) -> None:
        """Somebody puts a decrypted copy in the database's place."""
        if self.state.key is None or self.state.level is None or self.state.user_version is not None:
            return
        self.back_up()
        plain = self.folder / "swapped.db"
        plain.unlink(missing_ok=True)
        with observe.connected(observe.copied(self.database, self.folder / "scratch"), self.state.key) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute(f"ATTACH '{plain}' AS plain KEY ''")
            connection.execute("SELECT sqlcipher_export('plain')")
            connection.execute(f"PRAGMA plain.user_version = {version}")
        self.remove_database()
        shutil.move(plain, self.database)
        self.state.key = None
        self.tell("a decrypted copy takes the database's place")
        self.check("swapping")

    def tell(self, line: str) -> None:
        self.told.append(line)


def _is_io(code: str) -> bool:
    """Whether it is SQLITE_IOERR, whatever its details."""
    return code.startswith("sqlite") and int(code[6:]) % 256 == 10


def _parsed(version: str) -> Version:
    return tuple(int(part) for part in version.split("."))
