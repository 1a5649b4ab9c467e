#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests unmodified programs on adverb; the same programs on the kernel's Soft-RoCE
(rxe) are their peers.

rxe runs in a guest (guest.py), which tests/interop/build makes.  The programs run
in both directions, without and with the connection manager.  By default a quick
subset of the cases runs; with --full all cases run."""

import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../system/lib"))

import guest
import netlab
from ends import NEVER, RXE, Ends, listens, wait_here
from guest import HERE, THERE
from perftest_check import check_capture, check_rows
import system
from system import HANG, expect, expect_ok

if guest.missing() and "--list" not in sys.argv:
    netlab.give_up(guest.missing())
netlab.enter()
t = system.Suite(__doc__)
full = t.options.full

DIRECTIONS = RXE.directions


def tool(argv, what="", clean=True, capture=False, six=False,
         timeout=NEVER, mtu=1500):
    """Adds a case for each direction.  @what: the end of the case's name.  @clean:
    rxe must count no error.  @capture: the frames are judged, too.  @six: over IPv6.
    @timeout: as in Ends.tool().  @mtu: the link MTU in bytes."""
    for direction in DIRECTIONS:
        def body(direction=direction):
            path = t.path("frames.pcapng")
            env = {"ADVERB_PCAP": path} if capture else {}
            ends.wants_mtu(mtu)
            before = ends.counters()
            r = ends.tool(argv, direction, six, timeout, **env)
            expect_ok(r)
            if "pingpong" in argv[0]:
                expect("bytes in" in r.ours and "invalid data" not in r.output,
                       "there is no result, or the data differ", r)
            else:
                check_rows(r)
            if capture:
                check_capture(t, path, r)
                os.unlink(path)
            if clean:
                ends.expect_clean(before, r)
        t.case("%s%s, %s" % (" ".join(argv), what, direction), body,
               "RoCEv2 on the wire", argv[0], "kernel rxe")


def perftest():
    sizes = ("2", "64", "1000", "4096", "65536", "1048576", "8388608") \
        if full else ("2", "65536")
    for verb in "send", "write", "read":
        for kind in "bw", "lat":
            for size in sizes:
                few = ["-n", "100" if int(size) < 100000 else "10"]
                tool(["ib_%s_%s" % (verb, kind), "-s", size, *few],
                     capture=size == "1000")
    for kind in "bw", "lat":
        for atomic in "CMP_AND_SWAP", "FETCH_AND_ADD":
            tool(["ib_atomic_" + kind, "-A", atomic, "-n", "100"])


# With these options so few packets are in flight at once that a socket, which holds
# about 180, has room for all of them, however late its reader is.
#
# With several QPs, -n is a multiple of -t: otherwise perftest may stop polling
# before it has posted all requests, and then waits for ever.
#
# No latency test with SENDs has -e.  The two CQs of such a test share one channel,
# and perftest takes each event for the one that perftest waits for.  rxe completes a
# receive before it acknowledges, so the event of the peer's next message may come
# first.
OPTIONS = [
    ["ib_write_bw", "-q", "4", "-t", "4", "-s", "4096", "-n", "64"],
    ["ib_send_lat", "-s", "64", "-I", "64", "-n", "50"],
    ["ib_send_bw", "-e", "-n", "50"],
    ["ib_read_bw", "-e", "-n", "50"],
    ["ib_read_lat", "-e", "-n", "50"],
    ["ib_send_bw", "-q", "4", "-t", "4", "-s", "4096", "-n", "64"],
    ["ib_read_bw", "-q", "4", "-o", "1", "-s", "4096", "-n", "50"],
    ["ib_atomic_bw", "-q", "4", "-o", "1", "-n", "50"],
    ["ib_write_lat", "-s", "64", "-I", "64", "-n", "50"],
    ["ib_send_bw", "-I", "32", "-s", "32", "-n", "50"],
    ["ib_write_bw", "-b", "-t", "16", "-s", "4096", "-n", "100"],
    ["ib_send_bw", "-b", "-t", "16", "-s", "4096", "-n", "100"],
    ["ib_read_bw", "-b", "-s", "4096", "-n", "100"],
    ["ib_write_bw", "-l", "4", "-t", "8", "-s", "1000", "-n", "64"],
    ["ib_read_bw", "-o", "1", "-s", "100000", "-n", "10"],
    ["ib_write_bw", "-Q", "1", "-n", "50"],
    ["ib_send_bw", "-m", "256", "-s", "5000", "-n", "50"],
    ["ib_write_bw", "-m", "256", "-s", "5000", "-n", "50"],
    ["ib_read_bw", "-m", "256", "-s", "5000", "-n", "50"],
    ["ib_write_lat", "-m", "512", "-s", "5000", "-n", "50"],
    ["ib_send_lat", "-m", "512", "-s", "5000", "-n", "50"],
]


def options():
    for argv in OPTIONS if full else OPTIONS[:2]:
        tool(argv)
    for argv in [["ib_send_bw"], ["ib_write_bw"], ["ib_read_bw"],
                 ["ib_send_lat"]] if full else ():
        tool([*argv, "-a", "-n", "5"])


def over_ipv6():
    """Adds cases over IPv6.  rxe sends the UDP checksum 0 over IPv6, which a
    socket receives only with UDP_NO_CHECK6_RX."""
    tool(["ib_write_bw", "-n", "100"], " over IPv6", capture=True,
         six=True)
    for argv in [["ib_send_lat", "-s", "1000"], ["ib_read_bw"],
                 ["ib_atomic_lat"], ["ib_send_bw", "-s", "1048576"],
                 ["ib_send_lat", "-c", "UC", "-s", "1000"],
                 ["ib_send_lat", "-c", "UD", "-s", "1000"]] if full else ():
        tool([*argv, "-n", "30"], " over IPv6", six=True)


def wide_link():
    """Adds cases with a link MTU of 9000, for path MTUs up to 4096."""
    for verb in "send", "write", "read":
        for path, size in ("2048", "20000"), ("4096", "100000"):
            tool(["ib_%s_bw" % verb, "-m", path, "-s", size, "-t", "2", "-n",
                  "30"], mtu=9000, capture=path == "4096")
            tool(["ib_%s_lat" % verb, "-m", path, "-s", size, "-n", "30"],
                 mtu=9000)
    tool(["ib_send_bw", "-s", "8388608", "-n", "5"], " at 4096", mtu=9000,
         clean=False, timeout=17)
    for service, size in ("UD", "4000"), ("UC", "30000"):
        tool(["ib_send_lat", "-c", service, "-s", size, "-n", "30"],
             " at 4096", mtu=9000)


def unreliable():
    """Adds cases of UC and UD, which do not retransmit: no more packets are in
    flight than a socket holds."""
    for service in "UC", "UD":
        for verb in ("send", "write") if service == "UC" else ("send",):
            for size in "2", "1000", "20000":
                if service == "UC" or size != "20000":
                    tool(["ib_%s_lat" % verb, "-c", service, "-s", size,
                          "-n", "30"], capture=size == "1000")
        tool(["ib_send_bw", "-c", service, "-s", "1000", "-n", "64", "-t",
              "8"])
    if full:
        tool(["ib_write_bw", "-c", "UC", "-s", "5000", "-n", "64", "-t", "4"])
        tool(["ib_send_bw", "-c", "UC", "-e", "-s", "500", "-n", "64", "-t",
              "4"])
        tool(["ib_send_bw", "-c", "UD", "-e", "-s", "500", "-n", "64", "-t",
              "4"])
    tool(["ibv_uc_pingpong", "-c", "-n", "50"], clean=False)
    tool(["ibv_ud_pingpong", "-s", "1000", "-n", "50"], clean=False)


def pingpongs():
    for more in ["-n", "200"], ["-e", "-s", "100000", "-n", "50"]:
        tool(["ibv_rc_pingpong", "-c", *more], clean=False, capture=True)
    t.case("rxe does not stop for packets that the guest's driver holds",
           driver_keeps_nothing)


TRACING = "/sys/kernel/tracing"
PROBE = TRACING + "/events/kprobes/wake"


def driver_keeps_nothing():
    """rxe's requester stops at a limit of packets that the guest's driver holds, and
    may then miss the wake-up (guest/init).  A message that is long enough to reach the
    limit must not reach it: rxe wakes its tasks, but never from the destructor of a
    packet."""
    status, text = vm.run(
        "mount -t tracefs none %s; echo 'p:wake rxe_sched_task from=+0($stack):x64' "
        ">%s/kprobe_events && echo hist:keys=from.sym >%s/trigger" %
        (TRACING, TRACING, PROBE))
    expect(status == 0, "rxe_sched_task cannot be traced:\n" + text)
    try:
        for direction in DIRECTIONS:
            expect_ok(ends.tool(["ibv_rc_pingpong", "-c", "-s", "100000", "-n", "50"],
                                direction))
        _, wakers = vm.run("cat %s/hist" % PROBE)
    finally:
        vm.run("echo '!hist:keys=from.sym' >%s/trigger; echo >%s/kprobe_events; "
               "umount %s" % (PROBE, TRACING, TRACING))
    expect("rxe_post_send" in wakers, "no wake-up is traced:\n" + wakers)
    expect("rxe_skb_tx_dtor" not in wakers, "rxe reaches its limit:\n" + wakers)


# rping's main thread closes the event channel while its other thread may still ask
# for the next event.  Then rping prints this and exits with 255, after all work.
LATE_THREAD = "rdma_get_cm_event: Bad file descriptor"


def forgive_late_thread(r):
    said = [line for line in r.client.splitlines() if line.strip()]
    if r.their_status == 255 and \
            said == ["client DISCONNECT EVENT...", LATE_THREAD]:
        r.status = r.our_status


def cm_tool(server, client, want="", six=False, stays=False):
    for direction in DIRECTIONS:
        def body(direction=direction):
            ends.wants_mtu(1500)
            before = ends.counters()
            r = ends.cm(server, client, direction, six, stays)
            if client[0] == "rping" and direction == "from rxe":
                forgive_late_thread(r)
            expect_ok(r)
            expect(want in r.client, "the client does not print: " + want, r)
            # The tools of rdma_cm have a short ACK timer, so rxe may retry.
            ends.expect_clean(before, r, but="completer_retry_err")
        t.case("%s, rdma_cm%s, %s" % (
            " ".join(client[:-1]), " over IPv6" if six else "",
            direction), body, "rdma_cm", client[0], "kernel rxe")


def rping(size, more=(), six=False):
    words = ["-C", "20", "-S", size, "-V", *more, "-a", "%(at)s"]
    cm_tool(["rping", "-s", *words], ["rping", "-c", *words], six=six)


def cmtime(count, six=False):
    """Adds cases of cmtime, whose server does not end by itself."""
    client = ["cmtime", "-c", count, "-s", "%(at)s"]
    cm_tool(["cmtime", "-b", "%(at)s"], client, "\ndestroy ", six, stays=True)


def connection_manager():
    rping("64")
    rping("20000")
    cm_tool(["ucmatose", "-c", "4"], ["ucmatose", "-c", "4", "-s", "%(at)s"],
            "return status 0")
    cm_tool(["udaddy"], ["udaddy", "-s", "%(at)s"], "return status 0")
    rping("1000", six=True)
    cmtime("50")
    cm_tool(["rdma_server"], ["rdma_client", "-s", "%(at)s"], "end 0")
    if full:
        more_of_connection_manager()
    for argv in PERFTEST_CM if full else PERFTEST_CM[:1]:
        perftest_cm(argv)
    for direction in DIRECTIONS:
        t.case("mckey, rdma_cm, to two members, " + direction,
               lambda d=direction: multicast(d), "rdma_cm", "mckey",
               "kernel rxe")


def more_of_connection_manager():
    for size in "2", "4097", "65000":
        rping(size)
    rping("1000", ["-q"])
    rping("60000", six=True)
    for more in ["-c", "1", "-S", "20000", "-C", "20"], ["-c", "64"], \
            ["-t", "8"]:
        cm_tool(["ucmatose", *more],
                ["ucmatose", *more, "-s", "%(at)s"], "return status 0")
    for name in "ucmatose", "udaddy":
        cm_tool([name, "-f", "ipv6", "-b", "%(at)s"],
                [name, "-f", "ipv6", "-s", "%(at)s"], "return status 0", True)
    for more in ["-c", "4", "-C", "20", "-S", "1000"], ["-c", "16"]:
        cm_tool(["udaddy", *more], ["udaddy", *more, "-s", "%(at)s"],
                "return status 0")
    for count in "1", "1000":
        cmtime(count)
    cmtime("50", six=True)
    cm_tool(["rdma_xserver"], ["rdma_xclient", "-s", "%(at)s"], "end 0")


PERFTEST_CM = [
    ["ib_write_bw", "-n", "50"],
    ["ib_send_lat", "-n", "50"],
    ["ib_read_lat", "-n", "50"],
    ["ib_send_bw", "-s", "1048576", "-n", "10"],
    ["ib_atomic_bw", "-n", "50"],
    ["ib_write_bw", "-q", "4", "-t", "4", "-s", "4096", "-n", "64"],
    ["ib_send_lat", "-c", "UD", "-s", "1000", "-n", "30"],
]


def perftest_cm(argv):
    for direction in DIRECTIONS:
        def body(direction=direction):
            r = ends.perftest_cm(argv, direction)
            expect_ok(r)
            check_rows(r)
        t.case("%s -R, %s" % (" ".join(argv), direction), body, "rdma_cm",
               argv[0], "kernel rxe")


def multicast(direction):
    """Sends to a member on rxe and to a member on adverb.  A mckey that sends
    by rxe may destroy its address handle before rxe has sent, so pace.c delays
    ibv_destroy_ah."""
    argv = ["mckey", "-m", "239.7.7.7", "-b"]
    began = [vm.start(" ".join([*argv, THERE]))]
    try:
        meet_members(direction, argv, began)
    finally:
        for command in began:
            command.end()


def meet_members(direction, argv, began):
    """Waits until both members of multicast() have joined, runs a sender, and
    expects that both members succeed.  The commands of the guest are in @began,
    which already has rxe's member."""
    there = began[0]
    expect(there.wait_for("joined dgid", HANG), "rxe's member does not join")
    ours = t.start(ends.here(["stdbuf", "-oL", *argv, HERE]))
    heard = b""
    while b"joined dgid" not in heard:
        got = os.read(ours.stdout.fileno(), 4096)
        expect(got, "our member does not join:\n" + heard.decode())
        heard += got
    if direction == "to rxe":
        expect_ok(t.run(ends.here([*argv, HERE, "-s"])))
    else:
        began.append(vm.start("LD_PRELOAD=/pace.so PACE=/tmp/mckey " +
                              " ".join([*argv, THERE, "-s"])))
    got = t.finish(ours, HANG)
    status, text = there.wait(HANG)
    expect(got.status == 0 and status == 0,
           "a member fails:\n" + heard.decode() + got.output + text)
    if direction == "from rxe":
        vm.run("touch /tmp/mckey")
        status, text = began[1].wait(HANG)
        expect(status == 0, "the sender fails:\n" + text)


