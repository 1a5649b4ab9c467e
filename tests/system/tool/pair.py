#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `adverb run` and `adverb pair`, mostly on programs that need no device, and
the options of each command of adverb."""

import glob
import os
import re
import shutil
import signal
import socket
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import system
from system import expect

t = system.Suite(__doc__)

# A server with the arguments ADDRESS PORT STATUS.  The server serves one client, and
# exits with STATUS.
SERVE = """
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
time.sleep(0.2)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen()
print("serving")
c, _ = s.accept()
print("got", c.recv(100).decode())
sys.exit(int(sys.argv[3]))
"""
# A client of SERVE with the arguments ADDRESS PORT STATUS SECONDS.  The client sleeps
# for SECONDS before it exits with STATUS.
ASK = """
import socket, sys, time
c = socket.create_connection((sys.argv[1], int(sys.argv[2])))
c.sendall(b"hello")
c.shutdown(socket.SHUT_WR)
c.recv(1) # the server is about to exit
print("asked")
time.sleep(float(sys.argv[4]))
sys.exit(int(sys.argv[3]))
"""


def spelled(server, client):
    """Returns the words by which adverb pair starts two Python programs."""
    return ["--server", system.PYTHON, "-c", *server,
            "--client", system.PYTHON, "-c", *client]


def plain(server_status=0, client_status=0, client_sleep=0):
    return spelled([SERVE, "@", "%", str(server_status)],
                   [ASK, "@", "%", str(client_status), str(client_sleep)])


def pair(words, *options, timeout=system.HANG):
    return t.run([t.adverb, "pair", "--timeout", str(timeout), *options,
                  *words], timeout + system.HANG)


def shows_both():
    r = pair(plain())
    expect(r.status == 0, "exit status %d" % r.status, r)
    expect(r.lines("server") == ["serving", "got hello"],
           "the server's lines are wrong", r)
    expect(r.lines("client") == ["asked"], "the client's lines are wrong", r)


def script(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!%s\n%s" % (system.PYTHON, text))
    os.chmod(path, 0o755)


# A tool that prints its arguments.  The first %s becomes the usage that the
# tool prints for -h.  The second %s becomes a condition.  If the condition is
# true, the tool listens at the port after -p; else it connects to that port.
TOOL = """
import os, socket, sys
if "-h" in sys.argv:
    sys.exit("usage: %s")
print(" ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]]))
port = int(sys.argv[sys.argv.index("-p") + 1])
if %s:
    s = socket.create_server(("127.0.0.1", port))
    s.accept()
else:
    socket.create_connection(("127.0.0.1", port))
"""


def asks_for_the_options():
    for usage, is_server, server, client in (
            ("-s server_address", "'-s' not in sys.argv",
             "-b 127.0.0.1 -p # -c 7", "-s 127.0.0.1 -p # -c 7"),
            ("-C controller_address", "'-L' in sys.argv",
             "-b 127.0.0.1 -C 127.0.0.1 -p # -L -c 7",
             "-b 127.0.0.1 -C 127.0.0.1 -p # -c 7")):
        path = t.path("tools/cmtime")
        script(path, TOOL % (usage, is_server))
        r = pair([path, "-c", "7"])
        expect(r.status == 0, "exit status %d" % r.status, r)
        for side, want in ("server", server), ("client", client):
            said = [re.sub(r"-p \d+", "-p #", line) for line in r.lines(side)]
            expect(said == ["cmtime " + want], side, r)


def finds_the_client_beside():
    for name, is_server in ("rdma_server", "True"), ("rdma_client", "False"):
        script(t.path("beside/" + name), TOOL % ("", is_server))
    r = pair(["beside/rdma_server"])
    expect(r.status == 0, "exit status %d" % r.status, r)
    expect(r.lines("client")[0].startswith("rdma_client -s 127.0.0.1 -p "),
           "the client is another program than rdma_client", r)


def shows_both_the_tree():
    show = "import os; print(os.path.exists('/sys/class/infiniband/adv0'))\n"
    for option, seen in ((), "True"), (("--no-shim",), "False"):
        r = pair(spelled([show + SERVE, "@", "%", "0"],
                         [show + ASK, "@", "%", "0", "0"]), *option)
        expect([r.lines(side)[0] for side in ("server", "client")] ==
               [seen] * 2, "both sides must print " + seen, r)


# A program with the arguments COMMAND...  While COMMAND runs, the program
# listens at 8900 ports, or at fewer if the hard limit on open files is below
# 9000.
MANY = """
import resource, socket, subprocess, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 9000), most))
held = []
while len(held) < min(most, 9000) - 100:
    held.append(socket.create_server(("127.0.0.1", 0)))
