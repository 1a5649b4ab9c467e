#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests rdma_cm on iWARP devices over SCTP (ADVERB_SCTP): the tools of librdmacm
and perftest -R over lo, rping between two namespaces, forged packets, peers that are
killed, and a capture."""

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
from perftest_check import check_rows
import system
from system import (HANG, Result, expect, expect_failed, expect_ok, expect_silent,
                    wait_until)

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
LO = {"ADVERB_DEVICES": "iwarp:lo", "ADVERB_SCTP": "udp"}
# the addresses that lab.interface() gives to the two sides
HERE, THERE = "10.1.0.1", "10.1.0.2"
DISCARD = 9  # a UDP port at which nobody listens

TOOLS = (
    (["rping", "-C", "20", "-V"], ""),
    (["rping", "-C", "5", "-S", "60000", "-V"], ""),
    (["ucmatose"], "return status 0"),
    (["ucmatose", "-c", "10", "-C", "20", "-S", "1000"], "return status 0"),
    (["cmtime", "-c", "50"], "connect"),
    (["rdma_server"], "rdma_client: end 0"),
    (["rdma_xserver"], "rdma_xclient: end 0"),
)
PERFTEST = [[tool, "-n", "200"] for tool in
            ("ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
             "ib_send_bw", "ib_send_lat")]
SEGMENT, CONTROL = 16, 17  # payload protocol identifiers
RPING = ["rping", "-s", "-a", "127.0.0.1", "-p", "%", "-C", "3", "-v"]
# With -P, rping serves many clients.
RPING_MANY = ["rping", "-s", "-P", "-a", "127.0.0.1", "-p", "%", "-v"]


def has_library():
    try:
        return bool(__import__("ctypes").CDLL("libusrsctp.so.2"))
    except OSError:
        return False


def need_library():
    if not has_library():
        raise system.Skip("libusrsctp2 is not installed")


def case(name, body, program):
    def go():
        t.need(program)
        need_library()
        body()
    t.case(name, go, "iWARP over SCTP", program)


def is_open(port, raw=False):
    """Returns whether a UDP socket in `here` has the port, or, with @raw,
    whether a raw socket has the protocol number @port."""
    with open("/proc/self/net/raw" if raw else "/proc/self/net/udp6") as table:
        return any(line.split()[1].endswith(":%04X" % port)
                   for line in table if ":" in line.split()[1])


def start(side, argv, **env):
    """Starts and returns a program.  A program that sends SCTP without UDP keeps the
    capabilities of this script, since the program's raw socket needs CAP_NET_RAW."""
    if env.get("ADVERB_SCTP") != "raw":
        return lab.start(side, argv, **env)
    drops = ("--bounding-set=-all", "--inh-caps=-all")
    return t.start([t.adverb, "run", "--", *argv], env=t.environment(**env),
                   into=lambda words: lab.into(
                       side, [w for w in words if w not in drops]))


class Server:
    """A program that listens in the namespace `here` on an SCTP port of its own.
    @port: the number of the UDP port, if it is not that of the SCTP port."""

    def __init__(self, argv, port=None, **env):
        lab.port += 1
        self.port = lab.port
        self.process = start(
            "here", [w.replace("%", str(self.port)) for w in argv],
            **dict(LO, **env))
        raw = env.get("ADVERB_SCTP") == "raw"
        lab.wait(lambda: is_open(132 if raw else port or self.port, raw) or
                 self.process.poll() is not None, "the server does not listen",
                 HANG)

    def end(self, kill=False):
        if kill and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        return t.finish(self.process, HANG)


def client_of(port, side="here", address="127.0.0.1", **env):
    return t.finish(start(side, ["rping", "-c", "-a", address, "-p", str(port),
                                 "-C", "3", "-v"], **dict(LO, **env)), HANG)


