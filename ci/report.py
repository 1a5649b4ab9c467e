#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""report.py NAME LOGS LISTED TESTLOG: prints a line for each test of `meson test`.

LISTED has the names that `meson test --list` printed: each of these tests that
TESTLOG lacks has failed, because meson writes TESTLOG while the tests run, and may
end before the last of them.

Counts the cases of a program that prints them: by cmocka's summary, or by a
last line `N passed, N failed, N skipped`.  The output of a failed test is kept
in LOGS, and its last lines are printed.
"""

import json
import os
import re
import sys

TAIL = 30


def cases(result, text):
    """Returns (passed, failed, skipped) of one test."""
    good = result in ("OK", "EXPECTEDFAIL")
    if result == "SKIP":
        return 0, 0, 1
    told = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?",
                      text, re.M)
    if told:
        passed, failed, skipped = (int(n or 0) for n in told[-1])
    else:
        passed, failed, skipped = (
            sum(int(n) for n in re.findall(
                r"\[  %s\s*\] (\d+) test\(s\)" % word, text))
            for word in ("PASSED", "FAILED", "SKIPPED"))
    if good and passed + failed + skipped == 0:
        passed = 1
    if not good and failed == 0:
        failed = 1
    return passed, failed, skipped


def skips(title, text):
    """Returns a line for each case that a test skips, with the reason that the
    test gives."""
    lines = [line for line in text.splitlines() if line.startswith("skipped ")]
    told = {line.split()[1].rstrip(":") for line in lines}
    silent = [case for case in re.findall(r"^\[  SKIPPED \] (\w+)$", text, re.M)
              if case not in told]
    return lines + ["skipped %s: %s: no reason given" % (title, case)
                    for case in dict.fromkeys(silent)]


def file_name(title):
    return re.sub(r"[^A-Za-z0-9._-]+", "_", title)


def lines_of(path):
    """Returns the lines of a file that are not empty, or [] if there is no file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as lines:
        return [line.strip() for line in lines if line.strip()]


def absent(name, logs, listed, runs):
    """Returns a line for each listed test that has not run, or one line if none
    is listed or none has run."""
    ran = {run["name"] for run in runs}
    lines = ["%s: %s: meson has not run this test" % (
        name, test.split(" / ")[-1]) for test in listed if test not in ran]
    if not listed or not runs:
        lines = ["%s: meson has run no test" % name]
    see = os.path.relpath(os.path.join(logs, "meson-%s.log" % file_name(name)))
    return ["FAIL %s; see %s" % (line, see) for line in lines]


def main(name, logs, listed, testlog):
    runs = [json.loads(line) for line in lines_of(testlog)]
    missing = absent(name, logs, lines_of(listed), runs)
    sums = [0, len(missing), 0]
    for line in missing:
        print(line)
    for run in runs:
        text = (run.get("stdout") or "") + "\n" + (run.get("stderr") or "")
        counts = cases(run["result"], text)
        sums = [a + b for a, b in zip(sums, counts)]
        title = "%s: %s" % (name, run["name"].split(" / ")[-1])
        tally = "%d cases, %.1f s" % (sum(counts), run["duration"])
        if counts[1]:
            path = os.path.join(logs, file_name(title) + ".log")
            with open(path, "w", encoding="utf-8") as log:
                log.write(" ".join(run["command"]) + "\n" + text)
            print("FAIL %s (%d of %s): %s; see %s" % (
                title, counts[1], tally, run["result"].lower(),
                os.path.relpath(path)))
            for line in text.strip().splitlines()[-TAIL:]:
                print("    " + line)
        elif counts[0]:
            print("ok %s (%s)" % (title, tally))
        else:
            why = re.findall(r"^skipped(?: .*?)?: (.*)", text, re.M)
            print("skipped %s: %s" % (title, (why or ["no reason given"])[-1]))
        for line in skips(title, text) if counts[0] else ():
            print("    " + line)
    print("%d passed, %d failed, %d skipped" % tuple(sums))
    return 1 if sums[1] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