print("held", len(held), flush=True)
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""


def finds_one_among_many():
    """adverb pair finds the server's port among thousands of sockets that
    listen."""
    for _ in range(3):
        r = t.run([system.PYTHON, "-c", MANY, t.adverb, "pair", "--timeout",
                   str(system.HANG), *plain()])
        if not r.output.startswith("held"):
            raise system.Skip("thousands of sockets are too many here")
        expect(r.status == 0, "exit status %d" % r.status, r)


def takes_the_worse():
    for server, client in ((3, 0), (0, 4), (3, 4), (4, 3)):
        r = pair(plain(server, client))
        expect(r.status == max(server, client),
               "the statuses %d and %d gave %d" % (server, client, r.status), r)


def server_never_listens():
    r = pair(spelled(["import sys; print('no'); sys.exit(5)"], [ASK, "@"]))
    expect(r.status == 5, "exit status %d" % r.status, r)
    expect("before it listened" in r.output,
           "no message says that the server ended", r)
    r = pair(spelled(["pass"], [ASK, "@"]))
    expect(r.status == 1,
           "pair succeeds although the server has served no client", r)


def leaves_its_input_alone():
    """The server ends before it listens, so that no client is started.  Nothing
    reads the standard input of adverb pair."""
    mine, its = os.pipe()
    os.write(its, b"typed\n")
    p = t.start([t.adverb, "pair", *spelled(["pass"], [ASK, "@"])], stdin=mine)
    r = t.finish(p, system.HANG)
    expect(r.status == 1, "exit status %d" % r.status, r)
    os.close(its)
    expect(os.read(mine, 100) == b"typed\n", "something has read the input", r)
    os.close(mine)


def a_server_outlives_pair():
    """A program that listens when adverb pair has ended is not ended by a
    signal.  Here nobody reads the pipe that ADVERB_READY_FD names, as after the
    end of adverb pair."""
    reader, writer = os.pipe()
    os.close(reader)
    p = t.start([t.adverb, "run", "--", t.program("talker"), "serve", "127.0.0.1",
                 "7471"], pass_fds=[writer],
                env=t.environment(ADVERB_READY_FD=str(writer)))
    os.close(writer)
    try:
        expect(b"listening" in p.stdout.readline(), "the server does not listen")
    finally:
        p.kill()
        p.communicate()


