#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests processes of one host, with packets and without: the order in which bytes
become visible, remote atomics beside atomics of the target, a stop or a sudden death
of a process, nonsense in an arena, many threads, many processes, and memory that
both processes can map."""

import functools
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import system
from system import Skip, expect, expect_ok

t = system.Suite(__doc__)
VISIBLE = t.program("visible")
DENY_SYSCALL = t.program("deny_syscall")
SCRIBBLED = t.program("scribbled")
SAMEHOST = t.program("samehost")
STOPPED_PEER = t.program("stopped_peer")
MAPPED = t.program("mapped")
POLLED = t.program("polled")
PEER_DEATH = t.program("peer_death")
MANY_PROCESSES = t.program("many_processes")
THREADS = t.program("many_threads")
GATHERED = t.program("gathered")
LEFT_OUT = t.program("left_out")
ATOMIC_MIX = t.program("atomic_mix")
ANSWER_ORDER = t.program("answer_order")
# In the cases of this name both processes can map the memory, and copy without
# packets and without system calls.
MEMORY = "shared memory"
ATOMICS = "10000000" if t.options.full else "100000"
DEATHS = {"direct": ["-n", "10000"] if t.options.full else
                    ["-n", "500", "-l", "50", "-t", "30"],
          MEMORY: ["-n", "10000"] if t.options.full else
                  ["-n", "500", "-l", "50", "-t", "15"],
          "packets": ["-n", "10000"] if t.options.full else
                     ["-n", "500", "-l", "20", "-t", "15"]}
SHORT = "1000" if t.options.full else "20"
ROUNDS = 10000000 if t.options.full else 1000
# Arguments of polled: the rounds of each size, and the seconds after which polled may
# end with fewer rounds.
POLLS = {"direct": ["-n", "10000000"] if t.options.full else
                   ["-n", "100000", "-t", "12"],
         MEMORY: ["-n", "10000000"] if t.options.full else
                 ["-n", "100000", "-t", "6"],
         "packets": ["-n", "1000000"] if t.options.full else
                    ["-n", "10000", "-t", "3"]}
SIZES = 53
# All mechanisms of src/log/env.h except the rings to a fabric.
ALL_OFF = {"ADVERB_WITHOUT": "credits,acks,eager,mapped,adaptive"}
LIMIT_S = 36000 if t.options.full else system.HANG  # limit of a program
# How many processes run at once.  The hostile user may hold the upper half of the
# broker's indexes, so only the lower half is certain for the broker's own user
# (broker/other_user.h).
MANY = "500" if t.is_beside_hostile else "1000"


def polling_the_last_byte_sees_all():
    r = t.run([VISIBLE, "-n", str(ROUNDS)], timeout=LIMIT_S)
    if r.status == 2:
        raise Skip("process_vm_writev is refused")
    expect_ok(r)
    expect(r.output.count(" 0 of ") == 17, "a size is missing", r)


def run(way, *argv, before=(), program=SAMEHOST, **env):
    return t.run([*before, t.adverb, "run", "--", program, *argv],
                 timeout=LIMIT_S,
                 ADVERB_DIRECT="0" if way == "packets" else "1",
                 ENDS_SHARED="1" if way == MEMORY else "0", **env)


def samehost(way, *argv, **how):
    return lambda: expect_ok(run(way, *argv, **how))


def sleeps(way):
    def body():
        if t.is_beside_hostile:
            raise Skip("frames of the hostile user wake the processes that "
                       "receive them")
        samehost(way, "idle", "100", program=MANY_PROCESSES)()
    return body


def polled(way, *argv):
    def body():
        r = run(way, *POLLS[way], *argv, program=POLLED)
        expect_ok(r)
        expect(r.output.count(": 0 of ") == SIZES, "a size is missing", r)
        t.note(r.output.splitlines()[-1])
    return body


def stale_bytes_are_found():
    r = run("direct", "-n", "10", "-x", program=POLLED)
    # A message of one byte has no other byte that can be stale.
    expect(r.status == 1 and r.output.count(": 10 of 10 stale") == SIZES - 1,
           "polled has not found all stale bytes", r)


def peer_death(way, *argv, **how):
    def body():
        r = run(way, *argv, program=PEER_DEATH, ADVERB_EXPLAIN="0", **how)
        expect_ok(r)
        t.note(r.output.splitlines()[-1])
    return body


@functools.lru_cache(None)
def can_do_without_calls():
    return "without system calls" in t.run([t.adverb, "doctor"]).output


def mapped(kind, status=0, **env):
    def body():
        if not can_do_without_calls():
            raise Skip("no restartable sequences, or no fast strings")
        r = run("direct", kind, program=MAPPED, **env)
        expect(r.status == status, "exit status %d, not %d" % (r.status, status), r)
    return body


def left_out(status, *argv, **env):
    def body():
        r = run("direct", *argv, program=LEFT_OUT, **env)
        expect(r.status == status, "exit status %d, not %d" % (r.status, status), r)
    return body


def misspelt_arguments_are_refused():
    for program, *argv in (
            (SAMEHOST, "stopped", "pakets"), (SAMEHOST, "map", "mapped"),
            (SAMEHOST, "stopped", "direct", "hiden"), (SAMEHOST, "kil", "1"),
            (SAMEHOST, "kill", "1x"), (STOPPED_PEER, "1", "directly"),
            (STOPPED_PEER, "one", "direct"), (SCRIBBLED, "1"),
            (SCRIBBLED, "many", "1"), (MAPPED, "memfds"),
            (THREADS, "10", "together"), (THREADS, "0", "apart"),
            (ANSWER_ORDER, "10", "64", "event"), (ANSWER_ORDER, "10x", "64"),
            (LEFT_OUT, "targets")):
        r = t.run([program, *argv])
        expect(r.status == 2 and "usage" in r.output,
               "exit status %d after %s" % (r.status, argv), r)


def gathered(way):
    def body():
        r = run(way, "2000" if t.options.full else "200", program=GATHERED)
        expect_ok(r)
        # WRITEs to mapped memory are executed when they are posted, and packets
        # may arrive before the program looks.
        expect(way != "direct" or "waited in 0 of" not in r.output,
               "no WRITE waited, so nothing was gathered", r)
        t.note(r.output.splitlines()[-1])
    return body


def answer_order(way, *argv, **env):
    rounds = "1000000" if t.options.full else "10000"
    return samehost(way, rounds, *argv, program=ANSWER_ORDER, **env)


def atomic_mix(way, initiators):
    def body():
        r = run(way, ATOMICS, initiators, program=ATOMIC_MIX)
        expect_ok(r)
        t.note(r.output.splitlines()[-1])
    return body


t.case("the programs refuse misspelt arguments", misspelt_arguments_are_refused)
for kind in "memfd", "shm", "dm":
    t.case("memory that both can map needs no system call: " + kind,
           mapped(kind), "same host", "mapped")
for kind in "private", "lost":
    t.case("memory that the initiator cannot map needs a system call: " + kind,
           mapped(kind, 3), "same host", "mapped")
for what, env in (("the guard", {"ADVERB_GUARD": "0"}),
                 ("restartable sequences",
                  {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})):
    t.case("memory that both can map needs a system call without " + what,
           mapped("memfd", 3, **env), "same host", "mapped")
for kind, what in (("remapped", "a WRITE goes to the memory that has replaced it"),
                   ("cut", "a WRITE past the end of its file fails")):
    t.case("memory that both can map: " + what, mapped(kind), "same host",
           "mapped")
t.case("memory that both can map needs a system call without mapped copies",
       mapped("memfd", 3, ADVERB_WITHOUT="mapped"), "same host", "mapped")
for what, status, argv in (
        ("few bytes wait for the poll", 0, []),
        ("few bytes do not wait if the initiator uses no eager messages", 3,
         ["initiator"]),
        ("few bytes wait for the poll of a target that uses no eager messages "
         "itself", 0, ["target"])):
    t.case(what, left_out(status, *argv), "same host", "left_out")
t.case("few bytes do not wait if no process uses eager messages",
       left_out(3, ADVERB_WITHOUT="eager"), "same host", "left_out")
for way in "packets", "direct", MEMORY:
    t.case("threads post while objects come and go, by %s, all mechanisms off" %
           way, samehost(way, "1000", "shared", program=THREADS, **ALL_OFF),
           "same host", "many_threads")
    t.case("atomics are exact beside the target's own, by %s, all mechanisms off" %
           way, samehost(way, ATOMICS, "2", program=ATOMIC_MIX, **ALL_OFF),
           "same host", "atomic_mix")
    t.case("a survivor of dead peers keeps its own memory, by %s, all mechanisms off" %
           way, peer_death(way, "-n", "100", "-l", "20", "-t", "5", **ALL_OFF),
           "same host", "peer_death")
t.case("polled finds bytes that come after the last byte", stale_bytes_are_found,
       "same host", "polled")
t.case("polling the last byte of a WRITE sees all bytes, in mapped memory",
       polled("direct", "-m", "-t", "600" if t.options.full else "3"),
       "same host", "polled")
for way, env in (("packets", {}), ("strict packets", {"ADVERB_STRICT": "1"}),
                 ("packets, ACKs too", {"ADVERB_WITHOUT": "acks"}),
                 ("direct", {})):
    for kind in [], ["events"]:
        for size in "2", "64", "8192":
            t.case("a SEND of %s bytes completes before the answer comes, by %s%s" % (
                size, way, "".join(", with " + k for k in kind)),
                answer_order("direct" if way == "direct" else "packets",
                             size, *kind, **env), "same host", "answer_order")
for way in "packets", "direct", MEMORY:
    t.case("polling the last byte of a WRITE sees all bytes, by " + way,
           polled(way), "same host", "polled")
    for initiators in "1", "2":
        t.case("atomics of %s are exact beside the target's own, by %s" %
               (initiators, way), atomic_mix(way, initiators),
               "same host", "atomic_mix")
    t.case("a survivor of dead peers keeps its own memory, by " + way,
           peer_death(way, *DEATHS[way]), "same host", "peer_death")
    t.case("all work ends when the peer dies, by " + way,
           samehost(way, "kill", SHORT), "same host", "samehost")
for way in "direct", MEMORY:
    t.case("nonsense in an arena neither kills nor blocks a process, by " + way,
           samehost(way, "200" if t.options.full else "24", "1",
                    program=SCRIBBLED), "same host", "scribbled")
for way in "packets", "direct", MEMORY:
    for kind, what in (("apart", "objects of their own"),
                       ("shared", "one queue pair")):
        t.case("threads with %s post while objects come and go, by %s" %
               (what, way),
               samehost(way, "20000" if t.options.full else "1000", kind,
                        program=THREADS), "same host", "many_threads")
for way in "packets", "direct", MEMORY:
    t.case("WRITEs posted one by one arrive also without a poll, by " + way,
           gathered(way), "same host", "gathered")
for way in "packets", "direct":
    t.case("connected processes map %s, by %s" % (
        "no arena of a peer" if way == "packets" else "each other's arena", way),
           samehost(way, "map", way), "same host", "samehost")
    t.case("%s processes in pairs, by %s" % (
        "500" if t.is_beside_hostile else "a thousand", way),
           samehost(way, "pairs", MANY, "1", program=MANY_PROCESSES),
           "same host", "many_processes")
    t.case("an idle connected process sleeps, by " + way,
           sleeps(way), "same host", "many_processes")
    t.case("one process exchanges SENDs with many peers, by " + way,
           samehost(way, "hub", MANY if t.options.full else "200",
                    program=MANY_PROCESSES), "same host", "many_processes")
# If the process waited for these peers one after the other, its alarm would kill
# it.
t.case("one process sends to many peers beside a stopped broker",
       samehost("direct", "stop-broker", "251", program=MANY_PROCESSES),
       "same host", "many_processes")
t.case("a process that lets no other read its memory goes by packets",
       samehost("direct", "stopped", "packets", "hidden"),
       "same host", "samehost")
t.case("a process that may not write others' memory goes by packets",
       samehost("direct", "stopped", "packets",
                before=[DENY_SYSCALL, "vm", "--"]),
       "same host", "samehost")
t.case("all work of a process that may not write others' memory ends when the "
       "peer dies",
       samehost("direct", "kill", "5", before=[DENY_SYSCALL, "vm", "--"]),
       "same host", "samehost")
t.case("requests to a stopped target end when it continues, by packets",
       samehost("packets", "stopped", "packets"), "same host", "samehost")
for way in "direct", MEMORY:
    t.case("%s to a stopped target end at once, by %s" % (
        "all requests" if way == MEMORY else "WRITEs, READs and SENDs", way),
           samehost(way, "stopped", "mapped" if way == MEMORY else way),
           "same host", "samehost")
for way in "packets", "direct", MEMORY:
    t.case("a peer stopped during a transfer makes no process wait, by " + way,
           samehost(way, "100" if t.options.full else "3",
                    "packets" if way == "packets" else "direct",
                    program=STOPPED_PEER),
           "same host", "stopped_peer")
t.case("polling the last byte sees all bytes",
       polling_the_last_byte_sees_all,
       "same host", "visible")
t.end()
