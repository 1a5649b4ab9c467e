#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that each lint of ci/ refuses a small bad example, and passes a good
one."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CI = ROOT / "ci"
GOOD = "int crc_sum(int a);\nint crc_sum(int a)\n{\n\treturn a;\n}\n"
# A function that no code calls; a function whose name is also in comments and
# in a string.
LONE = "int new_sum(int a)\n{\n\treturn a;\n}\n"
NAMED = ("/* new_sum returns a. */\nint new_sum(int a)\n{\n\t/* new_sum */\n"
         "\treturn \"new_sum\" ? a : 0;\n}\n")
LONG = "int f(int a);\nint f(int a)\n{\n%s\treturn a;\n}\n"
PAGE = (".Dd November 21, 2026\n.Dt A 1\n.Os\n.Sh NAME\n.Nm a\n.Nd an example"
        "\n.Sh SYNOPSIS\n.Nm\n%s.Sh DESCRIPTION\nThe options are:\n"
        ".Bl -tag -width Ds\n.It Fl -one\nFirst.\n.It Fl -two Ar file\n"
        "Second.\n.It Fl h , Fl -help\nHelp.\n.El\n")
# A small tree: a.c has a unit test of its own, and calls b.c; c.c defines no
# function; test_d.c names a function of a.c in a comment only.
MODULES = {
    "src/util/a.c": "int a_sum(int n)\n{\n\treturn b_one() + n;\n}\n",
    "src/util/b.c": "int b_one(void)\n{\n\treturn 1;\n}\n",
    "src/util/c.c": "_Static_assert(sizeof(int) == 4, \"int\");\n",
    "tests/unit/test_a.c": "int main(void)\n{\n\treturn a_sum(-1);\n}\n",
    "tests/unit/test_d.c": "int main(void)\n{\n\treturn 0; /* a_sum */\n}\n",
}
ROWS = ("| `src/util` | `a.c` | `tests/unit/test_*.c` |  |\n"
        "| `src/util` | `b.c` |  | `tests/unit/test_a.c` |\n"
        "| `src/util` | `c.c` |  | the compiler |\n")

# A table of layers, and a file that includes what the table allows.
LAYERS = ("| folder | what it is | may use |\n|---|---|---|\n"
          "| hca, log, wire, broker | | nothing |\n"
          "| host | | hca log `broker/dial.h` |\n\nMore text.\n")
INCLUDES = '#include "hca/cq.h"\n#include "log/log.h"\n#include "broker/dial.h"\n'

# The file beside the example of lint-dialect.
KNOWN = ("/* SPDX-License-Identifier: BSD-2-Clause */\n"
         "struct known {\n\tint a;\n};\n")

# The files beside the example of lint-circles: a.c calls b.c, which calls c.c, which
# calls d_one.
CALLS = {
    "%s.c" % name: "int %s_one(void);\nint %s_one(void);\nint %s_one(void)\n{\n"
                   "\treturn %s_one();\n}\n" % (other, name, name, other)
    for name, other in ("ab", "bc", "cd")
}

# The files beside the example of lint-docs.
FOLDER = {"src/util/a.c": GOOD, "src/util/README.md": "# util\n"}

