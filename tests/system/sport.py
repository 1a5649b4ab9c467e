#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Source ports: what is sent to two processes is never joined on its way, so
that no packet comes to the wrong one."""

import json
import os
import shutil
import subprocess

import netlab
import system
from system import Skip, expect, expect_ok

netlab.enter(as_root=True)
t = system.Suite(__doc__)
lab = netlab.Lab(t)
FAN = os.path.join(t.build, "tests", "system", "fan")
SERVERS = 4
V4 = ("10.1.0.1/24",), ("10.1.0.2/24",)


def misdirected():
    """Of the fan that runs: how many packets were for another than the
    one they came to, how many came at all, and what told it."""
    r = t.run([t.adverb, "top", "--once", "--json", "--interval", "0.01"])
    expect_ok(r)
    said = [p for p in json.loads(r.output)["processes"]
            if p["name"] == "fan"]
    return (sum(p["rx_misdirected"] for p in said),
            sum(p["rx_packets"] for p in said), r)


def source_ports(pid):
    """UDP ports that sockets of @pid's network namespace are bound to."""
    found = set()
    for table in "udp", "udp6":
        with open("/proc/%d/net/%s" % (pid, table)) as f:
            found |= {int(line.split()[1].rsplit(":", 1)[1], 16)
                      for line in f.readlines()[1:]}
    return found - {4791}


def fan(client, rounds, body, **env):
    """The servers here, who writes at @client; body() when all is written."""
    folder = t.path("fan")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    running = [lab.start("here", [FAN, "serve", folder, str(i)], **env)
               for i in range(SERVERS)]
    writer = lab.start(client, [FAN, "write", folder, str(SERVERS),
                                str(rounds)], **env)
    running.append(writer)
    try:
        lab.wait(lambda: os.path.exists(folder + "/written.0") or
                 any(p.poll() is not None for p in running),
                 "nothing is written", 90)
        body(writer.pid)
    finally:
        with open(folder + "/end.0.new", "wb") as f:
            f.write(bytes(4096))
        os.rename(folder + "/end.0.new", folder + "/end.0")
        results = [t.finish(p, 20) for p in running]
    for r in results:
        expect_ok(r)


def astray(client, rounds, **env):
    """How many packets came to the wrong process."""
    found = []

    def look(_):
        count, packets, r = misdirected()
        expect(packets >= rounds * SERVERS, "few packets came", r)
        found.append(count)
    fan(client, rounds, look, **env)
    return found[0]


def on_one_host():
    count = astray("here", 100)
    expect(not count, "%d came to the wrong process" % count)


def join_packets():
    """The receiver of the link joins what comes within 2 ms."""
    if not system.is_root():
        raise Skip("only root has a device wait for what it may join")
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
    expect(not count, "%d came to the wrong process, %d from one port" %
           (count, before))
    if not before:
        raise Skip("this link joins nothing")


def as_many_ports():
    lab.unwire()

    def check(pid):
        expect(len(source_ports(pid)) == 2 * SERVERS,
               "not a port for each end: %s" %
               sorted(source_ports(pid)))
        expect(all(port >= 0xc000 for port in source_ports(pid)),
               "a port that is not dynamic: %s" % sorted(source_ports(pid)))
    fan("here", 1, check)


def one_port():
    lab.unwire()

    def check(pid):
        expect(not source_ports(pid), "other ports than 4791")
    fan("here", 1, check, ADVERB_SPORT="0")


t.case("four servers, one client, on one host", on_one_host)
t.case("the same over a link that joins packets", over_veth)
t.case("a source port for each process, opened when needed", as_many_ports)
t.case("ADVERB_SPORT=0 sends all from port 4791", one_port)
lab.end()
t.end()
