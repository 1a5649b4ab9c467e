#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests rdma_cm: the tools of librdmacm, perftest -R, qperf and fio, over lo and
between two namespaces, and the checks of tests/system/cm."""

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import icrc_check
import netlab
from perftest_check import check_rows
import system
from system import (Result, Skip, brokers, expect, expect_failed, expect_ok,
                    expect_silent, paced_ns)


def constant(path, name):
    """Returns the number that the file @path of the repository defines as
    @name."""
    with open(os.path.join(system.ROOT, path)) as f:
        return int(re.search(r"#define %s\s+(\d+)u\b" % name, f.read())[1])


netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)

# Programs of rdmacm-utils: each command, and a text that it prints on success.
TOOLS = (
    (["rping", "-C", "20", "-V"], ""),
    (["rping", "-C", "5", "-S", "60000", "-V"], ""),
    (["ucmatose"], "return status 0"),
    (["ucmatose", "-c", "10", "-C", "20", "-S", "1000"], "return status 0"),
    (["udaddy"], "return status 0"),
    (["udaddy", "-c", "4", "-C", "20"], "return status 0"),
    (["cmtime", "-c", "50"], "connect"),
    (["rdma_server"], "rdma_client: end 0"),
    (["rdma_xserver"], "rdma_xclient: end 0"),
)
PERFTEST = [[tool, "-n", "200"] for tool in
            ("ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
             "ib_send_bw", "ib_send_lat", "ib_atomic_bw", "ib_atomic_lat")]
UD = [[tool, "-c", "UD", "-n", "200"]
      for tool in ("ib_send_bw", "ib_send_lat")]
ADDRESSES = "127.0.0.1", "::1"
HERE, THERE = "10.1.0.1", "10.1.0.2"  # the addresses that lab.interface() sets
# How long, in ns, the broker holds a request for a service that no program
# has, and a request for a service that a program has just left.
HOLD_NS = constant("src/cm/cm.h", "CM_HOLD_NS")
AGAIN_NS = constant("src/broker/cmserver_object.c", "AGAIN_NS")


# From release 45 of rdma-core on, the ends of cmtime also connect by TCP.  For
# an IPv6 address cmtime of these releases prints IPV4_ALONE.
IPV4_ALONE = "getaddrinfo error: Address family for hostname not supported"


def tool(argv, want, address):
    def body():
        t.need(argv[0])
        r = t.pair(argv, ["--address", address])
        if IPV4_ALONE in r.output:
            raise Skip("this %s supports only IPv4" % argv[0])
        expect_ok(r)
        expect(want in r.output, "the tool does not print: " + want, r)
        expect_silent(r)
    t.case("%s, %s" % (" ".join(argv), address), body, "rdma_cm", argv[0])


def perftest(argv, address):
    def body():
        t.need(argv[0])
        r = t.pair(argv + ["-R"], ["--address", address], **t.paced())
        expect_ok(r)
        check_rows(r)
    t.case("%s -R, %s" % (" ".join(argv), address), body, "rdma_cm", argv[0])


def was_in_time(env):
    """Returns whether the server listened while the broker held the client's
    request.  The request reaches the broker after the call of rdma_connect, and
    the server listens before rdma_listen returns, so a True is certain.  A
    qperf server does not listen after its client was rejected.  If the server
    has not listened, returns whether the broker should hold the request even
    now: if so, the client was rejected too early, and the case fails."""
    heard, called = paced_ns(env, ".hears"), paced_ns(env, ".calls")
    left = paced_ns(env, ".leaves") if os.path.exists(env["PACE"] + ".leaves") else 0
    t.note("held %d ms" % ((heard - called) // 1000000))
    return heard < max(called + HOLD_NS, left + AGAIN_NS)


def held(argv, late_ms, body, **env):
    """Returns a case.  @body runs a program whose server listens @late_ms after
    the client has sent a request, and returns the Result."""
    def judged():
        t.need(argv[0])
        paced = t.paced(PACE_HELD=str(late_ms), **env)
        r = body(argv, paced)
        in_time = was_in_time(paced)
        if r.status and not in_time:
            raise Skip("this machine is too busy: the server listened when "
                       "the request was not held any more")
        expect_ok(r)
        expect(os.path.exists(paced["PACE"] + ".hears"),
               "the server has not waited for the request", r)
    return judged


def perftest_held(argv):
    """Adds a case: perftest's server listens a second time, after its client
    has sent the request.  If a program has just left the service, the broker
    holds the request longer (AGAIN_NS) than if no program has had the service
    (CM_HOLD_NS)."""
    def body(words, env):
        r = t.pair([*words, "-R"], **env)
        if r.status == 0:
            check_rows(r)
        return r
    t.case("%s -R, whose request is held until its server listens again" %
           " ".join(argv), held(argv, 300, body), "rdma_cm", argv[0])


def run_qperf(argv, env):
    server, client = lab.begin(
        [*argv, "-lto", str(system.HANG)],
        [*argv, "127.0.0.1", "-to", str(system.HANG), "-cm", "1", "-t", "1",
         "rc_lat"],
        server_env=env, client_env=env, client_side="here")
    r = t.finish(client, system.HANG)
    server.kill()  # a qperf server never ends by itself
    r.output += t.finish(server, 5).output
    return r


def qperf_held():
    argv = ["qperf", "-lp", "%"]

    def strict():
        t.need("qperf")
        r = run_qperf(argv, t.paced(PACE_HELD="300000", PACE_FIRST="1",
                                    ADVERB_STRICT="1"))
        expect_failed(r)
        expect("REJECTED: no program listens" in r.output,
               "the client is not rejected at once", r)

    t.case("qperf, whose request is held until its server listens",
           held(argv, 0, run_qperf, PACE_FIRST="1"), "rdma_cm", "qperf")
    t.case("qperf, whose request is not held with ADVERB_STRICT", strict)


def requests_held():
    """Adds cases in which a request comes before the server listens, and the
    broker holds the request.  In the cases of other functions the client waits
    until the server listens.  Otherwise, on a busy machine, the broker might
    reject the request before the server listens."""
    qperf_held()
    for argv in PERFTEST + UD:
        if argv[0] == "ib_write_bw" or argv in UD[:1] or t.options.full:
            perftest_held(argv)


def over_lo():
    for address in ADDRESSES:
        for argv, want in TOOLS:
            # over_lo6() tests with ::1 the others that can listen on IPv6
            if address != "::1" or argv[0] in ("rping", "cmtime"):
                tool(argv, want, address)
    for argv in PERFTEST + UD:
        perftest(argv, "127.0.0.1")
    perftest(["ib_write_bw", "-q", "8", "-n", "200"], "127.0.0.1")
    perftest(["ib_write_bw", "-z", "-n", "200"], "127.0.0.1")


def start(side, argv, **env):
    """Starts one end in the background.  Returns its process."""
    return lab.start(side, argv, **env)


def listens(side, argv, **env):
    """Starts a server, and returns when librdmacm says that it listens."""
    ready, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    p = t.start([t.adverb, "run", "--", *argv],
                env=t.environment(ADVERB_READY_FD=str(theirs), **env),
                into=lambda words: lab.into(side, words), pass_fds=[theirs])
    os.close(theirs)
    got = os.read(ready, 1)
    os.close(ready)
    expect(got, "%s ends before it listens" % argv[0],
           None if got else t.finish(p, 5))
    return p


def ends(name, server, client, want="", there="there"):
    """Adds a case with a server in `here`, and a client in `there`, over a
    veth, or in `here`, over lo."""
    def body():
        t.need(server[0])
        lab.unwire()
        if there == "there":
            lab.wire("v0", 1500, ("10.1.0.1/24", "fd00:1::1/64"),
                     ("10.1.0.2/24", "fd00:1::2/64"))
        more = t.paced() if "-R" in server else {}
        s = listens("here", server, **more)
        c = t.finish(start(there, client, **more), system.HANG)
        s = t.finish(s, system.HANG if c.status == 0 else 3)
        both = Result(0, "\n".join(
            "%s| %s" % (side, line) for side, r in (("server", s), ("client", c))
            for line in r.output.splitlines()))
        expect(s.status == c.status == 0,
               "exit status %d, %d" % (s.status, c.status), both)
        # adverb prints a message about fio, which destroys its completion
        # queues before the queue pairs that use them.
        if server[0] != "fio":
            expect_silent(both)
        expect(want in both.output, "no " + want, both)
    t.case(name, body, "rdma_cm over veth" if there == "there" else "rdma_cm",
           server[0])


def over_lo6():
    """Adds cases with ::1 of programs that can listen on IPv6.  rdma_xserver
    cannot, and perftest -R does not look up IPv6 addresses."""
    for server, client, want in (
            (["ucmatose", "-f", "ipv6", "-b"],
             ["ucmatose", "-f", "ipv6", "-s"], "return status 0"),
            (["udaddy", "-f", "ipv6", "-b"], ["udaddy", "-f", "ipv6", "-s"],
             "return status 0"),
            (["rdma_server", "-s"], ["rdma_client", "-s"],
             "rdma_client: end 0")):
        ends("%s, ::1" % server[0], server + ["::1"], client + ["::1"], want,
             "here")


def fio():
    """Adds cases of fio with WRITEs and READs.  There is no case with SENDs: fio
    sleeps half a second instead of waiting until its peer has posted receives,
    and does not ask for RNR retries."""
    for verb, size, depth in (("write", "4k", 16), ("write", "1m", 2),
                              ("read", "4k", 16)):
        argv = ["fio", "--thread", "--name=job", "--ioengine=rdma",
                "--port=7300", "--bs=" + size, "--size=8M",
                "--iodepth=%d" % depth]
        for at, there in ("127.0.0.1", "here"), ("10.1.0.1", "there"):
            ends("fio, %s of %s, %s" % (verb, size, at), [*argv, "--rw=read"],
                 [*argv, "--rw=write", "--hostname=" + at, "--verb=" + verb],
                 "io=8192KiB", there)


def over_veth():
    for a in "10.1.0.1", "fd00:1::1":
        six = ["-f", "ipv6"] if ":" in a else []
        for server, client, want in (
                (["rping", "-s", "-a", a, "-C", "20", "-V"],
                 ["rping", "-c", "-a", a, "-C", "20", "-V"], ""),
                (["rping", "-s", "-a", a, "-C", "5", "-q"],
                 ["rping", "-c", "-a", a, "-C", "5", "-q"], ""),
                (["ucmatose", "-b", a, *six],
                 ["ucmatose", "-s", a, *six], "return status 0"),
                (["ucmatose", "-b", a, *six, "-c", "8", "-m"],
                 ["ucmatose", "-s", a, *six, "-c", "8", "-m"],
                 "return status 0"),
                (["udaddy", "-b", a, *six], ["udaddy", "-s", a, *six],
                 "return status 0"),
                (["udaddy", "-b", a, *six, "-c", "4"],
                 ["udaddy", "-s", a, *six, "-c", "4"], "return status 0")):
            ends("%s over veth" % " ".join(server), server, client, want)
    # Without -s these servers listen on IPv4 only, and perftest -R does not support
    # IPv6.
    for tool in "server", "xserver":
        client = tool.replace("server", "client")
        ends("rdma_%s over veth" % tool, ["rdma_" + tool],
             ["rdma_" + client, "-s", "10.1.0.1"], "rdma_%s: end 0" % client)
    for argv in PERFTEST + UD:
        words = argv + ["-R"]
        ends(" ".join(words) + " over veth", words, words + ["10.1.0.1"],
             "#bytes")


def unequal_mtus():
    """Adds cases with an MTU of 9000 at one end of a link and 1500 at the other
    end, which the kernel does not notice."""
    def wire(small="there"):
        lab.unwire()
        lab.wire("v0", 9000, ("10.1.0.1/24",), ("10.1.0.2/24",))
        lab.ip(small, "link set v0 mtu 1500")

    def pair(server, client):
        s = listens("there", server)
        c = lab.run("here", client)
        return t.finish(s, system.HANG if c.status == 0 else 3), c

    def told():
        t.need("rping")
        wire()
        s, c = pair(["rping", "-s", "-a", "10.1.0.2", "-C", "2"],
                    ["rping", "-c", "-a", "10.1.0.2", "-C", "2"])
        expect_ok(c)
        expect("asks for packets of 4096 bytes of data, and this interface "
               "receives at most 1024" in s.output,
               "the server prints no message about the size", s)

    def routed():
        t.need("rping")
        wire()
        lab.ip("here", "route add 10.1.0.2/32 dev v0 mtu 1500")
        words = ["rping", "-a", "10.1.0.2", "-C", "3", "-S", "60000", "-V"]
        s, c = pair([*words, "-s"], [*words, "-c"])
        expect_ok(c)
        expect("asks for packets" not in s.output,
               "the client asks for longer packets than the route carries", s)

    def lost():
        t.need("ibv_rc_pingpong")
        wire("here")
        words = ["ibv_rc_pingpong", "-g", "1", "-s", "8192", "-n", "5", "-p",
                 "%"]
        r = lab.both([*words, "-m", "1024"], [*words, "-m", "4096",
                                              "10.1.0.1"],
                     server_env={"ADVERB_STRICT": "1"},
                     # GSO is off, since a veth passes a batch of GSO without
                     # regard to the length of the packets.
                     client_env={"ADVERB_STRICT": "1", "ADVERB_GSO": "0"})
        expect("transport retry counter exceeded" in r.output,
               "the long packets have arrived", r)
        expect("carry packets with 4096 bytes of data" in r.output,
               "no message about the length of packets", r)

    t.case("a server reports a client that asks for longer packets than its "
           "interface receives", told, "rdma_cm over veth", "rping")
    t.case("a client asks for no longer packets than its route carries", routed,
           "rdma_cm over veth", "rping")
    t.case("a sender of packets that are too long for the peer is told to check "
           "the length", lost)


def await_tcp(p, port):
    """Waits until a socket listens at TCP port @port in the network namespace
    of the process @p, or @p ends."""
    row = re.compile(r":%04X [0-9A-F]+:0000 0A " % port)

    def is_over():
        for table in "tcp", "tcp6":
            with contextlib.suppress(OSError), \
                    open("/proc/%d/net/%s" % (p.pid, table)) as f:
                if row.search(f.read()):
                    return True
        return p.poll() is not None
    system.wait_until(is_over, "no socket listens at TCP port %d" % port)


def cmtime():
    """Adds cases of cmtime.  In releases whose ends do not connect by TCP first,
    its server does not end by itself.  From release 60 on, the two ends are
    equal: they connect to the address of a controller, and listen after that."""
    def begin(address, there, count):
        usage = t.run(["cmtime", "-h"]).output
        each = ["cmtime", "-c", count, "-b"]
        if "controller_address" in usage:
            s = start("here", [*each, address, "-C", address, "-L"])
            client = [*each, there, "-C", address]
        else:
            s = listens("here", [*each, address])
            client = ["cmtime", "-c", count, "-s", address]
        if "mimic" in usage:
            await_tcp(s, 7471)
        return s, lab.run("there", client)

    def body(address, there, count):
        def go():
            t.need("cmtime")
            lab.unwire()
            lab.wire("v0", 1500, ("10.1.0.1/24", "fd00:1::1/64"),
                     ("10.1.0.2/24", "fd00:1::2/64"))
            s, r = begin(address, there, count)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(s.pid, signal.SIGKILL)
            s = t.finish(s, 10)
            if IPV4_ALONE in r.output + s.output:
                raise Skip("this cmtime supports only IPv4")
            r.output += s.output
            expect_ok(r)
            expect(re.search(r"^\s*(full )?connect\s", r.output, re.M),
                   "cmtime prints no figures", r)
        return go
    for address, there in (("10.1.0.1", "10.1.0.2"),
                           ("fd00:1::1", "fd00:1::2")):
        for count in "1", "100":
            t.case("cmtime -c %s over veth, %s" % (count, address),
                   body(address, there, count), "rdma_cm over veth", "cmtime")


def no_rsockets():
    def body():
        t.need("riostream")
        r = t.adverb_run(["riostream", "-s", "127.0.0.1", "-S", "64"])
        expect_failed(r)
        expect("adverb: rsocket" in r.output, "no message about rsockets", r)
    # The case has no area, since docs/WORKS.md lists only programs that work.
    t.case("riostream: rsockets are refused with a message", body)


def multicast():
    """Adds cases with two members of a group and a sender, on one host and on
    two."""
    def body(sides, addresses, group="239.1.2.3"):
        def go():
            t.need("mckey")
            lab.unwire()
            lab.wire("v0", 1500, ("10.1.0.1/24", "fd00:1::1/64"),
                     ("10.1.0.2/24", "fd00:1::2/64"))
            words = ["mckey", "-m", group]
            # stdbuf has each line written at once, so that this case sees the
            # join.
            members = [start(side, ["stdbuf", "-oL"] + words + ["-b", address])
                       for side, address in zip(sides, addresses)]
            for m in members:
                wait_for(m, "joined dgid")
            # The last member runs on the sender's host.
            s = t.finish(start(sides[1], words + ["-b", addresses[1], "-s"]),
                         system.HANG)
            expect_ok(s)
            for m in members:
                r = t.finish(m, system.HANG)
                expect_ok(r)
                expect("data transfers complete" in r.output,
                       "a member has not received the data", r)
        return go
    t.case("mckey, two members beside the sender",
           body(("there", "there"), ("10.1.0.2", "10.1.0.2")), "rdma_cm",
           "mckey")
    # The kernel delivers by other code if a group has one member on a host.
    t.case("mckey, a member here and one beside the sender",
           body(("here", "there"), ("10.1.0.1", "10.1.0.2")), "rdma_cm",
           "mckey")
    t.case("mckey over IPv6, a member here and one beside the sender",
           body(("here", "there"), ("fd00:1::1", "fd00:1::2"), "ff0e::1:2"),
           "rdma_cm", "mckey")
    t.case("mckey, 127.0.0.1", body(("here",) * 2, ("127.0.0.1",) * 2),
           "rdma_cm", "mckey")
    t.case("mckey, ::1", body(("here",) * 2, ("::1",) * 2, "ff0e::1:2"),
           "rdma_cm", "mckey")


def wait_for(process, text, seconds=system.HANG):
    """Waits until a process has written @text.  Reads what the process has written
    until then, so t.finish() returns only what the process writes later."""
    said = b""
    os.set_blocking(process.stdout.fileno(), False)
    end = time.monotonic() + seconds
    while text.encode() not in said:
        expect(time.monotonic() < end and process.poll() is None,
               "the process does not print " + text, Result(0, said.decode()))
        said += process.stdout.read() or b""
        time.sleep(0.005)
    os.set_blocking(process.stdout.fileno(), True)


def refusals():
    def no_listener():
        r = t.adverb_run(["rping", "-c", "-a", "127.0.0.1", "-p", "7999",
                          "-C", "1"])
        expect_failed(r)
        expect("RDMA_CM_EVENT_REJECTED, error 8" in r.output,
               "no REJECTED with status 8", r)
        expect("no program listens at 127.0.0.1 port 7999" in r.output,
               "no message says that no program listens", r)

    def black_hole():
        lab.unwire()
        lab.wire("v0", 1500, ("10.1.0.1/24",), ("10.1.0.2/24",))
        # No broker answers from `there`, whose link is down.
        lab.ip("there", "link set v0 down")
        lab.ip("here", "neigh replace 10.1.0.9 lladdr 02:00:00:00:00:09 "
               "dev v0")
        r = lab.run("here", ["rping", "-c", "-a", "10.1.0.9", "-C", "1"], 60,
                    ADVERB_CM_FAST="1")
        expect_failed(r)
        expect("RDMA_CM_EVENT_UNREACHABLE, error -110" in r.output,
               "no UNREACHABLE with -110", r)
        expect("answers connection management" in r.output,
               "no message says that no host answers", r)

    def no_route():
        lab.unwire()
        r = lab.run("here", ["rping", "-c", "-a", "10.99.0.9", "-C", "1"])
        expect_failed(r)
        expect("RDMA_CM_EVENT_ADDR_ERROR" in r.output or
               "no address of an RDMA device" in r.output,
               "neither rping nor adverb prints a reason", r)

    def in_use():
        s = listens("here", ["rping", "-s", "-a", "127.0.0.1", "-P"])
        r = t.adverb_run(["rping", "-s", "-a", "127.0.0.1", "-C", "1"])
        os.killpg(s.pid, signal.SIGKILL)
        t.finish(s, 10)
        expect_failed(r)
        expect("127.0.0.1 port 7174 is in use" in r.output,
               "no message says that the port is in use", r)

    def of_loopback():
        """As with the kernel, a listener at 127.0.0.1 gets requests to each
        address of this host, but only from this host."""
        lab.unwire()
        lab.wire("v0", 1500, ("10.1.0.1/24",), ("10.1.0.2/24",))
        s = listens("here", ["rping", "-s", "-a", "127.0.0.1", "-P"])
        client = ["rping", "-c", "-a", "10.1.0.1", "-C", "3", "-V"]
        near = lab.run("here", client)
        far = lab.run("there", client)
        os.killpg(s.pid, signal.SIGKILL)
        t.finish(s, 10)
        expect_ok(near)
        expect("RDMA_CM_EVENT_REJECTED, error 8" in far.output,
               "a client of another host is not rejected", far)

    t.case("a listener at 127.0.0.1 is called at other addresses only from "
           "this namespace", of_loopback, "rdma_cm", "rping")
    t.case("no listener: REJECTED at once", no_listener, "rdma_cm", "rping")
    t.case("a black hole: UNREACHABLE", black_hole, "rdma_cm", "rping")
    t.case("no route: an error with a reason", no_route, "rdma_cm", "rping")
    t.case("a port that another process has is in use", in_use, "rdma_cm",
           "rping")


def connect_once():
    """Returns the command of a pair that connects once.  Each pair has a server
    of its own, since rping -P confuses requests that come at once.  The rping
    of later releases is not used, because once in a few hundred runs it waits
    for ever: at its end it joins its event thread, which may wait for an event
    that rdma_destroy_id has removed.  The kernel's rdma_destroy_id removes such
    an event, too."""
    t.need("rping")
    with open(shutil.which("rping"), "rb") as f:
        if b"Failed to signal CM thread" not in f.read():
            return t.pair_argv(["rping", "-C", "1", "-V"])
    return t.pair_argv(["ucmatose"])


def many(count, at_once):
    def begin():
        return t.start(connect_once())

    def body():
        running, failed, begun = [], None, 0
        while begun < count or running:
            while begun < count and len(running) < at_once:
                running.append(begin())
                begun += 1
            r = t.finish(running.pop(0), system.HANG + 10)
            if r.status and not failed:
                failed = r
        expect(not failed, "a pair fails", failed)
    t.case("%d connects, %d at once" % (count, at_once), body,
           "rdma_cm", "rping")


def throttled(count, at_once):
    """Adds a case with many connects where processors are scarce: each pair may
    run for 30 ms of each 100 ms."""
    def body():
        argv = connect_once()
        neighbours = [system.spin(36000) for _ in range(2)]
        running, begun = [], 0
        try:
            while begun < count or running:
                while begun < count and len(running) < at_once:
                    running.append(t.start(argv))
                    begun += 1
                time.sleep(0.03)
                system.pause(running, 0.07)
                for p in [p for p in running if p.poll() is not None]:
                    running.remove(p)
                    expect_ok(t.finish(p, system.HANG))
        finally:
            for n in neighbours:
                n.kill()
                n.wait()
            for p in running:
                os.killpg(p.pid, signal.SIGKILL)
                p.communicate()
    t.case("%d connects, %d at once, each stopped for 70 %% of the time, "
           "beside two busy neighbours" % (count, at_once), body, "rdma_cm",
           "rping")


def size_of(pid):
    """Returns the bytes of resident memory and the number of descriptors of a
    broker."""
    return resident(pid), len(os.listdir("/proc/%d/fd" % pid))


def deaths(rounds):
    """Adds a case that repeatedly kills one side of a pair at a random moment: a
    client notices that its server is dead, the next pair can use the port, and
    the broker does not grow."""
    def side(name, *words):
        """Returns a command that runs rping, with its output in a file, line by
        line."""
        return ["sh", "-c", 'exec "$@" >%s 2>&1' % name, "sh", "stdbuf", "-oL",
                "rping", *words, "-a", "127.0.0.1", "-C", "100000"]

    def said(name):
        """Returns the output of this side, "" if its shell has not begun."""
        try:
            with open(t.path(name), errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def one(dice):
        for name in "server", "client":  # the output of the last round
            with contextlib.suppress(FileNotFoundError):
                os.unlink(t.path(name))
        s = listens("here", side("server", "-s", "-d"))
        c = t.start([t.adverb, "run", "--", *side("client", "-c", "-d")])
        time.sleep(dice.random() * 0.5)  # the random moment of the kill
        first, other, name = (s, c, "client") if dice.random() < 0.5 else \
            (c, s, "server")
        os.killpg(first.pid, signal.SIGKILL)
        t.finish(first, system.HANG)
        if other is s and "CONNECT_REQUEST" not in said("server"):
            # A server that has seen a client ends by itself, and must not see a
            # second client: rping mistakes any later request for the request
            # that it serves.  This server may still see the killed client's
            # request if that client has resolved the route.
            if "resolve_route successful" in said("client"):
                os.killpg(s.pid, signal.SIGKILL)
                t.finish(s, system.HANG)
                return
            t.adverb_run(["rping", "-c", "-a", "127.0.0.1", "-C", "1"],
                         ADVERB_CM_FAST="1")
        # rping does not end by itself if the disconnect comes before rping has
        # seen the connection: it joins a thread that waits for ever.
        system.wait_until(lambda: other.poll() is not None or
                          "wait for CONNECTED state" in said(name),
                          "the survivor does not notice")
        expect(other.poll() is None or other.poll() >= 0,
               "the survivor ends by a signal", Result(0, said(name)))
        if other.poll() is None:
            os.killpg(other.pid, signal.SIGKILL)
        t.finish(other, system.HANG)

    def rounds_of(dice, seed):
        """Yields the sizes of the brokers after each round."""
        for i in range(rounds):
            try:
                one(dice)
            except system.Fail as why:
                raise system.Fail("round %d of seed %d: %s" % (i, seed, why),
                                  why.output)
            yield {pid: size_of(pid) for pid in brokers()}

    def body():
        t.need("rping")
        seed = random.randrange(1 << 32)
        # The broker stays as long as this server runs.
        keeper = listens("here", ["rping", "-s", "-a", "127.0.0.1", "-p",
                                  "7175"])
        sizes = list(rounds_of(random.Random(seed), seed))
        os.killpg(keeper.pid, signal.SIGKILL)
        t.finish(keeper, system.HANG)
        kept = set(sizes[0]).intersection(*sizes)
        expect(kept, "no broker lives through all rounds")
        # The last size may exceed the largest of the first ten only a little.
        for pid in kept:
            was = [max(sort) for sort in zip(*(s[pid] for s in sizes[:10]))]
            now = sizes[-1][pid]
            expect(now[0] <= was[0] + (512 << 10) and now[1] <= was[1] + 8,
                   "the broker had %d bytes and %d descriptors, now %d, %d" %
                   (*was, *now))
        r = t.pair(["rping", "-C", "3", "-V"])
        expect_ok(r)
    t.case("%d times one side is killed" % rounds, body, "rdma_cm", "rping")


def survivors():
    """Adds a case: a listener still works when its broker is killed and another
    broker takes over."""
    def body():
        t.need("rping")
        s = listens("here", ["rping", "-s", "-P", "-a", "127.0.0.1"])
        expect(brokers(), "there is no broker")
        for pid in brokers():
            os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + system.HANG
        # A client may be rejected until the next broker knows the listener.
        while True:
            r = t.adverb_run(["rping", "-c", "-a", "127.0.0.1", "-C", "1"])
            if r.status == 0 or time.monotonic() > end:
                break
        os.killpg(s.pid, signal.SIGKILL)
        t.finish(s, 10)
        expect_ok(r)
    t.case("a listener outlives a broker that is killed", body, "rdma_cm",
           "rping")


def hostile():
    """Adds a case: a host without adverb sends well-formed and malformed frames to
    QP1."""
    def body():
        t.need("rping")
        s = listens("here", ["rping", "-s", "-P", "-a", "127.0.0.1"])
        dice = random.Random(5)
        with lab.interface(), lab.socket(THERE) as out:
            source = out.getsockname()[1]
            for i in range(4000):
                out.sendto(mad_frame(dice, source, i), (HERE, 4791))
        r = t.adverb_run(["rping", "-c", "-a", "127.0.0.1", "-C", "3", "-V"])
        sizes = [resident(pid) for pid in brokers()]
        os.killpg(s.pid, signal.SIGKILL)
        t.finish(s, 10)
        expect_ok(r)
        expect(max(sizes) < 64 << 20, "the broker has %d bytes" % max(sizes))
    t.case("the broker survives 4000 malformed and unexpected messages to QP1",
           body, "rdma_cm", "rping")


def resident(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * 4096


def mad_frame(dice, source, i):
    """Returns a UD frame for QP1 with a MAD of connection management: for odd
    @i a well-formed REQ to a service that no program has, otherwise a MAD of
    any kind with random contents.  If 5 divides @i, the MAD is cut short."""
    mad = bytearray(dice.randbytes(256))
    mad[0:4] = 1, 7, 2, 3
    mad[16:20] = 0, dice.randrange(0x0f, 0x1c), 0, 0
    gids = [bytes(10) + b"\xff\xff" + socket.inet_aton(ip)
            for ip in (THERE, HERE)]
    if i % 2:
        mad[17] = 0x10
        mad[24 + 8:24 + 16] = (0x01060000 | 7999).to_bytes(8, "big")
        mad[24 + 43] &= ~6  # RC
        mad[24 + 50] &= ~8
        mad[24 + 56:24 + 88] = b"".join(gids)
        mad[24 + 140:24 + 142] = 0, 0x40
    if i % 5 == 0:
        mad = mad[:dice.randrange(0, 256, 4)]
    bth = bytes((0x64, 0x40, 0xff, 0xff, 0, 0, 0, 1)) + i.to_bytes(4, "big")
    deth = (0x80010000).to_bytes(4, "big") + b"\0\0\0\1"
    return icrc_check.seal(THERE, HERE, source,
                           bth + deth + bytes(mad))


if not t.options.list:
    lab.ip("here", "address add 192.0.2.7/32 dev lo")
t.checks("cmcheck", "rdma_cm", "192.0.2.7")
t.checks("last_ack", "rdma_cm", "192.0.2.7", ADVERB_DIRECT="0")
t.checks("statecheck", "rdma_cm", "192.0.2.7")
if not t.options.list:
    lab.ip("here", "address del 192.0.2.7/32 dev lo")
t.checks("endcheck", "rdma_cm")
t.checks("listencheck", "rdma_cm")
t.checks("udcheck", "rdma_cm")
over_lo()
requests_held()
over_lo6()
fio()
over_veth()
unequal_mtus()
cmtime()
no_rsockets()
multicast()
refusals()
many(100 if not t.options.full else 10000, 1)
many(200 if not t.options.full else 10000, 64)
throttled(50 if not t.options.full else 10000, 1)
throttled(200 if not t.options.full else 10000, 64)
survivors()
hostile()
deaths(20 if not t.options.full else 1000)
lab.end()
t.end()
