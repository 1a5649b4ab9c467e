#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests two users of one network namespace: which user's broker serves which
program, which messages each program prints, and set-user-ID programs.  The
cases need two users, so only root can run them; other users skip them."""

import contextlib
import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import forge
from perftest_check import WITHOUT_END
import system
from system import (HANG, brokers, expect, expect_failed, expect_ok, listens,
                    port_sockets, serving)

ANNA, BERT = 65534, 65533
TOLD = r"the broker adverbd of user (\d+), because ADVERB_BROKER_USER names that user"
t = None
DIRECT = "0"


def enter():
    """Runs this script again in a network namespace of its own."""
    if os.environ.get("TEST_USERS") or "--list" in sys.argv:
        return
    why = None
    if not system.is_root():
        why = "only root can be two users"
    elif subprocess.run(["unshare", "-n", "true"], check=False,
                        stderr=subprocess.DEVNULL).returncode:
        why = "no network namespace can be made"
    if why:
        print("skipped users.py: %s\n0 passed, 0 failed, 1 skipped" % why)
        sys.exit(0)
    os.environ["TEST_USERS"] = "1"
    os.execvp("unshare", ["unshare", "-n", sys.executable, *sys.argv])


def kept(process):
    """Returns @process, which leads a session of its own.  If the case fails, the
    suite kills the process."""
    t.started.append(process)
    return process


def start(user, argv, ready=None, before=(), **more):
    """Starts and returns a process of @user with a runtime folder of that user.
    librdmacm writes to the descriptor @ready when the process listens.  @before: the
    words of a command that root runs, and that executes setpriv and @argv.  All
    programs trust Anna's broker, unless a variable in @more says otherwise."""
    home = t.path("home-%d" % user)
    os.makedirs(home, exist_ok=True)
    os.chown(home, user, user)
    os.chmod(home, 0o700)
    env = t.environment()
    env.update(HOME=home, XDG_RUNTIME_DIR=home, ADVERB_DIRECT=DIRECT)
    env.update({"ADVERB_BROKER_USER": str(ANNA)}, **more)
    if ready:
        env["ADVERB_READY_FD"] = str(ready)
    return kept(subprocess.Popen(
        [*before, "setpriv", "--reuid", str(user), "--regid", str(user),
         "--clear-groups", "--no-new-privs", *argv], env=env, cwd=home,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
        pass_fds=[ready] if ready else []))


def run_as(user, argv, ready=None, **more):
    return start(user, [t.adverb, "run", "--", *argv], ready, **more)


def server_of(user, argv, port, **more):
    p = run_as(user, argv, **more)
    end = time.monotonic() + HANG
    while not listens(port):
        if p.poll() is not None or time.monotonic() > end:
            r = t.finish(p, 1)
            raise system.Fail("the server does not listen", r.output)
        time.sleep(0.01)
    return p


def broker_name():
    """Returns the address at which a broker listens, or None."""
    with open("/proc/net/unix") as f:
        found = re.search("@(adverbd-.*)", f.read())
    return found and found.group(1)


def wait_for_broker():
    end = time.monotonic() + HANG
    while not broker_name():
        expect(time.monotonic() < end, "the broker does not listen")
        time.sleep(0.001)


def ends_brokers(body):
    """Returns a case that ends all brokers after @body."""
    def go():
        try:
            body()
        finally:
            while brokers() or port_sockets():
                for pid in brokers():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.001)
    return go


def expect_told_user(result, by):
    """Expects that the output in @result names user @by once as the broker's
    user, or names no such user if @by is None."""
    said = re.findall(TOLD, result.output)
    expect(said == ([str(by)] if by is not None else []),
           "the program names brokers of the users %s" % said, result)


def until_ends(p):
    """Reads the output of a running pair until the output names both queue pairs
    and their address.  Returns the text."""
    text, end = "", time.monotonic() + HANG
    while len(forge.ends_of(text)) < 2 or not forge.address_of(text):
        ready, _, _ = select.select([p.stdout], [], [], 0.1)
        chunk = os.read(p.stdout.fileno(), 65536) if ready else b"."
        if not chunk or time.monotonic() > end:
            raise system.Fail("the queue pairs are not known", text)
        text += chunk.decode(errors="replace") if ready else ""
    return text


def watched_forgers(p):
    """Runs `adverb top` as Anna while @p runs.  Returns the first suspect that has
    sent forged frames and has a user, or None.  A suspect has no user if the process
    that sent the frames has ended, since then no socket has their source port."""
    while p.poll() is None:
        r = t.finish(start(ANNA, [t.adverb, "top", "--once", "--json",
                                  "--interval", "0.1"]), HANG)
        expect_ok(r)
        for process in json.loads(r.output)["processes"]:
            for suspect in process.get("suspects", []):
                if suspect["wrong_source"] and "user" in suspect:
                    return suspect
    return None


