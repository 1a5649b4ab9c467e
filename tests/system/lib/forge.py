#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes forged RoCEv2 frames.  The command `forge.py TARGET QPN...`, which another
user runs, sends messages to the QPNs (hexadecimal) of TARGET, with TARGET's own
address as the source.  After SIGTERM the command prints on stderr how many messages
it has sent, and exits with status 1."""

import os
import re
import signal
import socket
import struct
import sys
import time

import icrc_check

ROCE_PORT = icrc_check.ROCE_PORT
# The command sends nothing while more than QUEUE_BYTES wait in a socket, which
# holds at least 200 KiB.  For a frame of 1 KiB the kernel counts about 2300 bytes
# in the socket.
QUEUE_BYTES = 65536
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2

SEND_ONLY, WRITE_ONLY, READ_REQUEST = 0x04, 0x0A, 0x0C
ACKNOWLEDGE, CAS, WRITE_FIRST, READ_RESPONSE = 0x11, 0x13, 0x06, 0x10
BTH_UNCOVERED = 4
ACK, RNR_NAK, NAK_SEQUENCE, NAK_ACCESS = 0x1F, 0x21, 0x60, 0x62
UC_SEND_ONLY = 0x24


def bth(opcode, qpn, psn, flags=0x40):
    return struct.pack("!BBHII", opcode, flags, 0xFFFF, qpn,
                       psn | 1 << 31)


def reth(address, rkey, size):
    return struct.pack("!QII", address, rkey, size)


def aeth(syndrome, msn=0):
    return struct.pack("!I", syndrome << 24 | msn)


def bound(source, port=0):
    """Returns a socket whose datagrams have this source.  The kernel gives them
    the IPv4 identification 0 and DF, so the ICRC, which covers these fields, is
    known before a datagram is sent."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    s.setblocking(False)
    s.bind((source, port))
    return s


class Attacker:
    """A socket that sends forged frames."""

    def __init__(self, source, target):
        self.target = target
        self.socket = bound(source)
        self.source, self.port = self.socket.getsockname()
        self.sent = 0

    def sealed(self, body):
        """Returns @body and the ICRC of a frame with this body."""
        size = 20 + 8 + len(body) + 4
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size, 0, 0x4000, 64, 17, 0,
                         socket.inet_aton(self.source),
                         socket.inet_aton(self.target))
        udp = struct.pack("!HHHH", self.port, ROCE_PORT, size - 20, 0)
        return body + icrc_check.icrc(ip + udp, body + bytes(4))

    def send(self, datagram, through=None):
        """Sends a datagram through self.socket, or through another socket.  Does
        not count a datagram that the kernel refuses."""
        try:
            (through or self.socket).sendto(datagram, (self.target, ROCE_PORT))
            self.sent += 1
        except OSError:
            pass


# struct proto of broker/proto.h: magic, version, kind, serial, value, about,
# brings, and the rest.
MESSAGE = struct.Struct("=IHHIIII40x112x")
MAGIC, ASK, GONE = 0x61647662, 4, 0
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "../../../src/broker/proto.h")) as proto:
    VERSION = int(re.search(r"PROTO_VERSION\s+(\d+)", proto.read()).group(1))


def qpn_of(steer_class, rest):
    """Returns the QPN of a class and of the QPN's other 14 bits @rest, as steer_qpn
    in broker/steer.c does."""
    return (steer_class << 14 | rest) * 0x3FB9B5 & 0xFFFFFF


def broker_name():
    """Returns the abstract address of this version's broker in this network
    namespace, or None if no such broker listens."""
    name = "adverbd-%d" % VERSION
    with open("/proc/net/unix") as f:
        return name if re.search("@%s$" % name, f.read(), re.M) else None


def classes():
    """Returns the classes that processes have: asks the broker about a QPN of
    each class."""
    name, found = broker_name(), []
    if not name:
        return found
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(100)  # a stopped broker does not answer
        s.connect("\0" + name)
        for k in range(1, 1023):
            s.send(MESSAGE.pack(MAGIC, VERSION, ASK, k, qpn_of(k, 0), 0, 0))
            answer = s.recv(MESSAGE.size)
            if len(answer) == MESSAGE.size and \
                    MESSAGE.unpack(answer)[4] != GONE:
                found.append(k)
    return found


def ends_of(text):
    """Returns the (QPN, PSN) pairs of both ends that a tool has printed."""
    found = re.findall(r"QPN:? 0x([0-9a-f]+),? PSN:? 0x([0-9a-f]+)", text)
    return sorted({(int(q, 16), int(p, 16)) for q, p in found})


def address_of(text):
    """Returns the IPv4 address in the GID that a tool has printed, or None."""
    dotted = re.search(r"GID:?.*?ffff:(\d+\.\d+\.\d+\.\d+)", text)
    if dotted:
        return dotted.group(1)
    bytes_ = re.search(r"GID: (?:\d+:)+255:255:(\d+):(\d+):(\d+):(\d+)", text)
    if bytes_:
        return ".".join(str(int(b)) for b in bytes_.groups())
    return None


def queued():
    """Returns how many bytes wait in the fullest socket of ROCE_PORT in this
    network namespace."""
    most = 0
    for name in "/proc/net/udp", "/proc/net/udp6":
        if os.path.exists(name):
            with open(name) as f:
                for row in list(f)[1:]:
                    _, local, _, _, queues = row.split()[:5]
                    if local.endswith(":%04X" % ROCE_PORT):
                        most = max(most, int(queues.split(":")[1], 16))
    return most


def main():
    target, qpns = sys.argv[1], [int(q, 16) for q in sys.argv[2:]]
    attacker = Attacker(target, target)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("%d" % attacker.sent))
    psn = 0
    while True:
        # Without this pause the frames would fill the socket of a program that
        # is suspended, and the kernel would drop the program's own packets.
        while queued() > QUEUE_BYTES:
            time.sleep(0.001)
        for qpn in qpns:
            for opcode in (SEND_ONLY, UC_SEND_ONLY):
                attacker.send(attacker.sealed(bth(opcode, qpn, psn) +
                                              b"\xA5" * 1024))
        psn = psn + 1 & 0xFFFFFF
        time.sleep(0.0005)


if __name__ == "__main__":
    main()
