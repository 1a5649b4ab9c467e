#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests unmodified programs on adverb's iWARP devices with the same programs on
the kernel's software iWARP (siw) as the peers.

siw runs in a guest (guest.py), which tests/interop/build makes.  The programs run
in both directions.  By default a quick subset of the cases runs; with --full all
cases run.  For most cases, a case that fails is tried once more with siw at both
ends, in the guest: if that fails too, the fault is siw's, and the case is skipped.
"""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../system/lib"))

import guest
import netlab
from ends import SIW, Ends
from guest import HERE, MAC, MAC_THERE, THERE, THERE6
from iser import Iser
from perftest_check import check_rows
import sniff
import system
from system import HANG, expect, expect_ok

why = guest.missing() or guest.missing_siw()
if why and "--list" not in sys.argv:
    netlab.give_up(why)
netlab.enter()
t = system.Suite(__doc__)
full = t.options.full

TO, FROM = DIRECTIONS = SIW.directions
OUR_ENDS = os.path.join(guest.WORK, "ends")


class Siw:
    """The guest's module siw, and the parameters with which it is loaded."""

    def __init__(self, vm):
        self.vm = vm
        self.parameters = ""

    def use(self, parameters):
        """Loads siw with these parameters, unless siw has them already.  Expects that
        siw has taken them."""
        if self.parameters == parameters:
            return
        self.parameters = None
        status, text = self.vm.run(
            "rdma link del siw0 && rmmod siw && modprobe siw %s && "
            "rdma link add siw0 type siw netdev eth0" % parameters)
        expect(status == 0, "siw does not take [%s]: %s" % (parameters, text))
        for word in parameters.split():
            name, _, value = word.partition("=")
            _, text = self.vm.run("cat /sys/module/siw/parameters/" + name)
            expect(text.strip() in (value, "Y" if value == "1" else "N"),
                   "siw's %s is %s" % (name, text))
        self.parameters = parameters


def judged(body, alone):
    """Runs the case.  If it fails, @alone does the same with siw alone, in the
    guest: if that fails too, the case is skipped."""
    try:
        body()
    except system.Fail as failure:
        status, text = alone()
        if status:
            raise system.Skip("siw with siw fails too, with status %d: %s" % (
                status, " | ".join(text.strip().splitlines()[-3:])))
        raise system.Fail("%s; siw with siw passes" % failure,
                          failure.output + "\n--- siw with siw\n" + text)


def case(name, body, program, alone, parameters="", mpa="",
         directions=DIRECTIONS):
    """Adds a case for each of @directions.  @parameters: the parameters of siw; @mpa:
    the value of ADVERB_MPA.  body(direction, environment) runs the case, and alone()
    runs the same programs with siw at both ends."""
    how = ["siw's " + parameters] if parameters else []
    how += ["ADVERB_MPA=" + mpa] if mpa else []
    for direction in directions:
        def run(direction=direction):
            siw.use(parameters)
            judged(lambda: body(direction, {"ADVERB_MPA": mpa} if mpa else {}),
                   alone)
        t.case(", ".join([name, *how, direction]), run, "iWARP", program,
               "kernel siw")


def both_there(server, client, six=False, stays=False):
    """Runs both tools of a pair in the guest.  Returns the status and the output:
    of the client only, if the server @stays, which serves until it is killed."""
    at = {"at": THERE6 if six else THERE}
    ends.listener_there(False)
    theirs = vm.start(" ".join(server) % at)
    ends.listener_there(True)
    status, text = vm.run(" ".join(client) % at, HANG)
    if stays:
        theirs.end()
        return status, text
    other, said = theirs.wait(HANG if status == 0 else 5)
    return status or other, "%s\n--- its server\n%s" % (text, said)


# ---- the tools of rdma_cm ----

# rping's main thread closes the event channel while its other thread may still ask
# for the next event.  Then rping prints this and exits with 255, after all work.
LATE_THREAD = "rdma_get_cm_event: Bad file descriptor"


