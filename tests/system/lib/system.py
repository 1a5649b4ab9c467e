# SPDX-License-Identifier: BSD-2-Clause
"""The common part of the system tests.

Every test runs programs on the built tree, as an unprivileged user with
no_new_privs, and prints one line per case:

    ok NAME (seconds) | FAIL NAME: why (seconds) | skipped NAME: why

and at the end `N passed, N failed, N skipped`.  A failure shows the output of
both sides.  A case with an area also appends a row to results/SCRIPT.tsv in
the build folder's parent: area, program, peer, result.
"""

import argparse
import array
import atexit
import contextlib
import ctypes
import fcntl
import fnmatch
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback

NOBODY = 65534
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
# The interpreter of this script: ci/setup unpacks one where none is installed.
PYTHON = sys.executable
# An ordinary user's PATH lacks the folders of ip, ldconfig and chroot.
os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"
# A program that runs for this many seconds hangs: even on a loaded machine no
# program needs so long.  Cases with many rounds or processes have longer limits
# of their own.
HANG = 400


def is_root():
    """Returns whether this process is root, and the ranges of its user
    namespace's uid_map have more than NOBODY user IDs in all, so that the
    process can become another user.  For root of the machine one range has all
    IDs; for root of a user namespace that maps one user alone, one range has
    one ID."""
    with open("/proc/self/uid_map") as f:
        count = sum(int(line.split()[2]) for line in f)
    return os.geteuid() == 0 and count > NOBODY


# A program that binds the port of RoCEv2 at all addresses, prints a line, and keeps
# the port.
HOLD = """
import socket, time
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 4791))
print("held")
time.sleep(%d)
""" % HANG


# The messages in which a program reports frames that fit none of its
# connections, or that are malformed.  A message may follow text of the program
# that no newline ends.
STRANGERS = re.compile(
    r"(?:^[\w ]*\| *)?adverb: (packets from .* fit no connection of this process:|"
    r"[0-9]+ packets were dropped that are malformed) .*\n?", re.M)


# The message about a broker that is stopped, is slow to start, or has not
# answered for some seconds.
LATE = re.compile(r"^(?:[\w ]*\| *)?adverb: the broker adverbd.*: waiting for it as "
                  r"long as .*\n?", re.M)


class Skip(Exception):
    """The case cannot run here; the text says why."""


class Fail(Exception):
    """The case failed; the text says why, and `output` is the output of both
    sides."""

    def __init__(self, why, output=""):
        super().__init__(why)
        self.output = output


class Result:
    """The status and the output of a program that has ended.  A status below 0 is
    the negative number of the signal that ended the program; 124 says that the
    program was killed after a time limit."""

    def __init__(self, status, output):
        self.status = status
        self.output = output

    def lines(self, side):
        """Returns the lines that one side of a pair printed."""
        mark = side + "| "
        return [line[len(mark):] for line in self.output.splitlines()
                if line.startswith(mark)]


def with_report(argv):
    """Returns @argv, with -F if @argv runs a tool of perftest.  Without -F the
    tool compares two clocks, and fails without a report if it loses its
    processor between the two readings.  No suite checks the values that the
    tool measures.
    """
    is_perftest = any(re.fullmatch(r"ib_(write|read|send|atomic)_(bw|lat)",
                                   os.path.basename(word)) for word in argv)
    return [*argv, "-F"] if is_perftest and "-F" not in argv else argv


def listens(port):
    """Returns whether a TCP socket of this network namespace listens at a port."""
    with open("/proc/net/tcp") as f, open("/proc/net/tcp6") as g:
        return any(line.split()[3] == "0A" and
                   line.split()[1].endswith(":%04X" % port)
                   for line in f.readlines()[1:] + g.readlines()[1:])


waiting = None  # the signals that wait for the end of uninterrupted(), if it runs


@contextlib.contextmanager
def uninterrupted():
    """Delays end_early, which Python runs in the main thread.  An exception inside Popen
    would leave a process that the suite does not know."""
    global waiting
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting = []
    try:
        yield
    finally:
        came, waiting = waiting, None
        for number in came[:1]:
            end_early(number, None)


def end_early(number, _):
    """Ends this script by an exception, so that each `finally` and atexit run.  A
    second signal, as `timeout` sends it besides the group's sender, does not
    interrupt these.  After SIGINT Python ends by SIGINT, so that a shell ends, too."""
    if waiting is not None:
        waiting.append(number)
        return
    for each in signal.SIGINT, signal.SIGTERM:
        signal.signal(each, lambda *_: None)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def catch_signals():
    """Makes signals end this script by end_early, except for a SIGINT that its caller
    ignores."""
    signal.signal(signal.SIGTERM, end_early)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, end_early)


