#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures adverb and the kernel's rxe, or siw, with perftest and cmtime, of which
both ends run in one guest.

    speed.py [--siw] [--build DIR] [--rounds N] [--only WORD] [--docs]

Prints a table; --docs writes that of rxe into docs/perf/vm.md.  For each row adverb
and the kernel run N times, in turns, and the table has the medians.  rxe and siw use
the guest's own address.  adverb uses lo in a network namespace of its own, and sends
packets.  adverb and rxe have a path MTU of 4096; adverb and siw have TCP connections
over lo, without CRC.  The guest's CPU is emulated: the figures compare adverb and
the kernel, and do not hold for a real machine."""

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import threading

import guest

INSIDE = "/tmp/adverb"
SETUP = (
    "/sbin/ip netns add a; /sbin/ip -n a link set lo up; "
    "ip link set eth0 mtu 9000; mkdir -p /tmp/run; chmod 700 /tmp/run; %(mtu)s")
READY = "until ibv_devinfo | grep -q 'active_mtu:.*4096'; do usleep 20000; done"
RUN = "env XDG_RUNTIME_DIR=/tmp/run ADVERB_DIRECT=0 %s/tools/adverb run -- " % INSIDE
SIDES = {
    "rxe": {
        "adverb": ("/sbin/ip netns exec a ", RUN, "-d adv0 -x 1", "127.0.0.1"),
        "rxe": ("", "", "-d rxe0 -x 1", guest.THERE),
    },
    "siw": {
        # two ends of siw use no CRC, unless siw's parameters say otherwise
        "adverb": ("/sbin/ip netns exec a ",
                   "env ADVERB_DEVICES=iwarp:lo ADVERB_MPA=nocrc " + RUN,
                   "-d iw0 -R", "127.0.0.1"),
        "siw": ("", "", "-d siw0 -R", guest.THERE),
    },
}
LAT, BW, CM = range(3)


def rows(peer):
    for verb in "send", "write", "read":
        for size in 2, 4096, 65536:
            yield LAT, "ib_%s_lat" % verb, size, "-n 300"
    if peer == "rxe":
        yield LAT, "ib_atomic_lat", 8, "-n 300"
    for verb in "send", "write", "read":
        # adverb's code is part of each process, and the code of rxe or siw is
        # part of the kernel.  The emulator translates the code of each new
        # process again, and the kernel's code only once.  With so many messages
        # the time of the translation does not change the result.
        for size, times in (64, 20000), (4096, 5000), (65536, 1000), \
                (1 << 20, 100):
            yield BW, "ib_%s_bw" % verb, size, "-n %d" % times
    yield CM, "cmtime", 200, ""


def put(vm, paths):
    """Copies files and folders of this machine into the guest's INSIDE."""
    server = socket.create_server((guest.HERE, 0))

    def send():
        to, _ = server.accept()
        words = [w for base, names in paths for w in ("-C", base, *names)]
        subprocess.run(["tar", "-ch", *words], check=True,
                       stdout=to.fileno())
        to.close()
    thread = threading.Thread(target=send)
    thread.start()
    status, text = vm.run("mkdir -p %s && nc %s %d | tar -x -C %s" % (
        INSIDE, guest.HERE, server.getsockname()[1], INSIDE), 120)
    thread.join()
    if status:
        sys.exit("adverb cannot be copied into the guest:\n" + text)


def line(side, kind, tool, size, more, port):
    """Returns a shell command that runs both ends of a tool in the guest; @side
    is a value of SIDES[peer]."""
    netns, run, device, address = side
    before = ""
    if kind == CM:
        end = "%scmtime -c %d -p %d" % (run, size, port)
        # the server of cmtime does not end by itself
        ready, client = "sleep 2", end + " -s %s; kill \\$!" % address
    else:
        size = "" if "atomic" in tool else "-s %d" % size
        end = "%s%s %s -p %d -u 20 %s %s" % (run, tool, device, port, size,
                                             more)
        ready = ("n=0; until cat /proc/net/tcp /proc/net/tcp6 | grep -q "
                 "':%04X [0-9A-F:]* 0A' || [ \\$n = 500 ]; do "
                 "usleep 20000; n=\\$((n+1)); done" % port)
        client = end + " " + address
    if kind != CM and device.endswith("-R"):
        # pace.c holds the client's second rdma_connect until the server listens a
        # second time.
        before = ("touch /tmp/{0}; ln -s {0}.listens /tmp/{0}.connect; export "
                  "LD_PRELOAD=/pace.so PACE=/tmp/{0}; ").format(port)
    return before + "%ssh -c \"%s >/tmp/server 2>&1 & %s; %s; wait\"" % (
        netns, end, ready, client)


