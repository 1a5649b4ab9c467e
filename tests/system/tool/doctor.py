#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the lines of `adverb doctor`.  In most cases a namespace, a filter of system
calls, a limit or a variable takes away what the line reports."""

import os
import re
import shutil
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
import system
from system import Skip, expect

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
DENY_SYSCALL = t.program("deny_syscall")
THINGS = ["version", "UDP port 4791", "steering", "UDP batches",
          "receive buffer", "own memory", "others' memory", "direct path",
          "shared memory", "processors", "sandbox", "kernel RDMA",
          "runtime folder", "other programs", "locked memory", "libraries",
          "broker", "device"]


def doctor(lacks=(), words=(), into=system.in_namespace, **env):
    """Runs `adverb doctor` with the filters @lacks of deny_syscall.  @words: a command
    that runs the command after it.  @into: a function that wraps the whole command; by
    default the command runs in a network namespace of its own.  Returns
    {thing: (word, why)} and the Result."""
    filters = [DENY_SYSCALL, *lacks, "--"] if lacks else []
    e = dict(t.environment(), **env)
    p = t.start([*words, *filters, t.adverb, "doctor"], env=e,
                into=into)
    r = t.finish(p, system.HANG)
    if r.status == 77:
        raise Skip("no filter can be installed, or nothing can be mounted here")
    return {m[1]: (m[0], m[2]) for m in
            re.findall(r"^(ok|slow|no) +([^:]+): (.*)$", r.output, re.M)}, r


def healthy():
    said, r = doctor()
    expect(list(said) == THINGS and len(r.output.splitlines()) == 18,
           "doctor does not print the 18 lines of THINGS", r)
    expect(r.status == 0 and all(word != "no" for word, _ in said.values()),
           "doctor finds something missing", r)


def says(thing, word, why, **how):
    """Runs a case: in doctor(**how) the line @thing has @word and a match of @why."""
    def body():
        said, r = doctor(**how)
        expect(thing in said, "the line is missing; exit status %d" % r.status,
               r)
        expect(said[thing][0] == word and re.search(why, said[thing][1]),
               "the line is: %s, %s" % said[thing], r)
        expect(r.status == (1 if any(w == "no" for w, _ in said.values())
                            else 0), "exit status %d" % r.status, r)
    t.case("%s: %s, %s" % (thing, word, why), body)


def where(script):
    """Returns a function that wraps a command.  The command then runs in a network
    namespace of its own and in a mount namespace in which @script has run before."""
    def into(words):
        return ["unshare", "-m", "sh", "-c",
                '{ %s; } || exit 77; exec "$@"' % script, "sh",
                *system.in_namespace(words)]
    return into


def file_over(path, text):
    """Returns a shell command after which the file @path has the contents
    @text."""
    return "printf '%s\\n' >%s && mount --bind %s %s" % (
        text, t.path("shown"), t.path("shown"), path)


def folder_over(path, script):
    """Returns a shell command after which the folder @path has only the files that
    @script makes there."""
    return "mount -t tmpfs none %s && cd %s && %s && cd /" % (
        path, path, script)


def core_of(script):
    """Returns a function that wraps a command.  The command then runs in a
    network namespace whose limits of sockets are the files that @script makes
    in an empty folder."""
    def into(words):
        return ["unshare", "-mn", "sh", "-c",
                "ip link set lo up && mount -t tmpfs none /proc/sys/net/core "
                '&& cd /proc/sys/net/core && %s || exit 77; cd / && exec "$@"'
                % script, "sh", *words]
    return into


def installed():
    """Returns a shell command after which the loader's cache has adverb's
    libraries first, as after `adverb install`."""
    with open(t.path("ld.conf"), "w") as f:
        f.write(os.path.join(t.build, "lib") + "\n")
    return "ldconfig -C %s -f %s && mount --bind %s /etc/ld.so.cache" % (
        t.path("ld.cache"), t.path("ld.conf"), t.path("ld.cache"))


def memlock(limit):
    return ["prlimit", "--memlock=%s" % limit]


def held_port():
    with t.port_held() as p:
        said, r = doctor(into=list)
    expect(said["UDP port 4791"][0] == "no" and re.search(
        r"held by .*\(process %d of user \d+\)" % p.pid,
        said["UDP port 4791"][1]), "doctor does not name the holder", r)
    expect(r.status == 1, "exit status %d" % r.status, r)


def held_without_proc():
    """Without /proc doctor cannot tell whether adverb's broker or another program has
    the port.  So the line is ok, and does not say that this user may not bind the
    port."""
    def no_proc(words):
        return ["unshare", "-m", "sh", "-c",
                'mount -t tmpfs none /proc || exit 77; exec "$@"', "sh", *words]
    with t.port_held():
        said, r = doctor(into=no_proc)
    expect(said["UDP port 4791"] == (
        "ok", "in use; mount /proc to see by which process; the line \"broker\" "
        "says whether it is adverb's broker"), "the line is wrong", r)


BY_IPV6 = system.HOLD.replace("s.bind", """\
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
s.bind""")


def held_by_ipv6():
    """A socket of IPv4 alone could still be bound to the port, but a broker needs a
    socket of IPv6, which receives IPv4, too."""
    p = t.start([system.PYTHON, "-u", "-c", BY_IPV6])
    try:
        if p.stdout.readline() != b"held\n":
            t.need_no_hostile("has root's broker take the port first")
        said, r = doctor(into=list)
    finally:
        p.kill()
        p.communicate()
    expect("process %d" % p.pid in said["UDP port 4791"][1],
           "doctor does not name the holder", r)


HOSTILE = """
with open("/proc/self/comm", "w") as f:
    f.write("\\033[2Jme")
