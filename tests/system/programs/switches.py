#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the main programs with each fast path switched off, and where processors
are scarce: one core, a quota, busy processes, fifty pairs at once.

Each run has a network namespace, and so a broker, of its own, since a broker
reads its environment variables when it starts."""

import os
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
from perftest_check import check_pingpong, check_rows
import system
from system import Skip, expect_ok

netlab.enter()
t = system.Suite(__doc__, packets=True)

# Each feature that is switched off, and the variables that switch it off.
SWITCHES = (
    ("GSO off", {"ADVERB_GSO": "0"}),
    ("GRO off", {"ADVERB_GRO": "0"}),
    ("GSO and GRO off", {"ADVERB_GSO": "0", "ADVERB_GRO": "0"}),
    ("BPF off", {"ADVERB_BPF": "0"}),
    ("plain copies off", {"ADVERB_GUARD": "0"}),
    # Shm acks stay on: without them, a program that waits for events may get the
    # peer's answer before the ACK of its own SEND, and then ib_send_lat -e
    # posts to a full send queue.
    ("every mechanism but shm acks off",
     {"ADVERB_WITHOUT": "credits,eager,mapped,adaptive"}),
)
PROGRAMS = (
    ["ibv_rc_pingpong", "-c", "-n", "500"],
    ["ibv_rc_pingpong", "-c", "-e", "-s", "1000000", "-n", "20"],
    ["ib_write_bw", "-n", "200"],
    ["ib_write_bw", "-n", "100", "-m", "1024", "-s", "100000"],
    ["ib_write_lat", "-n", "200"],
    ["ib_read_bw", "-n", "200"],
    ["ib_send_bw", "-n", "200", "-q", "4"],
    ["ib_send_lat", "-n", "200", "-e"],
    ["ib_atomic_bw", "-n", "200"],
)
SHORT = PROGRAMS[:1] + PROGRAMS[2:3] + PROGRAMS[-2:]
LIMIT_S = system.HANG  # limit of a pair of programs


def judge(argv, r):
    expect_ok(r)
    if "pingpong" in argv[0]:
        check_pingpong(r)
    else:
        check_rows(r)


def begin(argv, into=system.in_namespace, **env):
    t.need(argv[0])
    return t.start(t.pair_argv(argv, timeout=LIMIT_S),
                   env=t.environment(**env), into=into)


def knows(variable):
    """Returns whether this build reads the variable."""
    lib = os.path.join(t.build, "lib")
    for name in "libibverbs.so", "adverbd":
        with open(os.path.join(lib, name), "rb") as f:
            if variable.encode() in f.read():
                return True
    return False


def switched(argv, env):
    def body():
        for variable in env:
            if not knows(variable):
                raise Skip("%s is not built" % variable)
        judge(argv, t.finish(begin(argv, **env), LIMIT_S + 10))
    return body


def relayed(check):
    """Returns a case: a check program runs while the broker forwards all
    datagrams."""
    def body():
        program = t.program(check)
        p = t.start([t.adverb, "run", "--", program], into=system.in_namespace,
                    env=t.environment(ADVERB_BPF="0"))
        expect_ok(t.finish(p, LIMIT_S))
    return body


def on_one_core(argv):
    def go():
        core = str(min(os.sched_getaffinity(0)))
        words = lambda w: ["taskset", "-c", core, *system.in_namespace(w)]
        r = t.finish(begin(argv, words), LIMIT_S + 10)
        judge(argv, r)
    return go


def under_quota(argv):
    def go():
        neighbours = [system.spin(LIMIT_S) for _ in range(2)]
        try:
            p = begin(argv)
            system.throttle(p, 0.3, LIMIT_S)
            judge(argv, t.finish(p, 10))
        finally:
            for n in neighbours:
                n.kill()
                n.wait()
    return go


def fifty_at_once(argv):
    """Returns a case: fifty pairs run at once in one namespace, with one broker."""
    def go():
        script = 'i=0; while [ $i -lt 50 ]; do i=$((i + 1)); "$@" >%s.$i ' \
                 "2>&1 & pids=\"$pids $!\"; done; bad=0; i=0; " \
                 "for p in $pids; do i=$((i + 1)); wait $p || " \
                 "{ bad=1; cat %s.$i; }; done; exit $bad"
        path = t.path("pair")
        words = ["sh", "-c", script % (path, path), "sh",
                 *t.pair_argv(argv, timeout=LIMIT_S)]
        t.need(argv[0])
        p = t.start(words, env=t.environment(), into=system.in_namespace)
        expect_ok(t.finish(p, 2 * LIMIT_S))
    return go


for name, env in SWITCHES:
    for argv in PROGRAMS:
        label = " ".join(argv)
        t.case("%s: %s" % (name, label), switched(argv, env), name, argv[0])
for name in "verbcheck", "queuecheck", "datagramcheck":
    t.case("BPF off: " + name, relayed(name), "BPF off", name)
for argv in PROGRAMS:
    label = " ".join(argv)
    t.case("one core: " + label, on_one_core(argv), "one core", argv[0])
for argv in PROGRAMS if t.options.full else SHORT:
    label = " ".join(argv)
    t.case("30 % of a core, busy neighbours: " + label, under_quota(argv),
           "30 % of a core, busy neighbours", argv[0])
# None of these programs is of perftest: each process of perftest computes for
# 0.2 s to measure the clock.
for argv in (["ibv_rc_pingpong", "-c", "-n", "200"],
             ["ibv_rc_pingpong", "-c", "-e", "-s", "100000", "-n", "50"],
             ["ibv_srq_pingpong", "-q", "4", "-n", "100"]):
    label = " ".join(argv)
    t.case("50 pairs at once: " + label, fifty_at_once(argv),
           "50 pairs at once", argv[0])
t.end()
