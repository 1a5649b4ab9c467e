#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `adverb ipoib`: IP over an emulated subnet under OpenSM."""

import contextlib
import os
import re
import shutil
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import iphosts
import subnet
from iphosts import hosts, interfaces, start_interfaces
from subnet import (NET, PATIENCE_S, Fabric, fabric, fabric_argv, managed,
                    managed_on, other_lids, port_lid)
from system import HANG, PYTHON, Skip, expect, expect_ok, wait_until

AREA = "InfiniBand"
GROUP = "239.1.2.3"
GROUP_MGID = "ff12:401b:ffff::f01:203"
t = iphosts.Suite(__doc__)
subnet.use(t)
iphosts.use(t)

# Takes one connection to the TCP port 5001, reads it to its end, and answers with the
# SHA-256 of the bytes.
TCP_SERVER = """
import hashlib, socket
with socket.create_server(("", 5001)) as s:
    with s.accept()[0] as c:
        h = hashlib.sha256()
        while True:
            data = c.recv(1 << 16)
            if not data:
                break
            h.update(data)
        c.sendall(h.hexdigest().encode())
"""
# Sends random bytes to TCP_SERVER, checks the answered SHA-256, and prints the rate.
# Arguments: ADDRESS BYTES.
TCP_CLIENT = """
import errno, hashlib, os, socket, sys, time
data = os.urandom(int(sys.argv[2]))
deadline = time.monotonic() + %d
while True:
    try:
        c = socket.create_connection((sys.argv[1], 5001))
        break
    except OSError as why:
        # no process listens yet, or no answer to ARP has come for three seconds
        if why.errno not in (errno.ECONNREFUSED, errno.EHOSTUNREACH) or \\
                time.monotonic() > deadline:
            raise
        time.sleep(0.01)
began = time.monotonic()
c.sendall(data)
c.shutdown(socket.SHUT_WR)
said = c.makefile().read()
assert said == hashlib.sha256(data).hexdigest(), "other bytes have arrived"
print("%%.0f Mbit/s" %% (len(data) * 8e-6 / (time.monotonic() - began)))
""" % HANG

# Joins a group at the interface that has the address, answers the first datagram,
# and prints that datagram.  Arguments: GROUP ADDRESS.
MEMBER = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5002))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(
    sys.argv[1]) + socket.inet_aton(sys.argv[2]))
