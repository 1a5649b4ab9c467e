#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that adverb's libraries have each (symbol, version node) of rdma-core's.

The lists of some releases are beside this file, so that no library of rdma-core
need be installed; --stock DIR compares with the libraries in a folder instead,
and with --write RELEASE it also makes a list from these libraries."""

import argparse
import pathlib
import sys

from report import LIBRARIES, Report, exported, place

HERE = pathlib.Path(__file__).parent


def unwanted(symbols):
    """Returns the symbols that adverb leaves out: those for the struct layouts
    of 2007 and for drivers from before 2017.

    If a name is in nodes 1.0 and 1.1, the symbol of 1.0 has the old layout."""
    out = {"ibv_register_driver@IBVERBS_1.1"}
    for symbol in symbols:
        name, node = symbol.split("@")
        if node == "IBVERBS_1.0" and f"{name}@IBVERBS_1.1" in symbols:
            out.add(symbol)
    return out


def lists():
    """Returns {release: path of its list}."""
    return {path.stem.removeprefix("rdma-core-"): path
            for path in sorted(HERE.glob("rdma-core-*.symbols"))}


def read_list(path):
    stock = {library: set() for library in LIBRARIES}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            library, symbol = line.split()
            stock[library].add(symbol)
    return stock


def read_libraries(folder):
    """Returns {library: its symbols} of a folder.  A release may lack some
    libraries, but none lacks libibverbs."""
    if not (folder / LIBRARIES[0]).exists():
        sys.exit(f"symbols.py: {folder} has no {LIBRARIES[0]}; give --stock the "
                 "folder of rdma-core's libraries")
    return {name: exported(folder / name) if (folder / name).exists() else set()
            for name in LIBRARIES}


def write_list(release, stock):
    lines = [f"# Exports of rdma-core {release}: library, symbol@node."]
    for library in LIBRARIES:
        lines += [f"{library} {symbol}" for symbol in sorted(stock[library])]
    path = HERE / f"rdma-core-{release}.symbols"
    path.write_text("\n".join(lines) + "\n")


def compare(report, name, ours, stock):
    if not stock:
        report.skip(name, "the release has no such library")
        return
    missing = sorted(stock - unwanted(stock) - ours)
    why = ""
    if missing:
        why = f"{len(missing)} of {len(stock)} missing: "
        why += " ".join(missing[:8]) + (" ..." if len(missing) > 8 else "")
    report.judge(name, why)


def main():
    arg = argparse.ArgumentParser(description=__doc__)
    arg.add_argument("--lib", required=True, type=pathlib.Path,
                     help="folder of our libraries")
    arg.add_argument("--stock", type=pathlib.Path,
                     help="folder of rdma-core's libraries")
    arg.add_argument("--write", metavar="RELEASE")
    options = arg.parse_args()
    if options.write and not options.stock:
        arg.error("--write makes a list from the libraries in a folder: give "
                  "the folder by --stock DIR")
    if options.stock:
        releases = {"stock": read_libraries(options.stock)}
        if options.write:
            write_list(options.write, releases["stock"])
    else:
        releases = {release: read_list(path)
                    for release, path in lists().items()}
    report = Report()
    for library in LIBRARIES:
        path = place(options.lib, library)
        ours = exported(path) if path.exists() else set()
        for release, stock in releases.items():
            compare(report, f"symbols of {library}, release {release}", ours,
                    stock[library])
    report.finish()


if __name__ == "__main__":
    main()
