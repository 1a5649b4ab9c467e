#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two processes of one host, by packets and without: atomics beside the
target's own, either is stopped, a sudden death of either; and the order in
which bytes become visible."""

import os

import system
from system import Skip, expect, expect_ok

t = system.Suite(__doc__)
VISIBLE = os.path.join(t.build, "tests", "system", "visible")
WITHOUT = os.path.join(t.build, "tests", "system", "without")
SAMEHOST = os.path.join(t.build, "tests", "system", "samehost")
HALTED = os.path.join(t.build, "tests", "system", "halted")
ATOMICS = "10000000" if t.options.full else "100000"
KILLS = {"packets": 10000 if t.options.full else 30,
         "direct": 10000 if t.options.full else 100}
# 10^5 rounds a size take minutes where both ends share a core.
ROUNDS = 10000000 if t.options.full else 1000


def who_polls_the_last_byte_sees_all():
    r = t.run([VISIBLE, "-n", str(ROUNDS)],
              timeout=36000 if t.options.full else 300)
    if r.status == 2:
        raise Skip("process_vm_writev is refused")
    expect_ok(r)
    expect(r.output.count(" 0 of ") == 17, "a size is missing", r)


def samehost(way, *argv, before=(), program=SAMEHOST):
    def body():
        expect_ok(t.run([*before, t.adverb, "run", "--", program, *argv],
                        timeout=36000 if t.options.full else 300,
                        ADVERB_DIRECT="1" if way == "direct" else "0"))
    return body


for way in "packets", "direct":
    t.case("atomics are exact beside the target's own, by " + way,
           samehost(way, "atomics", ATOMICS), "same host", "samehost")
    t.case("who survives the other's death sees all its work end, by " + way,
           samehost(way, "kill", str(KILLS[way])), "same host", "samehost")
t.case("who may not write others' memory goes by packets",
       samehost("direct", "kill", "5", before=[WITHOUT, "vm", "--"]),
       "same host", "samehost")
t.case("a stopped target is worked for when it goes on, by packets",
       samehost("packets", "stopped", "packets"), "same host", "samehost")
t.case("a stopped target is worked for at once, by direct",
       samehost("direct", "stopped", "direct"), "same host", "samehost")
for way in "packets", "direct":
    t.case("who is stopped amid a transfer keeps nobody waiting, by " + way,
           samehost(way, "100" if t.options.full else "3", way,
                    program=HALTED),
           "same host", "halted")
t.case("who polls the last byte sees all", who_polls_the_last_byte_sees_all,
       "same host", "visible")
t.end()