s.settimeout(%d)
said, sender = s.recvfrom(100)
s.sendto(b"taken", sender)
print(said.decode())
""" % HANG
# Joins 1000 groups of IPv6 at the loopback interface, so that /proc/net/igmp6 is
# longer than 64 KiB.  A child process keeps the memberships.
JOINS = """
import os, signal, socket, struct
kept = []
for i in range(1000):
    if i % 100 == 0:
        kept.append(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
    kept[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
        socket.inet_pton(socket.AF_INET6, "ff15::%x" % (i + 1)) +
        struct.pack("@I", socket.if_nametoindex("lo")))
with open("/proc/net/igmp6") as f:
    assert len(f.read()) > 1 << 16, "the table is too short"
if os.fork() == 0:
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    signal.pause()
"""
# Repeats a datagram to the group until COUNT members have answered.  Arguments:
# GROUP ADDRESS TEXT COUNT.  The first datagrams may be lost: the subnet manager
# answers a join before it has written the tables of all switches.
SENDER = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(
    sys.argv[2]))
s.settimeout(0.1)
end, answered = time.monotonic() + %d, set()
while len(answered) < int(sys.argv[4]) and time.monotonic() < end:
    s.sendto(sys.argv[3].encode(), (sys.argv[1], 5002))
    try:
        answered.add(s.recvfrom(100)[1])
    except socket.timeout:
        pass
sys.exit(len(answered) < int(sys.argv[4]))
""" % HANG


def tshark(path, expression):
    """Returns a line for each packet of a capture that @expression selects."""
    r = t.run(["tshark", "-r", path, "-Y", expression])
    expect_ok(r)
    return [line for line in r.output.splitlines()
            if re.match(r"\s*\d+\s+\d+\.\d+ ", line)]


def check_capture(path):
    if not shutil.which("tshark"):
        t.note("without tshark")
        return
    for expression in ("arp.hw.type == 32 && arp.opcode == 1",
                       "arp.hw.type == 32 && arp.opcode == 2",
                       "icmp.type == 8", "icmpv6.type == 135",
                       "icmpv6.type == 136", "icmpv6.type == 129"):
        expect(tshark(path, expression), "no packet has " + expression)
    for expression in ("_ws.malformed && !infiniband.mad",
                       "arp.hw.type == 1", "eth.type == 0x0800",
                       "icmpv6.checksum.status == \"Bad\"",
                       "icmp.checksum.status == \"Bad\""):
        wrong = tshark(path, expression)
        expect(not wrong, "packets have %s:\n%s" % (expression,
                                                    "\n".join(wrong[:5])))


def pings():
    capture = t.path("ipoib.pcap")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(capture)
    with fabric(NET, "--capture", capture) as f:
        with managed_on(f), interfaces(f, "Hca2", "Hca3") as (one, two):
            t.note(one.ping("10.9.0.2", count=50).strip())
            for size in 0, 1, 2044 - 28, 2044 - 27, 8000, 60000:
                one.ping("10.9.0.2", size)
            one.settle()
            two.settle()
            for to in "fd00::1", one.local():
                for size in 56, 2044 - 48, 2044 - 47, 8000:
                    two.ping(to, size)
            said = one.out("ip", "link", "show", "ib0")
            expect("mtu 2044" in said and "NO-CARRIER" not in said, said)
            # the MAC is unicast, and its bit "locally administered" is set
            r = one.run("ip", "neigh", "show", "dev", "ib0")
            expect(re.search(r"10\.9\.0\.2 .*lladdr [0-9a-f][26ae]:",
                             r.output), r.output)
    check_capture(capture)


def gateways():
    """A packet goes to the MAC of the gateway that the kernel has chosen."""
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        two.out("ip", "address", "add", "10.10.0.1/32", "dev", "lo")
        one.out("ip", "route", "add", "10.10.0.0/24", "via", "10.9.0.2")
        one.ping("10.10.0.1")


def tcp():
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        for server, client, to in (two, one, "10.9.0.2"), \
                (one, two, "10.9.0.1"):
            server.begin(PYTHON, "-c", TCP_SERVER)
            said = client.out(PYTHON, "-c", TCP_CLIENT, to, str(16 << 20))
            expect_ok(server.end())
            t.note(said.strip())


def run_ping(host, to, *options):
    """Expects the answers to the first three requests of ping(8), in their order.
    If an answer is late, ping with -w sends more requests, and counts as lost those
    that have no answer when ping ends."""
    said = host.out("ping", "-c", "3", "-i", "0.2", "-w", str(HANG), *options,
                    to)
    answered = re.findall(r"bytes from .*icmp_seq=(\d+)", said)
    expect(answered[:3] == ["1", "2", "3"], said)


def stock_ping():
    t.need("ping")
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        for host in one, two:
            host.settle()
        for to in "10.9.0.2", "fd00::2":
            # Until the path is known, only the last three packets wait for it.
            one.ping(to)
            run_ping(one, to)


@contextlib.contextmanager
def connected(f, *modes):
    """Runs interfaces of these modes on Hca2 and Hca3.  Yields the hosts."""
    with hosts(f, "Hca2", "Hca3") as made:
        for i, (host, mode) in enumerate(zip(made, modes), 1):
            expect_ok(host.ipoib(
                "--background", "--mode", mode, "--address", "10.9.0.%d/24" % i,
                "--address", "fd00::%d/64" % i))
        for host in made:
            host.settle()
        yield made


def run_iperf3(server, client, port, *options):
    """Runs iperf3 with a server of its own, since a server that has not finished
    the last run refuses the next one.  Returns the received rate."""
    # 0A is the state LISTEN
    server.out("sh", "-c", "iperf3 -s -1 -p %d >/dev/null 2>&1 & while ! grep -q "
               "':%04X .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.05; "
               "done" % (port, port))
    said = client.out("iperf3", "-c", "10.9.0.2", "-p", str(port), *options)
    return re.search(r"(\S+ [KMG]?bits/sec) .*receiver", said).group(1)


def iperf3(*modes):
    t.need("iperf3")
    with managed() as f, connected(f, *modes) as (one, two):
        t.note(run_iperf3(two, one, 5201, "-n", "16M"))
        # A machine with two processors may be too slow for this rate of UDP.
        t.note("UDP: " + run_iperf3(two, one, 5202, "-u", "-b", "1G", "-t", "1"))


BOTH = "connected", "connected"
MIXED = "connected", "datagram"


def large_packets():
    with managed() as f, connected(f, *BOTH) as (one, two):
        said = one.out("ip", "link", "show", "ib0")
        expect("mtu 65520" in said and "NO-CARRIER" not in said, said)
        for host, to in (one, "10.9.0.2"), (two, "fd00::1"):
            for size in 60000, 0, 2044 - 28, 2044, 65520 - 48:
                host.ping(to, size, whole=True)
        # This packet is longer than the MTU of 65520 bytes, and so is
        # fragmented.
        two.ping("10.9.0.1", 65500)


def large_stock_pings():
    """Runs ping(8) with packets that must not be fragmented."""
    t.need("ping")
    with managed() as f, connected(f, *BOTH) as (one, two):
        # the first packet in each direction makes a connection
        one.ping("10.9.0.2", 60000, whole=True)
        two.ping("fd00::1", 60000, whole=True)
        for host, to in (one, "10.9.0.2"), (two, "fd00::1"):
            for size in "56", "30000", "65400":
                run_ping(host, to, "-M", "do", "-s", size)


def both_modes_on_each_host():
    """Each host has an interface of each mode."""
    with managed() as f, hosts(f, "Hca2", "Hca3") as made:
        for i, host in enumerate(made, 1):
            # otherwise ib1 answers ARP for the address of ib0, without the flag of RC
            host.out("sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore")
            for net, mode, name in (9, "connected", "ib0"), \
                    (8, "datagram", "ib1"):
                expect_ok(host.ipoib("--background", "--mode", mode, "--name",
                                     name, "--address",
                                     "10.%d.0.%d/24" % (net, i)))
        for host, i in zip(made, (2, 1)):
            host.ping("10.9.0.%d" % i, 60000, whole=True)
            host.ping("10.8.0.%d" % i, 2044 - 28, whole=True)
            host.ping("10.8.0.%d" % i, 8000)
            for name, mtu in ("ib0", 65520), ("ib1", 2044):
                said = host.out("ip", "link", "show", name)
                expect("mtu %d " % mtu in said, said)
        send_tcp(made[1], made[0], "10.9.0.2")
        send_tcp(made[1], made[0], "10.8.0.2")


# Sends datagrams that must not be fragmented, until the kernel refuses a
# datagram.  Then prints the MTU that the kernel has been told.  Argument:
# ADDRESS.
TOO_LONG = """
import errno, socket, sys, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
level, option, mtu = (41, 23, 24) if family == socket.AF_INET6 else (0, 10, 14)
s.setsockopt(level, option, 2)
s.connect((sys.argv[1], 9))
end = time.monotonic() + %d
while time.monotonic() < end:
    try:
        s.send(bytes(60000))
        time.sleep(0.02)
    except ConnectionRefusedError:
        pass
    except OSError as why:
        assert why.errno == errno.EMSGSIZE, why
        print(s.getsockopt(level, mtu))
        sys.exit(0)
sys.exit("the kernel is not told the MTU")
""" % HANG


def send_tcp(server, client, to):
    server.begin(PYTHON, "-c", TCP_SERVER)
    said = client.out(PYTHON, "-c", TCP_CLIENT, to, str(16 << 20))
    expect_ok(server.end())
    return said.strip()


def one_mode_each():
    """A neighbour in datagram mode gets no packet above the MTU of its link."""
    with managed() as f, connected(f, *MIXED) as (one, two):
        for to in "10.9.0.2", "fd00::2":
            said = one.out(PYTHON, "-c", TOO_LONG, to)
            expect(said.strip() == "2044", said)
            one.ping(to, 8000)
        send_tcp(one, two, "10.9.0.1")
        send_tcp(two, one, "10.9.0.2")
        two.ping("10.9.0.1", 8000)


def connected_tcp():
    with managed() as f, connected(f, *BOTH) as (one, two):
        t.note(send_tcp(two, one, "10.9.0.2"))
        t.note(send_tcp(one, two, "10.9.0.1"))


def carrier_is(host, on):
    wait_until(lambda: ("NO-CARRIER" not in host.out(
        "ip", "link", "show", "ib0")) == on, "the carrier does not change",
        PATIENCE_S)


def link_is_cut():
    """Both hosts connect again after the link of one host was down."""
    with managed() as f, connected(f, *BOTH) as (one, two):
        one.ping("10.9.0.2", 60000, whole=True)
        # the link of Hca3
        f.out("Hca1", "ibportstate", "-D", "0,1,3", "1", "disable")
        carrier_is(two, False)
        f.out("Hca1", "ibportstate", "-D", "0,1,3", "1", "enable")
        carrier_is(two, True)
        two.settle()
        two.ping("10.9.0.1", 60000, whole=True)
        one.ping("10.9.0.2", 60000, whole=True)


def start_killable(host, log):
    """Starts adverb ipoib for the address 10.9.0.2, and waits until the
    interface is up.  Returns the process ID of adverb ipoib."""
    with open(log, "w"):
        pass
    os.chmod(log, 0o666)
    pid = host.out("sh", "-c", "\"$@\" 2>%s >&2 & echo $!" % log, "sh", t.adverb,
                   "ipoib", "--mode", "connected", "--address", "10.9.0.2/24")
    wait_until(lambda: host.run("ip", "link", "show", "ib0").status == 0,
               "no interface", PATIENCE_S)
    carrier_is(host, True)
    wait_until(lambda: host.run("ip", "route", "get", "10.9.0.1").status == 0,
               "no route", PATIENCE_S)
    return pid.strip()


def neighbour_is_killed():
    """A neighbour that is killed and starts again with the same address gets a
    new connection."""
    log = t.path("killed-neighbour.log")
    with managed() as f, hosts(f, "Hca2", "Hca3") as (one, two):
        expect_ok(one.ipoib("--background", "--mode", "connected", "--address",
                            "10.9.0.1/24"))
        for _ in range(2):
            pid = start_killable(two, log)
            two.ping("10.9.0.1", 60000, whole=True)
            one.ping("10.9.0.2", 60000, whole=True)
            two.out("kill", "-9", pid)
            wait_until(lambda: two.run("ip", "link", "show", "ib0").status,
                       "the interface stays", PATIENCE_S)


# Sends 1000 datagrams of 60000 bytes, which take all send buffers that a
# connection to one neighbour may have.  Argument: ADDRESS.
FLOOD = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 9))
for _ in range(1000):
    try:
        s.send(bytes(60000))
    except ConnectionRefusedError:
        pass
