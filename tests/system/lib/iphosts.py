# SPDX-License-Identifier: BSD-2-Clause
"""Hosts of an emulated subnet in network namespaces, with IPoIB interfaces."""

import contextlib
import json
import os
import re
import signal
import socket

import system
from subnet import PATIENCE_S
from system import PYTHON, Fail, Skip, expect_ok, wait_until

NOBODY = 65534
t = None  # the suite


def use(suite):
    """Sets the suite that the hosts belong to.  A script calls this first."""
    global t
    t = suite



class Suite(system.Suite):
    """A fabric does not serve the user ID of nobody, which all unmapped users of a
    user namespace share.  Where the programs would run as nobody, or as root of a
    user namespace, they run as user 1000 of a user namespace instead."""

    def unprivileged(self, argv):
        if os.geteuid() in (0, NOBODY):
            argv = ["unshare", "--user", "--map-user=1000", "--map-group=1000",
                    *argv]
        return super().unprivileged(argv)


# A program that runs commands in the network namespace of a host, one after another.
# Its argument is the descriptor of a socket: the program reads the commands from the
# socket, and writes the results to it.
AGENT = """
import json, socket, subprocess, sys
with socket.socket(fileno=int(sys.argv[1])) as s:
    f = s.makefile("rw")
    for line in f:
        argv, timeout = json.loads(line)
        try:
            r = subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=timeout,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            result = r.returncode, r.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as why:
            result = 124, (why.stdout or b"").decode(errors="replace")
        f.write(json.dumps(result) + "\\n")
        f.flush()
"""

# A program in place of ping(8), which not every machine has.  Arguments: ADDRESS SIZE
# COUNT WHOLE.  WHOLE: 1 if no packet may be fragmented.  The program sends a request
# again if no answer comes for a second: a packet may be lost, for example while the
# subnet manager changes a LID, or if no answer to ARP comes for three seconds.
PING = """
import errno, os, socket, statistics, struct, sys, time
name, size, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family, _, _, _, at = socket.getaddrinfo(name, 0, type=socket.SOCK_DGRAM)[0]
v6 = family == socket.AF_INET6
s = socket.socket(family, socket.SOCK_RAW, 58 if v6 else 1)
s.settimeout(1)
end = time.monotonic() + 300 # less than PATIENCE_S, when the agent kills the program
if sys.argv[4] == "1": # IP_MTU_DISCOVER or IPV6_MTU_DISCOVER: always
    s.setsockopt(*(socket.IPPROTO_IPV6, 23, 2) if v6 else (socket.IPPROTO_IP, 10, 2))
ident, data, times = os.getpid() & 0xffff, os.urandom(size), []

def checksum(p):
    total = sum(struct.unpack("!%dH" % ((len(p) + 1) // 2), p + p[:0] +
                              bytes(len(p) % 2)))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def send(p):
    try:
        s.sendto(p, at)
    except OSError as why:
        # the error of the last request
        if why.errno != errno.EHOSTUNREACH:
            raise
        s.sendto(p, at)

for n in range(count):
    p = struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, ident, n) + data
    if not v6:
        p = p[:2] + struct.pack("!H", checksum(p)) + p[4:]
    began = time.monotonic()
    send(p)
    while True:
        try:
            got = s.recv(65536)
        except OSError as why:
            # no answer has come, or ICMP has told that there is none
            if why.errno not in (None, errno.EHOSTUNREACH) or time.monotonic() > end:
                raise
            began = time.monotonic()
            send(p)
            continue
        if not v6:
            got = got[(got[0] & 15) * 4:]
        if got[:1] == (b"\\x81" if v6 else b"\\0") and \\
                got[4:] == struct.pack("!HH", ident, n) + data:
            break
    times.append(time.monotonic() - began)
print("%d answers, median %.0f us" % (count, statistics.median(times) * 1e6))
"""


class Host:
    """A host of a fabric, in a network namespace of its own."""

    def __init__(self, f, name):
        self.name = name
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = t.start(
                [t.adverb, "run", "--private", "--fabric=" + f.socket, "--host",
                 name, "--", PYTHON, "-c", AGENT, str(theirs.fileno())],
                pass_fds=[theirs.fileno()])
        self.file = ours.makefile("rw")
        ours.close()

    def begin(self, *argv, timeout=PATIENCE_S):
        """Starts a command, which is killed after @timeout seconds.  end() waits
        for the command and returns its Result."""
        try:
            self.file.write(json.dumps((argv, timeout)) + "\n")
            self.file.flush()
        except BrokenPipeError:
            pass

    def end(self):
        """Waits for the command of begin(), and returns its Result.  Raises Skip if the
        host has no network namespace, and Fail if its agent has ended."""
        line = self.file.readline()
        if not line:
            said = t.finish(self.process, PATIENCE_S).output
            if "no private network namespace" in said:
                raise Skip("no network namespace can be made")
            raise Fail("the agent of %s has ended" % self.name, said)
        return system.Result(*json.loads(line))

    def run(self, *argv, timeout=PATIENCE_S):
        """Runs a command, and returns its Result."""
        self.begin(*argv, timeout=timeout)
        return self.end()

    def out(self, *argv, timeout=PATIENCE_S):
        """Runs a command, which must succeed, and returns its output."""
        r = self.run(*argv, timeout=timeout)
        expect_ok(r)
        return r.output

    def ipoib(self, *words):
        return self.run(t.adverb, "ipoib", *words)

    def ping(self, to, size=56, count=3, whole=False):
        """Sends @count echo requests with @size bytes of data, unfragmented if
        @whole, and expects an answer to each.  Returns the text of PING with the
        median round-trip time."""
        return self.out(PYTHON, "-c", PING, to, str(size), str(count),
                        str(int(whole)))

    def settle(self, name="ib0"):
        """Waits until no IPv6 address of the interface is tentative."""
        wait_until(lambda: "inet6" not in self.out(
            "ip", "-6", "address", "show", "dev", name, "tentative"),
            "the addresses stay tentative", PATIENCE_S)

    def local(self, name="ib0"):
        """Returns the link-local IPv6 address of the interface, as
        ADDRESS%INTERFACE."""
        said = self.out("ip", "-6", "address", "show", "dev", name)
        return re.search(r"inet6 (fe80:[0-9a-f:]+)", said).group(1) + "%" + name

    def close(self):
        """Ends the agent, and the commands that are still in its process group.
        An `adverb ipoib --background` has left that group, and runs until the
        fabric ends."""
        self.file.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@contextlib.contextmanager
def hosts(f, *names):
    t.need("ip")
    made = []
    try:
        for name in names:
            made.append(Host(f, name))
        yield made
    finally:
        for host in made:
            host.close()


def start_interfaces(all_hosts, *words):
    """Starts adverb ipoib on each host.  The first host has the addresses 10.9.0.1
    and fd00::1, the next host 10.9.0.2 and fd00::2.  @words: further arguments."""
    for i, host in enumerate(all_hosts, 1):
        host.begin(t.adverb, "ipoib", "--background", "--address",
                   "10.9.0.%d/24" % i, "--address", "fd00::%d/64" % i, *words)
    for host in all_hosts:
        expect_ok(host.end())


@contextlib.contextmanager
def interfaces(f, *names):
    with hosts(f, *names) as made:
        start_interfaces(made)
        yield made
