# SPDX-License-Identifier: BSD-2-Clause
"""An emulated subnet that a test runs: adverb fabric, its hosts, and OpenSM."""

import contextlib
import os
import re
import subprocess
import time

from system import HANG, Fail, expect, expect_ok

PATIENCE_S = HANG  # limit of a program and of a wait
# Two switches with two cables between them.  Two adapters are at the first switch
# and one is at the second.
NET = """
Switch 8 "Switch1"
[1] "Hca1"[1]
[2] "Hca2"[2]
[3] "Switch2"[3]
[4] "Switch2"[4]

Switch 8 "Switch2"
[1] "Hca3"[1]
[3] "Switch1"[3]
[4] "Switch1"[4]

Hca 2 "Hca1"
[1] "Switch1"[1]

Hca 2 "Hca2"
[2] "Switch1"[2]

Hca 1 "Hca3"
[1] "Switch2"[1]
"""

t = None  # the suite


def use(suite):
    """Sets the suite that the subnets belong to.  A script calls this first."""
    global t
    t = suite


def write_file(name, text):
    """Writes @text to a file in the folder of the suite.  Returns the file's path.
    """
    path = t.path(name)
    with open(path, "w") as f:
        f.write(text)
    return path


# Tools of infiniband-diags that give up if an answer does not come within a second.
ASKING = ("ibping", "ibportstate", "ibroute", "ibtracert", "perfquery", "saquery",
          "sminfo", "smpquery")
# With these values a switch keeps a packet for as long as the packet's receiver
# gets no processor.  By OpenSM's default a switch drops a packet for an adapter
# after 268 ms.
LIFETIMES = """
head_of_queue_lifetime 0x14
leaf_head_of_queue_lifetime 0x14
packet_life_time 0x14
"""
# With these variables pace.so gives the programs that it is loaded into as much time
# as they need.
PATIENT = {"PACE_TIMEOUT": "22", "PACE_RESOLVE": str(HANG * 1000)}


def patience():
    """Returns the environment of a program that loads pace.so and is patient."""
    return {"LD_PRELOAD": t.program("pace.so"), **PATIENT}


def patient(argv):
    """Returns @argv with a timeout of PATIENCE_S, if it runs a tool of ASKING without
    one."""
    if argv[0] in ASKING and "-t" not in argv:
        return [argv[0], "-t", str(PATIENCE_S * 1000), *argv[1:]]
    return argv


def fabric_argv(*words):
    return [t.adverb, "fabric", *words]


class Fabric:
    """A running `adverb fabric`.  host() runs a program on one of its hosts."""

    @classmethod
    def at(cls, socket):
        """Returns the fabric that listens at a socket."""
        self = cls.__new__(cls)
        self.socket = socket
        return self

    def __init__(self, text, *options):
        self.file = t.path("net")
        with open(self.file, "w") as f:
            f.write(text)
        self.socket = t.path("fabric-socket")
        expect_ok(t.run(fabric_argv("--socket", self.socket, "--background",
                                    *options, self.file)))

    def host(self, name, *argv, timeout=PATIENCE_S, **env):
        t.need(argv[0])
        return t.adverb_run(patient(argv), ["--fabric=" + self.socket, "--host", name],
                            timeout=timeout, **env)

    def pid(self):
        """Returns the process ID of the fabric."""
        words = b"\0--socket\0" + self.socket.encode() + b"\0"
        for one in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), \
                    open("/proc/%s/cmdline" % one, "rb") as f:
                if words in f.read():
                    return int(one)
        raise Fail("the fabric at %s does not run" % self.socket)

    def out(self, name, *argv, **env):
        r = self.host(name, *argv, **env)
        expect_ok(r)
        return r.output

    def stop(self):
        expect_ok(t.run(fabric_argv("--socket", self.socket, "--stop")))


def start(f, host, argv, **env):
    """Starts and returns a program on a host of a fabric, with a pipe as its input.
    """
    t.need(argv[0])
    return t.start([t.adverb, "run", "--fabric=" + f.socket, "--host", host,
                    "--", *argv], env=t.environment(**env),
                   stdin=subprocess.PIPE)


@contextlib.contextmanager
def fabric(text=NET, *options):
    f = Fabric(text, *options)
    try:
        yield f
    finally:
        f.stop()


def manager_argv(log, *more, options=""):
    """Returns the command of an OpenSM that sweeps the subnet once, and then only
    after events.  The log has at most 32 MB, so that an error that OpenSM logs again
    and again does not fill the disk.  @more: further arguments.  @options: lines of
    OpenSM's file of options; they take precedence over LIFETIMES."""
    # Without this option OpenSM calls fsync after "SUBNET UP".  On a busy disk the
    # call takes seconds, and meanwhile OpenSM answers joins of multicast groups but
    # writes no tables of the switches.
    with open(log + ".options", "w") as out:
        out.write("fsync_high_avail_files FALSE\n" + LIFETIMES + options)
    return ["opensm", "-d", "2", "-f", log, "-L", "32", "-s", "0", "-F",
            log + ".options", *more]


