#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests connections of rdma_cm while a process or a broker dies, a backlog is
full, or messages are malformed.  The program talker makes these connections,
without queue pairs.  Also tests transfers whose peer is stopped, ends or
disconnects.  The two namespaces have a broker each."""

import contextlib
import os
import random
import socket
import signal
import sys
import threading
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import icrc_check
import netlab
import system
from system import HANG, Result, expect, expect_failed, expect_ok, spin

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
talker = t.program("talker")
HERE, THERE, PORT = "10.1.0.1", "10.1.0.2", "7000"
STRANGER = "10.1.0.3"  # another address in the namespace `there`
QUICK = not t.options.full


class Talker:
    """A running talker, whose lines are collected as they come.  @through: the words
    that start another program than talker, or start talker by another program."""

    def __init__(self, side, *words, through=(talker,), **env):
        self.said = []
        self.news = threading.Condition()
        self.process = lab.start(side, [*through, *map(str, words)], **env)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            with self.news:
                self.said.append(line.decode(errors="replace").rstrip())
                self.news.notify_all()
        with self.news:
            self.said.append("(end of output)")
            self.news.notify_all()

    def wait(self, text, seconds=HANG):
        """Waits until the talker has printed a line that begins with @text.  Fails
        after @seconds, or if the talker ends without such a line."""
        with self.news:
            done = self.news.wait_for(
                lambda: any(line.startswith(text) for line in self.said) or
                self.said[-1:] == ["(end of output)"], seconds)
            expect(done and any(line.startswith(text) for line in self.said),
                   "the talker never prints " + text,
                   Result(0, "\n".join(self.said[-8:])))

    def kill(self):
        if self.process.poll() is None:
            # The process may end after poll().
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def connected(server, client, count):
    """Makes @count connections from side @client to side @server, and waits
    until they are established at both ends.  Returns both talkers."""
    lab.unwire()
    lab.wire("v0", 1500, (HERE + "/24",), (THERE + "/24",))
    s = Talker(server, "serve", HERE if server == "here" else THERE, PORT)
    s.wait("listening")
    c = Talker(client, "call", HERE if server == "here" else THERE, PORT,
               count)
    c.wait("RDMA_CM_EVENT_CONNECT_RESPONSE %d " % count)
    s.wait("RDMA_CM_EVENT_ESTABLISHED %d " % count)
    return s, c


def brokers(side):
    return system.brokers(lab.there.pid if side == "there" else "self")


def kill_brokers(*sides):
    for side in sides:
        found = brokers(side)
        expect(found, "there is no broker " + side)
        for pid in found:
            os.kill(pid, signal.SIGKILL)


def resident(side):
    """Returns how many bytes of memory the brokers of a side have resident."""
    total = 0
    for pid in brokers(side):
        with open("/proc/%d/statm" % pid) as f:
            total += int(f.read().split()[1]) * 4096
    return total


def lost(side):
    """Returns how many datagrams to UDP port 4791 were dropped because the
    buffer of their socket was full."""
    pid = lab.there.pid if side == "there" else "self"
    total = 0
    for table in "udp", "udp6":
        with open("/proc/%s/net/%s" % (pid, table)) as f:
            total += sum(int(words[-1]) for words in (line.split()
                                                      for line in f)
                         if words[1].endswith(":12B7"))
    return total


def signal_all(pids, number):
    for pid in pids:
        os.kill(pid, number)


def waits_in_socket(side):
    """Returns whether a socket of UDP port 4791 has bytes in its receive
    buffer."""
    pid = lab.there.pid if side == "there" else "self"
    for table in "udp", "udp6":
        with open("/proc/%s/net/%s" % (pid, table)) as f:
            for words in (line.split() for line in f):
                if words[1].endswith(":12B7") and \
                        int(words[4].split(":")[1], 16):
                    return True
    return False


def sleeps(pid):
    """Returns whether all threads of a process sleep."""
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, task)) as f:
            if f.read().rsplit(")", 1)[1].split()[0] != "S":
                return False
    return True


def case(name, body):
    def go():
        t.need("unshare")
        began = []
        try:
            body(began)
        finally:
            for talker in began:
                talker.kill()
    t.case(name, go, "rdma_cm", "connection management")


def deaths():
    def death(server, client, victim, killed=()):
        """Returns a case: when @victim dies, its peer gets DISCONNECTED for all
        connections, even if the brokers of the @killed sides died before."""
        def body(began):
            s, c = connected(server, client, 20)
            began += [s, c]
            if killed:
                kill_brokers(*killed)
                # Wait until the successors know all connections.
                for talker in s, c:
                    talker.process.send_signal(signal.SIGUSR1)
                    talker.wait("has a port")
            dead, other = (s, c) if victim == "server" else (c, s)
            os.killpg(dead.process.pid, signal.SIGKILL)
            other.wait("RDMA_CM_EVENT_DISCONNECTED 20 ")
        return body

    def at_once(side, began):
        """After a server's death its peer disconnects another connection.  The
        peer gets DISCONNECTED for all connections to the dead server before the
        broker ends the TimeWait of the other connection, which lasts for half a
        second by the broker's clock."""
        rewire()
        s = Talker("here", "serve", HERE, PORT)
        other = Talker("here", "serve", HERE, int(PORT) + 1)
        began += [s, other]
        s.wait("listening")
        other.wait("listening")
        c = Talker(side, "call-two", HERE, PORT, 20)
        began.append(c)
        c.wait("RDMA_CM_EVENT_CONNECT_RESPONSE 21 ")
        s.wait("RDMA_CM_EVENT_ESTABLISHED 20 ")
        # The talker prints CONNECT_RESPONSE before it calls rdma_establish.
        other.wait("RDMA_CM_EVENT_ESTABLISHED 1 ")
        s.kill()
        c.process.send_signal(signal.SIGUSR1)
        c.wait("RDMA_CM_EVENT_TIMEWAIT_EXIT 1 ")
        words = [line.split(" status")[0] for line in c.said]
        expect("RDMA_CM_EVENT_DISCONNECTED 21" in
               words[:words.index("RDMA_CM_EVENT_TIMEWAIT_EXIT 1")],
               "not all connections are disconnected before TIMEWAIT_EXIT",
               Result(0, "\n".join(c.said)))

    def together(side):
        """Returns a case: the client's broker dies first, then the client.
        Another process of the user starts the next broker, which reports that
        the client has ended."""
        def body(began):
            other = "there" if side == "here" else "here"
            s, c = connected(other, side, 20)
            keeper = Talker(side, "serve", HERE if side == "here" else THERE,
                            int(PORT) + 1)
            began += [s, c, keeper]
            keeper.wait("listening")
            # The client is stopped, so it does not start a broker.
            os.kill(c.process.pid, signal.SIGSTOP)
            kill_brokers(side)
            os.killpg(c.process.pid, signal.SIGKILL)
            s.wait("RDMA_CM_EVENT_DISCONNECTED 20 ")
        return body

    sides = ("here", "here"), ("here", "there"), ("there", "here")
    for side in "here", "there":
        case("a server dies: its peer %s is disconnected in half a second" %
             side, lambda began, side=side: at_once(side, began))
    for side in "here", "there":
        case("the broker %s is killed, then its client" % side,
             together(side))
    for server, client in sides:
        for victim in "server", "client":
            case("a %s %s dies: its peer %s is disconnected" %
                 (victim, server if victim == "server" else client,
                  client if victim == "server" else server),
                 death(server, client, victim))
    for killed in ("here",), ("there",), ("here", "there"):
        for victim in "server", "client":
            case("brokers %s are killed, then the %s dies" %
                 (" and ".join(killed), victim),
                 death("here", "there", victim, killed))


