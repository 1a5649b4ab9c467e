# SPDX-License-Identifier: BSD-2-Clause
"""The three figures of README.md, each beside the ratios of its goals."""

import os
import re

import goals
from plot import number

BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"

# A row: the text, the unit, and for each goal its name in goals.GOALS and the
# text that follows its ratio.  adverb's figure is that of the first goal.
ROWS = [
    ("WRITE 64 KiB over UDP on `lo`, path MTU 4096", "GB/s",
     [("WRITE 64 KiB, path MTU 4096, to the shaped limit",
       "of a bare socket with the same headers, CRC and copy"),
      ("WRITE 64 KiB to plain TCP writes", "of plain TCP")]),
    ("WRITE 64 KiB between two processes, no packets", "GB/s",
     [("within the host: WRITE 64 KiB to process_vm",
       "of process_vm_writev")]),
    ("SEND 8 B between two processes, half a round trip", "µs",
     [("within the host: SEND 8 B to UCX posix,cma",
       "of UCX's shared memory"),
      ("within the host: SEND 8 B, mean, to libfabric shm",
       "of libfabric's, mean to mean")]),
]


def row_of(data, what, unit, compared):
    """Returns one row of the table, or None if a figure or a ratio is
    missing."""
    verdicts = {v["what"]: v for v in data["goals"]}
    found = [verdicts[goal] for goal, _ in compared]
    ours = goals.median([f[found[0]["field"]] for f in data["figures"].get(
        found[0]["ours"], {}).values() if found[0]["field"] in f])
    if ours is None or any(v["ratio"] is None for v in found):
        return None
    beside = "; ".join("%.2f %s" % (v["ratio"], text)
                       for v, (_, text) in zip(found, compared))
    return "| %s | %s %s | %s |" % (what, number(ours), unit, beside)


def table(data):
    """Returns the lines between the two marks, or None if @data lacks a
    figure."""
    rows = [row_of(data, *row) for row in ROWS]
    if None in rows:
        return None
    head = "Measured %s, %s, %d cores:" % (data["date"], data["cpu"],
                                           data["cores"])
    return "\n".join([head, "", "| | adverb | compared with |", "|---|---|---|",
                      *rows, ""])


def write(data, path):
    """Rewrites the table of the file @path, if there is such a file and @data has
    all of its figures."""
    lines = table(data)
    if lines is None or not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as page:
        text = page.read()
    text = re.sub("(%s\n).*(%s)" % (BEGIN, END),
                  lambda m: m[1] + lines + m[2], text, flags=re.S)
    with open(path, "w", encoding="utf-8") as page:
        page.write(text)
