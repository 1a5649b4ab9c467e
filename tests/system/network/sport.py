#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests source ports: packets to two processes have different source ports, so
the kernel never joins them on their way (GRO), and no packet comes to the wrong
process."""

import os
import subprocess
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
import system
from system import Skip, expect

netlab.enter(as_root=True)
t = system.Suite(__doc__, packets=True)
lab = netlab.Lab(t)
SERVERS = 4
MANY = 200 if t.options.full else 70
V4 = ("10.1.0.1/24",), ("10.1.0.2/24",)


def source_ports(pid):
    """Returns the UDP ports other than 4791 to which the user of process @pid has
    bound sockets in the process's network namespace."""
    user = str(os.stat("/proc/%d" % pid).st_uid)
    found = set()
    for table in "udp", "udp6":
        with open("/proc/%d/net/%s" % (pid, table)) as f:
            rows = [line.split() for line in f.readlines()[1:]]
        found |= {int(row[1].rsplit(":", 1)[1], 16) for row in rows
                  if row[7] == user}
    return found - {4791}


def astray(client, rounds, **env):
    """Sends to all servers.  Returns how many packets came to the wrong
    process."""
    with lab.one_to_many(client, SERVERS, rounds, **env):
        said, r = lab.one_to_many_top()
        expect(sum(p["rx_packets"] for p in said) >= rounds * SERVERS,
               "few packets came", r)
        return sum(p["rx_misdirected"] for p in said)


def on_one_host():
    count = astray("here", 100)
    expect(not count, "%d packets came to the wrong process" % count)


def join_packets():
    """Makes the receiving device join packets that come within 2 ms (GRO).  Only
    root may change the settings with which the device waits so long."""
    if not system.is_root():
        raise Skip("only root may let a device wait for packets to join")
    t.need("ethtool")
    subprocess.run(["mount", "-t", "sysfs", "none", "/sys"], check=True)
    for side in netlab.SIDES:
        subprocess.run(lab.into(side, ["ethtool", "-K", "v0", "gro", "on",
                                       "tso", "off"]), check=True)
    for name, value in (("napi_defer_hard_irqs", 100),
                        ("gro_flush_timeout", 2000000)):
        with open("/sys/class/net/v0/" + name, "w") as f:
            f.write(str(value))


def over_veth():
    lab.unwire()
    lab.wire("v0", 1500, *V4)
    join_packets()
    before = astray("there", 100, ADVERB_SPORT="0")
    count = astray("there", 100)
    expect(not count, "%d packets came to the wrong process, and %d with one "
           "source port" % (count, before))
    if not before:
        raise Skip("this link does not join packets")


def as_many_ports():
    lab.unwire()
    with lab.one_to_many("here", SERVERS, 1) as writer:
        ports = source_ports(writer.pid)
        expect(len(ports) == 2 * SERVERS, "not a port for each end: %s" %
               sorted(ports))
        expect(all(port >= 0xc000 for port in ports),
               "a port that is not dynamic: %s" % sorted(ports))


def a_port_for_each_of_many():
    """With many receiving processes the sender has a source port for each."""
    lab.unwire()
    with lab.one_to_many("here", MANY, 1) as writer:
        ports = source_ports(writer.pid)
        # The receivers, in the same namespace, have source ports for their
        # answers, too.
        expect(len(ports) == 2 * MANY, "%d ports for %d processes" %
               (len(ports), MANY))


def one_port():
    lab.unwire()
    with lab.one_to_many("here", SERVERS, 1, ADVERB_SPORT="0") as writer:
        expect(not source_ports(writer.pid),
               "a socket is bound to a port other than 4791")


t.case("no packet on one host comes to the wrong process", on_one_host)
t.case("no packet over a link that joins packets comes to the wrong process", over_veth)
t.case("a sender has a source port for each receiving process", as_many_ports)
t.case("a sender has a source port for each of %d processes" % MANY,
       a_port_for_each_of_many)
t.case("ADVERB_SPORT=0 sends all from port 4791", one_port)
lab.end()
t.end()
