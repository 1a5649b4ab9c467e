# SPDX-License-Identifier: BSD-2-Clause
"""The measurements: one Step is one program, or one pair of programs, at one
size.

A step's key is SERIES/SIZE.  SIZE is a number of bytes, except for cmtime,
tcp_connect and connects (the number of connections) and for a sweep (the number
of nodes).  Step.run returns a dictionary of figures:
    GBps   10^9 bytes of payload a second
    Mps    million messages a second
    us     microseconds.  Ping-pongs: half a round trip; qps: CPU time of one
           operation; cmtime, tcp_connect and connects: one connection;
           registration: one registration and its end; relay, and a packet or a
           hop of a subnet: CPU time of the forwarding process.  In a ping-pong
           the median of a run; the mean if the program prints no median
    mean_us  the mean of perftest's ping-pongs, and of the programs that print no
           median and are compared with perftest in a goal
    cpu    CPU seconds for 10^9 bytes, client and server, with the time of the
           start and the time and the bytes of a warm-up
    MiB    resident memory
    s      seconds (sweep: until OpenSM has configured the subnet)
    ratio  qps: of the time with many queue pairs to the time with one; crc: of
           the speed to ISA-L's; registration: of the time to that of mmap and
           munmap
"""

import contextlib
import json
import os
import re
import tempfile

import proc
import subnet
from proc import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
LOCAL = "127.0.0.1"
KIB, MIB = 1024, 1024 * 1024
BW_SIZES = [8, 64, 512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 16 * MIB]
LAT_SIZES = [2] + BW_SIZES
REGISTERED = [4 * KIB, MIB, 1024 * MIB]
QUICK = [2, 8, 64 * KIB, MIB]
CRC_SIZES = [64, 256, KIB, 4 * KIB, 64 * KIB, MIB]


def is_of_adverb(key):
    """Does the step of this key run code of adverb?"""
    return re.split("[ /@]", key)[0] in (
        "adverb", "direct", "mapped", "iwarp", "subnet", "with", "without",
        "crc32", "crc32c")


class Step:
    def __init__(self, series, size, run, needs=()):
        self.series, self.size, self.run, self.needs = series, size, run, needs
        self.key = "%s/%d" % (series, size)

    def missing(self):
        """Returns the program that this machine lacks, or None."""
        for program in self.needs:
            if not proc.find(program):
                return program
        return None


class Where:
    """The address and the network namespaces of a step's two programs."""

    def __init__(self, name="lo", client=(), server=(), address=LOCAL,
                 raw=(), device="", hosts=((), ())):
        self.name = name            # part of the series' name
        self.client = list(client)  # words before the client's command
        self.server = list(server)  # words before the server's command
        self.address = address
        self.raw = list(raw)        # options of the raw programs
        self.hosts = hosts          # the client's and the server's options of
                                    # `adverb run`, on hosts of a subnet
        self.env = {"ADVERB_DIRECT": "0"}
        if device:
            # Without this variable perftest takes the first device, mostly
            # an Ethernet interface's, and its path MTU.
            self.env["ADVERB_DEVICES"] = device

    def series(self, name):
        return name if self.name == "lo" else "%s@%s" % (name, self.name)


LO = Where(device="lo")
DIRECT = {"ADVERB_DIRECT": "1"}
MAPPED_BYTES = 64 * MIB
HOPS = 4
IWARP = {"ADVERB_DEVICES": "iwarp"}
NO_CRC = {**IWARP, "ADVERB_MPA": "nocrc"}


