#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests programs over librdmacm by the IP addresses of IPoIB interfaces, on an
emulated subnet under OpenSM."""

import contextlib
import ipaddress
import os
import re
import select
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import iphosts
import subnet
from iphosts import hosts, interfaces, start_interfaces
from subnet import (NET, PATIENCE_S, PATIENT, dissect, fabric, group_ports, managed,
                    managed_on, patience)
from system import Fail, expect, expect_ok, wait_until

AREA = "IP over InfiniBand"
t = iphosts.Suite(__doc__)
subnet.use(t)
iphosts.use(t)


def new_pipe(name):
    """Makes a named pipe.  Returns its path, and a descriptor that reads it, so
    that no writer waits in open()."""
    path = t.path(name)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    os.mkfifo(path)
    os.chmod(path, 0o666)
    return path, os.open(path, os.O_RDONLY | os.O_NONBLOCK)


@contextlib.contextmanager
def ready_pipe():
    """Yields the path of a named pipe, to which a server's librdmacm writes when the
    server listens, and a descriptor that reads the pipe."""
    path, fd = new_pipe("ready")
    try:
        yield path, fd
    finally:
        os.close(fd)


def begin_server(host, argv):
    """Begins a server, and waits until it listens.  host.end() waits until the
    server has ended."""
    t.need(argv[0])
    with ready_pipe() as (path, fd):
        host.begin("sh", "-c", "exec env ADVERB_READY_FD=9 \"$@\" 9>" + path,
                   "sh", *argv)
        readable, _, _ = select.select([fd], [], [], PATIENCE_S)
        if not readable or not os.read(fd, 1):
            raise Fail("the server does not listen", host.end().output)


def both(server, client, server_argv, client_argv):
    """Runs a server and a client on two hosts, both with pace.so.  Returns the
    results of the client and the server."""
    t.need(server_argv[0])
    # perftest's client may connect a second time before its server listens again
    env = t.paced(**PATIENT) if server_argv[0].startswith("ib_") else patience()
    words = ["env", *("%s=%s" % pair for pair in env.items())]
    begin_server(server, [*words, *server_argv])
    r = client.run(*words, *client_argv)
    return r, server.end()


def expect_done(results, want):
    for r in results:
        expect_ok(r)
    for r in results[:1] if want.startswith("rdma_client") else results:
        expect(want in r.output, r.output)


# Each row has the commands of the server and the client, and a text that the
# programs print if they succeed.  % is the server's address.
PROGRAMS = [
    ("rping -s -a % -C 20 -V", "rping -c -a % -C 20 -V", ""),
    ("rping -s -C 3 -S 60000 -V", "rping -c -a % -C 3 -S 60000 -V", ""),
    ("ucmatose", "ucmatose -s %", "return status 0"),
    ("ucmatose -b % -c 10 -C 20", "ucmatose -s % -c 10 -C 20",
     "return status 0"),
    ("ucmatose -c 4 -m", "ucmatose -s % -c 4 -m", "return status 0"),
    ("udaddy", "udaddy -s %", "return status 0"),
    ("udaddy -b % -c 4 -C 20", "udaddy -s % -c 4 -C 20", "return status 0"),
    ("rdma_server", "rdma_client -s %", "rdma_client: end 0"),
    ("ib_write_bw -R -n 200", "ib_write_bw -R -n 200 %", ""),
    ("ib_send_lat -R -n 200", "ib_send_lat -R -n 200 %", ""),
    ("ib_send_bw -R -c UD -n 200", "ib_send_bw -R -c UD -n 200 %", ""),
]


def program(name):
    """Returns a case: a client reaches a server by the server's IPv4 address."""
    def body():
        # perftest uses the first port, which has no cable at Hca2
        with managed() as f, interfaces(f, "Hca1", "Hca3") as (one, two):
            for server, client, want in PROGRAMS:
                if server.split()[0] == name:
                    expect_done(both(two, one,
                                     server.replace("%", "10.9.0.2").split(),
                                     client.replace("%", "10.9.0.2").split()),
                                want)
    return body


