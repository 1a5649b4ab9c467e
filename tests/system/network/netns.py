#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests perftest and the pingpongs between two network namespaces, the devices and
GID tables that programs see there, and changes of links and addresses."""

import contextlib
import os
import re
import signal
import subprocess
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
import icrc_check
from perftest_check import WITHOUT_END, check_capture, check_pingpong, check_rows
import system
from system import expect, expect_failed, expect_ok, expect_silent

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)

V4 = ("10.1.0.1/24",), ("10.1.0.2/24",)
V6 = ("fd00:1::1/64",), ("fd00:1::2/64",)
DUAL = V4[0] + V6[0], V4[1] + V6[1]


def in_lab(set_up, body):
    def go():
        lab.unwire()
        set_up()
        body()
    return go


def veth(addresses=DUAL, mtu=1500):
    return lambda: lab.wire("v0", mtu, *addresses)


def gids(side, device="adv0", **env):
    """Returns the GID table that ibv_devinfo shows, as {index: (GID, type)},
    and the Result."""
    r = lab.run(side, ["ibv_devinfo", "-v", "-d", device], **env)
    expect_ok(r)
    table = re.findall(r"GID\[\s*(\d+)\]:\s+(\S+), (.*)$", r.output, re.M)
    return {int(i): (gid, kind) for i, gid, kind in table}, r


def index_of(side, address, device="adv0", **env):
    table, r = gids(side, device, **env)
    want = "::ffff:" + address if "." in address else address
    found = [i for i, (gid, kind) in table.items()
             if gid == want and kind == "RoCE v2"]
    expect(found, "no GID of " + address, r)
    return str(found[0])


def both(argv, flag, index, to, capture=None, here=None, there=None):
    """Runs one tool at both ends, and checks the output.  @flag: the tool's option
    for @index, which is the GID index, or a pair of the server's and the client's
    index.  @to: the server's address.  @capture: a file for the server's capture,
    which is checked and removed.  @here, @there: the environment of the server
    and of the client.  Returns the Result."""
    if isinstance(index, str):
        index = index, index
    words = [*argv, "-p", "%", flag]
    env = dict(here or {})
    if capture:
        env["ADVERB_PCAP"] = capture
    r = lab.both([*words, index[0]], [*words, index[1], to], server_env=env,
                 client_env=there)
    if r.status:
        r.output += lab.losses()
    expect_ok(r)
    (check_pingpong if flag == "-g" else check_rows)(r)
    if capture:
        check_capture(t, capture, r)
        os.unlink(capture)
    return r


def case(name, set_up, body, area=None, program=None):
    t.case(name, in_lab(set_up, body), area, program)


def tool(argv, index, set_up, wire, capture=False, to="10.1.0.1"):
    """Adds a case for one command line.  @set_up: makes the links.  @wire: the text
    that stands for the links in the name of the case and in the results."""
    flag = "-g" if "pingpong" in argv[0] else "-x"
    path = t.path("frames.pcapng") if capture else None
    case("%s %s %s, %s" % (" ".join(argv), flag, index, wire), set_up,
         lambda: both(argv, flag, index, to, path), wire, argv[0])


RATES = [["ib_%s_%s" % (verb, kind), "-n", "100"]
         for verb in ("write", "read", "send", "atomic")
         for kind in ("bw", "lat")]


def each_index():
    """Adds cases: queue pairs work with each RoCEv2 entry that a GID table has
    for the addresses of v0."""
    for index, wire in (("0", "IPv6 link local over veth"),
                        ("1", "IPv4 over veth"), ("3", "IPv4 over veth"),
                        ("4", "IPv6 over veth")):
        for more in ["-n", "200"], ["-e", "-s", "100000", "-n", "50"]:
            tool(["ibv_rc_pingpong", "-c", *more], index, veth(), wire, True)
        tool(["ib_send_lat", "-e", "-n", "200",
              *(["--ipv6"] if index in "04" else [])], index, veth(), wire)
        for argv in RATES if t.options.full else RATES[:1] + RATES[-1:]:
            tool(argv + (["--ipv6"] if index in "04" else []), index, veth(),
                 wire, capture="write_bw" in argv[0])


def beside(addresses):
    """Returns a function that makes a link with these addresses, and another link
    for the tools' own TCP connections, which use IPv4."""
    def set_up():
        lab.wire("v0", 1500, *addresses)
        lab.wire("talk", 1500, ("10.9.0.1/24",), ("10.9.0.2/24",))
    return set_up


