#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that `adverb bench` measures, compares figures with goals, and draws
plots.  No case depends on how fast the machine is."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import sys
import unittest.mock
import xml.etree.ElementTree

sys.path.insert(1, sys.path[0] + "/../lib")

from system import HANG, ROOT, Fail, Skip, Suite, wait_until

suite = Suite(__doc__)
FIGURES = suite.path("figures.json")


def bench(*options):
    r = suite.run([suite.adverb, "bench", *options], timeout=600)
    if r.status:
        raise Fail("status %d" % r.status, r.output)
    return r.output


def load_driver():
    """Returns the module bench/driver/__main__.py."""
    spec = importlib.util.spec_from_file_location(
        "driver", os.path.join(ROOT, "bench", "driver", "__main__.py"))
    driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(driver)
    return driver


driver = load_driver()


def raw_limits():
    said = bench("--retries", "0", "--rounds", "2", "--only", "shared line", "--only",
                 "eventfd", "--only", "udp p*/2", "--only", "tcp write/65536",
                 "--only", "udp shaped/65536", "--only", "process_vm/65536",
                 "--only", "tcp polled/2", "--only", "crc32*/64",
                 "--json", FIGURES)
    with open(FIGURES, encoding="utf-8") as f:
        data = json.load(f)
    if data["left_out"] or len(data["figures"]) != 9:
        raise Fail("bench gives %d figures, not 9, and has left out: %s" % (
            len(data["figures"]), data["left_out"]), said)
    for key, rounds in data["figures"].items():
        if len(rounds) != 2 or not all(v > 0 for figures in rounds.values()
                                       for k, v in figures.items()
                                       if k not in ("cpu", "others")):
            raise Fail("%s: %s" % (key, rounds), said)


def long_packet_is_refused():
    most = 65475
    for size, status in (most, 0), (most + 1, 2):
        r = suite.run([os.path.join(suite.build, "bench", "udp_stream"),
                       "-t", "0.01", "-m", "65536", "-s", str(size)])
        if r.status != status or \
                bool(status) != ("at most %d bytes" % most in r.output):
            raise Fail("%d bytes: status %d" % (size, r.status), r.output)


def stream_without_receiver_ends():
    """A stream ends with exit status 1 if its receiver cannot bind: 192.0.2.1 is
    no address of this host."""
    for name in "tcp_stream", "fpdu_stream", "udp_stream":
        r = suite.run([os.path.join(suite.build, "bench", name), "-t", "0.01",
                       "-A", "127.0.0.1,192.0.2.1"], timeout=HANG)
        if r.status != 1 or "has failed; its own message" not in r.output:
            raise Fail("%s: status %d" % (name, r.status), r.output)


def state_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(word) for word in f.read().split()]


def unread(pid):
    """Returns, for each TCP connection of a process, how many bytes the process
    has received and not yet read."""
    inodes = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    with open("/proc/%d/net/tcp" % pid) as table:
        rows = [line.split() for line in table][1:]
    return [int(row[4].split(":")[1], 16) for row in rows
            if row[3] == "01" and row[9] in inodes]


def waits_in_udp(pid):
    """Returns whether a UDP socket of the network namespace of @pid has bytes that
    no program has read yet, and belongs to @pid."""
    inodes = {os.readlink("/proc/%d/fd/%s" % (pid, fd))[8:-1]
              for fd in os.listdir("/proc/%d/fd" % pid)}
    with open("/proc/%d/net/udp" % pid) as table:
        rows = [line.split() for line in table][1:]
    return any(row[9] in inodes and int(row[4].split(":")[1], 16)
               for row in rows)


def receiver_that_ends_is_reported():
    """The receiver of a UDP stream is killed once packets have reached its
    socket."""
    p = suite.start([os.path.join(suite.build, "bench", "udp_stream"), "-t",
                     "30"])
    wait_until(lambda: p.poll() is not None or
               any(waits_in_udp(child) for child in children_of(p.pid)),
               "the stream does not begin")
    for child in children_of(p.pid):
        os.kill(child, signal.SIGKILL)
    r = suite.finish(p, HANG)
    if r.status != 1 or "the end that receives has failed" not in r.output:
        raise Fail("status %d" % r.status, r.output)


