#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Network namespaces by the dozen, as containers have them: a pair in each,
all at once, each with a broker of its own, and nothing left of them."""

import os
import time

import netlab
from perftest_check import check_pingpong, check_rows
import system
from system import expect, expect_ok

netlab.enter()
t = system.Suite(__doc__)
COUNT = 50 if t.options.full else 10
BROKER = os.path.realpath(os.path.join(t.build, "lib", "adverbd"))
LINGER_S = 60  # ten seconds idle, on a machine that may be short of processor


def brokers():
    """All of this build, in whatever namespace, that we may look at."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/exe" % pid) == BROKER:
                found.add(int(pid))
        except OSError:
            continue
    return found


def all_at_once(argv, check):
    def go():
        t.need(argv[0])
        running = [t.start(t.pair_argv(argv, timeout=120),
                           env=t.environment(), into=system.alone)
                   for _ in range(COUNT)]
        results = [t.finish(p, 200) for p in running]
        for r in results:
            expect_ok(r)
            check(r)
    return go


def brokers_end():
    expect(brokers() - THERE, "there was none")
    end = time.monotonic() + LINGER_S
    while brokers() - THERE:
        expect(time.monotonic() < end, "brokers are left: %s" %
               (brokers() - THERE))
        time.sleep(0.1)


THERE = brokers()
t.case("%d namespaces at once: ibv_rc_pingpong" % COUNT,
       all_at_once(["ibv_rc_pingpong", "-c", "-n", "200"], check_pingpong),
       "namespaces at once", "ibv_rc_pingpong")
t.case("%d namespaces at once: ib_write_bw" % COUNT,
       all_at_once(["ib_write_bw", "-n", "100"], check_rows),
       "namespaces at once", "ib_write_bw")
t.case("all their brokers end", brokers_end)
t.end()
