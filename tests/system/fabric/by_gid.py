#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests programs over librdmacm by GID, on an emulated subnet under OpenSM."""

import errno
import os
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import subnet
import system
from subnet import (NET, PATIENCE_S, Fabric, dissect, fabric, fabric_argv,
                    managed, managed_on, port_lid, switch_lid)
from system import HANG, Fail, expect, expect_failed, expect_ok

AREA = "InfiniBand"
UNREACHABLE_S = 120  # with ADVERB_CM_FAST the CM gives up after 8 s
t = system.Suite(__doc__)
subnet.use(t)


def gids(f, host):
    """Returns the first GID of each port of a host."""
    said = f.out(host, "ibv_devinfo", "-v")
    return re.findall(r"GID\[\s*0\]:\s+([0-9a-f:]+)", said)


def start(f, host, argv, ready=None, **env):
    """Starts and returns a program on a host of the fabric.  `ready`: a pipe to
    which the program's librdmacm writes when the program listens."""
    t.need(argv[0])
    options = {}
    if ready is not None:
        env["ADVERB_READY_FD"] = str(ready)
        options["pass_fds"] = [ready]
    return t.start([t.adverb, "run", "--fabric=" + f.socket, "--host", host,
                    "--", *argv], env=t.environment(**env), **options)


def start_server(f, host, argv, **env):
    """Starts a server, waits until it listens, and returns its process."""
    ours, theirs = os.pipe()
    try:
        try:
            server = start(f, host, argv, theirs, **env)
        finally:
            os.close(theirs)
        readable, _, _ = select.select([ours], [], [], PATIENCE_S)
        if not readable or not os.read(ours, 1):
            raise Fail("the server does not listen", t.finish(server, 1).output)
    finally:
        os.close(ours)
    return server


def both(f, argv, server_words, client_words, hosts=("Hca3", "Hca1")):
    """Runs a program's server on hosts[0] and its client on hosts[1].  Returns
    the results of the client and the server."""
    server = start_server(f, hosts[0], [*argv, *server_words])
    client = start(f, hosts[1], [*argv, *client_words])
    return t.finish(client, PATIENCE_S), t.finish(server, PATIENCE_S)


def expect_done(results):
    for r in results:
        expect_ok(r)
        expect("return status 0" in r.output, r.output)


PROGRAMS = [
    ["ucmatose", "-f", "gid"],
    ["ucmatose", "-f", "gid", "-c", "10", "-C", "20", "-S", "1000"],
    ["ucmatose", "-f", "gid", "-P", "ib"],
    ["ucmatose", "-f", "gid", "-c", "4", "-m"],
    ["udaddy", "-f", "gid"],
    ["udaddy", "-f", "gid", "-c", "4", "-C", "20", "-S", "1000"],
]


def program(name):
    """Returns a case: the client reaches the server on another host by that
    host's GID."""
    def body():
        with managed() as f:
            gid = gids(f, "Hca3")[0]
            for argv in PROGRAMS:
                if argv[0] == name:
                    expect_done(both(f, argv, [], ["-s", gid]))
    return body


def addresses():
    """Tests a server and a client that are bound to one GID each, a server at the
    second port of a host, and a server and a client on one host."""
    with managed() as f:
        one, three, two = gids(f, "Hca1")[0], gids(f, "Hca3")[0], \
            gids(f, "Hca2")[1]
        for argv in ["ucmatose", "-f", "gid"], ["udaddy", "-f", "gid"]:
            expect_done(both(f, argv, ["-b", three], ["-b", one, "-s", three]))
            expect_done(both(f, argv, [], ["-s", two], ("Hca2", "Hca1")))
            expect_done(both(f, argv, [], ["-s", three], ("Hca3", "Hca3")))


def endpoints():
    """Tests endpoints of rdma_create_ep, whose addresses rdma_getaddrinfo makes."""
    with managed() as f:
        program = t.program("epcheck")
        server = start_server(f, "Hca3", [program, "server", "7471"])
        r = f.host("Hca1", program, "client", gids(f, "Hca3")[0], "7471",
                   "0xffff")
        expect_done([r, t.finish(server, PATIENCE_S)])