def end_that_ends_is_reported():
    """The first end is stopped until the other end has read all bytes and is
    killed.  So SIGCHLD ends the first end before the first end reads the end of
    the stream."""
    p = suite.start([os.path.join(suite.build, "bench", "tcp_pingpong"), "-b",
                     "-n", "100000000"])
    wait_until(lambda: p.poll() is not None or
               any(len(unread(child)) for child in children_of(p.pid)),
               "the ends do not connect")
    other = children_of(p.pid)[0]
    os.kill(p.pid, signal.SIGSTOP)
    wait_until(lambda: state_of(p.pid) == "T" and unread(other) == [0],
               "the other end does not read")
    os.kill(other, signal.SIGKILL)
    wait_until(lambda: state_of(other) == "Z", "the other end does not end")
    os.kill(p.pid, signal.SIGCONT)
    r = suite.finish(p, HANG)
    if r.status != 1 or "that answers has ended" not in r.output:
        raise Fail("status %d" % r.status, r.output)


def allowed_cpus(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(line.split()[1] for line in f
                    if line.startswith("Cpus_allowed_list:"))


def ends_are_pinned_to_allowed_cpus():
    """A program that may not use the first CPU pins its ends to the first two of
    those that it may use.  An end connects after it has pinned itself."""
    cpus = sorted(os.sched_getaffinity(0))[1:]
    if not cpus:
        raise Skip("this process may use one CPU only")
    p = suite.start([os.path.join(suite.build, "bench", "tcp_pingpong"), "-b",
                     "-n", "100000000"],
                    preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    wait_until(lambda: p.poll() is not None or
               any(len(unread(child)) for child in children_of(p.pid)),
               "the ends do not connect")
    pinned = [allowed_cpus(pid) for pid in (p.pid, *children_of(p.pid))]
    os.killpg(p.pid, signal.SIGKILL)
    suite.finish(p, HANG)
    if pinned != [str(cpus[0]), str(cpus[1 % len(cpus)])]:
        raise Fail("the CPUs %s are allowed; the ends are pinned to %s" % (
            cpus, pinned))


def refused_pin_is_reported():
    udp, threads = (os.path.join(suite.build, "bench", name)
                    for name in ("udp_stream", "threads"))
    for words in ([udp, "-t", "0.01"],
                  [suite.adverb, "run", "--", threads, "-t", "0.01", "1"]):
        r = suite.run([suite.program("deny_syscall"),
                       "sched_setaffinity=EPERM", "--", *words])
        if r.status == 77:
            raise Skip("no system call can be refused here")
        if r.status != 1 or "cannot be pinned to CPU" not in r.output:
            raise Fail("%s: status %d" % (words, r.status), r.output)


def threads_may_use_all_cpus():
    """bench/threads.c uses every CPU that the bench may use, also where both ends
    of other programs share one.  A command in place of adverb prints how many
    CPUs it may use."""
    fake = suite.path("print-cpus")
    with open(fake, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexec python3 -c 'import os; n = len("
                "os.sched_getaffinity(0)); print(\"{\\\"Mps\\\": %d, "
                "\\\"GBps\\\": 1}\" % n)'\n")
    os.chmod(fake, 0o755)
    all_cpus = os.sched_getaffinity(0)
    step = driver.steps.StepMaker(fake).threads("direct", {}, "write", 64, 2,
                                                "threads")
    with unittest.mock.patch.object(driver.proc, "cores",
                                    return_value=(min(all_cpus),) * 2):
        found = step.run()["Mps"]
    if len(all_cpus) < 2:
        raise Skip("this process may use one CPU only")
    if found != len(all_cpus):
        raise Fail("%d CPUs of %d" % (found, len(all_cpus)))


def program_for_namespaces_is_missing():
    """In each run of bench, PATH has only the programs of `names` without one
    of the last three."""
    names = ["setpriv", "python3", "sh", "unshare", "nsenter", "ip"]
    for missing in names[3:]:
        folder = suite.path("without-" + missing)
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        for name in names:
            if name != missing:
                suite.need(name)
                os.symlink(shutil.which(name), os.path.join(folder, name))
        r = suite.run([suite.adverb, "bench", "--retries", "0", "--rounds", "1",
                       "--only", "crc32/64"], PATH=folder)
        for mtu in 1500, 9000:
            if "left out: veth%d: %s is not installed" % (mtu, missing) \
                    not in r.output:
                raise Fail("bench does not say why it leaves the veth out",
                           r.output)
        r = suite.run([suite.adverb, "bench", "--against", suite.adverb,
                       "--list"], PATH=folder)
        if r.status != 1 or "%s is not installed" % missing not in \
                r.output or "Traceback" in r.output:
            raise Fail("status %d" % r.status, r.output)


def adverb_beside_the_limit():
    for program in ("ib_send_lat", "ib_write_bw"):
        suite.need(program)
    said = bench("--retries", "0", "--rounds", "1", "--only",
                 "adverb send_lat/2", "--only", "udp polled/2", "--only",
                 "adverb write batches")
    for what in ("SEND 2 B, polling, to raw polled UDP", "adverb write ba"):
        if not any(what in line and "not measured" not in line
                   for line in said.splitlines()):
            raise Fail("no figure for: " + what, said)


def invented():
    """Writes a file with the figures of an invented run that meets only some of
    the goals.  Returns the file's path."""
    figures = {}
    for n, key in enumerate(("adverb write/8", "adverb write/65536",
                             "udp shaped/8", "udp shaped/65536",
                             "adverb send_lat/2", "udp polled/2")):
        figures[key] = {str(r): {"GBps": n + 1 + r / 9, "us": n + 1,
                                 "Mps": 0.5} for r in range(3)}
    path = suite.path("invented.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "a <b> & c",
                   "cores": 2, "rounds": 3, "figures": figures,
                   "left_out": {"iperf3 tcp": "iperf3 is not installed"}}, f)
    return path


def plots_are_xml():
    folder = suite.path("plots")
    bench("--from", invented(), "--plots", folder)
    names = sorted(os.listdir(folder))
    if names != ["bandwidth.svg", "host-bandwidth.svg", "host-latency.svg",
                 "host-rate.svg", "latency.svg", "rate.svg"]:
        raise Fail(" ".join(names))
    for name in names:
        tree = xml.etree.ElementTree.parse(os.path.join(folder, name))
        if not list(tree.iter("{http://www.w3.org/2000/svg}polyline")):
            raise Fail(name + " has no curve")


def goals_decide_the_status():
    r = suite.run([suite.adverb, "bench", "--from", invented(), "--check"])
    if r.status != 1:
        raise Fail("status %d" % r.status, r.output)
    for what, word in (("WRITE 64 KiB, path MTU 4096", "missed"),
                       ("SEND 2 B, polling, to raw polled UDP", "met"),
                       ("SEND 64 KiB to the shaped", "not measured")):
        if not any(line.startswith(what) and line.endswith(word)
                   for line in r.output.splitlines()):
            raise Fail("%s should be %s" % (what, word), r.output)


def latency_has_a_median_and_a_mean():
    """The columns of perftest: bytes, iterations, least, most, median, mean ..."""
    line = "8 1000 0.20 9.00 0.25 0.75 0.10 1.00 2.00\n"
    step = driver.steps.StepMaker("adverb").latency("direct send_lat",
                                                    "ib_send_lat", 8)
    with unittest.mock.patch.object(driver.proc, "pair",
                                    return_value=(line, 1.0)):
        figures = step.run()
    if figures != {"us": 0.25, "mean_us": 0.75}:
        raise Fail(str(figures))


def warm_up_counts_as_bytes():
    """The CPU time of UCX and of Open MPI includes that of the messages before the
    measurement.  So the bytes of these messages count, too."""
    size, asked = 1 << 20, []

    def pair(server, client, port, **_):
        asked.extend(client)
        return "256 1.0 1.0 1.0 900.0 900.0 800 800\n", 1.0
    with unittest.mock.patch.object(driver.proc, "pair", pair):
        figures = driver.steps.StepMaker("adverb").ucx(
            "ucx tcp tag_bw", "tag_bw", size).run()
    sent = sum(int(asked[asked.index(option) + 1]) for option in ("-n", "-w"))
    if asked[asked.index("-w") + 1] != "1" or \
            round(1e9 / (figures["cpu"] * size)) != sent:
        raise Fail("%s: %s" % (" ".join(asked), figures))
    program = os.path.join(suite.build, "bench", "mpi_pingpong")
    suite.need("mpirun")
    if not os.path.exists(program):
        raise Skip("mpi_pingpong is not built")
    r = suite.run(["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none",
                   "--mca", "pml", "ob1", "--mca", "btl", "vader,self", program,
                   "-n", "10", "-w", "4"], OMPI_ALLOW_RUN_AS_ROOT="1",
                  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if r.status or '"sent": %d}' % (4 * (10 + 20)) not in r.output:
        raise Fail("status %d, or the warm-up is not counted" % r.status,
                   r.output)


def mean_is_compared_with_a_mean():
    """fi_pingpong and mpi_pingpong print means.  The medians alone would meet the
    goals; the means miss them."""
    path = suite.path("means.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c", "cores": 2,
                   "rounds": 1, "left_out": {}, "figures": {
                       "direct send_lat/8": {"0": {"us": 1, "mean_us": 6}},
                       "libfabric shm/8": {"0": {"us": 2, "mean_us": 2}},
                       "openmpi vader lat/8": {"0": {"us": 3, "mean_us": 3}},
                       "ucx cma tag_lat/8": {"0": {"us": 4}}}}, f)
    said = bench("--from", path)
    for what, words in (("libfabric shm", "6 2 3.00 ≤ 1 missed"),
                        ("Open MPI vader", "6 3 2.00 ≤ 1 missed"),
                        ("UCX posix,cma", "1 4 0.25 ≤ 1 met")):
        if not any(what in line and " ".join(line.split()).endswith(words)
                   for line in said.splitlines()):
            raise Fail("the goal of %s has other figures than %s" % (
                what, words), said)


def bad_count_is_refused():
    for option, value, least in (("--rounds", "0", 1), ("--rounds", "two", 1),
                                 ("--retries", "-1", 0)):
        refuse(2, ["'%s' is not an integer of at least %d" % (value, least)],
               option, value, "--list")


def bad_file_is_explained():
    """A file of figures that is not there, or is none, and a result that cannot be
    written: a sentence and status 1."""
    absent = suite.path("absent.json")
    refuse(1, ["adverb bench: cannot read %s: No such file or directory" % absent],
           "--from", absent)
    for text in "no JSON", "[]", '{"figures": {}}', '{"figures": []}':
        path = suite.path("bad.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        for more in (), ("--against", "no-such-adverb"):
            r = refuse(1, [], "--from", path, *more)
            if "%s is not a file that --json has written" % path not in r.output:
                raise Fail("no sentence about %s" % text, r.output)
    for option in ("--json", suite.path("bad.json/new.json")), \
            ("--plots", suite.path("bad.json")), ("--docs", suite.path("none")):
        r = refuse(1, [], "--from", invented(), *option)
        if "adverb bench: cannot write " not in r.output:
            raise Fail("%s: no sentence" % option[0], r.output)


def figures_are_printed_before_they_are_written():
    """A comparison of two builds takes long: its result is not lost if the file of
    --json cannot be written."""
    rounds = {str(r): {"us": 1.0} for r in range(2)}
    path = suite.path("two.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c", "cores": 2,
                   "rounds": 2, "left_out": {}, "figures": {
                       "direct read/8": rounds,
                       "direct read/8 against": rounds}}, f)
    r = refuse(1, [], "--from", path, "--against", "no-such-adverb", "--json",
               path + "/new.json")
    if "direct read/8" not in r.output:
        raise Fail("the comparison is not printed", r.output)


def plots_of_two_builds_are_refused():
    for option in "--plots", "--docs":
        refuse(2, ["--plots and --docs show the figures of one build"], "--against",
               "no-such-adverb", option, suite.path("plots"))


# In place of adverb, takes the part of the program qps: each run says the same,
# but for the third, which fails.
FAILS_ONCE = """#!/bin/sh
echo >>"$0.runs"
[ "$(wc -l <"$0.runs")" != 3 ] || { echo "the third run failed"; exit 3; }
echo '{"us_many": 1, "seconds": 0.5, "rss_mib": 9, "ratio": 1}'
"""


def failure_in_a_round_is_reported():
    """The figures of the two good rounds meet all goals."""
    fake = suite.path("fails-once")
    with open(fake, "w", encoding="utf-8") as f:
        f.write(FAILS_ONCE)
    os.chmod(fake, 0o755)
    path = suite.path("failed.json")
    key = "adverb 10000 queue pairs/8"
    why = "fails-once: status 3: the third run failed"
    measured = suite.run([suite.adverb, "bench", "--adverb", fake, "--only",
                          key, "--rounds", "3", "--retries", "0", "--json",
                          path, "--check"], timeout=600)
    again = suite.run([suite.adverb, "bench", "--from", path, "--check"])
    for r in measured, again:
        if r.status != 1 or "failed: %s: round 3: %s" % (key, why) \
                not in r.output.splitlines():
            raise Fail("status %d, or no word of the failure" % r.status,
                       r.output)
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    if data["failed"] != {key: {"2": why}} or len(data["figures"][key]) != 2:
        raise Fail(str(data))
    page = suite.path("PERFORMANCE.md")
    with open(page, "w", encoding="utf-8") as f:
        f.write("<!-- figures: begin -->\n<!-- figures: end -->\n")
    os.chmod(page, 0o666)
    bench("--from", path, "--docs", suite.tmp)
    with open(page, encoding="utf-8") as f:
        text = f.read()
    if "Failed: %s (round 3: %s)." % (key, why) not in text:
        raise Fail("the page does not name the failure", text)


def failure_of_another_program_keeps_the_status():
    """A failure of a program with which adverb is compared is reported, but does not
    change the exit status."""
    path = suite.path("failed.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c", "cores": 2,
                   "rounds": 2, "left_out": {}, "figures": {
                       "libfabric shm/8": {"0": {"us": 2, "mean_us": 2}}},
                   "failed": {"libfabric shm/8": {"1": "it hung"}}}, f)
    said = bench("--from", path, "--check")
    if "failed: libfabric shm/8: round 2: it hung" not in said.splitlines():
        raise Fail("the failure is not reported", said)
    rounds = {str(r): {"us": 1.0} for r in range(2)}
    for key, status in ("adverb read_lat/2 against", 0), ("direct read/8", 1):
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c",
                       "cores": 2, "rounds": 3, "left_out": {}, "figures": {
                           name + build: rounds for name in (
                               "adverb read_lat/2", "direct read/8")
                           for build in ("", " against")},
                       "failed": {key: {"2": "it hung"}}}, f)
        refuse(status, ["failed: %s: round 3: it hung" % key], "--from", path,
               "--against", "no-such-adverb", "--check")