"""


def neighbour_is_stopped():
    """A neighbour that takes no packets does not delay packets to other
    neighbours."""
    log = t.path("stopped-neighbour.log")
    with managed() as f, hosts(f, "Hca1", "Hca2", "Hca3") as made:
        one, three, two = made
        for host, ip in (one, "10.9.0.1/24"), (three, "10.9.0.3/24"):
            expect_ok(host.ipoib("--background", "--mode", "connected",
                                 "--address", ip))
        pid = start_killable(two, log)
        for to in "10.9.0.2", "10.9.0.3":
            one.ping(to, 60000, whole=True)
        two.out("kill", "-STOP", pid)
        try:
            one.out(PYTHON, "-c", FLOOD, "10.9.0.2")
            one.ping("10.9.0.3", 60000, whole=True)
            three.ping("10.9.0.1", 60000, whole=True)
        finally:
            two.out("kill", "-CONT", pid)
        two.ping("10.9.0.1", 60000, whole=True)


def manager_restarts_below():
    """After OpenSM has ended, connections stay; under the next OpenSM connections are
    made."""
    with fabric() as f, hosts(f, "Hca2", "Hca3") as made:
        with managed_on(f):
            start_interfaces(made, "--mode", "connected")
            for host in made:
                host.settle()
            made[0].ping("10.9.0.2", 60000, whole=True)
        made[0].ping("10.9.0.2", 60000, whole=True)
        with managed_on(f):
            made[0].ping("10.9.0.2", 60000, whole=True)
            made[1].ping("fd00::1", 60000, whole=True)


def smaller_mtu():
    """--mtu bounds what this interface sends, not what it receives."""
    with managed() as f, hosts(f, "Hca2", "Hca3") as made:
        start_interfaces(made[:1], "--mode", "connected")
        expect_ok(made[1].ipoib("--background", "--mode", "connected", "--mtu",
                                "9000", "--address", "10.9.0.2/24"))
        said = made[1].out("ip", "link", "show", "ib0")
        expect("mtu 9000" in said, said)
        made[1].ping("10.9.0.1", 9000 - 28, whole=True)
        made[1].ping("10.9.0.1", 60000)


def members(f):
    """Returns how many ports are members of the group."""
    # only the answer to a query with the SM_Key shows members
    said = f.out("Hca1", "saquery", "--smkey", "1", "-m")
    return sum(GROUP_MGID in block and "fe80" in block
               for block in said.split("MGID."))


def memberships(f):
    """Returns how many members all groups have."""
    return f.out("Hca1", "saquery", "--smkey", "1", "-m").count("PortGid")


def multicast():
    with managed() as f, interfaces(f, "Hca1", "Hca2", "Hca3") as all_hosts:
        receivers, sender = all_hosts[:2], all_hosts[2]
        for i, host in enumerate(receivers, 1):
            host.begin(PYTHON, "-c", MEMBER, GROUP, "10.9.0.%d" % i)
        wait_until(lambda: members(f) == 2, "the hosts do not join the group",
                   PATIENCE_S)
        sender.out(PYTHON, "-c", SENDER, GROUP, "10.9.0.3", "hello", "2")
        for host in receivers:
            r = host.end()
            expect_ok(r)
            expect(r.output.strip() == "hello", r.output)
        # the programs have ended, so the kernels have left the group
        wait_until(lambda: members(f) == 0, "the hosts do not leave the group",
                   PATIENCE_S)


def check_all(all_hosts):
    """Expects that each host reaches each other host after all hosts have
    flushed their neighbour tables."""
    for i, host in enumerate(all_hosts, 1):
        host.out("ip", "neigh", "flush", "dev", "ib0")
    for i, host in enumerate(all_hosts, 1):
        for k in range(1, len(all_hosts) + 1):
            if k != i:
                host.ping("10.9.0.%d" % k)
                host.ping("fd00::%d" % k)


def many_groups():
    """The groups of ib0 come last in a long table of the kernel's groups."""
    with managed() as f, hosts(f, "Hca2", "Hca3") as made:
        for host in made:
            host.out(PYTHON, "-c", JOINS)
        start_interfaces(made)
        for host in made:
            host.settle()
        check_all(made)