def figure(kind, size, text):
    """Returns the result of a run: µs, MiB/s, or connections per second; None if
    the output has no result."""
    if kind == CM:
        total = sum(float(ms) for ms in re.findall(
            r"^[a-z ]+:\s+([\d.]+)", text, re.M))
        return size / total * 1e3 if total else None
    for words in (words.split() for words in text.splitlines()):
        if len(words) >= 4 and words[0].isdigit() and words[1].isdigit():
            return float(words[4 if kind == LAT else 3])
    return None


def row(kind, tool, size, got):
    """Returns a row of the table, computed from the rounds in which both adverb
    and the kernel had a result."""
    both = [pair for pair in zip(*got.values()) if None not in pair]
    unit = ("µs", "MiB/s", "a second")[kind]
    if not both:
        return "| %s | %d | | | %s | | 0 |" % (tool, size, unit)
    ours, theirs = (statistics.median(side) for side in zip(*both))
    ratio = theirs / ours if kind == LAT else ours / theirs
    return "| %s | %d | %.1f | %.1f | %s | %.2f | %d |" % (
        tool, size, ours, theirs, unit, ratio, len(both))


HEAD = "| tool | bytes | adverb | %s | unit | adverb is better by a factor of " \
    "| rounds |\n|---|---|---|---|---|---|---|"
PAGE = os.path.join(guest.ROOT, "docs", "perf", "vm.md")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def load():
    with open("/proc/loadavg") as f:
        return float(f.read().split()[0])


def measure(vm, arg):
    sides = SIDES[vm.rdma]
    ports = iter(range(18000, 30000))
    build = os.path.abspath(arg.build)
    put(vm, [(build, ["tools/adverb", "lib"])])
    status, text = vm.run(SETUP % {
        "mtu": READY if vm.rdma == "rxe" else ""}, 120)
    if status:
        sys.exit("the guest cannot be prepared for the programs:\n" + text)
    lines = []
    for kind, tool, size, more in rows(vm.rdma):
        if arg.only not in "%s %d" % (tool, size):
            continue
        got = {name: [] for name in sides}
        for _ in range(arg.rounds):
            for side, figures in got.items():
                words = line(sides[side], kind, tool, size, more,
                             next(ports))
                status, text = vm.run(words, 200)
                figures.append(figure(kind, size, text))
                if figures[-1] is None:
                    print("%s: %s" % (words, text), file=sys.stderr)
        lines.append(row(kind, tool, size, got))
        print(lines[-1], flush=True)
    return lines


def write_page(vm, lines, loads):
    release = vm.run("uname -r")[1].strip()
    with open(PAGE) as page:
        before, _, rest = page.read().partition(BEGIN)
    said = "Linux %s in the guest; the machine's load was %.1f to %.1f." % (
        release, min(loads), max(loads))
    with open(PAGE, "w") as page:
        page.write("\n".join([before + BEGIN, said, "", HEAD % vm.rdma, *lines,
                              END + rest.partition(END)[2]]))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--siw", action="store_true")
    arg = parser.parse_args()
    if arg.docs and arg.siw:
        parser.error("docs/perf/vm.md has figures of rxe alone")
    why = guest.missing() or arg.siw and guest.missing_siw()
    if why:
        sys.exit("speed.py: " + why)
    if "TEST_INTEROP" not in os.environ:
        os.execvpe("unshare", ["unshare", "-Urn", sys.executable, *sys.argv],
                   dict(os.environ, TEST_INTEROP="1"))
    vm = guest.Guest(rdma="siw" if arg.siw else "rxe")
    try:
        print(HEAD % vm.rdma, flush=True)
        loads = [load()]
        lines = measure(vm, arg)
        loads.append(load())
        if arg.docs:
            write_page(vm, lines, loads)
    finally:
        vm.end()


if __name__ == "__main__":
    main()
