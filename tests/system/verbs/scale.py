#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests many queue pairs, threads and connections in one process: connected queue
pairs take less than 200 MiB, an idle process sleeps, and several threads can connect
at once.  `adverb bench` measures the time that queue pairs and connections take."""

import json
import os
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

from system import Fail, Suite

suite = Suite(__doc__)
LIMIT_MIB = 200
COUNT = 10000
IDLE = suite.program("idle_threads")
CONNECTS = os.path.join(suite.build, "bench", "connects")


def measured():
    program = os.path.join(suite.build, "bench", "qps")
    r = suite.adverb_run([program, str(COUNT)])
    if r.status:
        raise Fail("status %d" % r.status, r.output)
    return json.loads(r.output.splitlines()[-1])


def memory():
    said = measured()
    if said["rss_mib"] >= LIMIT_MIB or said["rss_used_mib"] >= LIMIT_MIB:
        raise Fail("%s MiB connected, %s MiB used; the limit is %d" %
                   (said["rss_mib"], said["rss_used_mib"], LIMIT_MIB))
    if said["idle_wakeups"] and not suite.is_beside_hostile:
        raise Fail("the idle process woke up %d times in a second" %
                   said["idle_wakeups"])


suite.case("10 000 connected queue pairs fit into 200 MiB, and sleep when idle",
           memory, "scale", "connected queue pairs")

def run(path, *args, **env):
    def body():
        if path == IDLE:
            suite.need_no_hostile("sends frames, which wake the process that "
                                  "receives them")
        r = suite.run([suite.adverb, "run", "--", path, *args], **env)
        if r.status:
            raise Fail("status %d" % r.status, r.output)
        suite.note(r.output.splitlines()[-1])
    return body


for way, direct in ("direct", "1"), ("by packets", "0"):
    suite.case("64 threads that wait for an event each do not wake up, " +
               way, run(IDLE, "64", ADVERB_DIRECT=direct),
               "scale", "idle_threads")
    suite.case("8 threads open 1000 connections at once, " + way,
               run(CONNECTS, "-t", "8", "1000", ADVERB_DIRECT=direct),
               "scale", "connections of 8 threads")
suite.end()
