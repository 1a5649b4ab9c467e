#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what unmodified programs see of adverb's adapters."""

import os
import re
import sys
import tempfile

sys.path.insert(1, sys.path[0] + "/../lib")

import system
from system import expect, expect_ok, expect_silent

t = system.Suite(__doc__)


def lists_one_device():
    t.need("ibv_devices")
    r = t.adverb_run(["ibv_devices"])
    expect_ok(r)
    rows = re.findall(r"^\s+(\S+)\s+([0-9a-f]{16})$", r.output, re.M)
    expect([name for name, _ in rows[:1]] == ["adv0"], "no adv0 listed", r)
    expect(all(int(guid, 16) for _, guid in rows), "a GUID is zero", r)


def shows_an_active_port():
    t.need("ibv_devinfo")
    r = t.adverb_run(["ibv_devinfo", "-v"])
    expect_ok(r)
    for want in (r"hca_id:\s+adv0", r"state:\s+PORT_ACTIVE",
                 r"link_layer:\s+Ethernet", r"active_mtu:\s+(1024|4096)",
                 r"GID\[\s*1\]:.*RoCE v2"):
        expect(re.search(want, r.output), "no line like " + want, r)
    guid = re.search(r"node_guid:\s+([0-9a-f:]+)", r.output)
    expect(guid and guid.group(1).strip("0:"), "the node GUID is zero", r)


def starts_bound_now(argv):
    def body():
        t.need(argv[0])
        r = t.run([t.adverb, "run", "--", *argv], LD_BIND_NOW="1")
        for bad in ("symbol lookup error", "cannot open shared object",
                    "undefined symbol", "Segmentation"):
            expect(bad not in r.output, bad, r)
        # Tools exit with different statuses after -h.  A status of 124 or more, or
        # below 0, means that the tool has hung, has not started, or was killed.
        expect(0 <= r.status < 124, "exit status %d" % r.status, r)
    return body


def doctor_is_brief():
    r = t.run([t.adverb, "doctor"])
    lines = r.output.splitlines()
    expect(10 <= len(lines) <= 20, "%d lines" % len(lines), r)
    for line in lines:
        expect(re.match(r"(ok|slow|no) +[^:]+: .", line), line, r)
    expect_ok(r)


def shim_shows(argv, want, need=t.need):
    def body():
        need(argv[0])
        # The first program that opens the device writes the tree, which the shim
        # shows as /sys/class/infiniband.
        expect_ok(t.adverb_run(["ibv_devinfo"]))
        r = t.adverb_run(argv)
        expect_ok(r)
        expect(re.search(want, r.output), "no " + want, r)
    return body


def first_sees_the_tree(argv, want, *options):
    """Returns a case: @argv runs as the first program in a new runtime folder,
    where no program has written a tree before."""
    def body():
        t.need(argv[0])
        fresh = tempfile.mkdtemp(dir=t.runtime)
        if system.is_root():
            os.chown(fresh, system.NOBODY, system.NOBODY)
        r = t.run([t.adverb, "run", *options, "--", *argv],
                  ADVERB_RUNTIME=fresh)
        expect_ok(r)
        expect(re.search(want, r.output), "no " + want, r)
    return body


def values_that_mean_nothing():
    for name, value, word in (("DIRECT", "off", "0 or 1"),
                              ("STRICT", "yes", "0 or 1"),
                              ("EXPLAIN", "3", "0, 1 or 2"),
                              ("PATIENCE", "5s", "a number from 0 to "
                               "4294967295"),
                              ("PART_ID", "-1", "a number from 0 to "
                               "4294967295")):
        r = t.run([t.adverb, "run", "--", "ibv_devinfo"],
                  **{"ADVERB_" + name: value})
        expect_ok(r)
        expect("adverb: ADVERB_%s=%s: the value must be %s\n" %
               (name, value, word)
               in r.output, "no message about " + name, r)
    r = t.run([t.adverb, "run", "--", "ibv_devinfo"], ADVERB_DIRECT="",
              ADVERB_STRICT="0", ADVERB_PATIENCE="5", ADVERB_PART_ID="0x10")
    expect_ok(r)
    expect_silent(r)


def file_sizes():
    """The limit on file sizes also holds for a memfd, and SIGXFSZ would kill
    the program: the program must work, or print that the limit is too low."""
    for limit, works in ((0, False), (8, False), (10 ** 5, True),
                         (8 << 21, True)):
        r = t.run(["sh", "-c", 'ulimit -f %d; exec "$@"' % limit, "sh",
                   t.adverb, "run", "--", "ibv_devinfo"])
        expect((r.status == 0) == works, "ulimit -f %d: exit status %d" %
               (limit, r.status), r)
        expect(works or "raise ulimit -f" in r.output,
               "no message says that ulimit -f is too low", r)


