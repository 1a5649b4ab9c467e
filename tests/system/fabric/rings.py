#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests packets by LID in rings in shared memory between programs and adverb fabric."""

import contextlib
import os
import signal
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import subnet
import system
from steady import ends
from subnet import NET, PATIENCE_S, fabric, managed_on
from system import expect, wait_until

RETRY_EXC = 12
WR_FLUSH_ERR = 5
STOP_S = 3
# OpenSM's default, 268 ms
HOQ_LIFE = "leaf_head_of_queue_lifetime 0x10\n"
# How many ports Hca1 and Hca3 have.  Each port has a file of rings.
PORTS = 2, 1
t = system.Suite(__doc__)
subnet.use(t)


@contextlib.contextmanager
def managed():
    """Runs a fabric, and an OpenSM on Hca2.  Yields the fabric and its pid."""
    with fabric(NET) as f, managed_on(f, "Hca2", options=HOQ_LIFE):
        yield f, f.pid()


def rings_of(pid):
    """Returns how many files of rings a process has mapped."""
    with open("/proc/%d/maps" % pid) as f:
        return sum("memfd:adverb-ring" in line for line in f)


def steady_pids(e):
    """Returns the process IDs of both ends.  A program has the process ID of its
    `adverb run`, which calls execve(2)."""
    return [end.pid for end in e.both]


def expect_rings(e, *counts):
    for pid, count in zip(steady_pids(e), counts):
        expect(rings_of(pid) == count, "an end has %d files of rings, not %d" %
               (rings_of(pid), count))


def all_kinds():
    """The ends poll or sleep, with or without other threads that make progress, and
    with or without rings."""
    with managed() as (f, _):
        for env in ({}, {"STEADY_SLEEPS": "1"}, {"STEADY_POLLERS": "3"},
                    {"STEADY_POLLERS": "2", "STEADY_SLEEPS": "1"}):
            with ends(f, **env) as e:
                e.goes_on()
                expect_rings(e, *PORTS)
                e.pause()
        with ends(f, ADVERB_WITHOUT="rings") as e:
            e.goes_on()
            expect_rings(e, 0, 0)
            e.pause()


def one_side_without():
    with managed() as (f, _), ends(f, ({"ADVERB_WITHOUT": "rings"}, {})) as e:
        e.goes_on()
        expect_rings(e, 0, PORTS[1])
        e.pause()


def stopped(pids):
    """Stops processes for STOP_S, which is longer than HOQLife and the ACK
    timeout of the ends, and continues them."""
    for sig in signal.SIGSTOP, signal.SIGCONT:
        for pid in pids:
            os.kill(pid, sig)
        if sig == signal.SIGSTOP:
            time.sleep(STOP_S)


def stops_are_survived():
    """Stops each side of the rings in turn: the fabric, each end, both ends."""
    with managed() as (f, pid), ends(f, STEADY_TIMEOUT="19") as e:  # 2 s
        for pids in [pid], steady_pids(e)[:1], steady_pids(e)[1:], \
                steady_pids(e):
            stopped(pids)
            e.goes_on()
        e.pause()


def killed_ends_harm_nobody():
    """Ends are killed under load again and again.  Two other ends go on, and
    the fabric frees the rings.  The ends sleep while nothing comes: ends that
    poll take the cores of a small machine from each other and from the
    fabric."""
    killed = {"STEADY_SLEEPS": "1", "STEADY_TIMEOUT": "16"}  # retries for 2 s
    with managed() as (f, pid), ends(f, STEADY_SLEEPS="1") as others:
        for i in range(5):
            with ends(f, **killed) as e:
                e.both[i % 2].kill()
                e.both[i % 2].wait()
                e.expect(e.both[1 - i % 2], "error %d" % RETRY_EXC)
        others.goes_on()
        wait_until(lambda: rings_of(pid) == sum(PORTS), "the fabric keeps rings "
                   "of programs that have ended", PATIENCE_S)
        others.pause()


def await_full(e):
    """Waits until the rings of both ends are full: neither end receives anything
    for half a second."""
    before, now = None, [e.received(i) for i in (0, 1)]
    while before != now:
        time.sleep(0.5)
        before, now = now, [e.received(i) for i in (0, 1)]


def killed_fabric_ends_both():
    """Each end learns that the fabric was killed, even an end that waits for
    room in its ring."""
    ended = []
    # When managed() stops the fabric, the fabric has ended already: that raises
    # Fail.
    with contextlib.suppress(system.Fail), managed() as (f, pid):
        with ends(f) as e:
            os.kill(pid, signal.SIGSTOP)
            await_full(e)
            os.kill(pid, signal.SIGKILL)
            for end in e.both:
                e.expect(end, "error %d" % WR_FLUSH_ERR)
                ended.append(end.wait(PATIENCE_S))
    expect(ended == [0, 0], "the ends return %s" % ended)


def forks_harm_nobody():
    """The child of an end keeps the descriptors of the end, and has no rings."""
    with managed() as (f, _), ends(f, STEADY_CHILD="1") as e:
        e.goes_on()
        for pid in steady_pids(e):
            with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
                child, = map(int, children.read().split())
            expect(rings_of(child) == 0, "a child has rings")
        e.goes_on()
        e.pause()


t.case("ends that poll, sleep and have threads exchange packets by rings",
       all_kinds)
t.case("an end with rings and an end without exchange packets",
       one_side_without)
t.case("a stopped fabric and stopped programs go on with their rings",
       stops_are_survived)
t.case("killed programs with rings harm no others", killed_ends_harm_nobody)
t.case("a killed fabric ends the links of its programs",
       killed_fabric_ends_both)
t.case("the children of programs do not have their rings", forks_harm_nobody)
t.end()
