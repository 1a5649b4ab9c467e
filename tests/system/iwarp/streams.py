#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests queue pairs of iWARP devices over TCP connections, without rdma_cm."""

import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import system

t = system.Suite(__doc__)
for program in "streamcheck", "streamendcheck":
    t.checks(program, "iWARP", ADVERB_DEVICES="iwarp:lo")
t.end()