# The lint, what the example shows, the example's file and its text, and what the
# lint must print (None: the lint must pass the file; a note: the lint must pass the
# file and print the note).
CASES = (
    ("lint-format", "a well formatted file", "src/util/a.c", GOOD, None),
    ("lint-format", "a brace on the wrong line", "src/util/a.c",
     "int f(int a) {\n    return a;\n}\n", "clang-format"),
    ("lint-layers", "a folder of its row", "src/ibt/a.c",
     '#include "hca/cq.h"\n#include <stdint.h>\n', None),
    ("lint-layers", "a layer too high", "src/hca/a.c",
     '#include "engine/engine.h"\n', "hca may not use engine"),
    ("lint-layers", "a front end that reads headers of packets", "src/verbs/a.c",
     '#include "hdr/bth.h"\n', "verbs may not use hdr"),
    ("lint-layers", "the client side of the broker", "src/host/a.c",
     '#include "broker/client.h"\n', None),
    ("lint-layers", "the broker's own side", "src/host/a.c",
     '#include "broker/server.h"\n', "only some headers of broker"),
    ("lint-layers", "the start of iWARP's streams", "src/rdmacm/a.c",
     '#include "iwarp/startup.h"\n', None),
    ("lint-layers", "iWARP's frames", "src/rdmacm/a.c",
     '#include "iwarp/fpdu.h"\n', "only some headers of iwarp"),
    ("lint-layers", "a table that says what is so", "docs/ARCHITECTURE.md", LAYERS,
     None),
    ("lint-layers", "a table that does not allow what is so",
     "docs/ARCHITECTURE.md", LAYERS.replace("hca log", "log"),
     "src/host/a.c:1: host may not use hca"),
    ("lint-layers", "a table that allows another header",
     "docs/ARCHITECTURE.md", LAYERS.replace("dial", "steer"),
     "src/host/a.c:3: host may use only some headers of broker"),
    ("lint-layers", "a table that allows more than is so",
     "docs/ARCHITECTURE.md", LAYERS.replace("hca log", "hca wire log"),
     "host may use wire, and does not"),
    ("lint-layers", "a document without a table", "docs/ARCHITECTURE.md",
     "# Layers\n", "there is no table"),
    ("lint-dialect", "a static function of two words", "src/util/a.c",
     "/* SPDX-License-Identifier: BSD-2-Clause */\n"
     "static int find_it(void)\n{\n\treturn 0;\n}\n", None),
    ("lint-dialect", "a static function of one word", "src/util/a.c",
     "/* SPDX-License-Identifier: BSD-2-Clause */\n"
     "static int find(void)\n{\n\treturn 0;\n}\n", "two words or more"),
    ("lint-dialect", "a static function of one word in a test",
     "tests/unit/test_a.c", "/* SPDX-License-Identifier: BSD-2-Clause */\n"
     "static int find(void)\n{\n\treturn 0;\n}\n", "two words or more"),
    ("lint-dialect", "a struct whose name another file of a linked folder has",
     "src/util/a.c", "/* SPDX-License-Identifier: BSD-2-Clause */\n"
     "struct known {\n\tint a;\n};\n", "src/hdr/known.c defines struct known"),
    ("lint-dialect", "such a struct in a library that is linked by itself",
     "src/shim/a.c", "/* SPDX-License-Identifier: BSD-2-Clause */\n"
     "struct known {\n\tint a;\n};\n", None),
    ("lint-dialect", "sizeof without brackets", "src/util/a.c",
     "/* SPDX-License-Identifier: BSD-2-Clause */\n"
     "unsigned long a(int b)\n{\n\treturn sizeof b;\n}\n", "write sizeof(x)"),
    ("lint-dialect", "a guard of another name", "src/util/a.h",
     "/* SPDX-License-Identifier: BSD-2-Clause */\n"
     "#ifndef A_H\n#define A_H\n#endif\n", "the guard is not UTIL_A_H"),
    ("lint-dialect", "no licence", "src/util/a.c", "int a;\n",
     "the first line is not"),
    ("lint-layers", "a socket in sans-IO code", "src/engine/a.c",
     "#include <sys/socket.h>\n", "not <sys/socket.h>"),
    ("lint-layers", "a clock in the simulator", "sim/world.c",
     "#include <time.h>\n", "not <time.h>"),
    ("lint-layers", "the clock of a layer with sockets", "src/wire/a.c",
     '#include "util/monotonic.h"\n', None),
    ("lint-layers", "the clock in sans-IO code", "src/engine/a.c",
     '#include "util/monotonic.h"\n', "the time is an argument"),
    ("lint-layers", "the clock of a fabric's clients", "src/fabric/fabric_client.c",
     '#include "util/monotonic.h"\n', None),
    ("lint-layers", "a futex in util/lock.c", "src/util/lock.c",
     "#include <linux/futex.h>\n", None),
    ("lint-layers", "a futex elsewhere in util", "src/util/ring.c",
     "#include <linux/futex.h>\n", "not <linux/futex.h>"),
    ("lint-layers", "threads in util", "src/util/ring.c",
     "#include <pthread.h>\n", "not <pthread.h>"),
    ("lint-layers", "atomics outside util", "src/host/a.c",
     "#include <stdatomic.h>\n", "only util may include <stdatomic.h>"),
    ("lint-layers", "a folder that is not in the table", "src/misc/a.c",
     "#include <stdint.h>\n", "misc is not in the table"),
    ("lint-size", "a short function", "src/util/a.c", GOOD, None),
    ("lint-size", "a function of 80 lines, with a note", "src/util/a.c",
     LONG % ("\ta++;\n" * 79), "note: the function has 80 lines"),
    ("lint-size", "a function of 130 lines", "src/util/a.c",
     LONG % ("\ta++;\n" * 129), "the function has 130 lines"),
    ("lint-size", "a file of 1100 lines", "src/util/a.c",
     "/* */\n" * 1100, "the file has 1100 lines"),
    ("lint-size", "a file of 1000 lines, with a note", "src/util/a.c",
     "/* */\n" * 1000, "note: the file has 1000 lines"),
    ("lint-size", "a file of 1001 lines", "src/util/a.c",
     "/* */\n" * 1001, "the file has 1001 lines"),
    ("lint-size", "a structure of 25 members, one of them a structure",
     "src/util/a.h", "struct a {\n\tint b[2], c;\n\tstruct {\n\t\tint d, e;\n"
     "\t} f;\n" + "\tint (*g)(int h, int i);\n" * 22 + "};\n", None),
    ("lint-size", "a structure of 26 members", "src/util/a.h",
     "struct a {\n" + "\tint b, c; /* d, e; */\n" * 13 + "};\n",
     "struct a has 26 members"),
    ("lint-words", "plain words", "src/util/a.c", GOOD, None),
    ("lint-words", "a mark of unfinished work", "src/util/a.c",
     "/* TO" "DO: all of it */\n", "unfinished work"),
    ("lint-words", "code that is said to be missing", "src/util/a.c",
     "/* not imple" "mented */\n", "unfinished work"),
    ("lint-words", "a path of one machine", "docs/a.md",
     "see /wo" "rk/notes\n", "a path of one machine"),
    ("lint-words", "a document that is elsewhere", "src/util/a.c",
     "/* see HOU" "SE.md */\n", "not in the tree"),
    ("lint-paths", "paths of files that exist", "docs/a.md",
     "# A word\n`docs/a.md`, `sys/socket.h`, `a.md`, [here](#a-word)\n", None),
    ("lint-paths", "a file that is not there", "docs/a.md",
     "see `docs/b.md`\n", "there is no docs/b.md"),
    ("lint-paths", "a file without its folder", "docs/a.md",
     "see `cq.c`\n", "there is no cq.c"),
    ("lint-paths", "a link to nothing", "docs/a.md",
     "see [it](../src/a.c)\n", "there is no ../src/a.c"),
    ("lint-paths", "a link to no heading", "docs/a.md",
     "# A word\nsee [it](#a-sentence)\n", "no heading is #a-sentence"),
    ("lint-calls", "a variable that secure_getenv reads", "src/util/a.c",
     "const char *a(void);\nconst char *a(void)\n{\n"
     "\treturn secure_getenv(\"A\");\n}\n", None),
    ("lint-calls", "a variable that getenv reads",
     "src/util/a.c", "const char *a(void);\nconst char *a(void)\n{\n"
     "\treturn getenv(\"A\");\n}\n", "secure_getenv"),
    ("lint-calls", "a variable of adverb that its reader gets by itself",
     "src/util/a.c", "const char *a(void);\nconst char *a(void)\n{\n"
     "\treturn secure_getenv(\"ADVERB_A\");\n}\n", "functions of log/env"),
    ("lint-atfork", "handlers that a constructor registers", "src/util/a.c",
     "__attribute__((constructor)) static void watch_forks(void)\n{\n"
     "\tpthread_atfork(0, 0, after_fork);\n}\n", None),
    ("lint-atfork", "a comment about pthread_atfork", "src/util/a.c",
     "/* pthread_atfork(0, 0, 0) */\n" + GOOD, None),
    ("lint-atfork", "handlers that are registered at the first call",
     "src/util/a.c", "__attribute__((constructor)) static void begin_it(void)\n"
     "{\n}\n\nstatic void open_once(void)\n{\n"
     "\tpthread_atfork(0, 0, after_fork);\n}\n", "a.c:7: pthread_atfork"),
    ("lint-atfork", "an attribute of another function", "src/util/a.c",
     "__attribute__((constructor)) void a_one(void);\n"
     "void a_two(void)\n{\n\tpthread_atfork(0, 0, 0);\n}\n",
     "a.c:4: pthread_atfork"),
    ("lint-names", "file_function", "src/util/crc.c", GOOD, None),
    ("lint-names", "a function without its file's name", "src/util/crc.c",
     "int sum(int a);\nint sum(int a)\n{\n\treturn a;\n}\n",
     "sum should begin with crc_"),
    ("lint-names", "an ABI name in a front end", "src/verbs/pd.c",
     "int ibv_alloc_pd(void);\nint ibv_alloc_pd(void)\n{\n\treturn 0;\n}\n",
     None),
    ("lint-names", "an ABI name elsewhere", "src/hca/pd.c",
     "int ibv_alloc_pd(void);\nint ibv_alloc_pd(void)\n{\n\treturn 0;\n}\n",
     "should begin with pd_"),
    ("lint-unused", "a function of a header, which tests may call alone",
     "src/hdr/new.c", GOOD, None),
    ("lint-unused", "a function that nobody calls", "src/util/new.c", LONE,
     "no code of the product calls"),
    ("lint-unused", "a function that only comments and a string name",
     "src/util/new.c", NAMED, "no code of the product calls new_sum"),
    ("lint-unused", "a function that its own file calls", "src/util/new.c",
     NAMED + "static int two_sums(int a)\n{\n\treturn new_sum(a);\n}\n", None),
    ("lint-circles", "files that do not need one another", "src/util/d.c", GOOD,
     None),
    ("lint-circles", "a circle of four files", "src/util/d.c",
     "int a_one(void);\nint d_one(void);\nint d_one(void)\n{\n"
     "\treturn a_one();\n}\n", "a circle of 4 files, at most 3: a b c d"),
    ("lint-circles", "such a circle in ibt", "src/ibt/d.c",
     "int a_one(void);\nint d_one(void);\nint d_one(void)\n{\n"
     "\treturn a_one();\n}\n", None),
    ("lint-spdx", "a script with its licence", "ci/a",
     "#!/bin/sh\n# SPDX-License-Identifier: BSD-2-Clause\n", None),
    ("lint-spdx", "a file that is no script", "docs/a", "A word.\n", None),
    ("lint-spdx", "a script without a licence", "ci/a", "#!/bin/sh\necho a\n",
     "ci/a:1: the first two lines have no"),
    ("lint-spdx", "a file of the build without a licence", "src/a/meson.build",
     "a = files('a.c')\n", "meson.build:1: the first two lines have no"),
    ("lint-shell", "a sound script", "ci/a.sh", "#!/bin/sh\necho a\n", None),
    ("lint-shell", "a path that may begin with an empty word", "ci/a.sh",
     "#!/bin/sh\nrm -rf $a/*\n", "SC2115"),
    ("lint-man", "a synopsis of all options", "docs/man/a.1",
     PAGE % ".Op Fl -one\n.Op Fl -two Ar file\n", None),
    ("lint-man", "a synopsis that names no option", "docs/man/a.1",
     PAGE % ".Op Ar options\n", None),
    ("lint-man", "a synopsis without one of the options", "docs/man/a.1",
     PAGE % ".Op Fl -one\n", "SYNOPSIS has no --two"),
    ("lint-man", "a command without --help", "docs/man/a.1",
     (PAGE % ".Op Ar options\n").replace(".It Fl h , Fl -help\nHelp.\n", ""),
     "--help is not described"),
    ("lint-suites", "one case, and one with its parameters",
     "tests/suites/a.txt", "# why\nA.B\twhy\nP/A.B/*\twhy\n", None),
    ("lint-suites", "a pattern of more than one case", "tests/suites/a.txt",
     "A.*Invalid*\twhy\n", "more than one case"),
    ("lint-suites", "all cases of a suite", "tests/suites/a.txt",
     "P/A.*\twhy\n", "more than one case"),
    ("lint-suites", "a case without a reason", "tests/suites/a.txt",
     "A.B\n", "a reason"),
    ("lint-promises", "tests that exist", "docs/a.md",
     "`meson test -C build/out mr scenario-cm`, `users.py --only 'root *'`,\n"
     "`test_other_user`: \"pages are for processes of one user\"\n", None),
    ("lint-promises", "a test that Meson does not know", "docs/a.md",
     "`meson test -C build/out mr no_such`\n", "there is no test no_such"),
    ("lint-promises", "a case that its suite lacks", "docs/a.md",
     "`users.py`, `... 'no such case*'`\n", "has no case like no such"),
    ("lint-promises", "a suite that is not there", "docs/a.md",
     "`no_such.py --only 'a*'`\n", "there is no suite no_such.py"),
    ("lint-promises", "a case that its unit test lacks", "docs/a.md",
     "`test_other_user`: \"no test does that\"\n", "has no test: no test"),
    ("lint-promises", "tests that root runs", "docs/a.md",
     "`meson test -C build/out mr`, `meson test -C build/out walk trust`, as "
     "root too, `test_other_user` as root\n", None),
    ("lint-promises", "a test that root does not run", "docs/a.md",
     "`meson test -C build/out walk mr`, as root too\n",
     "ci/test-root does not run mr"),
    ("lint-modules", "a test for each module", "docs/TESTED.md", ROWS, None),
    ("lint-modules", "a module without a row", "docs/TESTED.md",
     ROWS.replace("`b.c`", "`a.c`"), "src/util/b.c has no row"),
    ("lint-modules", "a row of a module that is not there", "docs/TESTED.md",
     ROWS + "| `src/util` | `e.c` | `tests/unit/test_a.c` |  |\n",
     "there is no module src/util/e.c"),
    ("lint-modules", "a test that is not there", "docs/TESTED.md",
     ROWS.replace("test_a.c", "test_e.c"), "there is no tests/unit/test_e.c"),
    ("lint-modules", "a test that names the module in a comment only",
     "docs/TESTED.md", ROWS.replace("test_*.c", "test_d.c"),
     "tests/unit/test_d.c calls nothing of src/util/a.c"),
    ("lint-modules", "a module that the test calls only through another",
     "docs/TESTED.md", ROWS.replace("|  | `tests/unit/test_a.c` |",
                                    "| `tests/unit/test_a.c` |  |"),
     "tests/unit/test_a.c calls nothing of src/util/b.c"),
    ("lint-modules", "a test that does not reach the module",
     "docs/TESTED.md", ROWS.replace("test_a.c", "test_d.c"),
     "no call leads from tests/unit/test_d.c to src/util/b.c"),
    ("lint-modules", "a row without a test", "docs/TESTED.md",
     ROWS.replace("`tests/unit/test_a.c`", ""), "names no test"),
    ("lint-modules", "code for which the compiler is no test",
     "docs/TESTED.md", ROWS.replace("`tests/unit/test_a.c`", "the compiler"),
     "src/util/b.c has functions"),
    ("lint-docs", "a folder with a README", "src/util/b.c", GOOD, None),
    ("lint-docs", "a folder without a README", "src/hdr/b.c", GOOD,
     "src/hdr has no README.md"),
    ("lint-docs", "a README of 41 lines", "src/util/README.md", "a\n" * 41,
     "src/util/README.md has more than 40 lines"),
    ("lint-cppcheck", "sound code", "src/util/a.c", GOOD, None),
    ("lint-cppcheck", "a read past an array", "src/util/a.c",
     "int f(void);\nint f(void)\n{\n\tint a[2] = {0, 0};\n\n"
     "\treturn a[2];\n}\n", "arrayIndexOutOfBounds"),
    ("lint-tidy", "sound code", "src/util/a.c", GOOD, None),
    ("lint-tidy", "a null pointer followed", "src/util/a.c",
     "int f(int a);\nint f(int a)\n{\n\tint *p = 0;\n\n"
     "\treturn a ? *p : 0;\n}\n", "NullDereference"),
)


