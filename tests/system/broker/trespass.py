#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that adverb neither uses nor changes what another user has put where
adverb looks: folders and links in /tmp, files for captures, an environment.
The cases need two users, so only root can run them; other users skip them."""

import contextlib
import os
import signal
import subprocess
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import system
from system import HANG, expect

ANNA, MALLORY = 65534, 65533

# By these sysctls the kernel protects users' files in /tmp.  The lab sets them to 0,
# so that the cases test adverb's own protection, and restores their values when it
# ends: they are those of the whole machine, since no namespace has its own.
GUARDS = ["fs.protected_symlinks", "fs.protected_regular"]

# The script that sets up the lab, in mount and network namespaces of its own.
# There the folders that all users share are empty; /mnt/build is the build tree;
# /mnt/kept is root's, and its files must stay; /mnt/anna is the victim's.
LAB = """set -e
mount --make-rprivate /
ip link set lo up
mount -t tmpfs lab /mnt
mkdir /mnt/build /mnt/kept /mnt/anna
mount --bind "$1" /mnt/build
echo precious >/mnt/kept/passwd
mkdir /mnt/kept/ssl
chown %d /mnt/anna
mount -t tmpfs -o mode=1777 lab /tmp
mount -t tmpfs -o mode=1777 lab /dev/shm
mount -t tmpfs -o mode=755 lab /run
cd /
N=$(stat -Lc %%i /proc/self/ns/net)
trap 'sysctl -q -w $2 2>/dev/null' EXIT
trap 'exit 1' HUP INT PIPE TERM
sysctl -q -w %s 2>/dev/null || :
as() { # UID COMMAND: runs COMMAND as this user
	who=$1
	shift
	setpriv --reuid "$who" --regid "$who" --clear-groups "$@"
}
evil() { # SCRIPT: runs SCRIPT as the hostile user
	as %d env N="$N" sh -c "umask 0; $1"
}
set +e
""" % (ANNA, " ".join(name + "=0" for name in GUARDS), MALLORY)

# A script that makes a folder of each name that the victim's runtime folder may have
# in /tmp and /dev/shm.  In both places the script runs a command (%s), which puts
# a tree into the last folder.
NAMES = """
for base in /tmp /dev/shm; do
	for s in "" -1 -2 -3 -4 -5 -6 -7 -8 -9 -10 -11 -12 -13 -14 -15; do
		mkdir $base/adverb-$VICTIM$s
	done
	%s