def other_services():
    for index, wire in (("0", "IPv6 link local over veth"),
                        ("1", "IPv4 over veth"), ("4", "IPv6 over veth")):
        six = ["--ipv6"] if index in "04" else []
        for service in "UC", "UD":
            for name in "ib_send_bw", "ib_send_lat":
                tool([name, "-c", service, "-n", "100", *six], index, veth(),
                     wire, name == "ib_send_lat")
        tool(["ib_write_bw", "-c", "UC", "-n", "100", *six], index, veth(),
             wire)
        for name in "uc", "ud", "srq":
            tool(["ibv_%s_pingpong" % name, "-n", "100"], index, veth(), wire)


def ttls(path):
    """Returns the TTLs, or hop limits, of the RoCEv2 frames in a capture."""
    with open(path, "rb") as capture:
        frames = icrc_check.frames_of(capture.read())
        packets = [icrc_check.ip_of(link, frame) for link, frame in frames]
    return {ip[8] if ip[0] >> 4 == 4 else ip[7]
            for ip in packets if icrc_check.roce_of(ip)}


def routable(name, index):
    """The pingpongs ask for the hop limit 1.  The kernel's drivers send packets
    that routers forward nevertheless."""
    def body():
        path = t.path("frames.pcapng")
        r = lab.both(["ibv_%s_pingpong" % name, "-p", "%", "-n", "10", "-g", index],
                     ["ibv_%s_pingpong" % name, "-p", "%", "-n", "10", "-g", index,
                      "10.1.0.1"], server_env={"ADVERB_PCAP": path})
        expect_ok(r)
        seen = ttls(path)
        os.unlink(path)
        expect(seen == {64}, "the TTLs are %s" % seen, r)
    case("ibv_%s_pingpong -g %s sends packets that routers forward" % (name, index),
         veth(), body, "network namespaces", "ibv_%s_pingpong" % name)


def only_one_family():
    """Adds cases for a device without an IPv4 address."""
    def body(argv, index):
        only = {"ADVERB_DEVICES": "v0"}
        return lambda: both(argv, "-g", index, "10.9.0.1",
                            t.path("frames.pcapng"), only, only)

    argv = ["ibv_rc_pingpong", "-c"]
    for addresses, index, wire in ((V6, "1", "IPv6 over veth"),
                                   (((), ()), "0",
                                    "IPv6 link local over veth")):
        case("%s -g %s, nothing but %s" % (" ".join(argv), index, wire),
             beside(addresses), body(argv, index), wire, argv[0])


def of_mtu(mtu, active):
    """Adds cases for a link of MTU @mtu, with which the device has the path MTU
    @active."""
    def shows():
        _, r = gids("here")
        expect(re.search(r"active_mtu:\s+%d " % active, r.output),
               "active_mtu is not %d" % active, r)

    case("active_mtu is %d at MTU %d" % (active, mtu), veth(mtu=mtu), shows)
    for index, wire in ("1", "IPv4 over veth"), ("4", "IPv6 over veth"):
        six = ["--ipv6"] if index == "4" else []
        for name in "ib_write_bw", "ib_read_bw", "ib_send_bw":
            tool([name, "-m", str(active), "-s", "100000", "-n", "50", *six],
                 index, veth(mtu=mtu), "%s, MTU %d" % (wire, mtu), True)


def unsummed():
    """Has the kernel compute the UDP checksums of the link's packets.  Up to
    Linux 6.10 the kernel then does no UDP segmentation (GSO) for that link.
    Then runs ib_write_bw over IPv4 and over IPv6."""
    t.need("ethtool")
    for side in netlab.SIDES:
        subprocess.run(lab.into(side, ["ethtool", "-K", "v0", "tx", "off"]),
                       check=True, stdout=subprocess.DEVNULL)
    for index in "1", "4":
        six = ["--ipv6"] if index == "4" else []
        both(["ib_write_bw", "-n", "200", *six], "-x", index, "10.1.0.1")


