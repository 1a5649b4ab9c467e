#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests programs over libibverbs by LID, on an emulated subnet under OpenSM."""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import perftest_check
import subnet
import system
from subnet import (NET, PATIENCE_S, Fabric, await_line, dissect, fabric,
                    fabric_argv, group_ports, managed, managed_on, patience,
                    port_lid)
from system import Fail, expect, expect_ok, listens, wait_until

AREA = "InfiniBand"
PORT = 18515  # of perftest and the pingpongs
t = system.Suite(__doc__)
subnet.use(t)


def start(f, host, argv, **env):
    """Starts and returns a program on a host of the fabric."""
    t.need(argv[0])
    return t.start([t.adverb, "run", "--fabric=" + f.socket, "--host", host,
                    "--", *argv], env=t.environment(**env))


def start_server(f, host, argv, **env):
    """Starts a server, waits until it listens, and returns its process."""
    server = start(f, host, argv, **env)
    end = time.monotonic() + PATIENCE_S
    while not listens(PORT):
        if server.poll() is not None or time.monotonic() > end:
            raise Fail("the server does not listen", t.finish(server, 1).output)
        time.sleep(0.01)
    return server


def both(f, argv, hosts, extra=("127.0.0.1",), **env):
    """Runs a program's server and client on two hosts of the fabric: `hosts` is two
    pairs of a host and the words that choose its port.  @extra: further arguments of
    the client.  Returns the results of the server and the client."""
    (one, at_one), (two, at_two) = hosts
    env = {**patience(), **env}
    server = start_server(f, one, [*argv, *at_one], **env)
    client = start(f, two, [*argv, *at_two, *extra], **env)
    return t.finish(server, PATIENCE_S), t.finish(client, PATIENCE_S)


# The path between Hca1 and Hca3 has two switches; Hca2's port 2 is at the switch of
# Hca1.
FAR = [("Hca1", ["-d", "advib0", "-i", "1"]),
       ("Hca3", ["-d", "advib0", "-i", "1"])]
NEAR = [("Hca1", ["-d", "advib0", "-i", "1"]),
        ("Hca2", ["-d", "advib0", "-i", "2"])]


def device_is_shown():
    with fabric() as f:
        said = f.out("Hca1", "ibv_devices")
        expect(re.findall(r"(\S+)\s+[0-9a-f]{16}\n", said) == ["advib0"], said)
        said = f.out("Hca1", "ibv_devinfo", "-v")
        expect("PORT_INIT" in said and "PORT_DOWN" in said, said)
        expect(re.search(r"phys_port_cnt:\s+2\b", said), said)
        expect(said.count("InfiniBand\n") == 2, said)
        expect(re.search(r"GID\[\s*0\]:\s+fe80:", said), said)
        with managed_on(f):
            lid = port_lid(f, "Hca3", "1")
            said = f.out("Hca3", "ibv_devinfo", "-v")
            expect("PORT_ACTIVE" in said, said)
            expect(re.search(r"port_lid:\s+%s\b" % lid, said), said)
            expect(re.search(r"sm_lid:\s+[1-9]", said), said)
            expect(re.search(r"phys_port_cnt:\s+1\b", said), said)
            said = f.out("Hca3", "cat", "/sys/class/infiniband/advib0/ports/1/"
                         "state", "/sys/class/infiniband/advib0/ports/1/lid")
            expect(said.split() == ["4:", "ACTIVE", "0x%x" % int(lid)], said)
        said = f.out("Hca1", "grep", "-r", "", "/sys/class/infiniband_mad")
        for kind in "umad", "issm":
            for i in 0, 1:
                expect("%s%d/ibdev:advib0\n" % (kind, i) in said and
                       "%s%d/port:%d\n" % (kind, i, i + 1) in said, said)
        said = f.out("Hca1", "ls", "/dev/infiniband")
        expect(said.split() == ["issm0", "issm1", "umad0", "umad1", "uverbs0"],
               said)


