# SPDX-License-Identifier: BSD-2-Clause
"""Runs servers and clients, pinned and with a time limit; counts CPU time."""

import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time


class Failed(Exception):
    """A measurement failed; the text says why."""


def cores():
    """Returns the cores of (client, server), which are one core if there is no
    second."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[1 % len(allowed)]


def find(program):
    return shutil.which(program)


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def busy_s():
    """Returns the CPU seconds that all programs of the machine have used so
    far; time in interrupts does not count."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system = map(int, stat.readline().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


class Broker:
    """The bench's own broker, which outlives the measured programs.  The CPU time
    that the broker uses meanwhile counts as theirs."""

    pid = None

    @classmethod
    def cpu_s(cls):
        if not cls.pid:
            return 0.0
        with open("/proc/%d/stat" % cls.pid, encoding="ascii") as stat:
            words = stat.read().rsplit(")", 1)[1].split()
        return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


class Company:
    """How many cores other programs used while the bench's programs ran."""

    def __init__(self):
        self.busy, self.wall = busy_s(), time.monotonic()
        self.own = self._own()

    @staticmethod
    def _own():
        t = os.times()
        return (t.user + t.system + t.children_user + t.children_system +
                Broker.cpu_s())

    def cores(self):
        wall = time.monotonic() - self.wall
        own = self._own() - self.own
        return max(0.0, (busy_s() - self.busy - own) / wall)


class Process:
    """One program, pinned to some cores, with its output in a file."""

    def __init__(self, argv, on, env=None):
        self.output = tempfile.TemporaryFile()
        self.name = os.path.basename(argv[0])
        self.cpu = 0.0
        self.status = None
        self.child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self.output,
            stderr=subprocess.STDOUT, process_group=0,
            env={**os.environ, **(env or {}), "LC_ALL": "C"},
            preexec_fn=lambda: os.sched_setaffinity(0, on))
        self.fd = os.pidfd_open(self.child.pid)

    def wait(self, seconds):
        """Returns the program's exit status, and sets cpu; or returns None
        after @seconds."""
        if self.status is not None:
            return self.status
        if not select.select([self.fd], [], [], seconds)[0]:
            return None
        _, status, usage = os.wait4(self.child.pid, 0)
        self.cpu = usage.ru_utime + usage.ru_stime
        self.status = os.waitstatus_to_exitcode(status)
        self.child.returncode = self.status
        os.close(self.fd)
        return self.status

    def end(self, seconds):
        """Waits for @seconds, then ends the process group by signals."""
        for last in (signal.SIGTERM, signal.SIGKILL):
            if self.wait(seconds) is not None:
                break
            os.killpg(self.child.pid, last)
            seconds = 1
        self.wait(5)

    def text(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")


def listens(pid, port):
    """Does a process in the network namespace of @pid listen on @port?"""
    for name in ("tcp", "tcp6"):
        try:
            with open("/proc/%d/net/%s" % (pid, name)) as table:
                for line in table:
                    words = line.split()
                    if len(words) > 3 and words[3] == "0A" and \
                            int(words[1].split(":")[1], 16) == port:
                        return True
        except OSError:
            pass
    return False


def run_program(argv, env=None, seconds=300, on=None):
    """Runs a program that contains server and client and pins them itself, to the
    cores @on, or to cores().  Returns its output and its CPU seconds."""
    one = Process(argv, on or set(cores()), env)
    if one.wait(seconds) is None:
        one.end(0)
        raise Failed("%s did not end in %d s" % (one.name, seconds))
    if one.status:
        raise Failed("%s: status %d: %s" % (one.name, one.status,
                                            last_line(one.text())))
    return one.text(), one.cpu


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip(" -+")]
    return lines[-1].strip() if lines else "no output"


def pair(server, client, port, env=None, seconds=120, one_core=False,
         stays=False):
    """Runs a server, then its client once the server listens on @port.  Returns
    the client's output, and the CPU seconds of both and of the bench's
    broker.  @stays: the server does not end by itself."""
    here, there = cores()
    served = Broker.cpu_s()
    a = Process(server, {here if one_core else there}, env)
    b = None
    try:
        bound = time.monotonic() + 30
        while not listens(a.child.pid, port):
            if a.wait(0.005) is not None:
                raise Failed("%s ended before it listened on its port: %s" %
                             (a.name, last_line(a.text())))
            if time.monotonic() > bound:
                raise Failed("%s did not listen on its port in 30 s" % a.name)
        b = Process(client, {here}, env)
        if b.wait(seconds) is None:
            raise Failed("%s did not end in %d s" % (b.name, seconds))
        if b.status:
            raise Failed("%s: status %d: %s" % (b.name, b.status,
                                                last_line(b.text())))
    finally:
        if b:
            b.end(0)
        a.end(0 if stays or not b or b.status else 10)
    return b.text(), a.cpu + b.cpu + Broker.cpu_s() - served