def kill_groups(processes):
    """Kills those of @processes that still run, each with its whole group."""
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            # The exception of a signal can leave a lock of Popen taken, for which
            # wait() without a limit would wait for ever.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


class Suite:
    """The cases of one script, and what these cases share."""

    def __init__(self, description, packets=False, hears_strangers=False):
        """@description: the text that --help prints.  @packets: programs send
        packets also to programs of the same host.  @hears_strangers: outputs
        keep the messages about other users' frames, also beside mallory.py.
        """
        parser = argparse.ArgumentParser(
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--build", default="build/out",
                            help="the build folder (default build/out)")
        parser.add_argument("--only", default="*", metavar="PATTERN",
                            help="run the cases whose names match")
        parser.add_argument("--list", action="store_true",
                            help="list the cases, run none")
        parser.add_argument("--full", action="store_true",
                            help="run the nightly lengths")
        parser.add_argument("--packets", action="store_true",
                            help="send packets although both ends are on this "
                            "host")
        self.options = parser.parse_args()
        self.packets = packets or self.options.packets
        # mallory.py sets the variable: another user sends frames and makes
        # connections in the same namespace.
        self.is_beside_hostile = "BESIDE_HOSTILE" in os.environ
        self.hears_strangers = hears_strangers
        self.build = os.path.abspath(self.options.build)
        self.adverb = os.path.join(self.build, "tools", "adverb")
        self.passed = self.failed = self.skipped = 0
        self.notes = []
        self.started = []  # processes that may still run
        if not self.options.list and not os.access(self.adverb, os.X_OK):
            sys.exit("%s is not built" % self.adverb)
        # This folder is HOME of the unprivileged processes, which also write captures
        # here.
        self.tmp = tempfile.mkdtemp(prefix="adverb-system-")
        os.chmod(self.tmp, 0o755)
        # Brokers write counters to the runtime folder, and clients wait meanwhile.
        # On a disk, a write may take seconds while others write.
        fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else self.tmp
        self.runtime = tempfile.mkdtemp(prefix="adverb-run-", dir=fast)
        if is_root():
            os.chown(self.tmp, NOBODY, NOBODY)
            os.chown(self.runtime, NOBODY, NOBODY)
        atexit.register(self.clean_up)
        catch_signals()

    def clean_up(self):
        """Ends what this suite has started and removes its folders, also if the suite
        ends early."""
        kill_groups(self.started)
        for folder in self.runtime, self.tmp:
            shutil.rmtree(folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.tmp, name)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("ADVERB_", "LD_"))}
        # DEB_LIBRARIES names the folders of libraries that ci/setup has unpacked for a
        # user who may not install.
        if "DEB_LIBRARIES" in env:
            env["LD_LIBRARY_PATH"] = env["DEB_LIBRARIES"]
            # the scripts ibhosts and ibswitches start programs from here
            env["IBPATH"] = os.path.dirname(
                shutil.which("ibnetdiscover") or "/usr/sbin/")
        if self.packets:
            env["ADVERB_DIRECT"] = "0"
        env.update(HOME=self.tmp, XDG_RUNTIME_DIR=self.runtime, LC_ALL="C",
                   **more)
        return env

    def unprivileged(self, argv):
        """Returns the command that runs @argv with no_new_privs, and as NOBODY if
        is_root().  Root that is_root() excludes keeps its user, and loses its
        capabilities."""
        drop = ["setpriv", "--no-new-privs"]
        if is_root():
            drop += ["--reuid", str(NOBODY), "--regid", str(NOBODY),
                     "--clear-groups"]
        elif os.geteuid() == 0:
            drop += ["--bounding-set=-all", "--inh-caps=-all"]
        return drop + argv

    def start(self, argv, **options):
        """Starts @argv unprivileged, in a process group of its own.  Returns the
        process.  @into: a function that puts words before the command that drops the
        privileges; these words run with the privileges of this script."""
        into = options.pop("into", lambda words: words)
        with uninterrupted():
            process = subprocess.Popen(
                into(self.unprivileged(with_report(argv))),
                stdin=options.pop("stdin", subprocess.DEVNULL),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.tmp,
                start_new_session=True,
                env=options.pop("env", self.environment()), **options)
            self.started.append(process)
        return process

    def finish(self, process, timeout):
        """Waits until @process ends, and returns its Result.  After @timeout
        seconds kills the process with its whole group; the status is then 124."""
        try:
            out, _ = process.communicate(timeout=timeout)
            return Result(process.returncode, self.without_strangers(out))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            return Result(124, self.without_strangers(out) +
                          "\n(killed after %d s)\n" % timeout)

    def without_strangers(self, output):
        text = output.decode(errors="replace")
        if self.hears_strangers or not self.is_beside_hostile:
            return text
        return STRANGERS.sub("", text)

    def need_no_hostile(self, why):
        """Skips a case that the hostile user of mallory.py disturbs by design.
        @why: the words of the message after "the hostile user"."""
        if self.is_beside_hostile:
            raise Skip("the hostile user " + why)

    def packets_sent(self, program):
        """Returns how many packets the running processes of this name have sent so
        far.  Packets of other users from the same addresses do not count."""
        r = self.run([self.adverb, "top", "--once", "--json", "--interval",
                      "0.01"])
        expect_ok(r)
        return sum(p["tx_packets"] for p in json.loads(r.output)["processes"]
                   if p["name"] == program)

    def goes_on(self, program, *processes):
        """Waits until processes of this name have sent 1000 packets more.  Expects
        that none of @processes has ended then."""
        enough = self.packets_sent(program) + 1000

        def has_ended():
            return any(p.poll() is not None for p in processes)
        wait_until(lambda: has_ended() or self.packets_sent(program) > enough,
                   program + " sends nothing")
        expect(not has_ended(), program + " has ended")

    def run(self, argv, timeout=HANG, **env):
        return self.finish(self.start(argv, env=self.environment(**env)),
                           timeout)

    def adverb_run(self, argv, options=(), timeout=HANG, **env):
        return self.run([self.adverb, "run", *options, "--", *argv], timeout,
                        **env)

    def program(self, name):
        """Returns the path of a built program of tests/system."""
        return os.path.join(self.build, "tests", "system", name)

    def valgrind_run(self, program, **env):
        """Runs a program of tests/system under valgrind.  Returns the Result,
        with the exit status 9 if valgrind reports an error."""
        self.need("valgrind")
        tried = self.run(["valgrind", "-q", "true"])
        if tried.status:
            raise Skip("valgrind does not start here: " + tried.output[-200:])
        return self.run([self.adverb, "run", "--", "valgrind", "-q",
                         "--error-exitcode=9",
                         self.program(program)],
                        **env)

    def pair_argv(self, argv, options=(), timeout=HANG):
        return [self.adverb, "pair", "--timeout", str(timeout), *options,
                "--", *argv]

    def pair(self, argv, options=(), timeout=HANG, **env):
        """Runs both ends of a tool.  Returns the Result.  The limit of `adverb
        pair` is shorter than that of this script, so that `adverb pair` reports the
        timeout."""
        return self.run(self.pair_argv(argv, options, timeout), timeout + 10,
                        **env)

    @contextlib.contextmanager
    def port_held(self):
        """Starts a program that has the port of RoCEv2.  Yields its process."""
        p = self.start([PYTHON, "-u", "-c", HOLD])
        try:
            p.stdout.readline()
            yield p
        finally:
            p.kill()
            p.communicate()

    def paced(self, **more):
        """Returns the environment of two ends that load pace.so, which is built
        from tests/interop/guest/pace.c.  By default the library makes the client's
        second rdma_connect wait until the server listens a second time.  @more:
        further variables, such as PACE_FIRST of pace.c."""
        fd, path = tempfile.mkstemp(prefix="pace-", dir=self.tmp)
        os.close(fd)
        os.symlink(path + ".listens", path + ".connect")
        library = self.program("pace.so")
        # a library that did not export its functions would change nothing, and
        # no test would notice
        expect(hasattr(ctypes.CDLL(library), "rdma_connect"),
               library + " has no rdma_connect")
        return {"PACE": path, "LD_PRELOAD": library, **more}

    def note(self, text):
        """Adds @text, which says how much was done, to the case's line."""
        self.notes.append(text)

    def checks(self, program, area, *words, **env):
        """Runs one of our programs that prints a line per case, and makes each
        of its cases a case of this suite.  --list and --only hold for these
        cases (check.h).  The last case compares the lines with the program's
        counts.  Returns the Result."""
        if self.options.list:
            env["CHECK_LIST"] = "1"
        r = self.adverb_run([self.program(program), *words],
                            CHECK_ONLY=self.options.only, **env)
        found = re.findall(r"^(ok|FAIL|case) ([^:\n]+)(?:: (.*))?$", r.output,
                           re.M)
        for word, name, why in found:
            self.case(name, lambda bad=word == "FAIL", why=why:
                      expect(not bad, why), area, program)
        self.case(program + " runs to its end", lambda: expect_counts(
            r, [word for word, _, _ in found]))
        return r

    def every_check(self, program, r, *words, **env):
        """Returns a Result with all cases of the program.  @r: the Result of
        checks().  If --only may have left cases out of @r, runs the program again.
        """
        if self.options.only == "*":
            return r
        return self.adverb_run([self.program(program), *words], **env)

    def need(self, program):
        if not shutil.which(program):
            raise Skip("%s is not installed" % program)

    def need_ucx(self):
        """Skips the case where UCX is missing, or is built without its
        transports for verbs, as in some distributions."""
        self.need("ucx_info")
        folder = os.path.dirname(os.path.dirname(os.path.realpath(
            shutil.which("ucx_info"))))
        if not any(glob.glob(folder + where + "/ucx/libuct_ib.so*")
                   for where in ("/lib/*", "/lib", "/lib64")):
            raise Skip("UCX is built without libuct_ib")

    def attempt(self, body):
        """Runs @body.  If @body raises an exception, kills the processes that @body
        has started and that still run, each with its whole group: the next case may
        need their ports, and nobody else would end them."""
        self.started = [p for p in self.started if p.poll() is None]
        before = len(self.started)
        try:
            body()
        except BaseException:
            kill_groups(self.started[before:])
            raise

    def case(self, name, body, area=None, program=None, peer="adverb"):
        """Runs @body, which raises Skip if the case cannot run, and another
        exception if the case fails.  @area, @program, @peer: the row of the
        results; no row if @area is None."""
        if not fnmatch.fnmatch(name, self.options.only):
            return
        if self.options.packets:
            name += ", by packets"
        if self.options.list:
            print(name)
            return
        began = time.monotonic()
        self.notes = []
        try:
            self.attempt(body)
            self.passed += 1
            result = "ok"
            print("ok %s (%s)" % (name, ", ".join(
                ["%.1f s" % (time.monotonic() - began), *self.notes])))
        except Skip as why:
            self.skipped += 1
            result = "skipped"
            print("skipped %s: %s" % (name, why))
        except Exception as why:  # an unexpected error fails this case only
            self.failed += 1
            result = "FAIL"
            print("FAIL %s: %s (%.1f s)" % (name, why,
                                            time.monotonic() - began))
            said = why.output if isinstance(why, Fail) else \
                traceback.format_exc()
            for line in said.splitlines():
                print("    " + line)
        sys.stdout.flush()
        if area:
            self.record(area, program or name, peer, result)

    def record(self, area, program, peer, result):
        folder = os.path.join(os.path.dirname(self.build), "results")
        os.makedirs(folder, exist_ok=True)
        script = os.path.splitext(os.path.basename(sys.argv[0]))[0]
        with open(os.path.join(folder, script + ".tsv"), "a") as table:
            table.write("\t".join((area, program, peer, result)) + "\n")

    def end(self):
        if self.options.list:
            return
        print("%d passed, %d failed, %d skipped" %
              (self.passed, self.failed, self.skipped))
        sys.exit(1 if self.failed else 0)