def forgive_rping(r, direction):
    """Forgives the faults of rping and siw after the last ping."""
    said = [line for line in r.theirs.splitlines() if line.strip()]
    if direction == FROM and r.their_status == 255 and \
            said == ["client DISCONNECT EVENT...", LATE_THREAD]:
        r.status = r.our_status
    # The peer had the server's last SEND, and closed the connection, before
    # siw's ibv_post_send returned.  Then this call fails (siw.md).
    if direction == TO and said[:2] == ["post send error -1",
                                        "rping server failed: -1"]:
        r.status = r.our_status
        t.note("siw fails its last post")


def tool(server, client, want="", six=False, stays=False, **starts):
    def body(direction, env):
        r = ends.cm(server, client, direction, six, stays, **env)
        if client[0] == "rping":
            forgive_rping(r, direction)
        expect_ok(r)
        expect(want in r.client, "the client does not print: " + want, r)
    case(" ".join(client[:-1]) + (" over IPv6" if six else ""), body,
         client[0], lambda: both_there(server, client, six, stays), **starts)


def rping(words, six=False, **starts):
    words = [*words, "-V", "-a", "%(at)s"]
    tool(["rping", "-s", *words], ["rping", "-c", *words], six=six, **starts)


def rstream():
    """Adds cases of rsockets, which are skipped while adverb has none."""
    words = ["rstream", "-C", "20", "-S", "4096", "-T", "v"]
    pair = [*words, "-b", "%(at)s"], [*words, "-s", "%(at)s"]

    def body(direction, env):
        r = ends.cm(*pair, direction, **env)
        if "rsockets are not supported" in r.ours:
            raise system.Skip("adverb has no rsockets")
        expect_ok(r)
    case(" ".join(words), body, "rstream", lambda: both_there(*pair))


def tools():
    rstream()
    rping(["-C", "20", "-S", "64"])
    rping(["-C", "20", "-S", "20000"])
    rping(["-C", "20", "-S", "1000"], six=True)
    tool(["ucmatose", "-c", "4"], ["ucmatose", "-c", "4", "-s", "%(at)s"],
         "return status 0")
    tool(["rdma_server"], ["rdma_client", "-s", "%(at)s"], "end 0")
    # cmtime's server serves for ever: its loop over the events has no end
    tool(["cmtime", "-b", "%(at)s"], ["cmtime", "-c", "50", "-s", "%(at)s"],
         "\ndestroy ", stays=True)
    if not full:
        return
    for size in "2", "4097", "65000":
        rping(["-C", "20", "-S", size])
    rping(["-C", "20", "-S", "1000", "-q"])
    rping(["-C", "20", "-S", "60000"], six=True)
    for more in ["-c", "1", "-S", "20000", "-C", "20"], ["-c", "64"], \
            ["-t", "8"]:
        tool(["ucmatose", *more], ["ucmatose", *more, "-s", "%(at)s"],
             "return status 0")
    tool(["ucmatose", "-f", "ipv6", "-b", "%(at)s"],
         ["ucmatose", "-f", "ipv6", "-s", "%(at)s"], "return status 0",
         six=True)
    tool(["rdma_xserver"], ["rdma_xclient", "-s", "%(at)s"], "end 0")
    tool(["cmtime", "-b", "%(at)s"], ["cmtime", "-c", "1000", "-s", "%(at)s"],
         "\ndestroy ", stays=True)


# ---- perftest ----

def perftest_alone(argv):
    """Runs both ends in the guest, with pace.c: the client's second rdma_connect
    waits for the server's second rdma_listen.  Returns the status and the
    output."""
    port = next(ends.ports)
    line = "LD_PRELOAD=/pace.so PACE=/tmp/%d %s -R -p %d" % (
        port, " ".join(ends.words("there", argv, False)), port)
    vm.run("touch /tmp/%d; ln -s %d.listens /tmp/%d.connect" % (
        port, port, port))
    return both_there([line], [line, "%(at)s"])


# perftest's server closes the connection when it has the client's last SEND.  If
# the FIN comes while siw has yet to complete that SEND, siw fails it (siw.md).
LATE_SEND = ["Bad wc status 2", "Unable to write to socket/rdma_cm",
             "Failed to close connection between server and client"]


