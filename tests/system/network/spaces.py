#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests many network namespaces at once, as containers have them.  Each namespace
has its own pair of programs and its own broker.  After the programs have ended,
the brokers end, and no sysfs tree of a namespace is left."""

import contextlib
import fcntl
import os
import signal
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
from perftest_check import check_pingpong, check_rows
import system
from system import expect, expect_ok, wait_until

netlab.enter()
t = system.Suite(__doc__)
COUNT = 50 if t.options.full else 10
BROKER = os.path.realpath(os.path.join(t.build, "lib", "adverbd"))


def kill(pid):
    """Kills a process, unless the process has ended meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def brokers():
    """Returns the PIDs of the brokers of this build that this user may see, in all
    namespaces."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/exe" % pid) == BROKER:
                found.add(int(pid))
        except OSError:
            continue
    return found


def all_at_once(argv, check):
    def go():
        t.need(argv[0])
        running = [t.start(t.pair_argv(argv), env=t.environment(),
                           into=system.in_namespace) for _ in range(COUNT)]
        results = [t.finish(p, system.HANG + 10) for p in running]
        for r in results:
            expect_ok(r)
            check(r)
    return go


def folder():
    return os.path.join(t.runtime, "adverb-%d" % os.geteuid())


def trees():
    """Returns the names of the sysfs trees in this user's runtime folder.  Each
    namespace has one tree.  While a broker removes a tree, the tree has a name
    that begins with a dot."""
    return {name for name in os.listdir(folder()) if "sysfs" in name or
            name.startswith(".")} if os.path.isdir(folder()) else set()


def is_unused(tree):
    """Returns whether no process has locked a tree, so that a broker may remove the
    tree.  A killed process keeps its lock until the kernel has closed its files."""
    fd = os.open(os.path.join(folder(), tree), os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def trees_end():
    """A broker that ends removes the tree of its namespace.  A broker that is
    killed leaves the tree, and the next broker removes it."""
    expect(not trees(), "trees are left: %s" % trees())
    argv = t.pair_argv(["ibv_rc_pingpong", "-c", "-n", "100000000"])
    p = t.start(argv, env=t.environment(), into=system.in_namespace)
    wait_until(lambda: len(brokers() - THERE) == 1 and trees(),
               "there is not one broker, or no tree")
    for pid in (*system.session_of(p.pid), *(brokers() - THERE)):
        kill(pid)
    p.communicate()
    end = time.monotonic() + system.HANG
    while brokers() - THERE:  # a client may just have started another broker
        expect(time.monotonic() < end, "a broker is left")
        for pid in brokers() - THERE:
            kill(pid)
    left = trees()
    expect(len(left) == 1, "not one tree: %s" % left)
    wait_until(lambda: is_unused(*left), "a killed process uses the tree")
    # The kernel reuses inode numbers of namespaces, so a tree that is left may
    # have the number of a new namespace.  No namespace has the number 1.
    os.rename(os.path.join(folder(), *left), os.path.join(folder(), "sysfs-1"))
    expect_ok(t.finish(t.start(t.pair_argv(["ibv_rc_pingpong", "-c"]),
                               env=t.environment(), into=system.in_namespace),
                       system.HANG + 10))
    # the programs do not wait for the broker to remove trees
    wait_until(lambda: "sysfs-1" not in trees(),
               "the next broker has not removed the tree")


def brokers_end():
    expect(brokers() - THERE, "no broker of the earlier cases is there")
    # A broker ends when it has been idle for ten seconds.
    wait_until(lambda: not brokers() - THERE, "brokers are left")


THERE = brokers()
t.case("ibv_rc_pingpong succeeds in %d namespaces at once" % COUNT,
       all_at_once(["ibv_rc_pingpong", "-c", "-n", "200"], check_pingpong),
       "namespaces at once", "ibv_rc_pingpong")
t.case("ib_write_bw succeeds in %d namespaces at once" % COUNT,
       all_at_once(["ib_write_bw", "-n", "100"], check_rows),
       "namespaces at once", "ib_write_bw")
t.case("the brokers of all namespaces end", brokers_end)
t.case("a broker removes its tree, and that of a killed broker", trees_end)
t.end()
