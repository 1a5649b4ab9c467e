#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests libraries and programs that use verbs: UCX, libfabric, qperf, Open MPI,
librpma."""

import contextlib
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import netlab
import system
from system import Skip, expect, expect_ok

netlab.enter()
t = system.Suite(__doc__)
lab = netlab.Lab(t)
UCX_VERBS = ("rc_verbs,ud_verbs", "ud_verbs")
UCX_TESTS = (("tag_lat", 8), ("tag_lat", 100000), ("tag_bw", 8),
             ("tag_bw", 1000000), ("stream_bw", 20000), ("ucp_put_bw", 65536),
             ("ucp_get", 300000), ("ucp_fadd", 8), ("ucp_cswap", 8))
FABRICS = (("verbs", "msg"), ("verbs;ofi_rxm", "rdm"))
# The user of the lab is root in its user namespace, and mpirun refuses to run as
# root.
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPIRUN = ["mpirun", "-np", "%d", "--oversubscribe"]
QPERF_TESTS = ("rc_lat", "rc_bi_bw", "rc_rdma_read_bw", "ver_rc_fetch_add")


def mpirun(ranks, argv, **env):
    argv = [word % ranks if "%" in word else word for word in MPIRUN] + argv
    return t.run([t.adverb, "run", "--", *argv], **MPI_AS_ROOT, **env)


def need_mpi(*tools):
    for tool in tools:
        t.need(tool)
    tried = t.run(["mpirun", "-np", "1", "true"], **MPI_AS_ROOT)
    if tried.status:
        raise Skip("mpirun does not work here: " + tried.output[-200:])


def ucx(verbs, test, size):
    def body():
        t.need_ucx()
        count = str(max(20, min(2000, 20000000 // size)))
        argv = ["-t", test, "-s", str(size), "-n", count, "-f"]
        env = {"UCX_TLS": verbs, "UCX_LOG_LEVEL": "warn"}
        if "libmpi" in t.run(["ldd", shutil.which("ucx_perftest")]).output:
            # The two ends of this ucx_perftest are MPI ranks.
            need_mpi("mpirun")
            r = mpirun(2, ["ucx_perftest", *argv], **env)
        else:
            tool = ["ucx_perftest", "-p", "%"]
            r = lab.both(tool, [*tool, *argv, "127.0.0.1"], server_env=env,
                         client_env=env, client_side="here")
        expect_ok(r)
        expect(re.search(r"^(client\|)?\s*(Final:)?\s*%s\s" % count, r.output,
                         re.M), "ucx_perftest prints no figures", r)
    t.case("ucx_perftest %s of %d bytes over %s" % (test, size, verbs), body,
           "UCX over " + verbs, "ucx_perftest")


def fabric(provider, kind):
    def body():
        argv = ["fi_pingpong", "-p", provider, "-e", kind, "-c", "-I", "50"]
        with lab.interface():
            r = lab.both([*argv, "-B", "%"], [*argv, "-P", "%", "127.0.0.1"],
                         client_side="here")
        expect_ok(r)
        expect("1m" in r.output and "rror" not in r.output,
               "fi_pingpong prints no figures, or an error", r)
    t.case("fi_pingpong, data checked, %s endpoints of %s" % (kind, provider),
           body, "libfabric", "fi_pingpong")


QPERF = ["qperf", "-lp", "%"]


def qperf(test):
    """Adds a case of qperf.  A qperf server tells the client a port before the
    server listens at this port.  The client waits until the server listens
    (t.paced()); rdmacm.py tests a client that does not wait."""
    def body():
        env = t.paced(PACE_FIRST="1")
        server, client = lab.begin(
            [*QPERF, "-lto", str(system.HANG)],
            [*QPERF, "127.0.0.1", "-to", str(system.HANG), "-cm", "1", "-t", "1",
             test],
            server_env=env, client_env=env, client_side="here")
        r = t.finish(client, system.HANG)
        server.kill()  # a qperf server never ends by itself
        r.output += t.finish(server, 5).output
        expect_ok(r)
        expect(test + ":" in r.output, "qperf prints no figures", r)
    t.case("qperf %s, connected by rdma_cm" % test, body, "rdma_cm", "qperf")


@contextlib.contextmanager
def with_ucx():
    t.need_ucx()
    yield


def mpi(ranks, over, options, place, **env):
    def body():
        need_mpi("mpicc", "mpirun")
        program = t.path("mpicheck")
        source = os.path.join(system.ROOT, "tests/system/programs/mpicheck.c")
        built = subprocess.run(["mpicc", "-O2", "-o", program, source],
                               check=False, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        if built.returncode:
            raise Skip("mpicc does not work: " + built.stdout.decode()[-200:])
        with place():
            r = mpirun(ranks, [*options, program], **env)
        expect_ok(r)
        expect("%d ranks: all right" % ranks in r.output,
               "the program does not print that all is right", r)
    t.case("Open MPI: %d ranks over %s, data checked" % (ranks, over), body,
           "Open MPI over " + over, "mpirun")


def mpi_over_ucx(ranks, verbs):
    mpi(ranks, "UCX's " + verbs, ["--mca", "pml", "ucx"], with_ucx,
        UCX_TLS="self," + verbs)


def mpi_over_libfabric(ranks):
    mpi(ranks, "libfabric's verbs",
        ["--mca", "pml", "cm", "--mca", "mtl", "ofi",
         "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm"], lab.interface)


def rpma(what, address, *doomed):
    """Adds a case that runs rpmacheck.  If @doomed names one of the two
    processes of rpmacheck, rpmacheck kills that process."""
    def body():
        program = t.program("rpmacheck")
        if not os.path.exists(program):
            raise Skip("librpma-dev was not installed when the tests were built")
        if "librpma.so.0 => not found" in t.run(["ldd", program]).output:
            raise Skip("librpma0 is not installed")
        lab.port += 1
        with lab.interface():
            r = t.adverb_run([program, address, str(lab.port), *doomed])
        expect_ok(r)
        expect("all right" in r.output,
               "the program does not print that all is right", r)
    t.case("librpma: " + what, body, "librpma over rdma_cm", "rpmacheck")


for its in UCX_VERBS:
    for what, how_much in UCX_TESTS:
        if its != "ud_verbs" or t.options.full or how_much > 8:
            ucx(its, what, how_much)
for which, end in FABRICS:
    fabric(which, end)
for what in QPERF_TESTS:
    qperf(what)
for its in UCX_VERBS:
    mpi_over_ucx(2, its)
    mpi_over_ucx(4, its)
mpi_over_libfabric(2)
rpma("read, write, flush, send over IPv4", "10.1.0.1")
rpma("read, write, flush, send over IPv6", "fd01::1")
rpma("the client ends when the server is killed", "10.1.0.1", "server")
rpma("the server ends when the client is killed", "10.1.0.1", "client")
lab.end()
t.end()
