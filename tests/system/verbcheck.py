#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs that check verbs and counts their lines as cases."""

import os
import re

import system

t = system.Suite(__doc__)


def verdict(why, output):
    def body():
        if why:
            raise system.Fail(why, output)
    return body


# What is said of the calls of "what is not built is EOPNOTSUPP".
REFUSED = ("steering of raw packets", "XRC (ibv_open_xrcd",
           "a queue pair other than RC, UC and UD", "tag matching",
           "registration on demand (ODP)", "fetching memory ahead")


def check(name, sentences=()):
    program = os.path.join(t.build, "tests", "system", name)
    r = t.adverb_run([program], timeout=300)
    lines = re.findall(r"^(ok|FAIL) ([^:\n]+)(?:: (.*))?$", r.output, re.M)
    for word, case, why in lines:
        t.case(case, verdict(why if word == "FAIL" else "", ""),
               "verbs", name)
    silent = [s for s in sentences if "adverb: " not in r.output or
              s not in r.output]
    if sentences:
        t.case("each refusal has a sentence",
               verdict("none for " + ", ".join(silent) if silent else "",
                       r.output))
    ended = re.search(r"^\d+ passed, \d+ failed", r.output, re.M)
    t.case(name + " runs to its end",
           verdict("" if ended else "exit status %d" % r.status, r.output))


if not t.options.list:
    check("verbcheck", REFUSED)
    check("queuecheck")
    check("datagramcheck")
    check("queuethreads")
t.end()
