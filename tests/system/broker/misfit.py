#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests files of adverb that are missing, cannot be run or are of another
version, and brokers that do not serve as they should: one message names the file or
the broker, and a program that can work without the file continues.

In place of adverbd, programs start misfit.c, or a file that no user can
execute.  misfit.c notes each process that has started misfit.c."""

import contextlib
import errno
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
import system
from system import (PYTHON, brokers, expect, expect_failed, expect_ok, named,
                    port_sockets)

netlab.enter()
t = system.Suite(__doc__)
LIB = os.path.join(t.build, "lib")
MISFIT = t.program("misfit")
DENY_SYSCALL = t.program("deny_syscall")
ADVERBD = os.path.join(LIB, "adverbd")
PINGPONG = ["ibv_rc_pingpong", "-c", "-n", "100"]
RELEASE = "9.8.7"  # as in misfit.c
if not t.options.list:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "../../../src/broker/proto.h")) as header:
        PROTOCOL = int(re.search(r"PROTO_VERSION\s+(\d+)", header.read())[1])
    OURS = t.run([t.adverb, "--version"]).output.split()[1]


def adverbd_called(name):
    """Makes a link of this name to the misfit program.  Returns the path of the
    link."""
    path = t.path(name)
    if not os.path.exists(path):
        os.symlink(MISFIT, path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + ".runs")
    return path


def starters(path):
    """Returns the ids of the processes that have started @path, one for each
    start."""
    try:
        with open(path + ".runs") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def expect_once(path, told, r=None):
    """Expects that no process has started @path twice, and that at least @told
    processes, which have printed a message, have started @path.  There may be
    more: a process that ends early may print no message."""
    pids = starters(path)
    expect(len(pids) == len(set(pids)),
           "a process has started the file twice: %s" % pids, r)
    expect(len(pids) >= told, "%d starts, %d messages" % (len(pids), told), r)


def end_all(*names):
    """Kills brokers and the processes of these names, so that the next case
    finds no broker and no stopped misfit."""
    for name in ("adverbd", *names):
        for pid in named(name):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        while named(name):
            pass


def patched(name, source, *changes):
    """Makes a copy of @source in which each of @changes, a pair (old, new) of
    byte strings of one length, is applied.  Returns the path of the copy."""
    path = t.path(name)
    with open(source, "rb") as f:
        data = f.read()
    for old, new in changes:
        expect(data.count(old) and len(old) == len(new), "no %r" % old)
        data = data.replace(old, new)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, 0o755)
    return path


def written(name, data, mode=0o755):
    path = t.path(name)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)
    return path


def head_of(count):
    with open(MISFIT, "rb") as f:
        return f.read(count)


def folder(name):
    os.makedirs(t.path(name), exist_ok=True)
    return t.path(name)


def foreign_machine():
    """Makes a program for a machine that does not exist, so that no emulator
    is registered for it.  Returns its path."""
    head = bytearray(head_of(1 << 20))
    head[18:20] = struct.pack("<H", 0x1234)
    return written("foreign", head)


def sentences(lines):
    return [line for line in lines if line.startswith("adverb:")]


def could_not(path, why):
    return re.compile(
        r"adverb: the broker %s could not be run: %s; a thread of this "
        r"program serves instead until it ends; mend what ADVERB_BROKER "
        r"names$" % (re.escape(path), why))


def expect_told(r, want):
    """Expects that the server, which tries to start the broker, prints once
    why the broker cannot be started.  A thread of the server is then the
    broker.  If the server ends first, the client tries to start a broker,
    too, and prints the same message.  Returns the number of messages."""
    for side, least in ("server", 1), ("client", 0):
        said = sentences(r.lines(side))
        expect(least <= len(said) <= 1, "the %s prints %d messages" %
               (side, len(said)), r)
        expect(all(want.match(line) for line in said),
               "a message does not match: " + want.pattern, r)
    return len(sentences(r.lines("server") + r.lines("client")))


def misfit(make, why, sentence=None, counted=True, **env):
    """Returns a case: a pair works although its broker cannot be run.  A
    program that tries to run the broker tries once, and prints one message.
    @make: makes the broker's file, and returns its path.  @why: a pattern of the
    reason in the message.  @sentence: a pattern of the whole message, in place of
    @why.  @counted: the file is misfit.c, which notes its starts."""
    def body():
        t.need(PINGPONG[0])
        path = make()
        want = sentence or could_not(path, why)
        try:
            r = t.pair(PINGPONG, ADVERB_BROKER=path, **env)
            expect_ok(r)
            told = expect_told(r, want)
            if counted:
                expect_once(path, told, r)
            expect(not brokers(), "an adverbd runs", r)
        finally:
            end_all(os.path.basename(path))
    return body


case = t.case
case("adverbd ends with a message", misfit(
    lambda: adverbd_called("message"), "the disk is full"))
case("adverbd ends with a flood of control characters", misfit(
    lambda: adverbd_called("escape"), r"\?\[2J\?00099 \?0{150,240}"))
case("adverbd ends without a message", misfit(
    lambda: adverbd_called("silent"), "it ended before it served, and printed "
    "nothing: a signal, a limit or a sandbox has ended it, or the file is "
    "damaged"))
case("adverbd is killed at once", misfit(
    lambda: adverbd_called("killed"), "it ended before it served, and printed "
    "nothing: a signal, .*"))
case("adverbd is of another version", misfit(
    lambda: adverbd_called("version"), "",
    re.compile(r"adverb: the broker \S*/version could not be run: it is of "
               r"adverb %s \(protocol \d+\), this library of %s \(protocol "
               r"%d\); a thread of this program serves instead until it ends; "
               r"use the one of this version$" %
               (RELEASE, "" if t.options.list else OURS,
                0 if t.options.list else PROTOCOL))))
case("adverbd lacks a library", misfit(
    lambda: patched("lacking", MISFIT, (b"libc.so.6\0", b"libc.so.9\0")),
    "error while loading shared libraries: libc.so.9: cannot open shared "
    "object file: No such file or directory", counted=False))
case("adverbd is missing", misfit(
    lambda: "/nowhere", "it is missing", counted=False))
case("adverbd is not executable", misfit(
    lambda: written("plain", head_of(1 << 20), 0o644),
    "it is not executable", counted=False))
case("adverbd is a folder", misfit(
    lambda: folder("folder"), "it is a folder", counted=False))
case("adverbd is a script without its interpreter", misfit(
    lambda: written("script", b"#!/nowhere/sh\n"),
    "the interpreter or loader that it names is missing", counted=False))
case("adverbd is no program", misfit(
    lambda: written("text", b"neither a program nor a script"),
    "it is not a program for this machine", counted=False))
case("adverbd is for another machine", misfit(
    foreign_machine, "it is not a program for this machine", counted=False))
case("adverbd is cut short", misfit(
    lambda: written("short", head_of(5000)), "it ended before it served, and "
    "printed nothing: .*", counted=False))


def stopped():
    """A program does not take a stopped broker for dead: the program waits for
    the broker as long as ADVERB_PATIENCE says.  Then a thread of the program
    serves instead."""
    t.need(PINGPONG[0])
    path = adverbd_called("stopped")
    try:
        r = t.pair(PINGPONG, ADVERB_BROKER=path, ADVERB_PATIENCE="4")
        expect_ok(r)
        said = sentences(r.lines("server"))
        expect(len(said) == 2, "the server does not print two messages", r)
        expect(re.match(r"adverb: the broker adverbd, process \d+, is stopped:"
                        r" waiting for it as long as ADVERB_PATIENCE says$",
                        said[0]),
               "the first message does not say that the program waits", r)
        expect(re.match(
            r"adverb: the broker %s \(process \d+, stopped\): it has not "
            r"served for \d+ s; a thread of this program serves instead until "
            r"it ends; see what that process waits for$" % re.escape(path),
            said[1]),
            "the second message does not say that a thread serves", r)
        expect_once(path, 1, r)
    finally:
        end_all("stopped")


case("adverbd is stopped before it serves", stopped)


def slow():
    """The program prints that the broker is slow to start, and the broker
    serves in the end."""
    t.need("ibv_devinfo")
    path = adverbd_called("slow")
    try:
        r = t.run([t.adverb, "run", "--", "ibv_devinfo"], ADVERB_BROKER=path)
        expect_ok(r)
        expect(re.fullmatch(r"adverb: the broker adverbd, process \d+, is slow"
                            r" to start: waiting for it as long as "
                            r"ADVERB_PATIENCE says",
                            "\n".join(sentences(r.output.splitlines()))),
               "no message says that the program waits", r)
        expect(len(brokers()) == 1, "not exactly one broker runs", r)
        expect_once(path, 1, r)
    finally:
        end_all("slow")


case("adverbd is slow to start", slow)


def at_once():
    """Many programs start at once, and the broker cannot be run: all programs
    succeed, a program that tries to run the broker prints a message, and no
    program tries twice."""
    t.need("ibv_devinfo")
    path = adverbd_called("message")
    want = could_not(path, "the disk is full")
    started = [t.start([t.adverb, "run", "--", "ibv_devinfo"],
                       env=t.environment(ADVERB_BROKER=path))
               for _ in range(24)]
    total = 0
    for r in [t.finish(p, system.HANG) for p in started]:
        expect_ok(r)
        said = sentences(r.output.splitlines())
        expect(len(said) <= 1 and all(want.match(s) for s in said),
               "a program prints a second or another message", r)
        total += len(said)
    expect(total >= 1, "no program prints the message")
    expect_once(path, total)
    t.note("%d of 24 tried" % total)


case("24 programs start at once and adverbd cannot be run", at_once)


def taken_over():
    """The broker of a running pair is killed, and the file from which it was
    started cannot be run any more: the pair continues, and new programs can
    start."""
    t.need("ib_write_bw")
    link = os.path.join(folder("link"), "adverbd")
    for target in ADVERBD, MISFIT:
        os.symlink(target, link + "~")
        os.rename(link + "~", link)
        if target == ADVERBD:
            p = t.start(t.pair_argv(["ib_write_bw", "-D", "5"]),
                        env=t.environment(ADVERB_BROKER=link,
                                          ADVERB_DIRECT="0"))
            # The broker has given a socket to both processes of the pair, and
            # the third socket of the port is the broker's own.
            system.wait_until(
                lambda: port_sockets() >= 3 or p.poll() is not None,
                "the pair has no sockets of the port")
            expect(p.poll() is None, "the pair has ended too early")
    pid, = brokers()
    os.kill(pid, signal.SIGKILL)
    system.wait_until(lambda: not named("adverbd"), "the broker does not end")
    other = t.pair(PINGPONG, ADVERB_BROKER=link)
    r = t.finish(p, system.HANG)
    expect_ok(r)
    expect_ok(other)
    want = could_not(link,
                     "it ended before it served, and printed nothing: .*")
    total = 0
    for result in r, other:
        for side in "server", "client":
            said = sentences(result.lines(side))
            expect(len(said) <= 1 and all(want.match(s) for s in said),
                   "a program prints a second or another message", result)
            total += len(said)
    expect(total >= 1, "no program prints the message", r)
    expect_once(link, total, r)
    end_all()


case("adverbd cannot be run any more when a broker is killed", taken_over)


def crashes():
    """If brokers end whenever a client connects, a program pauses before
    further starts, and says so once."""
    t.need("ibv_devinfo")
    if t.is_beside_hostile:
        raise system.Skip("a connection of the hostile user ends the broker, "
                          "too, so the starts cannot be counted")
    path = adverbd_called("crash")
    r = t.run([t.adverb, "run", "--", "ibv_devinfo"], ADVERB_BROKER=path)
    # on a busy machine a broker may need more than 5 s before it ends
    said = [line for line in sentences(r.output.splitlines())
            if "has not answered for 5 s" not in line]
    found = len(said) == 1 and re.match(
        r"adverb: the broker %s has ended (\d+) times in a row within a second "
        r"of its start: see what ends it; this program waits up to 10 s "
        r"before each further start$" % re.escape(path), said[0])
    expect(found, "the program does not print the message once", r)
    # On a busy machine a broker may live longer than 0.1 s, and the pause after
    # such a life is shorter: then there may be more than 11 starts.  A broker
    # that lives for a second begins a new row.
    expect(11 <= int(found[1]) <= len(starters(path)), "%d starts" %
           len(starters(path)), r)


case("adverbd ends whenever a client connects", crashes)


def senseless(name, want):
    """Returns a case: a program checks an answer of the broker, and a
    descriptor in the answer, before it uses them."""
    def body():
        t.need("ibv_devinfo")
        path = adverbd_called(name)
        try:
            r = t.run([t.adverb, "run", "--", "ibv_devinfo"],
                      ADVERB_BROKER=path)
        finally:
            end_all(name)
        expect(sentences(r.output.splitlines()) == ["adverb: " + want],
               "the program does not print: " + want, r)
    return body


case("adverbd lends a socket of another port", senseless(
    "socket", "the broker adverbd gives an invalid answer: install one "
    "version of adverb, and end the programs that use another one"))
case("adverbd refuses with control characters in the reason",
     senseless("colour", "?[31mred?"))


def connections():
    """librdmacm needs the broker before libibverbs does, and the broker cannot
    be run: the program prints one message."""
    t.need("rping")
    path = adverbd_called("message")
    r = t.pair(["rping", "-C", "3"], ADVERB_BROKER=path)
    expect_ok(r)
    expect_once(path, expect_told(r, could_not(path, "the disk is full")), r)


case("adverbd cannot be run for rdma_cm", connections)


def processes():
    """The limit on processes is reached: neither a process nor a thread can be
    started.  One sentence is about the broker, and one about the thread that
    watches the ports."""
    t.need("ibv_devinfo")
    r = t.run(["prlimit", "--nproc=1:1", t.adverb, "run", "--", "ibv_devinfo"])
    said = sentences(r.output.splitlines())
    expect(len(said) == 2 and re.match(
        r"adverb: no process can be started for the broker adverbd: the limit "
        r"on processes \(ulimit -u, or the cgroup's\) is reached; nor can a "
        r"thread of this program serve instead \(.*\); free memory, or raise "
        r"ulimit -u or the cgroup's pids.max$",
        said[0]), "the program does not print the limit once", r)
    expect("the thread that watches its ports cannot be started" in said[1],
           "no sentence about the thread that watches the ports", r)


def no_processes():
    """No process can be forked, but a thread can be started."""
    t.need(PINGPONG[0])
    tool = [DENY_SYSCALL, "fork", "--", *PINGPONG, "-g", "1", "-p", "%"]
    r = t.run([t.adverb, "pair", "--timeout", "300", "--server", *tool,
               "--client", *tool, "@"], 310)
    if r.status == 77:
        raise system.Skip("no seccomp filters here")
    expect_ok(r)
    expect_told(r, re.compile(
        r"adverb: no process can be started for the broker adverbd: this "
        r"sandbox allows none; a thread of this program serves instead until "
        r"it ends; first start the program that will run longest$"))


case("no process can be started: the limit", processes)
case("no process can be started: a sandbox", no_processes)


def noexec():
    """The file system of adverbd is mounted noexec."""
    t.need("ibv_devinfo")
    place = folder("mounted")
    env = t.environment(ADVERB_BROKER=place + "/adverbd")
    p = t.start([t.adverb, "run", "--", "ibv_devinfo"], env=env,
                into=lambda words: [
                    "unshare", "-m", "sh", "-c", "mount -t tmpfs -o noexec "
                    "none %s && cp %s %s || exit 77; exec \"$@\"" %
                    (place, ADVERBD, place), "sh", *words])
    r = t.finish(p, system.HANG)
    if r.status == 77:
        raise system.Skip("nothing can be mounted here")
    expect_ok(r)
    expect(re.search(could_not(place + "/adverbd", "this user may not execute "
                               "it, or it lies on a file system mounted noexec"
                               ).pattern, r.output, re.M),
           "no message names the reason", r)


case("adverbd is on a file system mounted noexec", noexec)


class OtherVersion:
    """A broker of another version, which this script plays: the broker holds the
    port, and tells each client the broker's version."""

    def __init__(self, idle, answers=True):
        self.port = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.port.bind(("::", 4791))
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind("\0adverbd-99")
        self.listener.listen()
        # The fields of struct proto up to idle_s: a broker of version 99 refuses
        # (3: PROTO_REFUSED) with EPROTONOSUPPORT (93) and introduces itself.
        self.word = struct.pack("=IHHIIII32sI", 0x61647662, 99, 3, 1, 93, 7, 0,
                                RELEASE.encode(), idle) + bytes(200)
        self.answers = answers
        self.is_over = False
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            c, _ = self.listener.accept()
            with c:
                if self.is_over:
                    return
                # A client that sends nothing only learns which process listens.
                if c.recv(4096) and self.answers:
                    c.send(self.word)
                    c.recv(4096)

    def end(self):
        self.is_over = True
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(self.listener.getsockname())
        self.thread.join()
        self.listener.close()
        self.port.close()