def pingpongs():
    with managed() as f:
        for kind in "rc", "uc", "ud", "srq":
            argv = ["ibv_%s_pingpong" % kind, "-n", "500"]
            if kind == "rc":
                argv.append("-c")  # compares the data
            for r in both(f, argv, FAR):
                expect_ok(r)
                expect("500 iters" in r.output, r.output)
                expect("invalid data" not in r.output, r.output)
        # with a GRH, from port to port of one switch
        for kind in "rc", "ud":
            for r in both(f, ["ibv_%s_pingpong" % kind, "-n", "500", "-g", "0"],
                          NEAR):
                expect_ok(r)
                expect(re.search(r"remote address: .*GID fe80::", r.output),
                       r.output)


def events_of_completions():
    with managed() as f:
        for r in both(f, ["ibv_rc_pingpong", "-e", "-n", "500"], NEAR):
            expect_ok(r)


# Hca1 and Hca2 have a link to each of two switches.  OpenSM runs on Hca3.
TWO_LINKS = """
Switch 8 "Switch1"
[1] "Hca1"[1]
[2] "Hca2"[1]
[3] "Hca3"[1]
[4] "Switch2"[4]

Switch 8 "Switch2"
[1] "Hca1"[2]
[2] "Hca2"[2]
[4] "Switch1"[4]

Hca 2 "Hca1"
[1] "Switch1"[1]
[2] "Switch2"[1]

Hca 2 "Hca2"
[1] "Switch1"[2]
[2] "Switch2"[2]

Hca 1 "Hca3"
[1] "Switch1"[3]
"""


def say(process, line):
    process.stdin.write(line)
    process.stdin.flush()


def await_word(process, word):
    """Reads lines of the process up to one that begins with @word.  Reads single
    bytes from the pipe, so that no line is in a buffer that select ignores."""
    end = time.monotonic() + PATIENCE_S
    line = b""
    while not (line.startswith(word) and line.endswith(b"\n")):
        if line.endswith(b"\n"):
            line = b""
        left = max(0, end - time.monotonic())
        if not select.select([process.stdout], [], [], left)[0]:
            raise Fail("an end does not print the word %s" % word.decode())
        byte = os.read(process.stdout.fileno(), 1)
        if not byte:
            raise Fail("an end has ended without the word %s" % word.decode())
        line += byte


def start_end(f, host, *words):
    return t.start([t.adverb, "run", "--fabric=" + f.socket, "--host", host,
                    "--", t.program("migrates"), *words],
                   env=t.environment(), stdin=subprocess.PIPE)


@contextlib.contextmanager
def ends_of_verbs(f, *options):
    """Yields two connected ends of `migrates`, of which the first has @options."""
    ends = [start_end(f, host, *words)
            for host, words in (("Hca1", options), ("Hca2", ()))]
    try:
        said = [end.stdout.readline() for end in ends]
        for end, line in zip(ends, reversed(said)):
            expect(line.count(b" ") == 2, "an end does not start: %s" % line)
            say(end, line)
        yield ends
    finally:
        end_all(ends)


@contextlib.contextmanager
def ends_of_cm(f):
    """Yields two ends of `migrates` that rdma_cm connects by two paths."""
    said = f.out("Hca2", "ibv_devinfo", "-v")
    gids = re.findall(r"GID\[\s*0\]:\s+([0-9a-f:]+)", said)
    expect(len(gids) == 2, said)
    ends = [start_end(f, "Hca2", "server", "7471")]
    try:
        await_word(ends[0], b"listens")
        ends.append(start_end(f, "Hca1", "client", *gids, "7471"))
        yield ends
    finally:
        end_all(ends)


def end_all(ends):
    for end in ends:
        end.kill()
        end.communicate()


