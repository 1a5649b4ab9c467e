#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests a transfer while a stranger sends datagrams to UDP port 4791.

The stranger has an ordinary UDP socket, no raw socket, and sends truncated,
corrupted and spoofed frames, some with a right ICRC, to both queue pairs, and
replays frames of an earlier transfer.  The transfer must succeed with the right
data, and no process may crash.
"""

import errno
import os
import random
import select
import socket
import struct
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import icrc_check
import system
from forge import (ACK, ACKNOWLEDGE, BTH_UNCOVERED, CAS, NAK_ACCESS,
                   NAK_SEQUENCE, READ_REQUEST, READ_RESPONSE, RNR_NAK,
                   SEND_ONLY, WRITE_FIRST, WRITE_ONLY, Attacker, address_of,
                   aeth, bound, bth, ends_of, reth)
from system import expect, expect_ok

t = system.Suite(__doc__, packets=True)
ENOUGH = 101  # a case sends at least so many datagrams


# A kind of datagrams is a function: it sends one datagram by the Attacker @a, with
# random choices by @rng.  @ends: the QPN of each end of the transfer, and the
# first PSN that this end sends.
def garbage(a, rng, ends):
    a.send(rng.randbytes(rng.randrange(0, 1500)))


def truncated(a, rng, ends):
    qpn, psn = rng.choice(ends)
    whole = a.sealed(bth(WRITE_FIRST, qpn, psn) + reth(0, 0, 4096) +
                     bytes(1024))
    a.send(whole[:rng.randrange(0, len(whole))])


def corrupted(a, rng, ends):
    """Sends a frame with one wrong bit, in the ICRC or in the bytes that the
    ICRC covers.  The ICRC does not cover the byte of the BTH that routers may
    write (IBTA 7.8.1)."""
    qpn, psn = rng.choice(ends)
    frame = bytearray(a.sealed(bth(SEND_ONLY, qpn, psn) + bytes(256)))
    covered = [at for at in range(len(frame)) if at != BTH_UNCOVERED]
    frame[rng.choice(covered)] ^= 1 << rng.randrange(8)
    a.send(bytes(frame))


def unknown_queue_pair(a, rng, ends):
    a.send(a.sealed(bth(SEND_ONLY, rng.randrange(1 << 24),
                        rng.randrange(1 << 24)) + bytes(64)))


def broken_headers(a, rng, ends):
    """Sends a frame with a right ICRC to a real queue pair, but with a random
    opcode, random flags, a random length, and a PSN that is 2^22 after the
    first PSN of the queue pair."""
    qpn, psn = rng.choice(ends)
    opcode = rng.randrange(256)
    a.send(a.sealed(bth(opcode, qpn, psn + (1 << 22) & 0xFFFFFF,
                        rng.randrange(256)) +
                    rng.randbytes(rng.randrange(0, 64))))


def spoofed(a, rng, ends):
    """Sends a well-formed frame with a right ICRC to a real queue pair.  The PSN
    of an acknowledgement or a response is near the first PSN that this queue pair
    sends, and the PSN of a request is near the first PSN that the other end sends.
    """
    (qpn, own), (_, others) = rng.sample(ends, 2)
    answers = ((ACKNOWLEDGE, aeth(ACK)),
               (ACKNOWLEDGE, aeth(NAK_SEQUENCE)),
               (ACKNOWLEDGE, aeth(NAK_ACCESS)),
               (ACKNOWLEDGE, aeth(RNR_NAK)),
               (READ_RESPONSE, aeth(ACK) + b"\xA5" * 64))
    requests = (
        (WRITE_ONLY, reth(rng.getrandbits(64), rng.getrandbits(32), 64) +
         b"\xA5" * 64),
        (READ_REQUEST, reth(rng.getrandbits(64), rng.getrandbits(32), 64)),
        (SEND_ONLY, b"\xA5" * 64),
        (CAS, struct.pack("!QIQQ", rng.getrandbits(64),
                          rng.getrandbits(32), 1, 0)))
    kind, psn = rng.choice(((answers, own), (requests, others)))
    head, rest = rng.choice(kind)
    psn = (psn + rng.randrange(-50, 5000)) & 0xFFFFFF
    a.send(a.sealed(bth(head, qpn, psn) + rest))


def bound_if_free(source, port):
    """Returns a socket, or None if another process has the port."""
    try:
        return bound(source, port)
    except OSError as e:
        if e.errno != errno.EADDRINUSE:
            raise
        return None


class Replay:
    """Sends frames again that a capture of an earlier transfer contains, from
    their source ports, which the ICRC covers.  That transfer has ended, and the
    next transfer takes other ports.  Replay leaves out the frames whose source
    port another process, such as mallory.py, has taken in the meantime."""

    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        self.frames, self.sockets = [], {}
        for link, frame in icrc_check.frames_of(data):
            head, body = icrc_check.roce_of(icrc_check.ip_of(link, frame))
            source = socket.inet_ntoa(head[12:16])
            port, = struct.unpack("!H", head[20:22])
            if port not in self.sockets:
                self.sockets[port] = bound_if_free(source, port)
            if not self.sockets[port]:
                continue
            # The frame that this socket sends must equal the captured frame,
            # ICRC included.
            dest = socket.inet_ntoa(head[16:20])
            expect(icrc_check.seal(source, dest, port, bytes(body[:-4])) ==
                   bytes(body), "a frame that is sent again has another ICRC")
            self.frames.append((self.sockets[port], bytes(body)))
        expect(self.sockets, "no frame was captured")

    def __call__(self, a, rng, ends):
        through, frame = rng.choice(self.frames)
        a.send(frame, through)


def transfer(argv, kinds, source):
    """Runs a pair, and sends frames of @kinds from the address @source (None: the
    pair's own address) to the pair until it ends.  Returns the Result, and how many
    frames were sent."""
    p = t.start(t.pair_argv(argv, timeout=system.HANG))
    os.set_blocking(p.stdout.fileno(), False)
    rng = random.Random(1)
    text, attacker, end = "", None, time.monotonic() + system.HANG
    while time.monotonic() < end:
        ready, _, _ = select.select([p.stdout], [], [], 0.002)
        if ready:
            chunk = p.stdout.read()
            if chunk == b"":
                break
            text += (chunk or b"").decode(errors="replace")
        ends = ends_of(text)
        if not attacker and len(ends) >= 2 and address_of(text):
            target = address_of(text)
            attacker = Attacker(source or target, target)
        if attacker:
            for _ in range(20):
                rng.choice(kinds)(attacker, rng, ends)
    r = t.finish(p, 10)
    r.output = text + r.output
    return r, attacker.sent if attacker else 0


def survive(argv, kinds, source=None):
    def once():
        r, sent = transfer(argv, kinds, source)
        expect_ok(r)
        expect("invalid data" not in r.output, "the data differ", r)
        return sent

    system.often_enough(ENOUGH, once, "datagrams were sent")


def survives(name, kinds, source=None):
    def body(argv):
        def go():
            t.need(argv[0])
            survive(argv, kinds, source)
        return go

    for argv in (["ibv_rc_pingpong", "-c", "-n", "20000"],
                 ["ib_write_bw", "-D", "3"], ["ib_read_bw", "-D", "3"]):
        label = "%s succeeds despite %s" % (argv[0], name)
        t.case(label, body(argv), "hostile", label)


survives("garbage", [garbage])
survives("truncated frames", [truncated])
survives("corrupted frames", [corrupted])
survives("frames to unknown queue pairs", [unknown_queue_pair])
survives("broken headers from another address", [broken_headers], "127.0.0.9")
survives("spoofed frames from another address", [spoofed], "127.0.0.9")


def replay():
    """Returns a Replay that has frames."""
    path = t.path("replay.pcapng")
    while True:
        # In a batch of GSO each frame has another IPv4 identification, which
        # the ICRC covers.  Without GSO each frame has the identification 0, as
        # the frames of Replay's sockets have.
        expect_ok(t.pair(["ib_write_bw", "-n", "50"], ["--pcap", path],
                         ADVERB_GSO="0"))
        found = Replay(path)
        if found.frames:
            return found
        expect(t.is_beside_hostile, "the source ports are in use")


def replayed():
    t.need("ib_write_bw")
    survive(["ib_write_bw", "-D", "3"], [replay()])


t.case("ib_write_bw succeeds despite replayed frames", replayed, "hostile",
       "ib_write_bw succeeds despite replayed frames")
survives("garbage, bad frames and frames to unknown queue pairs at once",
         [garbage, truncated, corrupted, unknown_queue_pair], None)
t.end()