def tools():
    def tool(argv, want):
        r = t.pair(argv, ["--address", "127.0.0.1"], **LO)
        expect_ok(r)
        expect(want in r.output, "the tool does not print: " + want, r)
        expect_silent(r)

    def perftest(argv):
        r = t.pair(argv + ["-R"], ["--address", "127.0.0.1"],
                   **t.paced(**LO))
        expect_ok(r)
        check_rows(r)

    for argv, want in TOOLS:
        case(" ".join(argv), lambda argv=argv, want=want: tool(argv, want),
             argv[0])
    for argv in PERFTEST:
        case(" ".join(argv) + " -R", lambda argv=argv: perftest(argv), argv[0])


def across():
    def rping(address, how):
        with lab.interface():
            env = {"ADVERB_DEVICES": "iwarp:v0", "ADVERB_SCTP": how}
            s = Server(["rping", "-s", "-a", address, "-p", "%", "-C", "3",
                        "-v"], port=9899 if how == "9899" else None, **env)
            r = client_of(s.port, "there", address, **env)
            served = s.end(kill=r.status != 0)
            r.output += served.output
            expect_ok(r)
            expect("ping data" in served.output, "the server gets no data", r)

    for address in HERE, "fd01::1":
        case("rping between namespaces, " + address,
             lambda address=address: rping(address, "udp"), "rping")
    case("rping between namespaces, UDP port 9899",
         lambda: rping(HERE, "9899"), "rping")
    case("rping between namespaces, without UDP",
         lambda: rping(HERE, "raw"), "rping")


def refusals():
    def nobody():
        r = client_of(9)
        expect_failed(r)
        expect("no program listens" in r.output and "(SCTP)" in r.output and
               "RDMA_CM_EVENT_REJECTED" in r.output,
               "no message says that no program listens", r)

    def other_transport():
        s = Server(RPING)
        r = client_of(s.port, ADVERB_SCTP="")
        expect_failed(r)
        expect("no program listens" in r.output,
               "no message says that no program listens", r)
        expect_ok(client_of(s.port))
        s.end()

    def port_in_use():
        s = Server(RPING_MANY)
        r = lab.run("here", ["rping", "-s", "-a", "127.0.0.1", "-p",
                             str(s.port)], **LO)
        s.end(kill=True)
        expect_failed(r)
        expect("in use by another" in r.output,
               "no message says that the port is in use", r)

    def no_library():
        folder = t.path("empty")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        with open(folder + "/libusrsctp.so.2", "wb"):
            pass
        r = lab.run("here", ["sh", "-c", "LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH "
                             "exec rping -s -a 127.0.0.1 -p 7000" % folder],
                    **LO)
        expect_failed(r)
        expect("libusrsctp2" in r.output, "no message names libusrsctp2", r)

    def bad_value():
        r = lab.run("here", ["rping", "-s", "-a", "127.0.0.1", "-p", "7001"],
                    **dict(LO, ADVERB_SCTP="tcp"))
        expect_failed(r)
        expect("must be udp, raw or" in r.output,
               "no message names the right values", r)

    case("a connection to a port without a listener is rejected", nobody,
         "rping")
    case("a client over TCP finds no listener", other_transport, "rping")
    case("a port in use is refused", port_in_use, "rping")
    case("a message names a library that cannot be loaded", no_library,
         "rping")
    case("a message names the right values of ADVERB_SCTP", bad_value,
         "rping")


