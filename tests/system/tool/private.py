#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `adverb run --private` and `adverb pair --private`, by which any user can
run programs in a new network namespace."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import system
from system import PYTHON, await_output, expect, expect_ok

t = system.Suite(__doc__)
LOOK = ("import os, socket, sys; print(os.stat('/proc/self/ns/net').st_ino,"
        " *sorted(n for _, n in socket.if_nameindex()), os.geteuid(),"
        " os.getegid(), flush=True); sys.stdin.read()")
OURS = os.stat("/proc/self/ns/net").st_ino
# The user and group of the programs (Suite.unprivileged).
USER, GROUP = (system.NOBODY, system.NOBODY) if system.is_root() else \
    (os.geteuid(), os.getegid())


def start(*words, **options):
    return t.start([t.adverb, "run", "--private", "--", *words], **options)


def private(*words, **options):
    return t.finish(start(*words, **options), system.HANG)


def one_of_its_own():
    """Both programs run until both have printed: the kernel may give the number of
    a namespace that has ended to a new one."""
    programs = [start(PYTHON, "-c", LOOK, stdin=subprocess.PIPE)
                for _ in range(2)]
    for p in programs:
        await_output(p, 1)
    seen = set()
    for p in programs:
        r = t.finish(p, system.HANG)  # closes stdin
        if "no private network namespace" in r.output:
            raise system.Skip("no network namespace can be made")
        expect_ok(r)
        net, *names, user, group = r.output.split()
        expect(int(user) == USER and int(group) == GROUP,
               "the program runs as another user", r)
        expect("lo" in names and all(re.match("lo|tunl|sit|ip6|gre|erspan",
                                              name) for name in names),
               "the namespace has more than loopback", r)
        seen.add(int(net))
    expect(len(seen | {OURS}) == 3, "two runs share a network namespace, or a "
           "run is in the namespace of this script")


def rights_over_the_namespace():
    """A program, and the programs that it starts, may configure the namespace:
    they have CAP_NET_ADMIN and CAP_NET_RAW, and no other capability if the user
    is an ordinary one."""
    want = 1 << 12 | 1 << 13
    r = private("sh", "-c", "cat /proc/self/status")
    if "no private network namespace" in r.output:
        raise system.Skip("no network namespace can be made")
    expect_ok(r)
    effective = int(re.search(r"^CapEff:\s+(\w+)", r.output, re.M).group(1), 16)
    expect(effective & want == want, "the rights are missing", r)
    if USER:
        expect(effective == want, "the program has further rights", r)
    if shutil.which("ip"):
        expect_ok(private("sh", "-c", "ip link set lo mtu 1500 && "
                          "ip address add 10.9.0.1/24 dev lo"))


def not_a_strangers_port():
    """adverb pair --private works although a program of the caller's namespace
    has port 4791."""
    t.need("ibv_rc_pingpong")
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        with contextlib.suppress(OSError):  # another program has the port
            s.bind(("::", 4791))
        r = t.run(t.pair_argv(["ibv_rc_pingpong", "-c", "-n", "100"],
                              options=["--private"]))
        if "no private network namespace" in r.output:
            raise system.Skip("no network namespace can be made")
        expect_ok(r)


def forbidden():
    """A user without capabilities, in a user namespace in which no further
    namespace can be made, gets a message."""
    r = private("true", into=lambda words: [
        "unshare", "-Ur", "sh", "-c",
        "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv "
        "--bounding-set=-all --inh-caps=-all \"$@\"", "sh", *words])
    if "unshare:" in r.output or "setpriv:" in r.output:
        raise system.Skip("no user namespace can be made")
    expect(r.status == 126 and re.fullmatch(
        r"adverb: no private network namespace: unshare fails: .*; look at "
        r"the sysctls user.max_user_namespaces, .*\n", r.output),
        "no message says why the namespace cannot be made", r)


t.case("run --private runs each program in a new namespace, as the same user",
       one_of_its_own)
t.case("programs of run --private may configure the namespace",
       rights_over_the_namespace)
t.case("pair --private works although another program has port 4791",
       not_a_strangers_port)
t.case("run --private says why no namespace can be made", forbidden)
t.end()
