"""Runs commands on databases and judges what they left by the oracle.

usage: attack.py TOOL [--only TEXT] [--operation NAME] [--jobs N] [--keep DIR] [--refusals] [--sound]
                 [--generated COUNT] [DATABASE…]

Two outcomes are allowed: exit status 0 and a database that is equal to the original, or a refusal with one of the
documented exit statuses and every file as it was, to the byte; where a log or a hot journal was recovered, equal by the
oracle. A refusal is a failure too where nothing in the database
is a reason for one. With databases given, those alone are tried, as they are on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cases import BACKUP, KEY, Case, Operation, database_cases, example_cases, hazard_cases
from engine import EngineError
from equality import Recovered, compared
from fileformat import Malformed
from snapshot import Snapshot

# The documented exit statuses of a refusal (sysexits.h); 70 is an internal failure and 64 a fault of this program.
_REFUSALS = {65, 66, 73, 74, 75, 77, 78}
_EQUAL, _REFUSED, _RECOVERED, _SHADOWED = "equal", "refused", "refused, recovered", "unchanged"
_INCOMPLETE = "incomplete, as the damage was told"
_ALLOWED = {_EQUAL, _REFUSED, _RECOVERED, _SHADOWED, _INCOMPLETE}


@dataclass(frozen=True)
class Result:
    """How one command ended on one database."""

    case: str
    operation: str
    outcome: str
    detail: str = ""
    rows: int = 0


def judged(tool: Path, case: Case, operation: Operation, folder: Path) -> Result:
    """Runs the operation in a copy of the case's files and compares."""
    source, run = folder / "source", folder / "run"
    source.mkdir()
    original = source / case.database
    case.make(original, operation.key)
    shutil.copytree(source, run)
    before = _contents(run)
    result = partial(Result, case.name, operation.name)
    ended = _run(tool, *_backup(run, folder)) if operation.command == "restore" else None
    is_backed_up = ended is not None and ended.returncode == 0
    if ended is None or is_backed_up:
        ended = _run(tool, *operation.arguments(run, folder))
    said = (ended.stderr or ended.stdout).decode(errors="backslashreplace").strip()

    if is_backed_up and ended.returncode != 0:
        return result("REFUSED ITS OWN BACKUP", f"{ended.returncode}: {said}")
    if ended.returncode in _REFUSALS:
        if changed := _changes(before, _contents(run)):
            if _is_recovered(case, operation, original, run):
                return result(_RECOVERED, f"{ended.returncode}: {said}")
            return result("REFUSED AND CHANGED", f"{changed}; {said}")
        # What must leave the files cannot roll a journal back.
        is_unalterable = case.may_be_unalterable and operation.configuration is not None
        is_allowed = (
            case.may_be_refused
            or is_unalterable
            or (case.may_lack_rows and operation.key is not None)
            # Nor can a backup.
            or ((operation.leaves_files or operation.command == "restore") and f"{case.database}-journal" in before)
        )
        return result(_REFUSED if is_allowed else "REFUSED A SOUND FILE", f"{ended.returncode}: {said}")
    if ended.returncode != 0:
        return result("FAILED", f"exit status {ended.returncode}: {said[-400:]}")
    if case.may_lack_rows and operation.key is not None and not operation.output and not is_backed_up:
        return result("NOT REFUSED")
    if operation.leaves_files:
        changed = _changes(before, _contents(run))
        return result("CHANGED", changed) if changed else result(_SHADOWED)
    if operation.output:
        after = _contents(run)
        if changed := _changes(before, {name: bytes for name, bytes in after.items() if name != operation.output}):
            return result("CHANGED", changed)
        return _recovered(case, operation, original, run / operation.output, ended.stdout)
    return _compared(tool, case, operation, original, run, ended.stdout)


def _run(tool: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [tool, *arguments], capture_output=True, timeout=120, env=os.environ | {"TZ": "UTC"}
    )


def _backup(run: Path, folder: Path) -> list[str]:
    """The arguments that back up the database of the run."""
    return ["backup", str(run / "app.db"), "--output", str(folder / BACKUP), "--key-file", str(folder / "key")]


def _is_recovered(case: Case, operation: Operation, original: Path, run: Path) -> bool:
    """Whether a refusal made of a live log or a hot journal what SQLite itself makes of it, and nothing else."""
    if not any(original.with_name(original.name + ending).exists() for ending in ("-wal", "-journal")):
        return False
    if not all(_is_allowed(name, case.database) for name in _contents(run)):
        return False
    try:
        with (
            Snapshot(original, operation.key, case.collations) as old,
            Snapshot(run / case.database, operation.key, case.collations) as new,
        ):
            return not compared(old, new).differences
    except (EngineError, Malformed):
        return False


