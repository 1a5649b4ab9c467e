#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that each file of the build needs no library but adverb's and glibc's,
and starts with glibc 2.34, which was released in 2021.

The loader refuses a file if a library lacks a symbol version that the file
names, even if no symbol of that version is used.  So the versions that a file
names decide on which systems the file starts.  Few thread-local bytes let a
program open the libraries beside others."""

import argparse
import pathlib
import re
import shutil
import subprocess

from report import LIBRARIES, Report, place

MOST_LOCAL = 256
# Since this version of glibc, libpthread, libdl and librt are in libc.
NEWEST = (2, 34)
SYSTEM = re.compile(r"libc\.so\.6|libm\.so\.6|ld-linux-[\w-]+\.so\.[12]")
PROVIDER = re.compile(r"Version: \d+ +File: (\S+)")
VERSION = re.compile(r"Name: (\S+) +Flags: ")
NUMBER = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True,
                          capture_output=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]",
                      readelf("-d", path))


def versions(path):
    """Yields (library, version) for each symbol version that the file names."""
    library = ""
    for line in readelf("-V", path).splitlines():
        if PROVIDER.search(line):
            library = PROVIDER.search(line)[1]
        elif library and VERSION.search(line):
            yield library, VERSION.search(line)[1]


def is_old(version):
    number = NUMBER.fullmatch(version)
    return number and (int(number[1]), int(number[2])) <= NEWEST


def thread_local_bytes(path):
    """Returns how many bytes of thread-local memory each thread gets for the
    file."""
    found = re.search(r"^\s+TLS\s+\S+ \S+ \S+ \S+ (\S+)",
                      readelf("-l", path), re.M)
    return int(found[1], 16) if found else 0


def judge(report, path):
    foreign = [name for name in needed(path)
               if name not in LIBRARIES and not SYSTEM.fullmatch(name)]
    newer = sorted({version for library, version in versions(path)
                    if library not in LIBRARIES and not is_old(version)})
    report.judge(f"{path.name} needs libc alone",
                 f"it needs {' '.join(foreign)}" if foreign else "")
    report.judge("%s starts with glibc %d.%d" % (path.name, *NEWEST),
                 f"it needs {' '.join(newer)}" if newer else "")
    # glibc has 1664 bytes for all libraries that a program opens by dlopen and
    # that have thread-local variables of the initial-exec model.
    own = thread_local_bytes(path)
    report.judge(f"{path.name} has at most {MOST_LOCAL} thread-local bytes",
                 f"it has {own}" if own > MOST_LOCAL else "")


def main():
    arg = argparse.ArgumentParser(description=__doc__)
    arg.add_argument("--lib", required=True, type=pathlib.Path,
                     help="folder of our libraries and the broker")
    arg.add_argument("programs", nargs="*", type=pathlib.Path)
    options = arg.parse_args()
    report = Report()
    if not shutil.which("readelf"):
        report.skip("all that we built needs libc alone", "no readelf")
        report.finish()
    files = {*options.lib.iterdir(),
             *(place(options.lib, library) for library in LIBRARIES)}
    files = sorted(filter(is_elf, files)) + options.programs
    names = {path.name for path in files}
    for library in sorted({*LIBRARIES, "libadverb-shim.so", "adverbd"} - names):
        report.fail(f"{library} needs libc alone", "not built")
    for path in files:
        judge(report, path)
    report.finish()


if __name__ == "__main__":
    main()
