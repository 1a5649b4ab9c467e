#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what `adverb run` shows to programs that look for devices in /sys, in /dev
and by netlink, and that `adverb run` does not harm other programs."""

import json
import os
import re
import shutil
import socket
import sys
import tempfile

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
import system
from system import Skip, expect, expect_failed, expect_ok, expect_silent

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
SHIM = os.path.join(t.build, "lib", "preload", "$PLATFORM",
                    "libadverb-shim.so")
CLASS = "/sys/class/infiniband"
LIMIT = "resource.getrlimit(resource.RLIMIT_MEMLOCK)"


def run(argv, *options, **env):
    return t.run([t.adverb, "run", *options, "--", *argv], **env)


def python(text, *options, **env):
    return run([system.PYTHON, "-c", text], *options, **env)


def says(argv, *wanted):
    """Returns a case: the output of @argv has a match of each of @wanted, and no
    message of adverb."""
    def body():
        t.need(argv[0])
        r = run(argv)
        expect_ok(r)
        for want in wanted:
            expect(re.search(want, r.output), "no " + want, r)
        expect_silent(r)
    return body


def compiled(name, text, *flags):
    """Compiles @text.  Returns the program's path; skips the case if gcc is
    missing or cannot build the program."""
    t.need("gcc")
    source = t.path(name + ".c")
    with open(source, "w") as f:
        f.write(text)
    os.chmod(source, 0o644)
    r = t.run(["gcc", "-g", "-o", t.path(name), source, *flags])
    if r.status:
        raise Skip("gcc cannot build it here: " + r.output.strip()[-200:])
    return t.path(name)


LOOK = """
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			puts(e->d_name);
	if (dir)
		closedir(dir);
	printf("LD_PRELOAD=%s\\n", getenv("LD_PRELOAD"));
}
"""


def counters_of_perftest():
    """perftest reads the counters before and after a transfer."""
    t.need("ib_write_bw")
    names = "counters/port_xmit_packets", "hw_counters/rx_write_requests"
    r = t.pair(["ib_write_bw", "-n", "100",
                "--report-counters=" + ",".join(names)])
    expect_ok(r)
    for name in names:
        expect(r.output.count(name + "=") == 2, "no " + name, r)


def without_it():
    r = run(["sh", "-c", "ls %s; echo =$LD_PRELOAD=" % CLASS], "--no-shim")
    expect("No such file" in r.output and "==\n" in r.output,
           "the program sees the tree, or has an LD_PRELOAD", r)


def users_own_come_first():
    library = t.path("first.so")
    compiled("first.so", "int first_nothing;", "-shared", "-fPIC")
    both = library + ":" + SHIM
    for start in ([], [t.adverb, "run", "--"]):
        r = run([*start, "sh", "-c", "ls %s; echo =$LD_PRELOAD=" % CLASS],
                LD_PRELOAD=library)
        expect(r.output == "adv0\n=%s=\n" % both,
               "LD_PRELOAD is another list, or ls does not see adv0", r)


def run_under_run():
    show = ["sh", "-c", "echo $LD_LIBRARY_PATH $LD_PRELOAD $ASAN_OPTIONS"]
    once, twice = run(show), run([t.adverb, "run", "--", *show])
    expect(once.output == twice.output and once.output.count(SHIM) == 1,
           "the inner adverb run changes a variable", twice)


def programs_of_32_bits():
    """The shim is not preloaded into 32-bit programs, whose loader would
    complain of a 64-bit library."""
    loader = "/lib/ld-linux.so.2"
    if not os.path.exists(loader):
        raise Skip("no loader for 32 bits")
    program = compiled(
        "narrow", "void _start(void) { __asm__(\"int $0x80\" :: \"a\"(1), "
        "\"b\"(7)); }", "-m32", "-nostdlib", "-pie", "-fPIE",
        "-Wl,-dynamic-linker," + loader)
    if t.run([program]).status != 7:
        raise Skip("no program of 32 bits runs here")
    r = run(["sh", "-c", program])
    expect(r.status == 7 and r.output == "", "the loader complains", r)


def sanitized(*flags):
    def body():
        program = compiled("watched", LOOK, *flags)
        for argv in ([program], ["sh", "-c", program]):
            r = run(argv)
            expect(r.status == 0 and r.output.startswith("adv0\n"),
                   "the program fails, or does not see adv0", r)
        r = run([program], ASAN_OPTIONS="detect_leaks=0")
        expect_ok(r)
    return body


def preloads_nothing(program, why):
    """Expects that @program runs without the shim, and that adverb prints no
    message, or, with --shim, a message that says @why."""
    r = run([program])
    expect(r.status == 0 and r.output == "LD_PRELOAD=(null)\n",
           "the shim is preloaded", r)
    r = run([program], "--shim")
    expect(r.status == 0 and r.output.count("adverb:") == 1 and
           "runs without --shim: " + why in r.output and
           "LD_PRELOAD=(null)" in r.output,
           "the shim is preloaded, or no message says why not", r)


def old_sanitizer():
    """The AddressSanitizer of a gcc before version 8 must be the first library, and
    has no option by which the shim may come first."""
    compiled("libasan.so.4", "int asan_nothing;", "-shared", "-fPIC",
             "-Wl,-soname,libasan.so.4")
    preloads_nothing(compiled("old", LOOK, "-Wl,--no-as-needed",
                              t.path("libasan.so.4"),
                              "-Wl,-rpath," + t.tmp), "its AddressSanitizer")


def musl():
    loader = t.path("ld-musl-x86_64.so.1")
    os.symlink("/lib64/ld-linux-x86-64.so.2", loader)
    preloads_nothing(compiled("musl", LOOK, "-Wl,-dynamic-linker," + loader),
                     "its C library is musl")


def a_script_of_such_an_interpreter():
    """The script's interpreter has DT_RPATH, whose folders the loader searches
    before those of LD_LIBRARY_PATH.  So adverb run preloads adverb's
    libraries."""
    interpreter = compiled("interpreter", LOOK, "-Wl,--disable-new-dtags",
                           "-Wl,-rpath,/opt/rdma")
    script = t.path("script")
    with open(script, "w") as f:
        f.write("#!%s -x\n" % interpreter)
    os.chmod(script, 0o755)
    r = run([script])
    expect("libibverbs.so.1:" in r.output and SHIM in r.output,
           "the libraries are not preloaded", r)


def an_empty_environment():
    t.need("ibv_devices")
    r = t.run(["env", "-i", t.adverb, "run", "--", "/bin/sh", "-c",
               shutil.which("ibv_devices") + " && /bin/ls " + CLASS])
    expect(r.status == 0 and r.output.count("adv0") == 2,
           "a program does not see adv0", r)


def nothing_to_show():
    """If the tree cannot be made, a program that looks for devices prints one
    message; with --shim, adverb run prints a message before it executes any
    program."""
    nowhere = {"ADVERB_RUNTIME": "/proc/nowhere"}
    r = run(["true"], **nowhere)
    expect(r.status == 0 and r.output == "", "adverb prints a message", r)
    r = run(["ls", CLASS, CLASS + "/adv0"], **nowhere)
    expect(r.output.count("adverb: ls looks for devices") == 1 and
           "/proc/nowhere/sysfs-" in r.output and "ADVERB_RUNTIME" in
           r.output, "no message, or more than one, is about the tree", r)
    r = run(["ls", CLASS], ADVERB_EXPLAIN="0", **nowhere)
    expect_silent(r)
    r = run(["true"], "--shim", **nowhere)
    expect(r.status == 0 and r.output.count("adverb:") == 1 and
           "/proc/nowhere" in r.output and "ADVERB_RUNTIME" in r.output,
           "no message, or more than one, is about the tree", r)


def a_folder():
    fresh = tempfile.mkdtemp(dir=t.runtime)
    if system.is_root():
        os.chown(fresh, system.NOBODY, system.NOBODY)
    return fresh


def not_written():
    """If the tree is there and a part of it cannot be written, a program that looks
    for devices prints one message."""
    folder = a_folder()
    expect_ok(run(["true"], ADVERB_RUNTIME=folder))
    [name] = os.listdir(folder)
    tree = os.path.join(folder, name)
    part = os.path.join(tree, "class/infiniband/adv0")
    os.remove(os.path.join(tree, ".stamp"))
    os.chmod(part, 0o500)
    r = run(["true"], ADVERB_RUNTIME=folder)
    expect(r.status == 0 and r.output == "", "adverb prints a message", r)
    r = run(["ls", CLASS, CLASS + "/adv0"], ADVERB_RUNTIME=folder)
    expect(r.output.count("adverb: ls looks for devices") == 1 and
           tree + " cannot be written" in r.output,
           "no message, or more than one, is about the tree", r)
    os.chmod(part, 0o700)


def not_ours():
    """If ADVERB_SYSFS names a folder with other files, the message says so."""
    folder = a_folder()
    with open(os.path.join(folder, "mine"), "w"):
        pass
    r = run(["ls", CLASS], ADVERB_SYSFS=folder)
    expect(r.output.count("adverb:") == 1 and folder +
           " contains files that are not adverb's; set ADVERB_SYSFS" in r.output,
           "no message, or more than one, is about the folder", r)


def many_at_once():
    """One of many programs that start at once writes the tree, and each program
    sees the whole tree."""
    for _ in range(4):
        env = t.environment(ADVERB_RUNTIME=a_folder())
        starts = [t.start([t.adverb, "run", "--", "ls", "-R",
                           CLASS + "/adv0/ports/1/gids",
                           CLASS + "/adv0/device",
                           CLASS + "_verbs", "/dev/infiniband"], env=env)
                  for _ in range(20)]
        seen = {t.finish(p, system.HANG).output for p in starts}
        expect(len(seen) == 1 and all("uverbs0" in text for text in seen),
               "%d trees: %s" % (len(seen), seen))


def written_once():
    fresh = a_folder()
    times = set()
    for _ in range(3):
        expect_ok(run(["true"], ADVERB_RUNTIME=fresh))
        [tree] = os.listdir(fresh)
        state = os.stat(os.path.join(fresh, tree,
                                     "class/infiniband/adv0/ports/1/state"))
        times.add((state.st_ino, state.st_mtime_ns))
    expect(len(times) == 1, "a later program has written the tree again")


CALLS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def name(dir, path):
    try:
        fd = os.open(path, os.O_RDONLY, dir_fd=dir)
        text = os.read(fd, 100).decode().strip()
        os.close(fd)
        return text
    except OSError as e:
        return os.strerror(e.errno)
root, sys = (os.open(path, os.O_RDONLY) for path in ("/", "/sys"))
node = "infiniband/adv0/node_desc"
print("root", name(root, "sys/class/" + node))
print("sys", name(sys, "class/net/../" + node))
print("stat", os.stat("class/" + node, dir_fd=sys).st_size)
os.chdir("/sys/class")
print("cwd", name(None, node), os.listdir("infiniband"))
os.chdir("net")
print("up", name(None, "../" + node))
os.chdir("/sys/class/infiniband/adv0")
print("inside", name(None, "node_desc"), name(None, "ports/../node_desc"))
os.chdir("/")
class Found(ctypes.Structure):
    _fields_ = [("count", ctypes.c_size_t),
                ("names", ctypes.POINTER(ctypes.c_char_p)),
                ("rest", ctypes.c_char * 256)]
for call in libc.glob, libc.glob64:
    for pattern in b"/sys/class/infiniband/*/node_d*", b"/etc/passw[d]":
        found = Found()
        print("glob", call(pattern, 0, None, ctypes.byref(found)),
              [found.names[i].decode() for i in range(found.count)])
    print("no glob_t", call(b"/sys/class/infiniband/*", 0, None, None))
seen = []
EACH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p,
                        ctypes.c_int, ctypes.c_void_p)
each = EACH(lambda path, *_: seen.append(path) or 0)
libc.nftw(b"/sys/class/infiniband", each, 8, 0)
print("nftw", any(path.endswith(b"/adv0/node_desc") for path in seen))
libc.fopen.restype = libc.freopen.restype = ctypes.c_void_p
libc.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
file = libc.fopen(b"/dev/null", b"r")
print("freopen", libc.freopen(b"/sys/class/infiniband/adv0/node_desc", b"r",
                              file) == file)
list_ = ctypes.c_void_p()
print("scandirat", libc.scandirat(sys, b"class/infiniband",
                                  ctypes.byref(list_), None, None))
"""
SEEN = """root adverb
sys adverb
stat 7
cwd adverb ['adv0']
up adverb
inside adverb adverb
glob 0 ['/sys/class/infiniband/adv0/node_desc']
glob 0 ['/etc/passwd']
no glob_t -1
glob 0 ['/sys/class/infiniband/adv0/node_desc']
glob 0 ['/etc/passwd']
no glob_t -1
nftw True
freopen True
scandirat 3
"""


