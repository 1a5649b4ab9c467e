#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Libraries over verbs, and what programs do through them: UCX, libfabric,
qperf, Open MPI, librpma."""

import os
import subprocess

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
QPERF_TESTS = ("rc_lat", "rc_bi_bw", "rc_rdma_read_bw", "ver_rc_fetch_add")


def ucx(verbs, test, size):
    def body():
        count = str(max(20, min(2000, 20000000 // size)))
        argv = ["ucx_perftest", "-p", "%"]
        env = {"UCX_TLS": verbs, "UCX_LOG_LEVEL": "warn"}
        r = lab.both(argv, [*argv, "-t", test, "-s", str(size), "-n", count,
                            "-f", "127.0.0.1"],
                     server_env=env, client_env=env, client_side="here")
        expect_ok(r)
        rows = [line.split() for line in r.lines("client")]
        expect(any(row and row[0] == count for row in rows), "no figures", r)
    t.case("ucx_perftest %s of %d bytes over %s" % (test, size, verbs), body,
           "UCX over " + verbs, "ucx_perftest")


def fabric(provider, kind):
    def body():
        argv = ["fi_pingpong", "-p", provider, "-e", kind, "-c", "-I", "50"]
        r = lab.both([*argv, "-B", "%"], [*argv, "-P", "%", "127.0.0.1"],
                     client_side="here")
        expect_ok(r)
        expect("1m" in r.output and "rror" not in r.output, "no figures", r)
    t.case("fi_pingpong, data checked, %s endpoints of %s" % (kind, provider),
           body, "libfabric", "fi_pingpong")


def qperf(test):
    """Its server says where it listens before it does."""
    def body():
        argv = ["qperf", "-lp", "%"]
        env = t.paced(PACE_FIRST="1")
        server, client = lab.begin(
            argv, [*argv, "127.0.0.1", "-cm", "1", "-t", "1", test],
            server_env=env, client_env=env, client_side="here")
        r = t.finish(client, system.HANG)
        server.kill()  # it never ends by itself
        r.output += t.finish(server, 5).output
        expect_ok(r)
        expect(test + ":" in r.output, "no figures", r)
    t.case("qperf %s, connected by rdma_cm" % test, body, "rdma_cm", "qperf")


def mpi(ranks, verbs):
    def body():
        for tool in "mpicc", "mpirun":
            t.need(tool)
        # the lab's user is root of a namespace of one
        env = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        tried = t.run(["mpirun", "-np", "1", "true"], **env)
        if tried.status:
            raise Skip("mpirun does not work here: " + tried.output[-200:])
        program = t.path("mpicheck")
        source = os.path.join(system.ROOT, "tests", "system", "mpicheck.c")
        built = subprocess.run(["mpicc", "-O2", "-o", program, source],
                               check=False, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        if built.returncode:
            raise Skip("mpicc does not work: " + built.stdout.decode()[-200:])
        r = t.run([t.adverb, "run", "--", "mpirun", "-np", str(ranks),
                   "--oversubscribe", "--mca", "pml", "ucx", program],
                  UCX_TLS="self," + verbs, **env)
        expect_ok(r)
        expect("%d ranks: all right" % ranks in r.output, "it is silent", r)
    t.case("Open MPI: %d ranks over UCX's %s, data checked" % (ranks, verbs),
           body, "Open MPI over UCX's " + verbs, "mpirun")


def rpma(what, address, *doomed):
    """The one who is killed, if any, is killed by the program itself."""
    def body():
        program = os.path.join(t.build, "tests", "system", "rpmacheck")
        if not os.path.exists(program):
            raise Skip("librpma-dev was not installed when this was built")
        lab.port += 1
        r = t.adverb_run([program, address, str(lab.port), *doomed])
        expect_ok(r)
        expect("all right" in r.output, "it is silent", r)
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
    mpi(2, its)
    mpi(4, its)
rpma("read, write, flush, send over IPv4", "127.0.0.1")
rpma("read, write, flush, send over IPv6", "::1")
rpma("a server that is killed", "127.0.0.1", "server")
rpma("a client that is killed", "127.0.0.1", "client")
lab.end()
t.end()
