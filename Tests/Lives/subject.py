"""Starts the app as a process, and ends it as devices do: by a signal, amidst a system call, on a full disk."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

# Calls that can change something or stand before what can, with a weight and how often a launch makes them.
CALLS = {
    "pwrite64": (4, 60), "fdatasync": (4, 6), "ftruncate": (1, 3), "unlink": (1, 4), "openat": (1, 28), "fcntl": (1, 120),
    "flock": (1, 2), "write": (1, 4),
}  # fmt: skip
CALLS_OF_CONVERSION = {
    **CALLS, "pwrite64": (4, 105), "fdatasync": (2, 8), "fsync": (3, 12), "ftruncate": (1, 6), "unlink": (1, 12),
    "openat": (1, 58), "fcntl": (1, 240), "renameat2": (2, 1), "fchmod": (1, 3), "unlinkat": (1, 3), "linkat": (1, 1),
}  # fmt: skip

# A process that says nothing for so long hangs.
PATIENCE = 60


@dataclass
class End:
    """How a process is ended before its time."""

    # After seconds.
    after: float | None = None
    # At the number of a system call.
    call: str | None = None
    number: int = 0
    # Whether that call, and every one from it on, says that the disk is full instead.
    is_full: bool = False
    # Bytes that a file may have.
    size: int | None = None

    @property
    def is_disk(self) -> bool:
        return self.is_full or self.size is not None

    def __str__(self) -> str:
        if self.after is not None:
            return f"killed after {self.after * 1000:.0f} ms"
        if self.call is not None:
            return f"{'no room from' if self.is_full else 'killed at'} {self.call} {self.number}"
        return f"files of {self.size} bytes" if self.size is not None else ""


@dataclass
class Run:
    """What a process said, and how it ended."""

    release: dict
    status: int = 0
    lines: list[str] = field(default_factory=list)
    errors: str = ""
    opened: dict | None = None
    refused: str | None = None
    reason: str = ""
    did: dict[str, tuple[int, int]] = field(default_factory=dict)
    failed: tuple[str, str] | None = None
    visited: list[str] = field(default_factory=list)
    closed: bool = False
    hung: bool = False

    @property
    def killed(self) -> bool:
        return self.status in (-signal.SIGKILL, 128 + signal.SIGKILL)

    def read(self, output: str) -> None:
        self.lines = output.splitlines()
        for line in self.lines:
            word, _, rest = line.partition(" ")
            match word:
                case "opened":
                    self.opened = json.loads(rest)
                case "refused":
                    self.refused, _, self.reason = rest.partition(" ")
                case "did":
                    name, changes, row = rest.split(" ")
                    self.did[name] = (int(changes), int(row))
                case "failed":
                    name, code, self.reason = (rest + " ").split(" ", 2)
                    self.failed = (name, code)
                case "visited":
                    self.visited.append(rest.rsplit(" ", 1)[0])
                case "closed":
                    self.closed = True


class Process:
    """A started app."""

    def __init__(self, program: Path, description: Path, end: End, environment: dict[str, str]) -> None:
        self.end = end
        command = [str(program), str(description)]
        if end.call is not None:
            what = f"error=ENOSPC:when={end.number}+" if end.is_full else f"signal=SIGKILL:when={end.number}"
            traced = f"inject={end.call}:{what}"
            command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={end.call}", "-e", traced, *command]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **environment}, preexec_fn=self._limit if end.size is not None else None,
        )  # fmt: skip
        self.timer = threading.Timer(end.after, self.process.kill) if end.after is not None else None
        if self.timer:
            self.timer.start()

    def _limit(self) -> None:
        assert self.end.size is not None
        # A file that is too large is then an error of the call, as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.end.size, self.end.size))

    def wait(self, release: dict) -> Run:
        run = Run(release)
        try:
            output, errors = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, errors = self.process.communicate()
            run.hung = True
        if self.timer:
            self.timer.cancel()
        run.status = self.process.returncode
        run.errors = errors.decode(errors="replace")
        run.read(output.decode(errors="replace"))
        return run