def calls():
    r = python(CALLS)
    expect(r.status == 0 and r.output == SEEN,
           "a call gives another result than the one in SEEN", r)


def link_in_json():
    t.need("rdma")
    r = run(["rdma", "link", "show", "-j"])
    expect_ok(r)
    [link] = json.loads(r.output)
    expect(link["ifname"] == "adv0" and link["port"] == 1 and
           link["state"] == "ACTIVE" and
           link["physical_state"] == "LINK_UP" and
           link["netdev_index"] == socket.if_nametoindex(link["netdev"]),
           "rdma shows other facts about the link", r)


def a_link_that_is_down():
    """rdma shows the current state of the links of several devices."""
    t.need("rdma")
    lab.wire(here=["10.7.0.1/24"], there=["10.7.0.2/24"])
    try:
        for state, word in (("up", "ACTIVE"), ("down", "DOWN")):
            lab.ip("here", "link set v0 " + state)
            r = run(["rdma", "link", "show"], "--device", "lo,v0")
            expect(re.search(r"^link adv0/1 state ACTIVE .* netdev lo *\n"
                             r"link adv1/1 state %s .* netdev v0 *\n" % word,
                             r.output), "the links are not shown as " + word, r)
        r = run(["rdma", "link", "show", "adv1/1"], "--device", "lo,v0")
        expect(r.status == 0 and "adv0" not in r.output and "adv1" in
               r.output, "rdma does not show adv1 alone", r)
    finally:
        lab.unwire()


