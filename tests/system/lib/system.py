# SPDX-License-Identifier: BSD-2-Clause
"""The common part of the system tests.

Every test runs unmodified programs on the built tree, as an unprivileged user
with no_new_privs, and prints one line a case:

    ok NAME (seconds) | FAIL NAME: why (seconds) | skipped NAME: why

and at the end `N passed, N failed, N skipped`.  A failure shows what both
sides said.  Cases with an area also append a row to results/SCRIPT.tsv in the
build folder's parent: area, program, peer, result.
"""

import ctypes
import argparse
import contextlib
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
import time
import traceback

NOBODY = 65534
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
# The one that ci/setup unpacked where none is installed.
PYTHON = sys.executable
# An ordinary user's PATH has not the folders of ip, ldconfig and chroot.
os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"
# Seconds after which what runs is taken to hang, however loaded the machine is.
HANG = 400


def is_root():
    """Root of the machine, who can become another user; root of a user
    namespace of one user cannot."""
    with open("/proc/self/uid_map") as f:
        return os.geteuid() == 0 and int(f.read().split()[2]) > NOBODY


HOLD = """
import socket, time
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 4791))
print("held")
time.sleep(%d)
""" % HANG


# The messages of a program about frames that fit no connection of its own, each
# perhaps behind a line of the program that has no end yet.
STRANGERS = re.compile(
    r"(?:^[\w ]*\| *)?adverb: (packets from .* fit no connection of this process|"
    r"somebody sends junk to UDP port 4791): .*\n?", re.M)


class Skip(Exception):
    """The case cannot be tried here; the text says why."""


class Fail(Exception):
    """The case failed; the text says why, `output` shows both sides."""

    def __init__(self, why, output=""):
        super().__init__(why)
        self.output = output


class Result:
    def __init__(self, status, output):
        self.status = status
        self.output = output

    def lines(self, side):
        """Returns the lines that one side of a pair printed."""
        mark = side + "| "
        return [line[len(mark):] for line in self.output.splitlines()
                if line.startswith(mark)]


def with_report(argv):
    """perftest compares two clocks, and ends in error without a report when
    it loses its processor meanwhile; with -F it does not.  The suites do not
    read its figures."""
    is_perftest = any(re.fullmatch(r"ib_(write|read|send|atomic)_(bw|lat)",
                                   os.path.basename(word)) for word in argv)
    return [*argv, "-F"] if is_perftest and "-F" not in argv else argv