def forged(tool):
    """Returns a case: one user forges frames from the right address to the
    right queue pairs of another user.  The frames are dropped and counted, and
    a message names the forger."""
    def go():
        t.need(tool)
        # The pair sends so many messages that the attacker begins, and is noticed,
        # before the pair ends.
        p = start(ANNA, t.pair_argv([tool, "-c", "-n", "200000"],
                                    timeout=HANG))
        text = until_ends(p)
        qpns = ["%x" % qpn for qpn, _ in forge.ends_of(text)]
        attacker = start(BERT, [sys.executable, forge.__file__,
                                forge.address_of(text), *qpns])
        forger = watched_forgers(p)
        r = t.finish(p, HANG)
        r.output = text + r.output
        attacker.terminate()
        sent = attacker.communicate()[0].decode()
        expect_ok(r)
        expect("invalid data" not in r.output, "the data differ", r)
        expect("packets from %s, an address of this host, by user %d, fit no "
               "connection of this process" % (forge.address_of(text), BERT)
               in r.output, "no message names the forger", r)
        expect(forger and forger["user"] == BERT and forger["local"] and
               forger["address"] == forge.address_of(text),
               "adverb top names this forger: %s" % forger, r)
        expect(sent.strip().isdigit() and int(sent) > 100,
               "few frames were forged: " + sent, r)
    return go


PINGPONG = ["ibv_rc_pingpong", "-c", "-g", "1", "-p", "18600"]


def two_users(**more):
    """Runs a pair of both users.  @more: the environment of Anna's program."""
    t.need(PINGPONG[0])
    server = server_of(ANNA, PINGPONG, 18600, **more)
    client = run_as(BERT, [*PINGPONG, "127.0.0.1"])
    results = t.finish(server, HANG), t.finish(client, HANG)
    for r in results:
        expect_ok(r)
    expect_told_user(results[0], None)
    expect_told_user(results[1], ANNA)
    expect(list(brokers().values()) == [ANNA], "brokers of %s" % brokers())


def two_users_apart():
    """Neither user may map the other user's arena, so the pair uses packets: Anna's
    counter file counts at least one packet for each of her 1000 messages.  Her
    runtime folder is new, so the file counts no packets of an earlier program."""
    global DIRECT
    new = t.path("apart")
    os.makedirs(new)
    os.chown(new, ANNA, ANNA)
    DIRECT = "1"
    try:
        two_users(XDG_RUNTIME_DIR=new)
    finally:
        DIRECT = "0"
    system.wait_until(lambda: packets_in_tree(new) >= 1000,
                      "Anna's program has not sent its messages as packets", HANG)


def roots_broker():
    t.need(PINGPONG[0])
    broker = subprocess.Popen([os.path.join(t.build, "lib", "adverbd"),
                               "--foreground"])
    try:
        # If root's broker did not listen yet, the first program would start a
        # broker of its own.
        wait_for_broker()
        # mallory.py needs some seconds to make many connections to root's broker
        end = time.monotonic() + (5 if t.is_beside_hostile else 0)
        while True:
            server = server_of(ANNA, PINGPONG, 18600)
            client = run_as(BERT, [*PINGPONG, "127.0.0.1"])
            for p in server, client:
                r = t.finish(p, HANG)
                expect_ok(r)
                expect_told_user(r, None)
            expect(list(brokers().values()) == [0],
                   "brokers of %s" % brokers())
            if time.monotonic() > end:
                break
    finally:
        broker.kill()
        broker.wait()


def write_bw(*more, length=WITHOUT_END):
    """Returns the command of an end of a pair."""
    return ["stdbuf", "-oL", "ib_write_bw", "-x", "1", "-p", "18601", *length,
            *more]


def a_death_is_seen():
    t.need("ib_write_bw")
    server = server_of(ANNA, write_bw(), 18601)
    client = run_as(BERT, write_bw("127.0.0.1"))
    text = more = b" "
    while more and b"iterations" not in text:
        more = os.read(client.stdout.fileno(), 4096)
        text += more
    os.killpg(server.pid, signal.SIGKILL)
    server.communicate()
    r = t.finish(client, HANG)
    r.output = text.decode() + r.output
    expect("the process of the peer" in r.output and "has ended" in r.output,
           "no message says that the peer has ended", r)


def read_figures(p, text, count):
    """Reads the client's output until @count further lines of figures have come.
    Returns @text and the output."""
    end = time.monotonic() + HANG
    begin = len(text)
    while len(re.findall(r"^ *65536 .*\d\n", text[begin:], re.M)) < count:
        ready, _, _ = select.select([p.stdout], [], [], 0.1)
        chunk = os.read(p.stdout.fileno(), 65536) if ready else b"."
        if not chunk or time.monotonic() > end:
            raise system.Fail("the client writes no more data", text)
        text += chunk.decode() if ready else ""
    return text


