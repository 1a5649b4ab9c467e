#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the shim shows programs that look for devices in /sys and /dev
themselves, and of what they may lock."""

import system
from system import expect

t = system.Suite(__doc__)
LIMIT = "resource.getrlimit(resource.RLIMIT_MEMLOCK)"


def python(text):
    return t.adverb_run([system.PYTHON, "-c", text], ["--shim"])


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
t.case("RLIMIT_MEMLOCK limits nothing, until the program sets it",
       memory_lock)
t.end()
