#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs rdma-core's own Python tests on adverb's libraries.

The tests are in Debian's package python3-pyverbs.  pyverbs.txt (rdma-core 44)
and pyverbs-NN.txt (later releases) list the tests that must pass: each is a
case, which fails if the test fails or is skipped.  A line `- ID: why` is a test
that does not pass yet.  A test that runs and is not listed is noted in the
output."""

import argparse
import glob
import gzip
import multiprocessing
import os
import re
import runpy
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DOC = "usr/share/doc/rdma-core/tests"
# Without an index the suite chooses a random GID, which may be one of RoCEv1.
GID_INDEX = "1"


class Report(unittest.TextTestResult):
    """Writes two lines for each test, one at its start and one with its result,
    into the file that INSIDE names."""

    def write(self, word, test, why=""):
        with open(os.environ["INSIDE"], "a", encoding="utf-8") as f:
            f.write("\t".join((word, test.id(),
                               " ".join(str(why).split()))) + "\n")

    def startTest(self, test):
        super().startTest(test)
        self.write("started", test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write("skipped", test, reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.write("FAIL", test, err[1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.write("FAIL", test, err[1])


def inside():
    """Runs the suite's own runner with Report, in the process under test."""
    # The suite needs "fork", which was the default before Python 3.14.
    multiprocessing.set_start_method("fork")
    unittest.TextTestRunner.resultclass = Report
    tests = os.path.abspath("tests")
    # In the folder of this file, `import pyverbs` would import this file.
    sys.path[0] = tests
    sys.argv = ["run_tests.py", "-v", "--dev", "adv0", "--gid", GID_INDEX]
    runpy.run_path(os.path.join(tests, "run_tests.py"), run_name="__main__")


def fetch(build):
    """Downloads Debian's package, if possible, and unpacks it into the build
    folder."""
    folder = os.path.join(build, "pyverbs")
    os.makedirs(folder, exist_ok=True)
    got = subprocess.run(["apt-get", "-o", "APT::Sandbox::User=", "download",
                          "python3-pyverbs"], cwd=folder,
                         capture_output=True, check=False)
    packages = glob.glob(os.path.join(folder, "*.deb"))
    if got.returncode == 0 and packages:
        subprocess.run(["dpkg-deb", "-x", packages[0], folder],
                       capture_output=True, check=False)


def find(build):
    """Returns (root, folder of tests, folder of modules) of the first root that
    has both folders, or None."""
    for root in "/", os.path.join(build, "deb", "root"), os.path.join(
            build, "pyverbs"):
        tests = os.path.join(root, DOC)
        modules = os.path.join(root, "usr/lib/python3/dist-packages")
        if (os.path.exists(os.path.join(tests, "run_tests.py")) and
                os.path.isdir(os.path.join(modules, "pyverbs"))):
            return root, tests, modules
    return None


def list_for(root):
    """Returns the path of the list for the package's release.  If this release
    has no list, returns that of the latest release before it, or pyverbs.txt if
    there is none."""
    log = os.path.join(root, "usr/share/doc/python3-pyverbs",
                       "changelog.Debian.gz")
    with gzip.open(log, "rt", encoding="utf-8") as f:
        release = int(re.match(r"\S+ \((\d+)", f.readline())[1])
    lists = {44: "pyverbs.txt"}
    for path in glob.glob(os.path.join(HERE, "pyverbs-*.txt")):
        lists[int(re.search(r"(\d+)\.txt$", path)[1])] = path
    older = [one for one in lists if one <= release]
    return os.path.join(HERE, lists[max(older, default=44)])


def unpack(tests, to):
    os.mkdir(to)
    for path in glob.glob(os.path.join(tests, "*")):
        name = os.path.join(to, os.path.basename(path))
        if path.endswith(".gz"):
            with gzip.open(path) as f, open(name[:-3], "wb") as out:
                shutil.copyfileobj(f, out)
        else:
            shutil.copy(path, name)


