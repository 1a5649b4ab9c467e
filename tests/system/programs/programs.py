#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests larger programs: block storage by iSER, the migration of a virtual
machine of QEMU, DAPL, and Ceph."""

import contextlib
import glob
import json
import os
import random
import re
import shutil
import socket
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
import system
from disk_io import blank_disk, exports, random_writes
from system import Skip, expect, expect_ok

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)

# ---- iSER: tgtd exports a disk, and programs over libiscsi use it ----

MIB = 1 << 20
DISK = 16 * MIB
TARGET = "iqn.2026-11.test:disk"
INITIATOR = "iqn.2026-11.test:initiator"
URL = "iser://127.0.0.1/%s/1" % TARGET


def tgtadm(env, *words):
    return t.run(["tgtadm", "--lld", "iser", "--mode", *words], 60, **env)


@contextlib.contextmanager
def target(disk):
    """Exports the file @disk to an initiator that gives the right name."""
    env = {"TGT_IPC_SOCKET": t.path("tgt")}
    # the smallest pool of RDMA memory that tgtd takes
    p = lab.start("here", ["tgtd", "-f", "--iser", "pool_sz_mb=32"], **env)
    try:
        lab.wait(lambda: p.poll() is not None or
                 tgtadm(env, "target", "--op", "show").status == 0,
                 "tgtd does not answer", 60)
        for words in exports(disk, TARGET, INITIATOR):
            expect_ok(tgtadm(env, *words))
        yield
    finally:
        # tgtd does not end by itself while it has targets
        p.kill()
        t.finish(p, 20)


def need_iser(*programs):
    for program in ("tgtd", "tgtadm", *programs):
        t.need(program)


def iscsi(program, *words):
    """Runs a program over libiscsi, which would give up after a second in which
    tgtd gets no processor."""
    return lab.run("here", [program, "-i", INITIATOR, *words, URL], system.HANG,
                   LD_PRELOAD=t.program("pace.so"),
                   PACE_POLL=str(system.HANG * 1000))


def asks_a_target():
    need_iser("iscsi-inq", "iscsi-readcapacity16")
    with target(blank_disk(t, DISK)):
        r = iscsi("iscsi-inq")
        expect_ok(r)
        expect("VIRTUAL-DISK" in r.output, "no answer to INQUIRY", r)
        r = iscsi("iscsi-readcapacity16")
        expect_ok(r)
        expect("Total size:%d" % DISK in r.output,
               "the target reports another capacity", r)


def reads_many():
    need_iser("iscsi-perf")
    with target(blank_disk(t, DISK)):
        r = iscsi("iscsi-perf", "-t", "2", "-b", "128", "-m", "8")
        expect_ok(r)
        expect("iops average" in r.output and "iops average 0 " not in
               r.output, "iscsi-perf prints no figures", r)


def writes_and_reads_back():
    """The target gets the data of write commands by RDMA READ, and returns the
    data of read commands by RDMA WRITE.  The case compares the exported file
    with what was written."""
    need_iser("qemu-io")
    disk = blank_disk(t, DISK)
    commands, image = random_writes(DISK)
    with target(disk):
        options = ("driver=iscsi,transport=iser,portal=127.0.0.1:3260,"
                   "target=%s,lun=1,initiator-name=%s" % (TARGET, INITIATOR))
        r = lab.run("here", ["qemu-io", "--image-opts", options, *commands],
                    120)
    if "Unknown driver 'iscsi'" in r.output:
        raise Skip("QEMU's iscsi driver is not installed")
    expect_ok(r)
    expect("verification failed" not in r.output,
           "qemu-io reads other bytes than it wrote", r)
    with open(disk, "rb") as f:
        expect(f.read() == image, "the disk has other bytes than were written",
               r)


# ---- QEMU: a virtual machine migrates from one process to another ----

RAM = 64 * MIB
# bytes of random contents at the end of the RAM.  The machine is never started
# (-S), so its firmware does not run and does not overwrite them.
LOADED = 32 * MIB
PORT = 4444
MACHINE = ["qemu-system-x86_64", "-accel", "tcg", "-machine", "pc", "-m",
           str(RAM // MIB), "-display", "none", "-nodefaults", "-S"]


class Monitor:
    """A connection to QEMU's monitor socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        lab.wait(lambda: self.connects(path), "QEMU has no monitor",
                 system.HANG)
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self.ask("qmp_capabilities")

    def connects(self, path):
        """Tries to connect, and returns whether that succeeds: the socket
        exists before QEMU listens on it."""
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            self.socket.connect(path)
            return True
        return False

    def ask(self, command, **arguments):
        self.file.write(json.dumps({"execute": command,
                                    "arguments": arguments}) + "\n")
        self.file.flush()
        for line in self.file:
            answer = json.loads(line)
            if "error" in answer:
                raise system.Fail("%s: %s" % (command,
                                              answer["error"]["desc"]))
            if "return" in answer:
                return answer["return"]
        raise system.Fail("QEMU ended at " + command)

    def memory(self, name):
        """Returns the contents of the machine's RAM above the first MiB."""
        path = t.path(name)
        self.ask("pmemsave", val=MIB, size=RAM - MIB, filename=path)
        with open(path, "rb") as f:
            return f.read()


