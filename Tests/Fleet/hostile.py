"""Runs the command-line tool on a fleet with malicious files, and checks that each of them costs one line at most.

Called by Scripts/hostile-fleet, which explains the options. Uses Python's own SQLite to make the files, and does not
evaluate their schemas.
"""

import argparse
import collections
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time

CHECKS = {
    # Overflows memory in SQLite before 3.49.1 (CVE-2025-29087). A value in the file must allow the long separator.
    "crash": "length(concat_ws(hex(zeroblob(17200000)), " + ", ".join(["b"] * 126) + ")) IS NOT 3",
    # SQLite's progress handler is not called within a function.
    "endless": "instr(hex(zeroblob(7000000)), hex(zeroblob(3500000)) || '1') IS NOT 3",
    # 2.4 GB, of which no value is too large.
    "large": "length(concat(" + ", ".join(["hex(zeroblob(8000000))"] * 126) + ")) IS NOT 3",
}


def make_good(path, rows):
    with sqlite3.connect(path) as database:
        database.executescript("CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT, at REAL); CREATE INDEX by ON note(body)")
        database.executemany("INSERT INTO note(body, at) VALUES (?, ?)", [(f"note {i} of some length", i / 7) for i in range(rows)])
    database.close()


def make_hostile(path, kind):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        database.executemany("INSERT INTO t(b) VALUES (?)", [(f"row {i}",) for i in range(50)])
        if kind == "crash":
            database.execute("INSERT INTO t(b) VALUES (zeroblob(5000000))")
        # The text is replaced, so that this library does not evaluate it.
        database.execute("PRAGMA writable_schema = ON")
        text = f"CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, CHECK({CHECKS[kind]}))"
        database.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 't'", (text,))
    database.close()


class Memory(threading.Thread):
    """Samples the memory of a process and its children, with shared pages counted once."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.whole, self.single = process, 0, 0

    def run(self):
        while self.process.poll() is None:
            found = [self.size(pid) for pid in self.family()]
            self.whole = max(self.whole, sum(found))
            self.single = max(self.single, max(found, default=0))
            time.sleep(0.02)

    def family(self):
        pids = [self.process.pid]
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/stat") as file:
                    if int(file.read().rpartition(")")[2].split()[1]) == self.process.pid:
                        pids.append(int(name))
            except (OSError, ValueError, IndexError):
                pass
        return pids

    @staticmethod
    def size(pid):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
        except (OSError, StopIteration):
            return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("work")
    parser.add_argument("--good", type=int, default=2000)
    parser.add_argument("--hostile", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--memory-limit", type=int, default=512)
    parser.add_argument("--time-limit", type=int, default=2)
    options = parser.parse_args()

    fleet, key = os.path.join(options.work, "fleet"), os.path.join(options.work, "key")
    report = os.path.join(options.work, "report.jsonl")
    subprocess.run([options.tool, "keygen", key], check=True, capture_output=True)
    seed = os.path.join(options.work, "seed.db")
    make_good(seed, 500)
    with open(seed, "rb") as file:
        content = file.read()
    hostile = {}
    for number in range(max(options.good, options.hostile)):
        folder = os.path.join(fleet, str(number % 20))
        os.makedirs(folder, exist_ok=True)
        if number < options.good:
            with open(os.path.join(folder, f"good-{number}.db"), "wb") as file:
                file.write(content)
        for kind in CHECKS if number < options.hostile else []:
            name = f"{kind}-{number}.db"
            make_hostile(os.path.join(folder, name), kind)
            hostile[name] = kind

    command = [options.tool, "encrypt", fleet, "--recursive", "--jobs", str(options.jobs), "--key-file", key]
    command += ["--report", report, "--memory-limit", str(options.memory_limit), "--time-limit", str(options.time_limit)]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    memory = Memory(process)
    memory.start()
    output, errors = process.communicate()
    seconds = time.monotonic() - began
    memory.join()

    faults = []
    results = collections.Counter()
    seen = collections.Counter()
    with open(report) as file:
        for line in map(json.loads, file):
            if "path" not in line:
                continue
            name = os.path.basename(line["path"])
            seen[name] += 1
            results[hostile.get(name, "good"), (line.get("error") or {}).get("code", line["outcome"])] += 1
    for (kind, outcome), count in sorted(results.items()):
        print(f"  {kind:8} {outcome:12} {count}")
    if results["good", "encrypted"] != options.good:
        faults.append("not all good files are encrypted")
    if len(seen) != options.good + len(hostile) or set(seen.values()) - {1}:
        faults.append("a file has no line in the report, or several")
    failures = sum(count for (_, outcome), count in results.items() if outcome not in ("encrypted", "alreadyEncrypted"))
    if process.returncode != min(63, failures):
        faults.append(f"the exit status is {process.returncode} after {failures} failures")
    if len(errors.splitlines()) > failures + 1:
        faults.append("standard error has more than a line for each failure:\n" + errors)
    allowed = (options.jobs * options.memory_limit + 64) << 20
    if memory.whole > allowed:
        faults.append(f"{memory.whole >> 20} MiB of memory, more than the limits allow")
    verify = [options.tool, "verify", fleet, "--recursive", "--name", "good-*", "--key-file", key]
    checked = subprocess.run(verify, capture_output=True, text=True)
    if checked.returncode != 0:
        faults.append("verify: " + checked.stderr)
    print(f"  {seconds:.1f} s; at most {memory.whole >> 20} MiB in all processes, {memory.single >> 20} MiB in one of them")
    for fault in faults:
        print(f"hostile-fleet: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


main()