def other_version(idle, end):
    """Returns a case: a program prints that a broker of another version has the
    port.  @idle: idle_s of that broker.  @end: how the message says when that
    broker ends."""
    def body():
        t.need("ibv_devinfo")
        other = OtherVersion(idle)
        try:
            r = t.run([t.adverb, "run", "--", "ibv_devinfo"])
        finally:
            other.end()
            end_all()
        want = "adverb: port 4791 is held by the broker of another version " \
            "of adverb: process %d of user %d is of adverb %s (protocol 99), "\
            "this library of %s (protocol %d): use one version, or end that " \
            "broker's programs (%s)" % (os.getpid(), os.geteuid(), RELEASE,
                                        OURS, PROTOCOL, end)
        expect(r.output.splitlines().count(want) == 1,
               "the program does not print once: " + want, r)
        expect_failed(r, "the program succeeds")
    return body


case("a broker of another version has the port",
     other_version(10, "it ends 10 s after the last one"))
case("a program is the broker of another version",
     other_version(0xffffffff, "it is a thread of that process"))


def libraries_of(name, *files):
    """Makes a folder with copies of @files, libraries of this build.  Returns its
    path."""
    place = folder(name)
    for file in files:
        shutil.copy(os.path.join(LIB, file), place)
    return place


def first_from(place):
    """Returns an LD_LIBRARY_PATH of this folder, and then of the folders where
    an unpacked program, such as Python, has its own libraries."""
    others = t.environment().get("LD_LIBRARY_PATH")
    return place + ":" + others if others else place