def a_listener_of_the_caller_does_not_count():
    """A server that inherits a listening socket from the caller of adverb pair is not
    ready before it listens itself.  Here the client could not connect earlier."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        p = t.start([t.adverb, "pair", *plain()], pass_fds=[s.fileno()])
        r = t.finish(p, system.HANG)
    expect(r.status == 0, "exit status %d" % r.status, r)


def names_the_side_that_hung():
    # On a busy machine the server may need many seconds before it ends.
    for seconds in 10, 60, system.HANG:
        r = pair(plain(client_sleep=3 * system.HANG), timeout=seconds)
        expect(r.status == 124, "exit status %d" % r.status, r)
        if "the client still ran" in r.output:
            break
    expect("the client still ran after %d s" % seconds in r.output,
           "no message names the client", r)
    r = pair(spelled(["import time; time.sleep(%d)" % (3 * system.HANG)], [ASK]),
             timeout=2)
    expect(r.status == 124, "exit status %d" % r.status, r)
    expect("did not listen within 2 s" in r.output,
           "no message names the server", r)


def works_without_sigchld():
    """A caller may ignore SIGCHLD, as `trap '' CHLD` does in bash."""
    ignorant = "import os, signal, sys\n" \
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n" \
        "os.execv(sys.argv[1], sys.argv[1:])"
    r = t.run([system.PYTHON, "-c", ignorant, t.adverb, "pair", "--timeout",
               str(system.HANG), *plain(0, 4)], system.HANG)
    expect(r.status == 4, "exit status %d" % r.status, r)


def heeds_no_ignored_signal():
    """adverb pair goes on after a signal that its caller ignores, as nohup ignores
    SIGHUP.  Here the client sends the signals before it asks the server."""
    send = "import os, signal\n" \
        "for s in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:\n" \
        "    os.kill(os.getppid(), s)\n"
    r = t.run(["env", "--ignore-signal=HUP", "--ignore-signal=INT",
               "--ignore-signal=TERM", t.adverb, "pair", *spelled(
                   [SERVE, "@", "%", "0"], [send + ASK, "@", "%", "0", "0"])])
    expect(r.status == 0 and r.lines("client") == ["asked"],
           "exit status %d" % r.status, r)


def kills_the_survivor():
    began = time.monotonic()
    r = pair(spelled([SERVE, "@", "%", "0"], ["import sys; sys.exit(7)"]),
             timeout=system.HANG)
    expect(r.status == 7, "exit status %d" % r.status, r)
    expect(time.monotonic() - began < system.HANG / 2,
           "pair has waited for the server", r)


def stops_a_lasting_server():
    r = pair(spelled(["import http.server as h, sys\n"
                      "h.HTTPServer((sys.argv[1], int(sys.argv[2])),"
                      "h.SimpleHTTPRequestHandler).serve_forever()",
                      "@", "%"], [ASK, "@", "%", "0", "0"]),
             "--stop-server")
    expect(r.status == 0, "exit status %d" % r.status, r)


def ignores_the_status_of_a_lasting_server():
    """With --stop-server, a server may fail as soon as its client has left.  The
    client may then work for longer than pair waits after another server's failure.
    """
    for status in 0, 3:
        r = pair(plain(9, status, 4), "--stop-server")
        expect(r.status == status, "exit status %d" % r.status, r)
    for options in [], ["--stop-server"]:
        r = pair(spelled(["import sys; sys.exit(5)"], [ASK, "@"]), *options)
        expect(r.status == 5, "exit status %d" % r.status, r)


def ends_with_ctrl_c():
    mark = "adverb-pair-test-%d" % os.getpid()
    # A shell that runs this suite in the background has SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sleep = "import time; time.sleep(%d)" % (3 * system.HANG)
    p = t.start([t.adverb, "pair", "--timeout", str(2 * system.HANG), *spelled(
        [SERVE, "@", "%", "0", mark], [sleep, mark])])
    deadline = time.monotonic() + system.HANG
    # For a moment of execve, /proc shows no arguments of the process.
    while (count := marked(mark)) != 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    expect(count == 3, "pair and both sides did not start")
    os.kill(p.pid, signal.SIGINT)
    r = t.finish(p, system.HANG)
    expect(r.status in (130, -2), "exit status %d" % r.status, r)
    expect(marked(mark) == 0, "a side still runs", r)


def needs_signals():
    r = t.run([t.program("deny_syscall"), "signalfd",
               "--", t.adverb, "pair", *plain()])
    if r.status == 77:
        raise system.Skip("no seccomp filters here")
    expect(r.status == 1 and r.output == "adverb: cannot wait for signals: "
           "Operation not permitted; allow signalfd4(2) in the sandbox, or "
           "raise ulimit -n.\n", "exit status %d" % r.status, r)


ABSENT = "no interface of this host that is up has the server's address "


def names_an_address_that_is_missing():
    for address, is_missing in (("127.0.0.1", False), ("192.0.2.1", True),
                                ("2001:db8::1", True), ("localhost", False)):
        r = pair(plain(), "--address", address, timeout=2)
        expect((ABSENT + address in r.output) == is_missing,
               "%s: a message is missing, or is wrong" % address, r)


def says_that_loopback_is_down():
    begin = ["unshare", "--user", "--map-current-user", "--net", "--"]
    if t.run([*begin, "true"]).status:
        raise system.Skip("no network namespace can be made")
    r = t.run([*begin, t.adverb, "pair", "--timeout", "2", *plain()])
    expect(ABSENT + "127.0.0.1" in r.output, "no message", r)
    r = t.run([*begin, t.adverb, "pair", "--private", *plain()])
    expect(r.status == 0 and ABSENT not in r.output,
           "--private has no loopback", r)


def reserves_its_port():
    """A port that cannot be reserved is not used."""
    r = t.run([t.program("deny_syscall"), "socket=EPERM", "--", t.adverb,
               "pair", *plain()])
    if r.status == 77:
        raise system.Skip("no seccomp filters here")
    expect(r.status == 1 and r.output == "adverb: no TCP port can be reserved "
           "for the server: Operation not permitted; allow sockets in the sandbox, "
           "or end programs at TCP ports 20000 to 27999.\n",
           "exit status %d" % r.status, r)


def drops_no_word():
    """The command of a side may have 255 words; a longer command is refused."""
    count = "import sys; print('words', len(sys.argv))\n"
    for more, status in (250, 0), (251, 2):
        words = ["x"] * more
        for server, client in (words, []), ([], words):
            # The server's other words are six: PYTHON, -c, the text and three
            # arguments.  The client has four arguments, and so seven.
            r = pair(spelled([count + SERVE, "@", "%", "0", *server[1:]],
                             [count + ASK, "@", "%", "0", "0", *client[2:]]))
            expect(r.status == status and (
                "words 253" in r.output if status == 0 else
                "has more than 255 words" in r.output),
                "exit status %d with %d words more" % (r.status, more), r)


def marked(mark):
    """Returns how many processes have @mark on their command line."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                count += mark.encode() in f.read()
        except OSError:
            pass
    return count


