#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests stock OpenSM and InfiniBand diagnostics on an emulated subnet, packets of
programs there, and the command adverb fabric."""

import contextlib
import glob
import os
import re
import signal
import socket
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import subnet
import system
from subnet import (NET, PATIENCE_S, Fabric, await_line, dissect, fabric,
                    fabric_argv, managed, managed_on, manager_argv, manager_env,
                    packets_argv, port_lid, receiver, said_by, switch_lid)
from system import Fail, Skip, expect, expect_failed, expect_ok, wait_until

AREA = "InfiniBand"
# A subnet in the format that ibnetdiscover prints, with GUIDs, descriptions, LIDs
# and rates.
DISCOVERED = """
vendid=0x2c9
devid=0xb924
sysimgguid=0x2c90000000203
switchguid=0x2c90000000200(2c90000000200)
Switch	8 "S-0002c90000000200"		# "The switch" enhanced port 0 lid 4 lmc 0
[1]	"H-0002c90000000100"[1](2c90000000101) 		# "one" lid 7 4xDDR
[5]	"H-0002c90000000110"[2](2c90000000112) 		# "two" lid 9 4xQDR

vendid=0x2c9
devid=0x5a44
sysimgguid=0x2c90000000103
caguid=0x2c90000000100
Ca	2 "H-0002c90000000100"		# "one"
[1](2c90000000101) 	"S-0002c90000000200"[1]		# lid 7 lmc 0 "The switch" lid 4 4xDDR

vendid=0x2c9
devid=0x5a44
sysimgguid=0x2c90000000113
caguid=0x2c90000000110
Ca	2 "H-0002c90000000110"		# "two"
[2](2c90000000112) 	"S-0002c90000000200"[5]		# lid 9 lmc 0 "The switch" lid 4 4xQDR
"""

t = system.Suite(__doc__)
subnet.use(t)


def without_date(text):
    """Returns ibnetdiscover's output without the line that has the time and
    without the lines that ibsim prints."""
    return "\n".join(line for line in text.splitlines()
                     if not line.startswith(("# Topology file", "ibwarn")))


# ibsim's sockets have fixed abstract names, so ibsim runs in its own network
# namespace.  The script repeats the client program until ibsim listens.
ON_IBSIM = """
cd "$1" && ibsim -s -n "$2" >ibsim.log 2>&1 & simulator=$!
export SIM_HOST=$3 LD_PRELOAD=$4
for try in $(seq 100); do
    "$5" >said 2>&1 && break
    LD_PRELOAD= sleep 0.1