def six():
    """Tests IPv6 with global addresses, and with a listener at all addresses."""
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        one.settle()
        two.settle()
        for name in "ucmatose", "udaddy":
            words = [name, "-f", "ipv6", "-b"]
            expect_done(both(two, one, [*words, "fd00::2"],
                             [*words, "fd00::1", "-s", "fd00::2"]),
                        "return status 0")
        # a listener at all addresses takes IPv4, too
        for to in "fd00::2", "10.9.0.2":
            words = ["rping", "-C", "3", "-V"]
            expect_done(both(two, one, [*words, "-s", "-a", "::"],
                             [*words, "-c", "-a", to]), "")


def own_address():
    """A host reaches itself, by its address and by 127.0.0.1."""
    with managed() as f, interfaces(f, "Hca2") as (one,):
        for to in "10.9.0.1", "127.0.0.1":
            with ready_pipe() as (path, fd):
                r = one.run("sh", "-c", "ADVERB_READY_FD=9 ucmatose 9>" + path +
                            " & head -c 1 <" + path +
                            " >/dev/null; ucmatose -s " + to + "; wait")
            expect_ok(r)
            expect(r.output.count("return status 0") == 2, r.output)


def gateway():
    """A connection to an address of another network goes to the next hop."""
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        two.out("ip", "address", "add", "10.10.0.1/32", "dev", "ib0")
        one.out("ip", "route", "add", "10.10.0.0/24", "via", "10.9.0.2")
        expect_done(both(two, one, ["ucmatose", "-b", "10.10.0.1"],
                         ["ucmatose", "-s", "10.10.0.1"]), "return status 0")


def begin_member(host, name, words, gate=""):
    """Begins a member of a group, and waits until it has joined.  The member then
    waits until the file @gate exists, if @gate is not empty.  Returns the path of the
    file with the member's output."""
    t.need("mckey")
    path = t.path(name)
    with open(path, "w"):
        os.chmod(path, 0o666)
    host.begin("env", "LD_PRELOAD=" + t.program("joined_gate.so"),
               "JOINED_GATE=" + gate, "sh", "-c",
               "exec stdbuf -oL mckey \"$@\" >" + path + " 2>&1", "sh", *words)

    def has_joined():
        with open(path) as f:
            return "joined dgid" in f.read()

    wait_until(has_joined, "the member does not join", PATIENCE_S)
    return path


def end_member(host, path):
    r = host.end()
    with open(path) as f:
        text = f.read()
    expect(r.status == 0, text)
    expect("data transfers complete" in text, text)
    return text


def gid_of(text):
    """Returns the group's GID and LID, which mckey has printed in @text."""
    found = re.search(r"joined dgid: (\S+) mlid (\S+) sl", text)
    expect(found, text)
    return found.groups()


def is_routed(f, mlid):
    """Returns whether the packets of a group go from Hca2 to Hca3."""
    first, second = (group_ports(f, name).get(mlid, set())
                     for name in ("Switch1", "Switch2"))
    return bool({"3", "4"} & first) and "1" in second


def send_to_member(f, host, words):
    """Runs a sender on Hca2, which sends when the switches have the routes to the
    member on Hca3.  Returns the sender's output."""
    gate = t.path("gate")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(gate)
    path = begin_member(host, "sender", [*words, "-s"], gate)
    with open(path) as said:
        mlid = gid_of(said.read())[1]
    wait_until(lambda: is_routed(f, mlid), "OpenSM makes no route for the group",
               PATIENCE_S)
    with open(gate, "w"):
        pass
    return end_member(host, path)


