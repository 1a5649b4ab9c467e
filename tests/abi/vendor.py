#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that the distribution's own vendor libraries load over adverb's
libibverbs, and take none of adverb's devices for their own.

The constructors of these libraries register drivers with libibverbs.  A vendor
library decides whether a device is its own by the pointer to operations behind
struct ibv_device (struct v_device, src/verbs/object.h)."""

import argparse
import ctypes
import errno
import os
import pathlib
import subprocess
import sys
import tempfile

from report import Report

OURS = ("libibverbs.so.1", "librdmacm.so.1", "libibumad.so.3")
ROOM = 4096  # bytes, more than any structure that these calls fill

# Library, function, first argument (None: the function is only looked up), and
# the value that the function returns (None: NULL, with errno EOPNOTSUPP).
CALLS = (
    ("libmlx5.so.1", "mlx5dv_is_supported", "device", False),
    ("libmlx5.so.1", "mlx5dv_open_device", "device", None),
    ("libmlx5.so.1", "mlx5dv_query_device", "context", errno.EOPNOTSUPP),
    ("libefa.so.1", "efadv_query_device", "context", errno.EOPNOTSUPP),
    ("libhns.so.1", "hnsdv_is_supported", "device", False),
    ("libhns.so.1", "hnsdv_query_device", "context", errno.EOPNOTSUPP),
    ("libmlx4.so.1", "mlx4dv_init_obj", None, 0),
    ("libmana.so.1", "manadv_init_obj", None, 0),
)


def machine_of(path):
    """Returns the class and the machine of an ELF file, as bytes; None if the
    file cannot be read."""
    try:
        with open(path, "rb") as f:
            head = f.read(20)
    except OSError:
        return None
    return head[4:5] + head[18:20]


def listed(library, listing):
    """Returns the path that the output of `ldconfig -p` has for a library of
    this processor; None if there is none."""
    for line in listing.splitlines():
        name, _, path = line.strip().partition(" => ")
        if name.startswith(library + " ") and \
                machine_of(path) == machine_of(sys.executable):
            return path
    return None


def check_listed(report):
    """Checks that listed() finds a library whether the listing spells the
    processor's name in one of several ways or leaves it out."""
    for tag in "libc6,x86-64", "libc6,AArch64", "libc6":
        listing = ("2 libs found in cache\n"
                   f"\tliba.so.1 ({tag}) => /no/liba.so.1\n"
                   f"\tliba.so.1 ({tag}) => {__file__}\n"
                   f"\tliba.so.1 ({tag}) => {sys.executable}\n")
        path = listed("liba.so.1", listing)
        report.judge(f"a library of ({tag}) is found",
                     "" if path == sys.executable else f"found: {path}")


def found(library):
    """Returns the path of a vendor library: in the folders where ci/setup
    unpacked it, or else in the loader's cache; None if neither has the
    library."""
    for folder in os.environ.get("DEB_LIBRARIES", "").split(":"):
        path = os.path.join(folder, library)
        if folder and os.path.exists(path):
            return path
    listing = subprocess.run(["/sbin/ldconfig", "-p"], text=True,
                             capture_output=True, check=False).stdout
    return listed(library, listing)


def ask(vendor, call, whom, answer):
    """Calls a function of a vendor library, in a process whose loader finds
    adverb's libibverbs.  Returns why the result is wrong, or ""."""
    verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
    theirs = ctypes.CDLL(vendor, use_errno=True)
    function = getattr(theirs, call)
    if whom is None:
        return ""  # the test is that the function is there
    function.restype = (ctypes.c_void_p if answer is None else
                        ctypes.c_bool if answer is False else ctypes.c_int)
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_open_device.restype = ctypes.c_void_p
    device = verbs.ibv_get_device_list(None)[0]
    if not device:
        return "there is no device"
    about = ctypes.c_void_p(device)
    if whom == "context":
        about = ctypes.c_void_p(verbs.ibv_open_device(about))
        if not about:
            return "the device does not open"
    got = function(about, ctypes.create_string_buffer(ROOM), ROOM)
    if got != answer:
        return f"it returns {got}, not {answer}"
    if answer is None and ctypes.get_errno() != errno.EOPNOTSUPP:
        return (f"errno is {os.strerror(ctypes.get_errno())}, "
                f"not {os.strerror(errno.EOPNOTSUPP)}")
    return ""


def judge(report, folder, row, vendor):
    library, call = row[:2]
    name = f"{library} {call}"
    if not vendor:
        report.skip(name, f"no {library} is installed")
        return
    env = dict(os.environ, ADVERB_EXPLAIN="0", LD_BIND_NOW="1",
               LD_LIBRARY_PATH=":".join(
                   [folder] + os.environ.get("DEB_LIBRARIES", "").split()))
    row = CALLS.index(row)
    run = subprocess.run([sys.executable, __file__, "--ask", str(row), vendor],
                         env=env, text=True, capture_output=True, check=False)
    why = run.stdout.strip()
    if run.returncode and not why:
        why = run.stderr.strip() or f"exit status {run.returncode}"
    report.judge(name, why)


def main():
    arg = argparse.ArgumentParser(description=__doc__)
    arg.add_argument("--lib", type=pathlib.Path,
                     help="folder of our libraries")
    arg.add_argument("--ask", nargs=2, metavar=("ROW", "LIBRARY"),
                     help=argparse.SUPPRESS)
    options = arg.parse_args()
    if options.ask:
        row, vendor = options.ask
        why = ask(vendor, *CALLS[int(row)][1:])
        print(why)
        sys.exit(bool(why))
    report = Report()
    check_listed(report)
    with tempfile.TemporaryDirectory() as folder:
        for name in OURS:
            os.symlink((options.lib / name).resolve(),
                       os.path.join(folder, name))
        for row in CALLS:
            judge(report, folder, row, found(row[0]))
    report.finish()


if __name__ == "__main__":
    main()