done
LD_PRELOAD=
kill $simulator
cat said
"""


def ibsim_output(text, host, program):
    """Runs a program on ibsim, as the node @host of the net file @text.  Returns the
    output of the program."""
    t.need("ibsim")
    places = glob.glob("/usr/lib/*/umad2sim/libumad2sim.so") + [
        os.path.join(folder, "umad2sim", "libumad2sim.so")
        for folder in os.environ.get("DEB_LIBRARIES", "").split(":")]
    library = next((p for p in places if os.path.exists(p)), None)
    if not library:
        raise Skip("libumad2sim.so is not installed")
    if t.run(["unshare", "-Urn", "true"]).status:
        raise Skip("ibsim needs a user and network namespace, which this "
                   "machine refuses")
    net = t.path("net.ibsim")
    with open(net, "w") as f:
        f.write(text)
    r = t.run(["unshare", "-Urn", "sh", "-c", ON_IBSIM, "sh", t.tmp, net, host,
               library, program], timeout=PATIENCE_S)
    expect_ok(r)
    return r.output


def same_as_ibsim(text, host):
    def body():
        with fabric(text) as f:
            own = without_date(f.out(host, "ibnetdiscover"))
            other = without_date(ibsim_output(text, host, "ibnetdiscover"))
            expect(own == other, "ibnetdiscover prints on ibsim\n%s\nbut on "
                   "adverb\n%s" % (other, own))
            expect("Switch" in own, "ibnetdiscover prints no switch:\n" + own)
    return body


def examples():
    for folder in ("/usr/share/doc/ibsim-utils",
                   *[os.path.dirname(d) + "/share/doc/ibsim-utils"
                     for d in os.environ["PATH"].split(":")]):
        for name in sorted(glob.glob(folder + "/net-examples/net*")):
            yield name


def example_is_read():
    found = sorted({os.path.realpath(name) for name in examples()})
    if not found:
        raise Skip("the examples of ibsim-utils are not installed")
    for name in found:
        with open(name) as f:
            text = f.read()
        same_as_ibsim(text, "Hca1")()
    t.note("%d files" % len(found))


def state_before_manager():
    with fabric() as f:
        said = f.out("Hca1", "ibstat", "advib0", "1")
        expect("State: Initializing" in said,
               "the port is not in the state Initializing", None)
        expect("Link layer: InfiniBand" in said, said)
        names = f.out("Hca1", "ibstat", "-l").split()
        expect("advib0" in names, names)
        # ibstat since rdma-core 56 exits with 0 here
        said = f.host("Hca1", "ibstat", "advib0", "3").output
        expect("has no port number 3 - max (2)" in said, said)


def ports_become_active():
    with managed() as f:
        for host, port in (("Hca1", "1"), ("Hca2", "2"), ("Hca3", "1")):
            said = f.out(host, "ibstat", "advib0", port)
            expect("State: Active" in said, said)
            expect(re.search(r"Base lid: [1-9]", said), said)
            expect(re.search(r"SM lid: [1-9]", said), said)
        said = f.out("Hca3", "ibnetdiscover", "-p")
        expect(len(re.findall(r" - ", said)) >= 6, said)


def manager_is_found():
    with managed() as f:
        said = f.out("Hca3", "sminfo")
        expect("SMINFO_MASTER" in said, said)


def queries_by_lid():
    with managed() as f:
        lid = port_lid(f, "Hca3", "1")
        said = f.out("Hca1", "smpquery", "nodeinfo", lid)
        expect("Channel Adapter" in said, said)
        said = f.out("Hca1", "smpquery", "nodedesc", lid)
        expect("Hca3" in said, said)
        said = f.out("Hca1", "smpquery", "portinfo", lid, "1")
        expect(re.search(r"LinkState:\.*Active", said), said)
        for what in ("switchinfo", "pkeys", "sl2vl", "vlarb", "guidinfo"):
            path = ["-D", "0,1"] if what == "switchinfo" else ["-D", "0"]
            ports = ["1"] if what in ("sl2vl", "vlarb") else []
            f.out("Hca1", "smpquery", what, *path, *ports)


def combined_routes():
    """SMPs go by LID and then by directed route, and the other way round."""
    with managed() as f:
        lids = dict(re.findall(r"\"(Switch\d)\".* lid (\d+)",
                               f.out("Hca1", "ibswitches")))
        lids["Hca3"] = port_lid(f, "Hca3", "1")
        for lid, path, want in (("Switch1", "0,3", "Switch2"),
                                ("Switch2", "0,1", "Hca3"),
                                ("Switch1", "0", "Switch1")):
            said = f.out("Hca1", "smpquery", "-c", "nodedesc", lids[lid], path)
            expect(want in said, said)
        for lid, path in (("Hca3", "1"), ("Hca3", "1 3"), ("Switch1", "1 4")):
            said = f.out("Hca1", t.program("umadcheck"), "route", lids[lid],
                         *path.split())
            expect(lid in said, said)
        # adapters do not forward
        r = f.host("Hca1", t.program("umadcheck"), "no-route", lids["Hca3"],
                   "1", "2")
        expect(r.status == 1 and "no answer" in r.output, r.output, r)


def tables_of_the_administrator():
    with managed() as f:
        said = f.out("Hca3", "saquery", "-N")
        expect(said.count("NodeRecord dump") == 5, said)
        said = f.out("Hca3", "saquery", "-p", "--src-to-dst",
                     port_lid(f, "Hca3", "1") + ":" +
                     port_lid(f, "Hca1", "1"))
        expect("PathRecord dump" in said, said)
        said = f.out("Hca2", "saquery", "-s")
        with_manager, _, without = said.partition("IsSMdisabled ports")
        lids = re.findall(r"EndPortLid\.*(\d+)", with_manager)
        expect(with_manager.startswith("IsSM ports") and
               lids == [port_lid(f, "Hca1", "1")] and "dump" not in without,
               "the port with a subnet manager is not that of OpenSM: " + said)


def routes():
    with managed() as f:
        one, three = port_lid(f, "Hca1", "1"), port_lid(f, "Hca3", "1")
        said = f.out("Hca1", "ibtracert", one, three)
        expect(len(re.findall(r"^\[\d+\] -> switch", said, re.M)) == 2, said)
        lid = re.search(r"lid (\d+)", f.out("Hca1", "ibswitches")).group(1)
        said = f.out("Hca1", "ibroute", lid)
        expect(re.search(r"valid lids dumped", said), said)
        said = f.out("Hca1", "ibhosts")
        expect(said.count("Ca\t") == 3, said)
        said = f.out("Hca1", "iblinkinfo")
        expect("Active" in said, said)


def counters():
    with managed() as f:
        lid = port_lid(f, "Hca3", "1")
        before = f.out("Hca1", "perfquery", lid, "1")
        expect(re.search(r"PortRcvPkts:\.*[1-9]", before), before)
        said = f.out("Hca1", "perfquery", "-x", lid, "1")
        expect(re.search(r"PortUnicastXmitPkts:\.*[1-9]", said), said)
        f.out("Hca1", "perfquery", "-R", lid, "1")
        after = f.out("Hca1", "perfquery", lid, "1")
        count = [int(re.search(r"PortRcvPkts:\.*(\d+)", s).group(1))
                 for s in (before, after)]
        expect(count[1] < count[0], "counts %s" % count)
        said = f.host("Hca1", "ibqueryerrors")
        expect("nodes checked" in said.output, said.output, said)


def links_go_down_and_up():
    """A trap tells the subnet manager that a link is down; later the link comes
    up again."""
    with managed() as f:
        lid = switch_lid(f, "Switch2")
        f.out("Hca1", "ibportstate", lid, "1", "disable")
        said = f.out("Hca3", "ibstat", "advib0", "1")
        expect("State: Down" in said, said)
        await_line(f.log, "Generic Notice type:1 num:128")
        await_line(f.log, "SUBNET UP", 2)
        f.out("Hca1", "ibportstate", lid, "1", "enable")
        end = time.monotonic() + PATIENCE_S
        while "State: Active" not in f.out("Hca3", "ibstat", "advib0", "1"):
            expect(time.monotonic() < end, "the port stays down")
        said = f.out("Hca1", "ibportstate", lid, "1", "query")
        expect(re.search(r"LinkState:\.*Active", said), said)


def traps_are_told():
    """A second manager, a request without the M_Key and one with a wrong Q_Key
    make ports send traps 144, 256 and 258 to OpenSM."""
    options = ("m_key 0x77\nm_key_lease_period 0\n"
               "m_key_protection_level 2\n")
    with managed(options=options) as f:
        lid = port_lid(f, "Hca3", "1")
        r = f.host("Hca1", "smpquery", "-t", "100", "nodedesc", lid)
        expect_failed(r, "a port answers without its M_Key")
        await_line(f.log, "Generic Notice type:2 num:256")
        expect_ok(f.host("Hca1", t.program("umadcheck"), "qkey", lid))
        await_line(f.log, "Generic Notice type:2 num:258")
        expect("Hca3" in f.out("Hca1", "smpquery", "-y", "0x77", "nodedesc",
                               lid), "no answer")
        other = t.start([t.adverb, "run", "--fabric=" + f.socket, "--host",
                         "Hca2", "--", *manager_argv(t.path("other.log"))],
                        env=t.environment(**manager_env()))
        try:
            await_line(f.log, "Generic Notice type:4 num:144")
        finally:
            other.terminate()
            other.communicate()


def pings():
    with managed() as f:
        t.need("ibping")
        lid = port_lid(f, "Hca3", "1")
        server = t.start([t.adverb, "run", "--fabric=" + f.socket, "--host",
                          "Hca3", "--", "ibping", "-S"],
                         env=t.environment())
        try:
            end = time.monotonic() + PATIENCE_S
            while f.host("Hca1", "ibping", "-c", "1", lid).status:
                expect(time.monotonic() < end, "no server answers")
            said = f.out("Hca1", "ibping", "-c", "3", lid)
            expect("3 packets transmitted, 3 received" in said, said)
        finally:
            server.terminate()
            server.communicate()


def packets_follow_lids():
    """A host sends more packets than the fabric takes from a sender at once,
    over one switch and then over two.  The sender waits, and no packet is lost
    or out of order."""
    count = 3000
    with managed() as f:
        for host, port in (("Hca2", 2), ("Hca3", 1)):
            with receiver(f, host, port, count) as (p, lid, qpn):
                r = t.run(packets_argv(f, "Hca1", "send", 1, lid, qpn, count),
                          timeout=PATIENCE_S)
                expect_ok(r)
                said = said_by(p)
                expect("%d packets in order" % count in said, said)
            said = f.out("Hca1", "perfquery", lid, str(port))
            got = int(re.search(r"PortRcvPkts:\.*(\d+)", said).group(1))
            words = int(re.search(r"PortRcvData:\.*(\d+)", said).group(1))
            # LRH, BTH, 2000 bytes, ICRC
            expect(got >= count and words >= count * 506, said)
            expect(re.search(r"PortXmitDiscards:\.*0$", said, re.M), said)


def partitions_are_enforced():
    """OpenSM gives a partition to Hca1 and Hca3 alone.  The switch of Hca2 drops
    the partition's packets to Hca2, and the switch's port counts them."""
    with fabric() as f:
        guids = [re.search(r"Port GUID: (0x\w+)",
                           f.out(host, "ibstat", "advib0", "1")).group(1)
                 for host in ("Hca1", "Hca3")]
    partitions = t.path("partitions")
    with open(partitions, "w") as out:
        out.write("Default=0x7fff: ALL=full, SELF=full;\n"
                  "Own=0x5: %s=full, %s=limited;\n" % tuple(guids))
    with managed(NET, "Hca1", "-P", partitions) as f:
        for host, port, key in (("Hca3", 1, "0x8005"), ("Hca2", 2, "0xffff")):
            with receiver(f, host, port, 5) as (p, lid, qpn):
                for pkey in ("0x8005", key):
                    expect_ok(t.run(packets_argv(f, "Hca1", "send", 1, lid,
                                                 qpn, 5, pkey),
                                    timeout=PATIENCE_S))
                said = said_by(p)
                # Only the five packets with the other key come to Hca2.
                expect("5 packets in order" in said, said)
        said = f.out("Hca1", "perfquery", switch_lid(f, "Switch1"), "2")
        expect(re.search(r"PortXmitConstraintErrors:\.*5$", said, re.M), said)


def changes_are_told():
    with fabric() as f:
        p = t.start(packets_argv(f, "Hca3", "watch", 1), env=t.environment())
        try:
            said = p.stdout.readline().decode()
            expect(said == "state 2\n", said)
            with managed_on(f):
                seen = 0
                while seen & 7 != 7:  # state, LID, SM
                    line = p.stdout.readline().decode()
                    expect(line.startswith("changes "), line)
                    seen |= int(line.split()[1])
        finally:
            p.kill()
            p.communicate()


def captures_are_clean():
    """tshark reads the packets of OpenSM, of a query by LID and of a queue pair,
    as they are on a link, and finds nothing wrong."""
    t.need("tshark")
    capture = t.path("fabric.pcap")
    with fabric(NET, "--capture", capture) as f:
        r = t.run(fabric_argv("--socket", t.path("other"), "--capture", capture,
                              f.file))
        expect(r.status == 1 and "does not exist yet" in r.output, r.output)
        with managed_on(f):
            with receiver(f, "Hca3", 1, 20) as (p, lid, qpn):
                expect_ok(t.run(packets_argv(f, "Hca1", "send", 1, lid, qpn,
                                             20), timeout=PATIENCE_S))
                said_by(p)
            f.out("Hca1", "perfquery", lid, "1")
    bad = dissect(capture, "_ws.malformed || _ws.expert.severity >= 0x600000")
    expect(not bad, "\n".join(bad))
    every = dissect(capture, "infiniband.lrh")
    smps = dissect(capture, "infiniband.lrh.vl == 15 && "
                   "infiniband.mad.mgmtclass == 0x81 && "
                   "infiniband.bth.destqp == 0")
    expect(len(smps) > 50, "%d SMPs of %d packets" % (len(smps), len(every)))
    expect(dissect(capture, "infiniband.mad.mgmtclass == 0x04 && "
                   "infiniband.deth.q_key == 0x80010000"), "no PMA")
    sent = dissect(capture, "infiniband.bth.opcode == 0x24",
                   "infiniband.lrh.dlid", "infiniband.bth.destqp",
                   "infiniband.bth.psn", "infiniband.payload")
    expect(len(sent) == 20, "%d packets of the queue pair" % len(sent))
    words = sent[19].split("\t")
    expect(int(words[0]) == int(lid) and int(words[1], 16) == int(qpn) and
           words[2] == "19", words[:3])
    t.note("%d packets" % len(every))


def a_killed_fabric_is_noticed():
    file, socket = t.path("net"), t.path("killed-socket")
    with open(file, "w") as f:
        f.write(NET)
    killed = t.start(fabric_argv("--socket", socket, file))
    try:
        expect(b"runs at" in killed.stdout.readline(), "no fabric")
        f = Fabric.at(socket)
        with receiver(f, "Hca3", 1, 10) as (p, _, _):
            killed.kill()
            said = said_by(p)
            expect("the fabric has ended" in said and p.returncode == 1, said)
    finally:
        killed.kill()
        killed.communicate()


def a_manager_of_a_killed_fabric_says_little():
    """libibumad keeps OpenSM, whose receiver repeats each call that fails, from
    filling the disk.  umad_recv fails with EIO, at once for the first time and after
    a wait from then on."""
    file, socket = t.path("net"), t.path("dead-socket")
    with open(file, "w") as f:
        f.write(NET)
    killed = t.start(fabric_argv("--socket", socket, file))
    try:
        expect(b"runs at" in killed.stdout.readline(), "no fabric")
        f = Fabric.at(socket)
        waits = t.start([t.adverb, "run", "--fabric=" + f.socket, "--host",
                         "Hca3", "--", t.program("umadcheck"), "dead"],
                        env=t.environment())
        expect(b"open" in waits.stdout.readline(), "umadcheck opens no port")
        with managed_on(f):
            begin = time.monotonic()
            killed.kill()
            said = said_by(waits)
            expect(waits.returncode == 0 and "1 passed, 0 failed" in said, said)
            await_line(f.log, "Input/output error", 2)
            with open(f.log, errors="replace") as log:
                lines = log.read().count("Input/output error")
            passed = time.monotonic() - begin
            expect(lines <= passed + 2,
                   "%d errors in %.1f s" % (lines, passed))
    finally:
        killed.kill()
        killed.communicate()


def unusual_programs_over_libibumad():
    """A program that closes all descriptors keeps the files that it opens
    afterwards.  The descriptor of a port is never 0, 1 or 2.  A cancelled
    thread keeps no lock, and leaves no port open.  An agent may handle RMPP
    itself, and takes no requests of another agent.  A call that waits at a port
    uses no port that was opened meanwhile.  Without free descriptors calls fail
    with EMFILE.  If the kernel has no memory for a datagram, umad_send prints a
    message."""
    with fabric() as f:
        r = f.host("Hca1", t.program("umadcheck"))
        expect_ok(r)
        expect("9 passed, 0 failed" in r.output, r.output)
        expect(re.search("umad_send fails with EIO: the kernel does not take a "
                         "management datagram of 256 bytes .* free memory", r.output),
               "no message about the datagram", r)


def hosts_are_given():
    """Without --host each group of processes gets the first free adapter."""
    with fabric() as f:
        running = []
        try:
            for _ in range(3):
                p = t.start([t.adverb, "run", "--fabric=" + f.socket, "--",
                             "sh", "-c", "echo $ADVERB_FABRIC_HOST; exec "
                             "sleep %d" % system.HANG])
                running.append(p)
                name = p.stdout.readline().decode().strip()
                expect(name == "Hca%d" % len(running), name)
            r = t.adverb_run(["true"], ["--fabric=" + f.socket])
            expect(r.status == 126 and "have taken all adapters" in r.output,
                   r.output, r)
            running[1].kill()
            running[1].wait()
            r = t.adverb_run(["sh", "-c", "echo $ADVERB_FABRIC_HOST"],
                             ["--fabric=" + f.socket])
            expect("Hca2" in r.output, r.output, r)
        finally:
            for p in running:
                p.kill()
                p.communicate()
        r = t.adverb_run(["true"], ["--fabric=" + f.socket, "--host", "none"])
        expect(r.status == 126 and "no host \"none\"" in r.output, r.output)


def wrong_use_has_messages():
    r = t.run(fabric_argv("--socket", t.path("nobody"), "--stop"))
    expect(r.status == 1 and "no fabric runs at" in r.output, r.output)
    r = t.run(fabric_argv("--socket", t.path("long" * 30), "--stop"))
    expect(r.status == 1 and "name the fabric's socket by --socket" in r.output,
           r.output)
    for use in ["--show"], ["--stop"], [t.path("nobody")]:
        r = t.run(fabric_argv("--socket", "", *use))
        expect(r.status == 2 and "the path of --socket is empty" in r.output,
               r.output)
    bad = t.path("bad")
    with open(bad, "w") as f:
        f.write("Hca 2 \"H\"\n[1] \"S\"[1]\n")
    r = t.run(fabric_argv("--socket", t.path("nobody"), bad))
    expect(r.status == 1 and "bad:1: port 1 of \"H\"" in r.output, r.output)
    with fabric() as f:
        r = t.run(fabric_argv("--socket", f.socket, f.file))
        expect(r.status == 1 and "listens there; end a fabric by" in r.output, r.output)
        r = t.run(fabric_argv("--socket", f.socket, "--show"))
        expect(r.status == 0 and r.output.count("adapter ") == 3, r.output)


def file_cannot_be_read():
    r = t.run(fabric_argv("--socket", t.path("nobody"), t.tmp))
    expect(r.status == 1 and "cannot read %s: Is a directory" % t.tmp in r.output,
           r.output, r)


def socket_is_in_the_runtime_folder():
    """ADVERB_SYSFS, the folder of the synthesised tree, does not change the
    path of the fabric's socket."""
    r = t.run([t.adverb, "fabric", "--show"], ADVERB_RUNTIME=t.path("runtime"),
              ADVERB_SYSFS=t.path("else/where"))
    expect(r.status == 1 and "no fabric runs at %s;" % t.path("runtime/fabric") in
           r.output, r.output, r)