def migrate(cut, make_ends, *options):
    """Runs both ends of a connection with two paths.  Calls @cut(fabric) when both
    ends are armed or, if the first end has @options, at once.  Expects that both ends
    migrate and lose nothing."""
    with managed(TWO_LINKS, "Hca3") as f, make_ends(f, *options) as ends:
        for end in ends:
            if not options:
                await_word(end, b"armed")
        cut(f)
        for end in ends:
            await_word(end, b"migrated")
        for end in ends:
            await_word(end, b"done")
        for end in ends:
            out = end.communicate(timeout=PATIENCE_S)[0].decode()
            expect(end.returncode == 0, out)


def cut_link(f):
    """Takes the link between Switch1 and Hca2 down."""
    f.out("Hca3", "ibportstate", "-D", "0,1", "2", "disable")


def cut_is_survived():
    """The link is cut during a load."""
    migrate(cut_link, ends_of_verbs)


def cut_is_survived_by_cm():
    """rdma_cm loads the alternate path, which the REQ has, at both ends."""
    migrate(cut_link, ends_of_cm)


def program_migrates():
    migrate(lambda f: None, ends_of_verbs, "program")


PERFTEST = [
    ["ib_write_bw", "-s", "65536", "-n", "100"],
    ["ib_read_bw", "-s", "65536", "-n", "100"],
    ["ib_send_bw", "-s", "5000", "-n", "100"],
    ["ib_send_bw", "-c", "UD", "-s", "2048", "-n", "100"],
    ["ib_write_bw", "-c", "UC", "-s", "4096", "-n", "100"],
    ["ib_atomic_bw", "-n", "100"],
    ["ib_send_lat", "-n", "100"],
    ["ib_write_lat", "-n", "100"],
    ["ib_read_lat", "-n", "100"],
]


def perftest():
    with managed() as f:
        for argv in PERFTEST:
            for r in both(f, argv, FAR):
                expect_ok(r)
            rows = perftest_check.rows(r.output.splitlines())
            expect(rows, "%s prints no result\n%s" % (argv[0], r.output))


# Options of perftest for the path, and the filters by which tshark selects packets
# that have the path.
PATHS = [
    (["-S", "3"], "infiniband.lrh.sl == 3"),
    (["--pkey_index", "1"], "infiniband.bth.p_key == 0x8001"),
    (["-x", "0"], "infiniband.lrh.lnh == 3"),
]
SERVICES = [
    ["ib_send_bw", "-s", "3000"],
    ["ib_send_bw", "-c", "UC", "-s", "3000"],
    ["ib_send_bw", "-c", "UD", "-s", "1000"],
    ["ib_write_bw", "-s", "3000"],
    ["ib_write_bw", "-c", "UC", "-s", "3000"],
    ["ib_read_bw", "-s", "3000"],
    ["ib_atomic_bw"],
]


def paths_of_perftest():
    """All packets of a run, answers included, have the SL, the P_Key or the GRH
    that the option of the run asks for."""
    t.need("tshark")
    partitions = t.path("partitions")
    with open(partitions, "w") as out:
        out.write("Default=0x7fff: ALL=full, SELF=full;\n"
                  "Part1=0x1: ALL=full, SELF=full;\n")
    for option, shown in PATHS:
        capture = t.path("path%s.pcap" % option[0])
        with (fabric(NET, "--capture", capture) as f,
              managed_on(f, "Hca1", "-P", partitions)):
            for argv in SERVICES:
                for r in both(f, [*argv, *option, "-n", "20"], FAR):
                    expect_ok(r)
        sent = "infiniband.bth.destqp > 1 && "
        expect(len(dissect(capture, sent + shown)) >= 20 * len(SERVICES),
               "no packets with " + shown)
        other = dissect(capture, sent + "!(%s)" % shown)
        expect(not other, "\n".join(other[:5]))


