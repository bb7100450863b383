"""Prints the targets of the package's products for Apple's platforms, each after those that it depends on.

    swift package dump-package | python3 Scripts/lib/apple/targets.py

Prints a line for each target, with tabs between: its kind (c, library or program), its name, its folder and its
compiler options.
"""

import json
import os
import sys

APPLE = {"macos", "ios", "tvos", "watchos"}


def options(target):
    for setting in target["settings"]:
        (kind, values), = setting["kind"].items()
        value = values.get("_0")
        if setting.get("condition"):
            sys.exit(f"{target['name']}: conditional settings are not supported here")
        elif kind == "swiftLanguageMode":
            yield "-swift-version " + value
        elif kind == "enableUpcomingFeature":
            yield "-enable-upcoming-feature " + value
        elif kind == "treatAllWarnings" and value == "error":
            yield "-warnings-as-errors"
        elif kind == "define":
            yield "-D" + value
        else:
            sys.exit(f"{target['name']}: the setting {kind} is not supported here")


def dependencies(target):
    for dependency in target["dependencies"]:
        (kind, (name, *rest)), = dependency.items()
        condition = rest[-1] if rest else None
        platforms = set(condition["platformNames"]) if condition else APPLE
        # SQLCipher's package is replaced by its header.
        if kind != "product" and platforms & APPLE:
            yield name


package = json.load(sys.stdin)
targets = {target["name"]: target for target in package["targets"]}
printed = set()


def show(name):
    if name in printed:
        return
    printed.add(name)
    target = targets[name]
    for other in dependencies(target):
        show(other)
    folder = target.get("path") or "Sources/" + name
    if any(file.endswith(".c") for _, _, files in os.walk(folder) for file in files):
        kind = "c"
    else:
        kind = "program" if target["type"] == "executable" else "library"
    print(kind, name, folder, " ".join(options(target)), sep="\t")


for product in package["products"]:
    for name in product["targets"]:
        show(name)
