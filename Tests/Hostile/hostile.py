"""Runs commands on databases whose schema computes what takes long or much memory, and judges what they cost.

usage: hostile.py TOOL [--jobs N] [--every N] [--only TEXT] [--padded]

No command may be ended by a signal, use more memory than 64 MB and the largest row, or take more than 10 seconds of
processor time for each megabyte of the file, or part of one. A query is the caller's own statement: it may take four
times as much memory, and any time, but must then end on SIGTERM. A command that fails must leave the file as it was, to
the byte. With --every N, only every Nth case is tried; --only selects the cases whose name contains a text.
With --padded, every tenth file is a megabyte longer, which permits values of that length: an expression that needs
hundreds of them at once then exceeds the limit of memory, as SECURITY.md says.
"""

from __future__ import annotations

import argparse
import os
import multiprocessing
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from expressions import expressions

_SECONDS_FOR_MEGABYTE = 10
_MEMORY = 64 << 20
_KEY = "x'" + "2d" * 32 + "'"
_DOCUMENTED = {0, 1, 65, 66, 70, 73, 74, 75, 77, 78}

# Each place of a schema in which an expression may stand, with the entry of the schema table and its text.
_PLACES = {
    "CHECK": ("t", "CREATE TABLE t(a, b CHECK (({}) IS NOT 3))"),
    "DEFAULT": ("t", "CREATE TABLE t(a, b DEFAULT ({}))"),
    "VIRTUAL": ("t", "CREATE TABLE t(a, b, c AS ({}))"),
    "STORED": ("t", "CREATE TABLE t(a, b AS ({}) STORED)"),
    "index": ("i", "CREATE INDEX i ON t({})"),
    "partial": ("i", "CREATE INDEX i ON t(a) WHERE ({}) IS NOT 3"),
    "view": ("v", "CREATE VIEW v AS SELECT {} AS c FROM t"),
    "trigger": ("x", "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT {}; END"),
}

_COMMANDS = {
    "encrypt": ["encrypt", "w.db", "--key-file", "key"],
    "shadow": ["encrypt", "w.db", "--shadow", "--key-file", "key"],
    "verify": ["verify", "w.db"],
    "inspect": ["inspect", "w.db"],
    "recover": ["recover", "w.db", "--output", "out.db", "--key-file", "key"],
    "query": ["query", "w.db", "SELECT * FROM t"],
    "plan": ["plan", "--config", "config.json", "--directory", ".", "--key-file", "key"],
    "migrate": ["migrate", "--config", "config.json", "--directory", ".", "--key-file", "key"],
}
# These need a file that is already encrypted.
_ENCRYPTED = {
    "decrypt": ["decrypt", "w.db", "--key-file", "key"],
    "rekey": ["rekey", "w.db", "--key-file", "key", "--new-key-file", "key2"],
    "backup": ["backup", "w.db", "--output", "out.db", "--key-file", "key"],
    "verify": ["verify", "w.db", "--key-file", "key"],
}


