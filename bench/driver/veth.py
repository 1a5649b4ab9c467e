# SPDX-License-Identifier: BSD-2-Clause
"""Network namespaces that an ordinary user makes.  A Loopback has lo alone.
A Veth is two namespaces and a veth between them:

    namespace A  10.99.0.1 ---- 10.99.0.2  namespace B
    client                                 server
"""

import shutil
import subprocess
import time

from steps import Where


class Refused(Exception):
    """A network namespace or the veth cannot be made, or the veth gets no
    carrier; the text says which, or names the program that is missing."""


def need_programs():
    for program in "unshare", "nsenter", "ip":
        if not shutil.which(program):
            raise Refused("%s is not installed" % program)


def hold(prefix):
    """Returns a shell that keeps a namespace alive until the shell's input
    ends, and that prints "up" when lo is up.  @prefix: the words that make the
    namespace."""
    return subprocess.Popen(
        [*prefix, "sh", "-c", "ip link set lo up && echo up && read x"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)


def words_before(holder):
    """Returns the words that, before a command, make the command run in the
    holder's network namespace."""
    return ["nsenter", "-t", str(holder.pid), "-U", "-n",
            "--preserve-credentials"]


def let_go(holder):
    holder.stdin.close()
    holder.wait()


class Loopback:
    def __init__(self):
        self.holder = None

    def open(self):
        """Returns the words that, before a command, make the command run in the
        namespace; may raise Refused."""
        need_programs()
        self.holder = hold(["unshare", "-Urn"])
        if self.holder.stdout.readline() != "up\n":
            raise Refused("`unshare -Urn ip link set lo up` fails; run it by "
                          "hand to see why")
        return words_before(self.holder)

    def close(self):
        if self.holder:
            let_go(self.holder)


class Veth:
    def __init__(self, mtu):
        self.mtu = mtu
        self.a = self.b = None

    def _wait_for_namespace(self, holder):
        if holder.stdout.readline() != "up\n":
            raise Refused("this user may not make network namespaces")

    def _wait_for_carrier(self, prefix, name):
        """Waits for state UP, which the kernel sets within about a second."""
        bound = time.monotonic() + 10
        while b"state UP" not in subprocess.run(
                [*prefix, "ip", "-o", "link", "show", name], check=True,
                stdout=subprocess.PIPE).stdout:
            if time.monotonic() > bound:
                raise Refused("%s gets no carrier" % name)
            time.sleep(0.05)

    def open(self):
        """Returns a Where whose client is in A and whose server is in B; may
        raise Refused."""
        need_programs()
        self.a = hold(["unshare", "-Urn"])
        self._wait_for_namespace(self.a)
        self.b = hold(words_before(self.a) + ["unshare", "-n"])
        self._wait_for_namespace(self.b)
        try:
            a, b = words_before(self.a), words_before(self.b)
            mtu = str(self.mtu)
            for command in (
                    a + ["ip", "link", "add", "va", "mtu", mtu, "type",
                         "veth", "peer", "name", "vb", "mtu", mtu, "netns",
                         str(self.b.pid)],
                    a + ["ip", "addr", "add", "10.99.0.1/24", "dev", "va"],
                    b + ["ip", "addr", "add", "10.99.0.2/24", "dev", "vb"],
                    a + ["ip", "link", "set", "va", "up"],
                    b + ["ip", "link", "set", "vb", "up"]):
                subprocess.run(command, check=True,
                               stderr=subprocess.DEVNULL)
            self._wait_for_carrier(a, "va")
            self._wait_for_carrier(b, "vb")
        except subprocess.CalledProcessError as why:
            raise Refused("`%s` fails there" % " ".join(why.cmd)) from why
        return Where("veth%d" % self.mtu, a, b, "10.99.0.2",
                     ["-N", "/proc/%d/ns/net" % self.b.pid, "-A",
                      "10.99.0.1,10.99.0.2"])

    def close(self):
        for holder in (self.b, self.a):
            if holder:
                let_go(holder)
