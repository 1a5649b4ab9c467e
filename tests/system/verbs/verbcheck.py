#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs that check verbs.  Each of their cases is a case of this
suite."""

import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import system

t = system.Suite(__doc__)


# Words of the messages that adverb must print in the cases "a call that is not
# built is EOPNOTSUPP", "a freed domain is not imported", "a region of another domain
# is not imported" and "more than a limit is refused".
REFUSED = ("steering of raw packets", "XRC (ibv_open_xrcd",
           "a queue pair other than RC, UC and UD", "tag matching",
           "registration on demand (ODP)", "fetching memory ahead",
           "ibv_import_device of descriptor -1: no open context",
           "ibv_dealloc_pd has freed the protection domain",
           "ibv_import_pd of handle 0: no protection domain",
           "the memory region belongs to another protection domain",
           "ibv_import_mr of handle 0: this process has no memory region",
           "max_send_wr 16385: the most that a queue pair has is 16384",
           "max_recv_wr 16385: the most that a queue pair has is 16384",
           "max_send_sge 33: the most that a queue pair has is 32",
           "max_recv_sge 33: the most that a queue pair has is 32",
           "dest_qp_num is above 0xffffff")


def refused(r):
    silent = [s for s in REFUSED if "adverb: " not in r.output or
              s not in r.output]
    system.expect(not silent, "no message about " + ", ".join(silent), r)


def attached(r):
    for words in ("attach the counter before ibv_modify_qp to RTR",
                  "leave the operation out of op_mask",
                  "create the counter in the queue pair's context"):
        system.expect(words in r.output, "no message with: " + words, r)


INLINE = "max_inline_data"


def device(*argv, **env):
    return t.run([t.adverb, "run", "--",
                  t.program("devicecheck"),
                  *argv], **env)


def search():
    r = device()
    system.expect("ok the most inline data can be found" in r.output,
                  "the case has not passed", r)
    system.expect(INLINE not in r.output, "adverb prints a message", r)
    r = device(ADVERB_EXPLAIN="2")
    system.expect(INLINE in r.output, "no message with ADVERB_EXPLAIN=2", r)


def mistake():
    r = device("mistake")
    system.expect(INLINE + " 1048576: the most that a queue pair has is 512; "
                  "ask for less" in r.output, "no message about inline data", r)


verbs = t.checks("verbcheck", "verbs")
t.case("each refusal prints a message",
       lambda: refused(t.every_check("verbcheck", verbs)))
for name in ("devicecheck", "memorycheck", "regions", "queuecheck",
             "datagramcheck", "queuethreads", "newercheck"):
    t.checks(name, "verbs")
counters = t.checks("countcheck", "verbs")
t.case("each refusal to attach a counter says what to do",
       lambda: attached(t.every_check("countcheck", counters)))
for way, path in ("0", "packets"), ("1", "the direct path"):
    t.case("posts and polls need little of a thread's stack, over " + path,
           lambda way=way: system.expect_ok(t.run(
               [t.adverb, "run", "--", t.program("smallstack")],
               ADVERB_DIRECT=way)))
t.case("a search for the limit of inline data prints no message", search)
t.case("a call for far too much inline data prints a message", mistake)
t.end()