def two_links():
    lab.wire("v0", 1500, *DUAL)
    lab.wire("v1", 9000, ("10.2.0.1/24", "fd00:2::1/64"),
             ("10.2.0.2/24", "fd00:2::2/64"))


def several_devices():
    for device, to in ("adv0", "10.1.0.1"), ("adv1", "10.2.0.1"):
        for name, index in (("ib_write_bw", "1"), ("ib_send_lat", "3")):
            tool([name, "-d", device, "-n", "100"], index, two_links,
                 "two devices", to=to)
        for index in "0", "1", "4":
            tool(["ibv_rc_pingpong", "-c", "-d", device], index, two_links,
                 "two devices", to=to)

    def far_between():
        """Two devices have no GID in common, and only adv0 has GIDs of
        loopback."""
        table0, _ = gids("here", "adv0")
        table1, r = gids("here", "adv1")
        seen = [gid for gid, _ in table1.values()]
        expect("::ffff:10.2.0.1" in seen and "::ffff:10.1.0.1" not in seen,
               "the GIDs of adv1 are not the addresses of v1", r)
        expect("::ffff:127.0.0.1" in [gid for gid, _ in table0.values()],
               "adv0 has no GID for loopback", r)
        expect(not {gid for gid, _ in table0.values()} & set(seen),
               "a GID is in two tables", r)

    def same_link_local():
        """Both interfaces of a side have one MAC address, and so the same
        link-local address."""
        lab.wire("v0", 1500, *V4)
        lab.wire("v1", 1500, ("10.2.0.1/24",), ("10.2.0.2/24",))
        for side, last in ("here", "1"), ("there", "2"):
            for name in "v0", "v1":
                lab.ip(side, "link set %s down" % name)
                lab.ip(side, "link set %s address 02:00:00:00:00:0%s" %
                       (name, last))
                lab.ip(side, "link set %s up" % name)
        for side in "here", "there":
            for name in "v0", "v1":
                lab.wait(lambda: lab.link_local(side, name),
                         "%s gets no link-local address" % name)

    def frames(name):
        with open("/proc/net/dev") as f:
            return next(int(line.split()[2]) for line in f
                        if line.strip().startswith(name + ":"))

    def by_its_own_link():
        for device, link, other in ("adv0", "v0", "v1"), \
                ("adv1", "v1", "v0"):
            before = frames(link), frames(other)
            # The tool's TCP connection uses the other link's IPv4 address.
            both(["ibv_rc_pingpong", "-c", "-d", device, "-n", "500"], "-g",
                 "0", "10.1.0.1" if other == "v0" else "10.2.0.1")
            expect(frames(link) - before[0] > 500 >
                   frames(other) - before[1],
                   "frames of %s have come by %s" % (device, other))

    def one_group():
        """A group is joined on the interface of each device that has a member,
        not only on that of the first device."""
        for group, name in ("::ffff:239.7.7.8", "239.7.7.8"), \
                ("ff0e::708", "ff0e::708"):
            p = lab.start("here", [t.program("two_groups"), group])
            line = p.stdout.readline().decode()
            joined = {link: lab.ip("here", "maddress show dev " + link).split()
                      for link in ("v0", "v1")}
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            expect(line == "attached\n", "not attached: " + line)
            for link, groups in joined.items():
                expect(name in groups, "%s is not joined on %s" % (name, link))

    case("a group is joined on the interfaces of two devices", two_links, one_group,
         "two devices")
    case("a device with the link-local address of another uses its own link",
         same_link_local, by_its_own_link, "two devices", "ibv_rc_pingpong")
    case("two devices share no GID", two_links, far_between)