def failed_retry_keeps_the_figures():
    """The machine is busy in each run, so the step is repeated; only its first run
    gives figures."""
    def fail_later():
        if runs:
            raise driver.proc.Failed("no figure")
        runs.append(1)
        return {"us": 1.0}
    runs = []
    step = driver.steps.Step("adverb send_lat", 2, fail_later)
    run = driver.Run([step], 1, 2)
    with unittest.mock.patch.object(driver.proc.Company, "cores",
                                    return_value=1.0):
        run.all()
    if run.figures != {step.key: {0: {"us": 1.0, "others": 1.0}}} or \
            run.failed != {step.key: {0: "no figure"}} or run.left_out:
        raise Fail("%s %s %s" % (run.figures, run.failed, run.left_out))


def page_is_rewritten():
    page = suite.path("PERFORMANCE.md")
    with open(page, "w", encoding="utf-8") as f:
        f.write("above\n<!-- figures: begin -->\nold\n"
                "<!-- figures: end -->\nbelow\n<!-- crc: begin -->\n"
                "not measured now\n<!-- crc: end -->\n")
    os.chmod(page, 0o666)
    bench("--from", invented(), "--docs", suite.tmp)
    with open(page, encoding="utf-8") as f:
        text = f.read()
    if "old" in text or "above" not in text or "below" not in text or \
            "not measured now" not in text or \
            "(perf/bandwidth.svg)" not in text or "| 64 KiB | 2.11" not in text:
        raise Fail("the page lacks new figures, or has lost other text", text)


