"""Lives of an app, each drawn from a seed: releases, launches, kills, restored backups, left-over code.

usage: lives.py PROGRAM [--count N] [--seed S] [--jobs N] [--keep DIR] [--verbose]

Prints a line for each life that failed, and a summary; fails where one did. A failure keeps its folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from life import Fault, Life


def lived(seed: int, program: Path, work: Path) -> tuple[int, str | None, list[str], Counter[str]]:
    folder = work / f"life-{seed}"
    life = Life(seed, folder, program)
    failure = None
    try:
        life.live()
    except Fault as fault:
        failure = str(fault)
    except Exception:
        failure = "the generator failed: " + traceback.format_exc()
    if failure is None:
        shutil.rmtree(folder)
    else:
        (folder / "story.txt").write_text("\n".join([*life.told, failure, ""]))
    return seed, failure, life.told, life.counts


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    work = options.keep or Path(tempfile.mkdtemp(prefix="lives-"))
    work.mkdir(parents=True, exist_ok=True)
    seeds = range(options.seed, options.seed + options.count)
    run = partial(lived, program=options.program.resolve(), work=work)
    began, failures, counts = time.monotonic(), 0, Counter[str]()
    with ProcessPoolExecutor(options.jobs) as pool:
        for seed, failure, story, counted in pool.map(run, seeds):
            counts += counted
            if options.verbose or failure:
                print(f"life {seed}: {failure or 'whole'}", flush=True)
            if options.verbose or (failure and options.count == 1):
                print("".join(f"    {line}\n" for line in story), end="")
            failures += failure is not None
    for name in sorted(counts):
        print(f"{name:<36} {counts[name]:7}")
    print(f"{failures} of {options.count} lives failed, {counts['launches']} launches, {counts['kills']} kills, "
          f"{time.monotonic() - began:.0f} s")
    if failures:
        print(f"kept in {work}, each with its story; one again: Scripts/lives --count 1 --verbose --seed SEED")
    elif not options.keep:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
