#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests captures (ADVERB_PCAP) of iWARP connections over TCP and SCTP.  tshark must
find nothing wrong with a capture.  If both ends of a connection write a capture, both
captures must have the same bytes; where an end may exit before it has read all bytes
of its peer, its capture may lack the last of them."""

import os
import re
import signal
import socket
import struct
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
from perftest_check import check_rows
import system
from system import HANG, expect, expect_failed, expect_ok, expect_silent
import tshark

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
LO = {"ADVERB_DEVICES": "iwarp:lo"}
LINK = {"ADVERB_DEVICES": "iwarp:v0"}
SIDES = ("server", "client")
REPLY = b"MPA ID Rep Frame"
CRC, REJECT, ENHANCED = 0x40, 0x20, 0x10
WRITE, READ, RESPONSE, SEND = "0x00", "0x01", "0x02", "0x03"


def files(name):
    """Returns the paths of both ends' captures, by side.  Removes files that are
    there."""
    paths = {side: t.path("%s-%s.pcapng" % (name, side)) for side in SIDES}
    for path in paths.values():
        if os.path.exists(path):
            os.unlink(path)
    return paths


def judge(path):
    """Expects that tshark finds nothing wrong with a capture, that only its owner can
    read it, and that it has the start of each connection.  Returns the bytes of each
    direction, by addresses and ports, and the opcodes of RDMAP."""
    expect(os.path.exists(path), "no capture was written")
    expect(os.stat(path).st_mode & 0o777 == 0o600, "the capture's mode is not 600")
    tshark.expect_sound(t, path)
    tshark.expect_crcs(t, path)
    streams, codes = {}, set()
    for line in tshark.lines(t, path, "-Y", "tcp", "-T", "fields", "-e", "ip.src", "-e",
                       "ipv6.src", "-e", "tcp.srcport", "-e", "ip.dst", "-e",
                       "ipv6.dst", "-e", "tcp.dstport", "-e", "tcp.payload",
                       "-e", "iwarp_rdma.opcode"):
        *ends, payload, code = line.split("\t")
        key = tuple(ends)
        streams[key] = streams.get(key, b"") + \
            bytes.fromhex(payload.replace(":", ""))
        codes |= {c for c in code.split(",") if c}
    starts = tshark.lines(t, path, "-Y", "tcp.flags.syn == 1 || iwarp_mpa.req || "
                    "iwarp_mpa.rep", "-T", "fields", "-e", "frame.number")
    expect(len(starts) == 2 * len(streams), "%d frames, not four each, begin %d "
           "connections" % (len(starts), len(streams) // 2))
    return streams, codes


def agree(paths, want, connections=1, payload=0):
    """Expects that both captures are right, have the same bytes, this many
    connections, the opcodes @want and at least @payload bytes.  Removes the
    captures."""
    seen = {side: judge(paths[side]) for side in SIDES}
    for side in SIDES:
        streams, codes = seen[side]
        expect(len(streams) == 2 * connections, "the %s has %d directions" % (
            side, len(streams)))
        expect(want <= {"0x%02x" % int(code, 0) for code in codes},
               "the %s has only the opcodes %s" % (side, sorted(codes)))
        count = sum(len(data) for data in streams.values())
        expect(count >= payload, "the %s has only %d bytes" % (side, count))
    first, other = seen["server"][0], seen["client"][0]
    expect(first.keys() == other.keys(),
           "the two captures have different addresses")
    for key, data in first.items():
        expect(data == other[key], "%s: the server has %d bytes, the client %d" %
               (key, len(data), len(other[key])))
    t.note("%d bytes" % sum(len(data) for data in first.values()))
    for path in paths.values():
        os.unlink(path)


def case(name, body, program):
    def go():
        t.need("tshark")
        t.need(program)
        body()
    t.case(name, go, "iWARP", program)


def pair(argv, name, env):
    paths = files(name)
    options = ["--address", "127.0.0.1"]
    for side in SIDES:
        options += ["--env-" + side, "ADVERB_PCAP=" + paths[side]]
    r = t.pair(argv, options, **env)
    expect_ok(r)
    expect_silent(r)
    return paths, r


def programs():
    def perftest(argv, want, connections, payload):
        paths, r = pair(argv, "perftest", t.paced(**LO))
        check_rows(r)
        agree(paths, want, connections, payload)

    def tool(argv, want, connections, **env):
        paths, _ = pair(argv, "tool", dict(LO, **env))
        agree(paths, want, connections)

    for argv, want, connections, payload in (
            (["ib_write_bw", "-n", "50", "-s", "65536"], {WRITE}, 2,
             50 * 65536),
            (["ib_read_bw", "-n", "50", "-s", "8000"], {READ, RESPONSE}, 2,
             50 * 8000),
            (["ib_send_bw", "-n", "50", "-s", "300000"], {SEND}, 2, 50 * 300000),
            (["ib_write_lat", "-n", "50", "-s", "8"], {WRITE}, 2, 0),
            (["ib_write_bw", "-n", "50", "-s", "4096", "-q", "4"], {WRITE}, 5,
             200 * 4096)):
        case(" ".join(argv) + " -R", lambda argv=argv, want=want, n=connections,
             payload=payload: perftest([*argv, "-R"], want, n, payload), argv[0])
    case("rping", lambda: tool(["rping", "-C", "20", "-S", "20000", "-V"],
                               {WRITE, READ, RESPONSE}, 1), "rping")
    case("rping with markers", lambda: tool(
        ["rping", "-C", "5", "-S", "20000", "-V"], {WRITE, READ, RESPONSE}, 1,
        ADVERB_MPA="markers"), "rping")
    case("ucmatose -c 8", lambda: tool(["ucmatose", "-c", "8"], {SEND}, 8),
         "ucmatose")


def across():
    def rping(address):
        paths = files("across")
        with lab.interface():
            lab.port += 1
            argv = ["-a", address, "-p", "%", "-C", "10", "-S", "5000", "-V"]
            expect_ok(lab.both(
                ["rping", "-s", *argv], ["rping", "-c", *argv],
                server_env=dict(LINK, ADVERB_PCAP=paths["server"]),
                client_env=dict(LINK, ADVERB_PCAP=paths["client"])))
        for side in SIDES:
            macs = set(tshark.lines(t, paths[side], "-T", "fields", "-e", "eth.src"))
            expect(len(macs) == 2, "the %s has the MACs %s" % (side, macs))
        agree(paths, {WRITE, READ, RESPONSE})

    for address in "10.1.0.1", "fd01::1":
        case("rping between namespaces, " + address,
             lambda address=address: rping(address), "rping")


def threads():
    def two():
        """A server has a thread for each of two clients.  The first client still has
        its connection when the second client runs: the first client prints more than
        its pipe holds, so it waits until this script reads its output.  The second
        client starts only when the first one has sent data, since rping -P confuses
        requests that come at once."""
        paths = files("threads")
        lab.port += 1
        port = str(lab.port)
        server = lab.start("here", ["rping", "-s", "-P", "-a", "127.0.0.1",
                                    "-p", port, "-S", "3000", "-V"],
                           **dict(LO, ADVERB_PCAP=paths["server"]))
        lab.wait(lambda: lab.is_listening("here", lab.port) or
                 server.poll() is not None, "the server does not listen", HANG)
        ends = [t.path("threads-%d.pcapng" % i) for i in range(2)]

        def client(path, option):
            return lab.start("here", ["rping", "-c", "-a", "127.0.0.1", "-p", port,
                                      "-C", "100", "-S", "3000", option],
                             **dict(LO, ADVERB_PCAP=path))
        first = client(ends[0], "-v")
        system.await_output(first, 4096)
        expect_ok(t.finish(client(ends[1], "-V"), HANG))
        expect(first.poll() is None, "the first client has not waited")
        r = t.finish(first, HANG)
        expect_ok(r)
        expect(r.output.count("ping data") == 100, "not all pings are reported", r)
        os.killpg(server.pid, signal.SIGTERM)
        t.finish(server, HANG)
        served, _ = judge(paths["server"])
        expect(len(served) == 4, "the server has %d directions" % len(served))
        for path in ends:
            streams, _ = judge(path)
            expect(len(streams) == 2, "a client has %d directions" %
                   len(streams))
            for key, data in streams.items():
                expect(len(data) > 100 * 3000, "%s: only %d bytes" % (key, len(data)))
                # An end may exit before it has read the last bytes of its peer.
                got = served.get(key, b"")
                expect(got and (data.startswith(got) or got.startswith(data)),
                       "%s: the server has other bytes" % (key,))

    case("two threads of a server", two, "rping")


def frame(key, flags, private):
    return key + struct.pack(">BBH", flags, 2, len(private)) + private


def refusals():
    """Tests connections that fail before a program can use them.  In all cases but
    the last, this script plays the peer."""
    def expect_frames(path, *wanted):
        """Expects that tshark finds nothing wrong with the capture, and finds exactly
        one frame by each filter.  Removes the capture."""
        tshark.expect_sound(t, path)
        for shown in wanted:
            count = len(tshark.lines(t, path, "-Y", shown))
            expect(count == 1, "%d frames, not one, match %s" % (count, shown))
        os.unlink(path)

    def client_of(play):
        path = files("refused")["client"]
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(HANG)
            client = lab.start("here", [
                "rping", "-c", "-a", "127.0.0.1", "-p",
                str(listener.getsockname()[1]), "-C", "1", "-v"],
                **dict(LO, ADVERB_PCAP=path))
            peer, _ = listener.accept()
            peer.settimeout(HANG)
            peer.recv(4096)
            play(peer)
            r = t.finish(client, HANG)
            peer.close()
        expect_failed(r)
        return path

    def rejected():
        path = client_of(lambda peer: peer.sendall(
            frame(REPLY, CRC | REJECT | ENHANCED, bytes(4) + b"go away")))
        expect_frames(path, "iwarp_mpa.req", "iwarp_mpa.rep && "
                      "iwarp_mpa.rej_flag == 1", "tcp.flags.fin == 1")

    def terminated():
        """The peer's reply announces more READs at a time than the client takes."""
        path = client_of(lambda peer: peer.sendall(
            frame(REPLY, CRC | ENHANCED, struct.pack(">HH", 0xc001, 5000))))
        expect_frames(path, "iwarp_mpa.rep", "iwarp_rdma.opcode == 7",
                      "tcp.flags.fin == 1")

    def junk():
        path = client_of(lambda peer: peer.sendall(b"HTTP/1.1 400 Bad\r\n"))
        expect_frames(path, "iwarp_mpa.req", 'tcp.payload contains "HTTP"',
                      "tcp.flags.fin == 1")

    def by_server():
        """Both ends are in one process, whose capture has each segment twice."""
        path = files("refused")["server"]
        r = t.adverb_run([t.program("connectcheck")], CHECK_ONLY="a rejection *",
                         ADVERB_PCAP=path, **LO)
        expect("ok a rejection has data" in r.output, "no rejection", r)
        seen = tshark.lines(t, path, "-Y", "iwarp_mpa.rep && iwarp_mpa.rej_flag == 1")
        expect(seen, "the capture has no rejection", r)
        count = len(tshark.lines(t, path, "-Y", "tcp.flags.syn == 1 && "
                           "tcp.flags.ack == 0"))
        expect(count and count % 2 == 0, "the capture has %d SYNs, not two for each "
               "connection" % count)
        os.unlink(path)

    case("a client that is rejected", rejected, "rping")
    case("a client that sends a Terminate", terminated, "rping")
    case("a client that gets junk", junk, "rping")
    case("a server that rejects", by_server, "rping")


