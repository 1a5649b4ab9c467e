#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what `adverb top` reports about processes."""

import json
import os
import shutil
import signal
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import system
from system import HANG, Fail, Skip, Suite, expect

suite = Suite(__doc__)
# The time limit of a transfer.  It is longer than all waits of a case together,
# because the case ends its transfer itself.
TRANSFER_S = 10 * HANG


def top(*options):
    r = suite.run([suite.adverb, "top", "--once", "--interval", "0.1",
                   *options])
    if r.status:
        raise Fail("status %d" % r.status, r.output)
    return r.output


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(word) for word in f.read().split()]


def seen(what, wanted):
    """Runs `adverb top --json` until @wanted returns a true value for the parsed
    output, and returns that value.  Fails after HANG seconds; @what is for the
    message of the failure."""
    bound = time.monotonic() + HANG
    while time.monotonic() < bound:
        found = wanted(json.loads(top("--json")))
        if found:
            return found
    raise Fail("adverb top does not show: " + what, top())


class Pair:
    """The two processes of a long transfer, which __exit__ kills.  @direct, the value
    of ADVERB_DIRECT: "0" by packets, "1" direct."""

    def __init__(self, direct):
        self.env = suite.environment(ADVERB_DIRECT=direct)

    def __enter__(self):
        self.main = suite.start(suite.pair_argv(
            ["ib_write_bw", "-s", "65536", "-n", "100000000"], timeout=TRANSFER_S),
            env=self.env)
        self.server, self.client = seen("two ends", self.ends)
        return self

    def ends(self, said):
        """Returns the process ids of the server and of the client, or None."""
        mine = set(children(self.main.pid))
        for qp in said["queue_pairs"]:
            if qp["pid"] in mine and qp["peer_pid"] in mine and \
                    qp["state"] == "RTS" and qp["tx_bytes"] > 1 << 20:
                return qp["peer_pid"], qp["pid"]
        return None

    def qp(self, said, pid):
        return next(qp for qp in said["queue_pairs"] if qp["pid"] == pid)

    def __exit__(self, *_):
        os.killpg(self.main.pid, signal.SIGKILL)
        self.main.communicate()


def a_transfer_is_seen(direct):
    suite.need("ib_write_bw")
    with Pair(direct) as pair:
        def busy(said):
            a, b = pair.qp(said, pair.client), pair.qp(said, pair.server)
            return (a, b) if a["tx_bytes_per_s"] > 0 and \
                b["rx_bytes"] >= 1 << 20 else None
        a, b = seen("a rate", busy)
        if a["peer"] != b["peer"] or a["peer_qpn"] != b["qpn"] or \
                a["retransmits"] > a["tx_packets"]:
            raise Fail("the rows of the two ends do not fit each other",
                       "%s\n%s" % (a, b))
        if "ib_write_bw" not in top():
            raise Fail("the table lacks ib_write_bw", top())


def a_stopped_peer_is_named():
    suite.need("ib_write_bw")
    with Pair("0") as pair:
        os.kill(pair.server, signal.SIGSTOP)

        def waits(said):
            qp = pair.qp(said, pair.client)
            mark = "process %d (ib_write_bw), is stopped" % pair.server
            return mark in qp["why"] and qp["waits"]
        if seen("that the peer is stopped", waits) not in (
                "window", "answer", "silent", "credit"):
            raise Fail("the client waits for something else", top())

        def stopped(said):
            return any(p["stopped"] for p in said["processes"]
                       if p["pid"] == pair.server)
        seen("that the process itself is stopped", stopped)
        os.kill(pair.server, signal.SIGCONT)
        seen("that the transfer continues",
             lambda said: pair.qp(said, pair.client)["tx_bytes_per_s"] > 0)


def a_full_stream_is_named():
    """While an iWARP server is stopped, `adverb top` shows that the client waits for
    the client's own socket."""
    suite.need("ib_write_bw")
    main = suite.start(suite.pair_argv(
        ["ib_write_bw", "-R", "-s", "65536", "-n", "100000000"], timeout=TRANSFER_S),
        env=suite.environment(ADVERB_DEVICES="iwarp"))

    def busy(key):
        def find(said):
            mine = set(children(main.pid))
            return [qp for qp in said["queue_pairs"] if qp["pid"] in mine and
                    qp["state"] == "RTS" and qp[key] > 1 << 20]
        return find
    try:
        client = seen("a client", busy("tx_bytes"))[0]
        server = seen("a server", busy("rx_bytes"))[0]
        expect(client["peer"] == "127.0.0.1",
               "the client's peer is " + client["peer"])
        os.kill(server["pid"], signal.SIGSTOP)
        seen("that the socket is full", lambda said: [
            qp for qp in said["queue_pairs"]
            if qp["pid"] == client["pid"] and qp["waits"] == "socket"])
        os.kill(server["pid"], signal.SIGCONT)
    finally:
        os.killpg(main.pid, signal.SIGKILL)
        main.communicate()


