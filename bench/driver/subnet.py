# SPDX-License-Identifier: BSD-2-Clause
"""Emulated subnets under OpenSM: its first sweep of a fat tree, on `adverb fabric` and
on ibsim; a chain of switches, over which programs send by LID.

A sweep lasts from the line "Entering DISCOVERING state" in OpenSM's log to the line
"SUBNET UP", so the start of the simulators does not count.
"""

import contextlib
import glob
import os
import re
import signal
import subprocess
import tempfile
import time

import proc
from proc import Failed

ARITY = 16  # 1024 hosts and 320 switches
HOST = "H0-0-0"
NEAR, NEXT, FAR = "Near", "Next", "Far"  # the hosts of a chain of switches
STAMP = re.compile(r"(\d\d):(\d\d):(\d\d) (\d{6})")
DAY_S = 86400
PATIENCE_S = 200
NO_SWEEP = "OpenSM did not end its sweep"


def node_count(k):
    return k ** 3 // 4 + 5 * k ** 2 // 4


def add_node(rows, kind, ports, name, cables):
    """Adds the lines of a node in ibsim's net file format."""
    rows.append('%s %d "%s"' % (kind, ports, name))
    rows.extend('[%d] "%s"[%d]' % cable for cable in cables)
    rows.append("")


def chain(count):
    """Returns a topology of @count switches in a row.  The hosts NEAR and NEXT
    are at the first switch, FAR is at the last one."""
    rows = []
    for i in range(1, count + 1):
        cables = [(1, "S%d" % (i - 1), 2)] if i > 1 else []
        cables += [(2, "S%d" % (i + 1), 1)] if i < count else []
        cables += [(3, NEAR, 1), (4, NEXT, 1)] if i == 1 else []
        cables += [(5, FAR, 1)] if i == count else []
        add_node(rows, "Switch", 5, "S%d" % i, cables)
    for host, number, port in (NEAR, 1, 3), (NEXT, 1, 4), (FAR, count, 5):
        add_node(rows, "Hca", 1, host, [(1, "S%d" % number, port)])
    return "\n".join(rows)


def fat_tree(k):
    """Returns a topology of three levels of switches with @k ports, and of
    k^3/4 hosts below them."""
    half, rows = k // 2, []

    def node(*words):
        add_node(rows, *words)

    for i in range(half):
        for j in range(half):
            node("Switch", k, "C%d-%d" % (i, j),
                 [(p + 1, "A%d-%d" % (p, i), half + j + 1) for p in range(k)])
    for p in range(k):
        for a in range(half):
            node("Switch", k, "A%d-%d" % (p, a),
                 [(e + 1, "E%d-%d" % (p, e), half + a + 1)
                  for e in range(half)] +
                 [(half + j + 1, "C%d-%d" % (a, j), p + 1)
                  for j in range(half)])
            node("Switch", k, "E%d-%d" % (p, a),
                 [(n + 1, "H%d-%d-%d" % (p, a, n), 1) for n in range(half)] +
                 [(half + e + 1, "A%d-%d" % (p, e), a + 1)
                  for e in range(half)])
            for n in range(half):
                node("Hca", 1, "H%d-%d-%d" % (p, a, n),
                     [(1, "E%d-%d" % (p, a), n + 1)])
    return "\n".join(rows)


def sweep_s(log):
    """Returns how long OpenSM's first sweep took; None: it is not over."""
    times = []
    for mark in "Entering DISCOVERING", "SUBNET UP":
        line = next((line for line in log.splitlines() if mark in line), None)
        stamp = line and STAMP.search(line)
        if not stamp:
            return None
        h, m, s, us = map(int, stamp.groups())
        times.append(h * 3600 + m * 60 + s + us / 1e6)
    return (times[1] - times[0]) % DAY_S


def resident_mib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024


