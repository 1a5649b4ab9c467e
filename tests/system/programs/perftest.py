#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests perftest and the pingpongs between two processes over 127.0.0.1."""

import os
import re
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import system
from perftest_check import check_capture, check_pingpong, check_rows
from system import expect, expect_ok

t = system.Suite(__doc__)
ATOMICS = (["-A", "CMP_AND_SWAP"], ["-A", "FETCH_AND_ADD"])
VERBS = ("write", "read", "send", "atomic")
KNOWN_PART = "4119"  # the part ID of a device in perftest's table
# A few bytes, several packets with a remainder, and perftest's longest message.
# Without -s, perftest measures bandwidth with messages of 65 536 bytes, latency
# with 2 bytes, and atomics with 8.
SIZES = 2, 5001, 8388608
# If a device has KNOWN_PART, later releases of perftest ask the vendor's library
# for the device's capabilities, but not with these options.
NOT_ASKED = "--no_ddp", "--no_enhanced_reorder"


def of_a_known_part(argv):
    """Returns @argv with options by which perftest uses no feature of the known
    part but ibv_wr_*."""
    said = t.run([argv[0], "--help"]).output
    return argv + [word for word in NOT_ASKED if word in said]


def perftest(argv, count=1, timeout=system.HANG, capture=False, known=False):
    name = " ".join(argv)

    def body():
        t.need(argv[0])
        path = t.path(re.sub(r"\W+", "-", name) + ".pcapng")
        options = ["--pcap", path] if capture else []
        more = {"ADVERB_PART_ID": KNOWN_PART} if known else {}
        r = t.pair(of_a_known_part(argv) if known else argv, options,
                   timeout, **more)
        expect_ok(r)
        check_rows(r, count)
        if known:
            expect(re.search(r"ibv_wr\* API\s*: ON", r.output),
                   "perftest did not use ibv_wr_*", r)
        if capture:
            check_capture(t, path, r)
            os.unlink(path)

    t.case(name + (" --pcap" if capture else "") +
           (" by ibv_wr_*" if known else ""), body, "perftest", name)


def sizes(argv, chosen, n, count=20):
    """Adds a case for each of the sizes @chosen.  With --full, adds one case of
    all sizes, of which there are at least @count.  That case takes long: for
    each size both ends of perftest measure the processor's frequency for 0.2 s
    and use a core meanwhile."""
    if t.options.full:
        perftest(argv + ["-a", "-n", n], count)
        return
    for size in chosen:
        perftest(argv + ["-s", str(size), "-n", n])


def pingpong(argv, timeout=system.HANG, capture=False):
    name = " ".join(argv)

    def body():
        t.need(argv[0])
        path = t.path(re.sub(r"\W+", "-", name) + ".pcapng")
        options = ["--pcap", path] if capture else []
        r = t.pair(argv, options, timeout)
        expect_ok(r)
        check_pingpong(r)
        if capture:
            check_capture(t, path, r)
            os.unlink(path)

    t.case(name + (" --pcap" if capture else ""), body, "pingpong", name)


def lost_acks():
    """Adds a case: the client's ACK packets are lost, and the client's process
    ends as soon as it has the last message.  So only the shm acks that this
    process leaves tell the server that the server's last SEND was accepted."""
    argv = ["ibv_rc_pingpong", "-e", "-n", "20"]

    def once():
        r = t.pair(argv, ["--env-client", "LD_PRELOAD=" + t.program("lost_acks.so")],
                   ADVERB_DIRECT="0")
        expect_ok(r)
        check_pingpong(r)
        return r.output.count("an ACK packet is lost")

    def body():
        t.need(argv[0])
        system.often_enough(1, once, "ACK packets were lost")

    t.case("a process that ends leaves its last ACK", body)


def tools_of(verb):
    """Yields the command lines of both tools of a verb."""
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
                sizes(tool, SIZES, "5")
            if verb != "write":  # perftest itself refuses events for WRITEs
                perftest(tool + ["-e", "-n", "100"])
            if tool[0].endswith("bw"):
                perftest(tool + ["-q", "16", "-n", "100"])
                perftest(tool + ["-b", "-n", "100"])
    for mtu in "256", "512", "1024", "2048", "4096":
        for tool in "ib_write_bw", "ib_read_bw", "ib_send_bw":
            perftest([tool, "-m", mtu, "-n", "100"])
    for tool in "ib_write_bw", "ib_write_lat", "ib_send_bw", "ib_send_lat":
        perftest([tool, "-I", "64", "-s", "64", "-n", "200"])