def forgive_late_send(r):
    said = [line.strip() for line in r.client.splitlines() if line.strip()]
    if r.our_status == 0 and said[-3:] == LATE_SEND:
        r.status = 0
        t.note("siw fails its last SEND")


def perftest(argv, **starts):
    def body(direction, env):
        r = ends.perftest_cm(argv, direction, **env)
        if direction == FROM:
            forgive_late_send(r)
        expect_ok(r)
        check_rows(r)
    case(" ".join(argv) + " -R", body, argv[0], lambda: perftest_alone(argv),
         **starts)


SIZES = ("2", "64", "1000", "4096", "65536", "1048576", "8388608")
OPTIONS = [
    ["ib_write_bw", "-q", "4", "-t", "4", "-s", "4096", "-n", "64"],
    ["ib_send_bw", "-e", "-n", "50"],
    ["ib_read_bw", "-e", "-n", "50"],
    ["ib_read_lat", "-e", "-n", "50"],
    ["ib_send_bw", "-q", "4", "-t", "4", "-s", "4096", "-n", "64"],
    ["ib_read_bw", "-q", "4", "-o", "1", "-s", "4096", "-n", "50"],
    ["ib_send_lat", "-s", "64", "-I", "64", "-n", "50"],
    ["ib_write_lat", "-s", "64", "-I", "64", "-n", "50"],
    ["ib_write_bw", "-b", "-t", "16", "-s", "4096", "-n", "100"],
    ["ib_send_bw", "-b", "-t", "16", "-s", "4096", "-n", "100"],
    ["ib_read_bw", "-b", "-s", "4096", "-n", "100"],
    ["ib_write_bw", "-l", "4", "-t", "8", "-s", "1000", "-n", "64"],
    ["ib_write_bw", "-Q", "1", "-n", "50"],
    ["ib_send_bw", "-a", "-n", "5"],
    ["ib_write_bw", "-a", "-n", "5"],
    ["ib_read_bw", "-a", "-n", "5"],
]


def perftests():
    for verb in "send", "write", "read":
        for kind in "bw", "lat":
            quick = ("65536",) if kind == "bw" else ("2",)
            for size in SIZES if full else quick:
                few = ["-n", "100" if int(size) < 100000 else "10"]
                name = "ib_%s_%s" % (verb, kind)
                perftest([name, "-s", size, *few])
                if full:
                    perftest([name, "-s", size, *few], mpa="nocrc")
        if not full:
            perftest(["ib_%s_lat" % verb, "-s", "1000", "-n", "50"],
                     mpa="nocrc")
    for argv in OPTIONS if full else OPTIONS[:1]:
        perftest(argv)


# ---- how the ends start MPA ----

# Each row has siw's parameters, ADVERB_MPA, and what the ends agree on in the
# directions TO and FROM: whether there is a CRC, the revision, and whether the model
# is peer to peer.
STARTS = [
    ("", "", (True, 2, True), (True, 2, False)),
    ("", "nocrc", (False, 2, True), (False, 2, False)),
    ("mpa_crc_required=1", "", (True, 2, True), (True, 2, False)),
    # siw as the server does not ask for the CRC that it requires
    ("mpa_crc_required=1", "nocrc", (False, 2, True), (True, 2, False)),
    ("mpa_crc_strict=1", "nocrc", (False, 2, True), (False, 2, False)),
    ("mpa_version=1", "", (True, 2, True), (True, 1, False)),
    ("mpa_version=1", "rev1", (True, 1, False), (True, 1, False)),
    ("peer_to_peer=1", "", (True, 2, True), (True, 2, True)),
    ("peer_to_peer=1", "nocrc", (False, 2, True), (False, 2, True)),
    ("peer_to_peer=1", "client-server", (True, 2, False), (True, 2, True)),
    ("try_gso=1", "", (True, 2, True), (True, 2, False)),
]
WORDS = ["-C", "5", "-S", "2000", "-V", "-a", "%(at)s"]
RPING = ["rping", "-s", *WORDS], ["rping", "-c", *WORDS]
# rping's server READs and WRITEs the memory of the client.
SERVER = {"READ", "WRITE", "SEND"}
CLIENT = {"READ response", "SEND"}