def the_brokers_user_takes_over():
    """Brokers are killed while both programs run.  The case itself ends both
    programs, since Bert's program may start a broker once Anna's has ended."""
    t.need("ib_write_bw")
    server = server_of(ANNA, write_bw(), 18601)
    client = run_as(BERT, write_bw("127.0.0.1"))
    killed = set()
    end = time.monotonic() + HANG
    try:
        text = read_figures(client, "", 1)
        while len(killed) < 4:
            expect(time.monotonic() < end, "no broker is started", text)
            for pid, user in serving().items():
                if pid in killed:
                    continue  # /proc shows a killed broker until it has ended
                expect(user == ANNA, "a broker of %d" % user)
                # After more than three brokers in a row that lived less than a
                # second, the next start waits: for up to 10 s if the last broker
                # lived less than 0.1 s, else for 0.2 s at most (start.c).
                time.sleep(0.3)
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        # the first line may count data of the time before the last death
        text = read_figures(client, text, 2)
        expect(server.poll() is None, "Anna's program has ended")
        expect_told_user(system.Result(0, text), ANNA)
    finally:
        for p in server, client:
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()


def the_other_user_is_waited_for():
    """Bert's program starts when Anna's broker is dead and Anna's program,
    which alone can start the next broker, is stopped."""
    t.need("ib_write_bw")
    length = ["-D", "4"]
    server = server_of(ANNA, write_bw(length=length), 18601)
    os.killpg(server.pid, signal.SIGSTOP)
    for pid in brokers():
        os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    client = run_as(BERT, write_bw("127.0.0.1", length=length))
    time.sleep(0.2)
    os.killpg(server.pid, signal.SIGCONT)
    system.wait_until(serving, "no broker is started")
    is_late = time.monotonic() - began > 0.8
    r = t.finish(client, HANG)
    if r.status:
        os.killpg(server.pid, signal.SIGKILL)
    last = t.finish(server, HANG)
    if is_late:  # after one second Bert's program starts a broker of its own
        raise system.Skip("the machine is too slow: Anna's program was stopped "
                          "for too long")
    expect_ok(r)
    expect_ok(last)


def a_dead_broker_leaves_nothing():
    """Anna's broker gives Bert's processes no socket of port 4791.  So when Anna's
    program and broker are dead, no process holds the port, and Bert's program can
    start the next broker."""
    t.need("ib_write_bw")
    server = server_of(ANNA, write_bw(), 18601)
    client = run_as(BERT, write_bw("127.0.0.1"))
    try:
        text = more = b" "
        while more and b"iterations" not in text:
            more = os.read(client.stdout.fileno(), 4096)
            text += more
        os.killpg(client.pid, signal.SIGSTOP)
        for pid in brokers():
            os.kill(pid, signal.SIGSTOP)
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()
        for pid in brokers():
            os.kill(pid, signal.SIGKILL)
        first = server_of(BERT, PINGPONG, 18600)
        second = run_as(BERT, [*PINGPONG, "127.0.0.1"])
        for r in (t.finish(first, HANG), t.finish(second, HANG)):
            expect_ok(r)
        expect(list(brokers().values()) == [BERT],
               "brokers of %s" % brokers())
    finally:
        os.killpg(client.pid, signal.SIGKILL)
        client.communicate()


# A program that listens at an address of the broker, and prints how many bytes and
# descriptors each client sends.  It ignores mallory.py.
FAKE = """
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\\0" + sys.argv[1])
s.listen()
print("bound", flush=True)
while True:
    c = s.accept()[0]
    # mallory.py, which may run beside this suite, connects too
    cred = struct.unpack("3i", c.getsockopt(socket.SOL_SOCKET,
                                           socket.SO_PEERCRED, 12))
    try:
        with open("/proc/%d/cmdline" % cred[0], "rb") as f:
            if b"mallory.py" in f.read():
                continue
    except OSError:
        pass
    data, more, _, _ = c.recvmsg(4096, socket.CMSG_SPACE(64))
    print("heard %d bytes, %d descriptors" % (len(data), len(more)),
          flush=True)
"""


# A program that sends the broker 100 empty messages, each with four descriptors of a
# file.
EMPTY = """
import socket, sys
for _ in range(100):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(300)
        s.connect("\\0" + sys.argv[1])
        with open(sys.argv[2]) as f:
            socket.send_fds(s, [b""], [f.fileno()] * 4)
        # the broker has read the message when it closes the connection
        if s.recv(4096):
            sys.exit("the broker answers an empty message")
"""


