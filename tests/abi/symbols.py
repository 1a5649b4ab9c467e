#!/usr/bin/env python3
"""Every (symbol, version node) of rdma-core's libraries is in ours.

The list of release 44 lies beside this file, so that nothing else need be
installed; --stock DIR compares with the libraries in a folder instead, and
--write makes the list from them."""

import argparse
import pathlib

from report import LIBRARIES, Report, exported

LIST = pathlib.Path(__file__).with_name("rdma-core-44.symbols")


def unwanted(symbols):
    """What we leave out: the layouts of 2007 and the drivers of before 2017.

    Of a name in both node 1.0 and 1.1 the former is the old layout."""
    out = {"ibv_register_driver@IBVERBS_1.1"}
    for symbol in symbols:
        name, node = symbol.split("@")
        if node == "IBVERBS_1.0" and f"{name}@IBVERBS_1.1" in symbols:
            out.add(symbol)
    return out


def read_list():
    stock = {library: set() for library in LIBRARIES}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            library, symbol = line.split()
            stock[library].add(symbol)
    return stock


def write_list(stock):
    lines = ["# What rdma-core 44.0 exports: library, symbol@node."]
    for library in LIBRARIES:
        lines += [f"{library} {symbol}" for symbol in sorted(stock[library])]
    LIST.write_text("\n".join(lines) + "\n")


def compare(report, library, ours, stock):
    missing = sorted(stock - unwanted(stock) - ours)
    why = ""
    if missing:
        why = f"{len(missing)} of {len(stock)} missing: "
        why += " ".join(missing[:8]) + (" ..." if len(missing) > 8 else "")
    report.judge(f"symbols of {library}", why)


def main():
    arg = argparse.ArgumentParser(description=__doc__)
    arg.add_argument("--lib", required=True, type=pathlib.Path,
                     help="folder of our libraries")
    arg.add_argument("--stock", type=pathlib.Path,
                     help="folder of rdma-core's libraries")
    arg.add_argument("--write", action="store_true")
    options = arg.parse_args()
    if options.stock:
        stock = {name: exported(options.stock / name) for name in LIBRARIES}
        if options.write:
            write_list(stock)
    else:
        stock = read_list()
    report = Report()
    for library in LIBRARIES:
        path = options.lib / library
        if path.exists():
            compare(report, library, exported(path), stock[library])
        else:
            report.fail(f"symbols of {library}", "not built")
    report.finish()


if __name__ == "__main__":
    main()
