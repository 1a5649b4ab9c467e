# SPDX-License-Identifier: BSD-2-Clause
"""The client and the server of a program: one on adverb here, one on the
kernel's software RDMA in the guest."""

import os
import re
import select
import time

import guest
from guest import HERE, HERE6, THERE, THERE6
from system import HANG, Fail, expect

PACE = os.path.join(guest.WORK, "pace.so")
# Counters of rxe that must not change while no packet is lost.
ERRORS = ("out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err",
          "retry_rnr_exceeded_err", "send_err", "completer_retry_err")
NEVER = 31  # the exponent of an ACK timeout of 2.4 hours
COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"


class Peer:
    """A driver of the guest, the driver's device, and the device of adverb that is
    the peer of that device."""

    def __init__(self, name, **environment):
        self.name = name
        self.theirs = name + "0"
        self.ours = "iw0" if environment else "adv0"
        self.environment = environment
        self.directions = ("to " + name, "from " + name)


RXE = Peer("rxe")
SIW = Peer("siw", ADVERB_DEVICES="iwarp:lab0")


class Both:
    """The statuses and the outputs of both ends of a program."""

    def __init__(self, ours, theirs, client, seen=""):
        self.status = ours.status or theirs[0]
        self.our_status, self.their_status = ours.status, theirs[0]
        self.ours, self.theirs = ours.output, theirs[1]
        self.client = client
        self.output = "--- adverb\n%s\n--- the guest\n%s%s" % (
            ours.output, theirs[1], seen)

    def lines(self, _side):
        """Returns the lines of the client, as check_rows() asks for them."""
        return self.client.splitlines()


def listens(port):
    for name in "/proc/net/tcp", "/proc/net/tcp6":
        with open(name) as table:
            if re.search(r"^\s*\d+: [0-9A-F]+:%04X \S+ 0A " % port,
                         table.read(), re.M):
                return True
    return False


def wait_here(process, is_so):
    """Waits until is_so() is true, @process has ended, or HANG has passed.
    Returns whether is_so() was true."""
    until = time.monotonic() + HANG
    while not is_so():
        if process.poll() is not None or time.monotonic() >= until:
            return False
        time.sleep(0.01)
    return True