def loopback_tail():
    def go(address, six):
        def body():
            index = index_of("here", address)
            words = ["ib_write_bw", "-n", "100", "-x", index, "-p", "%"] + \
                (["--ipv6"] if six else [])
            r = lab.both(words, [*words, "127.0.0.1"], client_side="here")
            expect_ok(r)
            check_rows(r)
        return body

    case("ib_write_bw on one machine by 127.0.0.1", veth(),
         go("127.0.0.1", False), "one machine, IPv4", "ib_write_bw")
    case("ib_write_bw on one machine by ::1", veth(), go("::1", True),
         "one machine, IPv6", "ib_write_bw")


def has_table(device, want, **env):
    """Expects that the first entries of the GID table are @want, pairs of address
    and type.  Returns the table and the Result, as gids() does."""
    table, r = gids("here", device, **env)
    for index, entry in enumerate(want):
        expect(table.get(index) == entry,
               "entry %d is %s" % (index, table.get(index)), r)
    return table, r


def netdevs(**env):
    """Returns the names that ibv_devices lists, and the Result."""
    r = lab.run("here", ["ibv_devices"], **env)
    expect_ok(r)
    return re.findall(r"^\s+(adv\d)\s", r.output, re.M), r


V1, V2 = "RoCE v1", "RoCE v2"


def nothing_but_lo():
    lo = "::ffff:127.0.0.1"
    has_table("adv0", [("fe80:0000:0000:0000:0200:00ff:fe00:0001", V1),
                       (lo, V2),
                       ("0000:0000:0000:0000:0000:ffff:7f00:0001", V1),
                       (lo, V2), ("::1", V2)])


def with_a_bridge():
    lab.wire("v0", 1500, *DUAL)
    lab.ip("here", "link add stack type bridge")
    lab.ip("here", "link add port type veth peer name inside")
    lab.ip("here", "link set port master stack up")
    for name, address in (("stack", "172.30.0.1/24"),
                          ("port", "172.30.1.1/24")):
        lab.ip("here", "address add %s dev %s" % (address, name))
        lab.ip("here", "link set %s up" % name)


def leaves_bridges_out():
    names, r = netdevs()
    expect(names == ["adv0"], "a bridge or its port is a device", r)
    table, r = gids("here")
    expect(table[1][0] == "::ffff:10.1.0.1", "adv0 is not v0", r)
    expect("::ffff:172.30.0.1" in [gid for gid, _ in table.values()],
           "the bridge's address is not in adv0's GID table", r)


def a_bridge_to_others():
    """Sets up a bridge that has the host's own address, as on a host of virtual
    machines."""
    lab.ip("here", "link add stack type bridge")
    lab.ip("here", "link add port type veth peer name port netns %d" %
           lab.there.pid)
    lab.ip("here", "link set port master stack up")
    lab.ip("there", "link set port up")
    lab.ip("here", "address add 10.1.0.1/24 dev stack")
    lab.ip("here", "link set stack up")
    lab.ip("there", "address add 10.1.0.2/24 dev port")
    lab.wait(lambda: "LOWER_UP" in lab.ip("here", "link show stack"),
             "the bridge has no carrier")


def takes_the_bridge():
    table, r = gids("here")
    expect(table[1][0] == "::ffff:10.1.0.1", "adv0 is not the bridge", r)
    words = ["ibv_rc_pingpong", "-g", "1", "-p", "%", "-n", "10"]
    expect_ok(lab.both(words, [*words, "10.1.0.1"]))


def says_loopback():
    """The server's device is that of lo.  A message says that the peer, which
    is in the other namespace, cannot reach the device's address."""
    words = ["ibv_rc_pingpong", "-g", "1", "-p", "%", "-n", "10"]
    pair = lab.begin(words, [*words, "10.1.0.1"],
                     server_env={"ADVERB_DEVICES": "lo",
                                 "ADVERB_STRICT": "1"},
                     client_env={"ADVERB_STRICT": "1"})
    os.set_blocking(pair[0].stdout.fileno(), False)
    said = b""

    def told():
        nonlocal said
        said += pair[0].stdout.read() or b""
        return re.search(rb"127\.0\.0\.1.*which only this machine can reach.*peer "
                         rb"is 10\.1\.0\.2", said)
    try:
        lab.wait(lambda: told() or pair[0].poll() is not None,
                 "the server neither prints the message nor ends")
        expect(told(), "no message says that the peer cannot reach the address",
               system.Result(0, said.decode()))
    finally:
        for p in pair:
            p.kill()
            t.finish(p, 10)


