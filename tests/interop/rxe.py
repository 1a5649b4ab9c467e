#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs on adverb against the same on the kernel's Soft-RoCE.

rxe runs in a guest (guest.py; tests/interop/build makes it).  Both directions,
no connection manager.  A quick subset unless --full is given."""

import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))

import guest
import netlab
from perftest_check import check_capture, check_rows
import system
from system import HANG, expect, expect_ok

if guest.missing() and "--list" not in sys.argv:
    netlab.give_up(guest.missing())
netlab.enter()
t = system.Suite(__doc__)
ports = iter(range(20000, 60000))

# What stays 0 while no packet is lost.  Where none is, no timer is to end
# however late the emulated machine is: perftest is given 17 s (PATIENT).
PATIENT = ["-u", "22"]
ERRORS = ("out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err",
          "retry_rnr_exceeded_err", "send_err", "completer_retry_err")
COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"


def counters():
    _, text = vm.run("cd %s && grep . *" % COUNTERS)
    return {name: int(n) for name, n in re.findall(r"^(\w+):(\d+)", text,
                                                   re.M)}


def listens(text, port):
    return re.search(r"^\s*\d+: [0-9A-F]+:%04X \S+ 0A " % port, text, re.M)


def wait_here(process, port):
    until = time.monotonic() + HANG
    while time.monotonic() < until and process.poll() is None:
        for name in "/proc/net/tcp", "/proc/net/tcp6":
            with open(name) as table:
                if listens(table.read(), port):
                    return
        time.sleep(0.01)  # asked again: nothing rests on its length


def wait_there(port):
    line = ("n=0; until cat /proc/net/tcp /proc/net/tcp6 | grep -q ':%04X "
            "[0-9A-F:]* 0A' || [ $n = 6000 ]; do usleep 20000; n=$((n+1)); done"
            % port)
    vm.run(line, HANG)


def there(argv, index):
    name, *rest = argv
    pick = "-g" if "pingpong" in name else "-x"
    return [name, "-d", "rxe0", pick, index, *rest]


def here(argv, index):
    name, *rest = argv
    pick = "-g" if "pingpong" in name else "-x"
    return [t.adverb, "run", "--", name, "-d", "adv0", pick, index, *rest]


class Both:
    """What both ends said."""

    def __init__(self, ours, theirs, client):
        self.status = ours.status or theirs[0]
        self.ours = ours.output
        self.client = client
        self.output = "--- adverb\n%s\n--- rxe\n%s" % (ours.output, theirs[1])

    def lines(self, _side):
        return self.client.splitlines()


def lingers(name, port):
    """A pingpong ends when it has what it waits for: the acknowledgement it
    owes may be lost, or not even sent (rxe completes a receive before it
    acknowledges).  In the guest it keeps its QP until the other end is
    through; adverb's own leave when nothing of theirs can be lost.
    perftest's ends meet over TCP before they destroy anything."""
    mark = "/tmp/end.%d" % port
    return (["LD_PRELOAD=/linger.so", "LINGER=" + mark], "touch " + mark) \
        if "pingpong" in name else ([], "true")


def run(argv, direction, seconds, env):
    """One tool at both ends; direction says what the client is."""
    port = next(ports)
    argv = [*argv, "-p", str(port)]
    ours_env = t.environment(**env)
    words, let_go = lingers(argv[0], port)
    line = " ".join([*words, *there(argv, "1")])
    if direction == "to rxe":
        theirs = vm.start(line)
        wait_there(port)
        ours = t.finish(t.start([*here(argv, "1"), guest.THERE],
                                env=ours_env), seconds)
        vm.run(let_go)
        # A client that failed leaves a server that waits.
        return Both(ours, theirs.wait(seconds if ours.status == 0 else 5),
                    ours.output)
    process = t.start(here(argv, "1"), env=ours_env)
    wait_here(process, port)
    theirs = vm.start(line + " " + guest.HERE)
    until = time.monotonic() + seconds
    while process.poll() is None and not theirs.ended and \
            time.monotonic() < until:
        theirs.read(time.monotonic() + 0.05)
    vm.run(let_go)
    status = theirs.wait(seconds if process.poll() in (None, 0) else 5)
    if status[0] and process.poll() is None:
        process.kill()
    return Both(t.finish(process, HANG), status, status[1])


def tool(argv, what, clean=True, capture=False, seconds=HANG):
    for direction in "to rxe", "from rxe":
        def body(direction=direction):
            path = t.path("frames.pcapng")
            env = {"ADVERB_PCAP": path} if capture else {}
            before = counters()
            r = run(argv, direction, seconds, env)
            expect_ok(r)
            if "pingpong" in argv[0]:
                expect("bytes in" in r.ours and "invalid data" not in r.output,
                       "the data are not what they should be", r)
            else:
                check_rows(r)
            if capture:
                check_capture(t, path, r)
                os.unlink(path)
            after = counters()
            moved = ["%s by %d" % (name, after[name] - before[name])
                     for name in ERRORS if after[name] != before[name]]
            if clean:
                expect(not moved, "rxe counts errors: " + ", ".join(moved), r)
        t.case("%s, %s" % (" ".join(argv), direction + what), body,
               "RoCEv2 on the wire", argv[0], "kernel rxe")


def perftest():
    sizes = ("2", "1000", "65536", "1048576", "8388608") if t.options.full \
        else ("2", "65536")
    for verb in "send", "write", "read":
        for kind in "bw", "lat":
            for size in sizes:
                few = ["-n", "100" if int(size) < 100000 else "10"]
                tool(["ib_%s_%s" % (verb, kind), "-s", size, *few,
                      *PATIENT], "",
                     capture=size == "1000")
    for kind in "bw", "lat":
        for atomic in "CMP_AND_SWAP", "FETCH_AND_ADD":
            tool(["ib_atomic_" + kind, "-A", atomic, "-n", "100",
                  *PATIENT], "")