def a_hostile_name_reaches_no_terminal():
    suite.need("ibv_rc_pingpong")
    program = suite.path("\033[2J\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9")
    shutil.copy(shutil.which("ibv_rc_pingpong"), program)
    p = suite.start([suite.adverb, "run", "--", program])
    try:
        name = seen("the program",
                    lambda said: [q["name"] for q in said["processes"]
                                  if q["pid"] == p.pid])
        expect(name == ["?[2J" + 11 * "?"], "the shown name is %r" % name)
        expect("\033" not in top(), "the table has an escape character")
    finally:
        p.kill()
        p.communicate()


# Opens a device, and forks two children, of which the second opens a device, too.
# Prints the numbers of the three processes.
FORKS = """
import ctypes, os, time
lib = ctypes.CDLL("libibverbs.so.1")
lib.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
lib.ibv_open_device.argtypes = [ctypes.c_void_p]
lib.ibv_open_device.restype = ctypes.c_void_p
def open_device():
    if not lib.ibv_open_device(lib.ibv_get_device_list(None)[0]):
        os._exit(1)
def fork(opens):
    pid = os.fork()
    if not pid:
        if opens:
            open_device()
        time.sleep(1000)
    return pid
open_device()
print(os.getpid(), fork(False), fork(True), flush=True)
time.sleep(1000)
"""


def a_child_is_shown_with_its_own_device(direct):
    p = suite.start([suite.adverb, "run", "--", system.PYTHON, "-c", FORKS],
                    env=suite.environment(ADVERB_DIRECT=direct))
    try:
        line = p.stdout.readline().split()
        expect(len(line) == 3, "the program prints %r" % line)
        parent, idle, opener = map(int, line)

        def shown(said):
            return {q["pid"] for q in said["processes"]} & {parent, idle, opener}
        seen("the child with a device", lambda said: opener in shown(said))
        expect(shown(json.loads(top("--json"))) == {parent, opener},
               "a child without a device is shown, or the parent is not")
    finally:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()


# Makes a FIFO with the name of an arena, in a mount that is attached nowhere, so
# that /proc shows the name without a folder.  430, 431 and 432 are the numbers of
# fsopen(2), fsconfig(2) and fsmount(2); 6 is FSCONFIG_CMD_CREATE.
FIFO = """
import ctypes, os, time
libc = ctypes.CDLL(None)
fs = libc.syscall(430, b"tmpfs", 1)
libc.syscall(431, fs, 6, None, None, 0)
mount = libc.syscall(432, fs, 1, 0)
os.mkfifo("memfd:adverb-arena", dir_fd=mount)
fd = os.open("memfd:adverb-arena", os.O_PATH, dir_fd=mount)
print(os.readlink("/proc/self/fd/%d" % fd), flush=True)
time.sleep(1000)
"""


def no_fifo_is_waited_for():
    p = suite.start(["unshare", "-Urm", system.PYTHON, "-c", FIFO])
    try:
        line = p.stdout.readline()
        if line != b"/memfd:adverb-arena\n":
            raise Skip("no FIFO can have that name here: %r" % line)
        r = suite.run([suite.adverb, "top", "--once", "--interval", "0.1"])
        expect(r.status == 0, "exit status %d" % r.status, r)
    finally:
        p.kill()
        p.communicate()


def a_missing_proc_is_said():
    """Without /proc nobody knows how many processes there are."""
    for options in [], ["--json"]:
        r = suite.run(["unshare", "-Urm", "sh", "-c",
                       "mount -t tmpfs none /proc && exec \"$@\"", "sh",
                       suite.adverb, "top", "--once", *options])
        if "unshare:" in r.output or "mount:" in r.output:
            raise Skip("no mount namespace can be made")
        expect(r.status == 1 and "/proc shows no process; mount it" in r.output
               and "processes," not in r.output,
               "exit status %d" % r.status, r)


def wrong_options_are_refused():
    for options, why in ((["--interval", "0"], 'not "0"'),
                         (["--interval", "x"], 'not "x"'),
                         (["--once", "--interval", "1s"], 'not "1s"'),
                         (["word"], "usage")):
        r = suite.run([suite.adverb, "top", *options])
        if r.status != 2 or why not in r.output:
            raise Fail("%s: status %d" % (options, r.status), r.output)


suite.case("a transfer is seen from outside", lambda: a_transfer_is_seen("0"))
suite.case("a transfer without packets is seen from outside",
           lambda: a_transfer_is_seen("1"))
suite.case("a stopped peer is named as the reason", a_stopped_peer_is_named)
suite.case("a full stream is named as the reason", a_full_stream_is_named)
suite.case("a hostile name reaches no terminal",
           a_hostile_name_reaches_no_terminal)
suite.case("a child of fork is shown with a device of its own only",
           lambda: a_child_is_shown_with_its_own_device("1"))
suite.case("so it is if the arena is not shared",
           lambda: a_child_is_shown_with_its_own_device("0"))
suite.case("top does not wait for a FIFO that has the name of an arena",
           no_fifo_is_waited_for)
suite.case("top says that /proc is missing", a_missing_proc_is_said)
suite.case("wrong options are refused", wrong_options_are_refused)
suite.end()