def with_libraries(place, argv):
    return t.run(argv, LD_LIBRARY_PATH=first_from(place))


def stock_verbs():
    """Loads adverb's librdmacm with the system's libibverbs: the program fails
    and prints why."""
    t.need("rping")
    r = with_libraries(libraries_of("half", "librdmacm.so.1"),
                       ["rping", "-s", "-a", "127.0.0.1", "-C", "1"])
    if "libibverbs.so.1: cannot open" in r.output:
        raise system.Skip("the system has no libibverbs.so.1")
    expect_failed(r)
    expect(re.search(
        r"^adverb: rdma_cm: this librdmacm.so.1 is adverb's, and "
        r"\S*/libibverbs.so.1 is not, and has none of adverb's devices; load "
        r"both from one folder, as adverb run does$", r.output, re.M),
        "no message names both libraries", r)


def other_verbs():
    """Loads librdmacm with a libibverbs of another version of adverb: the
    program prints both versions."""
    t.need("rping")
    place = libraries_of("other", "librdmacm.so.1", "adverbd")
    patched("other/libibverbs.so.1", os.path.join(LIB, "libibverbs.so.1"),
            (("%s\0" % OURS).encode(), b"9.8.7\0"))
    path = first_from(place)
    r = t.run([t.adverb, "run", "--", "env", "LD_LIBRARY_PATH=" + path,
               "rping", "-c", "-a", "127.0.0.1", "-C", "1"],
              LD_LIBRARY_PATH=path)
    expect_failed(r)
    expect(re.search(
        r"^adverb: rdma_cm: this librdmacm.so.1 is of adverb %s, and "
        r"\S*other/libibverbs.so.1 is of adverb 9.8.7; load both from one "
        r"folder, as adverb run does$" % re.escape(OURS), r.output, re.M),
        "no message names both versions", r)
    end_all()


