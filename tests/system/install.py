#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""adverb install and uninstall, into small roots, as an ordinary user."""

import os
import re
import shutil
import subprocess

from system import Fail, Skip, Suite, expect

suite = Suite(__doc__)
LIB = "usr/local/lib/adverb"
COUNT = 0


def libraries(program):
    """What the loader would load for it, the loader included."""
    said = subprocess.run(["ldd", program], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return re.findall(r"(/\S+) \(", said)


class Root:
    """A system of ibv_devices, its libraries and nothing else; they may come
    from where ci/setup unpacked them."""

    def __init__(self):
        global COUNT
        COUNT += 1
        self.path = suite.path("root%d" % COUNT)
        suite.need("ibv_devices")
        program = shutil.which("ibv_devices")
        self.add(program, "/usr/bin/ibv_devices")
        for library in libraries(program):
            self.add(library, library if library.startswith(("/lib", "/usr"))
                     else "/usr/lib/" + os.path.basename(library))
        self.text("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        self.text("etc/ld.so.conf.d/x.conf", "/lib/x86_64-linux-gnu\n"
                  "/usr/lib/x86_64-linux-gnu\n")
        os.mkdir(self.at("proc"))
        for folder, _, _ in os.walk(self.path):
            os.chmod(folder, 0o777)

    def at(self, path):
        return os.path.join(self.path, path.lstrip("/"))

    def add(self, path, to):
        os.makedirs(os.path.dirname(self.at(to)), exist_ok=True)
        shutil.copy(path, self.at(to))

    def text(self, path, text):
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        with open(self.at(path), "w", encoding="utf-8") as f:
            f.write(text)

    def files(self):
        return {os.path.relpath(os.path.join(folder, name), self.path)
                for folder, _, names in os.walk(self.path) for name in names
                } - {"etc/ld.so.cache", "var/cache/ldconfig/aux-cache"}

    def adverb(self, *words, status=0):
        r = suite.run([suite.adverb, *words, self.path])
        expect(r.status == status, "status %d" % r.status, r)
        return r.output

    def inside(self, *argv):
        """Runs a program in it."""
        return suite.run(["unshare", "-Urm", "sh", "-c", "mount --rbind /proc "
                          '"$0/proc" && exec chroot "$0" "$@"', self.path,
                          *argv])


def namespaces():
    if suite.run(["unshare", "-Urm", "true"]).status:
        raise Skip("no user namespaces")


def ours_come_first():
    root = Root()
    root.adverb("install")
    said = suite.run(["ldconfig", "-r", root.path, "-p"]).output
    first = re.findall(r"libibverbs\.so\.1 .* => (\S+)", said)
    expect(first and first[0] == "/%s/libibverbs.so.1" % LIB and
           len(first) == 2, "the cache has: %s" % first)


def a_program_inside_sees_the_device():
    namespaces()
    root = Root()
    r = root.inside("/usr/bin/ibv_devices")
    expect("adv0" not in r.output, "it was there before", r)
    root.adverb("install")
    r = root.inside("/usr/bin/ibv_devices")
    expect(r.status == 0 and "adv0" in r.output, "no adv0", r)
    r = root.inside("/usr/local/bin/adverb", "run", "--",
                    "/usr/bin/ibv_devices")
    expect(r.status == 0 and "adv0" in r.output, "adverb run inside", r)


def it_leaves_as_it_came():
    root = Root()
    before = root.files()
    root.adverb("install")
    root.adverb("install")
    expect(LIB + "/installed" in root.files(), "no list")
    root.adverb("uninstall")
    expect(root.files() == before, "left: %s" % (root.files() ^ before))
    expect(not os.path.exists(root.at(LIB)), "its folder stayed")
    expect("has no adverb" in root.adverb("uninstall", status=1), "twice")


def others_files_stay():
    root = Root()
    root.text("usr/local/bin/adverb", "mine\n")
    before = root.files()
    said = root.adverb("install", status=1)
    expect("somebody else's" in said and root.files() == before, said)


def changed_files_stay():
    root = Root()
    root.adverb("install")
    path = "etc/ld.so.conf.d/00-adverb.conf"
    os.remove(root.at(path))
    root.text(path, "# no\n")
    said = root.adverb("uninstall")
    expect("was changed" in said and os.path.exists(root.at(path)) and
           not os.path.exists(root.at(LIB)), said)


def one_that_was_ended_is_repeated_or_undone():
    suite.need("strace")
    for after in (1, 9, 20):
        for old in (False, True):
            root = Root()
            before = root.files()
            if old:
                root.adverb("install")
                list_of_other_version(root)
            cut(root, "install", "renameat", after)
            root.adverb("install")
            cut(root, "install", "renameat", after)
            root.adverb("uninstall")
            expect(root.files() == before,
                   "left: %s" % (root.files() ^ before))


def cut(root, command, call, after):
    """Kills it in the midst."""
    r = suite.run(["strace", "-qqf", "-o", "/dev/null", "-e",
                   "inject=%s:signal=KILL:when=%d" % (call, after),
                   suite.adverb, command, root.path])
    if "ptrace" in r.output:
        raise Skip("no strace here")
    expect("adverb is in" not in r.output, "not ended in the midst", r)


def list_of_other_version(root):
    """Makes what is there an older version, properly installed."""
    name = LIB + "/libefa.so.1"
    with open(root.at(LIB + "/libmana.so.1"), "rb") as f:
        other = f.read()
    with open(root.at(LIB + "/installed"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    os.remove(root.at(name))
    with open(root.at(name), "wb") as f:
        f.write(other)
    mana = [line for line in lines if line.endswith("libmana.so.1")][0]
    lines = [mana.replace("libmana", "libefa") if line.endswith(name) else line
             for line in lines]
    os.remove(root.at(LIB + "/installed"))
    root.text(LIB + "/installed", "\n".join(lines) + "\n")


def two_at_once_both_succeed():
    for _ in range(8):
        root = Root()
        before = root.files()
        both = [suite.start([suite.adverb, "install", root.path])
                for _ in range(2)]
        for r in [suite.finish(p, 60) for p in both]:
            expect(r.status == 0, "status %d" % r.status, r)
        root.adverb("uninstall")
        expect(root.files() == before, "left: %s" % (root.files() ^ before))


def a_second_one_leaves_the_loaders_file():
    root = Root()
    os.remove(root.at("etc/ld.so.conf"))
    root.adverb("install")
    root.adverb("install")
    expect(os.path.exists(root.at("etc/ld.so.conf")), "it is gone")
    root.adverb("uninstall")
    expect(not os.path.exists(root.at("etc/ld.so.conf")), "it stayed")


def all_users_can_read_it():
    root = Root()
    r = suite.run(["sh", "-c", 'umask 077; exec "$0" install "$1"',
                   suite.adverb, root.path])
    expect(r.status == 0, "status %d" % r.status, r)
    for folder in ("usr/local/bin", LIB, "usr/local/libexec/adverb/bench"):
        while folder != "usr":
            mode = os.stat(root.at(folder)).st_mode & 0o777
            expect(mode & 0o055 == 0o055, "%s is %o" % (folder, mode))
            folder = os.path.dirname(folder)


def a_dry_run_writes_nothing():
    root = Root()
    before = root.files()
    said = root.adverb("install", "--dry-run")
    expect(root.files() == before and "/libibverbs.so.1" in said, said)


def links_do_not_lead_out():
    root = Root()
    outside = suite.path("outside")
    os.mkdir(outside)
    os.chmod(outside, 0o777)
    os.makedirs(root.at("usr/local"))
    os.chmod(root.at("usr/local"), 0o777)
    os.makedirs(root.at(outside))
    subprocess.run(["chmod", "-R", "a+rwX", root.path], check=True)
    os.symlink(outside, root.at("usr/local/lib"))
    root.adverb("install")
    expect(os.listdir(outside) == [], "it left the root")
    expect(os.path.exists(root.at(outside + "/adverb/libibverbs.so.1")),
           "not behind the link inside")


def strange_roots_are_refused():
    root = Root()
    root.text("lib/ld-musl-x86_64.so.1", "")
    expect("musl" in root.adverb("install", status=1), "musl")
    r = suite.run([suite.adverb, "install", suite.tmp])
    expect(r.status == 1 and "no loader" in r.output, "no system", r)
    r = suite.run([suite.adverb, "install"])
    expect(r.status == 2 and "usage" in r.output, "no root", r)


suite.case("the loader's cache has ours first", ours_come_first)
suite.case("a program in the image sees adv0", a_program_inside_sees_the_device,
           "install", "ibv_devices")
suite.case("uninstall leaves what was before", it_leaves_as_it_came)
suite.case("files of others are not overwritten", others_files_stay)
suite.case("changed files are not removed", changed_files_stay)
suite.case("one that was ended is repeated, and undone",
           one_that_was_ended_is_repeated_or_undone)
suite.case("two at once both succeed", two_at_once_both_succeed)
suite.case("a second one leaves the loader's file",
           a_second_one_leaves_the_loaders_file)
suite.case("all users can read what is put", all_users_can_read_it)
suite.case("a dry run writes nothing", a_dry_run_writes_nothing)
suite.case("absolute links stay inside the root", links_do_not_lead_out)
suite.case("roots without glibc are refused", strange_roots_are_refused)
suite.end()