def manager_restarts():
    """A new OpenSM knows no members: the hosts join again."""
    with fabric() as f:
        with hosts(f, "Hca2", "Hca3") as made:
            with managed_on(f):
                start_interfaces(made)
                for host in made:
                    host.settle()
                check_all(made)
            with managed_on(f):
                check_all(made)


def lids_change():
    with fabric() as f, hosts(f, "Hca2", "Hca3") as made:
        with managed_on(f):
            start_interfaces(made)
            for host in made:
                host.settle()
            check_all(made)
            before = port_lid(f, "Hca3", "1")
        with other_lids(f), managed_on(f, "Hca1", "-x"):
            expect(port_lid(f, "Hca3", "1") != before,
                   "the LID has not changed")
            # the kernels keep their neighbour tables
            made[0].ping("10.9.0.2")
            check_all(made)


PARTITIONS = """
Default=0x7fff,ipoib:ALL=full;
Mine=0x0001,ipoib:ALL=full;
Mute=0x0003:ALL=full;
"""


def partitions():
    path = t.path("partitions")
    with open(path, "w") as file:
        file.write(PARTITIONS)
    os.chmod(path, 0o644)
    with managed(NET, "Hca1", "-P", path) as f, \
            hosts(f, "Hca2", "Hca3") as made:
        start_interfaces(made, "--pkey", "0x8001", "--name", "ib0.8001")
        made[0].ping("10.9.0.2")
        # a second interface of the host, in another partition
        for i, host in enumerate(made, 1):
            expect_ok(host.ipoib("--background", "--address",
                                 "10.8.0.%d/24" % i))
        made[0].ping("10.8.0.2")
        said = f.out("Hca1", "saquery", "-g")
        expect("ff12:401b:8001::ffff:ffff" in said, said)
        log = t.path("quiet.log")
        for pkey, want in ("0x8002", "no full member of the partition 0x8002"), \
                ("3", "no broadcast group ff12:401b:8003:0:0:0:ffff:ffff"):
            await_sentence(made[0], log, want, "--pkey", pkey, "--name", "ib9")