def refuses(*words):
    def body():
        t.need("rdma")
        r = run(["rdma", *words])
        expect_failed(r)
        expect("adverb answers only requests for" in r.output and
               "not supported" in r.output,
               "no message says what is answered", r)
    return body


OTHERS = """
import errno, os, socket, struct
def message(kind, flags, seq):
    return struct.pack("=IHHII", 16, kind, flags, seq, 0)
GET, ROUTE, SERVE = 5 << 10 | 1, 16, 2
rdma, own, route = (socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
                    for protocol in (20, SERVE, 0))
for s in rdma, own, route:
    s.bind((0, 0))
    s.settimeout(400)
# Another socket sends a message to rdma before the request, and one after.
stranger = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SERVE)
port = rdma.getsockname()[0]
stranger.sendto(message(GET, 2, 1), (port, 0))
rdma.send(message(GET, 0x305, 2))
try:
    stranger.sendto(message(GET, 2, 3), (port, 0))
    print("let in")
except ConnectionRefusedError:
    print("kept out")
seen = []
while not seen or seen[-1][0] != 3:
    data = rdma.recv(8192)
    seen.append(struct.unpack_from("=IHHI", data)[1:])
print([(kind, seq) for kind, _, seq in seen])
# A copy of the descriptor, by dup, is the same socket.
copy = socket.socket(fileno=os.dup(rdma.fileno()))
copy.sendmsg([message(GET, 1, 4)[:6], message(GET, 1, 4)[6:]])
print(struct.unpack_from("=IHHIIi", rdma.recv(8192))[1:6:2])
# One call sends two messages with two requests each; all four are answered.
import ctypes
libc = ctypes.CDLL(None)
both = message(GET, 0x301, 5) + message(GET, 1, 6)
buffer = ctypes.create_string_buffer(both, len(both))
part = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), len(both))
one = [0, 0, ctypes.addressof(part), 1, 0, 0, 0, 0]
print(libc.sendmmsg(rdma.fileno(), (ctypes.c_size_t * 16)(*one, *one), 2, 0))
seen = []
while len(seen) < 6:
    seen.append(struct.unpack_from("=IHHI", rdma.recv(8192))[3])
print(seen)
# Any number of sockets can be open; the first one still answers.
more = [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
        for _ in range(200)]
for one in rdma, more[0], more[-1]:
    one.send(message(GET, 1, 7))
    print(struct.unpack_from("=IHHI", one.recv(8192))[3])
# Sockets of other netlink protocols are not changed.
own.sendto(b"to myself", (own.getsockname()[0], 0))
print(own.recv(100))
route.send(struct.pack("=IHHIIB15x", 32, 18, 0x301, 5, 0, 0))
print(struct.unpack_from("=IHHI", route.recv(65536))[1:4])
"""