def unlooked():
    """A stopped program does not answer a DREQ.  The peer's broker repeats the DREQ
    until the program continues or the broker gives up."""
    def begun(began, **env):
        rewire()
        s = Talker("here", "serve", HERE, PORT)
        other = Talker("here", "serve", HERE, int(PORT) + 1)
        began += [s, other]
        s.wait("listening")
        other.wait("listening")
        c = Talker("there", "call-two", HERE, PORT, 1, **env)
        began.append(c)
        c.wait("RDMA_CM_EVENT_CONNECT_RESPONSE 2 ")
        other.wait("RDMA_CM_EVENT_ESTABLISHED 1 ")
        os.killpg(other.process.pid, signal.SIGSTOP)
        c.process.send_signal(signal.SIGUSR1)
        return c, other

    def given_up(began):
        c, _ = begun(began, ADVERB_CM_FAST="1")
        c.wait("RDMA_CM_EVENT_DISCONNECTED 1 status -110")
        c.wait("adverb: rdma_disconnect: the program at")

    def answered(killed):
        def body(began):
            c, other = begun(began)
            kill_brokers(*killed)
            os.killpg(other.process.pid, signal.SIGCONT)
            c.wait("RDMA_CM_EVENT_DISCONNECTED 1 status 0")
        return body

    case("a stopped program is given up: DISCONNECTED with -110", given_up)
    case("a stopped program goes on: DISCONNECTED", answered(()))
    for killed in ("here",), ("there",), ("here", "there"):
        case("a stopped program goes on, and brokers %s were killed: "
             "DISCONNECTED" % " and ".join(killed), answered(killed))