@dataclass(frozen=True)
class Case:
    place: str
    expression: str
    rows: int
    padding: int

    @property
    def name(self) -> str:
        text = self.expression if len(self.expression) < 90 else self.expression[:87] + "..."
        return f"{self.place}, {self.rows} rows, {self.padding >> 10} KB: {text}"

    def write(self, path: Path) -> int:
        """Writes the database, and returns the size of its largest row."""
        connection = sqlite3.connect(path, isolation_level=None)
        connection.executescript(
            "CREATE TABLE t(a, b); CREATE INDEX i ON t(a); CREATE TABLE p(a); CREATE VIEW v AS SELECT 1 AS c")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(row, f"x{row}") for row in range(self.rows)])
        connection.executemany("INSERT INTO p VALUES (?)", [("p" * 2000,)] * (self.padding // 2000))
        connection.execute("CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END")
        name, text = _PLACES[self.place]
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (text.format(self.expression), name))
        connection.execute("PRAGMA schema_version = 99")
        connection.close()
        return 2100


def _limit(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass
class Cost:
    status: int
    seconds: float
    memory: int
    output: str


def _processor_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _run(tool: str, arguments: list[str], folder: Path, seconds: int, ends: bool) -> Cost:
    """Runs a command; if it may take any time, it gets SIGTERM once it has taken its processor time."""
    with open(folder / "said", "wb") as said:
        process = subprocess.Popen(
            [tool, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            preexec_fn=lambda: _limit(seconds + (0 if ends else 3)))
        while True:
            waited, status, usage = os.wait4(process.pid, 0 if ends else os.WNOHANG)
            if waited:
                break
            if _processor_seconds(process.pid) >= seconds:
                # The method of subprocess would take the result of a process that has ended.
                os.kill(process.pid, signal.SIGTERM)
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = (folder / "said").read_text(errors="replace")[:400]
    return Cost(process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, text)


def _commands(case: Case) -> dict[str, list[str]]:
    commands = dict(_COMMANDS)
    if case.place == "view":
        commands["query of the view"] = ["query", "w.db", "SELECT length(c) FROM v"]
    if case.place == "VIRTUAL":
        commands["query of the column"] = ["query", "w.db", "SELECT length(c) FROM t"]
    return commands


def _judge(command: str, cost: Cost, size: int, row: int, same: bool) -> str | None:
    seconds = _SECONDS_FOR_MEGABYTE * max(1, -(-size // (1 << 20)))
    is_query = command.startswith("query")
    if cost.status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "did not end on SIGTERM" if is_query else f"took more than {seconds} s of processor time"
    if cost.seconds > seconds and not is_query:
        return f"took {cost.seconds:.1f} s of processor time"
    if cost.status not in _DOCUMENTED and not (is_query and cost.status == -signal.SIGTERM):
        return f"ended with {cost.status}: {cost.output}"
    if cost.memory > (4 if is_query else 1) * _MEMORY + row:
        return f"used {cost.memory >> 20} MB"
    if cost.status != 0 and not same:
        return f"failed with {cost.status} and changed the file"
    return None


def _try(tool: str, case: Case) -> tuple[Case, Counter, list[str], tuple[float, str], tuple[int, str]]:
    counts: Counter = Counter()
    faults = []
    slowest, largest = (0.0, ""), (0, "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        row = case.write(folder / "made.db")
        original = (folder / "made.db").read_bytes()
        for key in ("key", "key2"):
            (folder / key).write_text(_KEY if key == "key" else _KEY.replace("2d", "3e"))
            (folder / key).chmod(0o600)
        (folder / "config.json").write_text(_CONFIGURATION)
        encrypted = None

        def attempt(command: str, arguments: list[str], before: bytes) -> None:
            nonlocal slowest, largest, encrypted
            (folder / "w.db").write_bytes(before)
            seconds = _SECONDS_FOR_MEGABYTE * max(1, -(-len(before) // (1 << 20)))
            cost = _run(tool, arguments, folder, seconds + 1, not command.startswith("query"))
            after = (folder / "w.db").read_bytes()
            fault = _judge(command, cost, len(before), row, after == before)
            if fault:
                faults.append(f"{command} {fault}: {case.name}")
            slowest, largest = max(slowest, (cost.seconds, command)), max(largest, (cost.memory, command))
            counts[f"{command}: {'done' if cost.status == 0 else f'status {cost.status}'}"] += 1
            if command == "encrypt" and cost.status == 0:
                encrypted = after
            for path in folder.iterdir():
                if path.name not in ("made.db", "key", "key2", "config.json", "said"):
                    path.unlink()

        for command, arguments in _commands(case).items():
            attempt(command, arguments, original)
        for command, arguments in _ENCRYPTED.items() if encrypted else ():
            attempt(f"{command} of the encrypted file", arguments, encrypted)
    return case, counts, faults, slowest, largest


_CONFIGURATION = """{"dbName": "w.db", "dbVersion": 2, "encryption": {"enabled": true},
  "dbTables": [{"t": [{"a": ""}, {"b": ""}, {"z": "TEXT"}]}]}"""


def _cases(padded: bool = False) -> list[Case]:
    found = []
    for number, expression in enumerate(expressions()):
        for shift, place in enumerate(_PLACES):
            # Most files have three rows.
            kind = (number + shift) % 10
            rows = 2000 if kind == 3 else 3
            padding = 1_500_000 if padded and kind == 7 else 0
            found.append(Case(place, expression, rows, padding))
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--padded", action="store_true")
    options = parser.parse_args()
    tool = shutil.which(options.tool) or options.tool
    cases = [case for case in _cases(options.padded) if options.only in case.name][:: options.every]
    print(f"{len(expressions())} expressions, {len(cases)} files", flush=True)
    counts: Counter = Counter()
    faults: list[str] = []
    slowest, largest = (0.0, "", ""), (0, "", "")
    # A process inherits the peak memory of the process that starts it, so the latter must be small.
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        for case, found, wrong, seconds, memory in pool.map(partial(_try, tool), cases):
            counts += found
            faults += wrong
            for fault in wrong:
                print(f"fault: {fault}", flush=True)
            slowest, largest = max(slowest, (*seconds, case.name)), max(largest, (*memory, case.name))
    for name, count in sorted(counts.items()):
        print(f"{name:45} {count:7}")
    print(f"most processor time: {slowest[0]:.1f} s by {slowest[1]} ({slowest[2]})")
    print(f"most memory: {largest[0] >> 20} MB by {largest[1]} ({largest[2]})")
    print(f"{len(faults)} faults in {sum(counts.values())} runs on {len(cases)} files")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