def manager_env():
    folder = t.path("osm")
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o777)
    return {"OSM_TMP_DIR": folder, "OSM_CACHE_DIR": folder}


@contextlib.contextmanager
def managed_on(f, host="Hca1", *more, options=""):
    """Runs an OpenSM on a fabric, and yields the fabric when OpenSM has
    configured it.  @more, @options: as for manager_argv."""
    t.need("opensm")
    log = t.path("opensm.log")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    p = t.start([t.adverb, "run", "--fabric=" + f.socket, "--host", host,
                 "--", *manager_argv(log, *more, options=options)],
                env=t.environment(**manager_env()))
    try:
        await_line(log, "SUBNET UP")
        f.log = log
        f.manager = p
        yield f
    finally:
        p.terminate()
        p.communicate()


@contextlib.contextmanager
def other_lids(f):
    """Writes OpenSM's file guid2lid for the time of a `with` statement.  An OpenSM
    that is started with -x meanwhile gives the ports the LIDs of the file, from 100
    on."""
    guids = re.findall(r"^\w+\s+(0x[0-9a-f]{16}) ", t.run(
        fabric_argv("--socket", f.socket, "--show")).output, re.M)
    file = manager_env()["OSM_CACHE_DIR"] + "/guid2lid"
    with open(file, "w") as out:
        for i, guid in enumerate(guids):
            # the port GUIDs of an adapter are the node GUID + 1 and + 2
            for k in range(3):
                lid = 100 + 3 * i + k
                out.write("0x%016x 0x%04x 0x%04x\n\n" %
                          (int(guid, 16) + k, lid, lid))
    try:
        yield
    finally:
        os.unlink(file)


@contextlib.contextmanager
def managed(text=NET, host="Hca1", *more, options=""):
    """Runs a fabric and an OpenSM.  Yields the fabric after OpenSM has configured
    it."""
    t.need("opensm")
    with fabric(text) as f:
        with managed_on(f, host, *more, options=options):
            yield f


def switch_lid(f, name):
    """Returns the LID of a switch of NET, as a text."""
    return re.search(r'"%s".* lid (\d+)' % name, f.out("Hca1", "ibswitches"))[1]


def group_ports(f, switch):
    """Returns the multicast table of a switch of NET: the ports of each MLID, both
    as texts."""
    said = f.out("Hca1", "ibroute", "-M", switch_lid(f, switch))
    names = re.search(r"^ +Ports:.*", said, re.M)[0]
    return {row[:6]: {names[i] for i, c in enumerate(row)
                      if c == "x" and names[i].isdigit()}
            for row in re.findall(r"^0x[0-9a-f]{4} .*", said, re.M)}


def packets_argv(f, host, *words):
    return [t.adverb, "run", "--fabric=" + f.socket, "--host", host, "--",
            t.program("packets"), *map(str, words)]


@contextlib.contextmanager
def receiver(f, host, port, count):
    """Runs the program `packets` on a host, as the receiver of @count packets at
    @port.  Yields the process, the LID of the port and the QPN of the receiver."""
    p = t.start(packets_argv(f, host, "receive", port, count),
                env=t.environment())
    try:
        first = p.stdout.readline().decode()
        found = re.match(r"lid (\d+) qpn (\d+) ", first)
        expect(found, first)
        yield p, found.group(1), found.group(2)
    finally:
        p.kill()
        p.communicate()


def said_by(p):
    out, _ = p.communicate(timeout=PATIENCE_S)
    return out.decode()


def await_line(path, text, count=1):
    """Waits until OpenSM's log @path has @text at least @count times."""
    end = time.monotonic() + PATIENCE_S
    said = ""
    while time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError):
            with open(path, errors="replace") as f:
                said = f.read()
            if said.count(text) >= count:
                return
        time.sleep(0.05)
    raise Fail("no \"%s\" in OpenSM's log" % text, said)


def port_lid(f, host, port):
    return re.search(r"Base lid: (\d+)",
                     f.out(host, "ibstat", "advib0", port)).group(1)


def dissect(capture, shown, *fields):
    """Returns what tshark prints of the packets of a capture that `shown`
    selects."""
    argv = ["tshark", "-r", capture, "-Y", shown]
    if fields:
        argv += ["-T", "fields", *sum((["-e", f] for f in fields), [])]
    r = t.run(argv, timeout=PATIENCE_S)
    expect_ok(r)
    return [line for line in r.output.splitlines()
            if not line.startswith("Running as user")]