def await_sentence(host, log, want, *words):
    """Starts adverb ipoib with @words, waits until it prints @want into the file
    @log, and ends it.  The last word is the name of the interface, which is gone
    afterwards."""
    with open(log, "w"):
        pass
    os.chmod(log, 0o666)
    said = host.out("sh", "-c", "\"$@\" 2>%s >&2 & echo $!" % log, "sh",
                    t.adverb, "ipoib", *words)
    try:
        await_text(log, want)
    finally:
        host.out("kill", said.strip())
    wait_until(lambda: words[-1] not in host.out("ip", "-o", "link"),
               "the interface of an ended adverb ipoib exists", PATIENCE_S)


def read_text(path):
    with open(path) as file:
        return file.read()


def await_text(path, want):
    wait_until(lambda: want in read_text(path),
               "adverb ipoib does not say: " + want, PATIENCE_S)


def no_manager():
    """Without a subnet manager there is no carrier.  A subnet manager that
    starts later brings the interface up."""
    log = t.path("late.log")
    with open(log, "w"):
        pass
    os.chmod(log, 0o666)
    with fabric() as f, hosts(f, "Hca3") as (host,):
        host.out("sh", "-c", "\"$@\" 2>%s >&2 &" % log, "sh", t.adverb, "ipoib")
        await_text(log, "its port is not active; start a subnet manager")
        expect("NO-CARRIER" in host.out("ip", "link", "show", "ib0"),
               "the interface has a carrier")
        with managed_on(f):
            await_text(log, "ib0: the interface is up")
            wait_until(lambda: "NO-CARRIER" not in host.out(
                "ip", "link", "show", "ib0"), "no carrier", PATIENCE_S)
            # port 1 of Switch2 leads to Hca3
            f.out("Hca1", "ibportstate", "-D", "0,1,3", "1", "disable")
            wait_until(lambda: "NO-CARRIER" in host.out(
                "ip", "link", "show", "ib0"), "the carrier stays", PATIENCE_S)
            f.out("Hca1", "ibportstate", "-D", "0,1,3", "1", "enable")
            wait_until(lambda: "NO-CARRIER" not in host.out(
                "ip", "link", "show", "ib0"), "no carrier", PATIENCE_S)
    expect(read_text(log).count("its port is not active; start") == 2,
           read_text(log))