def readme_is_rewritten_only_by_a_whole_run():
    """The table of speed in README.md changes if each figure of the table was
    measured, and otherwise stays as it is."""
    names = ["adverb write/65536", "udp shaped/65536", "tcp write/65536",
             "direct write/65536", "process_vm/65536", "direct send_lat/8",
             "libfabric shm/8", "ucx cma tag_lat/8"]
    folder = suite.path("book")
    os.makedirs(os.path.join(folder, "docs"))
    for page, text in (("docs/PERFORMANCE.md", "-\n"), (
            "README.md", "above\n<!-- speed: begin -->\nold\n"
            "<!-- speed: end -->\nbelow\n")):
        with open(os.path.join(folder, page), "w", encoding="utf-8") as f:
            f.write(text)
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            os.chmod(os.path.join(root, name), 0o777)
    for measured in names[1:], names:
        path = suite.path("speed.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c",
                       "cores": 2, "rounds": 1, "left_out": {}, "figures": {
                           key: {"0": {"GBps": n + 1, "us": n + 1,
                                       "mean_us": n + 2}}
                           for n, key in enumerate(names)
                           if key in measured}}, f)
        bench("--from", path, "--docs", os.path.join(folder, "docs"))
        with open(os.path.join(folder, "README.md"), encoding="utf-8") as f:
            text = f.read()
        if "above" not in text or "below" not in text or \
                ("old" in text) != (measured is not names):
            raise Fail("README.md has lost text, or kept the old table", text)
    for cells in ("1 GB/s | 0.50 of a bare", "4 GB/s | 0.80 of process_vm",
                  "6 µs | 0.75 of UCX's shared memory; 0.88 of libfabric's, mean"):
        if cells not in text:
            raise Fail("README.md lacks: " + cells, text)