def other_listeners_are_told():
    """A program that is no fabric listens at the path, and closes each connection."""
    path = t.path("other")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        p = t.start(fabric_argv("--socket", path, "--show"))
        connection, _ = listener.accept()
        connection.close()
        r = t.finish(p, system.HANG)
    os.unlink(path)
    expect(r.status == 1 and
           "no fabric can be asked at %s: the process there has ended or has closed the "
           "connection; end the program that listens there" % path in r.output,
           r.output, r)


def is_started_again():
    """--stop returns when a new fabric can be started at the same path, which
    may be relative."""
    net = t.path("net")
    with open(net, "w") as f:
        f.write(NET)
    for path in "relative", t.path("absolute"):
        for _ in range(10):
            expect_ok(t.run(fabric_argv("--socket", path, "--background", net)))
            expect_ok(t.run(fabric_argv("--socket", path, "--stop")))
            left = os.path.exists(os.path.join(t.tmp, path))
            expect(not left, "the socket is left behind")


def heeds_no_ignored_signal():
    """A fabric goes on after a signal that its caller ignores.  --background makes
    SIGTERM end the fabric nevertheless."""
    net, path = t.path("net"), t.path("heeding")
    with open(net, "w") as f:
        f.write(NET)
    start = ["env", "--ignore-signal=INT", "--ignore-signal=TERM",
             *fabric_argv("--socket", path)]
    p = t.start([*start, net])
    wait_until(lambda: t.run(fabric_argv("--socket", path, "--show")).status == 0,
               "the fabric does not run")
    os.kill(p.pid, signal.SIGINT)
    os.kill(p.pid, signal.SIGTERM)
    expect_ok(t.run(fabric_argv("--socket", path, "--show")))
    expect_ok(t.run(fabric_argv("--socket", path, "--stop")))
    expect_ok(t.finish(p, system.HANG))
    expect_ok(t.run([*start, "--background", net]))
    os.kill(Fabric.at(path).pid(), signal.SIGTERM)
    wait_until(lambda: not os.path.exists(path), "the fabric goes on")