def packets_of_sctp(path, carrier):
    """Expects that tshark finds nothing wrong with the SCTP packets of a capture, and
    that these packets have two directions and the payload protocol identifiers of
    RFC 5043.  @carrier: as in start().  Returns the SCTP checksums of the packets of
    each direction, by addresses and ports."""
    words = ["-o", "sctp.checksum:CRC-32c", *tshark.CHECKS]
    if carrier == "udp":
        # the UDP port of a client may be any
        words += ["-d", "udp.port==1-65535,sctp"]
    # If mallory.py runs this script, the captures also have the RoCEv2 frames that
    # mallory.py sends.
    own = "udp.dstport != 4791 && " if t.is_beside_hostile else ""
    bad = tshark.lines(t, path, *words, "-Y", own + "(!sctp || _ws.malformed || "
                 "_ws.expert.severity >= 0x600000 || sctp.checksum.status == 0 || "
                 "udp.checksum.status == 0 || ip.checksum.status == 0)")
    expect(not bad, "tshark finds wrong frames: " + " | ".join(bad[:5]))
    ways, ids = {}, set()
    for line in tshark.lines(t, path, *words, "-Y", own + "frame", "-T", "fields",
                       "-e", "ip.src", "-e", "ipv6.src", "-e", "sctp.srcport",
                       "-e", "ip.dst", "-e", "ipv6.dst", "-e", "sctp.dstport",
                       "-e", "udp.srcport", "-e", "udp.dstport", "-e",
                       "sctp.checksum", "-e", "sctp.data_payload_proto_id"):
        *ends, checksum, codes = line.split("\t")
        ways.setdefault(tuple(ends), []).append(checksum)
        ids |= {code for code in codes.split(",") if code}
    expect(len(ways) == 2, "there are %d directions" % len(ways))
    expect(ids == {"16", "17"}, "the PPIDs are %s" % sorted(ids))
    return ways