def port_has_small_mtu():
    """The MTU of the port, less 4 bytes, bounds the MTU of the interface."""
    def set_mtu(code):
        f.out("Hca1", "ibportstate", port_lid(f, "Hca3", "1"), "1", "mtu", code)

    with managed() as f, hosts(f, "Hca2", "Hca3") as made:
        set_mtu("3")  # 1024
        start_interfaces(made)
        said = made[1].out("ip", "link", "show", "ib0")
        expect("mtu 1020" in said, said)
        made[1].ping("10.9.0.1", 1020 - 28)
        for code, mtu in ("2", 508), ("5", 2044):
            set_mtu(code)
            wait_until(lambda mtu=mtu: "mtu %d " % mtu in made[1].out(
                "ip", "link", "show", "ib0"), "the MTU stays", PATIENCE_S)
            made[1].ping("10.9.0.1", mtu - 28)


def refusals():
    with managed() as f:
        r = f.host("Hca3", t.adverb, "ipoib")
        expect(r.status == 1 and "(CAP_NET_ADMIN)" in r.output and
               "adverb run --private" in r.output, "no sentence about the right",
               r)
        for words, want in (
                (["--name", "sixteen-bytes-ib"], "more than 15 bytes"),
                (["--address", "10.9.0.1"], "the length of its prefix"),
                (["--address", "10.9.0.1/33"], "the length of its prefix"),
                *((["--pkey", k], "is not a P_Key") for k in ("65536", "0x8000")),
                (["--port", "0"], "the number of a port"),
                (["--mode", "fast"], "datagram or connected"),
                (["--mtu", "65521"], "an MTU of 68 to 65520"),
                (["ib0"], "adverb ipoib has no argument ib0")):
            r = f.host("Hca3", t.adverb, "ipoib", *words)
            expect(r.status == 2 and want in r.output, "no sentence", r)
        with hosts(f, "Hca3") as (host,):
            expect_ok(host.ipoib("--background"))
            r = host.ipoib("--background")
            expect(r.status == 1 and "has an interface of this name" in
                   r.output and "--name" in r.output, "no sentence", r)
            r = host.ipoib("--name", "lo")
            expect(r.status == 1 and "another kind" in r.output, "no sentence",
                   r)
            r = host.ipoib("--name", "ib2", "--port", "7")
            expect(r.status == 1 and "no port 7" in r.output, "no sentence", r)
    r = t.run([t.adverb, "ipoib"])
    expect(r.status == 1 and "needs a host of an emulated subnet" in r.output,
           "no sentence", r)