def count_open(pid, path):
    """Returns how many descriptors of a process are of the file."""
    count, folder = 0, "/proc/%d/fd" % pid
    for number in os.listdir(folder):
        try:
            count += os.readlink(os.path.join(folder, number)) == path
        except FileNotFoundError:
            pass  # closed in the meantime
    return count


def empty_messages_leave_nothing():
    """Bert, and another process of Anna, send Anna's broker empty messages with
    descriptors of a file.  deny_syscall refuses SO_PASSRIGHTS to the broker, as a
    kernel before Linux 6.16 does, so that the broker gets these descriptors.  The
    broker keeps none of them."""
    t.need(PINGPONG[0])
    sent = t.path("sent")
    with open(sent, "w"):
        os.chmod(sent, 0o644)
    server = server_of(ANNA, [t.program("deny_syscall"), "rights", "--",
                              *PINGPONG], 18600)
    try:
        pid, = brokers()
        for user in BERT, ANNA:
            expect_ok(t.finish(start(user, [system.PYTHON, "-c", EMPTY,
                                            our_name(), sent]), HANG))
        system.wait_until(lambda: not count_open(pid, os.path.realpath(sent)),
                          "the broker keeps descriptors", HANG)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def fake_broker(user, name):
    fake = start(user, [system.PYTHON, "-c", FAKE, name])
    expect(fake.stdout.readline() == b"bound\n",
           "the broker's address is taken already")
    return fake


def expect_nothing_received(fake):
    """Expects that a program has connected to the fake broker, and that no
    program has sent anything to it.  Ends the fake broker."""
    os.set_blocking(fake.stdout.fileno(), False)
    said = b""

    def is_heard():
        nonlocal said
        said += fake.stdout.read() or b""
        return b"\n" in said
    system.wait_until(is_heard, "no program has connected to the fake broker")
    fake.kill()
    os.set_blocking(fake.stdout.fileno(), True)
    lines = (said + fake.communicate()[0]).splitlines(keepends=True)
    expect(set(lines) == {b"heard 0 bytes, 0 descriptors\n"},
           "the fake broker receives: %s" % lines)


def our_name():
    """Returns the address at which the broker of this version listens."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "../../../src/broker/proto.h")) as f:
        version = re.search(r"PROTO_VERSION\s+(\d+)", f.read()).group(1)
    return "adverbd-" + version


def refusal(user, pid, remedy=True):
    return ("adverb: the broker adverbd (process %d) of this network namespace "
            "is user %d's, who could read and change what this program sends, "
            "receives and registers, so it is sent nothing: have root set up "
            "the system's broker (adverb install --service), or use a network "
            "namespace of your own (adverb run --private -- PROGRAM)%s\n" % (
                pid, user, ", or trust that user: ADVERB_BROKER_USER=%d" % user
                if remedy else ""))


def a_stranger_is_refused(victim, program, **more):
    """Returns a case: Bert has taken the broker's address.  A program of
    @victim sends nothing there, prints once why, does not bind the port, and fails.
    The program does not wait for another broker: its patience is longer than its
    time limit."""
    def body():
        t.need(program[0])
        fake = fake_broker(BERT, our_name())
        try:
            r = t.finish(run_as(victim, program, ADVERB_PATIENCE=str(2 * HANG),
                                **more), HANG)
            expect_nothing_received(fake)
        finally:
            fake.kill()
        expect(r.output.count(refusal(BERT, fake.pid, victim != 0)) == 1,
               "the program does not print once whose broker it refuses", r)
        expect_failed(r)
        expect(not port_sockets(), "a program has bound the port")
    return body


def another_users_broker_is_refused():
    """Bert, who trusts no other user, does not use Anna's working broker."""
    t.need(PINGPONG[0])
    server = server_of(ANNA, PINGPONG, 18600)
    try:
        pid, = brokers()
        r = t.finish(run_as(BERT, [*PINGPONG, "127.0.0.1"],
                            ADVERB_BROKER_USER=""), HANG)
        expect_failed(r, "Bert's program succeeds")
        expect(refusal(ANNA, pid) in r.output,
               "no message names the broker's user", r)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def trusted_by_name():
    name = pwd.getpwuid(ANNA).pw_name
    server = server_of(ANNA, PINGPONG, 18600)
    r = t.finish(run_as(BERT, [*PINGPONG, "127.0.0.1"],
                        ADVERB_BROKER_USER=name), HANG)
    expect_ok(r)
    expect_ok(t.finish(server, HANG))
    expect_told_user(r, ANNA)


def the_overflow_user_is_not_trusted():
    """In a user namespace that maps only Anna, Bert appears as the overflow user,
    whose number is also Anna's.  A program of Anna does not trust a broker of the
    overflow user there."""
    t.need("ibv_devinfo")
    fake = fake_broker(BERT, our_name())
    try:
        p = start(ANNA, ["unshare", "-U", "--map-user=%d" % ANNA, t.adverb,
                         "run", "--", "ibv_devinfo"])
        r = t.finish(p, HANG)
        if "unshare" in r.output:
            raise system.Skip("no user namespace can be made")
        expect_nothing_received(fake)
        expect_failed(r)
        expect("is of a user without a number in this user namespace, who" in
               r.output, "no message names the broker's user", r)
    finally:
        fake.kill()


