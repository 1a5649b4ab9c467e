#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests UCX, Open MPI and libfabric by LID, on an emulated subnet under
OpenSM."""

import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(1, sys.path[0] + "/../lib")

import subnet
import system
from subnet import PATIENCE_S, managed
from system import Fail, Skip, expect, expect_ok, listens

AREA = "InfiniBand"
PORT = 13337  # of ucx_perftest and fi_pingpong
FAR = ("Hca1", "Hca3")  # packets between them pass two switches
# LMC 1: each port has two LIDs.
TWO_LIDS = ("-l", "1")
UCX_VERBS = ("rc_verbs,ud_verbs", "ud_verbs")
UCX_TESTS = (("tag_lat", 8), ("tag_bw", 100000), ("stream_bw", 20000),
             ("ucp_put_bw", 65536), ("ucp_get", 300000), ("ucp_fadd", 8),
             ("ucp_cswap", 8))
# Paths of UCX, and the variables that make UCX use them.
UCX_PATHS = (("a GRH", {"UCX_IB_IS_GLOBAL": "y"}),
             ("SL 1", {"UCX_IB_SL": "1"}),
             ("the second LID of each port", {"UCX_IB_LID_PATH_BITS": "1"}),
             ("two LIDs of each port", {"UCX_IB_LID_PATH_BITS": "0-1",
                                        "UCX_IB_NUM_PATHS": "2",
                                        "UCX_MAX_RNDV_RAILS": "2"}))
# Open MPI 4 does not use the openib BTL on InfiniBand without
# btl_openib_allow_ib.  The BTL makes its address handles with the number of the
# peer's port, so all its ranks need ports of the same number.
OPENIB = ["pml", "ob1", "--mca", "btl", "openib,self", "--mca",
          "btl_openib_allow_ib", "1"]
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
t = system.Suite(__doc__)
subnet.use(t)


def on_host(f, host, argv):
    """Returns the command that runs @argv on a host of the fabric."""
    return [t.adverb, "run", "--fabric=" + f.socket, "--host", host, "--",
            *argv]


def both(f, server_argv, client_argv, **env):
    """Runs a server and a client on the hosts FAR.  Returns the results of the
    server and the client.  A program that does not end is killed after PATIENCE_S.
    """
    env = t.environment(**env)
    server = t.start(on_host(f, FAR[0], server_argv), env=env)
    end = time.monotonic() + PATIENCE_S
    while not listens(PORT):
        if server.poll() is not None or time.monotonic() > end:
            raise Fail("the server does not listen", t.finish(server, 1).output)
        time.sleep(0.01)
    client = t.start(on_host(f, FAR[1], [*client_argv, "127.0.0.1"]), env=env)
    r = t.finish(client, PATIENCE_S)
    return t.finish(server, PATIENCE_S), r


def perftest_of_ucx(f, test, size, **env):
    count = str(max(20, min(500, 4000000 // size)))
    argv = ["ucx_perftest", "-p", str(PORT)]
    for r in both(f, argv, [*argv, "-t", test, "-s", str(size), "-n", count,
                            "-f"], UCX_LOG_LEVEL="warn", **env):
        expect_ok(r)
        expect("ERROR" not in r.output, "ucx_perftest reports an error", r)
        expect("unused" not in r.output, "UCX ignores a variable", r)
    expect(re.search(r"^\s*(Final:)?\s*%s\s" % count, r.output, re.M),
           "ucx_perftest prints no figures", r)


def need_own_ends():
    """Skips the case if the two ends of ucx_perftest are MPI ranks."""
    t.need_ucx()
    t.need("ucx_perftest")
    if "libmpi" in t.run(["ldd", shutil.which("ucx_perftest")]).output:
        raise Skip("this ucx_perftest is an MPI program")


def device_of_ucx():
    t.need_ucx()
    with managed() as f:
        said = f.out(FAR[0], "ucx_info", "-d")
        for transport in "rc_verbs", "ud_verbs":
            expect(re.search(r"Transport: %s\n#\s+Device: advib0:1\n"
                             % transport, said),
                   "ucx_info does not list %s at advib0:1: %s"
                   % (transport, said))
        # port 2 of the host has no cable
        expect("advib0:2" not in said, "ucx_info lists advib0:2: " + said)


def ucx(verbs):
    def body():
        need_own_ends()
        with managed() as f:
            for test, size in UCX_TESTS:
                perftest_of_ucx(f, test, size, UCX_TLS=verbs)
    t.case("ucx_perftest over %s by LID" % verbs, body,
           AREA, "ucx_perftest")


def paths_of_ucx():
    need_own_ends()
    with managed(subnet.NET, "Hca1", *TWO_LIDS) as f:
        for _, env in UCX_PATHS:
            for verbs in UCX_VERBS:
                perftest_of_ucx(f, "tag_bw", 100000, UCX_TLS=verbs, **env)


def need_mpi():
    for tool in "mpicc", "mpirun":
        t.need(tool)
    tried = t.run(["mpirun", "-np", "1", "true"], **MPI_AS_ROOT)
    if tried.status:
        raise Skip("mpirun does not work here: " + tried.output[-200:])


def build_mpicheck():
    program = t.path("mpicheck")
    source = os.path.join(system.ROOT, "tests/system/programs/mpicheck.c")
    built = subprocess.run(["mpicc", "-O2", "-o", program, source], check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if built.returncode:
        raise Skip("mpicc does not work: " + built.stdout.decode()[-200:])
    return program


def mpirun(f, ranks, options, program, **env):
    """Runs a program of MPI, and returns the Result.  @ranks: the number of ranks on
    each host."""
    argv = ["mpirun", "--oversubscribe", *options]
    for host, count in ranks.items():
        argv += ["-np", str(count), *on_host(f, host, [program]), ":"]
    return t.run(argv[:-1], **MPI_AS_ROOT, **env)


def mpi(over, options, ranks, **env):
    """Adds a case in which MPI uses @over.  @ranks: as in mpirun()."""
    def body():
        need_mpi()
        program = build_mpicheck()
        with managed() as f:
            r = mpirun(f, ranks, ["--mca", *options], program, **env)
        expect_ok(r)
        expect("%d ranks: all right" % sum(ranks.values()) in r.output,
               "the program does not print that all is right", r)
    t.case("Open MPI over %s by LID, data checked" % over, body,
           AREA, "mpirun")


def device_of_libfabric():
    t.need("fi_info")
    with managed() as f:
        said = f.out(FAR[0], "fi_info", "-p", "verbs")
        for domain in "advib0", "advib0-dgram":
            expect(re.search(r"fabric: IB-0xfe80000000000000\n\s+domain: %s\n"
                             % domain, said),
                   "fi_info does not list %s: %s" % (domain, said))


def libfabric(provider, kind):
    def body():
        argv = ["fi_pingpong", "-p", provider, "-e", kind, "-d",
                "advib0-dgram", "-c", "-I", "50", "-S", "4096"]
        with managed() as f:
            for r in both(f, [*argv, "-B", str(PORT)],
                          [*argv, "-P", str(PORT)]):
                expect_ok(r)
                expect(re.search(r"^4k .*=50", r.output, re.M),
                       "fi_pingpong prints no figures", r)
    t.case("fi_pingpong by LID, data checked, %s endpoints of %s"
           % (kind, provider), body, AREA, "fi_pingpong")


t.case("ucx_info lists the active port of the host", device_of_ucx,
       AREA, "ucx_info")
for transports in UCX_VERBS:
    ucx(transports)
t.case("ucx_perftest uses " + ", ".join(what for what, _ in UCX_PATHS),
       paths_of_ucx, AREA, "ucx_perftest")
for transports in UCX_VERBS:
    mpi("UCX's " + transports, ["pml", "ucx"],
        {"Hca1": 2, "Hca2": 1, "Hca3": 1}, UCX_TLS="self," + transports)
mpi("the openib BTL", OPENIB, {"Hca1": 2, "Hca3": 2})
t.case("fi_info lists the device of the host", device_of_libfabric,
       AREA, "fi_info")
libfabric("verbs", "dgram")
libfabric("verbs;ofi_rxd", "rdm")
t.end()
