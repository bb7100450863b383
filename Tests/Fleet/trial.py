"""What Scripts/fleet-slurm makes, waits for, disturbs and judges. The second argument is its folder."""

import base64
import collections
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

SHARDS = 8
FOLDERS = 100
KEY = "5f" * 32
LIMIT = 900


def rows(number):
    """The rows of a tenant, of which no two have the same."""
    return [(id, f"tenant {number}, row {id}: " + "x" * ((number * 7 + id) % 180)) for id in range(1, 20 + number % 61)]


def kind(number):
    """Most files are plain; some are no database, damaged, or have their rows in a log."""
    return {7: "text", 11: "damaged", 13: "log"}.get(number % 400, "plain")


def name(number):
    folder = b"%02d" % (number % FOLDERS)
    odd = {5: b"tenant-\xff-%05d.db", 6: b"tenant\n-%05d.db", 8: b"tenant \"quoted\" \\xff %05d.db"}
    return folder + b"/" + odd.get(number % 500, b"tenant-%05d.db") % number


def make_file(path, number):
    if kind(number) == "text":
        with open(path, "wb") as file:
            file.write(b"Dear diary, number %d\n" % number)
        return
    source = path + b".making"
    connection = sqlite3.connect(os.fsdecode(source), isolation_level=None)
    mode = "WAL" if kind(number) == "log" else "OFF"
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT)")
    connection.execute("CREATE INDEX note_body ON note(body)")
    connection.executemany("INSERT INTO note VALUES (?, ?)", rows(number))
    connection.execute("COMMIT")
    if kind(number) == "log":
        # As a program that was killed leaves it.
        shutil.copyfile(source, path)
        shutil.copyfile(source + b"-wal", path + b"-wal")
        connection.close()
        os.remove(source)
        return
    connection.close()
    os.rename(source, path)
    if kind(number) == "damaged":
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 64)