def silences():
    """A peer in another namespace is stopped, ends or disconnects.  With the
    timeouts of the queue pair alone, a transfer would fail within two seconds."""
    def begun(words, **env):
        lab.unwire()
        lab.wire("v0", 1500, (HERE + "/24",), (THERE + "/24",))
        pair = lab.begin(words, words + [HERE], server_env=env, client_env=env)
        lab.wait(lambda: t.packets_sent(words[0]) > 1000 or
                 pair[1].poll() is not None, "there is no transfer", HANG)
        return pair

    def stopped(began):
        # The transfer would take too long to end by itself; the case ends it.
        words = ["ibv_rc_pingpong", "-g", "1", "-p", "%", "-n", "100000000"]
        pair = server, client = begun(words)
        try:
            os.killpg(server.pid, signal.SIGSTOP)
            time.sleep(4)
            sent = t.packets_sent(words[0])
            expect(client.poll() is None,
                   "the client does not wait for the stopped server")
            os.killpg(server.pid, signal.SIGCONT)
            # The case does not wait for the end of the transfer, which takes
            # minutes on a busy machine.
            lab.wait(lambda: t.packets_sent(words[0]) > sent + 1000 or
                     client.poll() is not None, "the transfer does not go on",
                     HANG)
            expect(client.poll() is None,
                   "the client has ended before the transfer went on")
        finally:
            for p in pair:
                os.killpg(p.pid, signal.SIGKILL)
                t.finish(p, 5)

    # The client of this pair nearly always has a request outstanding.  An end that
    # only waits for a message cannot tell a stop or the end of its peer from a pause.
    asking = ["ib_read_lat", "-x", "1", "-p", "%", "-n", "10000000"]

    def strictly(began):
        server, client = begun(asking, ADVERB_STRICT="1")
        os.killpg(server.pid, signal.SIGSTOP)
        r = t.finish(client, HANG)
        os.killpg(server.pid, signal.SIGKILL)
        t.finish(server, 5)
        expect_failed(r)
        expect("no answer from the peer" in r.output and "tries" in r.output,
               "no message says that the retries ran out", r)

    def gone(began):
        pair = begun(asking)
        # The keeper is a second client of the broker, so the broker does not
        # end.
        keeper = Talker("here", "serve", HERE, PORT)
        began.append(keeper)
        keeper.wait("listening")
        os.killpg(pair[0].pid, signal.SIGKILL)
        r = t.finish(pair[1], HANG)
        t.finish(pair[0], 5)
        expect_failed(r)
        expect("has ended" in r.output,
               "no message says that the peer has ended", r)

    def disconnects(began):
        """The peer has disconnected by rdma_cm, so the request fails without a wait
        for ADVERB_PATIENCE, which is longer here than any program may run."""
        rewire()
        program = t.program("peer_left")
        s = Talker("here", "serve", HERE, PORT, through=[program])
        began.append(s)
        s.wait("listening")
        r = lab.run("there", [program, "call", HERE, PORT],
                    ADVERB_PATIENCE=str(2 * HANG))
        expect_ok(r)
        expect("RDMA_CM_EVENT_DISCONNECTED" in r.output and
               "status 12" in r.output,
               "the client's request does not end with RETRY_EXC", r)
        expect("has disconnected" in r.output,
               "no message says that the peer has disconnected", r)

    case("a peer in another namespace disconnects: a message about the "
         "request says so", disconnects)
    case("a peer in another namespace is stopped: its peer waits", stopped)
    case("a peer in another namespace is stopped: with ADVERB_STRICT the "
         "request fails", strictly)
    case("a peer in another namespace ends: a message says so", gone)


