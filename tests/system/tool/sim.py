#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `adverb sim --pcap`: the capture of a simulated world.  tshark must find
nothing wrong with the capture, and a world must give the same file each time."""

import os
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import icrc_check
import mpa_check
import system
from system import expect, expect_ok
import tshark

t = system.Suite(__doc__)
# An odd seed has addresses of IPv4.  If bit 1 of the seed is set, a world of RoCEv2 uses
# shm acks, and a world of InfiniBand executes requests direct where it can.  If bit 1
# is not set, a user forges frames in a world of RoCEv2.
WORLDS = [("IPv4, a user who forges", 5, ()), ("IPv6, a user who forges", 4, ()),
          ("IPv4, shm acks", 7, ()), ("IPv6, shm acks", 6, ()),
          ("within one host", 9, ("--direct",)),
          ("iWARP, IPv4", 5, ("--iwarp",)), ("iWARP, IPv6", 16, ("--iwarp",)),
          ("InfiniBand", 4, ("--infiniband",)),
          ("InfiniBand, without packets", 7, ("--infiniband",))]
FATES = {"lost", "a bit is flipped", "cut short", "late", "a second copy", "forged",
         "the sender is unplugged"}


def capture(name, seed, *words):
    """Runs a world, and returns the path of its capture."""
    path = t.path(name + ".pcapng")
    if os.path.exists(path):
        os.unlink(path)
    expect_ok(t.run([t.adverb, "sim", "--seeds", str(seed), "--pcap", path,
                     *words]))
    return path


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def same_file(seed, words):
    first = contents(capture("first", seed, *words))
    expect(len(first) > 1000, "the capture has only %d bytes" % len(first))
    expect(contents(capture("again", seed, *words)) == first,
           "a second run of the seed has another capture")
    hashes = [t.run([t.adverb, "sim", "--seeds", str(seed), "--verbose", *words,
                     *more]).output
              for more in ((), ("--pcap", t.path("third.pcapng")))]
    os.unlink(t.path("third.pcapng"))
    expect(hashes[0] == hashes[1], "the capture changes the world")


def sound_frames(seed, words):
    """Expects that tshark and icrc_check find nothing wrong, that each frame is one
    packet of RoCEv2, and that the frames' times ascend."""
    path = capture("frames", seed, *words)
    # tshark takes random data of a payload for other protocols
    bad = tshark.lines(t, path, *tshark.CHECKS, "-Y", "!infiniband.bth || "
                       "udp.checksum.status == 0 || ip.checksum.status == 0")
    expect(not bad, "tshark finds wrong frames: " + " | ".join(bad[:5]))
    seen, wrong = icrc_check.check(path)
    expect(seen and not wrong, "%d of %d ICRCs are wrong" % (wrong, seen))
    frames = tshark.lines(t, path, "-Y", "infiniband.bth", "-T", "fields", "-e",
                          "frame.time_epoch", "-e", "infiniband.bth.opcode")
    expect(len(frames) == seen, "tshark finds RoCEv2 in %d of %d frames" % (
        len(frames), seen))
    times = [float(line.split()[0]) for line in frames]
    expect(times == sorted(times) and times[-1] > 0,
           "the frames' times do not ascend")
    t.note("%d frames" % seen)


def sound_packets(seed, words):
    """Expects that each packet has an LRH and a BTH and comes from one of the hosts'
    LIDs, and that the packets' times ascend."""
    path = capture("packets", seed, *words)
    # tshark takes random data of a payload for other protocols
    bad = tshark.lines(t, path, "-Y", "!infiniband.bth")
    expect(not bad, "tshark finds wrong packets: " + " | ".join(bad[:5]))
    packets = tshark.lines(t, path, "-T", "fields", "-e", "frame.time_epoch", "-e",
                           "infiniband.lrh.slid")
    times, lids = zip(*[line.split() for line in packets])
    times = [float(at) for at in times]
    expect(len(times) > 100 and times == sorted(times),
           "there are only %d packets, or their times do not ascend" % len(times))
    expect(set(int(lid, 0) for lid in lids) <= set(range(16, 26)),
           "the LIDs are %s" % sorted(set(lids)))
    t.note("%d packets" % len(packets))