def names_override():
    env = {"ADVERB_DEVICES": "stack,v0"}
    names, r = netdevs(**env)
    expect(names == ["adv0", "adv1"], "not two devices", r)
    table, r = gids("here", "adv0", **env)
    expect(table[1][0] == "::ffff:172.30.0.1", "adv0 is not the bridge", r)
    table, r = gids("here", "adv1", **env)
    expect(table[1][0] == "::ffff:10.1.0.1", "adv1 is not v0", r)
    r = lab.run("here", ["ibv_devices"], ADVERB_DEVICES="none")
    expect("adverb: no interface is named" in r.output,
           "no message says that no interface is named", r)
    r = lab.run("here", ["ibv_devices"], ADVERB_DEVICES="v0,,v00,stack")
    expect("adverb: v00 of ADVERB_DEVICES becomes no device: there" in r.output,
           "no message says that v00 becomes no device", r)
    r = lab.run("here", ["ibv_devices"], ADVERB_DEVICES="v0,,stack,")
    expect_silent(r)


def a_default_route_decides():
    two_links()
    for family, via in (("-4", "10.2.0.2"), ("-6", "fd00:2::2")):
        lab.ip("here", "%s route add default via %s" % (family, via))


def default_route():
    names, r = netdevs()
    expect(names == ["adv0"], "not one device", r)
    table, r = gids("here")
    expect(table[1][0] == "::ffff:10.2.0.1", "adv0 is not v1", r)
    expect("::ffff:10.1.0.1" in [gid for gid, _ in table.values()],
           "v0's address is not in adv0's GID table", r)


def refuses_roce_v1():
    words = ["ibv_rc_pingpong", "-g", "2", "-p", "%"]
    r = lab.both(words, [*words, "10.1.0.1"])
    expect_failed(r, "the pingpong succeeds with a RoCE v1 entry")
    expect(re.search(r"adverb: .*RoCE v1", r.output),
           "no message is about RoCE v1", r)


def shapes():
    case("nothing but lo: lo is the device", lambda: None, nothing_but_lo,
         "devices", "ibv_devinfo")
    case("bridges and their ports are no devices", with_a_bridge,
         leaves_bridges_out)
    case("a bridge that is all there is comes before lo", a_bridge_to_others,
         takes_the_bridge)
    case("a message says that a peer elsewhere cannot reach a loopback GID",
         lambda: lab.wire("v0", 1500, *DUAL), says_loopback)
    case("ADVERB_DEVICES names the devices in its order", with_a_bridge,
         names_override)
    case("the interface of the default route is the device", a_default_route_decides,
         default_route)
    case("a RoCE v1 entry is refused with a message", veth(), refuses_roce_v1)


class Watch:
    """A running ibv_asyncwatch, whose output is read as it comes."""

    def __init__(self):
        t.need("ibv_asyncwatch")
        t.need("stdbuf")
        self.p = lab.start("here", ["stdbuf", "-oL", "ibv_asyncwatch"])
        os.set_blocking(self.p.stdout.fileno(), False)
        self.text = ""
        self.wait_for("async event FD")

    def wait_for(self, pattern):
        """Waits until the output matches @pattern, and drops the output up to
        the end of the match."""
        def come():
            self.text += (self.p.stdout.read() or b"").decode()
            return re.search(pattern, self.text) or self.p.poll() is not None
        try:
            lab.wait(come, "ibv_asyncwatch does not print " + pattern)
        except system.Fail as why:
            why.output = self.text
            raise
        found = re.search(pattern, self.text)
        expect(found, "ibv_asyncwatch ended: " + self.text)
        self.text = self.text[found.end():]

    def end(self):
        self.p.kill()
        self.p.communicate()


def watched(body):
    def go():
        watch = Watch()
        try:
            body(watch)
        finally:
            watch.end()
    return go


