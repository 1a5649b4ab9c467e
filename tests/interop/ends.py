# SPDX-License-Identifier: BSD-2-Clause
"""The client and the server of a program: one on adverb here, one on rxe in
the guest."""

import os
import re
import time

import guest
from guest import HERE, HERE6, THERE, THERE6
from system import HANG, expect

PACE = os.path.join(guest.WORK, "pace.so")
# What stays 0 while no packet is lost.
ERRORS = ("out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err",
          "retry_rnr_exceeded_err", "send_err", "completer_retry_err")
NEVER = 31  # 2.4 hours
COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"


class Both:
    """What both ends said."""

    def __init__(self, ours, theirs, client, seen=""):
        self.status = ours.status or theirs[0]
        self.ours = ours.output
        self.client = client
        self.output = "--- adverb\n%s\n--- rxe\n%s%s" % (
            ours.output, theirs[1], seen)

    def lines(self, _side):
        return self.client.splitlines()


def listens(port):
    for name in "/proc/net/tcp", "/proc/net/tcp6":
        with open(name) as table:
            if re.search(r"^\s*\d+: [0-9A-F]+:%04X \S+ 0A " % port,
                         table.read(), re.M):
                return True
    return False


def wait_here(process, is_so):
    """Asked again until it is so; nothing rests on how often."""
    until = time.monotonic() + HANG
    while process.poll() is None and time.monotonic() < until and not is_so():
        time.sleep(0.01)