def without_proc_the_message_says_so():
    """Anna has the number of the overflow user.  Where /proc is not mounted, a
    program cannot tell whether that number stands for Anna alone."""
    t.need("ibv_devinfo")
    fake = fake_broker(ANNA, our_name())
    try:
        p = start(ANNA, [t.adverb, "run", "--", "ibv_devinfo"], before=[
            "unshare", "--mount", "sh", "-c",
            'mount -t tmpfs none /proc && exec "$@"', "sh"])
        r = t.finish(p, HANG)
        expect_failed(r)
        expect("/proc, which would tell, is not mounted" in r.output and
               "mount -t proc proc /proc" in r.output,
               "no message says what is missing", r)
    finally:
        fake.kill()


def system_account(owner, mode, is_trusted):
    """Returns a case: a broker of the user who owns /run/adverb is trusted as
    the system's broker, if only that user can write to the folder."""
    def body():
        t.need("ibv_devinfo")
        broker = start(ANNA, [os.path.join(t.build, "lib", "adverbd"),
                              "--foreground"])
        try:
            wait_for_broker()
            home = t.path("home-%d" % BERT)
            p = kept(subprocess.Popen(
                ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o mode=755 "
                 "none /run && mkdir -m %o /run/adverb && chown %d /run/adverb"
                 " && exec setpriv --reuid %d --regid %d --clear-groups "
                 "\"$@\"" % (mode, owner, BERT, BERT), "sh", t.adverb, "run",
                 "--", "ibv_devinfo"],
                env=dict(t.environment(), HOME=home, XDG_RUNTIME_DIR=home),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True))
            r = t.finish(p, HANG)
            expect((r.status == 0) == is_trusted,
                   "exit status %d" % r.status, r)
            expect((refusal(ANNA, broker.pid) in r.output) != is_trusted,
                   "the refusal is printed although the broker is trusted, or "
                   "is not printed although the broker is not trusted", r)
            expect_told_user(r, None)
        finally:
            broker.kill()
            broker.wait()
    return body


OPENS = """
#include <infiniband/verbs.h>
#include <stdio.h>
int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	setvbuf(stdout, NULL, _IONBF, 0);
	printf("%s\\n", ibv_open_device(list[0]) ? "opened" : "refused");
	getchar();
}
"""


def privileged_program(owner):
    """Builds a program that is set-user-ID to its owner and whose libraries the
    loader finds by the program's rpath.  Returns the command by which Bert
    starts it."""
    t.need("gcc")
    source, program = t.path("opens.c"), t.path("opens")
    with open(source, "w") as f:
        f.write(OPENS)
    lib = os.path.join(t.build, "lib")
    subprocess.run(["gcc", "-o", program, source, lib + "/libibverbs.so.1",
                    "-Wl,-rpath," + lib], check=True)
    os.chown(program, owner, owner)
    os.chmod(program, 0o4755)
    return ["setpriv", "--reuid", str(BERT), "--regid", str(BERT),
            "--clear-groups", program]


def run_privileged(owner=0, **more):
    return kept(subprocess.Popen(
        privileged_program(owner), env=dict(t.environment(), **more),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True))


def the_privileged_starts_none():
    """A set-user-ID program starts no broker: all users would trust that
    broker, and the program's caller could kill it."""
    p = run_privileged()
    try:
        said = line = " "
        while line and line not in ("opened\n", "refused\n"):
            line = p.stdout.readline().decode()
            said += line
        expect(not brokers(), "the program has started a broker")
        expect("this program starts none, since it has rights that its caller "
               "has not" in said and "opened\n" in said,
               "the program prints: " + said)
    finally:
        p.communicate(b"\n", timeout=HANG)


def the_privileged_trusts_no_variable():
    fake = fake_broker(BERT, our_name())
    try:
        p = run_privileged(ADVERB_BROKER_USER=str(BERT))
        said = p.communicate(b"\n", timeout=HANG)[0].decode()
        expect_nothing_received(fake)
        expect(refusal(BERT, fake.pid, False) in said and "refused\n" in said,
               "the program prints: " + said)
    finally:
        fake.kill()