def other_sockets():
    r = python(OTHERS)
    expect(r.status == 0 and r.output ==
           "kept out\n[(5121, 2), (3, 2)]\n(2, 4, -22)\n2\n"
           "[5, 5, 6, 5, 5, 6]\n7\n7\n7\nb'to myself'\n(16, 2, 5)\n",
           "a socket gives another result than expected", r)


BAD = """
import ctypes, mmap, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
rdma = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
part = (ctypes.c_size_t * 2)(1, 16)
message = (ctypes.c_size_t * 7)(0, 0, ctypes.addressof(part), 1, 0, 0, 0)
apart = (ctypes.c_size_t * 7)(0, 0, 1, 1, 0, 0, 0)
fd = rdma.fileno()
# a whole message: sendmmsg cannot store its result, msg_len, in read-only memory
request = ctypes.create_string_buffer(struct.pack("=IHHII", 16, 5121, 1, 1, 0), 16)
whole = (ctypes.c_size_t * 2)(ctypes.addressof(request), 16)
fixed = mmap.mmap(-1, 4096)
fixed[:64] = struct.pack("8N", 0, 0, ctypes.addressof(whole), 1, 0, 0, 0, 0)
fixed_at = ctypes.addressof(ctypes.c_char.from_buffer(fixed))
libc.mprotect(ctypes.c_void_p(fixed_at), 4096, mmap.PROT_READ)
for name, *args in (("getrlimit", 8, 1), ("setrlimit", 8, 1),
                    ("prlimit", 0, 8, None, 1),
                    ("getrlimit", 8, None), ("setrlimit", 8, None),
                    ("send", fd, 1, 16, 0), ("sendto", fd, 1, 16, 0, None, 0),
                    ("sendmsg", fd, 1, 0), ("sendmsg", fd, message, 0),
                    ("sendmsg", fd, apart, 0), ("sendmmsg", fd, 1, 1, 0),
                    ("sendmmsg", fd, ctypes.c_void_p(fixed_at), 1, 0)):
    ctypes.set_errno(0)
    got = getattr(libc, name)(*(ctypes.c_void_p(arg) if arg == 1 else arg
                                for arg in args))
    print(name, got, os.strerror(ctypes.get_errno()))
"""