def wanted(path):
    """Reads a list.  Returns the IDs of the tests that must pass, and a dict
    {ID of a test that does not pass yet: why}."""
    listed, missing = [], {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            late = re.match(r"- (\S+): (.*)", line)
            if late:
                missing[late[1]] = late[2]
            elif line and not line.startswith("#"):
                listed.append(line)
    return listed, missing


def run(t, tests, modules):
    """Runs the suite.  Returns {ID: (result, why)} and the Result."""
    unpack(tests, t.path("tests"))
    report = t.path("report")
    with open(report, "w", encoding="utf-8"):
        pass
    os.chmod(report, 0o666)
    r = t.run([t.adverb, "run", "--", PYTHON, "-B",
               os.path.abspath(__file__)],
              INSIDE=report, PYTHONPATH=modules)
    results = {}
    with open(report, encoding="utf-8") as f:
        for line in f:
            word, name, why = line.rstrip("\n").split("\t")
            if word == "started":
                why = "the process ended in this test, status %d" % r.status
                word = "FAIL"
            results[name] = (word, why)
    return results, r


def said(output, name):
    """Returns the parts of the output that are about a failed test: the lines
    that its processes printed, and unittest's report."""
    log, *parts = re.split(r"^=+$", output, flags=re.M)
    method = name.rsplit(".", 1)[-1]
    ran = re.search(r"^%s \(.*?(?=^test_\w+ \(|\Z)" % re.escape(method), log,
                    re.M | re.S)
    report = "".join(p for p in parts if method in p) or output[-4000:]
    return (ran[0] if ran else "") + report


def judge(t, name, results, r):
    def body():
        word, why = results.get(name, (
            "FAIL", "the suite has no such test, or ended before it (status "
            "%d)" % r.status))
        if word == "ok":
            return
        text = why if word == "FAIL" else "the test is skipped: " + why
        raise Fail(text, said(r.output, name))
    t.case(name, body, "pyverbs", name.split(".")[1])


def skip(t, name, why):
    def body():
        raise Skip(why)
    t.case(name, body)


def note_sums(results, listed):
    """Prints each test that runs and is not listed, and the sums of the suite."""
    for name, (word, why) in sorted(results.items()):
        if name not in listed and word != "skipped":
            print("note: %s: %s %s" % (name, word, why))
    words = [word for word, _ in results.values()]
    print("note: of the suite's %d tests %d pass, %d fail, %d are skipped" %
          (len(words), words.count("ok"), words.count("FAIL"),
           words.count("skipped")))


def test(t, root, tests, modules):
    """Adds the cases.  With --list, runs nothing: then the cases need no results."""
    listed, missing = wanted(list_for(root))
    results, r = {}, None
    if not t.options.list:
        # lo has loopback addresses only, to which rdma_cm binds no device.
        netlab.Lab(t).wire("v0", 1500, ("10.1.0.1/24", "fd00:1::1/64"))
        results, r = run(t, tests, modules)
    t.case("the suite runs to its end", lambda: expect(
        re.search(r"^Ran \d+ tests", r.output, re.M),
        "unittest prints no sum of its tests", r))
    for name in listed:
        judge(t, name, results, r)
    for name, why in missing.items():
        skip(t, name, why)
    if not t.options.list:
        note_sums(results, listed)


def main():
    option = argparse.ArgumentParser(add_help=False)
    option.add_argument("--build", default="build/out")
    option.add_argument("--list", action="store_true")
    options = option.parse_known_args()[0]
    build = os.path.dirname(os.path.abspath(options.build))
    if "TEST_NETLAB" not in os.environ and not options.list and \
            not find(build):
        # before netlab.enter(), after which this process has no network
        fetch(build)
    netlab.enter()
    t = Suite(__doc__)
    found = find(build)
    if found:
        test(t, *found)
    else:
        skip(t, "pyverbs", "python3-pyverbs, with its tests, is not "
             "installed, and apt-get cannot download it")
    t.end()


if "INSIDE" in os.environ:
    inside()
else:
    sys.path.insert(1, sys.path[0] + "/../lib")
    import netlab
    from system import PYTHON, Fail, Skip, Suite, expect
    main()