def expect(condition, why, result=None):
    if not condition:
        raise Fail(why, result.output if result else "")


def expect_ok(result):
    expect(result.status == 0, "exit status %d" % result.status, result)
    # rping exits with 0 if a ping fails, and says what it waited for.  A server
    # says that it waited for RDMA_READ_ADV also when its client has ended
    # without a failure.
    expect(not re.search("^wait for RDMA_(?!READ_ADV)", result.output, re.M),
           "a ping of rping has failed", result)


def expect_failed(result, why="no failure is reported"):
    """Expects that a program has reported a failure by its exit status: the
    program has not succeeded, and was not killed by a signal or after its time
    limit.  @why: the reason to print if the program has succeeded."""
    expect(result.status, why, result)
    expect(result.status > 0 and result.status != 124,
           "exit status %d" % result.status, result)


def expect_counts(result, words):
    """Expects that a program has printed its counts, and that they are those of
    @words, the first words of the lines of its cases.  The counts differ if a name
    has a colon that no space follows: checks() does not recognise such a line."""
    counts = re.search(r"^(\d+) passed, (\d+) failed", result.output, re.M)
    expect(counts, "exit status %d" % result.status, result)
    seen = "%d passed, %d failed" % (words.count("ok"), words.count("FAIL"))
    expect(seen == counts[0], "the program prints %s, and its lines say %s" %
           (counts[0], seen), result)