def sees_addresses(watch):
    lab.ip("here", "address add 10.1.0.77/24 dev v0")
    watch.wait_for("IBV_EVENT_GID_CHANGE.*port 1")
    lab.ip("here", "address del 10.1.0.77/24 dev v0")
    watch.wait_for("IBV_EVENT_GID_CHANGE.*port 1")


def tree_says(name):
    """Returns the text of a file of adv0 in the synthesised /sys tree of this
    namespace."""
    path = os.path.join(
        t.runtime, "adverb-%d" % os.geteuid(),
        "sysfs-%d" % os.stat("/proc/self/ns/net").st_ino,
        "class/infiniband/adv0", name)
    with open(path) as f:
        return f.read().strip()


def sees_the_link(watch):
    expect(tree_says("ports/1/state") == "4: ACTIVE", "the tree says down")
    lab.ip("there", "link set v0 down")
    watch.wait_for("IBV_EVENT_PORT_ERR.*port 1")
    lab.wait(lambda: tree_says("ports/1/state") == "1: DOWN",
             "the tree still says up")
    lab.ip("there", "link set v0 up")
    watch.wait_for("IBV_EVENT_PORT_ACTIVE.*port 1")
    lab.ip("here", "link del v0")
    watch.wait_for("IBV_EVENT_PORT_ERR.*port 1")


@contextlib.contextmanager
def transfer():
    """Runs ib_write_bw from `there` to `here` without end.  Yields a function that
    expects that the transfer goes on.  A lost packet is sent again after a second, and
    the queue pair fails if that is in vain for eight seconds."""
    words = ["ib_write_bw", *WITHOUT_END, "-u", "18", "-x", "1", "-p", "%"]
    both = lab.begin(words, [*words, "10.1.0.1"])
    try:
        t.goes_on(words[0], *both)
        yield lambda: t.goes_on(words[0], *both)
    finally:
        for p in both:
            os.killpg(p.pid, signal.SIGKILL)
            t.finish(p, 5)


def readdressed():
    """When an address is removed and added again at once, packets may be lost, but
    no queue pair fails."""
    batch = "address del 10.1.0.1/24 dev v0\n" \
            "address add 10.1.0.1/24 dev v0\n"
    with transfer() as goes_on:
        for _ in range(20):
            lab.batch("here", batch)
        goes_on()


def downed():
    """When a link goes down and up, packets are lost, but no queue pair fails.
    """
    with transfer() as goes_on:
        for _ in range(5):
            for state in "down", "up":
                lab.ip("here", "link set v0 " + state)
            goes_on()


def joined(watch):
    """An interface appears while programs run.  A running program gets the
    event IBV_EVENT_GID_CHANGE, because the GID table of the first device has
    the new address.  Programs that start later see the interface as a device of
    its own."""
    with transfer() as goes_on:
        lab.wire("v1", 1500, ("10.2.0.1/24",), ("10.2.0.2/24",))
        watch.wait_for("IBV_EVENT_GID_CHANGE.*port 1")
        names, r = netdevs()
        expect(names == ["adv0", "adv1"], "not two devices", r)
        goes_on()


def changes():
    case("ib_write_bw succeeds while its link goes down and up", veth(), downed,
         "IPv4 over veth", "ib_write_bw")
    case("programs see an interface that comes while they run", veth(),
         watched(joined))
    case("addresses that come and go are events", veth(),
         watched(sees_addresses), "devices", "ibv_asyncwatch")
    case("a link that goes down, up and away is an event", veth(),
         watched(sees_the_link), "devices", "ibv_asyncwatch")
    case("ib_write_bw succeeds while its address goes and comes back", veth(),
         readdressed, "IPv4 over veth", "ib_write_bw")


each_index()
other_services()
for kind in "rc", "ud":
    for number in "3", "4":
        routable(kind, number)
only_one_family()
of_mtu(1500, 1024)
of_mtu(9000, 4096)
case("ib_write_bw succeeds over links that compute no checksums", veth(), unsummed)
several_devices()
loopback_tail()
shapes()
changes()
lab.end()
t.end()