def bad_link():
    """Adds cases in which netem loses, reorders or delays the packets that the
    guest sends, which are data or ACKs."""
    for fault in "loss 2%", "delay 5ms reorder 25% 50%", "delay 50ms":
        if not t.options.list:
            status, text = vm.run("/sbin/tc qdisc replace dev eth0 root netem "
                                  "limit 10000 " + fault)
            if status:
                raise SystemExit("the guest's tc: " + text)
        tool(["ibv_rc_pingpong", "-c", "-s", "20000", "-n", "100"],
             ", with " + fault, clean=False, timeout=17)
        verbs = "send", "write", "read", "atomic"
        for verb in verbs if full or "loss" in fault else ():
            size = [] if verb == "atomic" else ["-s", "20000"]
            tool(["ib_%s_bw" % verb, *size, "-n", "200"],
                 ", with " + fault, clean=False, timeout=17)
            tool(["ib_%s_lat" % verb, *size, "-n", "30"],
                 ", with " + fault, clean=False, timeout=17)
    if not t.options.list:
        vm.run("/sbin/tc qdisc del dev eth0 root")


def damaged():
    """Returns how many packets our processes have dropped as malformed or
    because of a wrong ICRC."""
    r = t.run([t.adverb, "top", "--once", "--json"])
    expect_ok(r)
    return sum(p["rx_malformed"] + p["rx_bad_icrc"]
               for p in json.loads(r.output)["processes"])