def the_privileged_trusts_no_ordinary_user():
    """Bert runs a set-user-ID program of Anna's beside her broker.  The program has
    the rights of the broker's user, but Bert is the program's caller and chooses
    its environment, so the program uses the system's brokers alone."""
    t.need(PINGPONG[0])
    server = server_of(ANNA, PINGPONG, 18600)
    try:
        pid, = brokers()
        p = run_privileged(ANNA)
        said = p.communicate(b"\n", timeout=HANG)[0].decode()
        expect(refusal(ANNA, pid, False) in said and "refused\n" in said,
               "the program prints: " + said)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def packets_in_tree(folder):
    """Returns how many packets Anna's tree in the runtime folder @folder says
    were sent, or 0 if no program has made the tree yet."""
    try:
        with open(os.path.join(
                folder, "adverb-%d" % ANNA, "sysfs-%d" %
                os.stat("/proc/self/ns/net").st_ino, "class/infiniband/adv0/"
                "ports/1/counters/port_xmit_packets")) as f:
            return int(f.read())
    except FileNotFoundError:
        return 0


def counters_are_of_one_user():
    """Anna's broker, which also serves Bert, counts none of his packets in
    Anna's files: neither while his pair runs nor after it.  A pair of Anna
    sends few packets then, and these show that the files are written.  The
    runtime folder is new, since a broker adds to the values in the files."""
    t.need(PINGPONG[0])
    new = t.path("counters-of-anna")
    os.makedirs(new)
    os.chown(new, ANNA, ANNA)
    many = [*PINGPONG[:-1], "18602", "-n", "5000"]
    few = [*PINGPONG[:-1], "18604", "-n", "10"]
    holder = server_of(ANNA, PINGPONG, 18600, XDG_RUNTIME_DIR=new)
    try:
        server = server_of(BERT, many, 18602)
        client = run_as(BERT, [*many, "127.0.0.1"])
        most = 0
        while client.poll() is None:
            most = max(most, packets_in_tree(new))
            time.sleep(0.05)
        for r in t.finish(server, HANG), t.finish(client, HANG):
            expect_ok(r)
        server = server_of(ANNA, few, 18604, XDG_RUNTIME_DIR=new)
        client = run_as(ANNA, [*few, "127.0.0.1"], XDG_RUNTIME_DIR=new)
        expect_ok(t.finish(client, HANG))
        expect_ok(t.finish(server, HANG))
        end = time.monotonic() + HANG
        while not packets_in_tree(new):
            expect(time.monotonic() < end, "Anna's files are not written")
            time.sleep(0.05)
        most = max(most, packets_in_tree(new))
        # Bert's pair sends four packets for each of its 10 000 messages.
        expect(most < 10000, "%d packets are counted as Anna's" % most)
        expect(list(brokers().values()) == [ANNA], "brokers of %s" % brokers())
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.communicate()


def a_stranger_takes_the_name():
    """Bert takes the broker's address when Anna's broker has died: Anna's
    program connects there, sends nothing, and continues."""
    server = server_of(ANNA, PINGPONG, 18600)
    try:
        name = broker_name()
        os.killpg(server.pid, signal.SIGSTOP)
        for pid in brokers():
            os.kill(pid, signal.SIGKILL)
        while broker_name():
            time.sleep(0.001)
        fake = fake_broker(BERT, name)
        os.killpg(server.pid, signal.SIGCONT)
        expect_nothing_received(fake)
        expect(server.poll() is None, "Anna's program has ended")
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def one_port_space():
    """Bert cannot bind a port at which Anna listens, and can connect to that port.
    """
    t.need("rping")
    listens_at = ["rping", "-s", "-a", "127.0.0.1"]
    ready, theirs = os.pipe()
    server = run_as(ANNA, [*listens_at, "-P"], theirs)
    os.close(theirs)
    try:
        expect(os.read(ready, 1), "the server ends before it listens")
        r = t.finish(run_as(BERT, [*listens_at, "-C", "1"]), HANG)
        expect_failed(r, "two programs have one port")
        expect("127.0.0.1 port 7174 is in use" in r.output,
               "no message says that the port is in use", r)
        expect_ok(t.finish(run_as(BERT, ["rping", "-c", "-a", "127.0.0.1",
                                         "-C", "3", "-V"]), HANG))
    finally:
        os.close(ready)
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def a_low_port_is_roots():
    """Only root, and not Anna, may bind a port below 1024, as with the kernel.
    Root's broker serves Anna, too."""
    t.need("rping")
    ready, theirs = os.pipe()
    server = run_as(0, ["rping", "-s", "-a", "127.0.0.1", "-p", "500", "-P"],
                    theirs)
    os.close(theirs)
    try:
        expect(os.read(ready, 1), "root's server ends before it listens")
        r = t.finish(run_as(ANNA, ["rping", "-s", "-a", "127.0.0.1", "-p",
                                   "501", "-C", "1"]), HANG)
        expect_failed(r, "Anna's program has port 501")
        expect("127.0.0.1 port 501 cannot be bound: a port below 1024" in
               r.output and "rdma_bind_addr: Permission denied" in r.output,
               "no EACCES, or no message about the port", r)
        expect_ok(t.finish(run_as(ANNA, ["rping", "-c", "-a", "127.0.0.1",
                                         "-p", "500", "-C", "3", "-V"]), HANG))
    finally:
        os.close(ready)
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def hidden_holder():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.bind(("::", 4791))
        r = t.finish(run_as(ANNA, PINGPONG), HANG)
    expect_failed(r, "the pingpong starts, although the port is held")
    expect("port 4791 is held by a process of user 0, which this user "
           "cannot see" in r.output, "no message names the holder of the port", r)