def partitions():
    """The messages of the CM have the P_Key of the path.  Only Hca1 and Hca3
    are in the partition."""
    t.need("tshark")
    capture, file = t.path("capture.pcap"), t.path("partitions")
    program = t.program("epcheck")
    with fabric(NET, "--capture", capture) as f:
        guids = [gids(f, host)[0].replace(":", "")[-16:]
                 for host in ("Hca1", "Hca3")]
        with open(file, "w") as out:
            out.write("Default=0x7fff: ALL=full, SELF=full;\n"
                      "Own=0x5: 0x%s=full, 0x%s=limited;\n" % tuple(guids))
        with managed_on(f, "Hca1", "-P", file):
            server = start_server(f, "Hca3", [program, "server", "7471"])
            gid = gids(f, "Hca3")[0]
            r = f.host("Hca2", program, "client", gid, "7471", "0x8005")
            expect("is in the partition of the P_Key 0x8005" in r.output,
                   r.output)
            r = f.host("Hca1", program, "client", gid, "7471", "0x8005")
            expect_done([r, t.finish(server, PATIENCE_S)])
    seen = dissect(capture, "infiniband.mad.mgmtclass == 7",
                   "infiniband.bth.p_key")
    # REQ, REP, RTU, DREQ, DREP
    expect(len(seen) >= 5, seen)
    expect({int(key, 0) & 0x7fff for key in seen} == {5}, seen)


def limited_members():
    """A limited member of a partition, Hca2, gets no path to another limited
    member, Hca3, and no answer from Hca3 to a MAD.  A full member, Hca1,
    reaches Hca3."""
    file = t.path("limited")
    with open(file, "w") as out:
        out.write("Default=0x7fff: ALL=limited, SELF=full;\n")
    with fabric(NET) as f, managed_on(f, "Hca1", "-P", file):
        gid = gids(f, "Hca3")[0]
        counters = [port_lid(f, "Hca3", "1"), "1"]
        server = start_server(f, "Hca3", ["ucmatose", "-f", "gid"])
        r = f.host("Hca2", "ucmatose", "-f", "gid", "-s", gid)
        expect("knows no path" in r.output, r.output)
        # No answer can come, so a short time is enough for each try.
        r = f.host("Hca2", "perfquery", "-t", "100", *counters)
        expect_failed(r)
        expect("PortXmitPkts" not in r.output, r.output)
        expect_ok(f.host("Hca1", "perfquery", "-t", str(1000 * HANG),
                         *counters))
        expect_done([f.host("Hca1", "ucmatose", "-f", "gid", "-s", gid),
                     t.finish(server, PATIENCE_S)])


def refusals():
    """A connection to a wrong destination fails, and a sentence says why."""
    with managed() as f:
        gid = gids(f, "Hca3")[0]
        server = start_server(f, "Hca3", ["ucmatose", "-f", "gid"])
        for words, want in (
                (["-f", "gid", "-s", "fe80::dead"],
                 "ROUTE_ERROR: the subnet manager knows no path to the GID "
                 "fe80::dead"),
                (["-f", "gid", "-s", "fec0::1"], "no active port of advib0"),
                (["-s", "127.0.0.1"], "no program listens at 127.0.0.1"),
                (["-f", "gid", "-s", gid, "-p", "999"], "no program listens")):
            r = f.host("Hca1", "ucmatose", *words)
            expect(r.status != 0 or "return status 0" not in r.output, r.output)
            expect(want in r.output, r.output)
        expect_done([f.host("Hca1", "ucmatose", "-f", "gid", "-s", gid),
                     t.finish(server, PATIENCE_S)])


def host_without_programs():
    """A host without a program does not answer a request for a connection."""
    with managed() as f:
        r = f.host("Hca1", "ucmatose", "-f", "gid", "-s", gids(f, "Hca3")[0],
                   timeout=UNREACHABLE_S, ADVERB_CM_FAST="1")
        expect("RDMA_CM_EVENT_UNREACHABLE" in r.output, r.output)
        expect(r.output.count("adverb: rdma_connect:") == 1, r.output)


def host_without_listeners():
    """A host whose programs do not use rdma_cm rejects a connection at once."""
    with managed() as f:
        gid = gids(f, "Hca3")[0]
        other = start(f, "Hca3", ["sh", "-c", "echo up; exec sleep 1000"])
        try:
            expect(other.stdout.readline() == b"up\n", "no program")
            r = f.host("Hca1", "ucmatose", "-f", "gid", "-s", gid)
        finally:
            os.killpg(other.pid, signal.SIGKILL)
            other.communicate()
        expect("no program listens at" in r.output, r.output)


def no_manager():
    with fabric() as f:
        r = f.host("Hca1", "ucmatose", "-f", "gid", "-s", gids(f, "Hca3")[0])
        expect("no subnet manager has configured it, or its link is down; start "
               "opensm" in r.output, r.output)
        with managed_on(f):
            gid = gids(f, "Hca3")[0]
        # Without OpenSM the ports stay active, but no subnet manager answers
        # path queries.
        r = f.host("Hca1", "ucmatose", "-f", "gid", "-s", gid)
        expect("answers that no subnet manager runs there" in r.output,
               r.output)