def own_options():
    """adverb ipoib takes --fabric and --host itself."""
    with managed() as f:
        r = t.run([t.adverb, "run", "--private", "--", "sh", "-c",
                   "%s ipoib --fabric=%s --host Hca3 --background && "
                   "ip link show ib0" % (t.adverb, f.socket)])
        expect_ok(r)
        expect("LOWER_UP" in r.output, r.output)


def interface_is_removed():
    """`ip link delete` ends the program, and its port leaves the groups."""
    log = t.path("removed.log")
    with open(log, "w"):
        pass
    os.chmod(log, 0o666)
    with managed() as f, hosts(f, "Hca2") as (host,):
        before = memberships(f)
        expect_ok(host.run("sh", "-c", "\"$@\" 2>" + log, "sh", t.adverb,
                           "ipoib", "--background"))
        expect(memberships(f) > before, "the port joins no group")
        host.out("ip", "link", "delete", "ib0")
        await_text(log, "ib0: the interface was removed, so adverb ipoib ends")
        wait_until(lambda: memberships(f) == before,
                   "the port stays in its groups", PATIENCE_S)
        # the name ib0 is free again
        expect_ok(host.ipoib("--background"))


def caller_is_killed():
    """With --background a child process of adverb ipoib waits for a subnet
    manager.  The child ends when its parent is killed."""
    with fabric() as f, hosts(f, "Hca3") as (host,):
        host.out("sh", "-c", "\"$@\" >/dev/null 2>&1 & c=$!; while ! ip link "
                 "show ib0; do sleep 0.05; done; kill -9 $c", "sh", t.adverb,
                 "ipoib", "--background")
        wait_until(lambda: host.run("ip", "link", "show", "ib0").status,
                   "the interface stays", PATIENCE_S)


def child_is_killed():
    """With --background, adverb ipoib says which signal has ended its child, also if
    the caller ignores SIGCHLD.  Here a filter kills the child when it opens its
    device."""
    with fabric() as f, hosts(f, "Hca3") as (host,):
        r = host.run("env", "--ignore-signal=CHLD", t.program("deny_syscall"),
                     "memfd_create=KILL", "--", t.adverb, "ipoib", "--background")
        if r.status == 77:
            raise Skip("no system call can be refused here")
        expect(r.status == 1 and "adverb ipoib was ended by signal 31" in r.output,
               r.output, r)


def interface_is_renamed():
    """adverb ipoib joins groups for an interface that was renamed."""
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        two.out("sh", "-c", "ip link set ib0 down; ip link set ib0 name "
                "ib0-with-a-name; ip link set ib0-with-a-name up")
        two.begin(PYTHON, "-c", MEMBER, GROUP, "10.9.0.2")
        wait_until(lambda: members(f) == 1, "the host does not join the group",
                   PATIENCE_S)
        one.out(PYTHON, "-c", SENDER, GROUP, "10.9.0.1", "hello", "1")
        r = two.end()
        expect_ok(r)
        expect(r.output.strip() == "hello", r.output)