# Each row has a group, the addresses of the two hosts, options of mckey, and the GID
# of the group.  Without options mckey uses RDMA_PS_UDP; 0x0002 is RDMA_PS_IPOIB.
GROUPS = [
    ("239.1.2.3", ("10.9.0.1", "10.9.0.2"), [], "ff12:4001:ffff::f01:203"),
    ("239.1.2.4", ("10.9.0.1", "10.9.0.2"), ["-p", "0x2"],
     "ff12:401b:ffff::f01:204"),
    ("ff1e::1:2", ("fd00::1", "fd00::2"), [], "ff12:6001:ffff::1:2"),
    ("ff1e::1:3", ("fd00::1", "fd00::2"), ["-p", "0x2"],
     "ff12:601b:ffff::1:3"),
]


def groups():
    """A member of an IP multicast group gets the datagrams of a sender on another
    host.  The group has the GID that GROUPS says, and ends with its last member."""
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        one.settle()
        two.settle()
        for group, own, options, gid in GROUPS:
            words = ["-m", group, *options, "-b"]
            member = begin_member(two, "member", [*words, own[1]])
            sent = send_to_member(f, one, [*words, own[0]])
            want = ipaddress.ip_address(gid)
            for text in sent, end_member(two, member):
                expect(ipaddress.ip_address(gid_of(text)[0]) == want, text)
            wait_until(lambda: not has_group(one, gid), "the group stays",
                       PATIENCE_S)


def group_refusals():
    """A join that fails prints a sentence.  A send-only member can join a group that
    has no other member."""
    file = t.path("partitions")
    with open(file, "w") as out:
        out.write("Default=0x7fff, ipoib: ALL=full, SELF=full;\n")
    with fabric(NET) as f, managed_on(f, "Hca1", "-P", file) as f, \
            hosts(f, "Hca2", "Hca3") as (one, two):
        start_interfaces([one, two])
        words = ["-m", "239.1.2.3", "-b"]
        for address, want in (
                ("127.0.0.1", "is not the address of an IPoIB interface"),
                ("10.9.0.9", "is no address of an interface of this")):
            r = one.run("mckey", *words, address)
            expect(want in r.output, r.output)
        # the send-only member sends, and the group has no other member
        alone = begin_member(one, "alone", [*words, "10.9.0.1", "-s", "-o"])
        end_member(one, alone)
        member = begin_member(two, "member", [*words, "10.9.0.2"])
        send_to_member(f, one, [*words, "10.9.0.1", "-o"])
        end_member(two, member)
        # From now on no subnet manager runs at the LID to which the port sends
        # its queries.
        f.manager.terminate()
        f.manager.wait()
        r = one.run("mckey", *words, "10.9.0.1")
        expect("answers that no subnet manager runs there, or that it is "
               "busy, so the port did not join 239.1.2.3" in r.output,
               r.output)
        expect("RDMA_CM_EVENT_MULTICAST_ERROR" in r.output, r.output)


def has_group(host, gid):
    """Returns whether the subnet administration knows the group."""
    r = host.run("saquery", "-g")
    expect_ok(r)
    wanted = ipaddress.ip_address(gid)
    found = re.findall(r"MGID\.*([0-9a-f:]+)", r.output)
    expect(found, r.output)
    return any(ipaddress.ip_address(g) == wanted for g in found)


def partition():
    """The MADs of a connection have the P_Key of the interface."""
    t.need("tshark")
    capture, file = t.path("capture.pcap"), t.path("partitions")
    with open(file, "w") as out:
        out.write("Default=0x7fff: ALL=full, SELF=full;\n"
                  "Own=0x5, ipoib: ALL=full;\n")
    with fabric(NET, "--capture", capture) as f:
        with managed_on(f, "Hca1", "-P", file), \
                hosts(f, "Hca2", "Hca3") as made:
            start_interfaces(made, "--pkey", "0x8005", "--name", "ib5")
            expect_done(both(made[1], made[0], ["ucmatose", "-b", "10.9.0.2"],
                             ["ucmatose", "-s", "10.9.0.2"]),
                        "return status 0")
    seen = dissect(capture, "infiniband.mad.mgmtclass == 7",
                   "infiniband.bth.p_key")
    expect(len(seen) >= 5, seen)
    expect({int(key, 0) & 0x7fff for key in seen} == {5}, seen)


