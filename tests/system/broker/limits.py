#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests programs on machines, in containers and under user limits that give
adverb less than it wants.  Each program works, or prints a message that says why
it does not; no program hangs or is killed by a signal.  Each case has a network
namespace of its own, so that the broker starts under the same limit."""

import os
import re
import subprocess
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import system
from system import HANG, expect

t = system.Suite(__doc__)
DENY_SYSCALL = t.program("deny_syscall")
PAIR = [t.adverb, "pair", "--timeout", "300", "--", "ibv_rc_pingpong", "-g",
        "1", "-n", "200", "-c"]
OPEN = [t.adverb, "run", "--", "ibv_devinfo"]


def enclosed(setup):
    """Returns a function that wraps a command.  The command then runs
    unprivileged in namespaces of its own, where @setup has run before with the
    right to mount."""
    def into(words):
        ours = ["unshare", "-nm"] if system.is_root() else \
            ["unshare", "-Urnm"]
        return [*ours, "sh", "-c", "ip link set lo up && %s && exec \"$@\"" %
                (setup or ":"), "sh", *words]
    return into


def can_mount():
    return subprocess.run(enclosed("mount -t tmpfs none /mnt")(["true"]),
                          check=False, stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL).returncode == 0


def run(argv, setup="", limit="", **more):
    """Runs @argv unprivileged, after @setup, under the limits that the shell
    commands @limit set.  @more are environment variables; None removes a variable.
    Returns the Result."""
    words = ["sh", "-c", '%s exec "$@"' % limit, "sh", *argv]
    env = {k: v for k, v in {**t.environment(), **more}.items()
           if v is not None}
    return t.finish(t.start(words, into=enclosed(setup), env=env), HANG)


# ibv_rc_pingpong prints this if it cannot open its own socket.  If ibv_rc_pingpong
# gets no device, adverb must print the reason.
ITS_OWN = r"Couldn't listen to port"


def works_or_says(r, must=False):
    """Expects that the program succeeds, or prints a message that says why it does
    not, and that no signal kills the program.  @must: the program has to succeed.
    """
    for bad in ("Segmentation fault", "core dumped", "Aborted", "Bus error",
                "broken invariant", "File size limit", "Killed",
                "terminated by signal", "was killed", "ends by signal"):
        expect(bad not in r.output, "the program was killed: " + bad, r)
    expect(0 <= r.status < 128 and r.status != 124,
           "exit status %d" % r.status, r)
    if must:
        expect(r.status == 0, "the program fails", r)
    said = re.search(r"^(?:\w+\| )?adverb(?:d|-shim)?: (.{15,})$", r.output,
                     re.M)
    expect(r.status == 0 or said or re.search(ITS_OWN, r.output),
           "the program fails, and no message says why", r)
    if r.status:
        t.note("fails with a message")


def limited(words, argv=PAIR, must=False, **more):
    def body():
        t.need("ibv_rc_pingpong")
        works_or_says(run(argv, limit=words, **more), must)
    return body


def mounted(setup, argv=PAIR, must=False, **more):
    def body():
        t.need("ibv_rc_pingpong")
        if not can_mount():
            raise system.Skip("nothing can be mounted here")
        works_or_says(run(argv, setup=setup, **more), must)
    return body


def broker_of(p):
    """Returns the pid of the broker that program @p starts in its namespaces."""
    ours = os.readlink("/proc/self/ns/net")
    # The wrapper ends in exec, so p itself is in the new namespaces.  Another user
    # may have entered these namespaces, and started a broker first.
    end = time.monotonic() + HANG
    found = []
    while not found:
        expect(p.poll() is None and time.monotonic() < end, "no broker serves")
        time.sleep(0.01)
        if os.readlink("/proc/%d/ns/net" % p.pid) != ours:
            user = os.stat("/proc/%d" % p.pid).st_uid
            found = [pid for pid, owner in system.serving(p.pid).items()
                     if owner == user]
    broker, = found
    return broker


def brokers_limits():
    """The broker does not keep the soft limits of the program that started
    it, since the broker serves other programs later."""
    t.need("ibv_rc_pingpong")
    argv = ["sh", "-c", "ulimit -Sn 50; ulimit -St 5; ulimit -Ss 4096; "
            'exec "$@"', "sh", t.adverb, "run", "--", "ibv_rc_pingpong"]
    p = t.start(argv, into=enclosed(""))
    try:
        broker = broker_of(p)
        limits = {}
        for side in p.pid, broker:
            with open("/proc/%d/limits" % side) as f:
                limits[side] = {line[:26].strip(): line[26:].split()[:2]
                                for line in f.readlines()[1:]}
        for what in "Max open files", "Max cpu time", "Max stack size":
            expect(limits[p.pid][what][0] != limits[p.pid][what][1],
                   "the program itself has no soft limit: " + what)
            expect(limits[broker][what][0] == limits[broker][what][1],
                   "%s of the broker: %s" % (what, limits[broker][what]))
    finally:
        p.kill()
        p.communicate()


def open_files(pid):
    folder = "/proc/%d/fd" % pid
    return [os.readlink("%s/%s" % (folder, fd)) for fd in os.listdir(folder)]


def brokers_files():
    """Where close_range is refused, the broker keeps no file of the program that
    started it, either."""
    t.need("ibv_rc_pingpong")
    argv = [DENY_SYSCALL, "close_range=EPERM", "--", "sh", "-c",
            'exec 9</etc/passwd; exec "$@"', "sh", t.adverb, "run", "--",
            "ibv_rc_pingpong"]
    p = t.start(argv, into=enclosed(""))
    try:
        broker = broker_of(p)
        expect("/etc/passwd" in open_files(p.pid),
               "the program itself has not the file open")
        expect("/etc/passwd" not in open_files(broker),
               "the broker has the program's file open")
    finally:
        p.kill()
        p.communicate()


def no_null():
    """A broker without /dev/null would keep the output of the program that starts
    it, and a reader of that output would wait for the broker's end.  So that
    broker does not start, and a thread of the program serves."""
    if not can_mount():
        raise system.Skip("nothing can be mounted here")
    r = run(OPEN, setup="mount -t tmpfs none /dev", **NOWHERE)
    works_or_says(r, must=True)
    expect("/dev/null, which replaces its standard input, output and error, "
           "cannot be opened" in r.output,
           "no message says why adverbd does not start", r)


def denied(*what, must=False):
    def body():
        t.need("ibv_rc_pingpong")
        r = run([DENY_SYSCALL, *what, "--", *PAIR])
        if r.status == 77:
            raise system.Skip("no filter can be set here")
        works_or_says(r, must)
    return body


# In cases with True the program has to work; in other cases it may fail with a
# message.
for kib, must in ((1 << 14, False), (1 << 16, False), (1 << 18, False),
                  (1 << 20, False), (1 << 22, False), (1 << 25, True)):
    t.case("an address space of %d MiB" % (kib >> 10),
           limited("ulimit -v %d;" % kib, must=must))
for kib, must in ((1 << 10, False), (1 << 14, False), (1 << 18, True)):
    t.case("%d MiB of data" % (kib >> 10),
           limited("ulimit -d %d;" % kib, must=must))
for count, must in ((4, False), (8, False), (12, False), (16, False),
                    (24, False), (40, True), (64, True)):
    # With a hard limit, the program need not work: descriptors in flight of
    # all programs of the user count against the limit, too.
    for kind in "", "S":
        t.case("%d open files%s" % (count, ", softly" if kind else ""),
               limited("ulimit -%sn %d;" % (kind, count),
                       must=must and kind))
# With -e the pingpong sleeps while it waits for its peer, and so uses no
# processor time.
for seconds in 1, 5:
    t.case("%d s of the processor" % seconds,
           limited("ulimit -t %d;" % seconds, argv=[*PAIR, "-e"], must=True))
t.case("no other process of the user",
       limited("ulimit -u 1;", argv=OPEN))
t.case("a stack of 64 KiB", limited("ulimit -s 64;", must=True))
t.case("a broker does not keep the soft limits of the program that starts it",
       brokers_limits)
t.case("a broker does not keep the files of the program that starts it",
       brokers_files)
t.case("no memory that is locked", limited("ulimit -l 0;", must=True))
t.case("no core files and no signals that wait",
       limited("ulimit -c 0; ulimit -i 0;", must=True))

# Without /proc a program cannot see which users its user namespace maps, so user
# 65534 may be any user.
t.case("no /proc", mounted("mount -t tmpfs none /proc"))
t.case("a /proc that shows no other user's processes",
       mounted("{ mount -t proc -o hidepid=2 none /proc || "
               "mount -o remount,hidepid=2 /proc || true; }", must=True))
NOWHERE = {"XDG_RUNTIME_DIR": None, "HOME": None}
t.case("a /tmp that cannot be written", mounted(
    "mount -t tmpfs -o mode=755 none /dev/shm && mount --bind /tmp /tmp && "
    "mount -o remount,bind,ro /tmp", must=True, **NOWHERE))
t.case("a /run and a /dev/shm that cannot be searched", mounted(
    "mount -t tmpfs -o mode=0 none /dev/shm && "
    "mount -t tmpfs -o mode=0 none /run", must=True, **NOWHERE))
t.case("no /dev/shm", mounted(
    "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 2>/dev/null; "
    "test -c /dev/null || touch /dev/null", must=True, **NOWHERE))
t.case("no /dev/null", no_null)
t.case("a root that cannot be written", mounted(
    "mount --make-rprivate / 2>/dev/null; "
    "mount -t tmpfs none /dev/shm && mount -o remount,bind,ro /",
    must=True, **NOWHERE))

# If these calls fail with EPERM, the program need not work: libc calls the older
# call only after ENOSYS.
FOREIGN = ("clone3", "EPERM"), ("faccessat2", "EPERM")
t.case("memfd_create without flags of later kernels",
       denied("flags", must=True))
for call in ("pidfd_open", "bpf", "io_uring_setup", "perf_event_open",
             "process_vm_readv", "process_vm_writev", "epoll_pwait2",
             "close_range", "statx", "membarrier", "mincore", "openat2",
             "clone3", "getrandom", "faccessat2", "userfaultfd", "ptrace",
             "sched_setaffinity"):
    for error in "ENOSYS", "EPERM":
        t.case("%s is refused, %s" % (call, error),
               denied("%s=%s" % (call, error),
                       must=(call, error) not in FOREIGN))
for call in "memfd_create", "eventfd2", "epoll_create1", "recvmmsg", \
        "sendmmsg", "madvise":
    for error in "ENOSYS", "EPERM":
        t.case("%s is refused, %s" % (call, error),
               denied("%s=%s" % (call, error)))


def no_random_numbers():
    """Neither getrandom() nor /dev/urandom gives random numbers: adverb must
    not open a device, whose keys could be guessed."""
    if not can_mount():
        raise system.Skip("nothing can be mounted here")
    r = run([DENY_SYSCALL, "getrandom=EPERM", "--", *OPEN],
            setup="mount --bind /dev/null /dev/urandom")
    works_or_says(r)
    expect(r.status and "the kernel gives no random numbers" in r.output,
           "the device opens, or no message says why it does not", r)


t.case("no random numbers", no_random_numbers)
t.end()
