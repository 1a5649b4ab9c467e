#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a command on this host while a guest is the peer of this host.  The guest
has the kernel's Soft-RoCE (rxe), or the kernel's software iWARP (siw).

    guest.py [--mtu N] [--siw] -- COMMAND...   boots the guest, runs COMMAND on
                                               this host, ends the guest

The network namespace of this process gets a tap with 10.77.0.1 and fd77::1; the
guest has 10.77.0.2 and fd77::2.  A user who runs guest.py by hand gets a new
network namespace, without root.  The guest's CPU is emulated, so figures that are
measured in it do not hold for a real machine."""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
WORK = os.path.join(ROOT, "build", "interop")
TC = shutil.which("tc", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
HERE, THERE = "10.77.0.1", "10.77.0.2"
HERE6, THERE6 = "fd77::1", "fd77::2"
MAC, MAC_THERE = "02:00:00:00:77:01", "02:00:00:00:77:02"
AGENT = 5000  # the TCP port of guest/agent.c
BOOT_SECONDS = 400


class GuestError(Exception):
    pass


class GuestEnded(GuestError):
    pass


def missing():
    """Returns why this machine cannot run the guest, or ""."""
    if not os.path.exists(os.path.join(WORK, "initramfs")):
        return "the guest is not built: run tests/interop/build"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "this user may not read and write /dev/net/tun"
    if not any(os.access(os.path.join(folder, "qemu-system-x86_64"), os.X_OK)
               for folder in os.environ["PATH"].split(":")):
        return "qemu-system-x86_64 is not installed"
    if not TC:
        return "tc (iproute2) is not installed"
    return ""


def missing_siw():
    """Returns why the guest has no siw, or ""."""
    try:
        with open(os.path.join(WORK, "no-siw")) as why:
            return "the guest has no siw: " + why.read().strip()
    except FileNotFoundError:
        return ""


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Command:
    """A shell command that runs in the guest.  read() appends to `output`."""

    def __init__(self, line):
        self.output = b""
        self.ended = False
        self.socket = socket.create_connection((THERE, AGENT), timeout=60)
        self.socket.sendall(line.encode() + b"\n")

    def read(self, until):
        """Reads more output.  Returns False at the end of the output, or if no
        output comes before the time `until`."""
        self.socket.settimeout(max(until - time.monotonic(), 0.001))
        try:
            got = self.socket.recv(65536)
        except socket.timeout:
            return False
        except OSError:  # the guest is gone
            got = b""
        self.output += got
        self.ended = not got
        return bool(got)

    def wait_for(self, text, seconds):
        """Waits for `seconds` at most.  Returns whether the output has the
        text."""
        until = time.monotonic() + seconds
        while text.encode() not in self.output:
            if not self.read(until):
                return False
        return True

    def end(self):
        """Closes the connection: the agent then kills the command."""
        self.socket.close()

    def wait(self, seconds):
        """Returns (exit status, output); the status is 124 if the command runs
        longer than `seconds`, or if the guest or the agent ends before the command
        does."""
        until = time.monotonic() + seconds
        while self.read(until):
            pass
        self.socket.close()
        text, mark, status = self.output.decode(
            errors="replace").rpartition("\nexit ")
        return (int(status), text) if mark else (
            124, status + "\n(the guest's command did not end)")


class Guest:
    def __init__(self, mtu=1500, rdma="rxe"):
        self.rdma = rdma
        self.tmp = tempfile.TemporaryDirectory(prefix="adverb-guest-")
        self.console = os.path.join(self.tmp.name, "console")
        self.machine = None
        ip("link", "set", "lo", "up")
        ip("tuntap", "add", "lab0", "mode", "tap")
        ip("addr", "add", HERE + "/24", "dev", "lab0")
        # The queue is so long that no packet is lost: adverb answers a READ
        # faster than the emulated guest receives, and after a loss rxe waits
        # for a whole timeout.  Unlike fq_codel, pfifo, which is used here and
        # in guest/init, does not drop packets that have waited for long.
        ip("link", "set", "lab0", "txqueuelen", "100000")
        subprocess.run([TC, "qdisc", "add", "dev", "lab0", "root", "pfifo"],
                       check=True)
        ip("link", "set", "lab0", "address", MAC, "mtu", str(mtu), "up")
        ip("-6", "addr", "add", HERE6 + "/64", "dev", "lab0", "nodad")
        # The entries are permanent: otherwise the kernel could drop packets
        # while ARP or ND waits for an answer.  guest/init adds the entries for
        # this host.
        for address in THERE, THERE6:
            ip("neigh", "add", address, "lladdr", MAC_THERE, "dev", "lab0",
               "nud", "permanent")
        try:
            self.boot(mtu)
        except BaseException:
            self.end()
            raise

    def boot(self, mtu):
        """Starts the guest, at most three times: on a busy machine qemu or the
        guest's kernel sometimes ends during the start.  Each new start prints
        a note with the reason."""
        for left in (2, 1, 0):
            self.begin(mtu)
            try:
                return self.wait_ready()
            except GuestEnded as why:
                if not left:
                    raise
                print("note: the guest is started again: %s" % why, flush=True)

    def begin(self, mtu):
        """Starts qemu, which ends with this process, however this process ends."""
        tsc = subprocess.run([os.path.join(WORK, "tsc")], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        self.machine = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi",
             "-cpu", "qemu64", "-smp", "2", "-m", "768", "-no-reboot",
             "-nodefaults", "-display", "none",
             "-serial", "file:" + self.console,
             "-kernel", os.path.join(WORK, "vmlinuz"),
             "-initrd", os.path.join(WORK, "initramfs"),
             "-append", "console=ttyS0 quiet panic=-1 net.ifnames=0 "
             "mitigations=off nokaslr tsc=reliable no_timer_check "
             "tsc_early_khz=%d random.trust_cpu=on lab.ip=%s lab.mtu=%d "
             "lab.rdma=%s" % (int(tsc), THERE, mtu, self.rdma),
             "-netdev", "tap,id=n0,ifname=lab0,script=no,downscript=no",
             "-device", "virtio-net-pci,netdev=n0,host_mtu=9000,romfile=,"
             "mac=" + MAC_THERE,
             "-device", "virtio-rng-pci"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)

    def wait_ready(self):
        until = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < until:
            if self.machine.poll() is not None:
                raise GuestEnded("qemu ended with %d: %s%s" % (
                    self.machine.returncode, self.machine.stderr.read(
                        ).decode(errors="replace"), self.said()))
            try:
                if self.run("true", 10)[0] == 0:
                    return
            except OSError:
                time.sleep(0.2)  # the guest does not listen yet
        raise GuestError("the guest does not answer: " + self.said())

    def said(self):
        """Returns the last 2000 characters of the guest's console."""
        with open(self.console, errors="replace") as console:
            return console.read()[-2000:]

    def start(self, line):
        return Command(line)

    def run(self, line, seconds=60):
        return Command(line).wait(seconds)

    def kill(self):
        """Kills qemu: the guest ends as after a loss of power."""
        if self.machine:
            self.machine.kill()
            self.machine.wait()

    def end(self):
        self.kill()
        subprocess.run(["ip", "link", "del", "lab0"],
                       stderr=subprocess.DEVNULL)
        self.tmp.cleanup()


def main():
    arg = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--mtu", type=int, default=1500)
    arg.add_argument("--siw", action="store_true")
    arg.add_argument("command", nargs="+")
    options = arg.parse_args()
    if missing():
        sys.exit("guest.py: " + missing())
    if "TEST_INTEROP" not in os.environ:
        os.execvpe("unshare", ["unshare", "-Urn", sys.executable, *sys.argv],
                   dict(os.environ, TEST_INTEROP="1"))
    guest = Guest(options.mtu, "siw" if options.siw else "rxe")
    try:
        status = subprocess.run(
            options.command, check=False,
            ).returncode
    finally:
        guest.end()
    sys.exit(status)


if __name__ == "__main__":
    main()