def strangers():
    def junk():
        """After 20000 datagrams with wrong or cut packets of SCTP the server still
        serves a client."""
        s = Server(RPING_MANY)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            for i in range(20000):
                chunk = struct.pack(">BBH", i % 16, i % 8, i % 64)
                head = struct.pack(">HHII", 7, s.port, i % 3, i)
                peer.sendto((head + chunk + bytes([i % 256]) * (i % 1400))
                            [:1 + i % 1450], ("127.0.0.1", s.port))
        r = client_of(s.port)
        served = s.end(kill=True)
        r.output += served.output
        expect_ok(r)

    def crc32c(data):
        crc = 0xffffffff
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
        return crc ^ 0xffffffff

    def flood():
        """After 1000 INITs, 3000 INITs from other source ports make the
        server's memory grow by less than 512 pages."""
        s = Server(RPING_MANY)

        def has_read():
            with open("/proc/net/udp") as f, open("/proc/net/udp6") as g:
                return all(line.split()[4].endswith(":00000000")
                           for line in f.readlines() + g.readlines()
                           if ":%04X " % s.port in line)

        def resident():
            wait_until(has_read, "the server reads no INIT")
            with open("/proc/%d/statm" % pid) as f:
                return int(f.read().split()[1])
        pid = s.process.pid
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            words = f.read().split()
        pid = int(words[0]) if words else pid
        before = None
        for i in range(4000):
            if i == 1000:
                before = resident()
            init = struct.pack(">BBHIIHHI", 1, 0, 20, i + 1, 65536, 1, 1, i)
            packet = struct.pack(">HHII", 1000 + i, s.port, 0, 0) + init
            packet = packet[:8] + struct.pack("<I", crc32c(packet)) + \
                packet[12:]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
                peer.sendto(packet, ("127.0.0.1", s.port))
        grown = resident() - before
        r = client_of(s.port)
        served = s.end(kill=True)
        r.output += served.output
        expect_ok(r)
        expect(grown < 512, "the server's memory has grown by %d pages" % grown)

    def packet(port, tag, chunk):
        head = struct.pack(">HHII", 7, port, tag, 0)
        return head[:8] + struct.pack("<I", crc32c(head + chunk)) + chunk

    def associate(port):
        """Makes an association without the adaptation indication of DDP.
        Returns the peer's socket."""
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        peer.settimeout(HANG)
        peer.connect(("127.0.0.1", port))
        peer.send(packet(port, 0, struct.pack(">BBHIIHHI", 1, 0, 20, 99, 65536,
                                              1, 1, 5)))
        answer = peer.recv(65536)
        expect(answer[12] == 2, "the server's answer is no INIT ACK")
        tag, at = struct.unpack(">I", answer[16:20])[0], 32
        while struct.unpack(">H", answer[at:at + 2])[0] != 7:
            at += struct.unpack(">H", answer[at + 2:at + 4])[0] + 3 & ~3
        length = struct.unpack(">H", answer[at + 2:at + 4])[0]
        cookie = struct.pack(">BBH", 10, 0, length) + answer[at + 4:at + length]
        peer.send(packet(port, tag, cookie + bytes(-len(cookie) % 4)))
        return peer

    def chunks(peer):
        """Returns the type of the first chunk of each packet that comes, until
        an ABORT (6) or until no packet comes within the socket's timeout."""
        found = []
        try:
            while True:
                found.append(peer.recv(65536)[12])
                if found[-1] == 6:
                    return found
        except socket.timeout:
            return found

    def other_protocols():
        """The server aborts associations that do not announce DDP in time, and
        meanwhile serves a client."""
        s = Server(RPING_MANY)
        began = time.monotonic()
        peers = [associate(s.port) for _ in range(300)]
        r = client_of(s.port)
        expect_ok(r)
        t.note("served after %.1f s" % (time.monotonic() - began))
        for peer in peers:
            expect(6 in chunks(peer), "an association is not aborted")
            peer.close()
        t.note("ended after %.1f s" % (time.monotonic() - began))
        expect_ok(client_of(s.port))
        s.end(kill=True)

    case("300 associations of another protocol are aborted", other_protocols, "rping")
    case("junk and forged packets do not stop the server", junk, "rping")
    case("4000 INITs from unknown peers take no memory", flood, "rping")