def sound_streams(seed, words):
    path = capture("streams", seed, *words)
    tshark.expect_sound(t, path)
    count = {name: len(tshark.lines(t, path, "-Y", shown)) for name, shown in (
        ("connections", "tcp.flags.syn == 1 && tcp.flags.ack == 0"),
        ("requests", "iwarp_mpa.req"), ("replies", "iwarp_mpa.rep"),
        ("resets", "tcp.flags.reset == 1"), ("messages", "iwarp_rdma.opcode"))}
    expect(count["connections"] == count["requests"] == count["replies"] >=
           count["resets"] and count["messages"] > 10, "the capture has %s" % count)
    t.note("%(connections)d connections, %(messages)d segments" % count)


def good_crcs():
    """The FPDUs of about three of four connections have CRCs, and these are right.
    tshark judges connections without markers, and mpa_check those with markers."""
    judged = marked_fpdus = 0
    for seed in range(2, 7):
        path = capture("crcs", seed, "--iwarp")
        marked = tshark.lines(t, path, "-Y", "iwarp_mpa.marker_flag == 1", "-T",
                              "fields", "-e", "tcp.stream")
        shown = "iwarp_mpa.crc_check" + "".join(
            " && tcp.stream != " + number for number in set(marked))
        if tshark.lines(t, path, "-Y", shown):
            tshark.expect_crcs(t, path, shown)
            judged += 1
        count, wrong = mpa_check.judge(t, path)
        expect(not wrong, "%d of %d FPDUs with markers are wrong" % (wrong, count))
        marked_fpdus += count
    expect(judged, "tshark finds no CRC")
    expect(marked_fpdus > 100, "only %d FPDUs have markers" % marked_fpdus)
    t.note("%d FPDUs with markers" % marked_fpdus)


def fates():
    """The comments of all frames together name each of FATES, and nothing
    else."""
    told = set()
    for seed in range(1, 9):
        path = capture("fates", seed, "--loss", "20")
        for line in tshark.lines(t, path, "-Y", "frame.comment", "-T", "fields",
                                 "-e", "frame.comment"):
            told |= set(line.split(", "))
    expect(told == FATES, "the comments tell %s" % sorted(told))


def whole_frames():
    """Without loss, the link drops damaged frames only."""
    lost = 0
    for seed in range(1, 9):
        path = capture("whole", seed, "--loss", "0")
        for line in tshark.lines(t, path, "-Y", "frame.comment", "-T", "fields",
                                 "-e", "frame.comment"):
            fate = set(line.split(", "))
            lost += "lost" in fate
            expect("lost" not in fate or fate & {"a bit is flipped", "cut short"},
                   "seed %d: a whole frame is lost" % seed)
    t.note("%d damaged frames were dropped" % lost)


def refusals():
    path = t.path("refused.pcapng")
    for words, said in (
            (["--seeds", "1..2", "--pcap", path], "name one seed by --seeds"),
            (["--pcap", path], "name one seed by --seeds"),
            (["--seeds", "1", "--pcap"], "--pcap wants a value"),
            (["--seeds", "1", "--pcap", t.path("none/x")],
             "none/x: No such file or directory"),
            (["--seeds", "1", "--pcap", __file__],
             "name a file that does not exist yet")):
        r = t.run([t.adverb, "sim", *words])
        expect(r.status == 2 and said in r.output and
               r.output.count("\n") == 1, "no message says why", r)
        expect(not os.path.exists(path), "a file was made", r)
    r = t.run([t.adverb, "sim", "--direct", "--iwarp"])
    expect(r.status == 2 and "--direct and --iwarp exclude each other" in r.output,
           "two paths are taken", r)


def full():
    """If the file can grow no more, a message says that the capture is incomplete, and
    the world runs to its end."""
    path = t.path("full.pcapng")
    r = t.run(["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", t.adverb, "sim",
               "--seeds", "5", "--pcap", path])
    os.unlink(path)
    expect(r.status == 2 and "1 passed, 0 failed" in r.output and
           "is incomplete" in r.output, "exit status %d" % r.status, r)


def with_tshark(body, *args):
    def go():
        t.need("tshark")
        body(*args)
    return go


for name, seed, words in WORLDS:
    t.case("the same file: " + name,
           lambda seed=seed, words=words: same_file(seed, words))
    judge = (sound_streams if "--iwarp" in words else
             sound_packets if "--infiniband" in words else sound_frames)
    t.case("tshark reads: " + name, with_tshark(judge, seed, words))
t.case("CRCs of MPA are right", with_tshark(good_crcs))
t.case("comments tell what the link does", with_tshark(fates))
t.case("a link without loss drops no whole frame", with_tshark(whole_frames))
t.case("a capture that cannot be is refused", refusals)
t.case("a full disk ends the capture alone", full)
t.end()
