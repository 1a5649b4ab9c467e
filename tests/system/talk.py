#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Conversations of rdma_cm alone, by the program talker: what dies, what is
full, what strangers send.  Two namespaces, each with a broker of its own."""

import os
import random
import signal
import threading
import time

import netlab
import system
from system import HANG, Result, expect, expect_ok

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
talker = os.path.join(t.build, "tests", "system", "talker")
HERE, THERE, PORT = "10.1.0.1", "10.1.0.2", "7000"
QUICK = not t.options.full


class Talker:
    """One that runs; what it says is counted as it comes."""

    def __init__(self, side, *words, **env):
        self.said = []
        self.news = threading.Condition()
        self.process = lab.start(side, [talker, *map(str, words)], **env)
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
        """Until it has said a line that begins so."""
        with self.news:
            done = self.news.wait_for(
                lambda: any(line.startswith(text) for line in self.said) or
                self.said[-1:] == ["(end of output)"], seconds)
            expect(done and any(line.startswith(text) for line in self.said),
                   "it never says " + text,
                   Result(0, "\n".join(self.said[-8:])))

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def connected(server, client, count):
    """@count connections from there to here, up at both ends."""
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
    """The process ids of adverbd in a namespace."""
    pid = lab.there.pid if side == "there" else "self"
    mine = os.readlink("/proc/%s/ns/net" % pid)
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/comm" % pid) as f:
                if (f.read() == "adverbd\n" and
                        os.readlink("/proc/%s/ns/net" % pid) == mine):
                    found.append(int(pid))
        except OSError:
            pass  # it has ended meanwhile
    return found


def kill_brokers(*sides):
    for side in sides:
        found = brokers(side)
        expect(found, "there is no broker " + side)
        for pid in found:
            os.kill(pid, signal.SIGKILL)


def resident(side):
    total = 0
    for pid in brokers(side):
        with open("/proc/%d/statm" % pid) as f:
            total += int(f.read().split()[1]) * 4096
    return total


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
        """What is up goes down at the other end when @victim dies; brokers
        of @killed sides have died meanwhile."""
        def body(began):
            s, c = connected(server, client, 20)
            began += [s, c]
            if killed:
                kill_brokers(*killed)
                for talker in s, c:  # until the successors know of all
                    talker.process.send_signal(signal.SIGUSR1)
                    talker.wait("has a port")
            dead, other = (s, c) if victim == "server" else (c, s)
            os.killpg(dead.process.pid, signal.SIGKILL)
            other.wait("RDMA_CM_EVENT_DISCONNECTED 20 ")
        return body

    sides = ("here", "here"), ("here", "there"), ("there", "here")
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


def silences():
    """A peer in another namespace stands still, or ends, in mid-transfer.  By
    its timeouts it would be given up after two seconds at the latest."""
    def begun():
        t.need("ibv_rc_pingpong")
        lab.unwire()
        lab.wire("v0", 1500, (HERE + "/24",), (THERE + "/24",))
        words = ["ibv_rc_pingpong", "-g", "1", "-p", "%", "-n", "20000"]
        before = lab.datagrams("there")
        pair = lab.begin(words, words + [HERE])
        lab.wait(lambda: lab.datagrams("there") > before + 1000 or
                 pair[1].poll() is not None, "there is no transfer", HANG)
        return pair

    def stopped(began):
        server, client = begun()
        os.killpg(server.pid, signal.SIGSTOP)
        time.sleep(4)
        status = client.poll()
        os.killpg(server.pid, signal.SIGCONT)
        r = lab.finish((server, client))
        expect(status is None, "its peer does not wait for it", r)
        expect_ok(r)

    def gone(began):
        pair = begun()
        keeper = Talker("here", "serve", HERE, PORT)  # keeps the broker
        began.append(keeper)
        keeper.wait("listening")
        os.killpg(pair[0].pid, signal.SIGKILL)
        r = t.finish(pair[1], HANG)
        t.finish(pair[0], 5)
        expect(r.status not in (0, 124), "exit status %d" % r.status, r)
        expect("has ended" in r.output, "no word that the peer has ended", r)

    case("a peer in another namespace is stopped: it is waited for", stopped)
    case("a peer in another namespace ends: that is said", gone)


deaths()
silences()
lab.end()
t.end()