def copy_documents(root):
    """Copies ci and what ci/lint-docs, which has no argument, reads besides the
    sources, and writes the generated list of the small tree.  Returns the copy of ci.
    """
    for name in "ci", "docs", "packaging":
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "meson.build", root)
    subprocess.run([root / "ci/citations"], check=True)
    return root / "ci"


def arguments(lint, root, path):
    if lint == "lint-docs":
        return []
    if lint == "lint-dialect":
        known = root / "src/hdr/known.c"
        known.parent.mkdir(parents=True)
        known.write_text(KNOWN, encoding="utf-8")
        return [known, path]
    if lint in ("lint-layers", "lint-modules", "lint-paths"):
        return [root]
    if lint in ("lint-circles", "lint-names", "lint-unused"):
        for source in path.parent.glob("*.c"):
            output = root / "out" / source.relative_to(root)
            output.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cc", "-c", "-o", str(output) + ".o", source],
                           check=True)
        return [root / "out"]
    return [path]


def is_refused(want):
    """Returns whether the lint must refuse a file for which the lint must print
    @want."""
    return want is not None and not want.startswith("note: ")


def run(case, root):
    """Runs the lint of a case on its file.  Returns "ok", "FAIL" or "skipped",
    and why."""
    lint, _, name, text, want = case
    path = root / name
    path.parent.mkdir(parents=True)
    for other, code in FOLDER.items() if lint == "lint-docs" else ():
        (root / other).parent.mkdir(parents=True, exist_ok=True)
        (root / other).write_text(code, encoding="utf-8")
    for other, code in MODULES.items() if lint == "lint-modules" else ():
        (root / other).parent.mkdir(parents=True, exist_ok=True)
        (root / other).write_text(code, encoding="utf-8")
    for other, code in CALLS.items() if lint == "lint-circles" else ():
        (path.parent / other).write_text(code, encoding="utf-8")
    if lint == "lint-layers" and path.suffix == ".md":
        (root / "src/host").mkdir(parents=True)
        (root / "src/host/a.c").write_text(INCLUDES, encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    shutil.copy(ROOT / ".clang-format", root)
    folder = CI
    if lint == "lint-docs":
        folder = copy_documents(root)
    done = subprocess.run([folder / lint, *arguments(lint, root, path)],
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False,
                          cwd=root if lint == "lint-unused" else None)
    if done.returncode == 77:
        return "skipped", done.stdout.strip()
    if (done.returncode != 0) != is_refused(want):
        return "FAIL", "exit status %d\n%s" % (done.returncode, done.stdout)
    if want and want not in done.stdout:
        return "FAIL", "the lint does not print `%s`\n%s" % (want, done.stdout)
    return "ok", ""


def main():
    sums = {"ok": 0, "FAIL": 0, "skipped": 0}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            answer, why = run(case, pathlib.Path(folder))
        sums[answer] += 1
        verb = "refuses" if is_refused(case[4]) else "passes"
        print("%s %s %s: %s%s" % (answer, case[0], verb, case[1],
                                  why and ": " + why.replace("\n", "\n    ")))
    print("%d passed, %d failed, %d skipped" % tuple(sums.values()))
    return 1 if sums["FAIL"] else 0


if __name__ == "__main__":
    os.environ["JOBS"] = "1"
    sys.exit(main())