def threads_beside_processes():
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        raise Skip("the machine has one core")
    said = bench("--retries", "0", "--rounds", "1", "--only",
                 "* write 1 threads/64", "--only", "direct write 2 */64",
                 "--only", "mapped atomic 2 *", "--only", "adverb read 2 *",
                 "--only", "direct send 2 *")
    rows = [line.split() for line in said.splitlines()]
    for row in (["direct", "write", "64"], ["adverb", "write", "64"],
                ["mapped", "atomic", "8"], ["adverb", "read", "64"],
                ["direct", "send", "64"]):
        if not any(r[:3] == row and len(r) > 4 for r in rows):
            raise Fail("no row for " + " ".join(row), said)
    if "Threads on %d cores" % cores not in said:
        raise Fail("bench does not print the number of cores", said)


def connections_of_threads_are_shown():
    """The time of a connection that one of several threads requests is no rate of
    threads, and is in the table of the single figures."""
    path = suite.path("connects.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c", "cores": 2,
                   "rounds": 1, "left_out": {}, "figures": {
                       "adverb connect 8 threads/1000": {"0": {"us": 47.0}},
                       "direct write 2 threads/64": {"0": {"Mps": 1.5}}}}, f)
    said = bench("--from", path)
    single = said.partition("Single figures")[2].partition("\n\n")[0]
    if "adverb connect 8 threads" not in single or "write" in single:
        raise Fail("the single figures are not those of connections", said)