def has_socket(port, carrier):
    """Returns whether a socket in `here` receives packets of SCTP: with the
    @carrier "raw" a raw socket of SCTP, otherwise a UDP socket at the port."""
    number = 132 if carrier == "raw" else port
    with open("/proc/self/net/" + ("raw" if carrier == "raw" else
                                   "udp6")) as table:
        return any(line.split()[1].endswith(":%04X" % number)
                   for line in table if ":" in line.split()[1])


def start(side, argv, carrier, path):
    """Starts and returns a program with the values @carrier of ADVERB_SCTP and @path
    of ADVERB_PCAP.  A program that sends SCTP without UDP keeps the capabilities of
    this script, since the program's raw socket needs CAP_NET_RAW."""
    env = dict(LINK, ADVERB_SCTP=carrier, ADVERB_PCAP=path)
    if carrier != "raw":
        return lab.start(side, argv, **env)
    drops = ("--bounding-set=-all", "--inh-caps=-all")
    return t.start([t.adverb, "run", "--", *argv], env=t.environment(**env),
                   into=lambda words: lab.into(
                       side, [w for w in words if w not in drops]))


def sctp():
    def rping(address, carrier):
        paths = files("sctp")
        with lab.interface():
            lab.port += 1
            argv = ["-a", address, "-p", "%", "-C", "10", "-S", "20000", "-V"]
            argv[3] = str(lab.port)
            server = start("here", ["rping", "-s", *argv], carrier,
                           paths["server"])
            lab.wait(lambda: has_socket(lab.port, carrier) or
                     server.poll() is not None, "the server does not listen",
                     HANG)
            client = start("there", ["rping", "-c", *argv], carrier,
                           paths["client"])
            r = lab.finish((server, client))
        if "libusrsctp2" in r.output:
            raise system.Skip("libusrsctp2 is not installed")
        expect_ok(r)
        first = packets_of_sctp(paths["server"], carrier)
        other = packets_of_sctp(paths["client"], carrier)
        expect(first.keys() == other.keys(),
               "the two captures have different addresses")
        for way, checksums in first.items():
            # An end may send its last packets to a peer that has ended.
            longer, shorter = sorted((checksums, other[way]), key=len,
                                     reverse=True)
            expect(len(shorter) > 10 and longer[:len(shorter)] == shorter,
                   "%s: the two captures have different packets" % (way,))
        for path in paths.values():
            os.unlink(path)

    for address in "10.1.0.1", "fd01::1":
        case("rping over SCTP, " + address,
             lambda address=address: rping(address, "udp"), "rping")
    case("rping over SCTP without UDP", lambda: rping("10.1.0.1", "raw"),
         "rping")


def limits():
    def full():
        """The disk is full: one message says so, and the program goes on."""
        r = t.pair(["rping", "-C", "20", "-V"],
                   ["--address", "127.0.0.1", "--env-client",
                    "ADVERB_PCAP=/dev/full"], **LO)
        expect_ok(r)
        expect(len(re.findall("cannot write frames|the capture ends here",
                              r.output)) == 1,
               "no message, or more than one, says that the capture ends", r)

    case("a full disk ends the capture alone", full, "rping")


programs()
across()
threads()
refusals()
sctp()
limits()
lab.end()
t.end()