def two_roots_at_once():
    """Runs two processes, each of which is user 0 of a user namespace of its own.
    strace delays the mkdir of the first process, so that both processes find the
    same name free."""
    t.need("strace")
    shared = t.path("shared")
    os.makedirs(shared)
    os.chmod(shared, 0o1777)
    trace = t.path("home-%d/trace" % ANNA)
    late = ["strace", "-f", "-o", trace, "-e", "trace=/^mkdir", "-e",
            "inject=/^mkdir:delay_enter=2000000:when=1"]
    lists = ["unshare", "-Urnm", "env", "-u", "ADVERB_RUNTIME", "-u",
             "XDG_RUNTIME_DIR", "sh", "-c", "mount --bind %s /dev/shm && "
             "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && "
             'exec "$@"' % shared, "sh", t.adverb, "run", "--",
             "ls", "/sys/class/infiniband"]
    try:
        first = start(ANNA, late + lists)
        while first.poll() is None and not (os.path.exists(trace) and
                                            os.path.getsize(trace)):
            time.sleep(0.01)
        results = t.finish(start(BERT, lists), HANG), t.finish(first, HANG)
        for r in results:
            if "unshare" in r.output or "mount" in r.output:
                raise system.Skip("no user namespace can be made")
            expect(r.status == 0 and r.output == "adv0\n",
                   "a program shows no device", r)
        expect(os.path.getsize(trace),
               "strace has not delayed the mkdir of the first process")
    finally:
        shutil.rmtree(shared)


def set_user_id():
    """adverb run refuses a program that becomes another user by its
    set-user-ID bit, since the loader then ignores LD_PRELOAD."""
    path = t.path("su")
    shutil.copyfile("/bin/true", path)
    os.chmod(path, 0o4755)
    argv = [t.adverb, "run", "--", path]
    r = t.run(argv)
    expect(r.status == 0, "with no_new_privs, adverb run refuses the program", r)
    done = subprocess.run(
        ["setpriv", "--reuid", str(BERT), "--regid", str(BERT),
         "--clear-groups", *argv], capture_output=True, text=True, check=False)
    expect(done.returncode == 126 and "set-user-ID" in done.stderr,
           "exit status %d: %s" % (done.returncode, done.stderr))
    done = subprocess.run(
        ["setpriv", "--reuid", str(BERT), "--regid", str(BERT),
         "--clear-groups", *argv[:-1], "sh", "-c", path + "; echo $?"],
        capture_output=True, text=True, check=False)
    expect(done.stdout == "0\n" and not done.stderr,
           "as a child of sh: " + done.stdout + done.stderr)
    # The kernel ignores the bit of a script, and obeys that of an interpreter.
    script = t.path("script")
    for interpreter, mode, status in (("/bin/sh", 0o4755, 0),
                                      (path, 0o755, 126)):
        with open(script, "w") as f:
            f.write("#!%s\n" % interpreter)
        os.chmod(script, mode)
        done = subprocess.run(
            ["setpriv", "--reuid", str(BERT), "--regid", str(BERT),
             "--clear-groups", *argv[:-1], script], capture_output=True,
            text=True, check=False)
        expect(done.returncode == status and
               ("a script for " + path in done.stderr) == (status != 0),
               "a script for %s: exit status %d: %s" %
               (interpreter, done.returncode, done.stderr))
    # The kernel ignores the bit on a file system that is mounted with nosuid.
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && '
         'mount -o remount,bind,nosuid "$0" && exec "$@"', os.path.dirname(path),
         "setpriv", "--reuid", str(BERT), "--regid", str(BERT),
         "--clear-groups", *argv], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, "with nosuid: exit status %d: %s" %
           (done.returncode, done.stderr))
    os.rename(path, t.path("sudo"))
    done = subprocess.run(
        ["setpriv", "--reuid", str(BERT), "--regid", str(BERT),
         "--clear-groups", *argv[:-1], t.path("sudo")], capture_output=True,
        text=True, check=False)
    expect(done.returncode == 126 and "`sudo adverb run -- ...`" in
           done.stderr, "no message says how to run sudo: " + done.stderr)


