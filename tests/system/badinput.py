#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the badinput program and counts its lines as cases."""

import os
import re

import system

t = system.Suite(__doc__)
program = os.path.join(t.build, "tests", "system", "badinput")


def verdict(why, output):
    def body():
        if why:
            raise system.Fail(why, output)
    return body


if not t.options.list:
    r = t.adverb_run([program], timeout=300)
    lines = re.findall(r"^(ok|FAIL) ([^:\n]+)(?:: (.*))?$", r.output, re.M)
    for word, name, why in lines:
        t.case(name, verdict(why if word == "FAIL" else "", ""),
               "bad input", "badinput")
    ended = re.search(r"^\d+ passed, \d+ failed", r.output, re.M)
    t.case("badinput runs to its end",
           verdict("" if ended else "exit status %d" % r.status, r.output))
elif not t.options.list:
    t.case("badinput", verdict("", ""))
t.end()