def deaths():
    def death(victim):
        s = Server(["rping", "-s", "-a", "127.0.0.1", "-p", "%", "-C",
                    "1000000", "-v"])
        client = lab.start("here", ["rping", "-c", "-a", "127.0.0.1", "-p",
                                    str(s.port), "-C", "1000000", "-v"], **LO)
        pair = s.process, client
        # rping's standard output is a pipe, so stdio passes the text to
        # write(2) in blocks of 4096 bytes.  The first block reports more than
        # three pings.
        system.await_output(pair[1 - victim], 4096)
        os.killpg(pair[victim].pid, signal.SIGKILL)
        r = t.finish(pair[1 - victim], HANG)
        t.finish(pair[victim], HANG)
        expect(r.status != 124, "the killed program's peer does not end", r)
        expect("DISCONNECT" in r.output and r.output.count("ping data") > 3,
               "the killed program's peer gets no DISCONNECTED, or only few pings "
               "came before it", r)

    case("the client ends when the server is killed", lambda: death(0), "rping")
    case("the server ends when the client is killed", lambda: death(1), "rping")


def capture():
    def await_frame(path, text):
        """Sends datagrams with this text until the capture has one.  The capture
        then has all frames that were sent before."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            def is_there():
                s.sendto(text, (THERE, DISCARD))
                if not os.path.exists(path):
                    return False
                with open(path, "rb") as f:
                    return text in f.read()
            lab.wait(is_there, "tshark captures no frame")

    @contextlib.contextmanager
    def frames_written(path):
        """Has tshark write the frames of v0 to a file for the time of a `with`
        statement."""
        tshark = subprocess.Popen(
            ["tshark", "-q", "-i", "v0", "-f", "udp port 9899 or udp port %d" %
             DISCARD, "-w", path], stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        try:
            said = ""
            while "Capturing" not in said and tshark.poll() is None:
                said += tshark.stderr.readline()
            if tshark.poll() is not None:
                raise system.Skip("no capture can be made: " +
                                  (said + tshark.stderr.read()).strip())
            await_frame(path, b"the capture begins")
            yield
            await_frame(path, b"the capture ends")
            tshark.send_signal(signal.SIGINT)
            tshark.communicate(timeout=HANG)
        finally:
            # tshark captures by a child, dumpcap
            with contextlib.suppress(ProcessLookupError):
                os.killpg(tshark.pid, signal.SIGKILL)
            tshark.communicate()

    def dissected():
        """tshark finds the messages of RFC 5043 on the wire."""
        t.need("tshark")
        path = t.path("sctp.pcap")
        env = {"ADVERB_DEVICES": "iwarp:v0", "ADVERB_SCTP": "9899"}
        with lab.interface(), frames_written(path):
            s = Server(["rping", "-s", "-a", HERE, "-p", "%", "-C", "3", "-v"],
                       port=9899, **env)
            r = client_of(s.port, "there", HERE, **env)
            s.end(kill=r.status != 0)
            expect_ok(r)
        fields = subprocess.run(
            ["tshark", "-r", path, "-T", "fields", "-E", "separator=;",
             "-e", "sctp.chunk_type", "-e", "sctp.data_payload_proto_id",
             "-e", "sctp.data_u_bit", "-e",
             "sctp.adaptation_layer_indication", "-e", "sctp.data_sid"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            check=True).stdout
        rows = [line.split(";") for line in fields.splitlines()]
        ids = {w for row in rows for w in row[1].split(",") if w}
        r = Result(0, fields)
        expect(ids == {str(SEGMENT), str(CONTROL)}, "the PPIDs are %s" % ids,
               r)
        expect({w for row in rows for w in row[2].split(",") if w} <=
               {"1", "True"}, "a message is ordered", r)
        expect({w for row in rows for w in row[3].split(",") if w} ==
               {"0x00000001"}, "the adaptation indication is not that of DDP",
               r)
        os.unlink(path)

    case("tshark finds sessions and segments in a capture", dissected, "rping")


if has_library():
    t.checks("connectcheck", "iWARP over SCTP", "bound", **LO)
else:
    t.case("connectcheck runs to its end", need_library, "iWARP over SCTP",
           "connectcheck")
tools()
across()
refusals()
strangers()
deaths()
capture()
lab.end()
t.end()