def rewire():
    lab.unwire()
    lab.wire("v0", 1500, (HERE + "/24",), (THERE + "/24",))


def loops(side, count, port=PORT, **env):
    r = lab.run(side, [talker, "loop", HERE, port, str(count)], **env)
    expect(r.status == 0, "not all %d connections are made" % count,
           Result(0, r.output[-2000:]))


def many_connections():
    """Makes many connections, one after another and at once.  The brokers free
    the memory of connections that have ended."""
    one, many = (300, 1200) if QUICK else (10000, 4000)

    def body(began):
        rewire()
        s = Talker("here", "serve", HERE, PORT)
        began.append(s)
        s.wait("listening")
        done = 0

        def connect_at_once():
            """Makes @many connections at once and ends them all at once.  Then at
            least as many connections are in TimeWait as at any time during
            loops()."""
            nonlocal done
            c = Talker("there", "call", HERE, PORT, many)
            began.append(c)
            # Wait for the last RTU: if the client were killed before, its
            # last connection would be rejected, not disconnected.
            done += many
            s.wait("RDMA_CM_EVENT_ESTABLISHED %d " % done)
            c.kill()
            s.wait("RDMA_CM_EVENT_DISCONNECTED %d " % done)

        def sizes(number):
            # The broker answers the talker's request for a port after it has
            # handled all events that came before the request.
            s.process.send_signal(signal.SIGUSR1)
            s.wait("has a port %d" % number)
            return resident("here"), resident("there")

        connect_at_once()
        before = sizes(1)
        for _ in range(4):
            loops("there", one)
            done += one
        connect_at_once()
        for b, a in zip(before, sizes(2)):
            # A connection is in TimeWait for half a second after its end: the last
            # @many connections are in TimeWait, and as many others may be.  A struct
            # conv has at most 512 bytes.
            expect(a <= b + 512 * 2 * many + (128 << 10),
                   "a broker has grown from %d bytes to %d" % (b, a))
    case("%d connections at once, %d one after another, and at once again; "
         "the brokers do not grow" % (many, 4 * one), body)

    def small(began):
        """Both ends are on one host, so the broker sends all messages to
        itself.  The broker's receive buffer has the kernel's default size, with
        room for only a few hundred messages."""
        rewire()
        less = [t.program("deny_syscall"), "rcvbuf",
                "--", talker]
        s = Talker("here", "serve", HERE, PORT, through=less)
        began.append(s)
        s.wait("listening")
        callers = [Talker("here", "call", HERE, PORT, many // 4, through=less)
                   for _ in range(4)]
        began += callers
        s.wait("RDMA_CM_EVENT_ESTABLISHED %d " % many)
        for c in callers:
            c.kill()
        s.wait("RDMA_CM_EVENT_DISCONNECTED %d " % many)
        expect(lost("here") == 0, "%d datagrams are dropped since a receive "
               "buffer is full" % lost("here"))
    case("%d connections at once within a host, whose ends die together: no "
         "message is lost" % many, small)

    def slow(began):
        """Both ends use the same broker.  The broker does not repeat a message
        that a stopped program has not answered yet."""
        t.need_no_hostile("sends datagrams that are counted")
        rewire()
        s = Talker("here", "serve", HERE, PORT)
        began.append(s)
        s.wait("listening")
        before = lab.messages("here")
        os.killpg(s.process.pid, signal.SIGSTOP)
        c = Talker("here", "call", HERE, PORT, 20)
        began.append(c)
        c.wait("RDMA_CM_EVENT_ROUTE_RESOLVED 20 ")
        time.sleep(1.2)  # in this time each message could be repeated twice
        os.killpg(s.process.pid, signal.SIGCONT)
        s.wait("RDMA_CM_EVENT_ESTABLISHED 20 ")
        os.killpg(s.process.pid, signal.SIGSTOP)
        c.kill()
        time.sleep(1.2)
        os.killpg(s.process.pid, signal.SIGCONT)
        s.wait("RDMA_CM_EVENT_DISCONNECTED 20 ")
        s.process.send_signal(signal.SIGUSR1)
        s.wait("has a port")  # the broker has sent all answers before
        said = lab.messages("here") - before
        # Any other packet of the namespace adds a fraction of a message.
        expect(99 < said < 101, "%g messages instead of 100" % said)
    case("20 connections to a slow program within a host: no message is sent "
         "twice", slow)

    def busy(began):
        rewire()
        s = Talker("here", "serve", HERE, PORT)
        began.append(s)
        s.wait("listening")
        busy_ones = [spin(HANG) for _ in range(4)]
        try:
            loops("there", one)
        finally:
            for n in busy_ones:
                n.kill()
                n.wait()
    case("%d connections are made beside four busy processes" % one, busy)


def storms():
    """Brokers are killed while connections are made and ended."""
    def body(side):
        def go(began):
            rewire()
            s = Talker("here", "serve", HERE, PORT)
            began.append(s)
            s.wait("listening")
            loops("there", 1)
            c = Talker("there", "loop", HERE, PORT, 60)
            began.append(c)
            for n in range(10, 60, 10):
                c.wait("RDMA_CM_EVENT_CONNECT_RESPONSE %d " % n)
                for pid in brokers(side):
                    os.kill(pid, signal.SIGKILL)
            c.wait("(end of output)")
            expect(c.process.wait() == 0, "exit status %d" %
                   c.process.returncode, Result(0, "\n".join(c.said[-8:])))
        return go
    for side in "here", "there":
        case("connections are made and ended while brokers %s are killed" % side,
             body(side))


def lost_ports():
    """The broker of a stopped program dies, and another program starts the broker's
    successor before the stopped program goes on."""
    def replaced(began):
        """Returns the stopped program, which listens at PORT."""
        rewire()
        s = Talker("here", "serve", HERE, PORT)
        keeper = Talker("here", "serve", HERE, int(PORT) + 1)
        began += [s, keeper]
        s.wait("listening")
        keeper.wait("listening")
        os.killpg(s.process.pid, signal.SIGSTOP)
        old = brokers("here")
        kill_brokers("here")
        lab.wait(lambda: brokers("here") and brokers("here") != old,
                 "the broker has no successor", HANG)
        keeper.process.send_signal(signal.SIGUSR1)
        keeper.wait("has a port")
        return s

    def taken(began):
        s = replaced(began)
        other = Talker("here", "serve", HERE, PORT)
        began.append(other)
        other.wait("listening")
        os.killpg(s.process.pid, signal.SIGCONT)
        s.wait("RDMA_CM_EVENT_DEVICE_REMOVAL 1 ")
        expect(any("does not give port %s back" % PORT in line
                   for line in s.said), "no message names the port",
               Result(0, "\n".join(s.said)))

    case("another program takes the port of a broker that died: the listener "
         "gets DEVICE_REMOVAL", taken)


def refusals():
    def refused(began):
        rewire()
        s = Talker("here", "refuse", HERE, PORT)
        began.append(s)
        s.wait("listening")
        c = Talker("there", "call", HERE, PORT, 10)
        began.append(c)
        c.wait("RDMA_CM_EVENT_REJECTED 10 status 28")

    def full(began):
        rewire()
        s = Talker("here", "ignore", HERE, PORT, 4)
        began.append(s)
        s.wait("listening")
        c = Talker("there", "call", HERE, PORT, 10, ADVERB_CM_FAST="1")
        began.append(c)
        c.wait("RDMA_CM_EVENT_UNREACHABLE 6 status -110")
        s.kill()  # the server's backlog has the requests of the other four
        c.wait("RDMA_CM_EVENT_REJECTED 4 status 28")

    def in_time(began):
        """The request comes to the broker's socket before the program asks the
        broker to listen, and the listener gets the request."""
        rewire()
        s = Talker("here", "bind", HERE, PORT)
        began.append(s)
        s.wait("bound")
        pids = brokers("here")
        signal_all(pids, signal.SIGSTOP)
        try:
            c = Talker("there", "call", HERE, PORT, 1)
            began.append(c)
            lab.wait(lambda: waits_in_socket("here"), "no request comes", HANG)
            s.process.send_signal(signal.SIGUSR1)
            s.wait("asks to listen")
            lab.wait(lambda: sleeps(s.process.pid), "the talker does not ask the broker", HANG)
        finally:
            signal_all(pids, signal.SIGCONT)
        s.wait("RDMA_CM_EVENT_ESTABLISHED 1 ")
        expect(not any("REJECTED" in line for line in c.said),
               "the caller is refused", Result(0, "\n".join(c.said)))

    def long_private_data(began):
        rewire()
        r = lab.run("here", [talker, "private-data", HERE, PORT])
        expect_ok(r)
        expect("bytes of private data" in r.output,
               "no message about the long private data", r)

    case("a program that rejects: REJECTED with 28", refused)
    case("a full backlog: further requests are UNREACHABLE, and none is served "
         "twice", full)
    case("a listener that is made after a request came gets the request",
         in_time)
    case("private data too long: EINVAL, and the longest arrives", long_private_data)


GID = bytes(10) + b"\xff\xff"


def frame(mad, source, **wrong):
    """Returns a UD datagram for QP1 with @mad and an ICRC, as STRANGER sends it from
    the UDP port @source.  @wrong names header fields and the wrong values that they
    get; with icrc=1 the ICRC is wrong."""
    bth = bytearray((0x64, 0x40, 0xff, 0xff, 0, 0, 0, wrong.get("qpn", 1)))
    bth[0] = wrong.get("opcode", 0x64)
    bth[1] |= wrong.get("pad", 0) << 4
    deth = wrong.get("qkey", 0x80010000).to_bytes(4, "big") + b"\0\0\0\1"
    out = bytearray(icrc_check.seal(STRANGER, HERE, source,
                                    bytes(bth) + b"\0\0\0\7" + deth +
                                    bytes(mad)))
    if wrong.get("icrc"):
        out[-1] ^= 1
    return bytes(out)


def message(kind, dice):
    """Returns a well-formed message of connection management, whose attribute ID has
    the low byte @kind.  @dice makes the ids, which no connection has."""
    mad = bytearray(256)
    mad[0:4] = 1, 7, 2, 3
    mad[8:16] = dice.randbytes(8)
    mad[17] = kind
    mad[24:32] = dice.randbytes(8)
    if kind in (0x10, 0x17):
        mad[32:40] = (0x01060000 | int(PORT)).to_bytes(8, "big")
    if kind == 0x10:
        mad[24 + 32:24 + 35] = dice.randbytes(3)
        mad[24 + 43] = 0xa0
        mad[24 + 56:24 + 72] = GID + socket.inet_aton(STRANGER)
        mad[24 + 72:24 + 88] = GID + socket.inet_aton(HERE)
        mad[24 + 140:24 + 142] = 0, 0x40
    return mad


def spoil(mad, dice):
    """Makes a message wrong in one of eight ways.  Returns the message."""
    way = dice.randrange(8)
    if way == 0:
        mad[dice.randrange(4)] ^= 1 << dice.randrange(8)  # versions, class, method
    elif way == 1:
        mad[3] |= 0x80
    elif way == 2:
        mad[16:18] = dice.randbytes(2)
    elif way == 3:
        mad[24:32] = bytes(8)  # no ids
    elif way == 4:
        mad[24 + dice.randrange(232)] = 0xff
    elif way == 5:
        mad[24:] = b"\xff" * 232
    elif way == 6:
        mad = mad[:dice.randrange(0, 256, 4)]
    else:
        mad += bytes(4)
    return mad


def stranger():
    """Adds the address STRANGER to the link in `there`.  Returns a UDP socket with
    this address."""
    lab.ip("there", "address add %s/24 dev v0" % STRANGER)
    return lab.socket(STRANGER)


def strangers():
    def malformed(began):
        s, c = connected("here", "there", 4)
        began += [s, c]
        seed = random.randrange(1 << 32)
        dice = random.Random(seed)
        before = brokers("here")
        out = stranger()
        source = out.getsockname()[1]
        wrongs = ({}, {"icrc": 1}, {"qkey": 1}, {"opcode": 0x04},
                  {"opcode": 0xff}, {"pad": 3}, {"qpn": 0}, {"qpn": 2})
        for kind in range(0x0f, 0x1d):
            for _ in range(20):
                for wrong in wrongs:
                    out.sendto(frame(message(kind, dice), source, **wrong),
                               (HERE, 4791))
                    out.sendto(frame(spoil(message(kind, dice), dice), source,
                                     **wrong), (HERE, 4791))
        loops("there", 20)
        expect(brokers("here") == before,
               "the broker has died, or another runs, seed %d" % seed)
        expect(not any("DISCONNECTED" in line for line in c.said),
               "a stranger ends a connection, seed %d" % seed,
               Result(0, "\n".join(c.said[-5:])))
        c.kill()
        s.wait("RDMA_CM_EVENT_DISCONNECTED %d " % 24)

    def flood(began):
        rewire()
        s = Talker("here", "serve", HERE, PORT)
        full = Talker("here", "ignore", HERE, int(PORT) + 1, 100000)
        began += [s, full]
        s.wait("listening")
        full.wait("listening")
        loops("there", 20)
        before, answers = resident("here"), lab.datagrams("here")
        out = stranger()
        source = out.getsockname()[1]
        dice = random.Random(7)
        for i in range(20000):
            mad = message(0x10, dice)
            mad[39] = (int(PORT) + i % 2) & 0xff
            out.sendto(frame(mad, source), (HERE, 4791))
            if i % 5000 == 2500:
                loops("there", 20)
        loops("there", 20)
        expect(lab.datagrams("here") > answers + 1000,
               "few requests are answered")
        expect(resident("here") < before + (16 << 20),
               "the broker had %d bytes, now %d" % (before, resident("here")))

    case("4480 malformed and unexpected messages: no connection ends", malformed)
    case("20000 requests of one address: other addresses are served", flood)


deaths()
unlooked()
silences()
many_connections()
storms()
lost_ports()
refusals()
strangers()
lab.end()
t.end()
