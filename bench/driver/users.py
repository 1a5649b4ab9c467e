# SPDX-License-Identifier: BSD-2-Clause
"""Programs of two users, which only root can start, with one system broker:

    network namespace, lo alone
    root's adverbd --foreground, which owns port 4791
    client: user 65533             server: user 65534

The broker relays each packet to the process of its destination QP, because only
the broker's own user may have a socket of the port (docs/SECURITY.md).
"""

import os
import shutil
import subprocess
import tempfile
import time

import proc
from steps import LOCAL, Where

CLIENT, SERVER = 65533, 65534


def is_root():
    """Can this process become the users CLIENT and SERVER?  Root of a user
    namespace can do so only if the namespace has these user IDs."""
    with open("/proc/self/uid_map", encoding="ascii") as f:
        counts = [int(line.split()[2]) for line in f]
    return os.geteuid() == 0 and sum(counts) > SERVER


def broker_of(adverb):
    """Returns the path of the first adverbd in the folders of the
    LD_LIBRARY_PATH that adverb run sets; None: there is no adverbd there."""
    done = subprocess.run([adverb, "run", "--", "sh", "-c",
                           "echo $LD_LIBRARY_PATH"], check=False,
                          stdout=subprocess.PIPE, text=True)
    for folder in done.stdout.strip().split(":"):
        program = os.path.join(folder, "adverbd")
        if os.access(program, os.X_OK):
            return program
    return None


class Users:
    def __init__(self, adverb):
        self.adverb = adverb
        self.broker, self.home = None, None

    def _prefix(self, user):
        """Returns the words before a command of @user."""
        home = os.path.join(self.home, str(user))
        os.mkdir(home, 0o700)
        os.chown(home, user, user)
        return ["nsenter", "-t", str(self.broker.pid), "-n", "setpriv",
                "--reuid", str(user), "--regid", str(user), "--clear-groups",
                "--no-new-privs", "env", "HOME=" + home,
                "XDG_RUNTIME_DIR=" + home]

    def _listens(self):
        """Does the broker listen in a network namespace of its own?"""
        of = "/proc/%d/" % self.broker.pid
        if os.readlink(of + "ns/net") == os.readlink("/proc/self/ns/net"):
            return False
        with open(of + "net/unix", encoding="ascii") as f:
            return "@adverbd-" in f.read()

    def _wait_for_broker(self):
        bound = time.monotonic() + 10
        # The first poll() keeps _listens from a broker that has ended, of which
        # the files in /proc cannot be read.
        while self.broker.poll() is not None or not self._listens():
            if self.broker.poll() is not None or time.monotonic() > bound:
                raise OSError("adverbd has ended, or is not ready after 10 s")
            time.sleep(0.01)

    def open(self):
        """Returns (a Where, ""), or (None, the reason why there is none)."""
        if not is_root():
            return None, "only root can be two users"
        program = broker_of(self.adverb)
        if not program or not proc.find("setpriv"):
            return None, ("adverbd is not beside adverb's libraries, or setpriv"
                          " is not installed")
        self.home = tempfile.mkdtemp(prefix="adverb-bench-")
        os.chmod(self.home, 0o755)
        self.broker = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"',
             "sh", program, "--foreground", "--idle", "3600"],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wait_for_broker()
        except OSError as why:
            return None, str(why)
        proc.Broker.pid = self.broker.pid
        return Where("users", self._prefix(CLIENT), self._prefix(SERVER),
                     LOCAL, device="lo"), ""

    def close(self):
        proc.Broker.pid = None
        if self.broker:
            self.broker.terminate()
            self.broker.wait()
        if self.home:
            shutil.rmtree(self.home, ignore_errors=True)