def start_once(direction, env, agreed):
    """Runs rping once.  Expects that the captured frames show the agreement @agreed
    (see STARTS), and that tshark finds nothing wrong with them."""
    sniffer = sniff.Sniffer("lab0", t.path("frames.pcap"))
    try:
        r = ends.cm(*RPING, direction, **env)
    finally:
        sniffer.stop()
    forgive_rping(r, direction)
    expect_ok(r)
    flags, revision, private = sniffer.startup(sniff.REPLY)
    is_peer_to_peer = bool(flags & sniff.ENHANCED and
                           private[0] & sniff.PEER_TO_PEER)
    got = bool(flags & sniff.CRC), revision, is_peer_to_peer
    expect(got == agreed, "CRC, revision and peer to peer: %r" % (got,), r)
    seen, crcs = sniff.judge(t, sniffer.path)
    expect(bool(crcs) == agreed[0], "%d FPDUs have a CRC" % crcs, r)
    server, client = (MAC, MAC_THERE) if direction == FROM else (MAC_THERE, MAC)
    for mac, want in (server, SERVER), (client, CLIENT):
        # "SEND, solicited" counts as a SEND
        kinds = {code.split(",")[0] for code in seen.get(mac, ())}
        expect(want <= kinds, "%s sends %s" % (mac, sorted(kinds)), r)
    os.unlink(sniffer.path)


def starts():
    for parameters, mpa, to, from_ in STARTS:
        agreed = {TO: to, FROM: from_}
        case("MPA starts, rping", lambda direction, env, agreed=agreed:
             start_once(direction, env, agreed[direction]), "rping",
             lambda: both_there(*RPING), parameters, mpa)
    if full:
        for parameters, mpa, _, _ in STARTS[1:]:
            for argv in ["ib_send_bw"], ["ib_write_lat"], ["ib_read_bw"]:
                perftest([*argv, "-s", "65536", "-n", "20"],
                         parameters=parameters, mpa=mpa)


def refused(name, parameters, mpa, want):
    """Adds a case for each direction in @want.  The two ends cannot agree on
    how MPA starts, so they do not connect, and neither hangs."""
    for direction in want:
        def body(direction=direction):
            siw.use(parameters)
            r = ends.cm(*RPING, direction, **{"ADVERB_MPA": mpa} if mpa else {})
            expect(r.status not in (0, 124), "the ends connect, or hang", r)
            expect(want[direction] in r.output,
                   "neither end prints: " + want[direction], r)
        t.case("%s, %s" % (name, direction), body, "iWARP", "rping",
               "kernel siw")


def refusals():
    refused("siw without CRC, adverb with it: no connection",
            "mpa_crc_strict=1", "", {TO: "rejects the connection",
                                     FROM: "RDMA_CM_EVENT_REJECTED"})
    refused("adverb wants markers, which siw lacks: no connection", "",
            "markers", {TO: "rejects the connection",
                        FROM: "RDMA_CM_EVENT_REJECTED"})
    refused("siw by revision 2, adverb with revision 1 alone: no connection",
            "", "rev1", {FROM: "RDMA_CM_EVENT_REJECTED"})


# ---- both ends of a connection, by guest/ends.c ----

def end_lines(server, client, port):
    return (["server", server, "%(at)s", port],
            ["client", client, "%(at)s", port])


def meet(server, client, direction, env, six=False):
    """Runs ends.c at both ends, with these actions.  Returns a Both."""
    words = end_lines(server, client, str(next(ends.ports)))
    ours, theirs = [OUR_ENDS], ["/ends"]
    first, second = (ours, theirs) if direction == FROM else (theirs, ours)
    r = ends.cm(first + words[0], second + words[1], direction, six, **env)
    expect_ok(r)
    for said in r.ours, r.theirs:
        expect("all is well" in said, "an end does not say that all is well",
               r)
    return r


def meeting(name, server, client, six=False, wrap=None, **starts):
    def alone():
        words = end_lines(server, client, str(next(ends.ports)))
        return both_there(["/ends", *words[0]], ["/ends", *words[1]], six)

    def body(direction, env):
        return meet(server, client, direction, env, six)
    case(name, wrap(body) if wrap else body, "ends", alone, **starts)


