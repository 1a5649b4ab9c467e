# SPDX-License-Identifier: BSD-2-Clause
"""Records the frames of an interface, and judges those of iWARP by tshark."""

import re
import shutil
import socket
import struct
import threading
import time

import system
from system import expect

ETH_P_ALL = 3
SOL_PACKET, PACKET_STATISTICS = 263, 6
# The most bytes of a captured frame.  With GSO a frame may have several TCP
# segments, and then is longer than the link's MTU.
SNAP = 1 << 18
# Frames of MPA: 16 bytes of key, then flags, revision and length.
REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS, CRC, REJECT, ENHANCED = 0x80, 0x40, 0x20, 0x10
PEER_TO_PEER = 0x80
# tshark must look for MPA in every TCP connection, and must not take the payload of
# RDMAP for another protocol.
TSHARK = ["-o", "tcp.try_heuristic_first:TRUE", "--disable-protocol",
          "rpcordma", "--disable-protocol", "smb_direct"]
EXPERT_ERROR = 0x800000
OPCODES = {0: "WRITE", 1: "READ", 2: "READ response", 3: "SEND",
           4: "SEND with invalidate", 5: "SEND, solicited", 7: "Terminate"}


class Sniffer:
    """Writes the frames of an interface to a file, until it is stopped."""

    def __init__(self, interface, path):
        self.path = path
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                    socket.htons(ETH_P_ALL))
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.05)
        self.frames = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        with open(self.path, "wb") as out:
            out.write(struct.pack("=IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, SNAP, 1))
            while True:
                # read before recv: if recv then finds nothing, each frame that
                # came before the stop has been read
                is_last = self.stopping.is_set()
                try:
                    frame = self.socket.recv(SNAP)
                except socket.timeout:
                    if is_last:
                        return
                    continue
                at = time.time()
                out.write(struct.pack("=IIII", int(at), int(at % 1 * 1e6),
                                      len(frame), len(frame)) + frame)
                self.frames.append(frame)

    def stop(self):
        self.stopping.set()
        self.thread.join()
        dropped = struct.unpack("II", self.socket.getsockopt(
            SOL_PACKET, PACKET_STATISTICS, 8))[1]
        self.socket.close()
        expect(not dropped, "the capture lacks %d frames" % dropped)

    def startup(self, key):
        """Returns the flags, the revision and the private data of the first
        frame of MPA with that key."""
        for frame in self.frames:
            head, found, rest = frame.partition(key)
            if found and len(rest) >= 4:
                flags, revision, count = struct.unpack(">BBH", rest[:4])
                return flags, revision, rest[4:4 + count]
        expect(False, "no frame has " + key.decode())


def judge(t, path):
    """Expects that tshark finds nothing wrong with the frames.  Returns the
    RDMAP opcodes that each MAC address has sent, and the number of right
    CRCs."""
    if not shutil.which("tshark"):
        raise system.Skip("tshark is not installed")
    r = t.run(["tshark", "-r", path, *TSHARK, "-Y", "_ws.malformed || "
               "_ws.expert.severity == %d" % EXPERT_ERROR], 300)
    expect(r.status == 0, "tshark cannot read the capture", r)
    expect(not re.search(r"^ *\d+ ", r.output, re.M),
           "tshark finds malformed frames", r)
    r = t.run(["tshark", "-r", path, *TSHARK, "-O", "iwarp_mpa", "-Y",
               "iwarp_mpa.crc_check"], 300)
    expect("Bad CRC32" not in r.output, "tshark finds wrong CRCs", r)
    right = r.output.count("Good CRC32")
    r = t.run(["tshark", "-r", path, *TSHARK, "-Y", "iwarp_rdma.opcode", "-T",
               "fields", "-e", "eth.src", "-e", "iwarp_rdma.opcode"], 300)
    seen = {}
    for line in r.output.splitlines():
        source, _, codes = line.partition("\t")
        for code in codes.split(",") if codes else ():
            seen.setdefault(source, set()).add(
                OPCODES.get(int(code, 0), code))
    return seen, right
