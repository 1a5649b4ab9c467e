#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests which iWARP devices ADVERB_DEVICES makes, and what programs see of
them."""

import re
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
import system
from system import expect, expect_ok, expect_silent

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
MAC = "02:00:00:00:0a:0b"
GUID = "0200:0000:0a0b:0000"
V0_GID = GUID + ":0000:0000:0000:0000"


def wired(body):
    """Returns a case that runs @body with a link v0 that has the default route,
    and in `here` the address MAC."""
    def go():
        lab.unwire()
        lab.wire("v0", 1500, ("10.1.0.1/24",), ("10.1.0.2/24",))
        lab.ip("here", "link set v0 address " + MAC)
        lab.ip("here", "route add default via 10.1.0.2")
        body()
    return go


def run(devices, argv, **env):
    if devices is not None:
        env["ADVERB_DEVICES"] = devices
    return lab.run("here", argv, **env)


def listed(devices):
    """Returns the devices, each with its interface, in the order in which
    ibv_devices lists them, and the Result."""
    t.need("rdma")
    r = run(devices, ["sh", "-c", "ibv_devices && rdma link"])
    expect_ok(r)
    netdev = dict(re.findall(r"^link (\w+)/1 .* netdev (\S+)", r.output, re.M))
    return ["%s %s" % (name, netdev.get(name)) for name in
            re.findall(r"^ +((?:adv|iw)\d) ", r.output, re.M)], r


def chooses(devices, *want):
    def body():
        seen, r = listed(devices)
        expect(seen == list(want), "not %s" % (want,), r)
        expect_silent(r)
    t.case("%s makes %s" % ("ADVERB_DEVICES=" + devices if devices else
                            "no ADVERB_DEVICES", ", ".join(want)), wired(body),
           "iWARP devices", "ibv_devices")


def choice():
    chooses(None, "adv0 v0")
    chooses("iwarp", "iw0 v0")
    chooses("roce,iwarp", "adv0 v0", "iw0 v0")
    chooses("iwarp:v0,roce", "iw0 v0", "adv0 v0")
    chooses("iwarp:lo,v0,iwarp,lo", "iw0 lo", "adv0 v0", "iw1 v0", "adv1 lo")


def says(devices, sentence):
    def body():
        r = run(devices, ["ibv_devices"])
        expect(re.search("adverb: " + sentence, r.output),
               "adverb does not print the message", r)
    t.case("a message explains ADVERB_DEVICES=%s" % devices, wired(body))


def mistakes():
    says("v0,iwarp:v1", "iwarp:v1 of ADVERB_DEVICES becomes no device: there "
         "is no such interface")
    says("iwarp:", "iwarp: of ADVERB_DEVICES becomes no device: there")
    says("lo,rdma:v0,x", "rdma:v0 of ADVERB_DEVICES becomes no device: only "
         '"iwarp" can stand before a colon')
    says("iwarpp", "no interface is named in ADVERB_DEVICES=iwarpp")


def as_devinfo_says():
    r = run("roce,iwarp", ["ibv_devinfo", "-v", "-d", "iw0"])
    expect_ok(r)
    for want in (r"transport:\s+iWARP \(1\)", r"node_guid:\s+" + GUID,
                 r"link_layer:\s+Ethernet", r"state:\s+PORT_ACTIVE",
                 r"active_mtu:\s+1024", r"gid_tbl_len:\s+1\n",
                 r"pkey_tbl_len:\s+0\n", r"max_ah:\s+0\n",
                 r"max_mcast_grp:\s+0\n", r"atomic_cap:\s+ATOMIC_NONE",
                 "MEM_MGT_EXTENSIONS"):
        expect(re.search(want, r.output), "no " + want, r)
    expect("RC_RNR_NAK_GEN" not in r.output, "iw0 has a flag of InfiniBand", r)
    r = run("roce,iwarp", ["ibv_devinfo", "-v", "-d", "adv0"])
    expect(re.search(r"transport:\s+InfiniBand", r.output) and
           "::ffff:10.1.0.1, RoCE v2" in r.output,
           "adv0 is not the RoCE device", r)


def as_sys_says():
    r = run("roce,iwarp", [
        "sh", "-c", "cd /sys/class/infiniband/iw0 && "
        "grep . node_type ports/1/gids/* ports/1/gid_attrs/*/* "
        "ports/1/cap_mask; ls ports/1"])
    expect_ok(r)
    for want in ("node_type:4: RNIC", "ports/1/gids/0:" + V0_GID,
                 "ports/1/gid_attrs/types/0:IB/RoCE v1",
                 "ports/1/gid_attrs/ndevs/0:v0",
                 "ports/1/cap_mask:0x00090000"):
        expect(want + "\n" in r.output, "no " + want, r)
    expect("gids/1:" not in r.output and "pkeys" not in r.output,
           "iw0 has a second GID, or P_Keys", r)


def as_netlink_says():
    t.need("rdma")
    r = run("roce,iwarp", ["rdma", "-d", "dev"])
    expect_ok(r)
    expect(re.search(r"^1: iw0: node_type rnic (protocol iw )?fw \S+ node_guid "
                     + GUID, r.output, re.M), "iw0 is not the iWARP device", r)


def as_umad_says():
    t.need("ibstat")
    r = run("iwarp,roce", ["ibstat", "-l"])
    expect(r.output.split() == ["adv0"], "not adv0 alone", r)


SENTENCES = ("a queue pair other than RC on iWARP", "address handles on iWARP",
             "multicast groups on iWARP", "iWARP has no P_Keys")


def explained(r):
    silent = [s for s in SENTENCES if s not in r.output]
    expect(not silent, "no message about " + ", ".join(silent), r)


def as_doctor_says():
    r = t.run([t.adverb, "doctor"], ADVERB_DEVICES="v0,iwarp:lo")
    for want in (r"^ok +device: adv0, RoCE by v0, GID 1 is ::ffff:10\.1\.0\.1$",
                 r"^ok +device: iw0, iWARP by lo, GID 0 is 0:0:1::$"):
        expect(re.search(want, r.output, re.M), "no " + want, r)


def roce_goes_on():
    """If an interface is a RoCE device and an iWARP device, the RoCE device
    works as it does alone."""
    for devices, device in ("v0,iwarp:v0", "adv0"), ("iwarp,roce", "adv0"):
        words = ["ibv_rc_pingpong", "-d", device, "-g", "1", "-c", "-n", "100",
                 "-p", "%"]
        r = lab.both(words, [*words, "10.1.0.1"],
                     server_env={"ADVERB_DEVICES": devices})
        expect_ok(r)
        expect_silent(r)


def by_the_option():
    r = t.run([t.adverb, "run", "--device", "iwarp:v0", "--", "ibv_devices"])
    expect(re.search(r"^ +iw0\s+020000000a0b0000$", r.output, re.M), "no iw0", r)


choice()
mistakes()
t.case("ibv_devinfo shows iWARP", wired(as_devinfo_says), "iWARP devices",
       "ibv_devinfo")
t.case("/sys shows iWARP", wired(as_sys_says))
t.case("rdma shows iWARP", wired(as_netlink_says), "iWARP devices", "rdma")
t.case("ibstat leaves iWARP out", wired(as_umad_says))
t.case("adverb doctor names the kinds", wired(as_doctor_says))
t.case("adverb run --device takes a kind", wired(by_the_option))
t.case("RoCE works beside iWARP", wired(roce_goes_on))
if not t.options.list:
    lab.unwire()
checked = t.checks("iwarpcheck", "iWARP devices", ADVERB_DEVICES="iwarp:lo")
t.case("a message explains each refusal", lambda: explained(t.every_check(
    "iwarpcheck", checked, ADVERB_DEVICES="iwarp:lo")))
lab.end()
t.end()
