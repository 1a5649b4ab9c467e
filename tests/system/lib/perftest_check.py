# SPDX-License-Identifier: BSD-2-Clause
"""Judges what perftest, the pingpongs and a capture of them say."""

import os
import re
import shutil

import forge
import icrc_check
from system import expect


def rows(output):
    """The result rows of perftest: lines of numbers, size first."""
    return [line.split() for line in output
            if re.match(r"\s*\d+\s+\d+\s+-?([\d.]+|inf|nan)\b", line)]


def check_rows(r, count=1, side="client"):
    got = rows(r.lines(side))
    expect(len(got) >= count, "%d result rows, not %d" % (len(got), count), r)


def check_pingpong(r):
    for side in "server", "client":
        expect(any("bytes in" in line for line in r.lines(side)),
               "the %s shows no result" % side, r)
    expect("invalid data" not in r.output, "the data differ", r)


def check_capture(t, path, r):
    """No malformed frame, every ICRC right, and frames at all."""
    expect(os.path.exists(path), "no capture was written", r)
    seen, wrong = icrc_check.check(path)
    expect(seen > 0, "the capture is empty", r)
    expect(wrong == 0, "%d of %d ICRCs are wrong" % (wrong, seen), r)
    if not shutil.which("tshark"):
        return
    # By default it guesses what a payload is, and a short one as RPC.
    bad = t.run(["tshark", "-r", path, "--disable-protocol", "rpcordma",
                 "-Y", "_ws.malformed", "-T", "fields", "-e", "frame.number",
                 "-e", "infiniband.bth.destqp"], 60)
    expect(bad.status == 0, "tshark cannot read the capture", bad)
    frames = [line.split() for line in bad.output.splitlines()
             if line[:1].isdigit()]
    if t.is_beside_hostile:
        # mallory.py's frames are captured too, and go to guessed queue pairs
        ends = {qpn for qpn, _ in forge.ends_of(r.output)}
        expect(ends, "the queue pairs are not known", r)
        frames = [row for row in frames if int(row[-1], 0) in ends]
    numbers = [row[0] for row in frames]
    expect(not numbers, "malformed frames: " + " ".join(numbers[:10]), bad)