PYTHON_LOOK = """
import ctypes, os, stat
print(os.listdir("/sys/class/infiniband"))
node = os.stat("/dev/infiniband/uverbs0")
print(stat.S_ISCHR(node.st_mode), os.access("/dev/infiniband/uverbs0", 6))
print(open("/sys/class/infiniband/adv0/ports/1/state").read())
os.statvfs("/sys/class/infiniband")
os.pathconf("/sys/class/infiniband", "PC_NAME_MAX")
libc = ctypes.CDLL(None)
room = ctypes.create_string_buffer(1024)
print(libc.statfs(b"/sys/class/infiniband", room) == 0,
      libc.inotify_add_watch(libc.inotify_init(), b"/sys/class/infiniband", 1))
"""

def says_why_there_is_no_capture():
    t.need("ibv_devinfo")
    for name, mode in ("closed", 0o500), ("hidden", 0):
        os.mkdir(t.path(name), mode)
    with open(t.path("kept"), "w"):
        os.chmod(t.path("kept"), 0o400)
    for name, why in (
            (t.path("none/x"), "a folder of the path does not exist"),
            ("/none/x", "a folder of the path does not exist"),
            (t.path("closed/x"), "may not create a file in the folder"),
            (t.path("hidden/x"), "may not search a folder of the path"),
            (t.path("kept"), "may not write to the file"),
            (t.tmp, "it is a folder"),
            ("/dev/full", "No space left on device")):
        r = t.adverb_run(["ibv_devinfo"], ["--pcap", name])
        expect("adverb: cannot write frames to %s: " % name in r.output and
               why in r.output and "--pcap or ADVERB_PCAP" in r.output,
               "no message says why %s is not opened" % name, r)


def names_doctor():
    """A sandbox refuses memfd_create.  adverb has no message about this failure,
    so the general message must name adverb doctor."""
    t.need("ibv_devinfo")
    r = t.run([t.program("deny_syscall"), "memfd", "--", t.adverb, "run", "--",
               "ibv_devinfo"])
    if r.status == 77:
        raise system.Skip("no seccomp filters here")
    expect("adverb: the device does not open (`adverb doctor` says what is "
           "missing here)" in r.output, "the message has no remedy", r)


t.case("ibv_devices lists adv0 with a GUID", lists_one_device,
       "devices", "ibv_devices")
t.case("ibv_devinfo -v shows an active RoCEv2 port", shows_an_active_port,
       "devices", "ibv_devinfo -v")
for argv in (["ibv_devices"], ["ibv_devinfo"], ["ibv_rc_pingpong", "-h"],
             ["ibv_uc_pingpong", "-h"], ["ibv_ud_pingpong", "-h"],
             ["ibv_srq_pingpong", "-h"], ["ibv_xsrq_pingpong", "-h"],
             ["ib_write_bw", "-h"], ["ib_write_lat", "-h"],
             ["ib_read_bw", "-h"], ["ib_read_lat", "-h"],
             ["ib_send_bw", "-h"], ["ib_send_lat", "-h"],
             ["ib_atomic_bw", "-h"], ["ib_atomic_lat", "-h"],
             ["raw_ethernet_bw", "-h"], ["qperf", "--help"],
             ["rping", "-h"], ["ucmatose", "-h"], ["udaddy", "-h"],
             ["mckey", "-h"], ["cmtime", "-h"], ["rdma_client", "-h"],
             ["rdma_server", "-h"], ["rstream", "-h"], ["ibstat", "-l"]):
    t.case("%s starts with LD_BIND_NOW" % argv[0], starts_bound_now(argv),
           "starts", argv[0])
t.case("adverb doctor is brief and finds nothing wrong", doctor_is_brief)
t.case("ls sees the tree through the shim",
       shim_shows(["ls", "-l", "/sys/class/infiniband"], "adv0"),
       "shim", "ls")
t.case("cat sees the tree through the shim",
       shim_shows(["cat", "/sys/class/infiniband/adv0/ports/1/state"],
                  "4: ACTIVE"), "shim", "cat")
t.case("python sees the tree through the shim",
       shim_shows([system.PYTHON, "-c", PYTHON_LOOK],
                  r"\['adv0'.*\nTrue True\n4: ACTIVE\n\nTrue 1\n"), "shim",
       "python3")
t.case("ucx_info finds rc_verbs on adv0 through the shim",
       shim_shows(["ucx_info", "-d"], r"Transport: rc_verbs\n# +Device: adv0:1",
                  lambda _: t.need_ucx()), "shim", "ucx_info")
t.case("ibstatus sees the port through the shim",
       shim_shows(["ibstatus"], "adv0.*(.|\n)*ACTIVE"), "shim", "ibstatus")
t.case("ibstatus as the first program sees the tree",
       first_sees_the_tree(["ibstatus"], "adv0.*(.|\n)*ACTIVE"), "shim",
       "ibstatus")
t.case("ls as the first program sees the tree",
       first_sees_the_tree(["ls", "/sys/class/infiniband"], "adv0", "--shim"),
       "shim", "ls")
t.case("with a limit on file sizes, ibv_devinfo works or names the limit",
       file_sizes)
t.case("an invalid value of a variable is reported",
       values_that_mean_nothing)
t.case("a message says why a capture is not opened",
       says_why_there_is_no_capture)
t.case("a device that does not open names adverb doctor", names_doctor)
t.end()