def interface_restarts():
    """An interface that starts again has another hardware address of IPoIB, and
    announces this address to the neighbours that know the old address."""
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        both = "10.9.0.2", "fd00::2"

        def neighbours():
            return [re.search(r"lladdr (\S+)", one.out(
                "ip", "neigh", "show", to, "dev", "ib0")).group(1)
                for to in both]

        for host in one, two:
            host.settle()
        for to in both:
            one.ping(to)
        before = neighbours()
        two.out("ip", "link", "delete", "ib0")
        expect_ok(two.ipoib("--background", "--address", "10.9.0.2/24",
                            "--address", "fd00::2/64"))
        for i in range(len(both)):
            wait_until(lambda i=i: neighbours()[i] != before[i],
                       "a neighbour is not told the new address", PATIENCE_S)
        for to in both:
            one.ping(to)


def fabric_is_killed():
    log = t.path("killed.log")
    net, path = t.path("net"), t.path("doomed-socket")
    with open(net, "w") as file:
        file.write(NET)
    with open(log, "w"):
        pass
    os.chmod(log, 0o666)
    doomed = t.start(fabric_argv("--socket", path, net))
    try:
        expect(b"runs at" in doomed.stdout.readline(), "no fabric")
        f = Fabric.at(path)
        with hosts(f, "Hca3") as (host,):
            with managed_on(f):
                expect_ok(host.run("sh", "-c", "\"$@\" 2>" + log, "sh",
                                   t.adverb, "ipoib", "--background"))
            doomed.kill()
            await_text(log, "ib0: the fabric has ended, so adverb ipoib ends")
            wait_until(lambda: host.run("ip", "link", "show", "ib0").status,
                       "the interface stays", PATIENCE_S)
    finally:
        doomed.kill()
        doomed.communicate()


t.case("ping by IPv4 and IPv6, small, as long as the MTU and in fragments",
       pings)
t.case("packets go to the gateway of a route", gateways)
t.case("TCP carries 16 MiB in each direction", tcp)
t.case("ping(8) runs", stock_ping, "IP over InfiniBand", "ping")
t.case("iperf3 runs", lambda: iperf3("datagram", "datagram"),
       "IP over InfiniBand", "iperf3")
t.case("connected mode: packets of 64 KiB by IPv4 and IPv6", large_packets)
t.case("connected mode: a neighbour in datagram mode", one_mode_each)
t.case("connected mode: TCP carries 16 MiB in each direction", connected_tcp)
t.case("connected mode: a link is cut and comes back", link_is_cut)
t.case("connected mode: a neighbour is killed and starts again",
       neighbour_is_killed)
t.case("connected mode: a neighbour is stopped", neighbour_is_stopped)
t.case("connected mode: a subnet manager starts again", manager_restarts_below)
t.case("connected mode: iperf3 runs", lambda: iperf3(*BOTH))
t.case("connected mode: iperf3 runs to and from a neighbour in datagram mode",
       lambda: (iperf3(*reversed(MIXED)), iperf3(*MIXED)))
t.case("connected mode: ping(8) runs with large packets", large_stock_pings)
t.case("connected mode: a host has an interface of each mode",
       both_modes_on_each_host)
t.case("connected mode: an interface with a smaller MTU", smaller_mtu)
t.case("three hosts use a multicast group", multicast)
t.case("hosts whose kernels have joined a thousand groups reach one another",
       many_groups)
t.case("a subnet manager that starts again knows the groups", manager_restarts)
t.case("hosts reach one another after their LIDs have changed", lids_change)
t.case("partitions have interfaces of their own, or a sentence says why not",
       partitions)
t.case("the carrier follows the port, and a sentence says why it is off",
       no_manager)
t.case("the MTU of the port bounds that of the interface",
       port_has_small_mtu)
t.case("a missing right, a taken name and wrong options give sentences",
       refusals)
t.case("adverb ipoib takes --fabric and --host", own_options)
t.case("adverb ipoib ends if its interface is removed", interface_is_removed)
t.case("adverb ipoib --background says which signal has ended its child",
       child_is_killed)
t.case("adverb ipoib --background ends if its caller is killed before the "
       "interface is up", caller_is_killed)
t.case("an interface with another, longer name joins groups",
       interface_is_renamed)
t.case("an interface that starts again tells its neighbours",
       interface_restarts)
t.case("adverb ipoib ends if the fabric is killed", fabric_is_killed)
t.end()