class Ends:
    def __init__(self, suite, vm, peer=RXE):
        self.t = suite
        self.vm = vm
        self.peer = peer
        self.mtu = 1500
        self.ports = iter(range(20000, 60000))
        # The GID indices of the IPv4 and of the IPv6 address at each end.
        self.index = {"here": ["1", "1"], "there": ["1", "1"]}
        if vm and peer is RXE:
            self.index = {
                "here": self.gids(suite.run(
                    [suite.adverb, "run", "--", "ibv_devinfo", "-v"]).output,
                    HERE, HERE6),
                "there": self.gids(vm.run("ibv_devinfo -v")[1], THERE, THERE6)}

    @staticmethod
    def gids(text, *addresses):
        return [re.search(r"GID\[ *(\d+)\]:\s+(?:::ffff:)?%s,? RoCE v2" %
                          re.escape(address), text)[1]
                for address in addresses]

    def environment(self, **env):
        return self.t.environment(**dict(self.peer.environment, **env))

    def counters(self):
        _, text = self.vm.run("cd %s && grep . *" % COUNTERS)
        return {name: int(n) for name, n in re.findall(r"^(\w+):(\d+)", text,
                                                       re.M)}

    def errors_since(self, before):
        """Returns a text for each counter of ERRORS that has changed since @before,
        which counters() has returned."""
        after = self.counters()
        return ["%s by %d" % (name, after[name] - before[name])
                for name in ERRORS if after[name] != before[name]]

    def dropped(self):
        """Returns a text with the counts of packets that the link and this
        host's sockets have dropped."""
        _, text = self.vm.run("/sbin/tc -s qdisc show dev eth0; "
                              "grep -E '^ *eth0' /proc/net/dev")
        said = ["the guest: " + text.strip()]
        for name in "/proc/net/snmp", "/proc/net/dev":
            with open(name) as table:
                said += ["here: " + line.strip() for line in table
                         if re.match(r" *(Udp|lab0):", line)]
        return "--- dropped\n" + "\n".join(said)

    def seen(self, status):
        """If our end failed with @status, returns the state of the guest's end,
        which must still run.  If our end did not fail, returns "".

        A program that waits for its memory to change sees no error of its
        queue pair: only the state of the queue pair shows that error."""
        if not status:
            return ""
        more = "cd %s && grep . *" % COUNTERS if self.peer is RXE else "true"
        _, text = self.vm.run("rdma res show qp; dmesg | tail -n 10; " + more)
        return "\n--- their queue pairs, the guest's log, rxe's counters\n" + \
            text + self.dropped()

    def expect_clean(self, before, r, but=()):
        """Expects that no counter of ERRORS has changed since @before, but for
        those whose names begin with @but."""
        moved = [text for text in self.errors_since(before)
                 if not text.startswith(but)]
        if moved:
            r.output += "\n" + self.dropped()
        expect(not moved, "rxe counts errors: " + ", ".join(moved), r)

    def wait_there(self, condition):
        """Waits until the shell command @condition succeeds in the guest, or 6000
        calls of it have failed."""
        self.vm.run("n=0; until %s || [ $n = 6000 ]; do usleep 20000; "
                    "n=$((n+1)); done" % condition, HANG)

    def port_there(self, port, theirs):
        """Waits until @theirs listens at @port, has ended, or HANG has passed.
        """
        asks = ("cat /proc/net/tcp /proc/net/tcp6 | "
                "grep -q ':%04X [0-9A-F:]* 0A'" % port)
        until = time.monotonic() + HANG
        while not theirs.ended and time.monotonic() < until and \
                self.vm.run(asks)[0]:
            theirs.read(time.monotonic() + 0.02)

    def listener_there(self, some):
        """Waits until rdma_cm has a listener in the guest, or, if @some is
        false, until it has none."""
        self.wait_there("%s rdma res show cm_id | grep -q LISTEN" %
                        ("" if some else "!"))

    def words(self, side, argv, six):
        """Returns the command of a tool at this side, with the side's device and, for
        rxe, the GID index of the address family."""
        name, *rest = argv
        # perftest compares two clocks, and reports no result if it loses its
        # processor between the readings; with -F it always reports a result.
        rest += ["-F"] if name.startswith("ib_") else []
        index = ["-g" if "pingpong" in name else "-x", self.index[side][six]]
        return [name, "-d",
                self.peer.ours if side == "here" else self.peer.theirs,
                *(index if self.peer is RXE else []), *rest]

    def here(self, argv):
        """Returns the command that runs @argv on adverb on this host."""
        return [self.t.adverb, "run", "--", *argv]

    def watch(self, process, theirs):
        """Waits until @process or @theirs ends, or HANG has passed."""
        until = time.monotonic() + HANG
        while process.poll() is None and not theirs.ended and \
                time.monotonic() < until:
            theirs.read(time.monotonic() + 0.05)

    def tool(self, argv, direction, six=False, timeout=NEVER, **env):
        """Runs a tool without rdma_cm.  @direction "to rxe": its client runs on
        adverb; "from rxe": its client runs in the guest.  Returns a Both.

        @timeout is the exponent of the tool's ACK timers: 17 for 0.5 s.  With
        NEVER no timer expires, however slow the emulated machine is, so that a
        lost packet makes the test fail.

        A pingpong and ib_write_lat end as soon as they have what they wait
        for.  At that moment their last ACK may be lost, or not even be sent
        (rxe completes a receive before it acknowledges).  So in the guest such
        a tool keeps its QP until the peer has ended.  On adverb the library
        itself lets the tool end only when no packet of its QP can be lost any
        more.  The two ends of the other tools of perftest synchronise over TCP
        before they destroy a QP."""
        port = next(self.ports)
        argv = [*argv, "-p", str(port)]
        if "pingpong" not in argv[0] and "UD" not in argv:
            argv += ["-u", str(timeout)]
        line = " ".join(self.words("there", argv, six))
        done = "true"
        if "pingpong" in argv[0] or argv[0] == "ib_write_lat":
            line = "LD_PRELOAD=/pace.so PACE=/tmp/%d PACE_STAYS=1 %s" % (
                port, line)
            done = "touch /tmp/%d" % port
        if "pingpong" in argv[0]:
            line = "PACE_TIMEOUT=%d %s" % (timeout, line)
            env = {"LD_PRELOAD": PACE, "PACE_TIMEOUT": str(timeout), **env}
        ours = self.here(self.words("here", argv, six))
        env = self.environment(**env)
        if direction == self.peer.directions[0]:
            theirs = self.vm.start(line)
            self.port_there(port, theirs)
            r = self.t.finish(self.t.start([*ours, THERE], env=env), HANG)
            seen = self.seen(r.status)
            self.vm.run(done)
            # If the client failed, its server would wait for ever.
            return Both(r, theirs.wait(HANG if r.status == 0 else 5),
                        r.output, seen)
        process = self.t.start(ours, env=env)
        wait_here(process, lambda: listens(port))
        theirs = self.vm.start(line + " " + HERE)
        self.watch(process, theirs)
        seen = self.seen(process.poll())
        self.vm.run(done)
        return self.end(process, theirs, seen)

    def end(self, process, theirs, seen=""):
        """Waits for their client and for our server, which is killed if the
        client failed.  Returns a Both."""
        status = theirs.wait(HANG if process.poll() in (None, 0) else 5)
        if status[0] and process.poll() is None:
            process.kill()
        return Both(self.t.finish(process, HANG), status, status[1], seen)

    def listener_here(self, argv, **env):
        """Starts our server, and waits until librdmacm reports that it listens.
        Returns its process."""
        ready, theirs = os.pipe()
        process = self.t.start(self.here(argv), pass_fds=[theirs],
                               env=self.environment(
                                   ADVERB_READY_FD=str(theirs), **env))
        os.close(theirs)
        if not select.select([ready], [], [], HANG)[0]:
            process.kill()
            raise Fail("our server has not listened within %d s" % HANG,
                       self.t.finish(process, HANG).output)
        os.read(ready, 1)
        process.ready = open(ready)  # keep the pipe for a later rdma_listen
        return process

    def cm(self, server, client, direction, six=False, stays=False, **env):
        """Runs a tool of rdma_cm; the server's address replaces %(at)s in both
        commands.  Returns a Both.

        A server that @stays serves until it is killed."""
        if direction == self.peer.directions[0]:
            at = {"at": THERE6 if six else THERE}
            self.listener_there(False)
            theirs = self.vm.start(" ".join(server) % at)
            self.listener_there(True)
            ours = self.t.finish(self.t.start(
                self.here([w % at for w in client]),
                env=self.environment(**env)), HANG)
            if stays:
                theirs.end()
                return Both(ours, (0, ""), ours.output)
            return Both(ours, theirs.wait(HANG if ours.status == 0 else 5),
                        ours.output)
        at = {"at": HERE6 if six else HERE}
        process = self.listener_here([w % at for w in server], **env)
        theirs = self.vm.start(" ".join(client) % at)
        if stays:
            status = theirs.wait(HANG)
            serves = process.poll() is None
            process.kill()
            said = self.t.finish(process, HANG)
            if serves:
                said.status = 0
            return Both(said, status, status[1])
        self.watch(process, theirs)
        return self.end(process, theirs)

    def perftest_cm(self, argv, direction, six=False, **more):
        """Runs perftest -R.  Its server listens twice, and the second time only
        after it has told the client to connect: pace.c holds the client's second
        rdma_connect until the server listens again.  The client itself retries, but
        for a second only.  Returns a Both."""
        port = next(self.ports)
        argv = [*argv, "-R", "-p", str(port)]
        there = "/tmp/%d" % port
        line = "LD_PRELOAD=/pace.so PACE=%s %s" % (
            there, " ".join(self.words("there", argv, six)))
        here = self.t.path(str(port))
        env = {"LD_PRELOAD": PACE, "PACE": here, **more}
        ours = self.words("here", argv, six)
        self.vm.run("touch " + there)
        with open(here, "w"):
            pass
        if direction == self.peer.directions[0]:
            self.listener_there(False)
            theirs = self.vm.start(line)
            self.listener_there(True)
            process = self.t.start(
                self.here([*ours, THERE6 if six else THERE]),
                env=self.environment(**env))
            self.wait_there("[ -e %s.listens ]" % there)
            with open(here + ".connect", "w"):
                pass
            r = self.t.finish(process, HANG)
            return Both(r, theirs.wait(HANG if r.status == 0 else 5),
                        r.output)
        process = self.listener_here(ours, **env)
        theirs = self.vm.start(line + " " + (HERE6 if six else HERE))
        wait_here(process, lambda: os.path.exists(here + ".listens"))
        self.vm.run("touch %s.connect" % there)
        self.watch(process, theirs)
        return self.end(process, theirs)

    def wants_mtu(self, bytes_):
        """Sets the link's MTU at both ends, and waits until rxe has it."""
        if self.mtu == bytes_:
            return
        self.mtu = bytes_
        guest.ip("link", "set", "lab0", "mtu", str(bytes_))
        self.wait_there(
            "ip link set eth0 mtu %d && ibv_devinfo | "
            "grep -q 'active_mtu:.*%d'" %
            (bytes_, {1500: 1024, 9000: 4096}[bytes_]))