""" + system.HOLD


def hostile_holder():
    p = t.start([system.PYTHON, "-u", "-c", HOSTILE])
    try:
        if p.stdout.readline() != b"held\n":
            t.need_no_hostile("has root's broker take the port first")
        said, r = doctor(into=list)
    finally:
        p.kill()
        p.communicate()
    expect("?[2Jme (process %d" % p.pid in said["UDP port 4791"][1] and
           "\033" not in r.output, "doctor does not name the holder ?[2Jme", r)


def no_libraries():
    folder = t.path("no_libraries")
    os.mkdir(folder)
    shutil.copy(t.adverb, folder)
    r = t.run([folder + "/adverb", "doctor"])
    expect(r.status == 1 and re.search(r"^no +libraries: ", r.output, re.M),
           "no line says that the libraries are missing", r)


def brokers_port():
    t.need("ib_write_bw")
    p = lab.start("here", ["ib_write_bw", "-p", "20999"])
    try:
        lab.wait(lambda: lab.is_listening("here", 20999), "no server")
        said, r = doctor(into=list)
    finally:
        p.kill()
        p.communicate()
    word, why = said["UDP port 4791"]
    expect(word == "ok" and "adverb's own broker" in why,
           "the line does not say that adverb's broker has the port", r)


def threads_broker():
    t.need("ib_write_bw")
    p = lab.start("there", ["ib_write_bw", "-p", "20998"],
                  ADVERB_BROKER="/nowhere")
    try:
        lab.wait(lambda: lab.is_listening("there", 20998), "no server")
        said, r = doctor(into=lambda words: lab.into("there", words))
        pid, = system.named("ib_write_bw", lab.there.pid)
    finally:
        p.kill()
        p.communicate()
    word, why = said["broker"]
    expect(word == "slow" and re.match(
        r"adverb [\d.]+, a thread of process %d of user \d+; when that process "
        "ends, a thread of the next program takes over$" % pid, why),
           "the line does not name the thread of ib_write_bw", r)


def many_processors():
    """Where the kernel allows more processors than a cpu_set_t has bits, doctor counts
    as many as without the filter."""
    few, _ = doctor()
    many, r = doctor(lacks=["cpus"])
    expect(many["processors"] == few["processors"],
           "without the filter the line is: %s, %s" % few["processors"], r)


def falls_back():
    """If the folder of XDG_RUNTIME_DIR cannot be used, the runtime folder is
    /tmp/adverb-UID, or /tmp/adverb-UID-N if other users have taken that name.
    """
    said, r = doctor(XDG_RUNTIME_DIR="/proc")
    word, why = said["runtime folder"]
    expect(word == "ok" and
           re.match(r"/tmp/adverb-\d+(-\d+)?/sysfs-\d+ (holds|will hold) ", why),
           "the runtime folder is not in /tmp", r)


t.case("eighteen lines, and nothing is missing", healthy)
t.case("UDP port 4791: no, and the line names its holder", held_port)
t.case("UDP port 4791: in use, and /proc is not mounted", held_without_proc)
t.case("UDP port 4791: the line names a holder by IPv6 alone",
       held_by_ipv6)
t.case("UDP port 4791: no, and its holder has a hostile name", hostile_holder)
t.case("UDP port 4791: ok, and adverb's own broker has it", brokers_port)
says("steering", "slow", "the broker receives all frames", lacks=["bpf"])
says("UDP batches", "slow", "no GSO and GRO", lacks=["batches"])
says("own memory", "slow", "unmaps registered memory", lacks=["vm"])
says("others' memory", "slow", "they exchange packets", lacks=["vm"])
says("others' memory", "slow", r"kept apart \(.*, but not by Yama\): they exchange packets",
     lacks=["vm"],
     into=where(folder_over("/proc/sys/kernel",
                            "mkdir yama && echo 1 >yama/ptrace_scope")))
says("direct path", "ok", "from memory to memory")
says("direct path", "ok", "by system calls alone", ADVERB_GUARD="0")
says("direct path", "ok", "off by ADVERB_DIRECT=0", ADVERB_DIRECT="0")
says("direct path", "slow", "ADVERB_PCAP captures packets",
     ADVERB_PCAP="/dev/null")
says("direct path", "slow", "since no process may write", lacks=["vm"])
says("shared memory", "no", "memfd_create fails", lacks=["memfd"])
says("shared memory", "no", r"ftruncate .* raise .*\(ulimit -f\)",
     words=["prlimit", "--fsize=0"])
says("shared memory", "no", r"ftruncate .* 8 MiB at least \(ulimit -f\)",
     words=["prlimit", "--fsize=8388607"])
says("shared memory", "ok", "for rings and tables", words=["prlimit", "--fsize=8388608"])
says("libraries", "no", "is mounted with the option noexec",
     into=where("mount --bind %s %s && mount -o remount,bind,noexec %s" %
                ((t.build + "/lib",) * 3)))
says("sandbox", "slow", "seccomp", lacks=["vm"])
says("broker", "ok", r"adverb [\d.]+, process \d+ of user \d+$")
says("broker", "slow", "no process can be started .*; a thread of this program "
     "serves instead", lacks=["fork"])
says("broker", "slow", "the broker /nowhere could not be run: it is missing",
     ADVERB_BROKER="/nowhere")
t.case("broker: slow, the broker is a thread of another program", threads_broker)
says("processors", "slow", "take turns|a cgroup allows",
     words=["taskset", "-c", str(min(os.sched_getaffinity(0)))])
t.case("processors: counted where the kernel allows 4096", many_processors)
t.case("runtime folder: in /tmp, if XDG_RUNTIME_DIR cannot be used",
       falls_back)
says("runtime folder", "ok", r"^/dev/shm/adverb-\d+(-\d+)?/sysfs-",
     into=where("mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp"),
     XDG_RUNTIME_DIR="")
says("runtime folder", "ok", "/of/mine/sysfs-",
     ADVERB_RUNTIME=t.path("of/mine"))
says("runtime folder", "slow", "^/proc/mine/sysfs-.* cannot be written",
     ADVERB_RUNTIME="/proc/mine")
says("runtime folder", "slow", "^/proc/tree cannot be written",
     ADVERB_SYSFS="/proc/tree")
says("receive buffer", "slow", "room for [1-9].* more is faster: sysctl",
     lacks=["rcvbuf"], into=core_of("echo 212992 >rmem_max"))
# Network namespaces other than the first cannot change the limit; before Linux 6.11
# they have no file rmem_max.
says("receive buffer", "slow", "more is faster: on the host", lacks=["rcvbuf"],
     into=core_of("true"))
says("receive buffer", "slow", "on the host of this network namespace",
     lacks=["rcvbuf"],
     into=core_of("echo 212992 >rmem_max && chmod 444 rmem_max"))
for thing in "steering", "UDP batches", "receive buffer":
    says(thing, "no", r"no UDP socket can be made: Operation not permitted; allow "
         "socket.2. in the sandbox", lacks=["socket=EPERM"])
says("sandbox", "slow", "gVisor: system calls are emulated",
     into=where(file_over("/proc/version", "Linux version 4.4.0 #1 SMP "
                          "Sun Jan 10 15:06:54 PST 2016")))
says("kernel RDMA", "slow", "rdma_rxe is loaded and takes UDP port 4791",
     into=where(folder_over("/sys/module", "mkdir rdma_rxe")))
says("kernel RDMA", "ok", "programs see only adverb's devices",
     into=where(folder_over("/sys/class", "mkdir infiniband")))
says("processors", "slow", "a cgroup allows 50% of one",
     into=where(folder_over("/sys/fs/cgroup", "echo 50000 100000 >cpu.max")))
says("other programs", "ok", "ssh, systemd-run, and mpirun on other hosts "
     "drop its variables",
     into=where("mount --bind /dev/null /etc/ld.so.cache"))
says("locked memory", "ok", "adverb locks none, and under adverb run programs "
     "see no limit$", words=memlock(65536),
     into=where("mount --bind /dev/null /etc/ld.so.cache"))
says("locked memory", "slow", "without adverb run programs see a limit of 64 "
     "KiB, and some, .*, then end: use adverb install --shim, or raise the "
     r"limit \(",
     words=memlock(65536), into=where(installed()))
says("locked memory", "ok", "programs see no limit, and adverb locks none$",
     words=memlock(65536), into=where(installed()),
     LD_PRELOAD=os.path.join(t.build, "lib", "libadverb-shim.so"))
t.case("libraries: no, they are not beside adverb", no_libraries)
says("device", "ok", "^adv0, RoCE by lo, GID 1 is ", into=where("true"))
says("device", "no", "no network interface can become a device",
     ADVERB_DEVICES="none")
says("device", "no", r"^the fabric at /nowhere \(ADVERB_FABRIC\) gives this process no "
     "adapter; the message on standard error says why$", ADVERB_FABRIC="/nowhere")
says("device", "no", "adv0, but lo is down: ip link set lo up",
     into=lambda words: ["unshare", "-n", *words])
lab.end()
t.end()