def is_started_without_standard_descriptors():
    """With --background the fabric keeps its socket whichever of the descriptors 0, 1
    and 2 were closed when it was started."""
    net, path = t.path("net"), t.path("closed")
    with open(net, "w") as f:
        f.write(NET)
    standard = "<&-", ">&-", "2>&-"
    for bits in range(8):
        closed = " ".join(text for fd, text in enumerate(standard)
                          if bits >> fd & 1)
        expect_ok(t.run(["sh", "-c", 'exec "$@" ' + closed, "sh",
                         *fabric_argv("--socket", path, "--background", net)]))
        r = t.run(fabric_argv("--socket", path, "--show"))
        expect(r.status == 0 and r.output.count("adapter ") == 3,
               closed + ": " + r.output)
        expect_ok(t.run(fabric_argv("--socket", path, "--stop")))


def no_background(call, sentence, words=()):
    """Returns a case: without the system call @call, adverb fabric --background says
    @sentence before it returns.  @words: a command that runs the command after it."""
    def go():
        net, path = t.path("net"), t.path("unserved")
        with open(net, "w") as f:
            f.write(NET)
        r = t.run([*words, t.program("deny_syscall"), call, "--",
                   *fabric_argv("--socket", path, "--background", net)])
        if r.status == 77:
            raise Skip("no system call can be refused here")
        expect(r.status == 1 and sentence in r.output and
               "runs at" not in r.output, r.output, r)
        expect(not os.path.exists(path), "the socket is left behind")
    return go


