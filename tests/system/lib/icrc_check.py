#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Recomputes the ICRC of every RoCEv2 frame of a capture, except truncated frames
and fragments of IPv4 packets.

This code shares nothing with the code that it checks: it follows IBTA annex
A17.3.3 and uses zlib's CRC-32.  The program reads pcapng and pcap with the link
types Ethernet, Linux cooked capture, raw IP, IPv4 and IPv6.  It prints `PATH: N
frames, N wrong` for each capture, and exits with status 1 if an ICRC is wrong, a
capture has no such frame, or no capture is named.
"""

import struct
import sys
import zlib

ROCE_PORT = 4791
LINK_ETHERNET, LINK_RAW, LINK_SLL, LINK_IPV4, LINK_IPV6 = 1, 101, 113, 228, 229


def frames_of_pcapng(data):
    """Yields (link type, bytes) of each packet block whose packet is whole."""
    offset, order, links = 0, "<", []
    while offset < len(data):
        if offset + 12 > len(data):
            raise ValueError("a block runs past the end of the file")
        kind, = struct.unpack_from(order + "I", data, offset)
        if kind == 0x0A0D0D0A:
            magic = data[offset + 8:offset + 12]
            order = "<" if magic == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        size, = struct.unpack_from(order + "I", data, offset + 4)
        if size < 12 or offset + size > len(data):
            raise ValueError("a block runs past the end of the file")
        if data[offset + size - 4:offset + size] != \
                data[offset + 4:offset + 8]:
            raise ValueError("a block's two lengths differ")
        if kind == 1:
            link, _, longest = struct.unpack_from(order + "HHI", data,
                                                  offset + 8)
            links.append((link, longest or float("inf")))
        elif kind == 6:
            port, _, _, kept, was = struct.unpack_from(
                order + "IIIII", data, offset + 8)
            if 32 + kept > size:
                raise ValueError("a packet runs past the end of its block")
            if kept == was:
                yield links[port][0], data[offset + 28:offset + 28 + kept]
        elif kind == 3:
            # A simple packet block has no field for the captured length, which
            # is the smaller one of the packet's length and the interface's
            # snapshot length.
            was, = struct.unpack_from(order + "I", data, offset + 8)
            link, longest = links[0]
            if 16 + min(was, longest) > size:
                raise ValueError("a packet runs past the end of its block")
            if was <= longest:
                yield link, data[offset + 12:offset + 12 + was]
        offset += size


def frames_of_pcap(data):
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") \
        else ">"
    link, = struct.unpack_from(order + "I", data, 20)
    offset = 24
    while offset < len(data):
        if offset + 16 > len(data):
            raise ValueError("a record runs past the end of the file")
        kept, was = struct.unpack_from(order + "II", data, offset + 8)
        if offset + 16 + kept > len(data):
            raise ValueError("a record runs past the end of the file")
        if kept == was:
            yield link & 0xFFFF, data[offset + 16:offset + 16 + kept]
        offset += 16 + kept


def frames_of(data):
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        return frames_of_pcapng(data)
    return frames_of_pcap(data)


def ip_of(link, frame):
    """Returns the frame from its IP header on, or None if its Ethernet type is not
    IP or its link type is not known."""
    if link == LINK_ETHERNET:
        at = 12
        while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        if frame[at:at + 2] not in (b"\x08\x00", b"\x86\xdd"):
            return None
        return frame[at + 2:]
    if link == LINK_SLL:
        return frame[16:]
    if link in (LINK_RAW, LINK_IPV4, LINK_IPV6):
        return frame
    return None


def roce_of(ip):
    """Returns the two parts of a RoCEv2 packet: first the IP and UDP headers,
    some fields of which the ICRC does not cover, then all from the BTH to the
    ICRC.  Returns None for any other packet, and for a packet without whole IP
    and UDP headers."""
    if not ip or len(ip) < (28 if ip[0] >> 4 == 4 else 48):
        return None
    if ip[0] >> 4 == 4:
        size = (ip[0] & 15) * 4
        end, = struct.unpack_from("!H", ip, 2)
        if ip[9] != 17 or struct.unpack_from("!H", ip, 6)[0] & 0x3FFF:
            return None
    elif ip[0] >> 4 == 6:
        size = 40
        end = 40 + struct.unpack_from("!H", ip, 4)[0]
        if ip[6] != 17:
            return None
    else:
        return None
    if len(ip) < size + 8 or \
            struct.unpack_from("!H", ip, size + 2)[0] != ROCE_PORT:
        return None
    return ip[:size + 8], ip[size + 8:end]


def icrc(head, body):
    """Returns the ICRC over @head, with its variable fields masked, and over
    @body without its last 4 bytes."""
    head, bth = bytearray(head), bytearray(body[:-4])
    if head[0] >> 4 == 4:
        head[1] = 0xFF                     # type of service
        head[8] = 0xFF                     # time to live
        head[10] = head[11] = 0xFF         # header checksum
    else:
        head[0] |= 0x0F                    # traffic class, flow label
        head[1] = head[2] = head[3] = 0xFF
        head[7] = 0xFF                     # hop limit
    head[-2] = head[-1] = 0xFF             # UDP checksum
    bth[4] = 0xFF                          # FECN, BECN, reserved
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(head + bth)))


def seal(source, dest, sport, body):
    """Returns @body and the ICRC of the RoCEv2 datagram that carries @body from
    the IPv4 address @source and the port @sport to @dest, with the IPv4
    identification 0 and DF."""
    length = len(body) + 4
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + length, 0, 0x4000, 64,
                       17, 0, *(bytes(map(int, a.split(".")))
                                for a in (source, dest)))
    head += struct.pack("!HHHH", sport, 4791, 8 + length, 0)
    return body + icrc(head, body + bytes(4))


def check(path, say=lambda text: None):
    """Returns the number of RoCEv2 frames in the capture @path, and how many
    of them have a wrong ICRC; calls @say with a text for each frame whose ICRC
    is wrong."""
    with open(path, "rb") as capture:
        data = capture.read()
    seen = wrong = 0
    for link, frame in frames_of(data):
        parts = roce_of(ip_of(link, frame))
        if not parts:
            continue
        head, body = parts
        seen += 1
        if len(body) < 16 or icrc(head, body) != body[-4:]:
            wrong += 1
            say("frame %d: ICRC %s, should be %s" % (
                seen, body[-4:].hex(),
                icrc(head, body).hex() if len(body) >= 16 else "there"))
    return seen, wrong


def main():
    failed = False
    for path in sys.argv[1:]:
        seen, wrong = check(path, print)
        print("%s: %d frames, %d wrong" % (path, seen, wrong))
        failed |= wrong > 0 or seen == 0
    sys.exit(1 if failed or len(sys.argv) < 2 else 0)


if __name__ == "__main__":
    main()
