#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests programs that are built with AddressSanitizer or ThreadSanitizer, or run
under valgrind: there is no report about adverb, and ThreadSanitizer reports a data
race of the program itself."""

import os
import re
import resource
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

from system import Skip, Suite, expect, expect_ok

# None of these programs forks while a device is open.  Under AddressSanitizer the
# child would inherit the allocator's locks, which a thread of adverb might hold
# at that moment, and would wait for ever.
PROGRAMS = {
    "address": ["verbcheck", "queuecheck", "queuethreads", "cmcheck", "endcheck",
                "listencheck", "udcheck"],
    "thread": ["race_order", "verbcheck", "queuecheck", "queuethreads", "cmcheck",
               "endcheck", "listencheck", "udcheck"],
}
REPORT = "WARNING: ThreadSanitizer|ERROR: [A-Z][A-Za-z]+Sanitizer|CHECK failed"
MEMORY_KIB = 1 << 20
RACED = 66  # the exit status of a program in which ThreadSanitizer saw a race

t = Suite(__doc__)


def run(program, *words):
    path = t.program(program)
    if not os.path.exists(path):
        raise Skip("the compiler had no such sanitizer")
    return t.adverb_run([path, *words])


def is_quiet(program):
    r = run(program)
    expect(not re.search(REPORT, r.output), "there is a report", r)
    expect_ok(r)
    expect(re.search(r"^\d+ passed, 0 failed", r.output, re.M),
           "a case failed", r)


def race_is_reported(where):
    r = run("race_order-thread", "race-" + where)
    expect(r.status == RACED and re.search(
        r"data race .*race_order\.c", r.output), "the race is not reported", r)


def under_valgrind(program):
    """Runs a program under valgrind.  Expects that valgrind reports nothing,
    and that no program that this script has run so far has taken MEMORY_KIB of
    memory.  An arena is mostly holes, which valgrind fills with pages when it
    looks for leaks, so under valgrind adverb must make small arenas."""
    r = t.valgrind_run(program)
    expect_ok(r)
    expect(not re.search("^(==|--)[0-9]", r.output, re.M),
           "there is a report", r)
    kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    expect(kib < MEMORY_KIB, "a program of this script took %d MiB" % (kib // 1024))


# The cases under valgrind come first: a program with a sanitizer may take more
# memory than the limit of these cases.
for name in "verbcheck", "queuecheck", "cmcheck", "endcheck", "udcheck":
    t.case(name + " under valgrind", lambda program=name:
           under_valgrind(program), "sanitizers", name)
for sanitizer, programs in PROGRAMS.items():
    for name in programs:
        t.case("%s, built with -fsanitize=%s" % (name, sanitizer),
               lambda program=name + "-" + sanitizer: is_quiet(program),
               "sanitizers", name)
for where in "posting", "polling":
    t.case("a race of the program itself during %s is reported" % where,
           lambda where=where: race_is_reported(where), "sanitizers", "race_order")
t.end()
