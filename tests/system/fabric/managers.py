#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests OpenSM's ways to manage an emulated subnet: two managers, of which one is
killed or hands over; OpenSM's routing engines; QoS."""

import contextlib
import itertools
import os
import re
import signal
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import subnet
import system
from subnet import (NET, PATIENCE_S, await_line, fabric, manager_argv,
                    manager_env, port_lid, write_file)
from system import expect

AREA = "InfiniBand"
# The standby manager notices within 2 s that the master does not answer.
STANDBY = """
sminfo_polling_timeout 500
polling_retry_number 3
"""
QOS = """
qos TRUE
qos_max_vls 4
qos_high_limit 4
qos_vlarb_high 0:64,1:128
qos_vlarb_low 0:4,1:8,2:16
qos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3
"""

t = system.Suite(__doc__)
subnet.use(t)


def net_of(links):
    """Returns the net file of links.  A link is a pair of ends, and an end a name
    and a port.  Nodes whose names begin with S are switches."""
    ports = {}
    for one, two in links:
        ports.setdefault(one[0], {})[one[1]] = two
        ports.setdefault(two[0], {})[two[1]] = one
    text = ""
    for name, ends in sorted(ports.items()):
        kind = "Switch 8" if name[0] == "S" else "Hca 1"
        text += "\n%s \"%s\"\n" % (kind, name)
        text += "".join("[%d] \"%s\"[%d]\n" % (port, *end)
                        for port, end in sorted(ends.items()))
    return text


# Two spines and three leaves, with two hosts at each leaf.
TREE = net_of(
    [(("SL%d" % leaf, 1 + spine), ("SS%d" % spine, 1 + leaf))
     for leaf in range(3) for spine in range(2)] +
    [(("SL%d" % leaf, 5 + i), ("H%d" % (2 * leaf + i), 1))
     for leaf in range(3) for i in range(2)])
# A torus of 3 by 3 switches, with a host at each: ports 1 and 2 lead in the
# direction x, ports 3 and 4 in the direction y.
TORUS = net_of(
    [(("S%d%d" % (x, y), 1), ("S%d%d" % ((x + 1) % 3, y), 2))
     for x in range(3) for y in range(3)] +
    [(("S%d%d" % (x, y), 3), ("S%d%d" % (x, (y + 1) % 3), 4))
     for x in range(3) for y in range(3)] +
    [(("S%d%d" % (x, y), 5), ("H%d" % (3 * x + y), 1))
     for x in range(3) for y in range(3)])


@contextlib.contextmanager
def manager(f, host, *more, options=""):
    """Runs an OpenSM on a host.  Yields its process and the log's path.  @more,
    @options: as for manager_argv."""
    t.need("opensm")
    log = t.path("opensm-%s.log" % host)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    p = t.start([t.adverb, "run", "--fabric=" + f.socket, "--host", host,
                 "--", *manager_argv(log, *more, options=options)],
                env=t.environment(**manager_env()))
    try:
        yield p, log
    finally:
        p.terminate()
        p.communicate()


def await_master(f, host, by):
    """Waits until sminfo on @host says that the manager on the host @by is the
    master."""
    lid = port_lid(f, by, "1")
    end = time.monotonic() + PATIENCE_S
    said = ""
    while not re.search(r"sm lid %s .*SMINFO_MASTER" % lid, said):
        expect(time.monotonic() < end,
               "the manager of %s is not the master: %s" % (by, said))
        said = f.host(host, "sminfo").output


def a_killed_master_is_replaced():
    with fabric(NET) as f, manager(f, "Hca1", "-p", "9") as (master, log):
        await_line(log, "SUBNET UP")
        await_master(f, "Hca3", "Hca1")
        with manager(f, "Hca3", "-p", "3", options=STANDBY) as (_, second):
            await_line(second, "Entering STANDBY state")
            master.send_signal(signal.SIGKILL)
            await_line(second, "SUBNET UP")
            await_master(f, "Hca1", "Hca3")


def a_master_hands_over():
    """The manager that comes later has the greater priority."""
    with fabric(NET) as f, manager(f, "Hca1", "-p", "3") as (_, first):
        await_line(first, "SUBNET UP")
        with manager(f, "Hca3", "-p", "9") as (_, second):
            await_line(second, "SUBNET UP")
            await_line(first, "Entering STANDBY state")
            await_master(f, "Hca1", "Hca3")


def expect_routes(f, hosts):
    """Expects that ibtracert finds a route from each host's port to the port of each
    other host."""
    lids = {host: port_lid(f, host, "1") for host in hosts}
    for one, two in itertools.permutations(hosts, 2):
        said = f.out(one, "ibtracert", lids[one], lids[two])
        expect(said.rstrip().splitlines()[-1].startswith("To ca"), said)


def engine(name, net, hosts, *more):
    def body():
        with fabric(net) as f, manager(f, "H0", "-R", name, *more) as (_, log):
            await_line(log, "SUBNET UP")
            with open(log, errors="replace") as said:
                text = said.read()
            expect("%s tables configured on all switches" % name in text,
                   "OpenSM has not used the engine %s:\n%s" % (name, text))
            expect_routes(f, hosts)
    return body


def torus_is_routed():
    """torus-2QoS needs a file that names the links of one corner."""
    with fabric(TORUS) as f:
        said = f.out("H0", "ibnetdiscover", "-S")
    guid = {m[1]: m[0] for m in re.findall(
        r"Switch\s*: (0x\w+) ports \d+ (?:devid|\").*?\"?(S\d\d)\"", said)}
    expect(len(guid) == 9, said)
    conf = write_file("torus.conf", "torus 3 3 1\n"
                      "xp_link %(S00)s %(S10)s\nyp_link %(S00)s %(S01)s\n"
                      % guid)
    engine("torus-2QoS", TORUS, ["H0", "H4", "H8"], "-Q",
           "--torus_config", conf)()


def qos_tables_are_set():
    with fabric(NET) as f, manager(f, "Hca1", options=QOS) as (_, log):
        await_line(log, "SUBNET UP")
        said = f.out("Hca3", "smpquery", "sl2vl", port_lid(f, "Hca3", "1"))
        expect(re.search(r"(\| *0\| *1\| *2\| *3){4}\|", said), said)
        said = f.out("Hca3", "smpquery", "vlarb", port_lid(f, "Hca3", "1"))
        expect(re.search(r"WEIGHT: \|0x4 *\|0x8 *\|0x10", said), said)
        expect(re.search(r"WEIGHT: \|0x40 *\|0x80", said), said)


t.case("a standby OpenSM takes over when the master is killed",
       a_killed_master_is_replaced, AREA, "opensm")
t.case("an OpenSM hands over to another one of greater priority",
       a_master_hands_over, AREA, "opensm")
for word in ("minhop", "updn", "dnup", "ftree"):
    t.case("OpenSM routes a fat tree by its engine " + word,
           engine(word, TREE, ["H0", "H1", "H2", "H5"]), AREA, "opensm")
for word in ("lash", "dor"):
    t.case("OpenSM routes a torus by its engine " + word,
           engine(word, TORUS, ["H0", "H4", "H8"]), AREA, "opensm")
t.case("OpenSM routes a torus by its engine torus-2QoS", torus_is_routed, AREA,
       "opensm")
t.case("OpenSM sets the tables of QoS", qos_tables_are_set, AREA, "opensm")
t.end()
