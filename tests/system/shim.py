#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the shim shows programs that look for devices in /sys and /dev
themselves."""

import system
from system import expect

t = system.Suite(__doc__)


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


t.case("relative paths, folders' descriptors, glob and nftw", calls)
t.end()
