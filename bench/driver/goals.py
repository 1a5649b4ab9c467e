# SPDX-License-Identifier: BSD-2-Clause
"""The goals: ratios of two figures of one run, measured in turns."""

import statistics

K64, M1 = 65536, 1048576

# Each row has a goal, a step of adverb, a field, the step with which the step of
# adverb is compared (None: the value of the field takes the place of the ratio),
# and the wanted ratio: at least (>) or at most (<) a factor.
GOALS = [
    ("WRITE 64 KiB, path MTU 4096, to the shaped limit",
     "adverb write/%d" % K64, "GBps", "udp shaped/%d" % K64, ">", 0.9),
    ("WRITE 1 MiB, path MTU 4096, to the shaped limit",
     "adverb write/%d" % M1, "GBps", "udp shaped/%d" % M1, ">", 0.9),
    ("WRITE 64 KiB to plain TCP writes",
     "adverb write/%d" % K64, "GBps", "tcp write/%d" % K64, ">", 1),
    ("WRITE 64 KiB to qperf tcp_bw",
     "adverb write/%d" % K64, "GBps", "qperf tcp_bw/%d" % K64, ">", 1),
    ("WRITE 64 KiB to UCX tcp tag",
     "adverb write/%d" % K64, "GBps", "ucx tcp tag_bw/%d" % K64, ">", 1),
    ("WRITE 64 KiB, path MTU 1024, to the shaped limit there",
     "adverb write mtu1024/%d" % K64, "GBps",
     "udp shaped mtu1024/%d" % K64, ">", 0.9),
    ("WRITE 64 KiB over veth, MTU 1500, to the shaped limit there",
     "adverb write@veth1500/%d" % K64, "GBps",
     "udp shaped@veth1500/%d" % K64, ">", 0.9),
    ("WRITE 64 KiB over veth, MTU 9000, to the shaped limit there",
     "adverb write@veth9000/%d" % K64, "GBps",
     "udp shaped@veth9000/%d" % K64, ">", 0.9),
    ("SEND 64 KiB to the shaped limit",
     "adverb send/%d" % K64, "GBps", "udp shaped/%d" % K64, ">", 0.9),
    ("READ 64 KiB to the shaped limit",
     "adverb read/%d" % K64, "GBps", "udp shaped/%d" % K64, ">", 0.9),
    ("SEND 2 B, polling, to raw polled UDP",
     "adverb send_lat/2", "us", "udp polled/2", "<", 1.3),
    ("SEND 2 B, polling, to raw polled TCP",
     "adverb send_lat/2", "us", "tcp polled/2", "<", 1),
    ("SEND 2 B, events, to raw blocking UDP",
     "adverb send_lat events/2", "us", "udp blocking/2", "<", 1.3),
    ("SEND 2 B on one core to raw blocking UDP there",
     "adverb send_lat one core/2", "us", "udp blocking one core/2", "<", 2),
    ("WRITE 8 B, one QP, batches, to one packet a call",
     "adverb write batches/8", "Mps", "udp one a call/8", ">", 5),
    ("within the host: WRITE 8 B, polling memory, to process_vm and a line",
     "direct write_lat/8", "us", "process_vm and poll/8", "<", 1.3),
    ("within the host: SEND 8 B to UCX posix,cma",
     "direct send_lat/8", "us", "ucx cma tag_lat/8", "<", 1),
    ("within the host: SEND 8 B, mean, to libfabric shm",
     "direct send_lat/8", "mean_us", "libfabric shm/8", "<", 1),
    ("within the host: SEND 8 B, mean, to Open MPI vader",
     "direct send_lat/8", "mean_us", "openmpi vader lat/8", "<", 1),
    ("within the host: SEND 8 B, messages a second, to UCX posix,cma",
     "direct send batches/8", "Mps", "ucx cma tag_bw/8", ">", 1),
    ("within the host: WRITE 8 B, messages a second, to process_vm in batches",
     "direct write batches/8", "Mps", "process_vm batches/8", ">", 0.8),
    ("within the host: WRITE 64 KiB to process_vm",
     "direct write/%d" % K64, "GBps", "process_vm/%d" % K64, ">", 0.95),
    ("within the host: WRITE 1 MiB to process_vm",
     "direct write/%d" % M1, "GBps", "process_vm/%d" % M1, ">", 0.95),
    ("within the host: READ 64 KiB to process_vm",
     "direct read/%d" % K64, "GBps", "process_vm read/%d" % K64, ">", 0.95),
    ("within the host: READ 1 MiB to process_vm",
     "direct read/%d" % M1, "GBps", "process_vm read/%d" % M1, ">", 0.95),
    ("within the host: WRITE 64 KiB to UCX posix,cma",
     "direct write/%d" % K64, "GBps", "ucx cma tag_bw/%d" % K64, ">", 1),
    ("within the host, memory that both map: WRITE 8 B, to process_vm and a line",
     "mapped write_lat/8", "us", "process_vm and poll/8", "<", 1),
    ("within the host, memory that both map: WRITE 8 B to UCX put",
     "mapped write_lat/8", "us", "ucx posix put_lat/8", "<", 1),
    ("within the host, memory that both map: WRITE 64 KiB to UCX put",
     "mapped write/%d" % K64, "GBps", "ucx posix put_bw/%d" % K64, ">", 1),
    ("within the host, memory that both map: READ 64 KiB to process_vm",
     "mapped read/%d" % K64, "GBps", "process_vm read/%d" % K64, ">", 1),
    ("within the host: SEND 8 B, events, to raw eventfd",
     "direct send_lat events/8", "us", "eventfd/8", "<", 1.2),
    ("within the host: SEND 2 B on one core to raw blocking UDP there",
     "direct send_lat one core/2", "us", "udp blocking one core/2", "<", 2),
    ("500 connections at once, each, to TCP's connect and accept",
     "adverb connect/500", "us", "tcp connect/500", "<", 2),
    ("1000 connections at once by 8 threads, each, to TCP's connect and accept",
     "adverb connect 8 threads/1000", "us", "tcp connect/1000", "<", 2),
    *[("ibv_reg_mr and ibv_dereg_mr of %s, to mmap and munmap" % size,
       "adverb registration/%d" % count, "ratio", None, "<", 2)
      for size, count in (("4 KiB", 4096), ("1 MiB", M1),
                          ("1 GiB", 1024 * M1))],
    ("10 000 queue pairs: created and connected, seconds",
     "adverb 10000 queue pairs/8", "s", None, "<", 1),
    ("10 000 queue pairs: resident MiB",
     "adverb 10000 queue pairs/8", "MiB", None, "<", 200),
    ("10 000 queue pairs: the time of an operation, to that with one",
     "adverb 10000 queue pairs/8", "ratio", None, "<", 1.1),
    *[("2 threads to 2 processes, within the host: WRITE %s" % size,
       "direct write 2 threads/%d" % count, field,
       "direct write 2 processes/%d" % count, ">", 0.95)
      for size, count, field in (("64 B", 64, "Mps"),
                                 ("64 KiB", K64, "GBps"))],
    ("2 threads to 1, within the host: WRITE 64 KiB",
     "direct write 2 threads/%d" % K64, "GBps",
     "direct write 1 threads/%d" % K64, ">", 1.6),
    ("WRITE 64 B posted one by one, within the host, to packets",
     "direct write 1 threads/64", "Mps", "adverb write 1 threads/64", ">",
     1.5),
    ("WRITE 64 B posted one by one, within the host, to lists",
     "direct write 1 threads/64", "Mps", "direct lists write 1 threads/64",
     ">", 0.8),
    *[("iWARP: %s %s to raw FPDUs" % (operation.upper(), size),
       "iwarp %s/%d" % (operation, count), "GBps", "stream fpdus/%d" % count,
       ">", 0.9)
      for size, count in (("64 KiB", K64), ("1 MiB", M1))
      for operation in ("write", "read", "send")],
    *[("iWARP: WRITE 64 KiB over veth, MTU %d, to raw FPDUs there" % mtu,
       "iwarp write@veth%d/%d" % (mtu, K64), "GBps",
       "stream fpdus@veth%d/%d" % (mtu, K64), ">", 0.9)
      for mtu in (1500, 9000)],
    ("iWARP: WRITE 64 KiB to UCX tcp put",
     "iwarp write/%d" % K64, "GBps", "stream ucx put_bw/%d" % K64, ">", 1.3),
    ("iWARP: WRITE 64 KiB without CRC to plain TCP writes",
     "iwarp write, no CRC/%d" % K64, "GBps", "stream tcp/%d" % K64, ">", 0.9),
    ("iWARP: SEND 2 B, polling, to raw polled TCP",
     "iwarp send_lat/2", "us", "stream tcp polled/2", "<", 1.3),
    ("iWARP: SEND 2 B, events, to raw blocking TCP",
     "iwarp send_lat events/2", "us", "stream tcp blocking/2", "<", 1.3),
    ("iWARP: 1000 connections at once, each, to TCP's connect and accept",
     "iwarp connect/1000", "us", "stream tcp connect/1000", "<", 3),
    ("OpenSM's first sweep of 1024 hosts and 320 switches, to ibsim",
     "adverb sweep/1344", "s", "ibsim sweep/1344", "<", 1.5),
    ("1024 emulated hosts and 320 switches: resident MiB",
     "adverb sweep/1344", "MiB", None, "<", 1344),
    ("WRITE 64 KiB between hosts at one emulated switch, to packets over UDP",
     "subnet write/%d" % K64, "GBps", "subnet udp write/%d" % K64, ">", 0.8),
    ("a further emulated switch: CPU time for a packet, to a relayed datagram",
     "subnet hop/4096", "us", "relayed datagram/4096", "<", 1.5),
    *[("%s of %s, to ISA-L" % (name, size), "%s/%d" % (series, count),
       "ratio", None, ">", 1)
      for name, series in (("CRC-32", "crc32"), ("CRC-32C", "crc32c"))
      for size, count in (("64 B", 64), ("256 B", 256), ("1 KiB", 1024),
                          ("4 KiB", 4096), ("64 KiB", K64), ("1 MiB", M1))],
]


def median(values):
    """Returns the median, or None if there are no values.  The median of an
    even number of values is the mean of the two middle values."""
    values = list(values)
    return statistics.median(values) if values else None


def ratios(figures, ours, field, other):
    """Returns one ratio for each round that has the figures for a ratio."""
    if other is None:
        return [f[field] for f in figures.get(ours, {}).values()
                if field in f]
    a, b = figures.get(ours, {}), figures.get(other, {})
    return [a[r][field] / b[r][field] for r in a
            if r in b and field in a[r] and b[r].get(field)]


def judge(figures):
    """Returns a dictionary for each goal; "met" is None if the goal was not
    measured."""
    verdicts = []
    for what, ours, field, other, sense, factor in GOALS:
        ratio = median(ratios(figures, ours, field, other))
        met = None
        if ratio is not None:
            met = ratio >= factor if sense == ">" else ratio <= factor
        verdicts.append({"what": what, "ours": ours, "field": field,
                         "other": other, "sense": sense, "factor": factor,
                         "ratio": ratio, "met": met})
    return verdicts