def mechanisms_in_turns():
    """A run of bench measures with eager messages and without them.  Invented
    figures of three mechanisms give the gain and the verdict of each."""
    suite.need("ib_send_lat")
    said = bench("--retries", "0", "--rounds", "1", "--only",
                 "without eager send_lat/8")
    rows = [line.split() for line in said.splitlines()]
    if not any(r[:2] == ["eager", "send_lat"] and r[2:4] == ["8", "B"]
               for r in rows):
        raise Fail("the table has no row for eager messages", said)
    figures = {}
    for what, mine, other in (("credits write", 4.0, 2.0),
                              ("acks send_lat", 1.00, 1.02),
                              ("eager send_lat", 2.0, 1.0)):
        field, size = ("us", 2) if "lat" in what else ("GBps", 65536)
        for word, value in ("with", mine), ("without", other):
            figures["%s %s/%d" % (word, what, size)] = {
                str(r): {field: value} for r in range(3)}
    path = suite.path("mechanisms.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c", "cores": 2,
                   "rounds": 3, "figures": figures, "left_out": {}}, f)
    page = suite.path("PERFORMANCE.md")
    with open(page, "w", encoding="utf-8") as f:
        f.write("<!-- figures: begin -->\nold\n<!-- figures: end -->\n"
                "<!-- mechanisms: begin -->\n<!-- mechanisms: end -->\n")
    os.chmod(page, 0o666)
    said = bench("--from", path, "--docs", suite.tmp)
    with open(page, encoding="utf-8") as f:
        text = f.read()
    for row in (["+100", "pays"], ["+2", "under 5 %"], ["-50", "under 5 %"]):
        if not any("%s %%" % row[0] in line and line.endswith(row[1])
                   for line in said.splitlines()):
            raise Fail("no row " + " ".join(row), said)
        if "| %s %% |" % row[0] not in text:
            raise Fail("the page has no row " + " ".join(row), text)
    if "old" not in text or "Single figures" in said:
        raise Fail("figures of mechanisms are in a table of other figures",
                   text + said)


