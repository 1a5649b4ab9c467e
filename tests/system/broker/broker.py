#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the broker: brokers that are killed under load, many clients, clients
that are killed, a port that another program holds, brokers that are started for a
connection, and programs of which a thread is the broker."""

import contextlib
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
from perftest_check import WITHOUT_END
import system
from system import (brokers, expect, expect_failed, expect_ok, named,
                    port_sockets, serving, wait_until)

netlab.enter()
t = system.Suite(__doc__)
MANY_PROCESSES = t.program("many_processes")
DESTROY_AFTER_RX = t.program("destroy_after_rx")
DENY_SYSCALL = t.program("deny_syscall")
ROCE_PORT = 4791
if not t.options.list:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def end_brokers():
    """Kills all brokers, so that the next case finds the port free."""
    while brokers() or port_sockets():
        for pid in brokers():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass


def without_brokers(body):
    """Returns a case that ends all brokers before and after @body."""
    def go():
        end_brokers()
        try:
            body()
        finally:
            end_brokers()
    return go


def killing(argv, rng, env):
    """Runs a pair and kills each broker that serves the pair, at a random
    moment: some brokers live long enough to take over from the broker before,
    and some do not.  Returns the Result and how many brokers were killed."""
    p = t.start(t.pair_argv(argv, timeout=system.HANG),
                env=t.environment(**env))
    killed = 0
    while p.poll() is None:
        for pid in serving():
            time.sleep(rng.random() ** 4 * 0.2)
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except OSError:
                pass
        time.sleep(0.001)
    return t.finish(p, system.HANG), killed


# A program prints this once if the brokers that it starts are killed one after
# the other.
ENDS = (r"^.*adverb: the broker \S*adverbd has ended \d+ times in a row within "
        r"a second of its start: see what ends it; .*\n")


def survives_kills(argv, **env):
    rng = random.Random(argv[0])

    def once():
        r, killed = killing(argv, rng, env)
        expect_ok(r)
        expect("adverb:" not in re.sub(ENDS, "", r.output, flags=re.M),
               "a program printed another message", r)
        for side in "server", "client":
            expect(len(re.findall(ENDS, "\n".join(r.lines(side)) + "\n",
                                  re.M)) <= 1,
                   "the %s printed the message twice" % side, r)
        return killed

    def body():
        t.need(argv[0])
        system.often_enough(3, once, "brokers were killed")
    return without_brokers(body)


seconds = "20" if t.options.full else "3"
for tool in (["ib_write_bw", "-D", seconds], ["ib_send_lat", "-D", seconds],
             ["ib_read_bw", "-D", seconds],
             ["ibv_rc_pingpong", "-e", "-n", "200000"]):
    name = "%s while its brokers are killed" % tool[0]
    t.case(name, survives_kills(tool), "many processes", name)


name = "ib_send_lat while brokers that forward all packets are killed"
t.case(name, survives_kills(["ib_send_lat", "-D", seconds], ADVERB_BPF="0"),
       "many processes", name)


def newcomers():
    """Short programs run one after the other, while a long transfer runs and the
    brokers are killed."""
    t.need("ib_write_bw")
    t.need("ibv_rc_pingpong")

    def once():
        killed = 0
        load = t.start(t.pair_argv(["ib_write_bw", "-D", "6"],
                                   timeout=system.HANG))
        while load.poll() is None:
            for pid in serving():
                with contextlib.suppress(ProcessLookupError):  # the broker ended
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            expect_ok(t.pair(["ibv_rc_pingpong", "-c", "-n", "100"]))
        expect_ok(t.finish(load, system.HANG))
        return killed
    system.often_enough(3, once, "brokers were killed")


t.case("programs start while brokers are killed", without_brokers(newcomers),
       "many processes", "programs that start while brokers are killed")


def names_a_host(pid):
    """Returns whether the last argument of process @pid is the address of a
    server: then the process is the client of a pair.  The order of the process ids
    does not show which process is the client, since the kernel starts again with
    low ids after pid_max."""
    with open("/proc/%d/cmdline" % pid, "rb") as f:
        return f.read().split(b"\0")[-2] == b"127.0.0.1"


@contextlib.contextmanager
def endless(*options, **env):
    """Runs a pair of ib_write_bw, by packets, that does not end by itself.  Yields the
    process of `adverb pair` when the pair sends."""
    t.need("ib_write_bw")
    p = t.start(t.pair_argv(["ib_write_bw", *WITHOUT_END, *options]),
                env=t.environment(ADVERB_DIRECT="0", **env))
    try:
        t.goes_on("ib_write_bw", p)
        yield p
    finally:
        if p.poll() is None:
            p.terminate()
            t.finish(p, system.HANG)


def stop_server(p, seconds):
    """Stops the server of the running pair @p for @seconds, or until the pair ends,
    and kills the brokers."""
    server = next(p for p in named("ib_write_bw") if not names_a_host(p))
    os.kill(server, signal.SIGSTOP)
    for pid in brokers():
        os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + seconds
    while p.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):  # the pair has ended the server
        os.kill(server, signal.SIGCONT)


def waited_for():
    # In nanoseconds this patience does not fit into 64 bits: the lower 64 bits
    # of it are 0.3 s.
    with endless(ADVERB_PATIENCE="18446744074") as p:
        stop_server(p, 4)
        t.goes_on("ib_write_bw", p)


def given_up():
    # The client prints this message only if the next broker has said before
    # that the peer is alive.  The time in which that broker starts counts as silence
    # of the peer; only time in which the client has no processor does not count.  So
    # the patience is many times as long as a start on a busy machine.
    with endless(ADVERB_PATIENCE="20") as p:
        stop_server(p, system.HANG)
        r = t.finish(p, system.HANG)
    expect("is alive and has been silent for 20 s" in r.output,
           "the client did not give up", r)


t.case("a stopped peer is waited for", without_brokers(waited_for), "many processes",
       "ib_write_bw with a stopped peer")
t.case("a stopped peer is given up when patience ends", without_brokers(given_up))


def arenas(pid):
    """Returns how many arenas a process has mapped, plus how many descriptors
    of arenas it has."""
    with open("/proc/%d/maps" % pid) as f:
        count = sum("adverb-arena" in line for line in f)
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            count += "adverb-arena" in os.readlink("/proc/%d/fd/%s" %
                                                   (pid, fd))
        except OSError:
            pass
    return count


def threads(pid):
    return len(os.listdir("/proc/%d/task" % pid))


def cost(pid):
    """Returns the number of descriptors and the resident KiB of a broker."""
    with open("/proc/%d/status" % pid) as f:
        kib = next(int(line.split()[1]) for line in f
                   if line.startswith("VmRSS:"))
    return len(os.listdir("/proc/%d/fd" % pid)), kib


def many_processes(*words, timeout=800):
    return t.adverb_run([MANY_PROCESSES, *words], timeout=timeout)


# The most descriptors that a broker without clients has beside those of classes.
# Beside mallory.py a broker has more: mallory.py has eight connections at most, with
# six descriptors each, and a few classes that mallory.py has given back still rest.
OWN_FILES = 48 + (64 if t.is_beside_hostile else 0)


def settled(pid):
    """Returns the cost of broker @pid when the broker has noticed all deaths.
    The broker then still has a socket and a page of each class, since a class
    rests before another process gets it, and no object of a client."""
    end = time.monotonic() + system.HANG
    while cost(pid)[0] > 2 * port_sockets() + OWN_FILES:
        expect(time.monotonic() < end, "%d descriptors for %d sockets" %
               (cost(pid)[0], port_sockets()))
        time.sleep(0.01)
    return cost(pid)


def dying_clients():
    rounds = "1000" if t.options.full else "100"
    expect_ok(many_processes("kill-either", "10", "1"))
    pid, = brokers()
    files = lambda: sorted(os.listdir(t.runtime))
    before, left, running = settled(pid), files(), threads(pid)
    expect_ok(many_processes("kill-either", rounds, "2"))
    expect(list(brokers()) == [pid], "the broker has ended, or another runs")
    after = settled(pid)
    expect(after[1] <= before[1] + 512, "%d KiB have become %d" %
           (before[1], after[1]))
    # Each round uses two classes, which rest before other processes get them.
    expect(port_sockets() <= 120, "%d sockets are left" % port_sockets())
    expect(files() == left, "files are left: %s" % files())
    expect(threads(pid) <= running, "%d threads have become %d" %
           (running, threads(pid)))
    expect(not arenas(pid), "%d arenas of the dead are left" % arenas(pid))
    expect(not named("many_processes"),
           "processes are left: %s" % named("many_processes"))


t.case("clients die at random moments, and the broker keeps nothing of them",
       without_brokers(dying_clients), "many processes",
       "clients killed at random moments")


def dying_peers(direct):
    def body():
        r = t.adverb_run(["env", "ADVERB_DIRECT=" + direct, MANY_PROCESSES, "kill-peers",
                          "1000" if t.options.full else "100", "3"], timeout=800)
        expect_ok(r)
    return without_brokers(body)


for name, direct in (("a dead peer's resources are given back", "0"),
                     ("a dead local peer's resources are given back", "1")):
    t.case(name, dying_peers(direct), "many processes", name)


def processes_200():
    r = many_processes("pairs", "200", "50")
    expect_ok(r)
    pid, = brokers()
    before = settled(pid)
    expect_ok(many_processes("pairs", "200", "50"))
    after = settled(pid)
    expect(port_sockets() <= 2 * 200 + 1, "%d sockets are left" % port_sockets())
    expect(after[1] <= before[1] + 512, "%d KiB have become %d" %
           (before[1], after[1]))


t.case("200 processes with 50 queue pairs each work at once", without_brokers(processes_200),
       "many processes", "200 processes with 50 queue pairs each")


def destroy_after_rx(*where):
    def body():
        t.need_no_hostile("sends datagrams, and the program sees its own datagram "
                          "by the count of all that the namespace sends")
        expect_ok(t.run([*where, t.adverb, "run", "--", DESTROY_AFTER_RX,
                         "1000" if t.options.full else "30"],
                        ADVERB_DIRECT="0"))
    return without_brokers(body)


t.case("a request before its queue pair is destroyed is answered",
       destroy_after_rx(),
       "many processes", "destroy_after_rx")
t.case("a request before its queue pair is destroyed is answered, on one core",
       destroy_after_rx("taskset", "-c", "0"), "many processes",
       "destroy_after_rx")


def told(sentence):
    t.need("ibv_rc_pingpong")
    r = t.pair(["ibv_rc_pingpong"])
    expect_failed(r, "the pingpong succeeds, although the port is held")
    expect(sentence in r.output, "no program says: " + sentence, r)


def holder():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.bind(("::", ROCE_PORT))
    return s


def held():
    with t.port_held() as p:
        with open("/proc/%d/comm" % p.pid) as f:
            name = f.read().strip()
        user = os.stat("/proc/%d" % p.pid).st_uid
        told("port 4791 is held by %s (process %d of user %d)" %
             (name, p.pid, user))
    expect_ok(t.pair(["ibv_rc_pingpong"]))


t.case("a message names a program that holds the port", without_brokers(held))


def another_version():
    with holder(), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind("\0adverbd-999")
        s.listen()
        told("port 4791 is held by the broker of another version of adverb")


t.case("a message names a broker of another version that holds the port", without_brokers(another_version))


def listens():
    """Returns whether a broker listens.  00010000 is the flag of a socket that
    listens."""
    with open("/proc/net/unix") as f:
        return any(" 00010000 " in line and "@adverbd-" in line for line in f)


def without_standard_descriptors():
    """A broker that is started without some of the descriptors 0, 1 and 2 keeps
    its listening socket open.  If the broker closed that socket, the next program
    would start a second broker."""
    t.need("ibv_rc_pingpong")
    standard = "<&-", ">&-", "2>&-"
    for bits in range(1, 8):
        closed = " ".join(text for fd, text in enumerate(standard)
                          if bits >> fd & 1)
        subprocess.run(t.unprivileged(
            ["sh", "-c", 'exec "$0" --idle 60 %s &' % closed,
             os.path.join(t.build, "lib", "adverbd")]), check=True)
        wait_until(listens, "the broker does not listen")
        first = brokers().keys()
        expect_ok(t.pair(["ibv_rc_pingpong", "-c"]))
        expect(brokers().keys() == first, "%s: another broker serves: %s" %
               (closed, brokers()))
        end_brokers()


t.case("a broker that is started without standard descriptors serves",
       without_brokers(without_standard_descriptors))


class SocketUnit:
    """A thread that listens at the broker's address and starts a broker for a
    program that connects, as systemd does for a unit with StandardInput=socket."""

    def __init__(self):
        self.program = os.path.join(t.build, "lib", "adverbd")
        said = t.run([self.program, "--version"]).output
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind("\0adverbd-" +
                           re.search(r"\(protocol (\d+)\)", said)[1])
        self.listener.listen(1024)
        self.started = []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.serve)

    def serve(self):
        while not self.is_over.is_set():
            came, _, _ = select.select([self.listener], [], [], 0.01)
            if came and not (self.started and
                             self.started[-1].poll() is None):
                self.started.append(subprocess.Popen(
                    t.unprivileged([self.program, "--foreground", "--idle",
                                    "1"]), stdin=self.listener))
            elif came:
                time.sleep(0.001)  # the running broker will accept the connection

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        self.listener.close()
        for p in self.started:
            p.kill()
            p.wait()


def on_demand():
    """The broker ends when it has no client any more, and the next program
    gets another broker."""
    t.need("ibv_rc_pingpong")
    t.need_no_hostile("connects to the broker, which therefore does not end")
    with SocketUnit() as unit:
        for n in 1, 2:
            expect(len(unit.started) == n - 1, "a broker was started without a client")
            expect_ok(t.pair(["ibv_rc_pingpong", "-c"]))
            expect(len(unit.started) == n, "%d started" % len(unit.started))
            expect(unit.started[-1].wait(system.HANG) == 0,
                   "the broker has failed")
            expect(not brokers(), "other brokers run: %s" % brokers())


t.case("a broker is started for a program that connects to its address",
       without_brokers(on_demand))


def on_demand_and_killed():
    with SocketUnit() as unit, endless("-s", "64") as p:
        end = time.monotonic() + system.HANG
        while not (unit.started and
                   serving().keys() >= {unit.started[-1].pid}):
            expect(time.monotonic() < end, "no broker is started, or none serves")
            time.sleep(0.01)
        for _ in range(3):
            time.sleep(0.5)
            unit.started[-1].kill()
            unit.started[-1].wait()
        t.goes_on("ib_write_bw", p)
        expect(len(unit.started) > 1, "the killed broker has no successor")
        expect(brokers().keys() <= {one.pid for one in unit.started},
               "not all brokers were started through the socket: %s" % brokers())


t.case("the successor of a killed broker is started through the socket, too",
       without_brokers(on_demand_and_killed))


TOLD = ("adverb: the broker /nowhere could not be run: it is missing; a thread "
        "of this program serves instead until it ends; mend what ADVERB_BROKER "
        "names")


def few_files():
    """The pair works, or a message names the limit.  The pair need not work:
    against the limit the kernel also counts the descriptors that other programs
    of the user have in flight."""
    t.need("ibv_rc_pingpong")
    r = t.run(["sh", "-c", 'ulimit -n 20 && exec "$@"', "sh",
               *t.pair_argv(["ibv_rc_pingpong", "-c", "-n", "100"])])
    if r.status:
        expect("ulimit -n" in r.output or "ulimit -Hn" in r.output,
               "no message names the limit", r)
        t.note("refused by a message that names the limit")


t.case("a broker that may have 20 files open serves, or names the limit", without_brokers(few_files))


def as_a_thread(argv, more):
    """Returns a case: a thread of the first program is the broker, and the program
    prints once why.  If that program ends first, a thread of the second program is
    the next broker."""
    def body():
        t.need(argv[0])
        r = t.pair(argv, **more)
        expect_ok(r)
        expect(r.lines("server").count(TOLD) == 1,
               "the server does not print the message once", r)
        expect(r.lines("client").count(TOLD) <= 1,
               "the client prints the message more than once", r)
        expect(r.output.count("adverb:") == r.output.count(TOLD),
               "a program prints another message", r)
        expect(not brokers(), "an adverbd runs", r)
    return without_brokers(body)


for tool in ["ib_write_bw", "-n", "500"], ["ibv_rc_pingpong", "-c", "-e"]:
    name = "%s without adverbd" % tool[0]
    t.case(name, as_a_thread(tool, {"ADVERB_BROKER": "/nowhere"}),
           "many processes", name)


def thread_under_valgrind():
    """Valgrind 3.19 does not know pidfd_open, and prints a message about the
    call; adverb works without the call."""
    r = t.valgrind_run("verbcheck", ADVERB_BROKER="/nowhere")
    expect_ok(r)
    expect(not brokers(), "an adverbd runs", r)


t.case("verbcheck under valgrind without adverbd",
       without_brokers(thread_under_valgrind))


def lacks(what, *more):
    """Returns a case: a pingpong whose two sides run under the filter @what of
    deny_syscall.  @more: further arguments of ibv_rc_pingpong."""
    def body():
        t.need("ibv_rc_pingpong")
        tool = [DENY_SYSCALL, what, "--", "ibv_rc_pingpong", "-c", "-g", "1",
                "-p", "%", *more]
        r = t.run([t.adverb, "pair", "--timeout", "300", "--server", *tool,
                   "--client", *tool, "@"], 310)
        if r.status == 77:
            raise system.Skip("no seccomp filters here")
        expect_ok(r)
        system.expect_silent(r)
    return without_brokers(body)


def through_broker(tool):
    def body():
        t.need(tool[0])
        expect_ok(t.pair(tool, ADVERB_BPF="0"))
    return without_brokers(body)


for tool in (["ib_write_bw", "-n", "200"], ["ib_read_bw", "-n", "200"],
             ["ib_send_bw", "-c", "UD", "-n", "200"]):
    name = "%s through the broker" % " ".join(tool)
    t.case(name, through_broker(tool), "many processes", name)
name = "ibv_rc_pingpong where no BPF program steers datagrams"
t.case(name, lacks("bpf"), "many processes", name)
name = "ibv_rc_pingpong where there is no IPv6"
t.case(name, lacks("ipv6"), "many processes", name)
name = "ibv_rc_pingpong where msync is refused"
t.case(name, lacks("msync"), "many processes", name)
name = "ibv_rc_pingpong as a service of systemd, by @system-service"
t.case(name, lacks("debug"), "many processes", name)
t.end()
