"""What is attacked: databases with the commands that are run on each, and what each command may change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from damaged import damaged_index_hazards
from engine import Database, Key
from equality import Allowed, Change
from examples import all_examples
from generated import generated_hazards
from hazard import TARGET, Hazard
from named import collation_hazards, name_hazards, pair_hazards
from snapshot import Snapshot
from structures import structure_hazards

KEY = Key(b"x'" + b"5e" * 32 + b"'")
NEW_KEY = Key(b"x'" + b"7b" * 32 + b"'")

# The name of a backup, beside the folder of the run.
BACKUP = "backup.db"

# Declares the table that every hazard has, with another default, so that it is built anew.
_TARGET_CONFIGURATION = {
    "dbName": "app.db",
    "dbVersion": 3,
    "encryption": {"sinceVersion": 2},
    "dbTables": [{TARGET.decode(): [{"id": "INTEGER PRIMARY KEY"}, {"note": "TEXT"}, {"amount": "INTEGER DEFAULT 7"}]}],
}


@dataclass(frozen=True)
class Operation:
    """A command, with the keys before and after."""

    name: str
    command: str
    key: Key | None
    new_key: Key | None
    options: tuple[str, ...] = ()
    # Whether the command must leave every file as it is in any case.
    leaves_files: bool = False
    configuration: Path | dict[str, object] | None = None
    allowed: Allowed | None = None
    # The name of the new database, if the command makes one and leaves every file as it is.
    output: str | None = None

    def write_files(self, folder: Path) -> None:
        """Writes the key files and the configuration beside the folder of the run."""
        for name, key in (("key", self.key or self.new_key), ("new", self.new_key)):
            if key is not None:
                (folder / name).write_bytes(key.text)
                (folder / name).chmod(0o600)
        if isinstance(self.configuration, dict):
            (folder / "config.json").write_text(json.dumps(self.configuration))

    def arguments(self, run: Path, folder: Path) -> list[str]:
        key = ["--key-file", str(folder / "key"), *self.options]
        if self.command == "migrate":
            path = folder / "config.json" if isinstance(self.configuration, dict) else self.configuration
            return ["migrate", "--config", str(path), "--directory", str(run), "--json", *key]
        if self.command == "rekey":
            key += ["--new-key-file", str(folder / "new")]
        if self.output:
            key += ["--output", str(run / self.output)]
        if self.command == "restore":
            return ["restore", str(folder / BACKUP), "--into", str(run / "app.db"), "--json", *key]
        return [self.command, str(run / "app.db"), "--json", *key]


@dataclass(frozen=True)
class Case:
    """A database, made anew for each of its operations."""

    name: str
    make: Callable[[Path, Key | None], None]
    operations: tuple[Operation, ...]
    may_be_refused: bool = False
    may_be_unalterable: bool = False
    collations: tuple[bytes, ...] = ()
    database: str = "app.db"
    may_lack_rows: bool = False


_COMMANDS: tuple[Operation, ...] = (
    Operation("encrypt", "encrypt", None, KEY),
    Operation("encrypt --shadow", "encrypt", None, KEY, ("--shadow",), leaves_files=True),
    Operation("rekey", "rekey", KEY, NEW_KEY),
    Operation("decrypt", "decrypt", KEY, None),
    Operation("recover", "recover", None, KEY, output="new.db"),
    Operation("recover, encrypted", "recover", KEY, KEY, output="new.db"),
    # Restores the backup that the tool itself has just made.
    Operation("restore", "restore", KEY, KEY),
)
_TARGET_ALLOWED = Allowed(3, {TARGET: Change()})
_MIGRATE = Operation(
    "migrate", "migrate", None, KEY, configuration=_TARGET_CONFIGURATION, allowed=_TARGET_ALLOWED,
)  # fmt: skip
_MIGRATE_ENCRYPTED = Operation(
    "migrate, encrypted", "migrate", KEY, KEY, configuration=_TARGET_CONFIGURATION, allowed=_TARGET_ALLOWED,
)  # fmt: skip


def hazard_cases(generated: int) -> Iterator[Case]:
    # Their versions are any numbers, which no app's configuration fits.
    for hazard in generated_hazards(generated):
        yield Case(hazard.name, hazard.make, _COMMANDS, hazard.may_be_refused, collations=hazard.collations)
    for hazard in (
        *name_hazards(),
        *pair_hazards(),
        *collation_hazards(),
        *structure_hazards(),
        *damaged_index_hazards(),
    ):
        operations = _COMMANDS + (_MIGRATE,)
        # The rebuild by itself, where the table that is built anew has something of the hazard.
        if hazard.target_columns:
            operations += (_MIGRATE_ENCRYPTED,)
        yield Case(
            hazard.name, hazard.make, operations, hazard.may_be_refused, hazard.may_be_unalterable, hazard.collations,
            may_lack_rows=hazard.may_lack_rows,
        )


# MARK: Databases that exist

_SALTED = Key(b"x'" + b"7b" * 32 + b"0c" * 16 + b"'", plaintext_header=32)
_PASSPHRASE, _PASSPHRASE_3 = Key(b"correct horse battery"), Key(b"correct horse battery", 3)
_FORMATS = _COMMANDS + (
    Operation("encrypt, format 3", "encrypt", None, _PASSPHRASE_3, ("--cipher-compatibility", "3")),
    Operation("rekey, format 3 to 4", "rekey", _PASSPHRASE_3, NEW_KEY),
    Operation("rekey, readable header", "rekey", KEY, _SALTED, ("--plaintext-header", "32")),
    Operation("decrypt, format 3", "decrypt", _PASSPHRASE_3, None, ("--detect",)),
    Operation("decrypt, readable header", "decrypt", _SALTED, None),
)


def database_cases(paths: list[Path], may_be_refused: bool) -> Iterator[Case]:
    for path in paths:
        yield Case(path.name, _Copier(path), _FORMATS, may_be_refused=may_be_refused)


def example_cases(repository: Path) -> Iterator[Case]:
    """The fixtures, also opened as their app would."""
    configuration = json.loads((repository / "Config/ChatStore.json").read_text())
    # The fixtures of later versions are plaintext too.
    configuration["encryption"]["unexpectedPlaintext"] = "encrypt"
    chat = Operation(
        "migrate", "migrate", None, KEY, configuration=configuration,
        allowed=Allowed(26, {b"chat": Change(), b"contact": Change(), b"draft": Change()}),
    )  # fmt: skip
    for path in sorted((repository / "Tests/CipherStoreTests/Fixtures").glob("*.db")):
        yield Case(path.name, _Copier(path), _FORMATS)
        yield Case(f"{path.name}, as the app opens it", _Copier(path), (chat,), database="local.db")
    for example in all_examples():
        operations = tuple(
            Operation(
                name, "migrate", key, KEY, configuration=repository / "Config" / example.configuration,
                allowed=example.allowed,
            )
            for name, key in (("migrate", None), ("migrate, encrypted", KEY))
        )  # fmt: skip
        hazard = Hazard(example.name, example.script, has_target=False)
        yield Case(
            example.name, hazard.make, operations, example.may_be_refused, database=example.database
        )  # fmt: skip


@dataclass(frozen=True)
class _Copier:
    """Copies a database with what is beside it, or encrypts a copy with SQLCipher's own export."""

    source: Path

    def __call__(self, path: Path, key: Key | None) -> None:
        endings = ("", "-wal", "-journal")
        plain = path.with_name("plain.db") if key else path
        for ending in endings:
            if (beside := self.source.with_name(self.source.name + ending)).exists():
                shutil.copyfile(beside, plain.with_name(plain.name + ending))
        if key is None:
            return
        with Database(str(path), key) as database, Snapshot(plain) as legacy:
            database.run(b"PRAGMA user_version = %d;" % legacy.header["user_version"])
            database.run(b"ATTACH '%s' AS plain KEY '';" % str(plain).encode())
            database.run(b"SELECT sqlcipher_export('main', 'plain'); DETACH plain;")
        for ending in (*endings, "-shm"):
            plain.with_name(plain.name + ending).unlink(missing_ok=True)