def _compared(tool: Path, case: Case, operation: Operation, original: Path, run: Path, output: bytes) -> Result:
    result = partial(Result, case.name, operation.name)
    left = [name for name in _contents(run) if not _is_allowed(name, case.database)]
    kept = [f"{case.database}-plaintext"] if case.may_lack_rows and operation.key is None else []
    if left != kept:
        return result("LEFT BEHIND" if left else "NOT KEPT", ", ".join(left))
    try:
        with (
            Snapshot(original, operation.key, case.collations) as old,
            Snapshot(run / case.database, operation.new_key, case.collations) as new,
        ):
            verdict = compared(old, new, operation.allowed)
            for name in kept:
                with Snapshot(run / name, None, case.collations) as original_kept:
                    if differences := compared(old, original_kept).differences:
                        return result("KEPT OTHERWISE", "; ".join(differences[:4]))
            is_damaged = bool(old.complaints)
    except (EngineError, Malformed) as error:
        return result("LOST", f"cannot be read: {error}")
    if verdict.differences:
        return result("LOST", "; ".join(verdict.differences[:4]), verdict.rows)
    if verdict.inherited and not json.loads(output.splitlines()[-1]).get("warnings"):
        return result("DAMAGE NOT TOLD", f"{len(verdict.inherited)} complaints, such as {verdict.inherited[0]:.200}")
    if is_damaged and not verdict.inherited:
        key = ["--key-file", str(run.parent / "new" if operation.new_key != KEY else run.parent / "key")]
        checked = subprocess.run(
            [tool, "verify", run / case.database, *(key if operation.new_key else [])], capture_output=True, timeout=120
        )
        if checked.returncode != 0:
            return result("NOT VERIFIED", checked.stderr.decode(errors="replace")[:300])
    return result(_EQUAL, "", verdict.rows)


def _recovered(case: Case, operation: Operation, original: Path, path: Path, output: bytes) -> Result:
    """Compares a recovered database with one that SQLite reads; only damage is a reason for an incomplete one."""
    result = partial(Result, case.name, operation.name)
    report = json.loads(output.splitlines()[-1])
    try:
        with (
            Snapshot(original, operation.key, case.collations) as old,
            Snapshot(path, operation.new_key, case.collations) as new,
        ):
            is_damaged = bool(old.complaints) or case.may_be_refused or case.may_lack_rows
            verdict = compared(old, new, recovered=Recovered(_apart(report)))
    except (EngineError, Malformed) as error:
        return result("LOST", f"cannot be read: {error}")
    if is_damaged and not report["complete"]:
        return result(_INCOMPLETE, "", verdict.rows)
    if verdict.differences:
        return result("LOST", "; ".join(verdict.differences[:4]), verdict.rows)
    if not report["complete"]:
        return result("NOT COMPLETE", "; ".join(report["notes"])[:400], verdict.rows)
    return result(_EQUAL, "", verdict.rows)


def _apart(report: dict[str, Any]) -> bytes | None:
    """The table with the rows that were set aside, if all of them were deleted ones."""
    found = report.get("lostAndFound") or {}
    is_of_deleted = found.get("orphanedRows") == 0 and found.get("damagedRows") == 0
    return found["name"].encode() if is_of_deleted else None


def _is_allowed(name: str, database: str) -> bool:
    return name in {database, f"{database}-wal", f"{database}-shm"}


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _changes(before: dict[str, bytes], after: dict[str, bytes]) -> str:
    return ", ".join(
        f"{name} is {'gone' if name not in after else 'new' if name not in before else 'changed'}"
        for name in sorted(before | after)
        if before.get(name) != after.get(name)
    )


def _tried(task: tuple[Path, Case, tuple[str, ...], Path | None]) -> list[Result]:
    tool, case, wanted, keep = task
    results = []
    for operation in case.operations:
        if wanted and operation.name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            operation.write_files(folder)
            try:
                result = judged(tool, case, operation, folder)
            except subprocess.TimeoutExpired:
                result = Result(case.name, operation.name, "HUNG")
            if keep and result.outcome not in _ALLOWED:
                shutil.copytree(folder, keep / f"{case.name} {operation.name}".replace("/", "_"), dirs_exist_ok=True)
        results.append(result)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("tool", type=Path)
    parser.add_argument("databases", type=Path, nargs="*")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--operation", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--keep", type=Path, help="where the files of failures are kept")
    parser.add_argument("--generated", type=int, default=40, help="the number of generated databases")
    parser.add_argument("--sound", action="store_true", help="the databases given are sound, so none may be refused")
    parser.add_argument("--refusals", action="store_true", help="print the allowed refusals too")
    arguments = parser.parse_args()
    began = time.monotonic()
    if arguments.databases:
        cases: Iterator[Case] = database_cases(arguments.databases, may_be_refused=not arguments.sound)
    else:
        cases = iter([*hazard_cases(arguments.generated), *example_cases(Path(__file__).parents[2])])
    tasks = [
        (arguments.tool.resolve(), case, tuple(arguments.operation), arguments.keep)
        for case in cases
        if arguments.only in case.name
    ]
    counts: Counter[tuple[str, str]] = Counter()
    databases, failures, rows = set(), 0, 0
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for results in pool.map(_tried, tasks, chunksize=4):
            for result in results:
                counts[result.operation, result.outcome] += 1
                databases.add(result.case)
                rows += result.rows
                if result.outcome not in _ALLOWED:
                    failures += 1
                if result.outcome not in _ALLOWED or (arguments.refusals and result.outcome in (_REFUSED, _RECOVERED)):
                    print(f"{result.outcome}: {result.operation}: {result.case}: {result.detail:.600}")
    for (operation, outcome), count in sorted(counts.items()):
        print(f"{operation:22} {outcome:22} {count:6}")
    print(f"{failures} failures in {counts.total()} runs on {len(databases)} databases, {rows} rows compared, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    return 1 if failures or not databases else 0


if __name__ == "__main__":
    sys.exit(main())