def server_is_killed():
    """A client gets an event if its server dies before the server answers."""
    with managed() as f:
        gid = gids(f, "Hca3")[0]
        server = start_server(f, "Hca3", ["ucmatose", "-f", "gid"])
        os.killpg(server.pid, signal.SIGSTOP)
        client = start(f, "Hca1", ["ucmatose", "-f", "gid", "-s", gid],
                       ADVERB_CM_FAST="1")
        # The request comes while the server is stopped or after its end: in
        # both cases the client is told.
        time.sleep(1)
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        r = t.finish(client, PATIENCE_S)
        expect("RDMA_CM_EVENT_REJECTED" in r.output or
               "RDMA_CM_EVENT_UNREACHABLE" in r.output, r.output)


def fabric_is_killed():
    """A server that waits for clients is told that its device is gone."""
    net, socket = t.path("net"), t.path("doomed-socket")
    with open(net, "w") as file:
        file.write(NET)
    doomed = t.start(fabric_argv("--socket", socket, net))
    try:
        expect(b"runs at" in doomed.stdout.readline(), "no fabric")
        f = Fabric.at(socket)
        server = start_server(f, "Hca3", ["ucmatose", "-f", "gid"])
        doomed.send_signal(signal.SIGKILL)
        doomed.wait()
        line, said = " ", ""
        while "all ids of rdma_cm get DEVICE_REMOVAL" not in line:
            line = server.stdout.readline().decode()
            expect(line, "the server prints no message:\n" + said)
            said += line
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()
    finally:
        doomed.kill()
        doomed.communicate()


MGID = "ff12:abcd:ffff::1234"


class Member:
    """A program that joins the group MGID, and joins the group again when the
    membership has ended."""

    def __init__(self, f, host, port):
        self.said = ""
        self.process = t.start(
            [t.adverb, "run", "--fabric=" + f.socket, "--host", host, "--",
             t.program("rejoins"), gids(f, host)[port - 1], MGID],
            stdin=subprocess.PIPE, env=t.environment())

    def wait_for(self, word):
        """Reads lines up to one that begins with the word.  Returns the number after
        the word."""
        while True:
            line = self.process.stdout.readline().decode()
            expect(line, "a member ends:\n" + self.said)
            self.said += line
            if line.startswith(word + " "):
                return int(line.split()[1])

    def loses(self):
        """Waits until the membership has ended and the group is joined again."""
        expect(self.wait_for("lost") == errno.ENETRESET, self.said)
        expect("MULTICAST_ERROR: the port is no member of" in self.said,
               self.said)
        self.wait_for("joined")


def memberships():
    """Ids with GIDs join a group by its GID.  A manager that starts again, or a
    link that goes down, ends the memberships with an event; after the programs
    have joined again they hear each other."""
    members = []
    with fabric() as f:
        with managed_on(f):
            members = [Member(f, "Hca2", 2), Member(f, "Hca3", 1)]
            lids = [m.wait_for("joined") for m in members]
            expect(lids[0] == lids[1] >= 0xc000, lids)
            for m in members:
                m.wait_for("hears")
        with managed_on(f):
            for m in members:
                m.loses()
            for m in members:
                m.wait_for("hears")
            lid = switch_lid(f, "Switch2")
            f.out("Hca1", "ibportstate", lid, "1", "disable")
            f.out("Hca1", "ibportstate", lid, "1", "enable")
            members[1].loses()
            members[1].wait_for("hears")
            for m in members:
                expect_ok(t.finish(m.process, PATIENCE_S))


t.case("ucmatose by GID", program("ucmatose"), AREA, "ucmatose -f gid")
t.case("udaddy by GID", program("udaddy"), AREA, "udaddy -f gid")
t.case("rdma_cm by GID from and to one GID, the second port, and this host",
       addresses)
t.case("ids with GIDs join groups, and again after they have lost them",
       memberships)
t.case("rdma_create_ep takes the GIDs of rdma_getaddrinfo", endpoints)
t.case("a connection in a partition is made in that partition", partitions)
t.case("two limited members of a partition do not reach each other", limited_members)
t.case("a wrong GID or a free port fails with a sentence",
       refusals)
t.case("a host without a program is unreachable", host_without_programs)
t.case("a host whose programs do not listen rejects a connection",
       host_without_listeners)
t.case("without a subnet manager a sentence asks for one", no_manager)
t.case("the client of a killed server is told", server_is_killed)
t.case("when the fabric is killed, a listener is told", fabric_is_killed)
t.end()