def under_way(direction, argv, six=False):
    """Starts both ends of a tool of perftest, and waits until packets are
    transferred.  Returns our process and their command."""
    port = next(ends.ports)
    argv = [*argv, "-D", "600", "-p", str(port)]
    ours = ends.here(ends.words("here", argv, six))
    line = " ".join(ends.words("there", argv, six))
    if direction == "to rxe":
        theirs = vm.start(line)
        ends.port_there(port, theirs)
        process = t.start([*ours, THERE])
    else:
        process = t.start(ours)
        wait_here(process, lambda: listens(port))
        theirs = vm.start(line + " " + HERE)
    try:
        goes_on(process)
    except BaseException:
        theirs.end()
        raise
    return process, theirs


def goes_on(process):
    """Waits until rxe has received more than 200 further packets.  Fails if our
    end ends, or if these packets do not come."""
    before = ends.counters()["rcvd_pkts"]
    went_on = wait_here(process,
                        lambda: ends.counters()["rcvd_pkts"] > before + 200)
    if process.poll() is not None:
        expect(False, "our end has ended", t.finish(process, HANG))
    expect(went_on, "the transfer stalls: rxe has received only %d packets in "
           "%d s" % (ends.counters()["rcvd_pkts"] - before, HANG))


def signal_session(process, what):
    for pid in system.session_of(process.pid):
        os.kill(pid, what)


