#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What of the product is built: asked here alone, by every kind of test.

A test that needs what is not there says `skipped NAME: why` with the sentence
from here, and runs as soon as it is there."""

import pathlib
import subprocess

NO_VERBS = "the verbs calls are not built yet"


def exported(library):
    """The set of `name@node` that a library defines; `@@` counts as `@`."""
    text = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library],
        check=True, capture_output=True, text=True).stdout
    words = (line.split()[-1].replace("@@", "@") for line in text.splitlines())
    return {word for word in words if "@" in word}


def verbs_missing(lib):
    """Why nothing that links libibverbs starts on ours, or nothing.

    A library that is absent is no reason: that is a failure."""
    path = pathlib.Path(lib) / "libibverbs.so.1"
    if path.exists() and "ibv_create_qp@IBVERBS_1.1" not in exported(path):
        return NO_VERBS
    return ""