def sets_each_side():
    show = "import os; print(os.environ.get('WHO'), os.environ.get('BOTH'))"
    r = pair(spelled([show + "\n" + SERVE, "@", "%", "0"],
                     [show + "\n" + ASK, "@", "%", "0", "0"]),
             "--env-server", "WHO=s", "--env-client", "WHO=c", "--env",
             "BOTH=b", "--pcap", "/nowhere/f", "--strict")
    expect(r.lines("server")[0] == "s b", "the server has other variables", r)
    expect(r.lines("client")[0] == "c b", "the client has other variables", r)


def sets_many_variables():
    """rping's server listens by rdma_cm alone, so that its process needs the variable
    by which adverb itself learns that."""
    t.need("rping")
    words = [word for i in range(40) for word in ("--env", "X%d=%d" % (i, i))]
    r = pair(["--", "rping", "-C", "1"], *words)
    expect(r.status == 0, "exit status %d" % r.status, r)


def run_sets_variables():
    r = t.adverb_run([system.PYTHON, "-c",
                      "import os\nfor k in ('ADVERB_PCAP', 'ADVERB_EXPLAIN',"
                      "'ADVERB_STRICT', 'ADVERB_DEVICES', 'X'):"
                      " print(os.environ.get(k))\n"
                      "print(os.environ['LD_LIBRARY_PATH'])"],
                     ["--pcap", "f", "--no-explain", "--strict", "--device",
                      "lo", "--env", "X=y"])
    expect(r.output.split("\n")[:5] == [t.tmp + "/f", "0", "1", "lo", "y"],
           "the program has other variables", r)
    expect(os.path.join(t.build, "lib") in r.output,
           "LD_LIBRARY_PATH lacks adverb's libraries", r)