def qkeys():
    """The ten datagrams in each direction have the Q_Key of rdma_cm, 0x01234567, if
    the ids are in RDMA_PS_UDP.  If the ids are in RDMA_PS_IPOIB, the datagrams have
    the Q_Key of the broadcast group, as those of the interfaces."""
    t.need("tshark")
    file = t.path("partitions")
    with open(file, "w") as out:
        out.write("Default=0x7fff, ipoib, Q_Key=0x2345: ALL=full, SELF=full;\n")
    for space, count in ("0x111", 20), ("0x2", 0):
        capture = t.path("capture%s.pcap" % space)
        with fabric(NET, "--capture", capture) as f, \
                managed_on(f, "Hca1", "-P", file), \
                interfaces(f, "Hca2", "Hca3") as (one, two):
            words = ["udaddy", "-p", space]
            expect_done(both(two, one, words, [*words, "-s", "10.9.0.2"]),
                        "return status 0")
        seen = dissect(capture, "infiniband.deth.srcqp > 1",
                       "infiniband.deth.q_key")
        keys = [int(key, 0) for key in seen]
        expect(keys.count(0x01234567) == count, (space, seen))
        expect(keys.count(0x2345) == len(keys) - count, (space, seen))
        expect(len(keys) > 20, (space, seen))


def other_partition():
    """Interfaces of two partitions are no neighbours."""
    file = t.path("partitions")
    with open(file, "w") as out:
        out.write("Default=0x7fff, ipoib: ALL=full, SELF=full;\n"
                  "Own=0x5, ipoib: ALL=full;\n")
    with fabric(NET) as f, managed_on(f, "Hca1", "-P", file), \
            hosts(f, "Hca2", "Hca3") as (one, two):
        start_interfaces([one])
        expect_ok(two.run(t.adverb, "ipoib", "--background", "--pkey",
                          "0x8005", "--address", "10.9.0.2/24"))
        r = one.run("ucmatose", "-s", "10.9.0.2")
        expect("ADDR_ERROR: no neighbour has told its hardware address for "
               "10.9.0.2" in r.output, r.output)
        expect("RDMA_CM_EVENT_ADDR_ERROR" in r.output, r.output)


def refusals():
    """A connection by a wrong address fails, and a sentence says why."""
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        one.out("ip", "address", "add", "10.8.0.1/24", "dev", "lo")
        for words, want in (
                (["-s", "10.9.0.77"], "no neighbour has told its hardware "
                 "address for 10.9.0.77"),
                (["-s", "10.8.0.2"], "which is no IPoIB interface"),
                (["-b", "10.8.0.1"], "the interface lo, which is no IPoIB"),
                (["-b", "10.9.0.9"], "is no address of an interface of this"),
                (["-s", "192.0.2.1"], "there is no route to 192.0.2.1"),
                (["-s", "10.9.0.2", "-p", "999"], "no program listens at "
                 "10.9.0.2")):
            begin_server(two, ["ucmatose"])
            r = one.run("ucmatose", *words)
            expect(want in r.output, r.output)
            expect_done([one.run("ucmatose", "-s", "10.9.0.2"), two.end()],
                        "return status 0")


def interface_goes():
    """A host whose own interface or whose neighbour's interface is gone cannot
    connect.  A new interface of the neighbour is found."""
    with managed() as f, interfaces(f, "Hca2", "Hca3") as (one, two):
        one.ping("10.9.0.2")
        two.out("ip", "link", "delete", "ib0")
        wait_until(lambda: two.run("ip", "link", "show", "ib0").status,
                   "the interface stays", PATIENCE_S)

        def is_forgotten():
            return "no longer leads, to an IPoIB interface of the fabric" in \
                one.run("ucmatose", "-s", "10.9.0.2").output

        wait_until(is_forgotten, "the fabric knows the interface for ever",
                   PATIENCE_S)
        expect_ok(two.ipoib("--background", "--address", "10.9.0.2/24"))
        expect_done(both(two, one, ["ucmatose"],
                         ["ucmatose", "-s", "10.9.0.2"]), "return status 0")
        one.out("ip", "link", "delete", "ib0")
        r = one.run("ucmatose", "-s", "10.9.0.2")
        expect("there is no route to 10.9.0.2" in r.output, r.output)


