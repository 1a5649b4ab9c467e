#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that rdma_resolve_addr looks for the host of an address, by ARP or neighbour
discovery, as it does with an adapter: an address that no host has is an event in
time, and a host that comes up is found."""

import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
import system
from system import Fail, expect, expect_failed, expect_ok

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)

# Nobody has NOBODY, and nobody forwards packets to FAR at GATEWAY.
NOBODY = "10.1.0.9", "fd00:1::9"
FAR = "10.7.0.1", "fd00:7::1"
GATEWAY = "10.1.0.8", "fd00:1::8"
PEER = "10.1.0.2", "fd00:1::2"
LONG_MS = "1000000"
SHORT_MS = "200"


def wire():
    lab.unwire()
    lab.wire("v0", 1500, ("10.1.0.1/24", "fd00:1::1/64"),
             ("10.1.0.2/24", "fd00:1::2/64"))


def resolve(address, ms, **env):
    return lab.run("here", [t.program("resolvecheck"), "wait", address, ms],
                   **env)


def expect_event(r, words):
    expect_ok(r)
    expect(words in r.output.splitlines(), "no event " + words, r)


def expect_silence(r, address):
    expect_event(r, "RDMA_CM_EVENT_ADDR_ERROR -110")
    expect("ADDR_ERROR: no host answers %s for %s," % (
        "neighbour discovery" if ":" in address else "ARP", address) in
           r.output, "no sentence", r)


def case(name, body):
    def go():
        wire()
        body()
    t.case(name, go)


def silent_host():
    for address in NOBODY:
        expect_silence(resolve(address, SHORT_MS), address)


def silent_gateway():
    for to, gateway in zip(FAR, GATEWAY):
        lab.ip("here", "route add %s via %s dev v0" % (to, gateway))
        expect_silence(resolve(to, SHORT_MS), to)


def silent_host_of_iwarp():
    expect_silence(resolve(NOBODY[0], SHORT_MS, ADVERB_DEVICES="iwarp"),
                   NOBODY[0])


def answering_host():
    """The kernel has asked for the host before, or has not."""
    for address in PEER:
        for _ in range(2):
            expect_event(resolve(address, LONG_MS),
                         "RDMA_CM_EVENT_ADDR_RESOLVED 0")


def host_that_comes_up():
    for address in NOBODY:
        p = lab.start("here", [t.program("resolvecheck"), "wait", address,
                               LONG_MS])
        lab.wait(lambda: p.poll() is not None or
                 "INCOMPLETE" in lab.ip("here", "neigh show %s" % address) or
                 "FAILED" in lab.ip("here", "neigh show %s" % address),
                 "the kernel does not ask for the address")
        lab.ip("there", "address add %s/%s dev v0" % (
            address, 64 if ":" in address else 24))
        expect_event(t.finish(p, system.HANG), "RDMA_CM_EVENT_ADDR_RESOLVED 0")


def destroyed_early():
    r = lab.run("here", [t.program("resolvecheck"), "destroy", NOBODY[0]])
    expect_event(r, "destroyed")


def forked():
    r = lab.run("here", [t.program("resolvecheck"), "fork", NOBODY[0],
                         PEER[0]])
    expect_event(r, "RDMA_CM_EVENT_ADDR_RESOLVED 0")


def of_rping():
    t.need("rping")
    r = lab.run("here", ["rping", "-c", "-a", NOBODY[0], "-C", "1"])
    expect_failed(r)
    if "RDMA_CM_EVENT_ADDR_ERROR, error -110" not in r.output:
        raise Fail("rping does not say ADDR_ERROR", r.output)


case("an address that no host has is ADDR_ERROR in time", silent_host)
case("an address behind a silent gateway is ADDR_ERROR in time", silent_gateway)
case("an iWARP device, too, looks for the host", silent_host_of_iwarp)
case("a host that answers is ADDR_RESOLVED", answering_host)
case("a host that comes up meanwhile is found", host_that_comes_up)
case("ids can be destroyed while their addresses are resolved", destroyed_early)
case("a forked child resolves while its parent waits", forked)
case("rping reports an address that no host has", of_rping)
lab.end()
t.end()
