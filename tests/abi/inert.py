#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that loading adverb's libraries has no effect: no descriptor, thread,
signal handler or output.

One process opens all libraries and checks itself; where strace works, a second
process shows that loading makes none of the system calls in CALLS."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

from report import LIBRARIES, Report, place

LOOK = """
import ctypes, os, sys
def state():
    status = open('/proc/self/status').read().splitlines()
    # SigQ counts the signals that wait for any process of the user
    return (sorted(os.listdir('/proc/self/fd')), os.listdir('/proc/self/task'),
            [line for line in status if line.startswith('Sig') and
             not line.startswith('SigQ')])
before = state()
libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
after = state()
if before != after:
    sys.exit(f'before {before}, after {after}')
"""

# Calls that loading must not make.  The loader itself calls openat, read, mmap
# and close for each file.
CALLS = ("clone,clone3,fork,vfork,socket,socketpair,pipe2,eventfd2,"
         "epoll_create1,timerfd_create,signalfd4,memfd_create,inotify_init1,"
         "rt_sigaction,write,connect,bind,kill,execve")


def look(paths):
    run = subprocess.run([sys.executable, "-c", LOOK, *paths], text=True,
                         capture_output=True)
    if run.returncode or run.stderr or run.stdout:
        return (run.stderr + run.stdout).strip()
    return ""


def strace(*words):
    return subprocess.run(
        ["strace", "-f", "-qq", "-e", f"trace={CALLS}", *words, "/bin/true"],
        text=True, capture_output=True)


def trace(paths):
    """Returns the calls that loading makes, as text, or None if strace is
    absent or not allowed."""
    if not shutil.which("strace") or strace().returncode:
        return None
    run = strace("-E", "LD_PRELOAD=" + ":".join(paths))
    lines = run.stderr.splitlines()
    # The first call is that by which strace starts the program.
    if not lines or not lines[0].startswith('execve("/bin/true", '):
        lines.insert(0, "strace does not show the start of the program")
    else:
        del lines[0]
    if run.returncode:
        lines.append(f"the program ends with {run.returncode}")
    return "; ".join(lines)


def main():
    arg = argparse.ArgumentParser(description=__doc__)
    arg.add_argument("--lib", required=True, type=pathlib.Path,
                     help="folder of our libraries")
    lib = arg.parse_args().lib.resolve()
    paths = [str(place(lib, name)) for name in LIBRARIES]
    env_less = [key for key in os.environ if key.startswith("LD_")]
    for key in env_less:
        del os.environ[key]
    # DEB_LIBRARIES has the folders of Debian's libraries that ci/setup has
    # unpacked and not installed.
    os.environ["LD_LIBRARY_PATH"] = ":".join(
        [str(lib)] + os.environ.get("DEB_LIBRARIES", "").split(":"))
    report = Report()
    report.judge("loading opens nothing and starts nothing", look(paths))
    why = trace(paths)
    if why is None:
        report.skip("loading makes no system call of its own",
                    "strace cannot run here")
    else:
        report.judge("loading makes no system call of its own", why)
    report.finish()


if __name__ == "__main__":
    main()