LOOK = """
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
	struct rlimit locked;

	getrlimit(RLIMIT_MEMLOCK, &locked);
	printf("%d %d %d\\n", access("/sys/class/infiniband/mine", F_OK),
	       socket(AF_NETLINK, SOCK_RAW, 20) >= 0,
	       locked.rlim_cur == RLIM_INFINITY);
}
"""


def shows_no_privileged_program():
    """The shim, with which the program is linked, shows nothing to a
    set-user-ID program: the program's environment comes from its caller."""
    t.need("gcc")
    if os.path.exists("/sys/class/infiniband"):
        raise system.Skip("the kernel has RDMA devices")
    # The tree is Bert's and lies in a folder of root: the shim shows a program of
    # Bert no tree of another user, and none in a folder that is neither Bert's
    # nor root's.
    place = tempfile.mkdtemp()
    os.chmod(place, 0o755)
    tree = place + "/forged"
    os.makedirs(tree + "/class/infiniband/mine")
    for folder, _, _ in os.walk(tree):
        os.chown(folder, BERT, BERT)
    source, program = t.path("look.c"), t.path("look")
    with open(source, "w") as f:
        f.write(LOOK)
    libraries = os.path.join(t.build, "lib")
    subprocess.run(["gcc", "-o", program, source, "-Wl,--no-as-needed",
                    libraries + "/libadverb-shim.so",
                    "-Wl,-rpath," + libraries], check=True)
    for mode, wanted in ((0o755, "0 1 1\n"), (0o4755, "-1 0 0\n")):
        os.chmod(program, mode)
        done = subprocess.run(
            ["setpriv", "--reuid", str(BERT), "--regid", str(BERT),
             "--clear-groups", "prlimit", "--memlock=65536", program],
            capture_output=True, text=True, check=False,
            env=dict(os.environ, ADVERB_SYSFS=tree))
        expect(done.stdout == wanted, "mode %o: %s" % (
            mode, done.stdout + done.stderr))
    shutil.rmtree(place)


enter()
t = system.Suite(__doc__, hears_strangers=True)
if not t.options.list:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.chmod(t.tmp, 0o755)
for words, test in (
        ("the second user is told the broker's user", two_users),
        ("another user's broker is refused", another_users_broker_is_refused),
        ("a broker of a user that is named is trusted", trusted_by_name),
        ("another user's broker receives nothing",
         a_stranger_is_refused(ANNA, ["ibv_devinfo"])),
        ("another user's broker receives nothing of rdma_cm",
         a_stranger_is_refused(ANNA, ["rping", "-s", "-C", "1"])),
        ("root trusts no user's broker", a_stranger_is_refused(
            0, ["ibv_devinfo"], ADVERB_BROKER_USER=str(BERT))),
        ("a broker of the overflow user is not trusted",
         the_overflow_user_is_not_trusted),
        ("without /proc a message says that /proc is missing",
         without_proc_the_message_says_so),
        ("the system account's broker is trusted silently",
         system_account(ANNA, 0o755, True)),
        ("a broker is not trusted if others may write in its folder",
         system_account(ANNA, 0o775, False)),
        ("a broker of another user than the folder's is not trusted",
         system_account(BERT - 1, 0o755, False)),
        ("a set-user-ID program starts no broker", the_privileged_starts_none),
        ("a set-user-ID program trusts no variable",
         the_privileged_trusts_no_variable),
        ("a set-user-ID program of a user does not trust that user's broker",
         the_privileged_trusts_no_ordinary_user),
        ("two users do not reach each other's memory", two_users_apart),
        ("one user's files count no packet of another user",
         counters_are_of_one_user),
        ("root's broker is trusted silently", roots_broker),
        ("the death of another user's process is seen", a_death_is_seen),
        ("the dead broker's user starts the next broker",
         the_brokers_user_takes_over),
        ("a program that starts meanwhile waits for the next broker",
         the_other_user_is_waited_for),
        ("a dead broker leaves nothing with other users",
         a_dead_broker_leaves_nothing),
        ("empty messages leave the broker no descriptor",
         empty_messages_leave_nothing),
        ("a program that takes a dead broker's name receives nothing",
         a_stranger_takes_the_name),
        ("the users have one port space", one_port_space),
        ("a port below 1024 is root's", a_low_port_is_roots),
        ("a message names root as the holder of the port", hidden_holder)):
    t.case(words, ends_brokers(test), "many processes", words)
for tool in "ibv_uc_pingpong", "ibv_rc_pingpong":
    words = tool + " through another user's forged frames"
    t.case(words, ends_brokers(forged(tool)), "hostile", words)
t.case("roots of two user namespaces that start at once have a device each",
       two_roots_at_once)
t.case("run refuses a set-user-ID program", set_user_id)
t.case("the shim shows a set-user-ID program nothing",
       shows_no_privileged_program)
t.end()
