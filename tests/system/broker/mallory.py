#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""mallory.py COMMAND...: runs COMMAND in a network namespace of its own, beside a
hostile user, Mallory.  In that namespace, and in each namespace that the command's
processes make, user 65532 plays Mallory:

- She sends frames from addresses of the namespace to queue pairs of the classes
  that processes have: 4096 frames a second, in all namespaces together.
- At most every 16 ms she sends the broker a message, takes a class or gives one
  back, or takes a port and listens there.
- She sends REQs, DREQs and other messages and queries to QP1.

At the end mallory.py prints a line with the counts of what she has sent and was
granted, and a line for each failure:

- The memory of a program grew by more than is allowed.
- More than a tenth of her frames could not be sent.
- After many connections to brokers a count of what she sends, is granted or gives
  back is still 0, or no broker's memory was measured.
- After many connections to root's broker, that broker has granted her neither a class
  nor a listener.
- A REQ that she forged in the name of this host reached her own listener.
- A namespace could not be attacked.

If a network namespace belongs to a user namespace of the command, the user
namespace does not map her user ID, which the kernel shows there as 65534.

mallory.py needs root.  Its exit status is that of COMMAND, or 1 if COMMAND succeeds
and there is a failure.
"""

import ctypes
import errno
import fcntl
import mmap
import operator
import os
import random
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
import traceback

sys.path.insert(1, sys.path[0] + "/../lib")

import forge
from forge import aeth, bth, reth

# This user is neither Anna nor Bert of users.py, since a broker grants its own user
# more than other users.
MALLORY = 65532
FRAMES = 4096  # a second, in all namespaces together
TICK = 1 / 64  # seconds
LOOK = 0.5  # seconds between two looks at the processes
CLASSES = 1.0  # seconds between two queries for the classes in use
# After MANY connections to brokers no count of SENT and GRANTED may be 0.  After
# MANY_ROOTS connections to root's broker, that broker must have granted her a class or
# a listener.
MANY, MANY_ROOTS = 1000, 100
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
SIOCGIFCONF, SIOCSIFFLAGS, IFF_UP = 0x8912, 0x8914, 1

# The memory of a broker may grow by BROKER_KIB KiB from one second after its start.
# BROKER_KIB is about twice what these take together: the messages that wait for the
# clients of one user (16 MiB), and the conversations and objects of two users.  The
# memory of a program may grow by PROGRAM_KIB KiB between the second and the last
# quarter of the program's life.  This growth is the program's own: a program keeps
# nothing that other users send.
BROKER_KIB = 64 * 1024
PROGRAM_KIB = 64 * 1024
PROGRAM_SECONDS = 20  # a program that lives shorter is not judged
# These programs grow by their own work: a guest's memory, a store's objects.
OTHERS = re.compile("qemu|ceph|tgtd|valgrind|memcheck")

# KINDS names the counts: of what she sends, of what brokers grant her, and of events
# with which these are compared.
SENT = ("frames", "messages", "MADs")
GRANTED = ("classes", "classes given back", "listeners",
           "listeners given back")
KINDS = SENT + GRANTED + ("refusals", "REQs heard", "tries",
                          "tries at root's", "granted by root's", "frames due")
# The counts are in shared memory.  Each attack is a process, and has a place of PLACE
# bytes for its counts: if two processes added to one count, additions would be lost.
# The first place has the number of attacks that run.
PLACE, PLACES = 128, 4096
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *words):
    if getattr(libc, name)(*words):
        code = ctypes.get_errno()
        raise OSError(code, "%s: %s" % (name, os.strerror(code)))


def net_of(pid):
    """Returns the inode number of a process's network namespace, or None."""
    try:
        return os.stat("/proc/%s/ns/net" % pid).st_ino
    except OSError:
        return None