def unreliable():
    """What is lost stays lost here, so no more is in flight than fits."""
    for service in "UC", "UD":
        for verb in ("send", "write") if service == "UC" else ("send",):
            for size in "2", "1000", "20000":
                if service == "UC" or size != "20000":
                    tool(["ib_%s_lat" % verb, "-c", service, "-s", size,
                          "-n", "30"], "", capture=size == "1000")
        tool(["ib_send_bw", "-c", service, "-s", "1000", "-n", "64", "-t",
              "8"], "")
    tool(["ibv_uc_pingpong", "-c", "-n", "50"], "", clean=False)
    tool(["ibv_ud_pingpong", "-s", "1000", "-n", "50"], "", clean=False)


def pingpongs():
    for more in ["-n", "200"], ["-e", "-s", "100000", "-n", "50"]:
        tool(["ibv_rc_pingpong", "-c", *more], "", clean=False, capture=True)


def cm_wait_there(some):
    """Until @some listener of rdma_cm is in the guest, or none."""
    vm.run("n=0; until %s rdma res show cm_id | grep -q LISTEN || "
           "[ $n = 6000 ]; do usleep 20000; n=$((n+1)); done"
           % ("" if some else "!"), HANG)


def cm_listens_here(argv):
    """A server of ours, once librdmacm says that it listens."""
    ready, theirs = os.pipe()
    process = t.start([t.adverb, "run", "--", *argv], pass_fds=[theirs],
                      env=t.environment(ADVERB_READY_FD=str(theirs)))
    os.close(theirs)
    os.read(ready, 1)
    process.ready = open(ready)  # it may listen again, and is not to fail
    return process


def cm_tool(server, client, want):
    """@server and @client are given the server's address to fill in."""
    def to_rxe():
        cm_wait_there(False)
        theirs = vm.start(" ".join(server) % {"at": guest.THERE})
        cm_wait_there(True)
        ours = t.run([t.adverb, "run", "--",
                      *[w % {"at": guest.THERE} for w in client]])
        return Both(ours, theirs.wait(HANG if ours.status == 0 else 5),
                    ours.output)

    def from_rxe():
        process = cm_listens_here([w % {"at": guest.HERE} for w in server])
        theirs = vm.run(" ".join(client) % {"at": guest.HERE}, HANG)
        if theirs[0] and process.poll() is None:
            process.kill()
        return Both(t.finish(process, HANG), theirs, theirs[1])

    for direction, ends in ("to rxe", to_rxe), ("from rxe", from_rxe):
        def body(ends=ends):
            r = ends()
            expect_ok(r)
            expect(want in r.client, "it does not say " + want, r)
        t.case("%s, rdma_cm, %s" % (" ".join(client[:-1]), direction), body,
               "rdma_cm", client[0], "kernel rxe")


def connection_manager():
    """Not perftest -R: it listens twice, one after the other, and its client
    can come before the second time on a slow machine."""
    for size in "64", "20000":
        words = ["-C", "20", "-S", size, "-V"]
        cm_tool(["rping", "-s", *words, "-a", "%(at)s"],
                ["rping", "-c", *words, "-a", "%(at)s"], "")
    cm_tool(["ucmatose", "-c", "4"], ["ucmatose", "-c", "4", "-s", "%(at)s"],
            "return status 0")
    cm_tool(["udaddy"], ["udaddy", "-s", "%(at)s"], "return status 0")


def bad_link():
    """netem holds what the guest sends: data or acknowledgements."""
    for fault in "loss 2%", "delay 5ms reorder 25% 50%", "delay 50ms":
        if not t.options.list:
            status, text = vm.run("/sbin/tc qdisc replace dev eth0 root netem "
                                  "limit 10000 " + fault)
            if status:
                raise SystemExit("the guest's tc: " + text)
        tool(["ibv_rc_pingpong", "-c", "-s", "20000", "-n", "100"],
             ", with " + fault, clean=False)
        tools = "send", "write", "read", "atomic"
        for verb in tools if t.options.full or "loss" in fault else ():
            size = [] if verb == "atomic" else ["-s", "20000"]
            tool(["ib_%s_bw" % verb, *size, "-n", "200"],
                 ", with " + fault, clean=False)
            tool(["ib_%s_lat" % verb, *size, "-n", "30"],
                 ", with " + fault, clean=False)
    if not t.options.list:
        vm.run("/sbin/tc qdisc del dev eth0 root")


def dying_guest():
    def body():
        port = next(ports)
        argv = ["ib_write_bw", "-D", "60", "-p", str(port)]
        theirs = vm.start(" ".join(there(argv, "1")))
        wait_there(port)
        before = counters()["rcvd_pkts"]
        ours = t.start([*here(argv, "1"), guest.THERE])
        until = time.monotonic() + HANG
        while counters()["rcvd_pkts"] < before + 1000:
            expect(time.monotonic() < until, "no transfer begins")
        vm.kill()
        theirs.wait(1)
        r = t.finish(ours, HANG)
        expect(r.status not in (0, 124), "the client did not end", r)
        expect("status 12" in r.output or "RETRY_EXC" in r.output or
               "transport retry" in r.output.lower(),
               "it does not say that retries ran out", r)
        expect("adverb:" in r.output, "adverb explains nothing", r)

    t.case("the guest dies while ib_write_bw runs: RETRY_EXC, explained", body)


vm = None if t.options.list else guest.Guest()
try:
    pingpongs()
    perftest()
    unreliable()
    connection_manager()
    bad_link()
    dying_guest()
finally:
    if vm:
        vm.end()
t.end()