def captured(f, argv, hosts):
    """Runs a server and a client, as both() does; each side writes a capture.
    Returns for each side a dict of the packets of its capture that carry SENDs:
    the key is a packet's fields, the value the packet's CRC.  If several packets
    have the same fields, the dict has the CRC of the first of them."""
    (one, at_one), (two, at_two) = hosts
    paths = [t.path("server.pcapng"), t.path("client.pcapng")]
    for path in paths:
        # adverb would add the packets to those of an earlier run
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    server = start_server(f, one, [*argv, *at_one], ADVERB_PCAP=paths[0])
    client = start(f, two, [*argv, *at_two, "127.0.0.1"], ADVERB_PCAP=paths[1])
    for side in server, client:
        expect_ok(t.finish(side, PATIENCE_S))
    for path in paths:
        bad = dissect(path, "_ws.malformed || _ws.expert.severity >= 0x600000")
        expect(not bad, "\n".join(bad[:5]))
    sides = []
    for path in paths:
        lines = dissect(path, "infiniband.bth.opcode <= 5", "infiniband.lrh.slid",
                        *("infiniband.bth." + field
                          for field in ("destqp", "opcode", "psn")),
                        "infiniband.invariant.crc")
        sides.append(dict(line.rsplit("\t", 1) for line in reversed(lines)))
    return sides


def captures_of_programs():
    """ADVERB_PCAP has the packets by LID of each side: if no packet is lost, the
    captures of both sides have the same packets."""
    t.need("tshark")
    with managed() as f:
        for more in [], ["-g", "0"]:
            sides = captured(f, ["ibv_rc_pingpong", "-n", "50", "-s", "5000",
                                 *more], FAR)
            # 50 messages in each direction, each of five packets of up to 1024
            # bytes of payload.  captured() ignores packets that are sent again:
            # such a packet has the same PSN, but another CRC if only then it asks
            # for an acknowledgement, and the other side may have ended before the
            # packet comes.
            for side in sides:
                expect(len(side) == 500, "%d packets, not 500" % len(side))
            expect(sides[0] == sides[1], "the captures differ: %s" %
                   (set(sides[0].items()) ^ set(sides[1].items())))


def multicast():
    """The server and the client of ib_send_bw join a group through OpenSM.  The
    client sends when the switch of both hosts has the route."""
    with managed() as f:
        argv = ["ib_send_bw", "-c", "UD", "-g", "-s", "1024", "-n", "100"]
        gate = t.path("gate")
        (one, at_one), (two, at_two) = NEAR
        env = {"LD_PRELOAD": t.program("joined_gate.so")}
        server = start_server(f, one, [*argv, *at_one], **env)
        client = start(f, two, [*argv, *at_two, "127.0.0.1"], JOINED_GATE=gate,
                       **env)
        wait_until(lambda: {"1", "2"} in group_ports(f, "Switch1").values(),
                   "OpenSM makes no route for the group", PATIENCE_S)
        with open(gate, "w"):
            pass
        for p in server, client:
            expect_ok(t.finish(p, PATIENCE_S))


def port_without_manager():
    """A message is printed once about a queue pair at a port that is not active."""
    with fabric() as f:
        r = f.host("Hca1", t.program("lidcheck"), "inactive")
        expect_ok(r)
        expect(r.output.count("is in the state Initialize and not Active") == 1,
               r.output)


def checks_of_verbs():
    with managed() as f:
        r = f.host("Hca1", t.program("lidcheck"), "verbs")
        expect_ok(r)


def wrong_qkeys():
    """If a queue pair drops a datagram with a wrong Q_Key, the port of the
    queue pair sends a trap to the subnet manager and counts the violation."""
    with managed() as f:
        expect_ok(f.host("Hca1", t.program("lidcheck"), "qkey"))
        await_line(f.log, "Generic Notice type:2 num:258")
        said = f.out("Hca1", "smpquery", "portinfo", port_lid(f, "Hca1", "1"),
                     "1")
        expect(re.search(r"QkeyViolations:\.*1\b", said), said)