class Subnet:
    """The files and processes of one subnet."""

    def __init__(self, folder, topology):
        self.folder, self.running = folder, []
        self.net, self.log = folder + "/net", folder + "/log"
        with open(self.net, "w", encoding="ascii") as f:
            f.write(topology)

    def start(self, argv, **env):
        """Starts a program in a process group of its own, with its output in a
        file."""
        with open("%s/said-%d" % (self.folder, len(self.running)), "wb") as f:
            p = subprocess.Popen(
                argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=f,
                stderr=subprocess.STDOUT, process_group=0,
                env={**os.environ, "OSM_TMP_DIR": self.folder,
                     "OSM_CACHE_DIR": self.folder, **env})
        self.running.append(p)
        return p

    def said(self, p):
        """Returns the last line of a program's output."""
        name = "%s/said-%d" % (self.folder, self.running.index(p))
        with open(name, errors="replace", encoding="utf-8") as f:
            return proc.last_line(f.read())

    def wait_for(self, what, seen, *needed):
        """Waits until @seen returns something true, and returns that.  @what says
        in an error what did not happen."""
        end = time.monotonic() + PATIENCE_S
        while not seen():
            for p in needed:
                if p.poll() is not None:
                    raise Failed("%s ended: %s" % (p.args[0], self.said(p)))
            if time.monotonic() > end:
                raise Failed("%s in %d s" % (what, PATIENCE_S))
            time.sleep(0.02)
        return seen()

    def swept(self):
        try:
            with open(self.log, errors="replace", encoding="ascii") as f:
                return sweep_s(f.read())
        except FileNotFoundError:
            return None

    def close(self):
        for p in reversed(self.running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()


@contextlib.contextmanager
def subnet(topology):
    with tempfile.TemporaryDirectory(prefix="adverb-sweep-") as folder:
        s = Subnet(folder, topology)
        try:
            yield s
        finally:
            s.close()


def opensm(log):
    # the log has at most 32 MB
    return ["opensm", "-d", "2", "-s", "0", "-f", log, "-L", "32"]


class Managed:
    """`adverb fabric` with a topology under an OpenSM that has configured it."""

    def __init__(self, s, adverb, host):
        self.path = s.folder + "/socket"
        self.fabric = s.start([*adverb, "fabric", "--socket", self.path, s.net])
        s.wait_for("adverb fabric did not make its socket",
                   lambda: os.path.exists(self.path), self.fabric)
        manager = s.start([*adverb, "run", *self.options(host), "--",
                           *opensm(s.log)])
        self.sweep_s = s.wait_for(NO_SWEEP, s.swept, manager, self.fabric)

    def options(self, host):
        """The options by which `adverb run` starts a program on a host."""
        return ["--fabric=" + self.path, "--host", host]

    def cpu_us(self):
        """The CPU time of the fabric's process so far, in microseconds."""
        with open("/proc/%d/schedstat" % self.fabric.pid,
                  encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e3


@contextlib.contextmanager
def managed(adverb, topology, host):
    with subnet(topology) as s:
        yield Managed(s, adverb, host)


def on_adverb(adverb):
    with managed(adverb, fat_tree(ARITY), HOST) as net:
        return {"s": net.sweep_s, "MiB": resident_mib(net.fabric.pid)}


def ibsim_library():
    """Returns the library by which programs of libibumad use ibsim, or None."""
    folders = os.environ.get("DEB_LIBRARIES", "").split(":")
    found = glob.glob("/usr/lib/*/umad2sim/libumad2sim.so") + [
        path for path in (folder + "/umad2sim/libumad2sim.so"
                          for folder in folders) if os.path.exists(path)]
    return found[0] if found else None


def on_ibsim():
    """Returns the figures of OpenSM's first sweep on ibsim.  ibsim's sockets
    have fixed abstract names, so ibsim has a network namespace of its own."""
    library = ibsim_library()
    if not library:
        raise Failed("libumad2sim.so is not installed")
    inside = ["unshare", "-Urn", "--"]
    if subprocess.run([*inside, "true"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        raise Failed("ibsim needs a user and network namespace, which this "
                     "machine refuses")
    with subnet(fat_tree(ARITY)) as s:
        simulator = s.start([*inside, "ibsim", "-s", "-n", "-N", "2048", "-S",
                             "512", "-P", "32768", s.net])
        listens = "/proc/%d/net/unix" % simulator.pid

        def is_ready():
            with open(listens, encoding="ascii", errors="replace") as f:
                return "sim:ctl" in f.read()

        s.wait_for("ibsim did not make its socket", is_ready, simulator)
        manager = s.start(["nsenter", "-t", str(simulator.pid), "-U", "-n",
                           "--preserve-credentials", "--", *opensm(s.log)],
                          SIM_HOST=HOST, LD_PRELOAD=library)
        return {"s": s.wait_for(NO_SWEEP, s.swept, manager, simulator),
                "MiB": resident_mib(simulator.pid)}
