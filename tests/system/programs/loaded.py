#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Repeats the main programs where processors are scarce: beside two busy
processes, and with each run stopped for 70 % of the time.  The programs run
without packets, by packets, and by packets with one fast path switched off.
There are 30 runs; with --full there are RUNS (an environment variable, default
1000).
"""

import concurrent.futures
import os
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

from perftest_check import check_pingpong, check_rows
import netlab
import system
from system import expect_ok

netlab.enter()
t = system.Suite(__doc__, packets=True)
RUNS = int(os.environ.get("RUNS", "1000")) if t.options.full else 30
AT_ONCE = 4
SHARE = 0.3
GROUP = ["-g", "-M", "0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3"]
WAYS = (
    ("memory to memory", {"ADVERB_DIRECT": "1"}),
    ("every fast path", {}),
    ("GSO off", {"ADVERB_GSO": "0"}),
    ("GRO off", {"ADVERB_GRO": "0"}),
    ("BPF off", {"ADVERB_BPF": "0"}),
)
# The number of programs and the number of ways have no common divisor, so with
# enough runs every program runs in every way.
PROGRAMS = (
    ["ib_write_bw", "-n", "500"],
    ["ib_write_bw", "-b", "-n", "200"],
    ["ib_write_bw", "-c", "UC", "-n", "200"],
    ["ib_write_lat", "-n", "200"],
    ["ib_write_lat", "-I", "64", "-s", "64", "-n", "200"],
    ["ib_read_bw", "-n", "200"],
    ["ib_read_bw", "-q", "16", "-n", "50"],
    ["ib_read_lat", "-e", "-n", "200"],
    ["ib_atomic_bw", "-n", "200"],
    ["ib_atomic_lat", "-A", "CMP_AND_SWAP", "-n", "200"],
    ["ib_send_bw", "-q", "8", "-n", "100"],
    ["ib_send_bw", "-m", "1024", "-s", "100000", "-n", "100"],
    ["ib_send_bw", "-e", "-n", "100"],
    ["ib_send_bw", "--use-srq", "-n", "200"],
    ["ib_send_bw", "-c", "UC", "-n", "200"],
    ["ib_send_bw", "-c", "UD", "-n", "200"],
    ["ib_send_lat", "-n", "200"],
    ["ib_send_lat", "-e", "-n", "200"],
    ["ib_send_lat", "-c", "UC", "-n", "200"],
    ["ib_send_lat", "-c", "UD", "-n", "200"],
    ["ib_send_lat", "-c", "UD", "-n", "100", *GROUP],
    ["ibv_rc_pingpong", "-c", "-n", "500"],
    ["ibv_rc_pingpong", "-c", "-e", "-s", "100000", "-n", "100"],
    ["ibv_srq_pingpong", "-c", "-n", "100"],
    ["ibv_uc_pingpong", "-e", "-n", "200"],
    ["ibv_ud_pingpong", "-n", "200"],
)


def one(argv, env):
    p = t.start(t.pair_argv(argv), env=t.environment(**env), into=system.in_namespace)
    system.throttle(p, SHARE)
    r = t.finish(p, 10)
    expect_ok(r)
    if "pingpong" in argv[0]:
        check_pingpong(r)
    else:
        check_rows(r)


def verdict(argv, env):
    """Runs a pair.  Returns the text of its failure, or None if it succeeds."""
    try:
        one(argv, env)
    except system.Fail as why:
        return "%s: %s\n%s" % (" ".join(argv), why, why.output)
    return None


def runs(way, env):
    mine = [PROGRAMS[i % len(PROGRAMS)] for i in range(RUNS)
            if i % len(WAYS) == way]

    def body():
        for argv in mine:
            t.need(argv[0])
        neighbours = [system.spin(20000) for _ in range(2)]
        try:
            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
                bad = [text for text in pool.map(verdict, mine,
                                                 [env] * len(mine)) if text]
        finally:
            for n in neighbours:
                n.kill()
                n.wait()
        if bad:
            raise system.Fail("%d of %d runs" % (len(bad), len(mine)),
                              "\n".join(bad))
    return len(mine), body


for index, (name, variables) in enumerate(WAYS):
    count, test = runs(index, variables)
    name = "30 %% of a core, busy neighbours, %s: %d runs" % (name, count)
    t.case(name, test, "many runs", name)
t.end()