class Suite:
    """Cases of one script."""

    def __init__(self, description, packets=False, hears_strangers=False):
        """@description: printed by --help.  @packets: sends packets within a
        host too.  @hears_strangers: keeps the sentences about other users'
        frames, beside mallory.py too."""
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
        # Other users' frames and connections are there too: mallory.py.
        self.is_beside_hostile = "BESIDE_HOSTILE" in os.environ
        self.hears_strangers = hears_strangers
        self.build = os.path.abspath(self.options.build)
        self.adverb = os.path.join(self.build, "tools", "adverb")
        self.passed = self.failed = self.skipped = 0
        self.notes = []
        if not self.options.list and not os.access(self.adverb, os.X_OK):
            sys.exit("%s is not built" % self.adverb)
        # Unprivileged processes write here: captures and the runtime folder.
        self.tmp = tempfile.mkdtemp(prefix="adverb-system-")
        os.chmod(self.tmp, 0o755)
        self.runtime = os.path.join(self.tmp, "run")
        os.mkdir(self.runtime)
        os.chmod(self.runtime, 0o700)
        if is_root():
            os.chown(self.tmp, NOBODY, NOBODY)
            os.chown(self.runtime, NOBODY, NOBODY)

    def path(self, name):
        return os.path.join(self.tmp, name)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("ADVERB_", "LD_"))}
        # The folders that ci/setup unpacked for a user who may not install.
        if "DEB_LIBRARIES" in env:
            env["LD_LIBRARY_PATH"] = env["DEB_LIBRARIES"]
        if self.packets:
            env["ADVERB_DIRECT"] = "0"
        env.update(HOME=self.tmp, XDG_RUNTIME_DIR=self.runtime, LC_ALL="C",
                   **more)
        return env

    def unprivileged(self, argv):
        drop = ["setpriv", "--no-new-privs"]
        if is_root():
            drop += ["--reuid", str(NOBODY), "--regid", str(NOBODY),
                     "--clear-groups"]
        elif os.geteuid() == 0:
            drop += ["--bounding-set=-all", "--inh-caps=-all"]
        return drop + argv

    def start(self, argv, **options):
        """Starts @argv unprivileged, in a process group of its own; @into
        puts words before it that need the privilege."""
        into = options.pop("into", lambda words: words)
        return subprocess.Popen(
            into(self.unprivileged(with_report(argv))), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.tmp,
            start_new_session=True, env=options.pop("env", self.environment()),
            **options)

    def finish(self, process, timeout):
        """Its Result; killed with all its group when out of time."""
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
        """Skips a case that sees what mallory.py does, and is to."""
        if self.is_beside_hostile:
            raise Skip("the hostile user " + why)

    def packets_sent(self, program):
        """How many the processes of that name have sent by now, whatever other
        users send from the same addresses."""
        r = self.run([self.adverb, "top", "--once", "--json", "--interval",
                      "0.01"])
        expect_ok(r)
        return sum(p["tx_packets"] for p in json.loads(r.output)["processes"]
                   if p["name"] == program)

    def run(self, argv, timeout=HANG, **env):
        return self.finish(self.start(argv, env=self.environment(**env)),
                           timeout)

    def adverb_run(self, argv, options=(), timeout=HANG, **env):
        return self.run([self.adverb, "run", *options, "--", *argv], timeout,
                        **env)

    def program(self, name):
        """The path of a built program of tests/system."""
        return os.path.join(self.build, "tests", "system", name)

    def valgrind_run(self, program, **env):
        """One of tests/system; the exit status is 9 if valgrind reports."""
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
        """Both ends of a tool; pair's own bound comes before ours."""
        return self.run(self.pair_argv(argv, options, timeout), timeout + 10,
                        **env)

    @contextlib.contextmanager
    def port_held(self):
        """Another program, which it gives, has the port of RoCEv2."""
        p = self.start([PYTHON, "-u", "-c", HOLD])
        try:
            p.stdout.readline()
            yield p
        finally:
            p.kill()
            p.communicate()

    def paced(self, **more):
        """The environment of two ends, both of which pace.c puts in order:
        the client connects when the server listens."""
        fd, path = tempfile.mkstemp(prefix="pace-", dir=self.tmp)
        os.close(fd)
        os.symlink(path + ".listens", path + ".connect")
        library = self.program("pace.so")
        # what hides its functions changes nothing, and says nothing
        expect(hasattr(ctypes.CDLL(library), "rdma_connect"),
               library + " has no rdma_connect")
        return {"PACE": path, "LD_PRELOAD": library, **more}

    def note(self, text):
        """Says in the case's line how much was done."""
        self.notes.append(text)

    def checks(self, program, area, *words, **env):
        """One of our programs that prints a line a case: each is one of ours;
        its Result."""
        r = self.adverb_run([self.program(program), *words], **env)
        for word, name, why in re.findall(r"^(ok|FAIL) ([^:\n]+)(?:: (.*))?$",
                                          r.output, re.M):
            self.case(name, lambda bad=word == "FAIL", why=why:
                      expect(not bad, why), area, program)
        self.case(program + " runs to its end", lambda: expect(
            re.search(r"^\d+ passed, \d+ failed", r.output, re.M),
            "exit status %d" % r.status, r))
        return r

    def need(self, program):
        if not shutil.which(program):
            raise Skip("%s is not installed" % program)

    def need_ucx(self):
        """UCX, with its transports of verbs: not every distribution builds
        them."""
        self.need("ucx_info")
        folder = os.path.dirname(os.path.dirname(os.path.realpath(
            shutil.which("ucx_info"))))
        if not any(glob.glob(folder + where + "/ucx/libuct_ib.so*")
                   for where in ("/lib/*", "/lib", "/lib64")):
            raise Skip("UCX is built without libuct_ib")

    def case(self, name, body, area=None, program=None, peer="adverb"):
        """Runs @body; it returns if all is well, else raises."""
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
            body()
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
        shutil.rmtree(self.tmp, ignore_errors=True)
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


def often_enough(least, once, what):
    """Does @once, which returns how often it has done it, until that makes
    @least: on a busy machine a pair may end before this process had its
    turn."""
    done = 0
    for _ in range(50):
        done += once()
        if done >= least:
            return
    raise Fail("only %d %s" % (done, what))


def spin(seconds):
    """A busy neighbour, bounded by time and by our own life."""
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
    """The programs of that name in the network namespace of @pid: their
    process ids, and whose they are."""
    mine = os.readlink("/proc/%s/ns/net" % pid)
    found = {}
    for one in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):
        try:
            # a stranger's name may be anything
            with open("/proc/%d/comm" % one, "rb") as f:
                if f.read() == comm.encode() + b"\n" and \
                        os.readlink("/proc/%d/ns/net" % one) == mine:
                    found[one] = os.stat("/proc/%d" % one).st_uid
        except OSError:
            pass  # it has ended meanwhile
    return found


def brokers(pid="self"):
    return named("adverbd", pid)


def serving(pid="self"):
    """Those of them that have begun to serve: until then the standard error of
    each is a socket of who started it, which a death then tells that none can
    be run."""
    found = {}
    for broker, user in brokers(pid).items():
        try:
            if not os.readlink("/proc/%d/fd/2" % broker).startswith("socket:"):
                found[broker] = user
        except OSError:
            pass  # it has ended meanwhile
    return found


def session_of(*leaders):
    """All processes of the sessions that these lead."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(name)) in leaders:
                found.append(int(name))
        except OSError:
            pass
    return found


def pause(processes, seconds):
    """Stops them and their children for so long."""
    pids = session_of(*(p.pid for p in processes))
    for sig in signal.SIGSTOP, signal.SIGCONT:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
        if sig == signal.SIGSTOP:
            time.sleep(seconds)


def throttle(p, share, limit=HANG, period=0.1):
    """Lets @p and its children run @share of each period, as a quota does,
    until it ends.  Without a cgroup of one's own this is as near as one
    gets; the broker is not slowed."""
    end = time.monotonic() + limit
    while p.poll() is None and time.monotonic() < end:
        time.sleep(period * share)
        pause([p], period * (1 - share))
