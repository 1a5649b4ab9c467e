#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many queue pairs in one process: memory, and the sleep of the idle.  What
they cost in time is `adverb bench`'s to say."""

import json
import os
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

from system import Fail, Suite

suite = Suite(__doc__)
LIMIT_MIB = 200
COUNT = 10000


def measured():
    program = os.path.join(suite.build, "bench", "qps")
    r = suite.adverb_run([program, str(COUNT)], timeout=120)
    if r.status:
        raise Fail("status %d" % r.status, r.output)
    return json.loads(r.output.splitlines()[-1])


def memory():
    said = measured()
    if said["rss_mib"] >= LIMIT_MIB or said["rss_used_mib"] >= LIMIT_MIB:
        raise Fail("%s MiB connected, %s MiB used; the limit is %d" %
                   (said["rss_mib"], said["rss_used_mib"], LIMIT_MIB))
    if said["idle_wakeups"]:
        raise Fail("idle, it woke up %d times in a second" %
                   said["idle_wakeups"])


suite.case("10 000 connected queue pairs fit into 200 MiB, idle they sleep",
           memory, "scale", "connected queue pairs")
suite.end()
