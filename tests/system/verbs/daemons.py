#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests programs that close all descriptors while a device is open."""

import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import system

from system import Skip, expect

t = system.Suite(__doc__)


def beside_a_thread_that_serves():
    # The network namespace that --private makes has no broker.
    r = t.adverb_run([t.program("daemoncheck")], ["--private"],
                     ADVERB_BROKER="/nowhere")
    if r.status == 126 and "namespace" in r.output:
        raise Skip("no network namespace can be made here")
    expect("a thread of this program serves instead" in r.output,
           "no message says that a thread serves", r)
    expect(r.status == 0 and ", 0 failed" in r.output, "a case failed", r)


t.checks("daemoncheck", None)
t.case("the cases of daemoncheck pass while a thread serves as the broker",
       beside_a_thread_that_serves)
t.end()
