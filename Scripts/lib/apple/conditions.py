"""Fails if the sources have lines that no target of Scripts/apple and no Linux compiles, and prints their places.

    python3 Scripts/lib/apple/conditions.py FOLDER…

So nothing under an Apple condition stays unchecked, such as a use of a framework that Scripts/lib/apple does not
declare.
"""

import os
import re
import sys

APPLE = {"Darwin", "Dispatch", "Foundation", "CoreFoundation", "Security", "CommonCrypto"}
SYSTEMS = [APPLE | {f"os({name})"} for name in ("macOS", "iOS", "tvOS", "watchOS")]
LINUX = {"Foundation", "FoundationEssentials", "Dispatch", "os(Linux)"}
SYSTEMS += [LINUX | {"Glibc"}, LINUX | {"Glibc", "CIPHERSTORE_PORTABLE"}, LINUX | {"Musl"}]
SYSTEMS += [LINUX - {"os(Linux)"} | {"Android", "os(Android)"}]


def holds(condition, system):
    """Returns whether a condition is true on a system; compiler versions and build settings count as true."""

    def value(match):
        kind, name = match[1], match[2]
        if kind not in ("canImport", "os"):
            return "True"
        return str((name if kind == "canImport" else f"os({name})") in system)

    condition = condition.replace("CIPHERSTORE_PORTABLE", str("CIPHERSTORE_PORTABLE" in system))
    condition = re.sub(r"(\w+)\(([^)]*)\)", value, condition)
    condition = re.sub(r"\b(?!True\b|False\b)[A-Za-z_]\w*", "True", condition)
    condition = condition.replace("&&", " and ").replace("||", " or ").replace("!", " not ")
    return eval(condition, {"__builtins__": {}})


def unchecked(path):
    """Yields the branches that are compiled nowhere."""
    # For each open #if: the systems that reach it, those whose branch has come, and those of the present branch.
    nested = []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        directive = re.match(r"\s*#(if|elseif|else|endif)\b(.*)", line)
        if not directive:
            continue
        kind, condition = directive[1], directive[2].split("//")[0].strip()
        if kind == "if":
            nested.append((nested[-1][2] if nested else list(range(len(SYSTEMS))), [], []))
        if kind == "endif":
            nested.pop()
            continue
        reached, taken, _ = nested[-1]
        branch = [index for index in reached if index not in taken
                  and (kind == "else" or holds(condition, SYSTEMS[index]))]
        nested[-1] = (reached, taken + branch, branch)
        if not branch:
            yield f"{path}:{number}: no system that is checked compiles this branch"


found = False
for folder in sys.argv[1:]:
    for parent, _, files in os.walk(folder):
        for file in sorted(files):
            if file.endswith(".swift"):
                for fault in unchecked(os.path.join(parent, file)):
                    print(fault, file=sys.stderr)
                    found = True
sys.exit(found)