# Opens libibumad, calls three of its functions, and prints what they return.
LIST_ADAPTERS = """
import ctypes, os
umad = ctypes.CDLL("libibumad.so.3", use_errno=True)
names = ctypes.create_string_buffer(20 * 32)
count = umad.umad_get_cas_names(names, 32)
print("names", count, names.value.decode())
umad.umad_get_ca_device_list.restype = ctypes.c_void_p
print("list", bool(umad.umad_get_ca_device_list()),
      os.strerror(ctypes.get_errno()))
ca = ctypes.create_string_buffer(4096)
print("first", umad.umad_get_ca(None, ca))
"""
ENODEV = -errno.ENODEV


def umad_with(place):
    r = with_libraries(place, [PYTHON, "-c", LIST_ADAPTERS])
    if "libibverbs.so.1: cannot open" in r.output:
        raise system.Skip("the system has no libibverbs.so.1")
    return r


def stock_verbs_of_umad():
    """Loads adverb's libibumad with the system's libibverbs: libibumad lists no
    adapter and prints once why."""
    r = umad_with(libraries_of("half-umad", "libibumad.so.3"))
    want = r"adverb: umad: this libibumad.so.3 is adverb's, and " \
        r"\S*/libibverbs.so.1 is not, and has none of adverb's devices; load " \
        r"both from one folder, as adverb run does"
    said = sentences(r.output.splitlines())
    expect(len(said) == 1 and re.fullmatch(want, said[0]),
           "the program does not print the message once", r)
    expect("names %d" % ENODEV in r.output and
           "list False %s" % os.strerror(errno.ENODEV) in r.output and
           "first %d" % ENODEV in r.output,
           "not all calls of libibumad fail with ENODEV", r)


