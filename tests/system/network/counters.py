#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the counter files of the synthesised /sys tree: they agree with a
capture and with adverb top, and never decrease."""

import ctypes
import os
import signal
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import icrc_check
import netlab
import system
from system import Skip, expect, expect_ok

netlab.enter()
t = system.Suite(__doc__, packets=True)
lab = netlab.Lab(t)
CLONE_NEWNET = 0x40000000
# Eight of the counter files, each with a counter of adverb top.  A file grows
# by the sum of that counter over all processes.
TOTALS = {
    "counters/port_xmit_packets": "tx_packets",
    "counters/port_rcv_packets": "rx_packets",
    "hw_counters/duplicate_request": "rx_duplicates",
    "hw_counters/out_of_sequence": "rx_out_of_order",
    "hw_counters/local_ack_timeout_err": "timeouts",
    "hw_counters/rnr_nak_retry_err": "rnr_naks_rx",
    "hw_counters/packet_seq_err": "seq_naks_rx",
    "hw_counters/rx_icrc_encapsulated": "rx_bad_icrc",
}


def port(device="adv0"):
    return os.path.join(
        t.runtime, "adverb-%d" % os.geteuid(),
        "sysfs-%d" % os.stat("/proc/self/ns/net").st_ino,
        "class/infiniband", device, "ports/1")


def counter(name, device="adv0"):
    """Returns the value of a counter file, or 0 if the file does not exist: the
    first program makes the tree."""
    path = os.path.join(port(device), name)
    if not os.path.exists(path):
        return 0
    with open(path) as f:
        return int(f.read())


def transfer(*words, **env):
    argv = ["ib_write_bw", "-s", "10000", "-n", "50", "-p", "%", *words]
    return lab.both(argv, [*argv, "127.0.0.1"], client_side="here", **env)


def captured(name, *words, **env):
    """Runs a transfer and captures the frames of both ends.  Returns how many
    frames the two captures contain."""
    files = [t.path("%s-%s.pcapng" % (name, side))
             for side in ("server", "client")]
    expect_ok(transfer(*words, server_env=dict(env, ADVERB_PCAP=files[0]),
                       client_env=dict(env, ADVERB_PCAP=files[1])))
    return sum(icrc_check.check(path)[0] for path in files)


def as_captured():
    t.need_no_hostile("sends frames that are counted")
    names = ["counters/port_xmit_packets", "counters/port_rcv_packets"]
    before = sum(counter(name) for name in names)
    seen = captured("all")
    expect(seen > 300, "only %d frames were captured" % seen)
    lab.wait(lambda: sum(counter(name) for name in names) - before >= seen,
             "the counter files do not reach %d" % seen)
    expect(sum(counter(name) for name in names) - before == seen,
           "the captures have %d frames, the counter files count %d" %
           (seen, sum(counter(name) for name in names) - before))
    data = counter("counters/port_xmit_data")
    expect(data * 4 >= 10000 * 50 and data == counter(
        "counters/port_rcv_data"), "port_xmit_data is %d" % data)


def every_name():
    expect_ok(transfer())
    found = {kind: sorted(os.listdir(os.path.join(port(), kind)))
             for kind in ("counters", "hw_counters")}
    expect(len(found["counters"]) == 17 and len(found["hw_counters"]) == 45,
           "expected 17 files in counters and 45 in hw_counters: %s" % found)
    for kind, names in found.items():
        for name in names:
            counter(kind + "/" + name)


def as_top_says():
    zero = {name: counter(name) for name in TOTALS}

    def agree():
        said, _ = lab.one_to_many_top()
        return len(said) == 2 and all(
            counter(name) - zero[name] == sum(p[field] for p in said)
            for name, field in TOTALS.items())
    with lab.one_to_many("here", 1, 50):
        lab.wait(agree, "the counter files and adverb top never agree; adverb top "
                 "began with %s, the files with %s" %
                 (lab.one_to_many_top()[0], zero))


def never_backwards():
    """A counter grows and never decreases while a program runs, also when the
    broker is killed."""
    words = ["ib_write_bw", "-D", "100", "-p", "%"]
    pair = lab.begin(words, [*words, "127.0.0.1"], client_side="here")
    name = "counters/port_xmit_data"
    seen = [counter(name)]

    def grows():
        now = counter(name)
        expect(now >= seen[-1], "%d came after %d" % (now, seen[-1]))
        if now > seen[-1]:
            seen.append(now)
        return len(seen)
    try:
        for kills in range(2):
            more = grows() + 2
            lab.wait(lambda: grows() >= more, "the counter does not grow")
            for pid in system.brokers():
                if not kills:
                    os.kill(pid, signal.SIGKILL)
    finally:
        for p in pair:
            p.kill()
            p.communicate()


SENT = "counters/port_xmit_packets"
MARKS = SENT, "counters/port_rcv_packets", "counters/port_xmit_data"


def send_by(device, choice):
    return captured("%s-%s" % (device, choice), "-d", device, "-x", "1",
                    ADVERB_DEVICES=choice)


def all_of(device):
    return [counter(name, device) for name in MARKS]


def sent_nothing(device):
    """Expects that @device has the counter files MARKS, with the value 0."""
    for name in MARKS:
        expect(os.path.exists(os.path.join(port(device), name)),
               "%s has no %s" % (device, name))
    expect(all_of(device) == [0, 0, 0], "%s has %s" % (device, all_of(device)))


def settle(device, frames, before=(0, 0, 0)):
    """Waits until the two packet counters of @device together have grown by
    @frames, and checks the growth of all MARKS.  @before: the values of MARKS
    before the transfer.  The file that counts words of data is then up to date,
    too: the broker writes that file before the files that count packets."""
    def more():
        return [now - was for now, was in zip(all_of(device), before)]

    def says():
        return "%s had %s, has %s; %d frames were captured" % (
            device, before, all_of(device), frames)
    lab.wait(lambda: sum(more()[:2]) >= frames, says)
    sent, got, words = more()
    expect(sent == got and sent + got == frames and words >= 125000, says())


def two_interfaces():
    for at, name in enumerate(("d0", "d1")):
        lab.ip("here", "link add %s type veth peer name of-%s" %
               (name, name))
        lab.ip("here", "address add 192.168.7%d.1/24 dev %s" % (at, name))
        for end in name, "of-" + name:
            lab.ip("here", "link set %s up" % end)
    lab.ip("here", "route add default dev d0")


def of_each_device():
    t.need_no_hostile("sends frames that are counted")
    two_interfaces()
    for device, other in ("adv0", "adv1"), ("adv1", "adv0"):
        before = all_of(other)
        settle(device, send_by(device, "d0,d1"))
        expect(all_of(other) == before, "%s sent, %s had %s, has %s" %
               (device, other, before, all_of(other)))
    d0, d1 = all_of("adv0"), all_of("adv1")
    # If ADVERB_DEVICES names the interfaces in another order, each interface
    # keeps its values, although its device has another number.
    settle("adv0", send_by("adv0", "d1,d0,lo"), d1)
    expect(all_of("adv1") == d0, "d0 had %s as adv0; as adv1 it has %s" %
           (d0, all_of("adv1")))
    sent_nothing("adv2")


def of_each_kind():
    """One interface is a RoCE device and an iWARP device, and each device has
    its own files."""
    t.need_no_hostile("sends frames that are counted")
    two_interfaces()
    for choice in "d0,iwarp:d0", "iwarp:d0,d0":
        before = all_of("adv0") if choice[0] == "i" else (0, 0, 0)
        settle("adv0", send_by("adv0", choice), before)
        sent_nothing("iw0")


def reads_and_failures():
    """Received requests are counted by kind, and no error is counted."""
    names = ("rx_write_requests", "rx_read_requests", "rx_atomic_requests",
             "req_cqe_error", "out_of_buffer")

    def now():
        return dict((n, counter("hw_counters/" + n)) for n in names)
    for tool in "ib_write_lat", "ib_read_lat", "ib_atomic_lat":
        t.need(tool)
        argv = [tool, "-n", "20", "-p", "%"]
        expect_ok(lab.both(argv, [*argv, "127.0.0.1"], client_side="here"))
    # In ib_write_lat both ends write; in the other two tools only the client
    # posts requests.
    lab.wait(lambda: list(now().values()) == [40, 20, 20, 0, 0],
             lambda: "not 40 WRITEs, 20 READs and 20 atomics: %s" % now())


def fresh(body):
    """Returns a case that runs @body in a network namespace of its own, and so
    with a tree and a broker of its own.  In a tree that the cases share, the
    broker might write the counts of earlier programs during @body."""
    def go():
        if ctypes.CDLL(None).unshare(CLONE_NEWNET):
            raise Skip("no other network namespace")
        lab.ip("here", "link set lo up")
        body()
    return go


t.case("the files count the packets of a capture", fresh(as_captured), "counters",
       "ib_write_bw")
t.case("every counter file exists and holds a number", fresh(every_name))
t.case("the files agree with adverb top", fresh(as_top_says))
t.case("requests are counted by their kind", fresh(reads_and_failures),
       "counters", "ib_atomic_lat")
t.case("each device has its own counter files", fresh(of_each_device), "counters",
       "several devices")
t.case("two devices of one interface have their own counter files", fresh(of_each_kind),
       "counters", "two kinds")
t.case("a counter grows while a program runs, also when the broker is killed",
       fresh(never_backwards))
lab.end()
t.end()
