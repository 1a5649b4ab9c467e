# SPDX-License-Identifier: BSD-2-Clause
"""Two network namespaces and the links between them, without privilege.

    here  v0 ---------- v0  there          one user namespace around both,
          v1 ---------- v1                 nothing leads out of it

Lab.both runs a tool across the link: its server here, its client there.
"""

import contextlib
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import time

import system
from system import HANG, Result, expect, expect_ok

SIDES = ("here", "there")
CLONE_NEWNET = 0x40000000


def enter(as_root=False):
    """Runs this script again inside namespaces of its own.  If no namespace can be
    made, prints a skipped case and ends the script.  @as_root: root of the machine
    gets no user namespace, so that the script can mount a /sys of its network
    namespace."""
    if os.environ.get("TEST_NETLAB") or "--list" in sys.argv:
        return
    for tool in "unshare", "nsenter", "ip":
        if not shutil.which(tool):
            give_up("%s is not installed" % tool)
    how = "-nm" if as_root and system.is_root() else "-Urn"
    probe = subprocess.run(["unshare", how, "true"], check=False,
                           stderr=subprocess.DEVNULL)
    if probe.returncode:
        give_up("no namespace can be made on this machine")
    os.environ["TEST_NETLAB"] = "1"
    os.execvp("unshare", ["unshare", how, sys.executable, *sys.argv])


def give_up(why):
    name = os.path.basename(sys.argv[0])
    print("skipped %s: %s\n0 passed, 0 failed, 1 skipped" % (name, why))
    sys.exit(0)


