#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the FPDUs of MPA in the TCP streams of a capture, and checks the markers and
the CRCs.

This code shares nothing with the code that it checks: it follows RFC 5044 4, and
computes CRC-32C by a table of its own.  tshark cannot check these CRCs: it takes a
marker between two FPDUs for an FPDU without bytes, and then reports right CRCs as
wrong.
"""

import struct

import tshark

FRAME = 20              # bytes of a Request or Reply before its private data
FLAG_MARKERS = 0x80     # the sender wants markers in the FPDUs that it receives
FLAG_CRC = 0x40
STRIDE = 512            # from one marker to the next


def crc_table():
    table = list(range(256))
    for _ in range(8):
        table = [c >> 1 ^ (0x82F63B78 if c & 1 else 0) for c in table]
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def read_fpdu(stream, at, has_markers):
    """Returns the FPDU at the index `at`, markers and CRC included, whether its
    markers are right, and the index of its end.  Returns None if the stream ends
    before the FPDU does."""
    fpdu, begin, size, seen, is_right = b"", None, 2, 0, True
    while seen < size:
        if has_markers and at % STRIDE == 0:
            away = 0 if begin is None else at - begin
            marker = stream[at:at + 4]
            is_right &= marker == struct.pack(">HH", 0, away)
            fpdu += marker
            at += 4
        begin = at if begin is None else begin
        n = min(size - seen, STRIDE - at % STRIDE)
        if at + n > len(stream):
            return None
        fpdu += stream[at:at + n]
        seen += n
        at += n
        if seen == 2:
            size, = struct.unpack(">H", fpdu[-2:])
            size += 2
            size += -size % 4 + 4
    return fpdu, is_right, at


def streams_of(t, path):
    """Returns the two directions of each connection, as bytes.  The capture must
    have the segments in order, and each only once."""
    found = {}
    for line in tshark.lines(t, path, "-Y", "tcp.len > 0", "-T", "fields", "-e",
                             "tcp.stream", "-e", "tcp.srcport", "-e",
                             "tcp.payload"):
        stream, port, payload = line.split("\t")
        ends = found.setdefault(stream, {})
        ends[port] = ends.get(port, b"") + bytes.fromhex(payload)
    return [tuple(ends.values()) for ends in found.values() if len(ends) == 2]


def judge(t, path):
    """Returns how many FPDUs with markers and with CRC the capture has, and how many
    of these are wrong."""
    count = wrong = 0
    for ends in streams_of(t, path):
        for stream, other in (ends, ends[::-1]):
            has_markers = bool(other[16] & FLAG_MARKERS)
            if not has_markers or not (stream[16] | other[16]) & FLAG_CRC:
                continue
            length, = struct.unpack(">H", stream[18:FRAME])
            stream = stream[FRAME + length:]
            at = 0
            while (got := read_fpdu(stream, at, has_markers)) is not None:
                fpdu, is_right, at = got
                crc, = struct.unpack("<I", fpdu[-4:])
                count += 1
                wrong += not is_right or crc != crc32c(fpdu[:-4])
    return count, wrong