def other_verbs_of_umad():
    """libibumad lists the adapters with a libibverbs of another version of
    adverb, since the ABI between the two libraries is the same."""
    place = libraries_of("other-umad", "libibumad.so.3", "adverbd")
    patched("other-umad/libibverbs.so.1", os.path.join(LIB, "libibverbs.so.1"),
            (("%s\0" % OURS).encode(), b"9.8.7\0"))
    r = umad_with(place)
    said = sentences(r.output.splitlines())
    expect(len(said) == 1 and re.fullmatch(
        r"adverb: umad: this libibumad.so.3 is of adverb %s, and "
        r"\S*other-umad/libibverbs.so.1 is of adverb 9.8.7; load both from "
        r"one folder, as adverb run does" % re.escape(OURS), said[0]),
        "the program does not print the message once", r)
    expect("names 1 adv0" in r.output and "list True" in r.output and
           "first 0" in r.output, "libibumad lists no adapter", r)
    end_all()


case("librdmacm.so.1 finds a libibverbs.so.1 of the system", stock_verbs)
case("librdmacm.so.1 finds a libibverbs.so.1 of another release", other_verbs)
case("libibumad.so.3 finds a libibverbs.so.1 of the system",
     stock_verbs_of_umad)
case("libibumad.so.3 finds a libibverbs.so.1 of another release",
     other_verbs_of_umad)