done
"""
LINKED = """ln -s /tmp $base/adverb-$VICTIM-15/sysfs-$N
[ -e /tmp/class ] || { mkdir /tmp/class
ln -s /mnt/kept /tmp/class/infiniband; }"""
FORGED = "mkdir -p $base/adverb-$VICTIM-15/sysfs-$N/class/infiniband/evil0"
LOOK = "/mnt/build/tools/adverb run -- ls /sys/class/infiniband"

t = system.Suite(__doc__)


def guards():
    """Returns those of GUARDS that this kernel has, with their values, as arguments of
    sysctl."""
    found = []
    for name in GUARDS:
        with contextlib.suppress(FileNotFoundError), \
                open("/proc/sys/" + name.replace(".", "/")) as f:
            found.append("%s=%s" % (name, f.read().strip()))
    return found


BEFORE = guards()


def need_root():
    if not system.is_root():
        raise system.Skip("only root can be two users")


def lab(script):
    """Runs @script as root in the lab.  Returns the Result."""
    need_root()
    if subprocess.run(["unshare", "-mn", "true"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        raise system.Skip("no namespaces can be made")
    env = t.environment()
    del env["XDG_RUNTIME_DIR"]
    p = subprocess.Popen(
        ["unshare", "-mn", "sh", "-c", LAB + script, "sh", t.build,
         " ".join(BEFORE)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True, env=env, cwd="/")
    try:
        return t.finish(p, HANG)
    finally:
        # A lab that is killed restores nothing.
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        if guards() != BEFORE:
            subprocess.run(["sysctl", "-q", "-w", *BEFORE], check=True)


def names(victim, what):
    return "VICTIM=%d; export VICTIM; evil '%s'\n" % (victim, NAMES % what)


def is_kept(r):
    expect("kept: passwd ssl precious" in r.output,
           "a file of /mnt/kept is gone, changed or new", r)


KEPT = "echo kept: $(ls /mnt/kept) $(cat /mnt/kept/passwd)\n"


def no_name_left():
    r = lab("mount -o remount,ro /run\n" + names(0, LINKED) + LOOK + "\n" +
            "/mnt/build/tools/adverb run --no-shim -- ibv_devinfo -l\n" + KEPT)
    is_kept(r)
    expect("adv0" in r.output, "no device", r)
    expect("no name from /dev/shm/adverb-0 to" in r.output,
           "no message says that all names are taken", r)


def roots_own_folder():
    r = lab(names(0, LINKED) + LOOK + "\nls -ld /run/adverb-0\n" + KEPT)
    is_kept(r)
    expect(r.output.startswith("adv0\ndrwx------"),
           "root has no tree in a folder of mode 700", r)


def a_forged_tree():
    """A tree that another user has forged is not shown."""
    for victim in 0, ANNA:
        r = lab("mount -o remount,ro /run\n" + names(victim, FORGED) +
                "as %d %s\n" % (victim, LOOK))
        expect("evil0" not in r.output, "the forged tree is shown", r)
        expect("is that of a folder of this user alone" in r.output,
               "no message says that all names are taken", r)


def a_free_name():
    """Anna's folder gets the first of its possible names that no other user has
    taken."""
    r = lab("evil 'mkdir /tmp/adverb-%d; ln -s /mnt/kept /tmp/adverb-%d-1'\n"
            "as %d %s\nls -ld /tmp/adverb-%d-2\n%s" %
            (ANNA, ANNA, ANNA, LOOK, ANNA, KEPT))
    is_kept(r)
    expect(r.output.startswith("adv0\ndrwx------"),
           "Anna has no tree in a folder of mode 700", r)


def another_session():
    """adverb does not use the session folder of another user, which su and
    sudo -E leave in the environment."""
    r = lab("evil 'mkdir -m 700 /tmp/session'\n"
            "export XDG_RUNTIME_DIR=/tmp/session\n" + LOOK +
            "\necho in it: $(ls /tmp/session)\n")
    expect(r.output == "adv0\nin it:\n",
           "there is no tree, or it lies in the other user's folder", r)


def a_folder_that_others_write():
    r = lab("mkdir -m 777 /tmp/open; export ADVERB_RUNTIME=/tmp/open\n"
            "chmod 777 /tmp/open\n" + LOOK + "; ls /tmp/open\n")
    expect("lies in a folder that others can write" in r.output and
           "ADVERB_RUNTIME" in r.output and "adv0" not in r.output,
           "the tree is shown, or no message names the folder", r)


def no_tree_of_ours():
    """A folder that ADVERB_SYSFS names may hold other files, which stay.  A message
    names the folder."""
    r = lab("as %d mkdir -p /mnt/anna/class/infiniband/hers\n"
            "as %d env ADVERB_SYSFS=/mnt/anna %s\n"
            "echo left: $(ls /mnt/anna/class/infiniband)\n" %
            (ANNA, ANNA, LOOK))
    # ls shows the other file: adverb run has come to this folder.
    expect("/mnt/anna contains files that are not adverb's" in r.output and
           r.output.endswith("hers\nleft: hers\n"),
           "the other files are removed, or adverb has not looked there", r)


CAPTURE = ("/mnt/build/tools/adverb run --pcap %s -- "
           "ibv_devinfo -d adv0 2>&1 | grep adverb: \n")


def captures():
    r = lab("evil 'ln -s /mnt/kept/passwd /tmp/a; >/tmp/b; mkfifo /tmp/c; "
            "ln -s /mnt/kept/new /tmp/d; ln -s /mnt/kept /tmp/e; "
            "mkdir /tmp/f'\nln /mnt/kept/passwd /mnt/kept/p\n"
            "mkdir -m 700 /mnt/own; ln -s /mnt/own /tmp/g\n" +
            "".join(CAPTURE % name for name in (
                "/tmp/a", "/tmp/b", "/tmp/c", "/tmp/d", "/tmp/e/new",
                "/tmp/f/new", "/mnt/kept/p", "/tmp/g/new")) +
            "stat -c %a:%u /mnt/own/new\n"
            "rm /mnt/kept/p; echo b: $(wc -c </tmp/b)\n" +
            CAPTURE % "/tmp/mine" + "stat -c %a,%u /tmp/mine\n" + KEPT)
    is_kept(r)
    for name, why in (("/tmp/a", "another user's link"),
                      ("/tmp/b", "another user's file"),
                      ("/tmp/c", ""), ("/tmp/d", "another user's link"),
                      ("/tmp/e/new", "another user's link"),
                      ("/tmp/f/new", "another user's folder"),
                      ("/mnt/kept/p", "")):
        expect(any("cannot write frames to %s: " % name in line and
                   why in line for line in r.output.splitlines()),
               "no message says why %s is refused" % name, r)
    expect("600:0\n" in r.output, "a link of one's own is not followed", r)
    expect("b: 0\n600,0\n" in r.output,
           "another user's file is written, or others can read the capture", r)


OPENS = """
#include <stdio.h>
struct ibv_device;
struct ibv_context;
struct ibv_device **ibv_get_device_list(int *count);
struct ibv_context *ibv_open_device(struct ibv_device *device);
int main(void)
{
	struct ibv_device **list = ibv_get_device_list(0);
	printf("opened %d\\n", list && *list && ibv_open_device(*list));
}
"""


def a_privileged_program():
    """A set-user-ID program loads adverb's libraries, as after adverb install.
    Its environment comes from the caller, so adverb must not write a file that
    a variable names."""
    t.need("gcc")
    r = lab("cat >/mnt/opens.c <<'END'" + OPENS + "END\n"
            "gcc -o /mnt/opens /mnt/opens.c /mnt/build/lib/libibverbs.so.1 "
            "-Wl,-rpath,/mnt/build/lib || exit\n"
            "chmod 700 /mnt/kept; mkdir /mnt/open; chmod 1777 /mnt/open\n"
            "rm -rf /run/adverb-0\n"
            "for mode in 755 4755; do\nchmod $mode /mnt/opens\n"
            "for v in PCAP=/mnt/kept/passwd PCAP=/mnt/kept/new "
            "SYSFS=/mnt/kept/tree RUNTIME=/mnt/kept/run PCAP=/mnt/open/$mode; "
            "do\nevil \"ADVERB_EXPLAIN=0 ADVERB_$v /mnt/opens\"\n"
            "done\ndone\n"
            "echo there: $(ls /mnt/open) $(ls /run)\n" + KEPT)
    is_kept(r)
    expect("there: 755\n" in r.output,
           "the set-user-ID program has written a file", r)
    expect(r.output.count("opened 1") >= 5, "the program opens no device", r)


def guards_are_restored():
    need_root()
    expect(guards() == BEFORE, "%s became %s" % (BEFORE, guards()))


for words, body in (
        ("if others have taken all names, root has no tree and loses no file",
         no_name_left),
        ("root has a folder where no other user can make one",
         roots_own_folder),
        ("a tree that another user made is not shown", a_forged_tree),
        ("a user takes the first name that no other user has", a_free_name),
        ("the session's folder of another user is not used",
         another_session),
        ("a folder that others can write holds no tree",
         a_folder_that_others_write),
        ("other files in the folder of ADVERB_SYSFS stay", no_tree_of_ours),
        ("a capture goes to a file of one's own, and to no link of others",
         captures),
        ("a set-user-ID program writes nothing that its caller names",
         a_privileged_program),
        ("the kernel protects the files in /tmp as before",
         guards_are_restored)):
    t.case(words, body)
t.end()