def with_acks(times):
    """Adds cases for perftest 4.5, which waits for the completion of its SEND
    and for the answer on one channel, and believes that the first event is that
    of the SEND.  So the completion must come before the answer."""
    argv = ["ib_send_lat", "-e", "-n", "200"]
    # With ADVERB_STRICT a requester gives up after a fixed time.  With -u 20 that
    # time is more than 30 s, and with perftest's default half a second.
    for what, more, env in (("strict", ["-u", "20"], {"ADVERB_STRICT": "1"}),
                            ("ACKs as packets", [], {"ADVERB_WITHOUT": "acks"})):
        def body(more=more, env=env):
            t.need(argv[0])
            for _ in range(times):
                r = t.pair(argv + more, ADVERB_DIRECT="0", **env)
                expect_ok(r)
                check_rows(r)

        t.case("%s, %s, %d times" % (" ".join(argv), what, times), body,
               "perftest", argv[0])


def shared():
    for tool in "ib_send_bw", "ib_send_lat":
        perftest([tool, "--use-srq", "-n", "200"])
        perftest([tool, "--use-srq", "-e", "-n", "100"])
    perftest(["ib_send_bw", "--use-srq", "-q", "16", "-n", "100"])
    perftest(["ib_send_bw", "--use-srq", "-b", "-n", "100"])
    sizes(["ib_send_bw", "--use-srq"], SIZES, "5")


def new_api():
    """Adds cases in which perftest posts by ibv_wr_*, as it does on devices whose
    part ID it knows, and cases of ibv_rc_pingpong with -N, which posts by
    ibv_wr_*, and with -t, which reads timestamps of completions."""
    for verb in VERBS:
        for tool in tools_of(verb):
            perftest(tool + ["-n", "200"], known=True)
    perftest(["ib_write_bw", "-q", "4", "-n", "100"], known=True)
    perftest(["ib_write_lat", "-I", "64", "-s", "64", "-n", "200"],
             known=True)
    perftest(["ib_send_bw", "--use-srq", "-n", "200"], known=True)
    perftest(["ib_send_bw", "-e", "-n", "100"], known=True)
    for extra in ["-N"], ["-N", "-c", "-e"], ["-t"]:
        pingpong(["ibv_rc_pingpong", "-n", "200"] + extra)


def unreliable():
    """Adds cases of UC and UD, which do not retransmit packets."""
    for service in "UC", "UD":
        for extra in [], ["-e"], ["-I", "64", "-s", "64"]:
            perftest(["ib_send_lat", "-c", service, "-n", "200"] + extra)
        perftest(["ib_send_lat", "-c", service, "-n", "200"], known=True)
    # ten sizes from 2 B to 1 KiB, or more if the MTU is larger
    sizes(["ib_send_lat", "-c", "UD"], (2, 1024), "50", 10)
    for tool in "ib_write_lat", "ib_write_bw":
        perftest([tool, "-c", "UC", "-n", "200"])
        perftest([tool, "-c", "UC", "-n", "200"], known=True)
    sizes(["ib_write_bw", "-c", "UC"], SIZES, "5")
    for service, n in ("UC", "500"), ("UD", "5000"):
        perftest(["ib_send_bw", "-c", service, "-n", n])
        perftest(["ib_send_bw", "-c", service, "-n", n, "-s", "64"])
        perftest(["ib_send_bw", "-c", service, "-q", "4", "-n", "200"])
        perftest(["ib_send_bw", "-c", service, "-e", "-n", "200"])
        perftest(["ib_send_bw", "-c", service, "-b", "-n", "200"])
    sizes(["ib_send_bw", "-c", "UC"], SIZES, "5")
    perftest(["ib_send_bw", "-c", "UD", "--use-srq", "-n", "200"])
    group = ["-g", "-M", "0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3"]
    perftest(["ib_send_lat", "-c", "UD", "-n", "200"] + group)
    perftest(["ib_send_lat", "-c", "UD", "-n", "100", "-e"] + group)
    # The sender sends no more messages than there are receives, since a group has
    # no flow control.
    perftest(["ib_send_bw", "-c", "UD", "-n", "20", "-s", "64"] + group)
    for tool in "ibv_uc_pingpong", "ibv_ud_pingpong":
        for extra in [], ["-e"]:
            pingpong([tool] + extra)


def captures():
    perftest(["ib_write_bw", "-n", "20"], capture=True)
    perftest(["ib_read_bw", "-m", "256", "-s", "10000", "-n", "20"],
             capture=True)
    perftest(["ib_send_lat", "-s", "3", "-n", "50"], capture=True)
    perftest(["ib_atomic_lat", "-n", "50"], capture=True)
    pingpong(["ibv_rc_pingpong", "-n", "50"], capture=True)
    pingpong(["ibv_uc_pingpong", "-n", "50"], capture=True)
    pingpong(["ibv_ud_pingpong", "-n", "50"], capture=True)


basics()
for extra in [], ["-c"], ["-e"], ["-c", "-e", "-s", "1000000", "-n", "50"]:
    pingpong(["ibv_rc_pingpong"] + extra)
for extra in ["-c"], ["-e"], ["-c", "-e", "-s", "100000", "-n", "200"]:
    pingpong(["ibv_srq_pingpong"] + extra)
shapes()
shared()
new_api()
unreliable()
captures()
if not t.options.packets:
    with_acks(100 if t.options.full else 6)
    lost_acks()
t.end()