def bad_addresses(*sandbox):
    """A call of the shim with a bad address fails with EFAULT, as a system call does.
    @sandbox: the words that run the program in a sandbox."""
    r = run([*sandbox, system.PYTHON, "-c", BAD])
    if sandbox and r.status == 77:
        raise Skip("a filter cannot be installed here")
    lines = r.output.splitlines()
    expect(r.status == 0 and len(lines) == 12, "the program ends early", r)
    for line in lines[:3] + lines[5:]:
        expect(line.endswith(" -1 Bad address"), "no EFAULT: " + line, r)
    # As in libc, NULL means that no limit is read or set.
    expect(lines[3] == "getrlimit 0 Success", "NULL fails", r)
    expect(lines[4] == "setrlimit 0 Success", "NULL fails", r)


def memory_lock():
    """The shim shows no limit of locked memory until the program sets one."""
    r = python("""
import resource
def now():
    return "%d %d" % """ + LIMIT + """
def set(*limits):
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, limits)
        return "set"
    except (OSError, ValueError) as e:
        return type(e).__name__
print(now(), resource.prlimit(0, resource.RLIMIT_MEMLOCK))
print(set(-1, -1), now())
print(set(8192, -1), now())
print(set(4096, 4096), now())
print(set(8192, 8192), now())
print(set(2048, 1024), now())
with open("/proc/self/limits") as f:
    print([line.split()[3:5] for line in f if line.startswith("Max locked")])
""")
    expect(r.output == "-1 -1 (-1, -1)\nset -1 -1\nset 8192 -1\n"
           "set 4096 4096\nValueError 4096 4096\nValueError 4096 4096\n"
           "[['4096', '4096']]\n", "the program sees other limits", r)
    # This user may have no limit, so prlimit sets one for the program.
    r = t.run(["prlimit", "--memlock=8192:8192", t.adverb, "run", "--no-shim",
               "--", system.PYTHON, "-c",
               "import resource; print(%s)" % LIMIT])
    expect(r.output == "(8192, 8192)\n",
           "without the shim the program sees another limit", r)