def qemu(name, *words):
    """Starts QEMU.  Returns its process and the path of its monitor socket."""
    path = t.path(name)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return (lab.start("here", [*MACHINE, "-qmp",
                               "unix:%s,server=on,wait=off" % path, *words]),
            path)


def migrate(source, goal, pinned):
    """Moves the machine from the QEMU of monitor @source to that of @goal.
    @pinned: all memory is registered before the transfer.  Returns QEMU's
    figures about the migration."""
    for monitor in source, goal:
        monitor.ask("migrate-set-capabilities", capabilities=[
            {"capability": "rdma-pin-all", "state": pinned}])
    goal.ask("migrate-incoming", uri="rdma:127.0.0.1:%d" % PORT)
    source.ask("migrate-set-parameters", **{"max-bandwidth": 10 ** 11})
    source.ask("migrate", uri="rdma:127.0.0.1:%d" % PORT)
    told = {}

    def ended():
        told.update(source.ask("query-migrate"))
        return told["status"] in ("completed", "failed")
    lab.wait(ended, "the migration does not end", system.HANG)
    expect(told["status"] == "completed", "the migration has %s: %s" %
           (told["status"], told.get("error-desc")))
    return told


def machine_moves(pinned):
    t.need(MACHINE[0])
    contents = random.Random(7).randbytes(LOADED)
    with open(t.path("contents"), "wb") as f:
        f.write(contents)
    os.chmod(t.path("contents"), 0o644)
    source, its = qemu("source", "-device",
                       "loader,file=%s,addr=%d,force-raw=on" %
                       (t.path("contents"), RAM - LOADED))
    goal, other = qemu("goal", "-incoming", "defer")
    ends = []
    try:
        ends = [Monitor(its), Monitor(other)]
        told = migrate(*ends, pinned)
        before, after = (end.memory("memory") for end in ends)
        expect(before.endswith(contents),
               "the source machine lacks the loaded contents")
        expect(before == after, "the migration has changed the memory")
        t.note("%d MiB in %d ms" % (RAM // MIB, told["total-time"]))
    finally:
        for p in source, goal:
            p.kill()
            t.finish(p, 20)


def migration(pinned):
    t.case("QEMU moves a machine by RDMA, " +
           ("all memory pinned" if pinned else "memory pinned in pieces"),
           lambda: machine_moves(pinned), "migration", MACHINE[0])


# ---- DAPL: DAPL's own tests, by rdma_cm ----

DAPL_TCP = 15828  # the TCP port at which the ends of a test exchange addresses
TRANSFERS = (
    "client SR 256 1 server SR 256 1",
    "client RW 4096 1 server RW 4096 1 client SR 512 1 server SR 512 1",
    "client RR 65536 2 server RR 65536 2 client SR 4096 3 -f "
    "server SR 1536 2 -f",
)


def dapl():
    """Writes DAPL's configuration file.  Returns the environment by which a
    program of DAPL uses adverb, and connects only when the server listens."""
    path = t.path("dat.conf")
    with open(path, "w") as f:
        f.write('cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 '
                '"v0 0" ""\n')
    os.chmod(path, 0o644)
    return t.paced(DAT_OVERRIDE=path, PACE_FIRST="1")


def dapl_test(program, by_tcp, want, *options):
    """Adds a case.  @by_tcp: the ends of @program exchange addresses by TCP.
    @want: a text that each end prints on success."""
    def body():
        t.need(program)
        env = dapl()
        argv = [program, "-P", "cma", *options]
        with lab.interface():
            server = lab.start("here", argv, **env)
            if by_tcp:
                lab.wait(lambda: server.poll() is not None or
                         lab.is_listening("here", DAPL_TCP),
                         program + " does not listen", 60)
            client = lab.start("here", [*argv, "-h", "10.1.0.1"], **env)
            r = lab.finish((server, client))
        expect_ok(r)
        expect(r.output.count(want) == 2, "not both ends print: " + want, r)
    t.case("DAPL: " + program, body, "DAPL over rdma_cm", program)


def dapltest():
    t.need("dapltest")
    with lab.interface():
        dapl_transfers()


def dapl_transfers():
    """Runs transfers of dapltest, which checks the data itself (option -V)."""
    env = dapl()
    to_it = ["-s", "10.1.0.1", "-D", "cma"]
    server = lab.start("here", ["dapltest", "-T", "S", "-D", "cma"], **env)
    try:
        for transfer in TRANSFERS:
            r = lab.run("here", ["dapltest", "-T", "T", *to_it, "-i", "50",
                                 "-t", "3", "-w", "4", "-V",
                                 *transfer.split()], **env)
            expect_ok(r)
            expect("Total WQE" in r.output and "rror" not in r.output,
                   "dapltest prints no figures, or an error", r)
        expect_ok(lab.run("here", ["dapltest", "-T", "Q", *to_it], **env))
        expect_ok(t.finish(server, system.HANG))
    finally:
        server.kill()
        t.finish(server, 20)


# ---- Ceph: a monitor, an OSD with a store in memory, and clients, over RDMA ----

CEPH = ("ceph-mon", "ceph-osd", "ceph", "rados")
FSID = "7f3c6a52-5a0e-4a53-8d0c-3a1b2c4d5e6f"
OSD = "11111111-2222-3333-4444-555555555555"
# The cluster keeps one copy of each object, and has none of the delays of seconds
# that are meant for clusters of many machines.  GID 1 is RoCEv2.  Small queues of
# buffers are enough.
CEPH_CONF = """
[global]
fsid = %(fsid)s
mon initial members = a
mon host = [v2:127.0.0.1:3300,v1:127.0.0.1:6789]
public network = 127.0.0.0/8
auth cluster required = none
auth service required = none
auth client required = none
keyring = %(home)s/keyring
mon data = %(home)s/mon
osd data = %(home)s/osd
run dir = %(home)s
crash dir = %(home)s
admin socket =
pid file =
log file = %(home)s/$name.log
log to stderr = false
err to stderr = false
mon cluster log file =
erasure code dir = %(lib)s/ceph/erasure-code
plugin dir = %(lib)s/ceph
osd class dir = %(lib)s/rados-classes
osd objectstore = memstore
memstore device bytes = 1073741824
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon tick interval = 1
paxos propose interval = 0.05
paxos min wait = 0.01
objecter tick interval = 0.5
objecter timeout = 1
ms type = async+rdma
ms async op threads = 2
ms async rdma gid idx = 1
ms async rdma buffer size = 65536
ms async rdma send buffers = 128
ms async rdma receive buffers = 512
ms async rdma receive queue len = 128
ms async rdma polling us = 0
"""
BY_CM = "ms async rdma type = iwarp\nms async rdma cm = true\n"


class Ceph:
    """Ceph's programs with one configuration."""

    def __init__(self, more):
        for program in CEPH:
            t.need(program)
        found = glob.glob(os.path.join(os.path.dirname(shutil.which(
            "ceph-osd")), "..", "lib", "*", "rados-classes"))
        expect(found, "Ceph's folder rados-classes is missing")
        lib = os.path.dirname(os.path.realpath(found[0]))
        self.home = t.path("ceph")
        shutil.rmtree(self.home, ignore_errors=True)
        os.mkdir(self.home)
        self.conf = os.path.join(self.home, "conf")
        with open(self.conf, "w") as f:
            f.write(CEPH_CONF % {"fsid": FSID, "home": self.home, "lib": lib} +
                    more)
        # Ceph's libraries lie in a folder of their own.
        path = t.environment().get("LD_LIBRARY_PATH")
        self.env = {"LD_LIBRARY_PATH": "%s:%s/ceph" % (path, lib)} if path \
            else {}
        self.daemons = []

    def run(self, *argv):
        r = lab.run("here", [argv[0], "-c", self.conf, *argv[1:]], 200,
                    **self.env)
        if r.status:
            r.output += self.logs()
        expect_ok(r)
        return r

    def logs(self):
        """Returns the last lines of the servers' logs."""
        text = ""
        for path in glob.glob(self.home + "/*.log"):
            with open(path, errors="replace") as f:
                text += "".join(["\n", path, "\n", *f.readlines()[-20:]])
        return text

    def serve(self, program, name):
        p = lab.start("here", [program, "-c", self.conf, "-f", "-i", name],
                      **self.env)
        self.daemons.append(p)
        return p

    def store(self):
        """Starts a new, empty store.  Returns its process."""
        shutil.rmtree(self.home + "/osd", ignore_errors=True)
        os.mkdir(self.home + "/osd")
        self.run("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", OSD)
        return self.serve("ceph-osd", "0")

    def writes_and_reads(self, pool):
        self.run("ceph", "osd", "pool", "create", pool)
        given, taken = t.path("given"), t.path("taken")
        with open(given, "wb") as f:
            f.write(random.Random(pool).randbytes(5 * MIB + 1))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(taken)
        self.run("rados", "-p", pool, "put", "object", given)
        self.run("rados", "-p", pool, "get", "object", taken)
        with open(given, "rb") as one, open(taken, "rb") as other:
            expect(one.read() == other.read(),
                   "rados reads other bytes than it wrote")

    def end(self):
        for p in self.daemons:
            p.kill()
            t.finish(p, 20)


def ceph_stores(more):
    """Writes and reads objects; rados bench compares what it reads with what it
    wrote.  A store that is killed starts again empty, so the case then writes
    new objects."""
    ceph = Ceph(more)
    try:
        ceph.run("ceph-mon", "--mkfs", "-i", "a")
        ceph.serve("ceph-mon", "a")
        ceph.run("ceph", "osd", "new", OSD)
        store = ceph.store()
        ceph.writes_and_reads("before")
        r = ceph.run("rados", "-p", "before", "bench", "1", "write", "-b",
                     "65536", "-t", "4", "--no-cleanup")
        written = int(re.search(r"Total writes made: +(\d+)", r.output)[1])
        ceph.run("rados", "-p", "before", "bench", "60", "seq", "-t", "4")
        store.kill()
        store.wait()
        ceph.store()
        ceph.writes_and_reads("after")
        t.note("%d objects" % written)
    finally:
        ceph.end()


t.case("iSER: SCSI commands to tgtd", asks_a_target, "iSER", "tgtd")
t.case("iSER: 64 KiB blocks, eight at once", reads_many, "iSER", "iscsi-perf")
t.case("iSER: QEMU writes blocks and reads them back", writes_and_reads_back,
       "iSER", "qemu-io")
for all_of_it in False, True:
    migration(all_of_it)
dapl_test("dtest", True, "DAPL Test Complete. PASSED")
dapl_test("dtestx", True, "IB extension test - immed/atomic test PASSED")
dapl_test("dtestsrq", False, "DAPL RC SRQ Test Complete")
dapl_test("dtestcm", True, "TOTAL:", "-c", "100")
t.case("DAPL: dapltest, data checked", dapltest, "DAPL over rdma_cm",
       "dapltest")
for how, more in ("queue pairs told by TCP", ""), ("rdma_cm", BY_CM):
    t.case("Ceph: %s, the store killed once" % how,
           lambda more=more: ceph_stores(more), "Ceph", "ceph-osd")
lab.end()
t.end()
