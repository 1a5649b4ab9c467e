#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests rdma_cm on iWARP devices: the tools of librdmacm and perftest -R over lo,
rping between two namespaces, peers that this script plays on a plain TCP socket, and
peers that are killed."""

import os
import resource
import signal
import socket
import struct
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
from perftest_check import check_rows
import system
from system import (HANG, Skip, expect, expect_failed, expect_ok, expect_silent,
                    paced_ns)

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
talker = t.program("talker")
LO = {"ADVERB_DEVICES": "iwarp:lo"}
LINK = {"ADVERB_DEVICES": "iwarp:v0"}
HERE = "10.1.0.1"  # the address that lab.interface() gives to `here`

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
# Values of ADVERB_MPA: the ways in which an end may start MPA.
STARTS = ("", "rev1", "nocrc", "markers", "client-server",
          "rev1,markers", "nocrc,markers,client-server")
REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS, CRC, REJECT, ENHANCED = 0x80, 0x40, 0x20, 0x10
PEER_TO_PEER = 0x8000
# adverb gives a peer 10 seconds for its MPA request and, in the peer-to-peer
# model, 10 more for its first FPDU.


def frame(key, flags, revision, private):
    return key + struct.pack(">BBH", flags, revision, len(private)) + private


def request(private=b"", ird=4, ord_=4):
    """Returns an enhanced MPA request in the peer-to-peer model; the first
    FPDU may be a zero-length FPDU."""
    return frame(REQUEST, CRC | ENHANCED, 2,
                 struct.pack(">HH", PEER_TO_PEER | 0x4000 | ird, ord_) + private)


def read_exactly(s, count):
    got = b""
    while len(got) < count:
        more = s.recv(count - len(got))
        expect(more, "the connection ends after %d bytes" % len(got))
        got += more
    return got


def read_frame(s):
    """Returns the key, the flags, the revision and the private data of an MPA
    frame."""
    head = read_exactly(s, 20)
    flags, revision, count = struct.unpack(">BBH", head[16:])
    return head[:16], flags, revision, read_exactly(s, count)


def is_closed(s, seconds=HANG):
    """Reads until the peer closes the connection, and returns True, or until the
    peer has sent nothing for @seconds, and returns False."""
    s.settimeout(seconds)
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except socket.timeout:
        return False
    return True


def takes(s, data):
    """Returns whether the peer keeps the connection open for a second after
    @data."""
    try:
        s.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return not is_closed(s, 1)


def rests(pid):
    """Waits until no thread of a process was running in 50 looks in a row.  A
    thread that repeats a failing call without a pause runs at nearly every
    look."""
    looks, end = 0, time.monotonic() + HANG
    while looks < 50:
        expect(time.monotonic() < end, "the program never rests")
        time.sleep(0.01)
        looks += 1
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/stat" % (pid, thread)) as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "R":
                    looks = 0


def case(name, body, program="rdma_cm"):
    def go():
        t.need(program) if program != "rdma_cm" else None
        body()
    t.case(name, go, "iWARP", program)


class Server:
    """A program that listens in the namespace `here` on a port of its own."""

    def __init__(self, argv, **env):
        lab.port += 1
        self.port = lab.port
        t.need(argv[0])
        self.process = lab.start(
            "here", [w.replace("%", str(self.port)) for w in argv],
            **dict(LO, **env))
        lab.wait(lambda: lab.is_listening("here", self.port) or
                 self.process.poll() is not None, "the server does not listen", HANG)

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        s.settimeout(HANG)
        return s

    def end(self, kill=False):
        """Returns the Result of the server, which has to end by itself unless
        @kill is true."""
        if kill and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        r = t.finish(self.process, HANG)
        expect(r.status != 124, "the server does not end", r)
        return r


HOLD_LONG_NS = 2_000_000_000  # as in src/rdmacm/iw_connect.c
RPING = ["rping", "-s", "-a", "127.0.0.1", "-p", "%", "-C", "3", "-v"]
# With -P, rping serves many clients.
RPING_MANY = ["rping", "-s", "-P", "-a", "127.0.0.1", "-p", "%", "-v"]


def client_of(port, **env):
    return lab.run("here", ["rping", "-c", "-a", "127.0.0.1", "-p", str(port),
                            "-C", "3", "-v"], **dict(LO, **env))


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

    def perftest_held():
        """perftest's server listens a second time only 300 ms after the second
        rdma_connect of the client has returned."""
        env = t.paced(PACE_HELD="300", **LO)
        r = t.pair(["ib_write_bw", "-n", "200", "-R"],
                   ["--address", "127.0.0.1"], **env)
        held = paced_ns(env, ".hears") - paced_ns(env, ".calls")
        if r.status and held >= HOLD_LONG_NS:
            raise Skip("this machine is too busy: the server listened when the "
                       "request was not held any more")
        expect_ok(r)
        check_rows(r)

    def at_once():
        """1000 connections come at once, and none is refused.  The listener
        holds at most 128 connections whose MPA request is incomplete
        (HALVES_MAX in src/rdmacm/iw_listen.c); while all of these are young
        (YOUNG_NS), further connections wait in the kernel.  Each connection has
        a descriptor, so the soft limit of a login, 1024, is too low."""
        files = resource.RLIMIT_NOFILE
        soft, hard = resource.getrlimit(files)
        if hard != resource.RLIM_INFINITY and hard < 2048:
            raise Skip("the hard limit on open files is %d" % hard)
        resource.setrlimit(files, (hard, hard))
        try:
            r = t.pair(["cmtime", "-c", "1000"], ["--address", "127.0.0.1"],
                       **LO)
        finally:
            resource.setrlimit(files, (soft, hard))
        expect_ok(r)
        expect("REJECTED" not in r.output, "a connection is refused", r)
        expect_silent(r)

    def across(argv):
        with lab.interface():
            lab.port += 1
            expect_ok(lab.both(
                ["rping", "-s", "-a", HERE, "-p", "%", *argv],
                ["rping", "-c", "-a", HERE, "-p", "%", *argv],
                server_env=LINK, client_env=LINK))

    for argv, want in TOOLS:
        case(" ".join(argv), lambda argv=argv, want=want: tool(argv, want),
             argv[0])
    for argv in PERFTEST:
        case(" ".join(argv) + " -R", lambda argv=argv: perftest(argv), argv[0])
    case("1000 connections at once are all made", at_once, "cmtime")
    case("ib_write_bw -R, which connects before its server listens again",
         perftest_held, "ib_write_bw")
    for argv in ["-C", "20", "-V"], ["-C", "5", "-S", "60000", "-V"]:
        case("rping %s, between namespaces" % " ".join(argv),
             lambda argv=argv: across(argv), "rping")


def starts():
    def start(server, client):
        s = Server(RPING, ADVERB_MPA=server)
        r = client_of(s.port, ADVERB_MPA=client)
        served = s.end(kill=r.status != 0)
        r.output += served.output
        expect_ok(r)
        expect("ping data" in served.output, "the server gets no data", r)

    for server in STARTS:
        for client in STARTS:
            if server in ("", client) or not client:
                case("MPA starts by [%s] at the server, [%s] at the client" %
                     (server, client), lambda s=server, c=client: start(s, c),
                     "rping")


def refusals():
    def datagrams():
        r = lab.run("here", ["udaddy"], **LO)
        expect_failed(r)
        expect("iWARP has connections only" in r.output,
               "no message is about datagrams", r)

    def nobody():
        r = client_of(9)
        expect_failed(r)
        expect("no program listens" in r.output and
               "RDMA_CM_EVENT_REJECTED" in r.output,
               "no message says that no program listens", r)

    def port_in_use():
        s = Server(RPING_MANY)
        r = lab.run("here", ["rping", "-s", "-a", "127.0.0.1", "-p",
                             str(s.port)], **LO)
        s.end(kill=True)
        expect_failed(r)
        expect("in use by another" in r.output,
               "no message says that the port is in use", r)

    def port_of_tcp():
        with socket.create_server(("127.0.0.1", 0)) as taken:
            r = lab.run("here", ["rping", "-s", "-a", "127.0.0.1", "-p",
                                 str(taken.getsockname()[1])], **LO)
        expect_failed(r)
        expect("by a TCP socket" in r.output,
               "no message says that a TCP socket may have the port", r)

    def port_again():
        for _ in range(2):
            s = Server(RPING)
            lab.port -= 1  # the next server gets the same port
            expect_ok(client_of(s.port))
            expect_ok(s.end())
        lab.port += 1

    case("a datagram id finds no device", datagrams, "udaddy")
    case("a connection to a port without a listener is rejected", nobody,
         "rping")
    case("a port in use is refused", port_in_use, "rping")
    case("a port of a TCP socket is refused", port_of_tcp, "rping")
    case("a server gets the port of a server that has just ended", port_again,
         "rping")


def played_servers():
    """Programs connect to this script."""
    def played(play, **more):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(8)
            listener.settimeout(HANG)
            port = listener.getsockname()[1]
            client = lab.start("here", ["rping", "-c", "-a", "127.0.0.1", "-p",
                                        str(port), "-C", "1", "-v"],
                               **LO, **more)
            play(listener)
            r = t.finish(client, HANG)
            expect(r.status != 124, "the client does not end", r)
            return r

    def accept(listener):
        s, _ = listener.accept()
        s.settimeout(HANG)
        return s

    def reject():
        def play(listener):
            s = accept(listener)
            key, flags, revision, private = read_frame(s)
            expect(key == REQUEST and revision == 2 and
                   flags == CRC | ENHANCED, "the request has other fields: %r" %
                   ((key, flags, revision, private),))
            ird, ord_ = struct.unpack(">HH", private[:4])
            expect(ird & 0xc000 == 0xc000 and ord_ & 0xc000 == 0xc000,
                   "the request does not offer each kind of first FPDU")
            s.sendall(frame(REPLY, CRC | REJECT | ENHANCED, 2,
                            bytes(4) + b"go away"))
            expect(is_closed(s), "the client does not close the connection")
        r = played(play)
        expect("RDMA_CM_EVENT_REJECTED" in r.output and
               "rejects the connection" in r.output,
               "the client does not report the rejection", r)

    def old_peer():
        def play(listener):
            s = accept(listener)
            expect(read_frame(s)[2] == 2,
                   "the first request is not of revision 2")
            s.close()
            s = accept(listener)
            key, flags, revision, private = read_frame(s)
            expect((revision, flags, private) == (1, CRC, b""),
                   "the second request is not of revision 1")
            s.sendall(frame(REPLY, CRC | REJECT, 1, b""))
            is_closed(s)
        r = played(play)
        expect("rejects the connection" in r.output,
               "the client does not report the rejection", r)

    def hasty():
        """siw's responder does not wait for the initiator's first FPDU, so that TCP
        may bring an FPDU together with the reply."""
        def play(listener):
            s = accept(listener)
            read_frame(s)
            s.sendall(frame(REPLY, CRC, 1, b"") + bytes(3))
            # the client goes on: it sends its first FPDU, a SEND
            expect(s.recv(2), "the client closes the connection")
        r = played(play, ADVERB_MPA="rev1")
        expect("earlier than RFC 5044" not in r.output,
               "the client refuses an early FPDU", r)

    def greedy():
        def play(listener):
            s = accept(listener)
            read_frame(s)
            s.sendall(frame(REPLY, CRC | ENHANCED, 2, struct.pack(
                ">HH", PEER_TO_PEER | 0x4000 | 1, 5000)))
            fpdu = read_exactly(s, 8)
            # an untagged, last DDP segment of RDMAP's Terminate
            expect(fpdu[2] & 0xc0 == 0x40 and fpdu[3] & 0xf == 7,
                   "the FPDU is no Terminate: " + fpdu.hex())
            expect(is_closed(s), "the client does not close the connection")
        r = played(play)
        expect_failed(r)
        expect("more RDMA READs" in r.output,
               "the client prints no reason", r)

    def junk():
        def play(listener):
            s = accept(listener)
            s.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            expect(is_closed(s), "the client does not close the connection")
        r = played(play)
        expect_failed(r)
        expect("MPA cannot begin" in r.output,
               "the client prints no reason", r)

    def nudge():
        """The client's ready-to-receive message is an empty WRITE.  If the peer
        accepts and then sends nothing, the client sends empty WRITEs again, and the
        program's SEND before, after or between them."""
        def read_opcode(s):
            head = read_exactly(s, 4)
            ulpdu = struct.unpack(">H", head[:2])[0]
            # the rest of the FPDU, which ends with a pad to a multiple of four bytes
            # and the CRC
            read_exactly(s, -(-(2 + ulpdu) // 4) * 4 + 4 - len(head))
            return head[3] & 0xf

        def play(listener):
            s = accept(listener)
            read_frame(s)
            s.sendall(frame(REPLY, CRC | ENHANCED, 2, struct.pack(
                ">HH", PEER_TO_PEER | 1, 0x8000 | 1)))
            expect(read_opcode(s) == 0, "the first FPDU is no WRITE")
            said = [read_opcode(s) for _ in range(3)]
            expect(sorted(said) == [0, 0, 3], "the opcodes are %s, and not those of "
                   "two WRITEs and a SEND" % said)
            s.close()
        played(play)

    def silence():
        def play(listener):
            s = accept(listener)
            read_frame(s)
            expect(is_closed(s), "the client does not close the connection")
        began = time.monotonic()
        r = played(play, ADVERB_CM_FAST="1")
        expect("RDMA_CM_EVENT_UNREACHABLE" in r.output,
               "the client does not give up", r)
        t.note("given up after %d s" % (time.monotonic() - began))

    case("a client reports that a peer rejects it", reject, "rping")
    case("a client connects again by revision 1 to a peer that closes", old_peer,
         "rping")
    case("a server may send its first FPDU with the reply", hasty, "rping")
    case("a peer that will send too many READs gets a Terminate", greedy,
         "rping")
    case("a client closes the connection to a peer that answers junk", junk,
         "rping")
    case("a peer that stays silent gets an empty WRITE again", nudge, "rping")
    case("a peer that does not answer is given up", silence, "rping")


def played_clients():
    """This script connects to programs."""
    def accepted():
        s = Server(RPING)
        peer = s.connect()
        peer.sendall(request())
        key, flags, revision, private = read_frame(peer)
        expect(key == REPLY and revision == 2 and
               flags == CRC | ENHANCED, "the reply has other fields: %r" %
               ((key, flags, revision, private),))
        ird, _ = struct.unpack(">HH", private)
        expect(ird & PEER_TO_PEER, "the reply is not peer-to-peer")
        peer.close()
        r = s.end()
        expect(r.status != 0 or "DISCONNECT" in r.output or
               "CONNECT_ERROR" in r.output,
               "the server succeeds, and gets no event of the connection's end", r)

    def long_data():
        """A frame of MPA has up to 512 bytes of private data, but an event of
        librdmacm at most 255."""
        for count in 255, 256, 508:
            s = Server(RPING)
            peer = s.connect()
            peer.sendall(request(bytes(count)))
            expect(read_frame(peer)[0] == REPLY, "there is no reply")
            peer.close()
            r = s.end()
            expect(("has sent %d bytes of private data, and the program gets "
                    "the first 255" % count in r.output) == (count > 255),
                   "%d bytes" % count, r)

    def mute():
        """The server closes the connection of an accepted peer that sends no first
        FPDU."""
        s = Server(RPING)
        peer = s.connect()
        peer.sendall(request())
        expect(read_frame(peer)[0] == REPLY, "there is no reply")
        expect(is_closed(peer), "the server does not close the connection")
        r = s.end()
        expect("CONNECT_ERROR" in r.output,
               "the server gets no CONNECT_ERROR", r)

    def server_first():
        """A peer of revision 1, and so of the client-server model, sends no FPDU.
        Nevertheless the server sends the request that its program has posted."""
        s = Server(["ucmatose", "-b", "127.0.0.1", "-p", "%", "-c", "1", "-C",
                    "1"])
        peer = s.connect()
        peer.sendall(frame(REQUEST, CRC, 1, b""))
        expect(read_frame(peer)[:3] == (REPLY, CRC, 1), "there is no reply")
        fpdu = read_exactly(peer, 8)
        # an untagged, last DDP segment of RDMAP's SEND
        expect(fpdu[2] & 0xc0 == 0x40 and fpdu[3] & 0xf == 3,
               "the FPDU is no SEND: " + fpdu.hex())
        peer.close()
        s.end()

    def strangers():
        """The server closes connections that do not start MPA in time, and
        serves other connections meanwhile."""
        s = Server(RPING_MANY)
        junk, silent, slow = s.connect(), s.connect(), s.connect()
        junk.sendall(b"GET / HTTP/1.1\r\n\r\n")
        began = time.monotonic()
        expect(is_closed(junk),
               "the server does not close the connection that sends junk")
        r = client_of(s.port)
        expect_ok(r)
        t.note("served after %.1f s" % (time.monotonic() - began))
        # The request has more bytes than a peer has seconds for it, so a byte a second
        # is too slow, however slow this machine is.
        expect(not all(takes(slow, bytes([byte])) for byte in request()),
               "a byte a second keeps a connection open")
        expect(is_closed(silent), "a silent connection outlives its deadline")
        t.note("ended after %.1f s" % (time.monotonic() - began))
        r = client_of(s.port)
        served = s.end(kill=True)
        r.output += served.output
        expect_ok(r)
        expect("bytes that are not an MPA frame" in served.output,
               "no message says that the peer has sent no MPA frame", r)

    def flood():
        """Many connections without an MPA request do not keep other clients
        from being served."""
        s = Server(RPING_MANY)
        peers = [s.connect() for _ in range(300)]
        r = client_of(s.port)
        for peer in peers:
            peer.close()
        s.end(kill=True)
        expect_ok(r)

    def few_descriptors():
        """A server that has reached its limit of descriptors pauses before it
        repeats a failing call, and serves a client after the limit is raised."""
        s = Server(RPING_MANY)
        pid, files = s.process.pid, resource.RLIMIT_NOFILE
        limits = resource.prlimit(pid, files)
        taken = set(map(int, os.listdir("/proc/%d/fd" % pid)))
        free = min(set(range(len(taken) + 1)) - taken)
        resource.prlimit(pid, files, (free, limits[1]))
        peers = [s.connect() for _ in range(60)]
        rests(pid)
        resource.prlimit(pid, files, limits)
        for peer in peers:
            peer.close()
        r = client_of(s.port)
        served = s.end(kill=True)
        r.output += served.output
        expect_ok(r)
        expect("raise the limit of descriptors" in served.output,
               "no message says to raise the limit of descriptors", r)

    def patient():
        """A server that has rejected a request waits until the peer closes."""
        s = Server([talker, "refuse", "127.0.0.1", "%"])
        for _ in range(20):
            with s.connect() as peer:
                peer.sendall(request())
                key, flags, _, _ = read_frame(peer)
                state = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
                expect(key == REPLY and flags & REJECT,
                       "the request is not rejected")
                expect(state == 1, "the server has sent FIN")
        s.end(kill=True)

    def refused():
        """Peers whose requests are rejected, and which keep their connections, do
        not use up the descriptors of the server."""
        s = Server([talker, "refuse", "127.0.0.1", "%"])
        folder = "/proc/%d/fd" % s.process.pid
        before = len(os.listdir(folder))
        peers = []
        for _ in range(300):
            peer = s.connect()
            peer.sendall(request())
            key, flags, _, _ = read_frame(peer)
            expect(key == REPLY and flags & REJECT, "the request is not rejected")
            peers.append(peer)
        more = len(os.listdir(folder)) - before
        for peer in peers:
            peer.close()
        s.end(kill=True)
        expect(more <= 130, "%d descriptors for rejected peers" % more)

    case("a server replies to an enhanced request", accepted, "rping")
    case("private data that the program does not get is reported", long_data,
         "rping")
    case("an accepted peer that sends nothing is given up", mute, "rping")
    case("a server sends first to a peer of revision 1 that waits", server_first,
         "ucmatose")
    case("junk, silence and a byte a second end a connection", strangers, "rping")
    case("300 connections without a request do not keep a client out", flood,
         "rping")
    case("a server without descriptors serves later", few_descriptors, "rping")
    case("a server that rejects leaves the close to the peer", patient)
    case("300 rejected peers keep at most 128 descriptors", refused)


def deaths():
    def death(victim):
        argv = ["rping", "-%s", "-a", "127.0.0.1", "-p", "%", "-C", "1000000",
                "-v"]
        pair = lab.begin([w.replace("%s", "s") if w == "-%s" else w
                          for w in argv],
                         [w.replace("%s", "c") if w == "-%s" else w
                          for w in argv], server_env=LO, client_env=LO,
                         client_side="here")
        # rping's first write of 4096 bytes reports more than three pings.
        system.await_output(pair[1 - victim], 4096)
        os.killpg(pair[victim].pid, signal.SIGKILL)
        r = t.finish(pair[1 - victim], HANG)
        t.finish(pair[victim], HANG)
        expect(r.status != 124, "the killed program's peer does not end", r)
        expect("DISCONNECT" in r.output and r.output.count("ping data") > 3,
               "the killed program's peer gets no DISCONNECTED, or only few pings "
               "came before it", r)

    case("the client of a killed server gets DISCONNECTED", lambda: death(0),
         "rping")
    case("the server of a killed client gets DISCONNECTED", lambda: death(1),
         "rping")


t.checks("connectcheck", "iWARP", **LO)
tools()
starts()
refusals()
played_servers()
played_clients()
deaths()
lab.end()
t.end()
