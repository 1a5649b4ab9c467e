#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""perftest and the pingpongs between two processes over 127.0.0.1."""

import os
import re
import shutil

import icrc_check
import system
from system import expect, expect_ok

t = system.Suite(__doc__)
ATOMICS = (["-A", "CMP_AND_SWAP"], ["-A", "FETCH_AND_ADD"])
VERBS = ("write", "read", "send", "atomic")


def rows(output):
    """The result rows of perftest: lines of numbers, size first."""
    return [line.split() for line in output
            if re.match(r"\s*\d+\s+\d+\s+[\d.]+", line)]


def check_rows(r, count):
    got = rows(r.lines("client"))
    expect(len(got) >= count, "%d result rows, not %d" % (len(got), count), r)


def check_capture(path, r):
    """No malformed frame, every ICRC right, and frames at all."""
    expect(os.path.exists(path), "no capture was written", r)
    seen, wrong = icrc_check.check(path)
    expect(seen > 0, "the capture is empty", r)
    expect(wrong == 0, "%d of %d ICRCs are wrong" % (wrong, seen), r)
    if not shutil.which("tshark"):
        return
    # By default it guesses what a payload is, and a short one as RPC.
    bad = t.run(["tshark", "-r", path, "--disable-protocol", "rpcordma",
                 "-Y", "_ws.malformed", "-T", "fields",
                 "-e", "frame.number"], 60)
    numbers = [line for line in bad.output.splitlines() if line.isdigit()]
    expect(bad.status == 0, "tshark cannot read the capture", bad)
    expect(not numbers, "malformed frames: " + " ".join(numbers[:10]), bad)


def perftest(argv, count=1, timeout=30, capture=False):
    name = " ".join(argv)

    def body():
        t.need(argv[0])
        path = t.path(re.sub(r"\W+", "-", name) + ".pcapng")
        options = ["--pcap", path] if capture else []
        r = t.pair(argv, options, timeout)
        expect_ok(r)
        check_rows(r, count)
        if capture:
            check_capture(path, r)
            os.unlink(path)

    t.case(name + (" --pcap" if capture else ""), body, "perftest", name)


def pingpong(argv, timeout=30, capture=False):
    name = " ".join(argv)

    def body():
        t.need(argv[0])
        path = t.path(re.sub(r"\W+", "-", name) + ".pcapng")
        options = ["--pcap", path] if capture else []
        r = t.pair(argv, options, timeout)
        expect_ok(r)
        for side in "server", "client":
            expect(any("bytes in" in line for line in r.lines(side)),
                   "the %s shows no result" % side, r)
        expect("invalid data" not in r.output, "the data differ", r)
        if capture:
            check_capture(path, r)
            os.unlink(path)

    t.case(name + (" --pcap" if capture else ""), body, "pingpong", name)


def tools_of(verb):
    """(program, extra arguments) of both tools of a verb."""
    extras = ATOMICS if verb == "atomic" else ([],)
    for kind in "bw", "lat":
        for extra in extras:
            yield ["ib_%s_%s" % (verb, kind)] + extra


def basics():
    for verb in VERBS:
        for tool in tools_of(verb):
            perftest(tool + ["-n", "200"])


def shapes():
    for verb in VERBS:
        for tool in tools_of(verb):
            if verb != "atomic":
                perftest(tool + ["-a", "-n", "5"], count=20, timeout=60)
            if verb != "write":  # perftest itself refuses events there
                perftest(tool + ["-e", "-n", "100"])
            if tool[0].endswith("bw"):
                perftest(tool + ["-q", "16", "-n", "100"])
                perftest(tool + ["-b", "-n", "100"])
    for mtu in "256", "512", "1024", "2048", "4096":
        for tool in "ib_write_bw", "ib_read_bw", "ib_send_bw":
            perftest([tool, "-m", mtu, "-n", "100"])
    for tool in "ib_write_bw", "ib_write_lat", "ib_send_bw", "ib_send_lat":
        perftest([tool, "-I", "64", "-s", "64", "-n", "200"])


def shared():
    for tool in "ib_send_bw", "ib_send_lat":
        perftest([tool, "--use-srq", "-n", "200"])
        perftest([tool, "--use-srq", "-e", "-n", "100"])
    perftest(["ib_send_bw", "--use-srq", "-q", "16", "-n", "100"])
    perftest(["ib_send_bw", "--use-srq", "-b", "-n", "100"])
    perftest(["ib_send_bw", "--use-srq", "-a", "-n", "5"], count=20,
             timeout=60)


def captures():
    perftest(["ib_write_bw", "-n", "20"], capture=True)
    perftest(["ib_read_bw", "-m", "256", "-s", "10000", "-n", "20"],
             capture=True)
    perftest(["ib_send_lat", "-s", "3", "-n", "50"], capture=True)
    perftest(["ib_atomic_lat", "-n", "50"], capture=True)
    pingpong(["ibv_rc_pingpong", "-n", "50"], capture=True)


basics()
for extra in [], ["-c"], ["-e"], ["-c", "-e", "-s", "1000000", "-n", "50"]:
    pingpong(["ibv_rc_pingpong"] + extra)
for extra in ["-c"], ["-e"], ["-c", "-e", "-s", "100000", "-n", "200"]:
    pingpong(["ibv_srq_pingpong"] + extra)
shapes()
shared()
captures()
t.end()
