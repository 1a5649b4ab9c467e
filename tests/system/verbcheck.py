#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs that check verbs and counts their lines as cases."""

import system

t = system.Suite(__doc__)


# What is said of the calls of "what is not built is EOPNOTSUPP".
REFUSED = ("steering of raw packets", "XRC (ibv_open_xrcd",
           "a queue pair other than RC, UC and UD", "tag matching",
           "registration on demand (ODP)", "fetching memory ahead")


def refused(r):
    silent = [s for s in REFUSED if "adverb: " not in r.output or
              s not in r.output]
    system.expect(not silent, "none for " + ", ".join(silent), r)


if not t.options.list:
    verbs = t.checks("verbcheck", "verbs")
    t.case("each refusal has a sentence", lambda: refused(verbs))
    for program in ("devicecheck", "memorycheck", "queuecheck",
                    "datagramcheck", "queuethreads"):
        t.checks(program, "verbs")
t.end()