def without_a_fabric():
    t.need("ibstat")
    r = t.adverb_run(["ibnetdiscover"])
    expect_failed(r, "ibnetdiscover finds a subnet")
    r = t.adverb_run(["ibstat", "-l"], ADVERB_FABRIC=t.path("nobody"))
    expect("no fabric listens at" in r.output, r.output)


t.case("ibnetdiscover prints the same as on ibsim for ibsim's net examples",
       example_is_read, AREA, "ibnetdiscover", "ibsim")
t.case("ibnetdiscover prints the same as on ibsim for two switches",
       same_as_ibsim(NET, "Hca1"), AREA, "ibnetdiscover", "ibsim")
t.case("ibnetdiscover prints the same as on ibsim for its own output",
       same_as_ibsim(DISCOVERED, "H-0002c90000000100"), AREA,
       "ibnetdiscover", "ibsim")
t.case("a port is in the state Initializing before there is a manager",
       state_before_manager, AREA, "ibstat")
t.case("OpenSM makes all ports active and gives LIDs", ports_become_active,
       AREA, "opensm")
t.case("sminfo finds the manager", manager_is_found, AREA, "sminfo")
t.case("smpquery reads attributes by LID and by directed route",
       queries_by_lid, AREA, "smpquery")
t.case("SMPs go by directed route and by LID", combined_routes, AREA,
       "smpquery -c")