def paced_ns(env, what):
    """Returns the time that pace.so has written to a file, in ns of
    CLOCK_MONOTONIC; if there is no such file, the present time.  The file's
    name is $PACE followed by @what.  @env: from Suite.paced."""
    try:
        with open(env["PACE"] + what) as f:
            return int(f.read())
    except FileNotFoundError:
        return time.monotonic_ns()


def expect_silent(result):
    """Expects that the programs of @result have printed no message of adverb, except
    that a broker is late."""
    expect("adverb:" not in LATE.sub("", result.output),
           "adverb prints a message", result)


def wait_until(is_so, why, seconds=HANG):
    """Waits until is_so() is true; fails with @why after @seconds."""
    end = time.monotonic() + seconds
    while not is_so():
        expect(time.monotonic() < end, why)
        time.sleep(0.01)


def await_output(process, count, seconds=HANG):
    """Waits until @process has written @count bytes that nobody has read yet, or
    has ended."""
    waiting = array.array("i", [0])
    end = time.monotonic() + seconds
    while process.poll() is None:
        fcntl.ioctl(process.stdout, termios.FIONREAD, waiting)
        if waiting[0] >= count:
            return
        expect(time.monotonic() < end, "the program has written only %d bytes" %
               waiting[0])
        time.sleep(0.01)


