# SPDX-License-Identifier: BSD-2-Clause
"""Checks the output of perftest and of the pingpongs, and captures of their
frames."""

import os
import re
import shutil

import forge
import icrc_check
from system import expect

# The options of both ends of a transfer that does not end by itself.  The client
# prints a line of figures each second.
WITHOUT_END = ["-D", "1", "--run_infinitely"]


def rows(output):
    """Returns the result rows of perftest.  A row is a line of numbers; the first
    number is the message size."""
    return [line.split() for line in output
            if re.match(r"\s*\d+\s+\d+\s+-?([\d.]+|inf|nan)\b", line)]


def check_rows(r, count=1, side="client"):
    """Expects that the side has printed at least @count result rows of perftest."""
    got = rows(r.lines(side))
    expect(len(got) >= count, "%d result rows, not %d" % (len(got), count), r)


def check_pingpong(r):
    """Expects that both sides have printed a result, and that no side has received
    wrong data."""
    for side in "server", "client":
        expect(any("bytes in" in line for line in r.lines(side)),
               "the %s shows no result" % side, r)
    expect("invalid data" not in r.output, "the data differ", r)


def check_capture(t, path, r):
    """Expects that the capture has frames, that every ICRC is right, and, if
    tshark is installed, that no frame is malformed."""
    expect(os.path.exists(path), "no capture was written", r)
    seen, wrong = icrc_check.check(path)
    expect(seen > 0, "the capture is empty", r)
    expect(wrong == 0, "%d of %d ICRCs are wrong" % (wrong, seen), r)
    if not shutil.which("tshark"):
        return
    # By default tshark guesses the protocol of a payload, and takes some short
    # payloads for RPC.
    bad = t.run(["tshark", "-r", path, "--disable-protocol", "rpcordma",
                 "-Y", "_ws.malformed", "-T", "fields", "-e", "frame.number",
                 "-e", "infiniband.bth.destqp"], 300)
    expect(bad.status == 0, "tshark cannot read the capture", bad)
    frames = [line.split() for line in bad.output.splitlines()
             if line[:1].isdigit()]
    if t.is_beside_hostile:
        # The capture also has mallory.py's frames, which go to guessed queue
        # pairs.
        ends = {qpn for qpn, _ in forge.ends_of(r.output)}
        expect(ends, "the queue pairs are not known", r)
        frames = [row for row in frames if int(row[-1], 0) in ends]
    numbers = [row[0] for row in frames]
    expect(not numbers, "malformed frames: " + " ".join(numbers[:10]), bad)