def links_that_end():
    """The link of a port is taken down and comes up again."""
    with managed() as f:
        watcher = start(f, "Hca3", [t.program("lidcheck"), "watch"])
        try:
            expect(watcher.stdout.readline() == b"watches\n", "no watcher")
            lid = port_lid(f, "Hca3", "1")
            expect(lid, "Hca3 has no LID")
            # port 1 of Switch2 leads to Hca3
            f.out("Hca1", "ibportstate", "-D", "0,1,3", "1", "disable")
            line = watcher.stdout.readline().decode()
            while not line.startswith("PORT_ERR 1"):
                expect(line, "no PORT_ERR")
                line = watcher.stdout.readline().decode()
            f.out("Hca1", "ibportstate", "-D", "0,1,3", "1", "enable")
            while not line.startswith("PORT_ACTIVE 1"):
                expect(line, "no PORT_ACTIVE")
                line = watcher.stdout.readline().decode()
        finally:
            watcher.kill()
            watcher.communicate()


def fabric_is_killed():
    """Both sides of a transfer print a message, and the client ends."""
    net, socket = t.path("net"), t.path("doomed-socket")
    with open(net, "w") as f:
        f.write(NET)
    doomed = t.start(fabric_argv("--socket", socket, net))
    try:
        expect(b"runs at" in doomed.stdout.readline(), "no fabric")
        f = Fabric.at(socket)
        with managed_on(f):
            pass  # the ports stay active without OpenSM
        argv = ["ib_write_bw", "-n", "5000000"]
        env = patience()
        server = start_server(f, "Hca1", argv + FAR[0][1], **env)
        client = start(f, "Hca3", [*argv, *FAR[1][1], "127.0.0.1"], **env)
        sent = 0
        while sent < 10000:
            expect(client.poll() is None, "the client has ended")
            said = f.out("Hca2", "perfquery", port_lid(f, "Hca3", "1"), "1")
            sent = int(re.search(r"PortXmitPkts:\.*(\d+)", said).group(1))
        # While the client is stopped, the server waits for it, so the server
        # notices the end of the fabric by itself.
        client.send_signal(signal.SIGSTOP)
        doomed.send_signal(signal.SIGKILL)
        doomed.wait()
        message = "the link to the fabric at " + socket
        line = " "
        while message not in line:
            line = server.stdout.readline().decode()
            expect(line, "the server prints no message")
        client.send_signal(signal.SIGCONT)
        said = client.communicate(timeout=PATIENCE_S)[0].decode()
        expect(client.returncode != 0, "the client succeeds:\n" + said)
        expect(said.count(message) == 1, said)
        server.kill()
        server.communicate()
    finally:
        doomed.kill()
        doomed.communicate()


t.case("libibverbs shows the adapter of the host and its ports",
       device_is_shown, AREA, "ibv_devinfo")
t.case("RC, UC, UD and SRQ pingpongs by LID, with and without GRH", pingpongs,
       AREA, "ibv_rc_pingpong")
t.case("a pingpong by LID works with completion events", events_of_completions,
       AREA, "ibv_rc_pingpong -e")
t.case("perftest by LID", perftest, AREA, "perftest")
t.case("perftest by LID with another SL, with another P_Key, and with a GRH",
       paths_of_perftest, AREA, "perftest")
t.case("captures of programs have their packets by LID", captures_of_programs)
t.case("perftest by multicast group", multicast, AREA, "ib_send_bw -g")
t.case("a message names the state of a port that no manager has configured",
       port_without_manager)
t.case("verbs by LID accept valid arguments and refuse others",
       checks_of_verbs)
t.case("OpenSM is told of a datagram with a wrong Q_Key", wrong_qkeys)
t.case("a link that goes down and up raises the events of its port",
       links_that_end)
t.case("a connection with two paths loses nothing when a link is cut",
       cut_is_survived)
t.case("a connection of rdma_cm with two paths loses nothing when a link is "
       "cut", cut_is_survived_by_cm)
t.case("a connection with two paths loses nothing when its program migrates it",
       program_migrates)
t.case("when the fabric is killed, both sides print a message",
       fabric_is_killed)
t.end()
