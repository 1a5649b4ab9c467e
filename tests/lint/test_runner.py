#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that ci/test-system leaves no process and no folder if it is ended early, by
a signal to its process group, as ci/test and a terminal send it.  Also tests that a
suite that uses its caller's network namespace is not run in the machine's."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANG = 120  # seconds
HEAD = """
import os
import sys
sys.path.insert(1, sys.path[0] + "/../lib")
import system
t = system.Suite("An example.")
"""
# The suites: one whose program writes its process id and the folders of suite and script, and
# one that has the name of a suite in the list of ci/test-system.
SUITES = {
    "endless": HEAD + """
started = system.ROOT + "/build/results/started"
t.case("an endless program", lambda: t.run(
    ["sh", "-c", 'echo $$ "$@" >"$0.new"; mv "$0.new" "$0"; exec sleep 86400',
     started, t.tmp, t.runtime, os.environ["HOME"], os.environ["XDG_RUNTIME_DIR"]]))
t.end()
""",
    "devices": HEAD + """
t.case("in " + os.readlink("/proc/self/ns/net"), lambda: None)
t.end()
"""}


def make_tree(top):
    """Makes a small tree with ci/test-system and SUITES."""
    for folder in "ci", "tests/system/one", "build/out/tools":
        (top / folder).mkdir(parents=True)
    for name in "ci/lib.sh", "ci/test-system":
        shutil.copy(ROOT / name, top / name)
    shutil.copytree(ROOT / "tests/system/lib", top / "tests/system/lib")
    for name, text in SUITES.items():
        (top / "tests/system/one" / (name + ".py")).write_text(text, encoding="utf-8")
    for name in "ci/build", "build/out/tools/adverb":
        (top / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (top / name).chmod(0o755)
    subprocess.run(["chmod", "-R", "a+rX", top], check=True)


def wait_for(is_so):
    """Waits until is_so() is true, for HANG seconds at most.  Returns whether it is."""
    end = time.monotonic() + HANG
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    return is_so()


def runs(pid):
    """Does a process that has not ended have this id?"""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def end_early(top, what):
    """Sends the signal @what to the group of ci/test-system while the endless program
    runs.  Returns what is wrong, or ""."""
    started = top / "build/results/started"
    with subprocess.Popen([top / "ci/test-system", "endless"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, text=True) as script:
        if not wait_for(lambda: started.exists() or script.poll() is not None) or \
                not started.exists():
            os.killpg(script.pid, signal.SIGKILL)
            return "the program does not start: " + script.communicate()[0]
        pid, *folders = started.read_text(encoding="utf-8").split()
        for _ in range(2):  # timeout(1) sends a signal twice
            os.killpg(script.pid, what)
        if not wait_for(lambda: not runs(int(pid))):
            os.kill(int(pid), signal.SIGKILL)
            return "the suite's program survives"
        if not wait_for(lambda: not any(map(os.path.exists, folders))):
            return "a folder stays"
    return ""


def alone(top):
    """Runs the suite devices.  Returns what is wrong, or ""."""
    done = subprocess.run([top / "ci/test-system", "devices"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    ours = "ok in " + os.readlink("/proc/self/ns/net")
    if "ok in " in done.stdout and ours not in done.stdout:
        return ""
    return "the suite is in the namespace of its caller: " + done.stdout


def can_be_alone():
    return subprocess.run(
        ["bash", "-c", '. "$0"; find_alone; [ ${#alone[@]} -gt 0 ]', ROOT / "ci/lib.sh"],
        check=False).returncode == 0


def main():
    failed = skipped = 0
    # A shell may have started this script with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cases = [(what.name + " ends all of a suite",
              lambda top, what=what: end_early(top, what))
             for what in (signal.SIGTERM, signal.SIGINT)]
    if can_be_alone():
        cases.append(("a suite has a namespace of its own", alone))
    else:
        skipped = 1
        print("skipped runner: no network namespace can be made")
    for name, body in cases:
        with tempfile.TemporaryDirectory() as folder:
            make_tree(pathlib.Path(folder))
            why = body(pathlib.Path(folder))
        failed += bool(why)
        print("%s runner: %s%s" % ("FAIL" if why else "ok", name,
                                   why and ": " + why))
    print("%d passed, %d failed, %d skipped" % (len(cases) - failed, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