t.case("saquery gets tables from OpenSM", tables_of_the_administrator, AREA,
       "saquery")
t.case("ibtracert, ibroute, ibhosts and iblinkinfo show the subnet", routes,
       AREA, "ibtracert")
t.case("perfquery reads and resets counters", counters, AREA, "perfquery")
t.case("ibportstate takes a link down and up, and OpenSM reacts",
       links_go_down_and_up, AREA, "ibportstate")
t.case("OpenSM is told of wrong keys and of a new manager", traps_are_told,
       AREA, "opensm")
t.case("ibping reaches a server", pings, AREA, "ibping")
t.case("packets of programs go by LID, all and in order", packets_follow_lids)
t.case("packets of a partition stay in it", partitions_are_enforced)
t.case("tshark finds nothing wrong with captured packets", captures_are_clean)
t.case("a program is told of changes of its port", changes_are_told)
t.case("a program notices that its fabric was killed",
       a_killed_fabric_is_noticed)
t.case("OpenSM logs an error a second after its fabric was killed",
       a_manager_of_a_killed_fabric_says_little)
t.case("libibumad serves daemons, closed descriptors and cancelled threads",
       unusual_programs_over_libibumad)
t.case("each group of processes gets a host of its own", hosts_are_given)
t.case("a wrong use of adverb fabric prints a message",
       wrong_use_has_messages)
t.case("a file that cannot be read is named with the reason",
       file_cannot_be_read)
t.case("the socket is in the runtime folder", socket_is_in_the_runtime_folder)
t.case("a listener that is no fabric is told", other_listeners_are_told)
t.case("a fabric is started again as soon as it is stopped", is_started_again)
t.case("a fabric goes on after a signal that its caller ignores",
       heeds_no_ignored_signal)
t.case("a fabric in the background needs no standard descriptor",
       is_started_without_standard_descriptors)
t.case("a fabric that cannot fork says so and leaves nothing",
       no_background("fork", "cannot run in the background"))
t.case("a fabric in the background that cannot serve is told",
       no_background("signalfd", "cannot serve programs"))
# The caller ignores SIGCHLD, so that the kernel would reap the child.
t.case("a fabric in the background that a signal ends is told",
       no_background("epoll_create1=KILL", "was ended by signal 31",
                     ["env", "--ignore-signal=CHLD"]))
t.case("without a fabric there is no InfiniBand port", without_a_fabric)
t.end()
