#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the virtual lanes of an emulated subnet under OpenSM: each SL on its VL,
and a ring whose packets wait for each other."""

import contextlib
import re
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import subnet
import system
from subnet import (PATIENCE_S, await_line, fabric, managed, managed_on,
                    packets_argv, port_lid, receiver, said_by, write_file)
from system import expect, expect_ok

AREA = "InfiniBand"
QOS = """
qos TRUE
qos_max_vls 4
qos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3
"""
SWITCHES = 5
SENDERS = 3  # senders of each host, which send more than a link carries
COUNT = 4000  # packets of a sender
ENDLESS = 10**7
# Five switches in a ring, with a host at each.  The only shortest path to the
# host that is two switches ahead goes forward.
RING = "".join(
    'Switch 3 "S%d"\n[1] "S%d"[2]\n[2] "S%d"[1]\n[3] "H%d"[1]\n\n'
    'Hca 1 "H%d"\n[1] "S%d"[3]\n\n'
    % (i, (i + 1) % SWITCHES, (i - 1) % SWITCHES, i, i, i)
    for i in range(SWITCHES))

t = system.Suite(__doc__)
subnet.use(t)


def vl_counts(f, host, lid, port):
    """Returns the packets that a port has received on each VL."""
    said = f.out(host, "perfquery", "--vloppackets", lid, str(port))
    return [int(n) for n in
            re.findall(r"PortVLOpPackets\d+:\.*(\d+)", said)][:8]


def sls_have_their_vls():
    """The ingress ports of the switches, and the receiver, count the packets by VL.
    """
    with managed(options=QOS) as f:
        sent = [0] * 8
        for sl, count in ((2, 40), (5, 30), (0, 20), (15, 10)):
            with receiver(f, "Hca3", 1, count) as (p, lid, qpn):
                expect_ok(t.run(packets_argv(f, "Hca1", "send", 1, lid, qpn,
                                             count, "0xffff", sl),
                                timeout=PATIENCE_S))
                said = said_by(p)
                expect("%d packets in order" % count in said, said)
            sent[sl % 4] += count
        got = vl_counts(f, "Hca2", port_lid(f, "Hca3", "1"), 1)
        expect(got == sent, "sent %s, received %s" % (sent, got))
        counts = [vl_counts(f, "Hca2", lid, port)
                  for lid in switch_lids(f) for port in (3, 4)]
        got = [sum(column) for column in zip(*counts)]
        expect(got == sent, "sent %s, the switches received %s"
               % (sent, got))


def switch_lids(f):
    return re.findall(r"lid (\d+)", f.out("Hca2", "ibswitches"))


@contextlib.contextmanager
def ring_traffic(f, count):
    """SENDERS programs on each host send to the host two switches ahead.  Yields the
    receivers."""
    with contextlib.ExitStack() as stack:
        receivers, senders = [], []
        for i in range(SWITCHES):
            for _ in range(SENDERS):
                p, lid, qpn = stack.enter_context(
                    receiver(f, "H%d" % i, 1, count))
                receivers.append(p)
                senders.append((i, lid, qpn))
        for i, lid, qpn in senders:
            p = t.start(packets_argv(f, "H%d" % ((i - 2) % SWITCHES), "send",
                                     1, lid, qpn, count),
                        env=t.environment())
            stack.callback(lambda p=p: (p.kill(), p.communicate()))
        yield receivers


def show(f):
    return t.run(subnet.fabric_argv("--socket", f.socket, "--show")).output


def a_ring_deadlocks():
    """minhop routes all these packets in the same direction around the ring."""
    with fabric(RING) as f:
        with managed_on(f, "H0", "-R", "minhop"):
            expect("deadlock" not in show(f), show(f))
            with ring_traffic(f, ENDLESS):
                end = time.monotonic() + PATIENCE_S
                while "deadlock" not in show(f):
                    expect(time.monotonic() < end, "no deadlock is told")
                    time.sleep(0.1)
                said = show(f)
                for i in range(SWITCHES):
                    link = "S%d[1] to S%d[2] on VL 0" % (i, (i + 1) % SWITCHES)
                    expect(link in said, said)
                # management goes on
                f.out("H3", "saquery", "-N")


def a_ring_without_a_cycle_works():
    """Without a root, updn would route as minhop does, so OpenSM gets S0 as the
    root."""
    with fabric(RING) as f:
        root = re.search(r"(0x\w+) \"S0\"", show(f)).group(1)
        with managed_on(f, "H0", "-R", "updn", "-a",
                        write_file("roots", root + "\n")):
            await_line(f.log, "updn tables configured on all switches")
            with ring_traffic(f, COUNT) as receivers:
                for p in receivers:
                    said = said_by(p)
                    expect("%d packets in order" % COUNT in said, said)
            expect("deadlock" not in show(f), show(f))


t.case("OpenSM's QoS carries each SL on its own VL", sls_have_their_vls, AREA,
       "perfquery")
t.case("a ring routed by minhop deadlocks, and the fabric names the links",
       a_ring_deadlocks, AREA, "opensm")
t.case("a ring routed by updn carries the same packets",
       a_ring_without_a_cycle_works, AREA, "opensm")
t.end()