class Ends:
    def __init__(self, suite, vm):
        self.t = suite
        self.vm = vm
        self.mtu = 1500
        self.ports = iter(range(20000, 60000))
        # Where the IPv4 and IPv6 GIDs are at either end.
        self.index = {"here": ["1", "1"], "there": ["1", "1"]}
        if vm:
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

    def counters(self):
        _, text = self.vm.run("cd %s && grep . *" % COUNTERS)
        return {name: int(n) for name, n in re.findall(r"^(\w+):(\d+)", text,
                                                       re.M)}

    def errors_since(self, before):
        after = self.counters()
        return ["%s by %d" % (name, after[name] - before[name])
                for name in ERRORS if after[name] != before[name]]

    def dropped(self):
        """What the link and our sockets dropped, ever: who lost packets."""
        _, text = self.vm.run("/sbin/tc -s qdisc show dev eth0; "
                              "grep -E '^ *eth0' /proc/net/dev")
        said = ["the guest: " + text.strip()]
        for name in "/proc/net/snmp", "/proc/net/dev":
            with open(name) as table:
                said += ["here: " + line.strip() for line in table
                         if re.match(r" *(Udp|lab0):", line)]
        return "--- dropped\n" + "\n".join(said)

    def seen(self, status):
        """If our end failed, with @status: what rxe has of it, its end alive.

        A program that waits for its memory to change sees no error of its
        queue pair: only here it can be seen."""
        if not status:
            return ""
        _, text = self.vm.run("rdma res show qp; dmesg | tail -n 10; "
                              "cd %s && grep . *" % COUNTERS)
        return "\n--- rxe's queue pairs, the guest's log, rxe's counters\n" + \
            text + self.dropped()

    def expect_clean(self, before, r, but=()):
        """rxe's error counters are as @before, except @but."""
        moved = [text for text in self.errors_since(before)
                 if not text.startswith(but)]
        if moved:
            r.output += "\n" + self.dropped()
        expect(not moved, "rxe counts errors: " + ", ".join(moved), r)

    def wait_there(self, condition):
        self.vm.run("n=0; until %s || [ $n = 6000 ]; do usleep 20000; "
                    "n=$((n+1)); done" % condition, HANG)

    def port_there(self, port, theirs):
        """Until @theirs listens at @port, or has ended."""
        asks = ("cat /proc/net/tcp /proc/net/tcp6 | "
                "grep -q ':%04X [0-9A-F:]* 0A'" % port)
        until = time.monotonic() + HANG
        while not theirs.ended and time.monotonic() < until and \
                self.vm.run(asks)[0]:
            theirs.read(time.monotonic() + 0.02)

    def listener_there(self, some):
        """Until @some listener of rdma_cm is in the guest, or none."""
        self.wait_there("%s rdma res show cm_id | grep -q LISTEN" %
                        ("" if some else "!"))

    def words(self, side, argv, six):
        name, *rest = argv
        # perftest compares two clocks, and reports nothing when it loses its
        # processor meanwhile; -F: it does
        rest += ["-F"] if name.startswith("ib_") else []
        return [name, "-d", "adv0" if side == "here" else "rxe0",
                "-g" if "pingpong" in name else "-x",
                self.index[side][six], *rest]

    def here(self, argv):
        return [self.t.adverb, "run", "--", *argv]

    def watch(self, process, theirs):
        """Until one of them ends or the time does."""
        until = time.monotonic() + HANG
        while process.poll() is None and not theirs.ended and \
                time.monotonic() < until:
            theirs.read(time.monotonic() + 0.05)

    def tool(self, argv, direction, six=False, timeout=NEVER, **env):
        """One tool without rdma_cm; direction says what the client is.

        @timeout is the exponent of its timers: 17 for 0.5 s.  Where no packet
        is lost none is to end, however late the emulated machine is, and none
        helps who has lost one.

        A pingpong ends when it has what it waits for: the acknowledgement it
        owes may be lost, or not even sent (rxe completes a receive before it
        acknowledges).  So does ib_write_lat.  In the guest they keep their QP
        until the other end is through; adverb's own leave when nothing of
        theirs can be lost.  The ends of perftest's others meet over TCP before
        they destroy anything."""
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
        env = self.t.environment(**env)
        if direction == "to rxe":
            theirs = self.vm.start(line)
            self.port_there(port, theirs)
            r = self.t.finish(self.t.start([*ours, THERE], env=env), HANG)
            seen = self.seen(r.status)
            self.vm.run(done)
            # A client that failed leaves a server that waits.
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
        """Our server ends, or is killed if their client failed."""
        status = theirs.wait(HANG if process.poll() in (None, 0) else 5)
        if status[0] and process.poll() is None:
            process.kill()
        return Both(self.t.finish(process, HANG), status, status[1], seen)

    def listener_here(self, argv, **env):
        """A server of ours, once librdmacm says that it listens."""
        ready, theirs = os.pipe()
        process = self.t.start(self.here(argv), pass_fds=[theirs],
                               env=self.t.environment(
                                   ADVERB_READY_FD=str(theirs), **env))
        os.close(theirs)
        os.read(ready, 1)
        process.ready = open(ready)  # it may listen again, and is not to fail
        return process

    def cm(self, server, client, direction, six=False, stays=False):
        """A tool of rdma_cm; @server and @client get the server's address.

        A server that @stays serves until it is killed."""
        if direction == "to rxe":
            at = {"at": THERE6 if six else THERE}
            self.listener_there(False)
            theirs = self.vm.start(" ".join(server) % at)
            self.listener_there(True)
            ours = self.t.run(self.here([w % at for w in client]))
            if stays:
                theirs.end()
                return Both(ours, (0, ""), ours.output)
            return Both(ours, theirs.wait(HANG if ours.status == 0 else 5),
                        ours.output)
        at = {"at": HERE6 if six else HERE}
        process = self.listener_here([w % at for w in server])
        theirs = self.vm.start(" ".join(client) % at)
        if stays:
            status = theirs.wait(HANG)
            process.kill()
            said = self.t.finish(process, HANG)
            said.status = 0
            return Both(said, status, status[1])
        self.watch(process, theirs)
        return self.end(process, theirs)

    def perftest_cm(self, argv, direction):
        """perftest -R.  Its server listens twice, and the second time only
        after it has told the client to connect: pace.c keeps the client until
        then.  It retries by itself, but for a second only."""
        port = next(self.ports)
        argv = [*argv, "-R", "-p", str(port)]
        there = "/tmp/%d" % port
        line = "LD_PRELOAD=/pace.so PACE=%s %s" % (
            there, " ".join(self.words("there", argv, False)))
        here = self.t.path(str(port))
        env = {"LD_PRELOAD": PACE, "PACE": here}
        ours = self.words("here", argv, False)
        self.vm.run("touch " + there)
        with open(here, "w"):
            pass
        if direction == "to rxe":
            self.listener_there(False)
            theirs = self.vm.start(line)
            self.listener_there(True)
            process = self.t.start(self.here([*ours, THERE]),
                                   env=self.t.environment(**env))
            self.wait_there("[ -e %s.listens ]" % there)
            with open(here + ".connect", "w"):
                pass
            r = self.t.finish(process, HANG)
            return Both(r, theirs.wait(HANG if r.status == 0 else 5),
                        r.output)
        process = self.listener_here(ours, **env)
        theirs = self.vm.start(line + " " + HERE)
        wait_here(process, lambda: os.path.exists(here + ".listens"))
        self.vm.run("touch %s.connect" % there)
        self.watch(process, theirs)
        return self.end(process, theirs)

    def wants_mtu(self, bytes_):
        """Of the link, at both ends; rxe is asked until it has followed."""
        if self.mtu == bytes_:
            return
        self.mtu = bytes_
        guest.ip("link", "set", "lab0", "mtu", str(bytes_))
        self.wait_there(
            "ip link set eth0 mtu %d && ibv_devinfo | "
            "grep -q 'active_mtu:.*%d'" %
            (bytes_, {1500: 1024, 9000: 4096}[bytes_]))