def bring_up_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def addresses():
    """Returns the IPv4 addresses of this namespace, each with the index of its
    interface."""
    room = bytearray(40 * 64)
    buffer = (ctypes.c_char * len(room)).from_buffer(room)
    ask = bytearray(struct.pack("iP", len(room), ctypes.addressof(buffer)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCGIFCONF, ask)
    size, = struct.unpack_from("i", ask)
    found = {}
    for at in range(0, size, 40):
        name = bytes(room[at:at + 16]).split(b"\0")[0].decode()
        try:
            found[socket.inet_ntoa(bytes(room[at + 20:at + 24]))] = \
                socket.if_nametoindex(name)
        except OSError:
            pass  # the interface has just been removed
    return found


class Mad:
    """A maker of management datagrams for QP1 (IBTA 13.4.2, 12.6).  One of these
    is the query of a vendor-specific class that brokers send each other."""

    DETH = struct.pack("!II", 0x80010000, 1)
    REQ, REJ, REP, RTU, DREQ, DREP = 0x10, 0x12, 0x13, 0x14, 0x15, 0x16

    def __init__(self, rng):
        self.rng = rng

    def frame(self, mad):
        return bth(0x64, 1, self.rng.randrange(1 << 24)) + self.DETH + mad

    def cm(self, kind, body):
        head = struct.pack("!BBBBHHQHHI", 1, 7, 2, 3, 0, 0,
                           self.rng.getrandbits(64), kind, 0, 0)
        return self.frame(head + body + bytes(232 - len(body)))

    def request(self, source, target, port):
        """Returns a complete REQ from @source to @target.  The REQ is for @port, at
        which she listens herself, or, if @port is 0, for a port at which no suite
        listens."""
        service = 0x1060000 | (port or self.rng.randrange(1, 1024))
        body = bytearray(232)
        struct.pack_into("!I4xQQ", body, 0, self.rng.getrandbits(32), service,
                         self.rng.getrandbits(64))
        struct.pack_into("!I", body, 32, self.rng.getrandbits(24) << 8 | 1)
        body[43] = body[47] = 20 << 3
        struct.pack_into("!H", body, 48, 0xFFFF)
        body[50], body[51] = 5 << 4 | 7, 15 << 4
        gid = bytes(10) + b"\xff\xff"
        body[56:72] = gid + socket.inet_aton(source)
        body[72:88] = gid + socket.inet_aton(target)
        body[140:144] = b"\0\x40" + struct.pack("!H", 7)
        body[156:160] = socket.inet_aton(source)
        body[172:176] = socket.inet_aton(target)
        return self.cm(self.REQ, bytes(body))

    def any_answer(self):
        """Returns a message, other than a REQ, with guessed ids."""
        kind = self.rng.choice((self.REJ, self.REP, self.RTU, self.DREQ,
                                self.DREP, self.rng.randrange(1 << 16)))
        return self.cm(kind, self.rng.randbytes(232))

    def question(self, qpn):
        head = struct.pack("!BBBBHHQHHI", 1, 0x4F, 1, 1, 0, 0,
                           self.rng.getrandbits(64), 0, 0, 0)
        body = bytes(12) + b"\0\x0a\xde\xb1adverb\0\1" + \
            struct.pack("!I", qpn)
        return self.frame(head + body + bytes(232 - len(body)))


def text_of(header):
    """Returns the text of a header of src/broker, without its comments."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../../../src/broker", header)) as f:
        return re.sub(r"/\*.*?\*/", "", f.read(), flags=re.DOTALL)


def constant(name, header):
    """Returns the number that a header of src/broker defines as @name."""
    return int(re.search(r"#define %s\s+(\w+)" % name,
                         text_of(header)).group(1).rstrip("u"), 0)


def enumeration(name, header):
    """Returns the numbers of an enumeration in a header of src/broker by the names
    of its members."""
    members, value = {}, -1
    body = re.search(r"enum %s \{(.*?)\};" % name, text_of(header), re.DOTALL)
    for member in body.group(1).replace(" ", "").split(","):
        word, _, given = member.strip().partition("=")
        value = int(given, 0) if given else value + 1
        if word:
            members[word] = value
    return members


BIND, LISTEN, DONE, EVENT = operator.itemgetter(
    "CMPROTO_BIND", "CMPROTO_LISTEN", "CMPROTO_DONE", "CMPROTO_EVENT")(
        enumeration("cmproto_kind", "cmproto.h"))
REQUEST = enumeration("cmproto_event", "cmproto.h")["CMPROTO_REQUEST"]


class Held:
    """A connection to a broker, and what the broker has granted on it."""

    WELCOME, REFUSED = 2, 3  # proto.h

    def __init__(self, count, is_here):
        self.count, self.is_here = count, is_here
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)
        self.is_roots, self.has, self.port = False, None, 0

    def connect(self, name):
        self.socket.connect("\0" + name)
        _, user, _ = struct.unpack("3i", self.socket.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        self.is_roots = user == 0
        self.count("tries")
        if self.is_roots:
            self.count("tries at root's")

    def close(self):
        if self.has:
            self.count(self.has + " given back")
        self.socket.close()

    def grant(self, kind):
        self.has = kind
        self.count(kind)
        if self.is_roots:
            self.count("granted by root's")

    def ask(self, kind, serial, name=0):
        """Sends a request: BIND for a port that the broker chooses, or LISTEN
        at that port.  @serial: a number that the broker's answer repeats.  @name:
        for LISTEN, the id that the broker's answer to BIND gave."""
        text = bytearray(CM_BYTES)
        struct.pack_into("=IHHIiI", text, 0, CM_MAGIC, CM_VERSION, kind,
                         serial, 0, name)
        # at.local and any_v4: the wildcard address of IPv4; at.space: RDMA_PS_TCP
        text[42:44] = b"\xff\xff"
        struct.pack_into("=H22xB", text, 64, 0x106, 1)
        self.socket.send(text)

    def take_cm(self, text):
        kind, serial, err, _, name, event = struct.unpack_from("=HIiIII", text,
                                                               6)
        if kind == EVENT and event == REQUEST:
            # A REQ in the name of this host is a failure.  If the source address is
            # removed before the broker reads the frame, the broker takes the frame
            # for one of another host, rightly: another host could have sent it.
            if self.is_here(socket.inet_ntoa(text[60:64])):
                self.count("REQs heard")
        elif kind == DONE and err:
            self.count("refusals")
        elif kind == DONE and serial == BIND:
            self.port, = struct.unpack_from("=H", text, 66)
            self.ask(LISTEN, LISTEN, name)
        elif kind == DONE and serial == LISTEN:
            self.grant("listeners")

    def take_answers(self):
        """Reads the messages that the broker has sent."""
        try:
            while text := self.socket.recv(4096):
                magic, _, kind = struct.unpack_from("=IHH", text)
                if magic == CM_MAGIC and len(text) == CM_BYTES:
                    self.take_cm(text)
                elif magic == forge.MAGIC and kind == self.WELCOME and \
                        not self.has:
                    self.grant("classes")
                elif magic == forge.MAGIC and kind == self.REFUSED:
                    self.count("refusals")
        except OSError:
            pass  # no message waits, or the broker has closed the connection


CM_MAGIC = constant("CMPROTO_MAGIC", "cmproto.h")
CM_VERSION = constant("CMPROTO_VERSION", "cmproto.h")
CM_BYTES = constant("CMPROTO_BYTES", "cmproto.h")


class Broker:
    """The attack on the broker of a namespace.  Each call of message(),
    take_class() and listen() makes a new connection."""

    HELLO = 1

    def __init__(self, rng, count, is_here):
        self.rng, self.count, self.is_here = rng, count, is_here
        self.held = []  # the open connections, the oldest first

    def dial(self, most=8):
        """Returns a new connection; closes the oldest ones if there are more than
        @most."""
        name = forge.broker_name()
        if not name:
            raise FileNotFoundError(errno.ENOENT, "no broker")
        self.held.append(Held(self.count, self.is_here))
        while len(self.held) > most:
            self.held.pop(0).close()
        self.held[-1].connect(name)
        return self.held[-1]

    def take_answers(self):
        for held in self.held:
            held.take_answers()

    def port(self):
        """Returns a port that she has bound, or 0."""
        return self.rng.choice([0] + [held.port for held in self.held])

    def noise(self, magic, version, size):
        """Returns a random message of @size bytes with these magic and version
        numbers.  One message in ten is shorter."""
        head = struct.pack("=IHH", magic, version, self.rng.randrange(20))
        body = bytearray(self.rng.randbytes(size - len(head)))
        if self.rng.random() < 0.7:  # mostly zeros, as in real messages
            body = bytearray(len(body))
            for _ in range(self.rng.randrange(12)):
                body[self.rng.randrange(len(body))] = self.rng.randrange(256)
        if self.rng.random() < 0.1:
            del body[self.rng.randrange(len(body)):]
        return head + bytes(body)

    def message(self):
        """Sends a random message with up to five descriptors."""
        s = self.dial().socket
        if self.rng.random() < 0.5:
            text = self.noise(forge.MAGIC, forge.VERSION, forge.MESSAGE.size)
        else:
            text = self.noise(CM_MAGIC, CM_VERSION, CM_BYTES)
        lent = [s.fileno()] * self.rng.randrange(6)
        try:
            socket.send_fds(s, [text], lent)
        except PermissionError:  # since Linux 6.16 the broker refuses descriptors
            s.send(text)
        self.count("messages")

    def take_class(self):
        """Takes a class.  dial() may close an older connection, which gives the
        class of that connection back."""
        self.dial().socket.send(forge.MESSAGE.pack(
            forge.MAGIC, forge.VERSION, self.HELLO, 1, 0, 0, 0))

    def listen(self):
        """Binds a port that the broker chooses; take_answers listens there."""
        self.dial().ask(BIND, BIND)


class Attack:
    """The attack in one namespace, as the hostile user, until its process is
    killed."""

    def __init__(self, seed, counts, place, live):
        self.at = place * PLACE
        self.rng = random.Random(seed)
        self.counts, self.live = counts, live
        self.mad = Mad(self.rng)
        self.broker = Broker(self.rng, self.count, self.is_here)
        self.here = {}
        self.attackers, self.classes, self.asked = [], [], 0.0

    def count(self, kind, n=1):
        at = self.at + 8 * KINDS.index(kind)
        old, = struct.unpack_from("=Q", self.counts, at)
        struct.pack_into("=Q", self.counts, at, old + n)

    def is_here(self, address):
        """Returns whether the namespace has this address, and had it at the same
        interface at the last call of look_around()."""
        return self.here.get(address, 0) == addresses().get(address, -1)

    def look_around(self):
        """Looks up the addresses of the namespace and the classes in use."""
        self.here = here = addresses()
        if [a.source for a in self.attackers] != list(here):
            for attacker in self.attackers:
                attacker.socket.close()
            self.attackers = [forge.Attacker(a, a) for a in here]
        try:
            self.classes = forge.classes()
        except OSError:
            self.classes = []  # the broker has just ended

    def qpn(self):
        """Returns a random QPN of a class in use, or of any class if no class is
        known to be in use."""
        k = self.rng.choice(self.classes) if self.classes else \
            self.rng.randrange(1024)
        return forge.qpn_of(k, self.rng.randrange(1 << 14))

    def body(self):
        """Returns the transport headers and the payload of a random frame."""
        rng, qpn, psn = self.rng, self.qpn(), self.rng.randrange(1 << 24)
        key, at = rng.getrandbits(32), rng.getrandbits(47)
        return rng.choice((
            lambda: bth(forge.SEND_ONLY, qpn, psn) + rng.randbytes(256),
            lambda: bth(forge.UC_SEND_ONLY, qpn, psn) + rng.randbytes(1024),
            lambda: bth(forge.WRITE_ONLY, qpn, psn) + reth(at, key, 64) +
            rng.randbytes(64),
            lambda: bth(forge.WRITE_FIRST, qpn, psn) + reth(at, key, 4096) +
            rng.randbytes(1024),
            lambda: bth(forge.READ_REQUEST, qpn, psn) + reth(at, key, 65536),
            lambda: bth(forge.CAS, qpn, psn) + struct.pack("!QIQQ", at, key, 0,
                                                           1),
            lambda: bth(forge.ACKNOWLEDGE, qpn, psn) + aeth(rng.choice((
                forge.ACK, forge.RNR_NAK, forge.NAK_SEQUENCE,
                forge.NAK_ACCESS))),
            lambda: bth(forge.READ_RESPONSE, qpn, psn) + aeth(forge.ACK) +
            rng.randbytes(64),
            lambda: bth(0x64, qpn, psn) + struct.pack("!II", 0x11111111, 7) +
            rng.randbytes(64),
            lambda: bth(rng.randrange(256), qpn, psn) +
            rng.randbytes(4 * rng.randrange(16)),
        ))()

    def send_frames(self, n):
        self.count("frames due", n)
        for _ in range(n):
            attacker = self.rng.choice(self.attackers)
            attacker.target = self.rng.choice(self.attackers).source
            before = attacker.sent
            attacker.send(attacker.sealed(self.body()))
            self.count("frames", attacker.sent - before)

    def send_mad(self):
        attacker = self.rng.choice(self.attackers)
        attacker.target = self.rng.choice(self.attackers).source
        body = self.rng.choice((
            lambda: self.mad.request(attacker.source, attacker.target,
                                     self.broker.port()),
            self.mad.any_answer, lambda: self.mad.question(self.qpn())))()
        attacker.send(attacker.sealed(body))
        self.count("MADs")

    def tell_broker(self):
        what = self.rng.choice((
            self.broker.message, self.broker.message, self.broker.take_class,
            self.broker.listen))
        try:
            what()
        except OSError:
            pass  # there is no broker, or the broker has closed the connection

    def go_on(self):
        due = time.monotonic()
        while True:
            if due - self.asked > CLASSES:
                self.look_around()
                self.asked = due
            if self.attackers:
                share = FRAMES * TICK / max(1, self.live())
                self.send_frames(int(share + self.rng.random()))
                self.send_mad()
            self.broker.take_answers()
            self.tell_broker()
            # Frames that could not be sent in time are not sent later.
            due = max(due + TICK, time.monotonic() - TICK)
            time.sleep(max(0, due - time.monotonic()))


def become_hostile(net_fd):
    call("setns", net_fd, CLONE_NEWNET)
    os.setgroups([])
    os.setresgid(MALLORY, MALLORY, MALLORY)
    os.setresuid(MALLORY, MALLORY, MALLORY)
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Process:
    """A process whose memory is sampled from one second after its start or its
    last exec, if the process is a broker or uses adverb's libraries."""

    def __init__(self, pid):
        self.pid, self.began, self.samples = pid, time.monotonic(), []
        # whether the process is a broker or uses adverb's libraries; None: not
        # known yet
        self.is_ours = None
        self.name, self.words = "?", ""

    def look(self):
        """Samples the memory.  Returns False if the process has ended."""
        try:
            with open("/proc/%d/status" % self.pid, errors="replace") as f:
                text = f.read()
            rss = re.search(r"^VmRSS:\s*(\d+)", text, re.M)
            if not rss:
                return False
            name = text.split("\n", 1)[0].split("\t")[1]
            if name != self.name:  # the process has called exec
                self.name, self.is_ours, self.samples = name, None, []
                self.began = time.monotonic()
                with open("/proc/%d/cmdline" % self.pid, "rb") as f:
                    self.words = f.read(200).replace(b"\0", b" ").decode(
                        errors="replace").strip()
            if self.is_ours is None and time.monotonic() - self.began > 1:
                with open("/proc/%d/maps" % self.pid,
                          errors="replace") as f:
                    self.is_ours = name == "adverbd" or \
                        "/libibverbs.so.1" in f.read()
        except OSError:
            return False
        if self.is_ours:
            self.samples.append(int(rss.group(1)))
        return True

    def growth(self):
        """Returns by how many KiB the process has grown, and how many are
        allowed, or None if the process is not judged."""
        if not self.samples or OTHERS.search(self.name + " " + self.words):
            return None
        if self.name == "adverbd":
            return max(self.samples) - self.samples[0], BROKER_KIB
        if len(self.samples) * LOOK < PROGRAM_SECONDS:
            return None
        quarter = len(self.samples) // 4
        return (statistics.median(self.samples[-quarter:]) -
                statistics.median(self.samples[quarter:2 * quarter])), \
            PROGRAM_KIB


class Watch:
    """The command's processes, and an attack in each of their namespaces."""

    def __init__(self, command):
        self.command = command
        self.counts = mmap.mmap(-1, PLACES * PLACE)
        self.mine, self.attacks = net_of("self"), {}
        self.processes, self.grown = {}, []
        self.judged = self.brokers = 0
        self.most = {"adverbd": 0, "programs": 0}
        self.refused = set()
        self.namespaces = 0

    def live(self):
        return struct.unpack_from("=I", self.counts)[0]

    def attack(self, pid, net):
        """Forks the attack on a namespace of that process."""
        try:
            fd = os.open("/proc/%s/ns/net" % pid, os.O_RDONLY)
        except OSError:
            return
        child = os.fork()
        if child:
            os.close(fd)
            self.attacks[net] = child
            self.namespaces += 1
            return
        try:
            become_hostile(fd)
            os.close(fd)
            Attack(net, self.counts, 1 + self.namespaces % (PLACES - 1),
                   self.live).go_on()
        except OSError as why:
            print("a hostile user: the attack on network namespace %d has ended: %s" %
                  (net, why), file=sys.stderr)
        except Exception:  # os._exit prints no exception
            traceback.print_exc()
        finally:
            os._exit(1)

    def kin(self):
        """Returns two things.  The first is the set of the processes that descend
        from the command or are in this or an attacked namespace, without mallory.py's
        own processes.  The second is a dict of those of them that are no brokers,
        with their namespaces: a namespace with only a broker is not attacked, so that
        the broker can end."""
        parents, nets, brokers = {}, {}, set()
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                with open("/proc/%d/stat" % pid, "rb") as f:
                    name, rest = f.read().rsplit(b")", 1)
                    parents[pid] = int(rest.split()[1])
            except OSError:
                continue
            if name.endswith(b"(adverbd"):
                brokers.add(pid)
            nets[pid] = net_of(pid)
        ours = set(self.attacks.values()) | {os.getpid()}

        def descends(pid):
            while pid > 1 and pid not in ours:
                if pid == self.command.pid:
                    return True
                pid = parents.get(pid, 0)
            return False
        found = {pid for pid in parents if pid not in ours and
                 (nets[pid] == self.mine or nets[pid] in self.attacks or
                  descends(pid))}
        return found, {pid: nets[pid] for pid in found - brokers}

    def look(self):
        kin, nets = self.kin()
        for pid, net in nets.items():
            if net and net not in self.attacks and net not in self.refused:
                self.attack(pid, net)
        for pid in kin:
            self.processes.setdefault(pid, Process(pid))
        for net in set(self.attacks) - set(nets.values()) - {self.mine}:
            self.stop(net)
        self.reap()
        struct.pack_into("=I", self.counts, 0, len(self.attacks))
        for pid, process in list(self.processes.items()):
            if pid not in kin or not process.look():
                self.judge(self.processes.pop(pid))

    def stop(self, net):
        pid = self.attacks.pop(net)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def reap(self):
        """Reaps the processes of attacks that have failed.  Such an attack does
        not begin again."""
        for net, pid in list(self.attacks.items()):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del self.attacks[net]
                self.refused.add(net)

    def judge(self, process):
        verdict = process.growth()
        if not verdict:
            return
        grown, allowed = verdict
        kind = "adverbd" if process.name == "adverbd" else "programs"
        self.judged += 1
        self.brokers += kind == "adverbd"
        self.most[kind] = max(self.most[kind], grown)
        if grown > allowed:
            self.grown.append("%s grew by %d KiB, from %d: %s" % (
                process.name, grown, process.samples[0], process.words))

    def end(self):
        for net in list(self.attacks):
            self.stop(net)
        for process in self.processes.values():
            self.judge(process)

    def did(self):
        """Returns the sums of all attacks' counts."""
        counts = [struct.unpack_from("=%dQ" % len(KINDS), self.counts, at)
                  for at in range(PLACE, PLACES * PLACE, PLACE)]
        return dict(zip(KINDS, map(sum, zip(*counts))))

    def report(self, seconds):
        did = self.did()
        fails = list(self.grown)
        if did["frames"] < 0.9 * did["frames due"]:
            fails.append("%d of %d frames could not be sent" % (
                did["frames due"] - did["frames"], did["frames due"]))
        if did["tries"] >= MANY:
            lacks = [kind for kind in SENT + GRANTED if not did[kind]]
            if lacks:
                fails.append("in %d connections to brokers the hostile user had "
                             "none of: %s" % (did["tries"], ", ".join(lacks)))
            if not self.brokers:
                fails.append("no broker's memory was measured")
        if did["REQs heard"]:
            fails.append("brokers accepted %d REQs that the hostile user had "
                         "forged in the name of this host" % did["REQs heard"])
        if did["tries at root's"] >= MANY_ROOTS and \
                not did["granted by root's"]:
            fails.append("root's broker granted no class and no listener in %d "
                         "connections" % did["tries at root's"])
        if self.refused:
            fails.append("%d namespaces could not be attacked" %
                         len(self.refused))
        for why in fails:
            print("FAIL a hostile user beside it: " + why)
        print("%s a hostile user beside it (%.0f s, %d namespaces, %d frames a "
              "second, %s; memory of %d brokers, which grew by %d KiB at most, "
              "and of %d programs, by %d)" % (
                  "ended" if fails else "ok", seconds, self.namespaces,
                  did["frames"] / seconds,
                  ", ".join("%d %s" % (did[kind], kind)
                            for kind in KINDS[1:-1]),
                  self.brokers, self.most["adverbd"],
                  self.judged - self.brokers, self.most["programs"]))
        return len(fails)


def sum_of(line, sums):
    """Returns the three counts of a line `N passed, N failed, N skipped`, or @sums
    if @line is another line."""
    found = re.match(r"(\d+) passed, (\d+) failed, (\d+) skipped$", line)
    return [int(n) for n in found.groups()] if found else sums


def main():
    if len(sys.argv) < 2 or os.geteuid():
        sys.exit(__doc__)
    call("unshare", CLONE_NEWNET)
    bring_up_loopback()
    began = time.monotonic()
    command = subprocess.Popen(
        sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        env=dict(os.environ, BESIDE_HOSTILE="1"))
    watch, sums, rest = Watch(command), [0, 0, 0], b""
    os.set_blocking(command.stdout.fileno(), False)
    while True:
        is_over = command.poll() is not None
        watch.look()
        rest += command.stdout.read() or b""
        *lines, rest = rest.split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            was, sums = sums, sum_of(text, sums)
            if sums is was:
                print(text, flush=True)
        if is_over:
            break
        time.sleep(LOOK)
    watch.end()
    failed = watch.report(time.monotonic() - began)
    print("%d passed, %d failed, %d skipped" % (
        sums[0] + (not failed), sums[1] + failed, sums[2]))
    sys.exit(command.returncode or bool(failed))


if __name__ == "__main__":
    main()