def on_bad_link(body):
    """Returns a body that runs @body over a link that loses, delays and reorders the
    packets that the guest sends."""
    def run(direction, env):
        vm.run("/sbin/tc qdisc replace dev eth0 root netem limit 10000 "
               "loss 1% delay 2ms reorder 25% 50%")
        try:
            body(direction, env)
        finally:
            vm.run("/sbin/tc qdisc del dev eth0 root")
    return run


def explained(body):
    """Returns a body that also expects that adverb prints why our client's READ
    fails."""
    def run(direction, env):
        r = body(direction, env)
        if direction == TO:
            expect("adverb: " in r.ours and "the peer ended" in r.ours,
                   "adverb does not say why the READ failed", r)
    return run


def meetings():
    for mpa in ("", "rev1") if full else ("",):
        meeting("a rejection with private data", "reject", "reject", mpa=mpa)
        meeting("the client disconnects", "stay", "leave", mpa=mpa)
        meeting("the server disconnects", "leave", "stay", mpa=mpa)
        meeting("SEND, WRITE and READ of 1 byte to 8 MiB, checked", "data",
                "data", mpa=mpa)
    meeting("a READ by a wrong key", "guard", "trespass", wrap=explained)
    meeting("SEND, WRITE and READ of 1 byte to 8 MiB over IPv6, checked",
            "data", "data", six=True, mpa="nocrc")
    meeting("SEND, WRITE and READ of 1 byte to 8 MiB, checked, peer to peer",
            "data", "data", parameters="peer_to_peer=1")
    meeting("SEND, WRITE and READ over a link with loss, delay and reordering",
            "short", "short", wrap=on_bad_link)


# ---- block storage ----

def storage():
    iser = Iser(t, vm, ends)
    for parameters, mpa in [("", ""), ("peer_to_peer=1", "nocrc")][:1 + full]:
        for program, direction, body in ("qemu-io", TO, iser.to_guest), \
                ("tgtd", FROM, iser.from_guest):
            case("iSER, " + program,
                 lambda _, env, body=body: body(env), program, iser.alone,
                 parameters, mpa, (direction,))


# ---- a killed peer ----

PINGS = ["-C", "1000000", "-v", "-a", "%(at)s"]


def pinging(direction):
    """Starts rping at both ends, and waits for its first ping.  Returns our
    process and their command."""
    if direction == TO:
        ends.listener_there(False)
        theirs = vm.start(" ".join(["rping", "-s", *PINGS]) % {"at": THERE})
        ends.listener_there(True)
        process = t.start(ends.here(["rping", "-c", *PINGS[:-1], THERE]),
                          env=ends.environment())
    else:
        process = ends.listener_here(["rping", "-s", *PINGS[:-1], HERE])
        theirs = vm.start(" ".join(["rping", "-c", *PINGS]) % {"at": HERE})
    expect(theirs.wait_for("ping data", HANG), "rping does not begin: " +
           theirs.output.decode(errors="replace"))
    return process, theirs


def killed(direction, is_ours):
    siw.use("")
    process, theirs = pinging(direction)
    if is_ours:
        os.killpg(process.pid, signal.SIGKILL)
        t.finish(process, HANG)
        status, text = theirs.wait(HANG)
        text = text[-2000:]
    else:
        vm.run("killall -KILL rping")
        r = t.finish(process, HANG)
        theirs.wait(HANG)
        status, text = r.status, r.output[-2000:]
    expect(status != 124 and "DISCONNECT EVENT" in text,
           "the other end is not told; it says:\n" + text)


def deaths():
    for direction in DIRECTIONS:
        for is_ours in True, False:
            t.case("%s is killed while rping runs, %s: the other end is told" %
                   ("our process" if is_ours else "siw's process", direction),
                   lambda d=direction, o=is_ours: killed(d, o), "iWARP",
                   "rping", "kernel siw")


vm = None if t.options.list else guest.Guest(rdma="siw")
try:
    ends = Ends(t, vm, SIW)
    siw = Siw(vm)
    tools()
    perftests()
    starts()
    refusals()
    meetings()
    storage()
    deaths()
finally:
    if vm:
        vm.end()
t.end()