def often_enough(least, once, what):
    """Calls @once, which returns how often it has done @what, until the sum of these
    numbers is at least @least; fails after 50 calls.  On a busy machine the
    programs under test may end before this script runs again, so one call may
    not be enough."""
    done = 0
    for _ in range(50):
        done += once()
        if done >= least:
            return
    raise Fail("only %d %s" % (done, what))


def spin(seconds):
    """Starts a process that computes for @seconds, or until this script has
    ended.  Returns the process."""
    return subprocess.Popen(
        [PYTHON, "-c", "import os, time\nend = time.monotonic() + %d\n"
         "while time.monotonic() < end and os.getppid() == %d: pass" %
         (seconds, os.getpid())])


def in_namespace(words):
    """Returns the command that runs @words in a network namespace of their
    own."""
    return ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"',
            "sh", *words]


def named(comm, pid="self"):
    """Returns the processes of this name in the network namespace of @pid: a
    dict of their process ids and user ids."""
    mine = os.readlink("/proc/%s/ns/net" % pid)
    found = {}
    for one in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):
        try:
            # the name of another user's program may hold any bytes
            with open("/proc/%d/comm" % one, "rb") as f:
                if f.read() == comm.encode() + b"\n" and \
                        os.readlink("/proc/%d/ns/net" % one) == mine:
                    found[one] = os.stat("/proc/%d" % one).st_uid
        except OSError:
            pass  # the process has ended, or is closed to this user
    return found


def brokers(pid="self"):
    return named("adverbd", pid)


def port_sockets():
    """Returns how many UDP sockets of RoCEv2's port this network namespace has."""
    with open("/proc/net/udp6") as f:
        return sum(":12B7 " in line for line in f)


def serving(pid="self"):
    """Returns the brokers that have begun to serve.  Until then the standard
    error of a broker is a socket to the process that started it.  If a broker dies
    before it serves, its starter believes that the broker cannot be run."""
    found = {}
    for broker, user in brokers(pid).items():
        try:
            if not os.readlink("/proc/%d/fd/2" % broker).startswith("socket:"):
                found[broker] = user
        except OSError:
            pass  # the broker has ended meanwhile
    return found


def session_of(*leaders):
    """Returns the ids of all processes in the sessions of these leaders."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(name)) in leaders:
                found.append(int(name))
        except OSError:
            pass
    return found


def pause(processes, seconds):
    """Stops these processes and their children for @seconds."""
    pids = session_of(*(p.pid for p in processes))
    for sig in signal.SIGSTOP, signal.SIGCONT:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
        if sig == signal.SIGSTOP:
            time.sleep(seconds)


def throttle(p, share, limit=HANG, period=0.1):
    """Lets @p and its children run for @share of each period, as a quota of
    the processor does, until @p ends, for @limit seconds at most.  A real quota
    would need a cgroup of our own.  The broker is not slowed."""
    end = time.monotonic() + limit
    while p.poll() is None and time.monotonic() < end:
        time.sleep(period * share)
        pause([p], period * (1 - share))