def two_builds():
    """Writes a file with figures of two builds: this build is slower in one
    step, faster in another, and equal in a third.  Returns the file's path."""
    figures = {}
    for key, this, other in (("adverb send_lat/2", 4.0, 2.0),
                             ("direct write/65536", 3.0, 2.0),
                             ("mapped read/8", 1.0, 1.0)):
        field = "us" if "lat" in key else "GBps"
        for name, value in ((key, this), (key + " against", other)):
            figures[name] = {str(r): {field: value + r / 9}
                             for r in range(3)}
    path = suite.path("two_builds.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c", "cores": 2,
                   "rounds": 3, "figures": figures, "left_out": {}}, f)
    return path


def slower_step_decides_the_status():
    r = suite.run([suite.adverb, "bench", "--from", two_builds(), "--against",
                   "no-such-adverb", "--check"])
    if r.status != 1:
        raise Fail("status %d" % r.status, r.output)
    for what, words in (("adverb send_lat/2", "0.514  slower"),
                        ("direct write/65536", "1.474  faster"),
                        ("mapped read/8", "1.000  within the spread")):
        if not any(line.startswith(what) and
                   " ".join(line.split()).endswith(" ".join(words.split()))
                   for line in r.output.splitlines()):
            raise Fail("%s should be %s" % (what, words), r.output)


def median_of_two_rounds_is_their_mean():
    """If bench took the larger value for the median, the ratio would be 2."""
    path = suite.path("two_rounds.json")
    figures = {"adverb send_lat/2": {"0": {"us": 2.0}, "1": {"us": 1.0}},
               "adverb send_lat/2 against": {"0": {"us": 2.0}, "1": {"us": 2.0}}}
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c", "cores": 2,
                   "rounds": 2, "figures": figures, "left_out": {}}, f)
    said = bench("--from", path, "--against", "no-such-adverb")
    row = next(line.split() for line in said.splitlines()
               if line.startswith("adverb send_lat/2"))
    if "1.500" not in row:
        raise Fail("the median is not 1.500", said)


def two_builds_are_measured_in_turns():
    suite.need("ib_send_lat")
    r = suite.run([suite.adverb, "bench", "--against", suite.adverb,
                   "--retries", "0", "--rounds", "2", "--only",
                   "adverb send_lat/2"], timeout=600)
    if "needs network namespaces" in r.output:
        raise Skip("no network namespace can be made")
    if r.status or not any(line.startswith("adverb send_lat/2")
                           for line in r.output.splitlines()):
        raise Fail("status %d, or no ratio" % r.status, r.output)


def refuse(status, words, *options):
    """Expects that bench ends with @status and prints all @words.  Returns its
    result."""
    r = suite.run([suite.adverb, "bench", *options], timeout=600)
    if "needs network namespaces" in r.output:
        raise Skip("no network namespace can be made")
    if r.status != status or "Traceback" in r.output:
        raise Fail("%s: status %d" % (" ".join(options), r.status), r.output)
    for word in words:
        if word not in r.output:
            raise Fail("%s: no words: %s" % (" ".join(options), word),
                       r.output)
    return r


def pattern_without_steps_is_refused():
    """A pattern that matches no step is refused also beside one that matches."""
    only = ["--only", "eventfd", "--only", "no such step"]
    why = ["--only 'no such step'", "--list"]
    refuse(2, why, *only)
    refuse(2, why, *only, "--list")
    refuse(2, [*why, "--quick has few steps"], "--quick", *only)