@contextlib.contextmanager
def mapped():
    """Yields the server's and the client's options for buffers in files, which
    the peer may map."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as one, \
            tempfile.NamedTemporaryFile(dir="/dev/shm") as two:
        for file in one, two:
            file.truncate(MAPPED_BYTES)
        yield ["--mmap=" + one.name], ["--mmap=" + two.name]


@contextlib.contextmanager
def malloced():
    """Yields no options: perftest allocates the buffers."""
    yield [], []


def stream_count(size):
    """Returns the number of messages of a stream.  With -l 64 perftest posts
    lists of 64 requests, so a number above 64 is a multiple of 64."""
    count = max(32, min(100000, 512 * MIB // size))
    return count - (count % 64 if count > 64 else 0)


class StepMaker:
    """Makes steps.  @adverb: the path of the command adverb; @inside: words that,
    before this command, make it run in a network namespace."""

    def __init__(self, adverb, inside=()):
        self.adverb = [*inside, adverb]
        self.raw = HERE

    def prefix(self, options=()):
        return self.adverb + ["run", *options, "--"]

    # -- the raw limits -----------------------------------------------------

    def raw_step(self, series, program, size, *options, where=LO):
        def run():
            argv = where.client + [
                os.path.join(self.raw, program), "-s", str(size),
                *options, *where.raw]
            text, cpu = proc.run_program(argv)
            said = json.loads(text)
            figures = {name: said[name] for name in ("us", "GBps", "Mps")
                       if name in said}
            if "messages" in said:
                if not said["messages"]:
                    raise Failed("%s has received no message; see whether a "
                                 "firewall drops its packets" % program)
                figures["cpu"] = cpu * 1e9 / (said["messages"] * size)
            return figures
        return Step(where.series(series), size, run)

    def crc(self, series, size, *options):
        """The speed of adverb's CRC, and, if ISA-L is installed, its ratio to
        ISA-L's."""
        def run():
            said = json.loads(proc.run_program([
                os.path.join(self.raw, "crc"), "-s", str(size), *options])[0])
            return {name: said[name] for name in ("GBps", "ratio")
                    if name in said}
        return Step(series, size, run)

    def raw_pingpong(self, series, program, size, *options, where=LO):
        rounds = max(20, min(5000, 64 * MIB // size))
        return self.raw_step(series, program, size, "-n", str(rounds),
                             *options, where=where)

    # -- adverb: perftest, unmodified ---------------------------------------

    def perftest(self, program, size, count, options, where, one_core=False,
                 env=None, memory=malloced):
        port = proc.free_port()
        argv = [program, "-F", "-s", str(size), "-n", str(count), "-p",
                str(port), *options]
        there, here = map(self.prefix, where.hosts[::-1])
        with memory() as (server, client):
            text, cpu = proc.pair(where.server + there + argv + server,
                                  where.client + here + argv + client +
                                  [where.address], port,
                                  env={**where.env, **(env or {})},
                                  one_core=one_core)
        for line in text.splitlines():
            words = line.split()
            if len(words) >= 5 and words[0] == str(size):
                return [float(word) for word in words], cpu
        raise Failed("%s: no figure: %s" % (program, proc.last_line(text)))

    def bandwidth(self, series, program, size, *options, where=LO, env=None,
                  memory=malloced):
        def run():
            count = stream_count(size)
            depth = min(128, count)
            row, cpu = self.perftest(program, size, count,
                                     ["-t", str(depth), *options], where,
                                     env=env, memory=memory)
            return {"GBps": row[3] * MIB / 1e9, "Mps": row[4],
                    "cpu": cpu * 1e9 / (size * count)}
        return Step(where.series(series), size, run, [program])

    def latency(self, series, program, size, *options, where=LO,
                one_core=False, env=None, memory=malloced):
        def run():
            count = max(20, min(5000, 64 * MIB // size))
            row, _ = self.perftest(program, size, count, options, where,
                                   one_core, env, memory)
            return {"us": row[4], "mean_us": row[5]}
        return Step(where.series(series), size, run, [program])

    # -- hosts of an emulated subnet ----------------------------------------

    def between(self, net, server):
        """Returns a Where whose client is the host NEAR of a chain of switches,
        and whose server is the host @server."""
        return Where(hosts=(net.options(subnet.NEAR), net.options(server)))

    def on_subnet(self, series, program, size, *options, env=None):
        """The bandwidth between two hosts at one switch, by LID.  The CPU time of
        the fabric counts."""
        def run():
            with subnet.managed(self.adverb, subnet.chain(1),
                                subnet.FAR) as net:
                began = net.cpu_us()
                figures = self.bandwidth(
                    series, program, size, *options,
                    where=self.between(net, subnet.NEXT), env=env).run()
                figures["cpu"] += (net.cpu_us() - began) * 1e3 / (
                    size * stream_count(size))
                return figures
        return Step(series, size, run, ["opensm", program])

    def packet_us(self, net, server, size, env=None):
        """Returns the microseconds of CPU time that the fabric uses for each
        packet of a stream, with the time for the packets that come back."""
        began, count = net.cpu_us(), 20000
        self.perftest("ib_write_bw", size, count, ["-m", "4096"],
                      self.between(net, server), env=env)
        return (net.cpu_us() - began) / count

    def forwarded(self, series, size, env=None):
        """The CPU time of the fabric for a packet that crosses one switch."""
        def run():
            with subnet.managed(self.adverb, subnet.chain(1),
                                subnet.FAR) as net:
                return {"us": self.packet_us(net, subnet.NEXT, size, env)}
        return Step(series, size, run, ["opensm", "ib_write_bw"])

    def hop(self, series, size):
        """The CPU time of the fabric for a further switch: a packet crosses HOPS
        switches more on its way to FAR than on its way to NEXT."""
        def run():
            ways = {subnet.NEXT: [], subnet.FAR: []}
            with subnet.managed(self.adverb, subnet.chain(1 + HOPS),
                                subnet.FAR) as net:
                for server in list(ways) * 3:
                    ways[server].append(self.packet_us(net, server, size))
            near, far = (sorted(times)[1] for times in ways.values())
            return {"us": (far - near) / HOPS}
        return Step(series, size, run, ["opensm", "ib_write_bw"])

    def qps(self, series, count):
        def run():
            text, _ = proc.run_program(self.prefix() + [
                os.path.join(self.raw, "qps"), str(count)], LO.env)
            said = json.loads(text)
            return {"us": said["us_many"], "s": said["seconds"],
                    "MiB": said["rss_mib"], "ratio": said["ratio"]}
        return Step(series, 8, run)

    def senders(self, series, operation, size, count, *options, env):
        """@count processes that send to one passive process."""
        return self.many(series, env, operation, size, count, "-P", *options)

    def threads(self, path, env, operation, size, count, kind, *options):
        """@count threads, or processes, with objects of their own."""
        return self.many("%s %s %d %s" % (path, operation, count, kind), env,
                         operation, size, count, *options)

    def many(self, series, env, operation, size, count, *options):
        def run():
            text, _ = proc.run_program(self.prefix() + [
                os.path.join(self.raw, "threads"), "-o", operation, "-s",
                str(size), *options, str(count)], env,
                on=os.sched_getaffinity(0))
            said = json.loads(text)
            return {"Mps": said["Mps"], "GBps": said["GBps"]}
        return Step(series, size, run)

    def cmtime(self, series, count):
        """The time of a connection when @count are requested at once, each
        with its queue pair."""
        def run():
            text, _ = proc.run_program(self.adverb + [
                "pair", "--", "cmtime", "-c", str(count)])
            said = re.search(r"connect\s*:.*\s([0-9.]+)$", text, re.M)
            if not said:
                raise Failed("cmtime: " + proc.last_line(text))
            return {"us": float(said[1])}
        return Step(series, count, run, ["cmtime"])

    def connects(self, series, count, threads, env=None):
        """The time of a connection when @threads threads of one process request
        @count at once."""
        def run():
            text, _ = proc.run_program(self.prefix() + [
                os.path.join(self.raw, "connects"), "-t", str(threads),
                str(count)], env or LO.env)
            said = json.loads(text)
            return {"us": said["us"], "s": said["seconds"]}
        return Step(series, count, run)

    def registration(self, series, size):
        """The time of ibv_reg_mr and ibv_dereg_mr, and its ratio to the time of
        mmap and munmap of as many bytes."""
        def run():
            text, _ = proc.run_program(self.prefix() + [
                os.path.join(self.raw, "registration"), "-n", "500", "-s",
                str(size)], DIRECT)
            said = json.loads(text)
            us = said["reg_us"] + said["dereg_us"]
            return {"us": us,
                    "ratio": us / (said["map_us"] + said["unmap_us"])}
        return Step(series, size, run)

    # -- the programs that adverb is compared with ---------------------------

    def qperf(self, series, test, size):
        def run():
            port = proc.free_port()
            common = ["qperf", "-lp", str(port)]
            text, _ = proc.pair(common, common + [
                LOCAL, "-t", "1", "-m", str(size), test], port, stays=True)
            said = re.search(r"(bw|latency)\s*=\s*([0-9.]+) (\S+)", text)
            if not said:
                raise Failed("qperf: " + proc.last_line(text))
            value = float(said[2]) * {
                "GB/sec": 1, "MB/sec": 1e-3, "KB/sec": 1e-6, "bytes/sec": 1e-9,
                "ns": 1e-3, "us": 1, "ms": 1e3, "sec": 1e6}[said[3]]
            if said[1] == "latency":
                return {"us": value}
            return {"GBps": value, "Mps": value * 1e3 / size}
        return Step(series, size, run, ["qperf"])

    def iperf3(self, series, size):
        def run():
            port = str(proc.free_port())
            text, cpu = proc.pair(
                ["iperf3", "-s", "-1", "-p", port],
                ["iperf3", "-c", LOCAL, "-p", port, "-t", "1", "-l", str(size),
                 "-J"], int(port))
            total = json.loads(text)["end"]["sum_received"]
            speed = total["bits_per_second"] / 8e9
            return {"GBps": speed, "Mps": speed * 1e3 / size,
                    "cpu": cpu * 1e9 / total["bytes"]}
        return Step(series, size, run, ["iperf3"])

    def ucx(self, series, test, size, over="tcp", *options):
        def run():
            port = str(proc.free_port())
            bits = 256 * MIB if test.endswith("_bw") else 64 * MIB
            count = max(20, min(50000, bits // size))
            # If -w is above 1, ucx_perftest may send more messages before the
            # measurement than -w says, and the CPU time of a byte is unknown.
            warm = 1 if test.endswith("_bw") else 20
            common = ["ucx_perftest", "-p", port, *options]
            text, cpu = proc.pair(
                common, common + ["-t", test, "-s", str(size), "-n",
                                  str(count), "-w", str(warm), "-f",
                                  LOCAL],
                int(port), env={"UCX_TLS": over, "UCX_NET_DEVICES": "lo",
                                "UCX_LOG_LEVEL": "error"}
                if over == "tcp" else {"UCX_TLS": over,
                                       "UCX_LOG_LEVEL": "error"})
            row = proc.last_line(text).split()
            if len(row) < 8:
                raise Failed("ucx_perftest: " + " ".join(row))
            if test.endswith("_lat"):
                return {"us": float(row[1])}
            return {"GBps": float(row[5]) * MIB / 1e9,
                    "Mps": float(row[7]) / 1e6,
                    "cpu": cpu * 1e9 / (size * (count + warm))}
        return Step(series, size, run, ["ucx_perftest"])

    def fabric(self, series, provider, endpoint, size):
        def run():
            port = str(proc.free_port())
            count = str(max(20, min(5000, 64 * MIB // size)))
            common = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I",
                      count, "-S", str(size)]
            text, _ = proc.pair(common + ["-B", port],
                                common + ["-P", port, LOCAL], int(port),
                                seconds=20)
            mean = float(proc.last_line(text).split()[6])
            return {"us": mean, "mean_us": mean}
        return Step(series, size, run, ["fi_pingpong"])

    def vader(self, series, size, window):
        """Open MPI over its own shared memory.  If @window is 0, the step
        measures a ping-pong; otherwise it measures a stream with @window
        messages outstanding."""
        program = os.path.join(self.raw, "mpi_pingpong")

        def run():
            count = max(20, min(50000, (64 if window else 32) * MIB // size))
            rounds = max(5, count // window) if window else count
            # mpirun does not run as root without these variables
            text, cpu = proc.run_program(
                ["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none",
                 "--mca", "pml", "ob1", "--mca", "btl", "vader,self", program,
                 "-s", str(size), "-n", str(rounds), "-w", str(window)],
                {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}, seconds=60)
            said = json.loads(proc.last_line(text))
            if "us" in said:
                said["mean_us"] = said["us"]
            if "sent" in said:
                said["cpu"] = cpu * 1e9 / (said.pop("sent") * size)
            return said
        return Step(series, size, run, ["mpirun", program])


UCT_POSIX = "-d", "memory", "-x", "posix"  # UCT alone, without UCP's protocols


def curves(m, quick):
    """The steps that make curves over the size."""
    def sizes(all_of_them, most=16 * MIB, least=1):
        return [s for s in all_of_them if least <= s <= most and
                (not quick or s in QUICK)]
    for s in sizes(BW_SIZES):
        yield m.bandwidth("adverb write", "ib_write_bw", s)
        yield m.raw_step("udp shaped", "udp_stream", s)
        yield m.bandwidth("adverb read", "ib_read_bw", s)
        yield m.bandwidth("adverb send", "ib_send_bw", s)
        yield m.raw_step("tcp write", "tcp_stream", s)
        yield m.qperf("qperf tcp_bw", "tcp_bw", s)
        if 4 * KIB <= s <= MIB:
            yield m.iperf3("iperf3 tcp", s)
        yield m.ucx("ucx tcp tag_bw", "tag_bw", s)
    for s in sizes(LAT_SIZES):
        if s == 8:
            continue
        yield m.latency("adverb send_lat", "ib_send_lat", s)
        if s < 64 * KIB:
            yield m.raw_pingpong("udp polled", "udp_pingpong", s)
        yield m.latency("adverb write_lat", "ib_write_lat", s)
        yield m.latency("adverb read_lat", "ib_read_lat", s)
        yield m.raw_pingpong("tcp polled", "tcp_pingpong", s)
        yield m.qperf("qperf tcp_lat", "tcp_lat", s)
        yield m.ucx("ucx tcp tag_lat", "tag_lat", s)
        yield m.fabric("libfabric tcp", "tcp", "msg", s)
        if s <= KIB:
            yield m.fabric("libfabric udp", "udp", "dgram", s)


def same_host(m, quick):
    """The curves of adverb without packets, and of other programs over shared
    memory.  Steps that a goal compares follow each other, because the speed of
    a machine changes within minutes."""
    for s in BW_SIZES:
        if quick and s not in QUICK:
            continue
        yield m.ucx("ucx cma tag_bw", "tag_bw", s, "posix,cma")
        if s == 8:
            yield m.bandwidth("direct send batches", "ib_send_bw", s, "-l",
                              "64", env=DIRECT)
        yield m.bandwidth("direct write", "ib_write_bw", s, env=DIRECT)
        yield m.raw_step("process_vm", "vm_copy", s)
        yield m.bandwidth("direct read", "ib_read_bw", s, env=DIRECT)
        yield m.raw_step("process_vm read", "vm_copy", s, "-r")
        yield m.bandwidth("mapped read", "ib_read_bw", s, env=DIRECT,
                          memory=mapped)
        yield m.bandwidth("mapped write", "ib_write_bw", s, env=DIRECT,
                          memory=mapped)
        yield m.ucx("ucx posix put_bw", "put_bw", s, "posix", *UCT_POSIX)
        yield m.latency("direct write_lat", "ib_write_lat", s, env=DIRECT)
        yield m.raw_pingpong("process_vm and poll", "vm_pingpong", s)
        yield m.latency("mapped write_lat", "ib_write_lat", s, env=DIRECT,
                        memory=mapped)
        yield m.ucx("ucx posix put_lat", "put_lat", s, "posix", *UCT_POSIX)
        yield m.ucx("ucx cma tag_lat", "tag_lat", s, "posix,cma")
        yield m.latency("direct send_lat", "ib_send_lat", s, env=DIRECT)
        yield m.vader("openmpi vader lat", s, 0)
        yield m.fabric("libfabric shm", "shm", "rdm", s)
        yield m.latency("direct read_lat", "ib_read_lat", s, env=DIRECT)
        yield m.bandwidth("direct send", "ib_send_bw", s, env=DIRECT)
        yield m.vader("openmpi vader bw", s, 64)
    yield m.latency("direct send_lat events", "ib_send_lat", 8, "-e",
                    env=DIRECT)
    yield m.raw_pingpong("eventfd", "eventfd_pingpong", 8)
    yield m.bandwidth("direct write batches", "ib_write_bw", 8, "-l", "64",
                      env=DIRECT)
    yield m.raw_step("process_vm batches", "vm_copy", 8, "-o")
    yield m.bandwidth("mapped write batches", "ib_write_bw", 8, "-l", "64",
                      env=DIRECT, memory=mapped)


def points(m):
    """Single figures, most of them for a goal."""
    yield m.latency("adverb send_lat events", "ib_send_lat", 2, "-e")
    yield m.raw_pingpong("udp blocking", "udp_pingpong", 2, "-b")
    yield m.latency("adverb send_lat one core", "ib_send_lat", 2,
                    one_core=True)
    yield m.raw_pingpong("udp blocking one core", "udp_pingpong", 2, "-b",
                         "-1")
    yield m.latency("direct send_lat one core", "ib_send_lat", 2,
                    one_core=True, env=DIRECT)
    yield m.bandwidth("adverb write batches", "ib_write_bw", 8, "-l", "64")
    yield m.raw_step("udp one a call", "udp_stream", 8, "-o", "-p")
    yield m.qps("adverb 10000 queue pairs", 10000)
    yield m.cmtime("adverb connect", 500)
    yield m.raw_step("tcp connect", "tcp_connect", 500, "-n", "500")
    yield m.connects("adverb connect 8 threads", 1000, 8)
    yield m.raw_step("tcp connect", "tcp_connect", 1000, "-n", "1000")
    for s in REGISTERED:
        yield m.registration("adverb registration", s)
    yield m.raw_step("udp plain", "udp_stream", 64 * KIB, "-p")
    yield m.raw_pingpong("shared line", "line_pingpong", 8)
    yield m.bandwidth("adverb write mtu1024", "ib_write_bw", 64 * KIB, "-m",
                      "1024")
    yield m.raw_step("udp shaped mtu1024", "udp_stream", 64 * KIB, "-m",
                     "1024")


def thread_counts():
    """Yields 1, 2, 4 ..., and the number of cores."""
    cores, count = len(os.sched_getaffinity(0)), 1
    while count < cores:
        yield count
        count *= 2
    yield cores


def threads(m):
    """Steps in which threads, or as many processes, send to one passive process.
    Each thread and each process has objects of its own."""
    for path, env, options in (("direct", DIRECT, ()),
                               ("mapped", DIRECT, ("-m",)),
                               ("adverb", LO.env, ())):
        for operation, size in (("write", 64), ("write", 64 * KIB),
                                ("read", 64 * KIB), ("send", 64),
                                ("atomic", 8)):
            for count in thread_counts():
                yield m.threads(path, env, operation, size, count, "threads",
                                *options)
                if count > 1:
                    yield m.threads(path, env, operation, size, count,
                                    "processes", "-P", *options)
    yield m.threads("direct lists", DIRECT, "write", 64, 1, "threads",
                    "-l", "32")


def both(make, mechanism, what, *args, env, **more):
    """A pair of steps: with a mechanism, and without it."""
    return tuple(
        make("%s %s %s" % (word, mechanism, what), *args,
             env={**env, "ADVERB_WITHOUT": without}, **more)
        for word, without in (("with", ""), ("without", mechanism)))


def mechanisms(m):
    """Pairs of steps that show what each mechanism of ADVERB_WITHOUT brings,
    where it matters most."""
    packets = LO.env
    for size in 64 * KIB, MIB:
        yield both(m.bandwidth, "credits", "write", "ib_write_bw", size,
                   env=packets)
    yield both(m.bandwidth, "credits", "send", "ib_send_bw", 64 * KIB,
               env=packets)
    yield both(m.senders, "credits", "write, 4 senders", "write", 64 * KIB, 4,
               env=packets)
    yield both(m.bandwidth, "acks", "write", "ib_write_bw", 8, env=packets)
    yield both(m.bandwidth, "acks", "write batches", "ib_write_bw", 8, "-l",
               "64", env=packets)
    yield both(m.bandwidth, "acks", "write", "ib_write_bw", 64 * KIB,
               env=packets)
    yield both(m.latency, "acks", "send_lat", "ib_send_lat", 2, env=packets)
    yield both(m.latency, "eager", "send_lat", "ib_send_lat", 8, env=DIRECT)
    yield both(m.bandwidth, "eager", "send", "ib_send_bw", 8, env=DIRECT)
    yield both(m.bandwidth, "eager", "send batches", "ib_send_bw", 8, "-l",
               "64", env=DIRECT)
    yield both(m.latency, "mapped", "write_lat", "ib_write_lat", 8,
               env=DIRECT, memory=mapped)
    yield both(m.bandwidth, "mapped", "write", "ib_write_bw", 64 * KIB,
               env=DIRECT, memory=mapped)
    yield both(m.senders, "mapped", "atomic", "atomic", 8, 1, "-m", env=DIRECT)
    yield both(m.bandwidth, "adaptive", "write", "ib_write_bw", 8, env=packets)
    yield both(m.bandwidth, "adaptive", "write", "ib_write_bw", 64 * KIB,
               env=packets)
    yield both(m.bandwidth, "adaptive", "send", "ib_send_bw", 64 * KIB,
               env=packets)
    yield both(m.latency, "adaptive", "send_lat", "ib_send_lat", 64 * KIB,
               env=packets)
    yield both(m.on_subnet, "rings", "subnet write", "ib_write_bw", 64 * KIB,
               "-m", "4096", env={})
    yield both(m.forwarded, "rings", "subnet packet", 4 * KIB, env={})


def sweeps(m):
    """OpenSM's first sweep of an emulated fat tree.  The size is the number of
    its nodes."""
    nodes = subnet.node_count(subnet.ARITY)
    yield Step("adverb sweep", nodes, lambda: subnet.on_adverb(m.adverb),
               ["opensm"])
    yield Step("ibsim sweep", nodes, subnet.on_ibsim, ["opensm", "ibsim"])


def subnets(m):
    """Packets by LID over an emulated subnet, beside packets over UDP and beside a
    process that only receives and sends a datagram."""
    yield (m.on_subnet("subnet write", "ib_write_bw", 64 * KIB, "-m", "4096"),
           m.bandwidth("subnet udp write", "ib_write_bw", 64 * KIB, "-m",
                       "4096"))
    yield (m.forwarded("subnet packet", 4 * KIB),
           m.raw_step("relayed datagram", "relay", 4 * KIB))
    yield m.hop("subnet hop", 4 * KIB)


def crcs(m):
    for s in CRC_SIZES:
        yield m.crc("crc32", s)
        yield m.crc("crc32c", s, "-c")


def between_users(m, where):
    """The steps between two users of one broker, by packets.  Their names end
    with @users; the steps of one user on lo have the same names without it."""
    yield m.latency("adverb send_lat", "ib_send_lat", 2, where=where)
    yield m.latency("adverb send_lat", "ib_send_lat", 64 * KIB, where=where)
    yield m.bandwidth("adverb write", "ib_write_bw", 8, where=where)
    yield m.bandwidth("adverb write", "ib_write_bw", 64 * KIB, where=where)
    yield m.bandwidth("adverb write", "ib_write_bw", MIB, where=where)
    yield m.bandwidth("adverb send", "ib_send_bw", 64 * KIB, where=where)
    yield m.bandwidth("adverb read", "ib_read_bw", 64 * KIB, where=where)
    yield m.bandwidth("adverb write batches", "ib_write_bw", 8, "-l", "64",
                      where=where)


def iwarp(m):
    """iWARP on lo, beside the limits of its byte stream."""
    for s in 4 * KIB, 64 * KIB, MIB, 16 * MIB:
        yield m.raw_step("stream fpdus", "fpdu_stream", s)
        for operation in "write", "read", "send":
            yield m.bandwidth("iwarp " + operation, "ib_%s_bw" % operation, s,
                              "-R", env=IWARP)
        yield m.bandwidth("iwarp write, no CRC", "ib_write_bw", s, "-R",
                          env=NO_CRC)
        yield m.raw_step("stream fpdus, no CRC", "fpdu_stream", s, "-p")
        yield m.raw_step("stream tcp", "tcp_stream", s)
        yield m.ucx("stream ucx put_bw", "put_bw", s, "tcp", "-d", "lo", "-x",
                    "tcp", "-D", "zcopy")
    for s in 8, 64:
        yield m.bandwidth("iwarp write", "ib_write_bw", s, "-R", env=IWARP)
        yield m.raw_step("stream fpdus", "fpdu_stream", s)
    yield m.latency("iwarp send_lat", "ib_send_lat", 2, "-R", env=IWARP)
    yield m.raw_pingpong("stream tcp polled", "tcp_pingpong", 2)
    yield m.latency("iwarp send_lat events", "ib_send_lat", 2, "-R", "-e",
                    env=IWARP)
    yield m.raw_pingpong("stream tcp blocking", "tcp_pingpong", 2, "-b")
    yield m.connects("iwarp connect", 1000, 1, env=IWARP)
    yield m.raw_step("stream tcp connect", "tcp_connect", 1000, "-n", "1000")


def iwarp_over(m, where):
    """iWARP over a veth.  adverb and fpdu_stream both send one FPDU in each TCP
    segment."""
    yield m.bandwidth("iwarp write", "ib_write_bw", 64 * KIB, "-R",
                      where=where, env=IWARP)
    yield m.raw_step("stream fpdus", "fpdu_stream", 64 * KIB, where=where)


def over(m, where, mtu):
    """The steps over a veth with @mtu bytes as its MTU."""
    packet = 4096 if mtu > 4200 else 1024
    yield m.bandwidth("adverb write", "ib_write_bw", 64 * KIB, where=where)
    yield m.raw_step("udp shaped", "udp_stream", 64 * KIB, "-m", str(packet),
                     where=where)
