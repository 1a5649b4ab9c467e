#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests connections by LID that go without packets (adverb fabric --direct)."""

import contextlib
import re
import signal
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import perftest_check
import subnet
import system
from steady import ends
from subnet import (NET, PATIENCE_S, fabric, managed_on, port_lid, start,
                    write_file)
from system import expect, expect_ok, listens

AREA = "InfiniBand"
PORT = 18515  # of perftest
RETRY_EXC = 12
t = system.Suite(__doc__)
subnet.use(t)


@contextlib.contextmanager
def subnet_of(*options, more=()):
    """Runs a fabric with these options, and an OpenSM on Hca2.  Yields the fabric.
    """
    with fabric(NET, *options) as f, managed_on(f, "Hca2", *more):
        yield f


def sent_packets(f, host):
    """Returns how many packets port 1 of a host has sent."""
    said = f.out("Hca2", "perfquery", port_lid(f, host, "1"), "1")
    return int(re.search(r"PortXmitPkts:\.*(\d+)", said).group(1))


def is_direct(f, work):
    """Calls work().  Returns whether Hca1 sends fewer than 200 packets meanwhile."""
    before = sent_packets(f, "Hca1")
    work()
    return sent_packets(f, "Hca1") - before < 200


PERFTEST = [
    ["ib_write_bw", "-s", "65536", "-n", "1000"],
    ["ib_read_bw", "-s", "65536", "-n", "1000"],
    ["ib_send_bw", "-s", "5000", "-n", "1000"],
    ["ib_atomic_bw", "-n", "1000"],
    ["ib_send_lat", "-n", "1000"],
    ["ib_write_lat", "-n", "1000"],
]


def run_perftest(f, argv):
    at = ["-d", "advib0", "-i", "1"]
    server = start(f, "Hca3", [*argv, *at])
    end = time.monotonic() + PATIENCE_S
    while not listens(PORT):
        expect(server.poll() is None and time.monotonic() < end, "no server")
        time.sleep(0.01)
    client = start(f, "Hca1", [*argv, *at, "127.0.0.1"])
    for side in server, client:
        r = t.finish(side, PATIENCE_S)
        expect_ok(r)
    expect(perftest_check.rows(r.output.splitlines()), r.output)


def perftest():
    with subnet_of("--direct") as f:
        for argv in PERFTEST:
            expect(is_direct(f, lambda a=argv: run_perftest(f, a)),
                   "%s sends packets" % argv[0])


def fabric_is_late():
    """The fabric answers the questions about the path after two seconds."""
    with subnet_of("--direct") as f, ends(f, stop_s=2) as e:
        expect(is_direct(f, e.goes_on), "the ends send packets")
        e.pause()


def packets_without_the_option():
    with subnet_of() as f:
        expect(not is_direct(f, lambda: run_perftest(f, PERFTEST[0])),
               "no packets without --direct")
    with subnet_of("--direct") as f:
        with ends(f, ADVERB_DIRECT="0") as e:
            expect(not is_direct(f, e.goes_on), "no packets with "
                   "ADVERB_DIRECT=0")


def set_port(f, number, state):
    """Disables or enables a port of Switch2: port 1 leads to Hca3, port 3 and
    port 4 to Switch1."""
    f.out("Hca2", "ibportstate", "-D", "0,2," + ("3" if number != 3 else "4"),
          str(number), state)


def set_cable(f, number, state):
    """Disables or enables port 3 or port 4 of Switch1, which lead to Switch2."""
    f.out("Hca2", "ibportstate", "-D", "0,2", str(number), state)


def await_packets(f, before):
    """Waits until the end on Hca1 has sent packets: until Hca1 has sent more packets
    than the answers to perfquery.  @before: how many packets Hca1 had sent before
    the wait."""
    end, asked = time.monotonic() + PATIENCE_S, 0
    while sent_packets(f, "Hca1") < before + 20 + 2 * asked:
        expect(time.monotonic() < end, "the end on Hca1 sends no packets")
        asked += 1
        time.sleep(0.05)


def cut_is_survived():
    """Both cables between the switches are cut, and one is connected again.
    OpenSM is stopped until the ends send packets: a running OpenSM could route around
    the first cut before the ends have noticed it."""
    with subnet_of("--direct") as f:
        with ends(f, STEADY_TIMEOUT="19") as e:  # 2 s
            expect(is_direct(f, e.goes_on), "the ends send packets")
            f.manager.send_signal(signal.SIGSTOP)
            try:
                before = sent_packets(f, "Hca1")
                for number in 3, 4:
                    set_cable(f, number, "disable")
                await_packets(f, before)
                set_cable(f, 4, "enable")
            finally:
                f.manager.send_signal(signal.SIGCONT)
            e.goes_on()
            set_cable(f, 3, "enable")
            e.goes_on()
            expect(not is_direct(f, e.goes_on), "the ends send no packets "
                   "after their path was cut")
            e.pause()


def port_is_disabled():
    with subnet_of("--direct") as f:
        with ends(f) as e:
            e.pause()
            set_port(f, 1, "disable")
            before = e.received(1)
            e.say(e.both[0], "once")
            e.expect(e.both[0], "error %d" % RETRY_EXC)
            expect(e.received(1) == before, "a message passes a port that is "
                   "disabled")


PARTITIONS = ("Default=0x7fff: ALL=full, SELF=full;\n"
              "Part1=0x1: %s SELF=full;\n")


def partition_ends():
    guid = {}
    path = t.path("partitions")
    with fabric(NET, "--direct") as f:
        for host in "Hca1", "Hca3":
            said = f.out(host, "ibstat", "advib0", "1")
            guid[host] = re.search(r"Port GUID: (0x[0-9a-f]+)", said).group(1)
        all_of = "".join("%s=full, " % g for g in guid.values())
        write_file("partitions", PARTITIONS % all_of)
        with managed_on(f, "Hca2", "-P", path) as f:
            with ends(f, STEADY_PKEY="0x8001") as e:
                expect(is_direct(f, e.goes_on), "the ends send packets")
                e.pause()
                write_file("partitions",
                           PARTITIONS % (guid["Hca1"] + "=full, "))
                f.manager.send_signal(signal.SIGHUP)
                end = time.monotonic() + PATIENCE_S
                while "0x8001" in f.out("Hca2", "smpquery", "pkeys",
                                        port_lid(f, "Hca3", "1"), "1"):
                    expect(time.monotonic() < end, "the P_Key stays")
                    time.sleep(0.2)
                before = e.received(1)
                e.say(e.both[0], "once")
                e.expect(e.both[0], "error %d" % RETRY_EXC)
                expect(e.received(1) == before, "a message passes")


def peer_is_killed(**env):
    with subnet_of("--direct") as f:
        with ends(f, **env) as e:
            e.both[1].kill()
            e.both[1].wait()
            e.expect(e.both[0], "error %d" % RETRY_EXC)


t.case("perftest by LID without packets", perftest, AREA, "perftest --direct")
t.case("a connection waits for the answer of a late fabric", fabric_is_late)
t.case("programs send packets if the fabric or the program wants so",
       packets_without_the_option)
t.case("a connection without packets loses nothing when a link is cut",
       cut_is_survived)
t.case("a port that is disabled ends a connection without packets",
       port_is_disabled)
t.case("a partition that a host leaves ends a connection without packets",
       partition_ends)
t.case("the death of the peer ends a connection without packets",
       peer_is_killed)
t.case("the death of a peer whose child lives ends a connection without packets",
       lambda: peer_is_killed(STEADY_CHILD="1"))
t.end()
