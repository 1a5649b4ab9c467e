# SPDX-License-Identifier: BSD-2-Clause
"""Two programs `steady` on hosts of an emulated subnet.  The programs exchange
numbered messages, and check the numbers."""

import contextlib
import os
import signal
import time

import subnet
from subnet import PATIENCE_S, start
from system import Fail, expect


class Ends:
    """Two programs `steady`, on Hca1 and Hca3, that exchange messages.  @env:
    environment variables of both programs.  @each: two dicts of further
    variables, one for each program.  @stop_s: for so many seconds the fabric is
    stopped while the programs connect."""

    def __init__(self, f, each=({}, {}), stop_s=0, **env):
        self.both = [start(f, host, [subnet.t.program("steady")], **env, **more)
                     for host, more in zip(("Hca1", "Hca3"), each)]
        said = [self.line(end) for end in self.both]
        if stop_s:
            os.kill(f.pid(), signal.SIGSTOP)
        try:
            for end, line in zip(self.both, reversed(said)):
                self.say(end, line)
            time.sleep(stop_s)
        finally:
            if stop_s:
                os.kill(f.pid(), signal.SIGCONT)
        for end in self.both:
            self.expect(end, "runs")

    @staticmethod
    def say(end, line):
        end.stdin.write(line.encode() + b"\n")
        end.stdin.flush()

    @staticmethod
    def line(end):
        """Returns the next line of the program that is no message of adverb."""
        while True:
            line = end.stdout.readline().decode()
            if not line:
                raise Fail("an end has ended", "")
            if not line.startswith("adverb"):
                return line.strip()

    def expect(self, end, line):
        said = self.line(end)
        expect(said == line, "an end prints \"%s\", not \"%s\"" % (said, line))

    def received(self, i):
        """Returns how many messages the end @i has received."""
        self.say(self.both[i], "count")
        return int(self.line(self.both[i]))

    def goes_on(self):
        """Expects that each end receives 1000 more messages within PATIENCE_S."""
        for i in 0, 1:
            first, end = self.received(i), time.monotonic() + PATIENCE_S
            while self.received(i) < first + 1000:
                expect(time.monotonic() < end, "no messages arrive")
                time.sleep(0.05)

    def pause(self):
        """Stops the messages, and waits until all that were sent are acknowledged."""
        for end in self.both:
            self.say(end, "pause")
        for end in self.both:
            self.expect(end, "paused")

    def close(self):
        for end in self.both:
            end.kill()
            end.communicate()


@contextlib.contextmanager
def ends(f, each=({}, {}), stop_s=0, **env):
    e = Ends(f, each, stop_s, **env)
    try:
        yield e
    finally:
        e.close()