def incomplete(lacks, words, want, statuses=(126, 127)):
    """Returns a case: the adverb command prints @want when it runs in a folder
    with copies of the command, the simulator, the broker and the libraries, but
    without the file @lacks and without bench."""
    def body():
        place = folder("without-" + os.path.basename(lacks))
        for sub in "tools", "lib", "sim":
            os.makedirs(os.path.join(place, sub), exist_ok=True)
        for file in ("tools/adverb", "sim/adverb-sim", *(
                "lib/" + name for name in
                ("libibverbs.so.1", "librdmacm.so.1", "libibumad.so.3",
                 "libadverb-shim.so", "adverbd"))):
            if file != lacks:
                shutil.copy(os.path.join(t.build, file),
                            os.path.join(place, file))
        r = t.run([place + "/tools/adverb", *words])
        expect(r.status in statuses and re.fullmatch(
            want, r.output.strip()),
            "another exit status, or the output is not: " + want, r)
    return body


for lacks, words, statuses in (
        ("lib/librdmacm.so.1", ["run", "--", "true"], (126,)),
        ("lib/libibumad.so.3", ["pair", "--", "ib_write_bw"], (126,)),
        ("lib/libadverb-shim.so", ["run", "--", "true"], (0,))):
    case("%s is missing" % lacks, incomplete(
        lacks, words, r"adverb: \S*%s cannot be read \(No such file or "
        r"directory\); build or install adverb completely\." % lacks,
        statuses))
case("lib/libibverbs.so.1 is missing", incomplete(
    "lib/libibverbs.so.1", ["run", "--", "true"], r"adverb: libibverbs.so.1 is "
    r"in none of the folders ../lib/adverb, \S+ and ../lib beside this program; "
    "build or install adverb completely.", (126,)))
case("adverb-sim is missing", incomplete(
    "sim/adverb-sim", ["sim", "--seeds", "1..2"], "adverb: adverb-sim is not "
    "beside this program; build or install adverb completely."))


def simulator_that_cannot_run():
    """The user has no right to execute the simulator."""
    place = folder("simulator")
    for file in "tools/adverb", "sim/adverb-sim":
        os.makedirs(os.path.join(place, os.path.dirname(file)))
        shutil.copy(os.path.join(t.build, file), os.path.join(place, file))
    sim = os.path.join(place, "sim/adverb-sim")
    os.chmod(sim, 0o600)
    r = t.run([place + "/tools/adverb", "sim", "--seeds", "1..2"])
    expect(r.status == 126 and re.search(
        r"the simulator, \S*/adverb-sim, cannot be run: Permission denied; build or "
        r"install adverb completely", r.output),
        "another exit status, or no message says that the simulator cannot be run", r)


case("adverb-sim cannot be run", simulator_that_cannot_run)
case("the program of bench is missing", incomplete(
    "", ["bench"], "adverb: the program of bench, bench/__main__.py, is not "
    "beside this program; build or install adverb completely."))
t.end()