def foreign_ids(six):
    """The ids in rxe's IPv4 headers count up, and rxe sends no UDP checksum.
    rxe is silent while the guest's end or our end is stopped, since each end
    waits for the other's message.  After that Linux advances the next id by a
    random number.  adverb must not drop a packet as damaged because of its id
    or its checksum."""
    before = ends.counters()
    ours, theirs = under_way("from rxe", ["ib_send_lat", "-u", str(NEVER)], six)
    try:
        for _ in range(3 if full else 1):
            vm.run("killall -STOP ib_send_lat; sleep %d; "
                   "killall -CONT ib_send_lat" % (15 if full else 5), HANG)
            goes_on(ours)
            if full:
                signal_session(ours, signal.SIGSTOP)
                time.sleep(15)  # rxe is silent
                signal_session(ours, signal.SIGCONT)
                goes_on(ours)
        bad = damaged()
        moved = ends.errors_since(before)
    finally:
        theirs.end()
        ours.kill()
        ours.communicate()
    expect(bad == 0, "%d packets look damaged" % bad)
    expect(not moved, "rxe counts errors: " + ", ".join(moved))


# The ACK timeout of an end that must notice a silent guest.  The retries take some
# seconds, in which a guest that is only slow would have answered.
PATIENCE = "-u", "16"


