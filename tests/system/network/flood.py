#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests floods of junk at UDP port 4791 from another network namespace:
transfers continue, the broker's memory does not grow, and no program prints
more than one message about the flood."""

import subprocess
import sys
import threading

sys.path.insert(1, sys.path[0] + "/../lib")

import forge
import netlab
import system
from system import expect, expect_ok

netlab.enter()
t = system.Suite(__doc__, packets=True, hears_strangers=True)
lab = netlab.Lab(t)

# A program that runs in the other namespace until it is killed, and sends as
# fast as possible: random bytes, frames to random QPNs, and frames to QPNs of
# the steering classes in use.  The program computes these QPNs by the inverse
# of the hash in broker/steer.c.
FLOOD = r"""
import itertools, os, random, socket, struct, sys
r = random.Random(1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 4791))
junk = [r.randbytes(r.randrange(1, 1400)) for _ in range(500)]
def frame(qpn):
    return struct.pack("!BBHII", r.choice((4, 10, 17, 100)), 0x40, 0xffff,
                       qpn & 0xffffff, r.randrange(1 << 24)) + r.randbytes(64)
for i in range(3500):
    junk.append(frame(r.randrange(1 << 24)))
aimed = []
os.set_blocking(0, False)
for sent in itertools.count():
    # aim() writes the classes in use, whenever they change.
    try:
        line = os.read(0, 65536).split(b"\n")[-2]
        aimed = [frame((int(c) << 14 | r.randrange(1 << 14)) * 0x3fb9b5)
                 for c in line.split() for _ in range(1000)]
    except (BlockingIOError, IndexError):
        pass
    for datagram in junk + aimed:
        try:
            s.send(datagram)
        except OSError:
            pass
    if not sent:
        print("under way", flush=True)
"""


def resident_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        return sum(int(line.split()[1]) for line in f
                   if line.startswith("VmRSS:"))


def broker():
    found = system.brokers()
    expect(found, "there is no broker")
    return min(found)


def aim(flood, is_over):
    """Writes the steering classes in use to the standard input of @flood until
    @is_over is set.  A frame to a random QPN comes to a given process only once
    in a thousand, since there are 1024 classes."""
    last = []
    while not is_over.wait(0.1):
        try:
            now = forge.classes()
            if now != last:
                flood.stdin.write((" ".join(map(str, now)) + "\n").encode())
                flood.stdin.flush()
            last = now
        except OSError:
            continue  # the broker has just ended


def flooded(argv, seconds=None):
    """Returns a case that runs the pair @argv during a flood.  A side prints
    its message about the flood after a thousand frames, and how many frames
    come in a second depends on the machine.  So with @seconds, the duration for
    the option -D, the case runs the pair again, for four times as long, until
    each side prints the message.  Without @seconds the case runs the pair once,
    and a side may print no message."""
    def run():
        length = seconds
        while True:
            r = t.pair([*argv, "-D", str(length)] if length else argv,
                       timeout=system.HANG)
            expect_ok(r)
            said = [sum("packets were dropped that" in line for line in r.lines(side))
                    for side in ("server", "client")]
            expect(max(said) <= 1, "the sides print the message %d and %d times" %
                   tuple(said), r)
            if min(said) or not length:
                return
            expect(length < 100, "a side never reports the flood", r)
            length *= 4

    def body():
        t.need(argv[0])
        lab.unwire()
        lab.wire("v0", 1500, ("10.1.0.1/24",), ("10.1.0.2/24",))
        expect_ok(t.pair(["ibv_rc_pingpong"]))
        before = resident_kib(broker())
        flood = subprocess.Popen(lab.into(
            "there", [sys.executable, "-c", FLOOD, "10.1.0.1"]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        is_over = threading.Event()
        aiming = threading.Thread(target=aim, args=(flood, is_over))
        aiming.start()
        try:
            expect(flood.stdout.readline(), "the flood has ended")
            run()
        finally:
            is_over.set()
            aiming.join()
            flood.kill()
            flood.wait()
        after = resident_kib(broker())
        expect(after <= before + 2048, "%d KiB have become %d" %
               (before, after))
    return body


seconds = 30 if t.options.full else 3
for tool, length in ((["ib_write_bw"], seconds), (["ib_send_lat"], seconds),
                     (["ibv_rc_pingpong", "-e", "-c", "-n", "5000"], None)):
    name = "%s succeeds during a flood from another namespace" % tool[0]
    t.case(name, flooded(tool, length), "hostile", name)
t.end()