PINGS = 2000


@contextlib.contextmanager
def long_client(host):
    """Runs a client of rping, and waits until the client is connected.  The client
    stops when its output fills the pipe, and goes on when the yielded function reads
    the pipe to its end."""
    path, fd = new_pipe("pings")
    host.begin("sh", "-c", "exec rping -c -v -C %d -a 10.9.0.2 >%s" %
               (PINGS, path))
    with open(fd, errors="replace") as lines:
        select.select([fd], [], [], PATIENCE_S)
        os.set_blocking(fd, True)
        expect(lines.readline().startswith("ping data"),
               "the client does not connect")

        def end():
            said = lines.read()
            expect_ok(host.end())
            expect(said.count("ping data") == PINGS - 1, said)
        yield end


def manager_restarts():
    """A connection and a listener outlast OpenSM."""
    once = ["rping", "-c", "-C", "3", "-V", "-a", "10.9.0.2"]
    with fabric(NET) as f, hosts(f, "Hca2", "Hca3", "Hca1") as made:
        one, two, three = made
        with managed_on(f):
            start_interfaces(made)
            three.ping("10.9.0.2")
            begin_server(two, ["rping", "-s", "-P", "-a", "10.9.0.2"])
            with long_client(one) as end:
                f.manager.kill()
                f.manager.wait()
                r = three.run(*once)
                expect("answers that no subnet manager runs there" in
                       r.output, r.output)
                with managed_on(f):
                    expect_ok(three.run(*once))
                    end()
                    expect_ok(one.run(*once))


def lids_change():
    """A listener gets connections after the LIDs have changed."""
    once = ["rping", "-c", "-C", "3", "-V", "-a", "10.9.0.2"]
    with fabric(NET) as f, hosts(f, "Hca2", "Hca3") as (one, two):
        with managed_on(f):
            start_interfaces([one, two])
            begin_server(two, ["rping", "-s", "-P", "-a", "10.9.0.2"])
            expect_ok(one.run(*once))
            before = subnet.port_lid(f, "Hca3", "1")
        with subnet.other_lids(f), managed_on(f, "Hca1", "-x"):
            expect(subnet.port_lid(f, "Hca3", "1") != before,
                   "the LID has not changed")
            expect_ok(one.run(*once))


for first, shown in (("rping", "rping"), ("ucmatose", "ucmatose"),
                     ("udaddy", "udaddy"),
                     ("rdma_server", "rdma_client, rdma_server"),
                     ("ib_write_bw", "ib_write_bw -R"),
                     ("ib_send_lat", "ib_send_lat -R"),
                     ("ib_send_bw", "ib_send_bw -R -c UD")):
    t.case(shown + " by IPv4", program(first), AREA, shown)
t.case("ucmatose and udaddy by IPv6", six)
t.case("mckey by groups of IPv4 and IPv6", groups, AREA, "mckey")
t.case("a group that cannot be joined fails with a sentence", group_refusals)
t.case("a host connects to its own addresses", own_address)
t.case("a connection goes to the gateway of a route", gateway)
t.case("a connection has the partition of its interface", partition)
t.case("the Q_Key of a datagram id is that of its port space", qkeys, AREA,
       "udaddy")
t.case("an address in another partition has no neighbour", other_partition)
t.case("a wrong address or a free port fails with a sentence", refusals)
t.case("an interface that goes away ends what begins there, and a new one is "
       "found", interface_goes)
t.case("a connection and a listener outlast OpenSM", manager_restarts, AREA,
       "rping")
t.case("a listener gets connections after the LIDs have changed", lids_change,
       AREA, "rping")
t.end()