def make(work, count):
    root = os.fsencode(work) + b"/cluster"
    for folder in range(FOLDERS):
        os.makedirs(root + b"/%02d" % folder)
    for number in range(count):
        make_file(root + b"/" + name(number), number)
    with open(f"{work}/key", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(f"x'{KEY}'\n")
    subprocess.run(["cp", "-a", f"{work}/cluster", f"{work}/single"], check=True)


def lines(path):
    """The lines of a report that are whole."""
    with open(path, "rb") as file:
        for line in file.read().split(b"\n"):
            try:
                yield json.loads(line)
            except ValueError:
                pass


def reports(work):
    folder = f"{work}/reports"
    return [f"{folder}/{one}" for one in sorted(os.listdir(folder))] if os.path.isdir(folder) else []


def count_done(work):
    return sum(1 for report in reports(work) for line in lines(report) if "path" in line)


def until(what, condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"fleet-slurm: waited in vain for {what}")
        time.sleep(0.02)


def total(work):
    return sum(len(files) for _, _, files in os.walk(f"{work}/cluster"))


def wait_for(work, percent):
    wanted = total(work) * percent // 100
    until(f"{percent}% of the files", lambda: count_done(work) >= wanted)


def running(work):
    """The process of each shard whose last run has not ended, with the number of its lines."""
    found = []
    for report in reports(work):
        process, count, ended = None, 0, False
        for line in lines(report):
            if "fleet" in line:
                process, ended = line["fleet"]["process"], False
            elif "summary" in line:
                ended = True
            else:
                count += 1
        if process and not ended and count:
            found.append(process)
    return found


def is_ours(process, work):
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return file.read().startswith(os.fsencode(work) + b"/cipherstore\0")
    except OSError:
        return False


def kill_tasks(work, count):
    wait_for(work, 10)
    killed = set()

    def kill():
        for process in running(work):
            if len(killed) < count and process not in killed and is_ours(process, work):
                os.kill(process, signal.SIGKILL)
                killed.add(process)
        return len(killed) == count

    until("tasks to kill", kill)
    print(f"fleet-slurm: killed {count} tasks amidst their work", file=sys.stderr)


def merged(work, paths, *options):
    run = subprocess.run(
        [f"{work}/cipherstore", "report", *paths, "--json", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return run.returncode, json.loads(run.stdout)


def lost(work):
    _, totals = merged(work, reports(work))
    print(",".join(str(shard) for shard in sorted(totals["missingShards"] + totals["unfinishedShards"])))


def path_of(line):
    return base64.b64decode(line["pathBase64"]) if "pathBase64" in line else os.fsencode(line["path"])


def expect(condition, text):
    if not condition:
        sys.exit(f"fleet-slurm: {text}")


def judge_files(work, count):
    """Every database has its rows under the key, and what cannot be encrypted is as it was."""
    import sqlcipher3
    root = os.fsencode(work) + b"/cluster/"
    failed, size = collections.Counter(), 0
    names = set()
    for number in range(count):
        path = root + name(number)
        names.add(name(number))
        with open(path, "rb") as file:
            start = file.read(16)
        if kind(number) in ("text", "damaged"):
            failed[kind(number)] += 1
            again = os.fsencode(f"{work}/again")
            make_file(again, number)
            with open(path, "rb") as one, open(again, "rb") as other:
                expect(one.read() == other.read(), f"{path} could not be encrypted, and was changed")
            os.remove(again)
        else:
            expect(start != b"SQLite format 3\0", f"{path} is plaintext")
            link = f"{work}/link.db"
            if os.path.lexists(link):
                os.remove(link)
            os.symlink(path, os.fsencode(link))
            connection = sqlcipher3.connect(link)
            connection.execute(f"PRAGMA key = \"x'{KEY}'\"")
            found = connection.execute("SELECT id, body FROM note ORDER BY id").fetchall()
            connection.close()
            expect(found == rows(number), f"{path} has other rows")
        size += os.stat(path).st_size
    left = {os.path.relpath(os.path.join(folder, one), root[:-1]) for folder, _, files in os.walk(root[:-1]) for one in files}
    expect(left == names, f"files were left or lost: {sorted(left ^ names)[:5]}")
    return failed, size


def judge(work, count):
    failed, size = judge_files(work, count)
    status, totals = merged(work, reports(work), "--against", f"{work}/cluster")
    _, single = merged(work, [f"{work}/single.jsonl"], "--against", f"{work}/single")
    # The truth, from the lines themselves.
    outcomes, headers, cut = collections.defaultdict(list), 0, 0
    for report in reports(work):
        with open(report, "rb") as file:
            cut += sum(1 for line in file.read().split(b"\n") if line and not line.startswith(b"{"))
        for line in lines(report):
            headers += "fleet" in line
            if "path" in line:
                outcomes[path_of(line)].append(line["result"])
    done = sum("done" in results for results in outcomes.values())
    unchanged = sum("done" not in results and "unchanged" in results for results in outcomes.values())
    lost_lines = sum(len(results) > 1 and results[-1] != "failed" for results in outcomes.values())
    truth = {
        "databases": count, "done": done, "unchanged": unchanged, "failed": sum(failed.values()),
        "bytesAfter": size, "shards": SHARDS, "givenTwiceCount": 0, "unreadableLines": cut, "skipped": 0,
        "missingShards": [], "unfinishedShards": [], "missing": [], "vanished": [],
    }
    for key, value in truth.items():
        expect(totals[key] == value, f"the merged report says {key} {totals[key]}, and it is {value}")
    expect(len(outcomes) == count, f"{len(outcomes)} files are reported, and there are {count}")
    expect(done + unchanged + sum(failed.values()) == count, "the counts do not add up")
    for key in ("databases", "failed", "failuresByCode", "bytesAfter", "bytesBefore" if unchanged == 0 else "databases"):
        expect(totals[key] == single[key], f"{key} is {totals[key]}, and on one machine {single[key]}")
    expect(single["done"] == done + unchanged, "another number of files was encrypted on one machine")
    paths = [sorted((one["path"], one["code"]) for one in all["failures"]) for all in (totals, single)]
    expect(paths[0] == paths[1], "other files failed than on one machine")
    expect(status == min(63, sum(failed.values())), f"the exit status is {status}")
    # What was killed between a file's swap and its line: at most what was in hand, two tasks and four.
    expect(unchanged <= 6, f"{unchanged} files have no line that they were done")
    print(
        f"fleet-slurm: {count} files, {done} encrypted, {unchanged} encrypted by a run that was killed before it said so, "
        f"{sum(failed.values())} failed as on one machine ({dict(single['failuresByCode'])}); {headers} runs of {SHARDS} shards, "
        f"{lost_lines} files with two lines; {totals['wallSeconds']:.0f} s; all rows and all counts are right")


if __name__ == "__main__":
    command, work = sys.argv[1:3]
    numbers = [int(argument) for argument in sys.argv[3:]]
    {"make": make, "wait-for": wait_for, "kill-tasks": kill_tasks, "lost": lost, "judge": judge}[command](work, *numbers)
