#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the shim shows programs that look for devices in /sys and /dev
themselves, by netlink, and of what they may lock."""

import json
import re
import socket

import netlab
import system
from system import expect, expect_ok

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
LIMIT = "resource.getrlimit(resource.RLIMIT_MEMLOCK)"


def run(argv, *options):
    return t.adverb_run(argv, ["--shim", *options])


def python(text):
    return run([system.PYTHON, "-c", text])


def says(argv, *wanted):
    """Each line that is wanted, and nothing that no line wants."""
    def body():
        t.need(argv[0])
        r = run(argv)
        expect_ok(r)
        for want in wanted:
            expect(re.search(want, r.output), "no " + want, r)
        expect("adverb:" not in r.output, "a needless sentence", r)
    return body


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
glob 0 ['/sys/class/infiniband/adv0/node_desc']
glob 0 ['/etc/passwd']
nftw True
freopen True
scandirat 3
"""


def calls():
    r = python(CALLS)
    expect(r.status == 0 and r.output == SEEN, "something else", r)


def link_in_json():
    t.need("rdma")
    r = run(["rdma", "link", "show", "-j"])
    expect_ok(r)
    [link] = json.loads(r.output)
    expect(link["ifname"] == "adv0" and link["port"] == 1 and
           link["state"] == "ACTIVE" and
           link["physical_state"] == "LINK_UP" and
           link["netdev_index"] == socket.if_nametoindex(link["netdev"]),
           "another link", r)


def a_link_that_is_down():
    """It tells the state of now, of several devices."""
    t.need("rdma")
    lab.wire(here=["10.7.0.1/24"], there=["10.7.0.2/24"])
    try:
        for state, word in (("up", "ACTIVE"), ("down", "DOWN")):
            lab.ip("here", "link set v0 " + state)
            r = run(["rdma", "link", "show"], "--device", "lo,v0")
            expect(re.search(r"^link adv0/1 state ACTIVE .* netdev lo *\n"
                             r"link adv1/1 state %s .* netdev v0 *\n" % word,
                             r.output), "not " + word, r)
        r = run(["rdma", "link", "show", "adv1/1"], "--device", "lo,v0")
        expect(r.status == 0 and "adv0" not in r.output and "adv1" in
               r.output, "not this one", r)
    finally:
        lab.unwire()


def refuses(*words):
    def body():
        t.need("rdma")
        r = run(["rdma", *words])
        expect(r.status != 0 and "adverb answers which devices" in r.output
               and "not supported" in r.output, "no sentence", r)
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
    s.settimeout(10)
# A stranger's message that is there before ours, and one that comes after.
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
# A copy is the same socket.
copy = socket.socket(fileno=os.dup(rdma.fileno()))
copy.sendmsg([message(GET, 1, 4)[:6], message(GET, 1, 4)[6:]])
print(struct.unpack_from("=IHHIIi", rdma.recv(8192))[1:6:2])
# So are requests that one call sends, and two in one message.
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
# The program's own are its own.
own.sendto(b"to myself", (own.getsockname()[0], 0))
print(own.recv(100))
route.send(struct.pack("=IHHIIB15x", 32, 18, 0x301, 5, 0, 0))
print(struct.unpack_from("=IHHI", route.recv(65536))[1:4])
"""


def other_sockets():
    r = python(OTHERS)
    expect(r.status == 0 and r.output ==
           "kept out\n[(5121, 2), (3, 2)]\n(2, 4, -22)\n2\n"
           "[5, 5, 6, 5, 5, 6]\nb'to myself'\n(16, 2, 5)\n",
           "something else", r)


def memory_lock():
    """As if there were none, until the program sets one."""
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
           "[['4096', '4096']]\n", "something else", r)
    r = t.adverb_run([system.PYTHON, "-c",
                      "import resource; print(%s)" % LIMIT])
    expect("(-1, -1)" not in r.output, "without it, too", r)


t.case("relative paths, folders' descriptors, glob and nftw", calls)
t.case("ibstat sees the port", says(
    ["ibstat"], "CA 'adv0'(.|\n)*State: Active(.|\n)*Ethernet"), "shim",
    "ibstat")
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
t.case("rdma link tells which is down", a_link_that_is_down)
for argv in (["resource"], ["system"],
             ["link", "add", "rxe0", "type", "rxe", "netdev", "lo"]):
    t.case("rdma %s is refused with a sentence" % " ".join(argv),
           refuses(*argv))
t.case("strangers are kept out, and other sockets left alone", other_sockets)
t.case("RLIMIT_MEMLOCK limits nothing, until the program sets it",
       memory_lock)
lab.end()
t.end()