class Lab:
    """The namespaces `here`, in which this script runs, and `there`."""

    def __init__(self, suite):
        self.t = suite
        self.port = 20000
        self.options = []  # options of `adverb run`
        self.there = None
        if suite.options.list:
            return
        # The process ends when this script closes its end of the pipe.
        self.there = subprocess.Popen(["unshare", "-n", "cat"],
                                      stdin=subprocess.PIPE)
        mine = os.readlink("/proc/self/ns/net")
        while os.readlink("/proc/%d/ns/net" % self.there.pid) == mine:
            time.sleep(0.001)
        for side in SIDES:
            self.ip(side, "link set lo up")

    def into(self, side, argv):
        if side == "here":
            return argv
        return ["nsenter", "-t", str(self.there.pid), "-n", *argv]

    def ip(self, side, words):
        done = subprocess.run(self.into(side, ["ip", *words.split()]),
                              check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        expect(done.returncode == 0,
               "ip %s: %s" % (words, done.stdout.strip()))
        return done.stdout

    def sysctl(self, side, name, value):
        subprocess.run(self.into(side, ["sh", "-c", "echo %s >/proc/sys/%s" %
                                        (value, name)]), check=True)

    def wire(self, name="v0", mtu=1500, here=(), there=()):
        """Makes a link between the two namespaces, with these addresses and up
        at both ends."""
        self.ip("here", "link add %s mtu %d type veth peer name %s mtu %d "
                "netns %d" % (name, mtu, name, mtu, self.there.pid))
        for side, addresses in zip(SIDES, (here, there)):
            # Duplicate address detection would delay the test.
            self.sysctl(side, "net/ipv6/conf/%s/accept_dad" % name, "0")
            self.ip(side, "link set %s up" % name)
            for address in addresses:
                self.ip(side, "address add %s dev %s" % (address, name))
        # The kernel adds the link-local addresses when it sees the carrier.  An
        # address of IPv6 is tentative until a thread of the kernel has looked at it,
        # and until then the kernel sends nothing from it.
        for side in SIDES:
            self.wait(lambda: self.link_local(side, name),
                      "%s gets no link-local address" % name)
            self.wait(lambda: "inet6" not in self.ip(
                side, "-6 address show dev %s tentative" % name),
                "an address of %s stays tentative" % name)

    def losses(self):
        """Returns what the kernel says about lost packets in both namespaces."""
        said = ""
        for side in SIDES:
            for words in (["ip", "-s", "link"], ["ip", "neigh"],
                          ["grep", "-E", "Udp6?(In|Out|No|Rcv|Snd)|^Udp:",
                           "/proc/net/snmp", "/proc/net/snmp6"]):
                done = subprocess.run(self.into(side, words), check=False,
                                      stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
                said += "\n%s: %s\n%s" % (side, " ".join(words), done.stdout)
        return said

    def wait(self, done, why, seconds=HANG):
        """Waits until done() is true; fails with @why after @seconds.  @why: a text,
        or a function that returns one after the wait."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() >= end:
                expect(False, why() if callable(why) else why)
            time.sleep(0.01)

    def unwire(self):
        """Removes all links but lo."""
        for side in SIDES:
            for line in self.ip(side, "-o link show").splitlines():
                name = line.split(": ")[1].split("@")[0]
                if name != "lo" and self.has(side, name):
                    self.ip(side, "link del " + name)

    @contextlib.contextmanager
    def interface(self):
        """Makes the link v0 for the time of a `with` statement: rdma_bind_addr
        finds a device by the address of an interface, and at a loopback address
        gives an id no device (adverb(7))."""
        self.wire("v0", 1500, ("10.1.0.1/24", "fd01::1/64"),
                  ("10.1.0.2/24", "fd01::2/64"))
        try:
            yield
        finally:
            self.unwire()

    def has(self, side, name):
        return " %s@" % name in self.ip(side, "-o link show") or \
            " %s:" % name in self.ip(side, "-o link show")

    def link_local(self, side, name="v0"):
        words = self.ip(side, "-o -6 address show dev %s scope link" %
                        name).split()
        if "inet6" not in words:
            return None
        return words[words.index("inet6") + 1].split("/")[0]

    def socket(self, address):
        """Returns a UDP socket in the namespace `there`, bound to @address."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net") as mine, \
                open("/proc/%d/ns/net" % self.there.pid) as theirs:
            expect(libc.setns(theirs.fileno(), CLONE_NEWNET) == 0,
                   os.strerror(ctypes.get_errno()))
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            expect(libc.setns(mine.fileno(), CLONE_NEWNET) == 0,
                   os.strerror(ctypes.get_errno()))
        made.bind((address, 0))
        return made

    def start(self, side, argv, **env):
        return self.t.start([self.t.adverb, "run", *self.options, "--", *argv],
                            env=self.t.environment(**env),
                            into=lambda words: self.into(side, words))

    def run(self, side, argv, timeout=HANG, **env):
        return self.t.finish(self.start(side, argv, **env), timeout)

    def is_listening(self, side, port):
        pid = self.there.pid if side == "there" else "self"
        for table in "tcp", "tcp6":
            with open("/proc/%s/net/%s" % (pid, table)) as f:
                for line in f:
                    words = line.split()
                    if words[3] == "0A" and words[1].endswith(":%04X" % port):
                        return True
        return False

    def counter(self, side, table, prefix, name):
        """Returns the counter @name of the file @table in the side's /proc/net.
        Two lines of the file begin with @prefix: one has the names of counters,
        the next has their values."""
        pid = self.there.pid if side == "there" else "self"
        with open("/proc/%s/net/%s" % (pid, table)) as f:
            names, figures = [line.split() for line in f
                              if line.startswith(prefix)]
        return int(figures[names.index(name)])

    def datagrams(self, side):
        """Returns how many UDP datagrams the side has sent over IPv4.  Datagrams
        that one call sends with UDP_SEGMENT count as one."""
        return self.counter(side, "snmp", "Udp:", "OutDatagrams")

    def messages(self, side):
        """Returns how many messages to QP1 the side has sent over IPv4, if it sends
        nothing else.  A message has 280 bytes.  A datagram, as datagrams() counts
        them, may carry several messages, and has 28 bytes of headers."""
        sent = self.counter(side, "netstat", "IpExt:", "OutOctets")
        return (sent - 28 * self.datagrams(side)) / 280

    def begin(self, server, client, timeout=HANG, server_env=None,
              client_env=None, client_side="there"):
        """Starts both ends of a tool: the server in `here`, and, when the server
        listens, the client in @client_side.  `%` in an argument stands for a port.
        Returns both processes."""
        self.port += 1
        port = str(self.port)
        self.t.need(server[0])
        end = time.monotonic() + timeout
        p = self.start("here", [w.replace("%", port) for w in server],
                       **(server_env or {}))
        while not self.is_listening("here", self.port) and \
                p.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        return p, self.start(client_side,
                             [w.replace("%", port) for w in client],
                             **(client_env or {}))

    def finish(self, pair, timeout=HANG):
        """Returns a Result with the output of both sides, in the form of
        `adverb pair`."""
        server, client = pair
        rc = self.t.finish(client, timeout)
        rs = self.t.finish(server, timeout if rc.status == 0 else 3)
        text = ["%s| %s" % (side, line)
                for side, r in (("server", rs), ("client", rc))
                for line in r.output.splitlines()]
        return Result(max(rs.status, rc.status, key=abs), "\n".join(text))

    def both(self, server, client, timeout=HANG, **more):
        return self.finish(self.begin(server, client, timeout, **more),
                           timeout)

    @contextlib.contextmanager
    def one_to_many(self, client, servers, rounds, **env):
        """Runs @servers targets in `here`, and in namespace @client a writer, which
        writes to each target in each of @rounds rounds.  Yields the writer when all
        requests are acknowledged, or when a process has ended."""
        program = self.t.program("one_to_many")
        folder = self.t.path("one_to_many")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        running = [self.start("here", [program, "serve", folder, str(i)], **env)
                   for i in range(servers)]
        writer = self.start(client, [program, "write", folder, str(servers),
                                     str(rounds)], **env)
        running.append(writer)
        try:
            self.wait(lambda: os.path.exists(folder + "/written.0") or
                      any(p.poll() is not None for p in running),
                      "nothing is written", system.HANG)
            yield writer
        finally:
            with open(folder + "/end.0.new", "wb") as f:
                f.write(bytes(4096))
            os.rename(folder + "/end.0.new", folder + "/end.0")
            results = [self.t.finish(p, system.HANG) for p in running]
        for r in results:
            expect_ok(r)

    def one_to_many_top(self):
        """Returns the entries of `adverb top` for the processes of one_to_many,
        and the Result of `adverb top`."""
        r = self.t.run([self.t.adverb, "top", "--once", "--json",
                        "--interval", "0.01"])
        expect_ok(r)
        return [p for p in json.loads(r.output)["processes"]
                if p["name"] == "one_to_many"], r

    def batch(self, side, commands):
        """Executes several ip commands at once."""
        done = subprocess.run(self.into(side, ["ip", "-batch", "-"]),
                              check=False, input=commands, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        expect(done.returncode == 0, "ip -batch: " + done.stdout.strip())

    def end(self):
        if self.there:
            self.there.stdin.close()
            self.there.wait()