def is_explained(r):
    """Expects that our end has ended because its retries ran out, and that adverb has
    printed a message."""
    expect(r.status not in (0, 124), "our end did not end", r)
    expect("status 12" in r.output or "RETRY_EXC" in r.output or
           "transport retry" in r.output.lower(),
           "our end does not report that its retries ran out", r)
    expect("adverb:" in r.output, "adverb prints no message", r)


def silent_guest(direction, argv):
    """The guest hangs: its link stays up, and it does not answer any packet."""
    ours, theirs = under_way(direction, [*argv, *PATIENCE])
    vm.machine.send_signal(signal.SIGSTOP)
    try:
        r = t.finish(ours, HANG)
    finally:
        vm.machine.send_signal(signal.SIGCONT)
        theirs.end()
    is_explained(r)


# In these cases our end always has a request under way, or can post one without a
# message of the guest.  In a ping-pong our end may wait for a message when all its
# own requests are acknowledged, and then RC does not tell it that its peer is gone.
SILENCE = [
    ("to rxe", ["ib_send_bw"]), ("to rxe", ["ib_write_bw"]),
    ("to rxe", ["ib_read_bw"]), ("to rxe", ["ib_atomic_bw"]),
    ("to rxe", ["ib_read_lat"]), ("to rxe", ["ib_atomic_lat"]),
    ("from rxe", ["ib_write_bw", "-b"]), ("from rxe", ["ib_read_bw", "-b"]),
]


def misfortune():
    for six in False, True:
        t.case("foreign ids and no UDP checksum, IPv%d: nothing looks damaged"
               % (6 if six else 4), lambda six=six: foreign_ids(six),
               "RoCEv2 on the wire", "ib_send_lat", "kernel rxe")
    for direction, argv in SILENCE if full else SILENCE[-1:]:
        t.case("the guest hangs while %s runs, %s: RETRY_EXC, explained" %
               (" ".join(argv), direction),
               lambda d=direction, a=argv: silent_guest(d, a))
    t.case("the guest dies while ib_write_bw runs: RETRY_EXC, explained",
           dying_guest)


def dying_guest():
    ours, theirs = under_way("to rxe", ["ib_write_bw", *PATIENCE])
    vm.kill()
    theirs.wait(1)
    is_explained(t.finish(ours, HANG))


vm = None if t.options.list else guest.Guest()
try:
    ends = Ends(t, vm)
    pingpongs()
    perftest()
    options()
    over_ipv6()
    unreliable()
    if full:
        wide_link()
    connection_manager()
    bad_link()
    misfortune()
finally:
    if vm:
        vm.end()
t.end()
