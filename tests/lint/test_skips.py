#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that ci/report.py names each case that is skipped, and that ci/skips, in
made-up outputs of `make test`, finds the skips of an ordinary user or of root
that should not be there."""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CI = ROOT / "ci"
LIST = ("# whose, pattern, reason\n"
        "user\t*: only root can be two users\tso it is\n"
        "both\tlibhns.so.1 *: no libhns.so.1 is installed\tin no package\n")
# Skips as the tests print them if a program, a library or a package is missing.
LACKS = ("perftest: not installed", "a: ib_write_bw is not installed",
         "mpi: librpma-dev was not installed when the tests were built",
         "abi qperf: needs libucp.so.0, not installed",
         "arm64: qemu-aarch64 is missing", "package: no objdump",
         "arm64: its libraries cannot be had, see build/log/a.log",
         "vendor: no libfoo.so.1 is installed", "undo: no strace here",
         "inert: strace cannot run here", "mpi: mpirun does not work here: x",
         "a: there is no qemu", "a: the compiler had no such sanitizer",
         "a: no loader for 32 bits", "ucx: UCX is built without libuct_ib",
         "rxe: no kernel; see build/log/interop-build.log")
# Skips for other reasons.
OTHERS = ("users.py: no seccomp filters here", "a: no network namespace of our "
          "own", "a: nothing can be mounted here", "out: user: no reason given",
          "a: the machine is too slow: a program was stopped for too long")

# The name of a case, the skips of the user, the skips of root (None: no such
# run), and a part of what ci/skips must print when it fails (None: it must pass).
CASES = (
    ("nothing is skipped", (), (), None),
    ("both skip the same", OTHERS, OTHERS[::-1], None),
    ("the time of a skip is not part of its text", ("bare: no (3 s)",),
     ("bare: no (14 s)",), None),
    ("the user alone skips", (OTHERS[0],), (),
     "user: root does not skip it: users.py: no seccomp filters here"),
    ("root alone skips", (), (OTHERS[0],),
     "root: user does not skip it: users.py: no seccomp filters here"),
    ("the list excuses the user", ("a: only root can be two users",), (),
     None),
    ("the list excuses the user alone", (), ("a: only root can be two users",),
     "root: user does not skip it"),
    ("the list excuses both", ("libhns.so.1 a: no libhns.so.1 is installed",),
     ("libhns.so.1 a: no libhns.so.1 is installed",), None),
    *(("a program is missing, %s" % text, (text,), (text,),
       "user: a program is missing: " + text) for text in LACKS),
    ("one run alone", (OTHERS[0],), None, None),
    ("a program is missing in one run alone", (LACKS[0],), None,
     "user: a program is missing: perftest: not installed"),
)


def output(skips, counted=None):
    """Returns the output of a run with these skips, some as lines of a stage and
    some, which are indented, as lines of a part of a test."""
    lines = ["--- gcc (ci/test-gcc), 3 s", "ok a case (0.1 s)"]
    lines += ["%sskipped %s" % (i % 2 * "    ", text)
              for i, text in enumerate(skips)]
    lines += ["FAIL not this skipped one: why",
              "1 passed, 0 failed, %d skipped" %
              (len(skips) if counted is None else counted)]
    return "\n".join(lines) + "\n"


def ask(folder, texts, listed=LIST):
    """Runs ci/skips on these outputs.  Returns its exit status and its output.
    """
    argv = [CI / "skips", "--list", folder / "list"]
    (folder / "list").write_text(listed, encoding="utf-8")
    for i, text in enumerate(texts):
        argv.append(folder / str(i))
        argv[-1].write_text(text, encoding="utf-8")
    done = subprocess.run(argv, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def wrong(answer, want):
    status, said = answer
    if (status != 0) != (want is not None):
        return "exit status %d\n%s" % answer
    return "ci/skips does not print `%s`\n%s" % (want, said) if want and \
        want not in said else ""


def compare(folder, user, root, want):
    texts = [output(skips) for skips in (user, root) if skips is not None]
    return wrong(ask(folder, texts), want)


def count(folder):
    """Tests an output in which two skips are counted and not named, and an
    output of a run that did not end."""
    return wrong(ask(folder, [output(OTHERS, 7), output(OTHERS)]),
                 "user: 7 skips are counted, but 5 are named") or \
        wrong(ask(folder, ["ok a\n", output(())]),
              "user: the run ended without a count")


def lines_of_the_list(folder):
    runs = [output(()), output(())]
    form = "list:1: the line is not"
    note = "note: nothing is excused by: user *: only root"
    status, said = ask(folder, runs)
    return wrong(ask(folder, runs, "user a: b\n"), form) or \
        wrong(ask(folder, runs, "all\ta: b\twhy\n"), form) or \
        wrong((status, said), None) or \
        ("" if note in said else "ci/skips does not print `%s`\n%s" %
         (note, said))


def own_list(folder):
    """Tests that ci/skips can read ci/skips.txt."""
    path = folder / "run"
    path.write_text(output(()), encoding="utf-8")
    done = subprocess.run([CI / "skips", path, path], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return wrong((done.returncode, done.stdout), None)


def write_runs(path, runs):
    """Writes meson's log of these runs."""
    path.write_text("".join(json.dumps(
        {"result": "OK", "duration": 1, "command": ["a"], **run}) + "\n"
        for run in runs), encoding="utf-8")


