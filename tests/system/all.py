#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs every system test and adds their counts up.

all.py [--build DIR] [--full]: --full is the nightly length.
"""

import argparse
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--build", default="build/out")
parser.add_argument("--full", action="store_true")
options = parser.parse_args()
results = os.path.join(os.path.dirname(os.path.abspath(options.build)),
                       "results", "system.tsv")
if os.path.exists(results):
    os.unlink(results)

build = ["--build", options.build]
total = [0, 0, 0]
for argv in (["pair.py"], ["devices.py"], ["perftest.py"], ["badinput.py"],
             ["hostile.py"], ["loaded.sh", "100" if options.full else "5"]):
    print("== " + argv[0], flush=True)
    child = subprocess.Popen(
        [os.path.join(HERE, argv[0]), *build, *argv[1:]],
        stdout=subprocess.PIPE, text=True)
    last = ""
    for line in child.stdout:
        print(line, end="", flush=True)
        last = line
    counts = re.match(r"(\d+) passed, (\d+) failed, (\d+) skipped", last)
    if counts and (child.wait() == 0) == (int(counts.group(2)) == 0):
        total = [a + int(b) for a, b in zip(total, counts.groups())]
    else:
        print("FAIL %s: exit status %d without its counts" %
              (argv[0], child.wait()))
        total[1] += 1
print("== system\n%d passed, %d failed, %d skipped" % tuple(total))
sys.exit(1 if total[1] else 0)
