#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The counter files of the tree: as a capture has it, as adverb top says, and
never backwards."""

import ctypes
import os
import signal

import icrc_check
import netlab
import system
from system import Skip, expect, expect_ok

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
CLONE_NEWNET = 0x40000000
# Which of them is which total of adverb top.
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


def port():
    return os.path.join(
        t.runtime, "adverb-%d" % os.geteuid(),
        "sysfs-%d" % os.stat("/proc/self/ns/net").st_ino,
        "class/infiniband/adv0/ports/1")


def counter(name):
    """0 while no program has made the tree."""
    path = os.path.join(port(), name)
    if not os.path.exists(path):
        return 0
    with open(path) as f:
        return int(f.read())


def transfer(*words, **env):
    argv = ["ib_write_bw", "-s", "10000", "-n", "50", "-p", "%", *words]
    return lab.both(argv, [*argv, "127.0.0.1"], client_side="here", **env)


def as_captured():
    names = ["counters/port_xmit_packets", "counters/port_rcv_packets"]
    before = sum(counter(name) for name in names)
    files = [t.path("server.pcapng"), t.path("client.pcapng")]
    r = transfer(server_env={"ADVERB_PCAP": files[0]},
                 client_env={"ADVERB_PCAP": files[1]})
    expect_ok(r)
    seen = sum(icrc_check.check(path)[0] for path in files)
    expect(seen > 300, "few frames were captured", r)
    lab.wait(lambda: sum(counter(name) for name in names) - before >= seen,
             "the files do not come to %d" % seen)
    expect(sum(counter(name) for name in names) - before == seen,
           "the capture has %d, the files %d" %
           (seen, sum(counter(name) for name in names) - before))
    data = counter("counters/port_xmit_data")
    expect(data * 4 >= 10000 * 50 and data == counter(
        "counters/port_rcv_data"), "port_xmit_data is %d" % data)


def every_name():
    expect_ok(transfer())
    found = {kind: sorted(os.listdir(os.path.join(port(), kind)))
             for kind in ("counters", "hw_counters")}
    expect(len(found["counters"]) == 17 and len(found["hw_counters"]) == 26,
           "other files: %s" % found)
    for kind, names in found.items():
        for name in names:
            counter(kind + "/" + name)


def as_top_says():
    zero = {name: counter(name) for name in TOTALS}

    def agree():
        said, _ = lab.fan_top()
        return len(said) == 2 and all(
            counter(name) - zero[name] == sum(p[field] for p in said)
            for name, field in TOTALS.items())
    with lab.fan("here", 1, 50):
        lab.wait(agree, "they never agree: %s, %s" % (lab.fan_top()[0], zero))


def never_backwards():
    """While a program runs, and its broker is killed."""
    words = ["ib_write_bw", "-D", "4", "-p", "%"]
    p = lab.begin(words, [*words, "127.0.0.1"], client_side="here")
    name = "counters/port_xmit_data"
    seen = [counter(name)]

    def grows():
        now = counter(name)
        expect(now >= seen[-1], "%d came after %d" % (now, seen[-1]))
        if now > seen[-1]:
            seen.append(now)
        return len(seen)
    for kills in range(2):
        more = grows() + 2
        lab.wait(lambda: grows() >= more or p[1].poll() is not None,
                 "it does not grow")
        for pid in system.brokers():
            if not kills:
                os.kill(pid, signal.SIGKILL)
    expect(grows() >= 4, "it was not seen to grow: %s" % seen)
    expect_ok(lab.finish(p))


def fresh(body):
    """In a network namespace, and so with a tree and a broker, of its own:
    what ended before is in nobody's files a moment later."""
    def go():
        if ctypes.CDLL(None).unshare(CLONE_NEWNET):
            raise Skip("no other network namespace")
        lab.ip("here", "link set lo up")
        body()
    return go


t.case("the files count what a capture has", fresh(as_captured), "counters",
       "ib_write_bw")
t.case("every file is there and a number", fresh(every_name))
t.case("the files agree with adverb top", fresh(as_top_says))
t.case("they grow while a program runs, past the broker's death",
       fresh(never_backwards))
lab.end()
t.end()