def a_variable_needs_a_value():
    for words in (["run", "--env", "X"], ["run", "--env", "=x"],
                  ["pair", "--env-client", "X"]):
        r = t.run([t.adverb, *words, "--", *plain()])
        expect(r.status == 2 and "NAME=VALUE" in r.output,
               "%s: exit status %d" % (words, r.status), r)


def a_time_is_in_seconds():
    for value in ("5m", "-3", "0", "", "9999999999"):
        r = t.run([t.adverb, "pair", "--timeout", value, *plain()])
        expect(r.status == 2 and 'not "%s"' % value in r.output,
               "%s: exit status %d" % (value, r.status), r)


def run_passes_the_status_on():
    for status in (0, 3):
        r = t.adverb_run(["sh", "-c", "exit %d" % status])
        expect(r.status == status, "exit status %d" % r.status, r)


def run_says_why_not():
    script = t.path("script")
    with open(script, "w") as f:
        f.write("#!/no/such/interpreter\n")
    os.chmod(script, 0o755)
    folder = t.path("folder")
    os.mkdir(folder)
    closed = t.path("closed")
    os.mkdir(closed)
    os.chmod(closed, 0)
    data = t.path("data")
    with open(data, "w") as f:
        f.write("text\n")
    os.chmod(data, 0o644)
    path = {"PATH": "%s:%s:%s" % (closed, t.tmp, os.environ["PATH"])}
    for program, env, status, why in (
            (script, {}, 126, "interpreter"),
            (folder, {}, 126, "it is a folder"),
            (data, {}, 126, "chmod +x " + data),
            ("data", path, 126, "not executable"),
            (closed + "/x", {}, 126, "may not search"),
            (t.path("no-such-file"), {}, 127, "no such file"),
            ("no-such-program", {}, 127, "no folder of PATH has a program"),
            ("no-such-program", path, 127, "no folder of PATH has a program"),
            ("folder", path, 127, "no folder of PATH has a program")):
        for words in (["run", "--", program], ["pair", "--server", program,
                                               "--client", "true"]):
            r = t.run([t.adverb, *words], **env)
            expect(r.status == status and "cannot run " + program in r.output
                   and why in r.output,
                   "%s: exit status %d" % (words, r.status), r)