def ask_report(folder, log):
    """Runs ci/report.py with meson's log and the list of a folder."""
    return subprocess.run([sys.executable, CI / "report.py", "out", folder,
                           folder / "listed", log], text=True,
                          stdout=subprocess.PIPE, check=False)


def report(folder):
    """Tests that ci/report.py prints a line for each case that a program of
    cmocka or a part of a test skips, and counts each of them."""
    cmocka = ("[  SKIPPED ] first_case\n[  SKIPPED ] second_case\n"
              "[  PASSED  ] 3 test(s).\n[  SKIPPED ] 2 test(s), listed below:\n"
              "[  SKIPPED ] first_case\n[  SKIPPED ] second_case\n"
              "\n 2 SKIPPED TEST(S)\n")
    parts = "ok a\nskipped b: no c\n1 passed, 0 failed, 1 skipped\n"
    whole = "skipped liba.so.1 a_call: no liba.so.1 is installed\n"
    runs = [{"name": "x:unit / user", "stdout": cmocka},
            {"name": "x:abi / start", "stdout": parts},
            {"name": "x:abi / vendor", "stdout": whole, "result": "SKIP"},
            {"name": "x:unit / peer", "stdout": "skipped: no namespace\n",
             "result": "SKIP"}]
    path = folder / "log"
    write_runs(path, runs)
    (folder / "listed").write_text("".join(run["name"] + "\n" for run in runs),
                                   encoding="utf-8")
    said = ask_report(folder, path).stdout
    told = [line.strip() for line in said.splitlines()
            if line.lstrip().startswith("skipped ")]
    if told == ["skipped out: user: first_case: no reason given",
                "skipped out: user: second_case: no reason given",
                "skipped b: no c",
                "skipped out: vendor: no liba.so.1 is installed",
                "skipped out: peer: no namespace"] and \
            "4 passed, 0 failed, 5 skipped" in said:
        return ""
    return said


def nothing(folder):
    """Tests that ci/report.py fails if meson has run no test."""
    (folder / "listed").write_text("x:unit / a\nx:unit / b\n", encoding="utf-8")
    done = ask_report(folder, folder / "none")
    if done.returncode and done.stdout.startswith(
            "FAIL out: meson has run no test; see ") and \
            "0 passed, 1 failed, 0 skipped" in done.stdout:
        return ""
    return done.stdout


def unfinished(folder):
    """Tests that ci/report.py fails if meson ended before all listed tests had
    run."""
    path = folder / "log"
    write_runs(path, [{"name": "x:unit / a"}])
    (folder / "listed").write_text("x:unit / a\nx:unit / b\n", encoding="utf-8")
    done = ask_report(folder, path)
    if done.returncode and "FAIL out: b: meson has not run this test; see " in \
            done.stdout and "1 passed, 1 failed, 0 skipped" in done.stdout:
        return ""
    return done.stdout


def main():
    cases = [(name, lambda folder, case=rest: compare(folder, *case))
             for name, *rest in CASES]
    cases += [("a skip that is counted must be named", count),
              ("a malformed line of the list is refused, and an unused line noted",
               lines_of_the_list),
              ("the list of the tree is well formed", own_list),
              ("ci/report.py names each skipped case", report),
              ("ci/report.py fails if no test has run", nothing),
              ("ci/report.py fails if meson ends in the middle of a run",
               unfinished)]
    failed = 0
    for name, body in cases:
        with tempfile.TemporaryDirectory() as folder:
            why = body(pathlib.Path(folder))
        failed += bool(why)
        print("%s skips: %s%s" % ("FAIL" if why else "ok", name,
                                  why and ": " + why.replace("\n", "\n    ")))
    print("%d passed, %d failed, 0 skipped" % (len(cases) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
