#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads captures by tshark, for the suites that judge them."""

from system import HANG, expect

# tshark must look for MPA in each TCP connection, and must not take the payload of
# RDMAP for another protocol.
OPTIONS = ["-o", "tcp.try_heuristic_first:TRUE", "--disable-protocol",
           "rpcordma", "--disable-protocol", "smb_direct"]
CHECKS = ["-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o",
          "ip.check_checksum:TRUE"]
# The filter selects malformed frames, frames about which tshark warns, frames
# with a wrong checksum, and frames that show a loss, a change of order or a full
# window.  A connection may end by RST, so a warning about an RST does not count.
BAD = ("_ws.malformed || _ws.expert.severity >= 0x600000 && "
       "!(tcp.flags.reset == 1) || "
       "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || "
       "tcp.analysis.retransmission || tcp.analysis.out_of_order || "
       "tcp.analysis.duplicate_ack || tcp.analysis.window_full || "
       "tcp.checksum.status == 0 || udp.checksum.status == 0 || "
       "ip.checksum.status == 0")


def lines(t, path, *words):
    """Returns the lines that tshark prints about a capture."""
    r = t.run(["tshark", "-n", "-r", path, *OPTIONS, *words], HANG)
    expect(r.status == 0, "tshark cannot read the capture", r)
    # For root, tshark warns that it runs as root.
    return [line for line in r.output.splitlines()
            if not line.startswith("Running as user")]


def expect_sound(t, path):
    """Expects that tshark finds nothing wrong with the frames of a capture."""
    bad = lines(t, path, *CHECKS, "-Y", BAD)
    expect(not bad, "tshark finds wrong frames: " + " | ".join(bad[:5]))


def expect_crcs(t, path, shown="iwarp_mpa.crc_check"):
    """Expects that at least one of the frames that the filter @shown selects
    has a CRC of MPA, and that all CRCs of these frames are right."""
    crcs = lines(t, path, "-O", "iwarp_mpa", "-Y", shown)
    expect(not any("Bad CRC32" in line for line in crcs), "a CRC is wrong")
    expect(any("Good CRC32" in line for line in crcs), "tshark finds no CRC")