def pattern_without_compared_steps_is_refused():
    """--against compares the steps on lo: none over a veth, and no raw limits."""
    for pattern in "adverb write@veth*", "eventfd":
        refuse(2, ["--only '%s'" % pattern, "on lo", "--list"], "--against",
               suite.adverb, "--only", pattern)


def without_figures_bench_fails():
    """The figures of FIGURES are of one build; in a file without figures there is
    nothing to show; and the other build cannot be run."""
    refuse(1, ["compared no step", "--against and --json"], "--from",
           invented(), "--against", suite.adverb)
    path = suite.path("empty.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"date": "2026-01-01", "kernel": "6", "cpu": "c", "cores": 2,
                   "rounds": 1, "figures": {}, "left_out": {
                       "adverb write": "ib_write_bw is not installed"}}, f)
    refuse(1, ["no step has a figure"], "--from", path)
    # last, since this comparison needs network namespaces
    refuse(1, ["compared no step", "left out: adverb 10000 queue pairs/8 against"],
           "--against", "/no/such/adverb", "--retries", "0", "--rounds", "1",
           "--only", "adverb 10000*")


suite.case("the raw limits give figures", raw_limits)
suite.case("a pattern of --only that matches no step is refused",
           pattern_without_steps_is_refused)
suite.case("a pattern that matches no step of --against is refused",
           pattern_without_compared_steps_is_refused)
suite.case("bench fails if no step has a figure", without_figures_bench_fails)
suite.case("a packet that is too long for a datagram is refused",
           long_packet_is_refused)
suite.case("a stream whose receiver fails ends with exit status 1",
           stream_without_receiver_ends)
suite.case("an end of tcp_pingpong reports that the other has ended",
           end_that_ends_is_reported)
suite.case("a UDP stream whose receiver is killed ends with exit status 1",
           receiver_that_ends_is_reported)
suite.case("the ends of a raw limit are pinned to CPUs that they may use",
           ends_are_pinned_to_allowed_cpus)
suite.case("a refused pin ends a program of the bench with a sentence",
           refused_pin_is_reported)
suite.case("threads are measured on all CPUs", threads_may_use_all_cpus)
suite.case("bench says which program for namespaces is missing",
           program_for_namespaces_is_missing)
suite.case("adverb is measured beside the raw limits", adverb_beside_the_limit)
suite.case("the plots are XML with curves", plots_are_xml)
suite.case("the goals decide the exit status", goals_decide_the_status)
suite.case("a latency of perftest has its median and its mean",
           latency_has_a_median_and_a_mean)
suite.case("the bytes of a warm-up count where its CPU time does",
           warm_up_counts_as_bytes)
suite.case("a mean is compared with a mean", mean_is_compared_with_a_mean)
suite.case("a failure in a later round is reported and decides the exit status",
           failure_in_a_round_is_reported)
suite.case("a failure of another program does not decide the exit status",
           failure_of_another_program_keeps_the_status)
suite.case("a retry that fails leaves the figures of the run before",
           failed_retry_keeps_the_figures)
suite.case("a number of rounds or retries below the least is refused",
           bad_count_is_refused)
suite.case("a file that cannot be read or written is explained",
           bad_file_is_explained)
suite.case("a comparison is printed before it is written",
           figures_are_printed_before_they_are_written)
suite.case("plots of two builds are refused", plots_of_two_builds_are_refused)
suite.case("the median of two rounds is their mean",
           median_of_two_rounds_is_their_mean)
suite.case("two builds are measured in turns", two_builds_are_measured_in_turns)
suite.case("a step that is slower than in another build decides the exit status",
           slower_step_decides_the_status)
suite.case("threads are measured beside processes", threads_beside_processes)
suite.case("the time of a connection of 8 threads is a single figure",
           connections_of_threads_are_shown)
suite.case("a mechanism is measured in turns with its absence",
           mechanisms_in_turns)
suite.case("the page gets the figures", page_is_rewritten)
suite.case("README.md gets its three figures from a whole run",
           readme_is_rewritten_only_by_a_whole_run)
suite.end()
