# SPDX-License-Identifier: BSD-2-Clause
"""Cases of block storage by iSER.  In Iser.from_guest the guest's kernel is the
initiator, and tgtd on adverb is the target.  In Iser.to_guest programs over
libiscsi on adverb are the initiator, and the guest's kernel (LIO) is the
target."""

import contextlib
import hashlib
import os

import sniff
from disk_io import blank_disk, exports, random_writes
from ends import PACE, wait_here
from guest import HERE, MAC, MAC_THERE, THERE
from system import HANG, Fail, Skip, expect, expect_ok

DISK = 16 << 20
TARGET = "iqn.2026-11.test:disk"
INITIATOR = "iqn.2026-11.test:initiator"
URL = "iser://%s/%s/0" % (THERE, TARGET)
QEMU_IO = ["qemu-io", "--image-opts", "driver=iscsi,transport=iser,"
           "portal=%s:3260,target=%s,lun=0,initiator-name=%s" % (
               THERE, TARGET, INITIATOR)]
# Sizes of blocks.  While frames are captured, the guest checks only the sizes
# FEW.
FEW, MANY = "512 4096", "512 4096 65536 1048576"
# tgtd listens for iSCSI over TCP, too, by default at the same port.  iWARP and TCP
# share the ports, so this listener gets another port.
TGTD = ["tgtd", "-f", "--iscsi", "portal=127.0.0.1:3261", "--iser",
        "pool_sz_mb=32"]
# The target READs the data that the initiator writes to the disk, and WRITEs the
# data that the initiator reads from the disk.
TARGET_SENDS = {"READ", "WRITE", "SEND"}


class Iser:
    def __init__(self, t, vm, ends):
        self.t, self.vm, self.ends = t, vm, ends

    def block(self, words, seconds=HANG):
        """Runs guest/block in the guest, and returns what it prints."""
        status, text = self.vm.run("/block " + words, seconds)
        if status:
            _, log = self.vm.run("dmesg | tail -n 20")
            raise Fail("block %s ends with status %d" % (words, status),
                       text + "\n--- the guest's log\n" + log)
        return text

    @contextlib.contextmanager
    def attached(self, address):
        """Attaches the guest's kernel to the target at @address for the time of a
        `with` statement.  Yields the name of the disk."""
        try:
            yield self.block("attach %s %s" % (address, TARGET)).split()[-1]
        finally:
            self.vm.run("/block detach " + TARGET, HANG)

    @contextlib.contextmanager
    def exported(self, parameters=""):
        """Makes the guest's kernel a target for the time of a `with` statement.
        @parameters: iSCSI parameters of the target (ImmediateData=No)."""
        self.block("export %s %s %s" % (THERE, TARGET, parameters))
        try:
            yield
        finally:
            self.block("withdraw")

    def tgtadm(self, ipc, *words):
        return self.t.run(["tgtadm", "--lld", "iser", "--mode", *words], 60,
                          TGT_IPC_SOCKET=ipc)

    @contextlib.contextmanager
    def tgtd(self, disk, env):
        """Runs tgtd on adverb, which exports the file @disk, for the time of a
        `with` statement."""
        ipc = self.t.path("tgt")
        process = self.t.start(self.ends.here(TGTD), env=self.ends.environment(
            TGT_IPC_SOCKET=ipc, **env))
        try:
            wait_here(process, lambda: self.tgtadm(
                ipc, "target", "--op", "show").status == 0)
            for words in exports(disk, TARGET, INITIATOR):
                expect_ok(self.tgtadm(ipc, *words))
            yield
        finally:
            # tgtd does not end by itself while it has targets
            process.kill()
            self.t.finish(process, HANG)

    def from_guest(self, env):
        for program in "tgtd", "tgtadm":
            self.t.need(program)
        disk = blank_disk(self.t, DISK)
        with self.tgtd(disk, env):
            with self.captured(MAC), self.attached(HERE) as name:
                self.block("check %s %s" % (name, FEW))
            with self.attached(HERE) as name:
                self.block("check %s %s" % (name, MANY))
                seen = self.block("sum_of " + name).split()[0]
        with open(disk, "rb") as f:
            here = hashlib.md5(f.read()).hexdigest()
        expect(here == seen, "the guest reads bytes that the exported file "
               "does not have")

    def initiator(self, argv, want, env):
        """Runs a program over libiscsi.  Expects that the program succeeds and
        prints @want."""
        self.t.need(argv[0])
        # QEMU has a loop of its own, and loads libiscsi with RTLD_LOCAL, so
        # dlsym(RTLD_NEXT) in pace.c would not find the librdmacm that libiscsi
        # brings.
        pace = {} if argv[0] == "qemu-io" else {
            "LD_PRELOAD": PACE, "PACE_POLL": str(HANG * 1000)}
        r = self.t.finish(self.t.start(
            self.ends.here(argv), env=self.ends.environment(**pace, **env)),
            HANG)
        if "Unknown driver 'iscsi'" in r.output:
            raise Skip("QEMU's iscsi driver is not installed")
        expect_ok(r)
        expect(want in r.output and "verification failed" not in r.output,
               "%s does not print what it should" % argv[0], r)

    def to_guest(self, env):
        commands, image = random_writes(DISK)
        target = "-i", INITIATOR, URL
        # libiscsi announces immediate data, but sends none (siw.md)
        with self.exported("ImmediateData=No"):
            with self.captured(MAC_THERE):
                self.initiator(["iscsi-inq", *target], "LIO-ORG", env)
                self.initiator([*QEMU_IO, *commands[:4]], "wrote", env)
            self.initiator(["iscsi-perf", "-t", "2", "-b", "128", "-m", "8",
                            *target], "iops average", env)
            self.initiator([*QEMU_IO, *commands], "wrote", env)
            _, text = self.vm.run("md5sum </tmp/disk")
        expect(text.split()[0] == hashlib.md5(image).hexdigest(),
               "the disk has other bytes than were written")

    def alone(self):
        """Runs block storage in the guest, whose kernel is the initiator and the
        target.  Returns 0 and the output of the check; if a command fails,
        returns 1 and the output of that command."""
        try:
            with self.exported(), self.attached(THERE) as name:
                return 0, self.block("check %s %s %s" % (name, FEW, MANY))
        except Fail as failure:
            return 1, failure.output

    @contextlib.contextmanager
    def captured(self, target):
        """Captures the frames of a `with` statement.  Expects that tshark finds
        nothing wrong with the frames, and that the target, whose MAC address is
        @target, sends all of TARGET_SENDS."""
        sniffer = sniff.Sniffer("lab0", self.t.path("frames.pcap"))
        try:
            yield
        finally:
            sniffer.stop()
        seen, _ = sniff.judge(self.t, sniffer.path)
        kinds = {code.split(",")[0] for code in seen.get(target, ())}
        expect(TARGET_SENDS <= kinds, "the target sends %s" % sorted(kinds))
        os.unlink(sniffer.path)