def run_searches_the_path_that_it_sets():
    """adverb run looks for a program, as env(1) does, in the folders of the
    PATH that --env gives the program."""
    folder = t.path("own path")
    os.mkdir(folder)
    for name in "adverb-there", "true":
        with open(folder + "/" + name, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho there\n")
        os.chmod(folder + "/" + name, 0o755)
    for name in "adverb-there", "true":
        r = t.run([t.adverb, "run", "--env", "PATH=" + folder, "--", name])
        expect(r.status == 0 and r.output == "there\n",
               "exit status %d" % r.status, r)
    r = t.run([t.adverb, "run", "--env", "PATH=" + folder, "--", "ls"])
    expect(r.status == 127 and "no folder of PATH" in r.output,
           "exit status %d" % r.status, r)


def run_names_what_setup_unpacked():
    """If PATH lacks a program that ci/setup has unpacked, the message names
    build/env.sh, which adds the program's folder to PATH."""
    tree = t.path("a tree")
    folder = tree + "/build/deb/root/usr/sbin"
    os.makedirs(folder)
    shutil.copy(system.PYTHON, folder + "/adverb-unpacked")
    os.makedirs(tree + "/build/out")
    shutil.copytree(t.build + "/tools", tree + "/build/out/tools")
    shutil.copytree(t.build + "/lib", tree + "/build/out/lib", symlinks=True)
    adverb = tree + "/build/out/tools/adverb"
    env = tree + "/build/env.sh"
    for program, has_env, said in (
            ("adverb-unpacked", False, "install the program"),
            ("adverb-unpacked", True, "type `. %s`" % env),
            ("adverb-missing", True, "install the program")):
        if has_env:
            with open(env, "w"):
                pass
        r = t.run([adverb, "run", "--", program])
        expect(r.status == 127 and said in r.output,
               "%s: exit status %d" % (program, r.status), r)


def run_refuses_static():
    t.need("gcc")
    source = t.path("static.c")
    with open(source, "w") as f:
        f.write("int main(void) { return 0; }\n")
    os.chmod(source, 0o644)
    r = t.run(["gcc", "-static", "-o", t.path("static"), source])
    if r.status:
        raise system.Skip("no static libc to link with")
    r = t.adverb_run([t.path("static")])
    expect(r.status == 126 and "statically linked" in r.output,
           "exit status %d" % r.status, r)


def moved(folder):
    """Copies adverb to a folder of this name.  Returns the path of the command
    there."""
    to = t.path(folder)
    for name in ("tools/adverb", "lib/libibverbs.so.1", "lib/librdmacm.so.1",
                 "lib/libibumad.so.3", "lib/libadverb-shim.so", "lib/adverbd"):
        os.makedirs(os.path.dirname(os.path.join(to, name)), exist_ok=True)
        shutil.copy(os.path.join(t.build, name), os.path.join(to, name))
    return os.path.join(to, "tools", "adverb")


def run_works_in_a_folder_with_a_space():
    t.need("ibv_devices")
    adverb = moved("a folder")
    r = t.run([adverb, "run", "--", "sh", "-c",
               "ibv_devices && ls /sys/class/infiniband"])
    expect(r.status == 0 and r.output.count("adv0") == 2 and
           "ld.so" not in r.output, "exit status %d" % r.status, r)


def run_lacks_the_shim():
    """adverb run does not preload a shim that is missing, and prints a message about
    the missing shim, unless --no-shim is given."""
    adverb = moved("lacking")
    os.remove(t.path("lacking/lib/libadverb-shim.so"))
    for words, said in ((), 1), (["--shim"], 1), (["--no-shim"], 0):
        r = t.run([adverb, "run", *words, "--", "sh", "-c",
                   "echo =$LD_PRELOAD="])
        expect(r.status == 0 and r.output.endswith("==\n") and
               r.output.count("libadverb-shim.so cannot be read") == said and
               "ld.so" not in r.output, "exit status %d" % r.status, r)


def sim_names_a_bad_word():
    for words, lines in ((["--seeds", "x"], 1), (["--seeds", "5..3"], 1),
                         (["--seeds", "1..y"], 1), (["--seeds", "-1"], 1),
                         (["--loss", "91"], 1), (["--loss", "few"], 1),
                         (["--seed"], 2)):
        r = t.run([t.adverb, "sim", *words])
        expect(r.status == 2 and '"%s".\n' % words[-1] in r.output and
               r.output.count("\n") == lines, "no message names the word", r)
    r = t.run([t.adverb, "sim", "--seeds"])
    expect(r.status == 2 and "--seeds wants a value" in r.output,
           "no message says that --seeds wants a value", r)
    r = t.run([t.adverb, "sim", "--help"])
    expect(r.status == 0, "exit status %d" % r.status, r)
    r = t.run([t.adverb, "sim", "--seeds", "7", "--loss", "0"])
    expect(r.status == 0, "exit status %d" % r.status, r)


def help_has_the_options_of_the_page():
    pages = glob.glob(system.ROOT + "/docs/man/adverb-*.1")
    expect(pages, "docs/man has no page of a command")
    for page in pages:
        command = re.search(r"adverb-(\w+)\.1$", page)[1]
        r = t.run([t.adverb, command, "--help"])
        expect(r.status == 0, "%s: exit status %d" % (command, r.status), r)
        expect(re.search(r"^More: man adverb-%s\b" % command, r.output, re.M),
               "%s --help does not name its page" % command, r)
        lines = re.findall(r"^  (-.*?)(?:  .*)?$", r.output, re.M)
        said = set(re.findall(r"(?<![\w-])--[a-z-]+", " ".join(lines)))
        with open(page, encoding="utf-8") as f:
            items = re.findall(r"^\.It (Fl .*)$", f.read(), re.M)
        told = {"-" + word for word in
                re.findall(r"Fl (-[a-z-]+)", " ".join(items))}
        differ = (said ^ told) - {"--help"}
        expect(not differ, "%s --help and the manual page differ in %s" %
               (command, ", ".join(sorted(differ))), r)


def run_refuses_a_folder_with_a_colon():
    r = t.run([moved("a:folder"), "run", "--", "true"])
    expect(r.status == 126 and "':'" in r.output,
           "exit status %d" % r.status, r)


def run_preloads_for_rpath():
    t.need("gcc")
    source = t.path("rpath.c")
    with open(source, "w") as f:
        f.write("#include <stdio.h>\n#include <stdlib.h>\n"
                "int main(void) { puts(getenv(\"LD_PRELOAD\")); }\n")
    os.chmod(source, 0o644)
    r = t.run(["gcc", "-Wl,--disable-new-dtags", "-Wl,-rpath,/opt/rdma",
               "-o", t.path("rpath"), source])
    system.expect_ok(r)
    r = t.adverb_run([t.path("rpath")])
    expect("libibverbs.so.1" in r.output and "librdmacm.so.1" in r.output,
           "the libraries are not preloaded", r)


t.case("pair shows the output of both sides", shows_both)
t.case("pair asks a tool which options its release has", asks_for_the_options)
t.case("pair finds the client's program beside the server's",
       finds_the_client_beside)
t.case("pair shows adverb's sysfs tree to both sides", shows_both_the_tree)
t.case("pair finds its server among thousands of listening sockets",
       finds_one_among_many)
t.case("pair exits with the larger status", takes_the_worse)
t.case("pair says that the server never listened", server_never_listens)
t.case("pair reads nothing from its standard input", leaves_its_input_alone)
t.case("a server that listens when pair has ended goes on", a_server_outlives_pair)
t.case("pair starts no client because of a listener of its caller",
       a_listener_of_the_caller_does_not_count)
t.case("pair says which side hung", names_the_side_that_hung)
t.case("pair works if its caller ignores SIGCHLD", works_without_sigchld)
t.case("pair goes on after a signal that its caller ignores",
       heeds_no_ignored_signal)
t.case("pair ends the survivor when one side fails", kills_the_survivor)
t.case("pair --stop-server ends a server that does not end by itself",
       stops_a_lasting_server)
t.case("pair --stop-server ignores how the server ends after its client has left",
       ignores_the_status_of_a_lasting_server)
t.case("pair leaves no process after an interrupt", ends_with_ctrl_c)
t.case("pair says that it cannot wait for signals", needs_signals)
t.case("pair says that no interface has the server's address",
       names_an_address_that_is_missing)
t.case("pair says that loopback is down", says_that_loopback_is_down)
t.case("pair uses no port that it cannot reserve", reserves_its_port)
t.case("pair refuses a command of more than 255 words", drops_no_word)
t.case("pair sets variables for each side", sets_each_side)
t.case("run sets the variables of its options", run_sets_variables)
t.case("pair sets any number of variables", sets_many_variables)
t.case("a variable without a value is refused", a_variable_needs_a_value)
t.case("a time-out that is no number of seconds is refused",
       a_time_is_in_seconds)
t.case("sim names the word that it refuses", sim_names_a_bad_word)
t.case("--help names the options of the man page",
       help_has_the_options_of_the_page)
t.case("run passes the exit status on", run_passes_the_status_on)
t.case("run says why a program does not run", run_says_why_not)
t.case("run searches the PATH that it sets",
       run_searches_the_path_that_it_sets)
t.case("run names build/env.sh for a program that ci/setup unpacked",
       run_names_what_setup_unpacked)
t.case("run refuses a static program", run_refuses_static)
t.case("run works in a folder with a space",
       run_works_in_a_folder_with_a_space)
t.case("run preloads no shim that is missing", run_lacks_the_shim)
t.case("run refuses a folder with a colon", run_refuses_a_folder_with_a_colon)
t.case("run preloads the libraries for a program with DT_RPATH",
       run_preloads_for_rpath)
t.end()