def memory_lock_is_raised():
    """adverb run raises the soft limit of locked memory to the hard limit."""
    r = t.run(["sh", "-c", 'ulimit -S -l 16; ulimit -H -l; exec "$@"', "sh",
               t.adverb, "run", "--no-shim", "--", "sh", "-c", "ulimit -l"])
    hard, soft = r.output.split()
    expect(hard == soft, "the soft limit is not the hard limit", r)


t.case("ls sees the device, and ibstatus and ibstat its port", lambda: [
    says(*one)() for one in (
        (["ls", CLASS], "^adv0\n"), (["ibstatus"], "'adv0' port 1"),
        (["ibstat"], "CA 'adv0'(.|\n)*State: Active(.|\n)*Ethernet"))],
    "shim", "ibstat")
t.case("perftest reads counters", counters_of_perftest, "shim",
       "ib_write_bw")
t.case("--no-shim leaves the shim out", without_it)
t.case("libraries that the user preloads come first, and stay", users_own_come_first)
t.case("run under run changes nothing more", run_under_run)
t.case("the shim is not preloaded into a program of 32 bits",
       programs_of_32_bits)
for words, flags in (("AddressSanitizer", ["-fsanitize=address"]),
                     ("a static AddressSanitizer",
                      ["-fsanitize=address", "-static-libasan"]),
                     ("ThreadSanitizer", ["-fsanitize=thread"]),
                     ("UndefinedBehaviorSanitizer",
                      ["-fsanitize=undefined"])):
    t.case("a program with %s runs, and sees the device" % words,
           sanitized(*flags))
t.case("a program whose sanitizer forbids the shim runs without it", old_sanitizer)
t.case("a program of musl runs without the shim", musl)
t.case("a script gets the libraries that its interpreter needs",
       a_script_of_such_an_interpreter)
t.case("an empty environment is enough", an_empty_environment)
t.case("a program that lists devices is told why there are none", nothing_to_show)
t.case("a program that lists devices is told that the tree is not written", not_written)
t.case("a program that lists devices is told of a folder that is not adverb's", not_ours)
t.case("each of many programs at once sees a whole tree", many_at_once)
t.case("a tree that is right is not written again", written_once)
t.case("relative paths, folders' descriptors, glob and nftw lead to the tree", calls)
for argv, wanted in (
        (["rdma", "link", "show"],
         r"^link adv0/1 state ACTIVE physical_state LINK_UP netdev \S+ *\n$"),
        (["rdma", "-d", "link"], "netdev_index [1-9]"),
        (["rdma", "dev", "show"],
         r"^0: adv0: node_type ca (protocol roce )?fw \S+ node_guid "
         r"[0-9a-f:]{19} sys_image_guid [0-9a-f:]{19} *\n$"),
        (["rdma", "dev", "-d"], "adaptive-moderation off")):
    t.case(" ".join(argv) + " is answered", says(argv, wanted), "shim",
           "rdma")
t.case("rdma link show -j is answered", link_in_json, "shim", "rdma")
t.case("rdma link shows which link is down", a_link_that_is_down)
for argv in (["resource"], ["system"],
             ["link", "add", "rxe0", "type", "rxe", "netdev", "lo"]):
    t.case("rdma %s is refused with a sentence" % " ".join(argv),
           refuses(*argv))
t.case("messages of strangers do not arrive, other netlink sockets are not changed",
       other_sockets)
t.case("a call with a bad address fails with EFAULT", bad_addresses)
t.case("a call with a bad address fails with EFAULT where process_vm_* are refused",
       lambda: bad_addresses(t.program("deny_syscall"),
                             "vm", "process_vm_readv=EPERM", "--"))
t.case("RLIMIT_MEMLOCK limits nothing, until the program sets it",
       memory_lock)
t.case("RLIMIT_MEMLOCK is raised to the user's hard limit",
       memory_lock_is_raised)
lab.end()
t.end()
