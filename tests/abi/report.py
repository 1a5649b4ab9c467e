# SPDX-License-Identifier: BSD-2-Clause
"""Lines of a test: `ok NAME`, `FAIL NAME: why`, `skipped NAME: why`."""

import subprocess
import sys

LIBRARIES = ("libibverbs.so.1", "librdmacm.so.1", "libibumad.so.3",
             "libmlx5.so.1", "libmlx4.so.1", "libefa.so.1", "libmana.so.1",
             "libhns.so.1")


def place(lib, library):
    """Returns the path of our library: in @lib, or else in @lib/vendor/NAME."""
    if (lib / library).exists():
        return lib / library
    name = library.removeprefix("lib").split(".")[0]
    return lib / "vendor" / name / library


def folders(lib):
    """Returns the folders that hold our libraries."""
    return list(dict.fromkeys(str(place(lib, name).parent)
                              for name in LIBRARIES))


def exported(library):
    """Returns the set of `name@node` that a library defines, with `@` in place
    of `@@`."""
    text = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library],
        check=True, capture_output=True, text=True).stdout
    words = (line.split()[-1].replace("@@", "@") for line in text.splitlines())
    return {word for word in words if "@" in word}


class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def ok(self, name):
        self.passed += 1
        print(f"ok {name}")

    def fail(self, name, why):
        self.failed += 1
        print(f"FAIL {name}: {why}")

    def skip(self, name, why):
        self.skipped += 1
        print(f"skipped {name}: {why}")

    def judge(self, name, why):
        """Reports a case as passed if `why` is empty, or else as failed."""
        if why:
            self.fail(name, why)
        else:
            self.ok(name)

    def finish(self):
        """Prints the counts and ends the program: with 1 if a case failed, or
        with 77 if no case ran."""
        print(f"{self.passed} passed, {self.failed} failed, "
              f"{self.skipped} skipped")
        if self.failed:
            sys.exit(1)
        sys.exit(0 if self.passed else 77)
