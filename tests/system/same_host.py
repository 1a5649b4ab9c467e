#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes of one host that reach one another's memory: the order in which
bytes become visible."""

import os

import system
from system import Skip, expect, expect_ok

t = system.Suite(__doc__)
VISIBLE = os.path.join(t.build, "tests", "system", "visible")
# 10^5 rounds a size take minutes where both ends share a core.
ROUNDS = 10000000 if t.options.full else 1000


def who_polls_the_last_byte_sees_all():
    r = t.run([VISIBLE, "-n", str(ROUNDS)],
              timeout=36000 if t.options.full else 300)
    if r.status == 2:
        raise Skip("process_vm_writev is refused")
    expect_ok(r)
    expect(r.output.count(" 0 of ") == 17, "a size is missing", r)


t.case("who polls the last byte sees all", who_polls_the_last_byte_sees_all,
       "same host", "visible")
t.end()
