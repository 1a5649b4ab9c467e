#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `adverb install` and `adverb uninstall` on small root file systems, as an
ordinary user."""

import difflib
import fcntl
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(1, sys.path[0] + "/../lib")

from system import HANG, ROOT, Fail, Skip, Suite, await_output, expect

suite = Suite(__doc__)
LIB = "usr/local/lib/adverb"
VENDORS = re.compile(r"/lib(mlx4|mlx5|efa|mana|hns)\.so")
COUNT = 0


def libraries(program):
    """Returns the files that the loader loads for a program, and the loader."""
    said = subprocess.run(["ldd", program], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return re.findall(r"(/\S+) \(", said)


class Root:
    """A root file system with some programs and their libraries; it has the
    libraries of adapters' vendors only if @vendors.  The files may come from
    the folder in which ci/setup has unpacked them."""

    def __init__(self, *programs, vendors=False):
        global COUNT
        COUNT += 1
        self.path = suite.path("root%d" % COUNT)
        for name in programs or ["ibv_devices"]:
            suite.need(name)
            program = shutil.which(name)
            self.add(program, "/usr/bin/" + name)
            for library in libraries(program):
                if vendors or not VENDORS.search(library):
                    self.add_library(library)
        self.text("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        self.text("etc/ld.so.conf.d/x.conf", "/lib/x86_64-linux-gnu\n"
                  "/usr/lib/x86_64-linux-gnu\n")
        for folder in "proc", "tmp", "dev", "sys":
            os.mkdir(self.at(folder))
        for folder, _, _ in os.walk(self.path):
            os.chmod(folder, 0o777)

    def at(self, path):
        return os.path.join(self.path, path.lstrip("/"))

    def add(self, path, to):
        os.makedirs(os.path.dirname(self.at(to)), exist_ok=True)
        shutil.copy(path, self.at(to))

    def add_library(self, path):
        self.add(path, path if path.startswith(("/lib", "/usr"))
                 else "/usr/lib/" + os.path.basename(path))

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

    def inside(self, *argv, **env):
        """Runs a program in this root, and returns the Result."""
        return suite.run(["unshare", "-Urm", "sh", "-c",
                          'for f in proc dev sys; do mount --rbind /$f "$0/$f" '
                          '|| exit; done; exec chroot "$0" "$@"', self.path,
                          *argv], **env)

    def first(self, library):
        """Returns the file that the loader's cache has first for @library, or
        None."""
        said = suite.run(["/sbin/ldconfig", "-r", self.path, "-p"]).output
        found = re.findall(r"%s .* => (\S+)" % re.escape(library), said)
        return found[0] if found else None


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


def ours_come_first_without_a_version():
    """NCCL opens libibverbs.so.  The root has the link of a development package."""
    root = Root()
    suite.run(["/sbin/ldconfig", "-r", root.path])
    theirs = root.first("libibverbs.so.1")
    link = root.at(theirs.lstrip("/")[:-2])
    if not os.path.lexists(link):
        os.symlink("libibverbs.so.1", link)
    suite.run(["/sbin/ldconfig", "-r", root.path])
    expect(root.first("libibverbs.so") == theirs[:-2],
           "the loader does not find the development package's link")
    before = root.files()
    root.adverb("install")
    expect(root.first("libibverbs.so") == "/%s/libibverbs.so" % LIB and
           os.path.realpath(root.at(LIB + "/libibverbs.so")) ==
           os.path.realpath(root.at(LIB + "/libibverbs.so.1")),
           "the loader finds %s first" % root.first("libibverbs.so"))
    root.adverb("install")
    root.adverb("uninstall")
    expect(root.files() == before, "uninstall leaves other files")


def a_program_inside_sees_the_device():
    namespaces()
    root = Root()
    r = root.inside("/usr/bin/ibv_devices")
    expect("adv0" not in r.output, "adv0 is there before the installation", r)
    root.adverb("install")
    r = root.inside("/usr/bin/ibv_devices")
    expect(r.status == 0 and "adv0" in r.output,
           "the program does not see adv0", r)
    r = root.inside("/usr/local/bin/adverb", "run", "--",
                    "/usr/bin/ibv_devices")
    expect(r.status == 0 and "adv0" in r.output,
           "under adverb run the program does not see adv0", r)


def vendors_libraries(folder, conf, later):
    """A vendor's library in @folder comes before adverb's substitute, whether
    the vendor's library is installed before or after adverb (@later).  Until the
    system has the vendor's library, the loader finds the substitute.  @conf: whether
    the loader's configuration names folders."""
    root = Root("ib_write_bw", vendors=True)
    own = [path for path in root.files() if VENDORS.search(path)]
    expect(own, "ib_write_bw links no vendor's library")
    if not conf:
        os.remove(root.at("etc/ld.so.conf.d/x.conf"))
    place = root.path + folder
    os.makedirs(place, exist_ok=True)
    os.chmod(place, 0o777)
    aside = suite.path("aside%d" % COUNT)
    os.mkdir(aside)
    os.chmod(aside, 0o777)
    for path in own:
        shutil.move(root.at(path), aside)
    if later:
        root.adverb("install")
    for path in own:
        name = os.path.basename(path)
        if later:
            found = root.first(name)
            expect(found and found.startswith("/%s/vendor/" % LIB),
                   "adverb has no substitute for " + name)
        shutil.copy(os.path.join(aside, name), place)
    if later:
        suite.run(["/sbin/ldconfig", "-r", root.path])
    else:
        root.adverb("install")
    for path in own:
        found = root.first(os.path.basename(path))
        expect(found and not found.startswith("/" + LIB),
               "the loader finds %s first" % found)
    expect(root.first("libibverbs.so.1") == "/%s/libibverbs.so.1" % LIB,
           "the loader does not find adverb's libibverbs first")


def only_what_the_system_lacks():
    """adverb run adds to LD_LIBRARY_PATH a folder for each vendor's library
    that the system lacks, and none for the others.  ib_write_bw then starts."""
    namespaces()
    for vendors in (), ("efa",), ("efa", "mlx4", "mlx5", "mana", "hns"):
        root = Root("ib_write_bw", "sh", vendors=True)
        shell = "/usr/bin/sh"
        own = set()
        for path in root.files():
            found = VENDORS.search(path)
            if found and found[1] in vendors:
                own.add(found[1])
            elif found:
                os.remove(root.at(path))
        suite.run(["/sbin/ldconfig", "-r", root.path])
        built = root.at("/opt/build")
        shutil.copytree(suite.build + "/lib", built + "/lib", symlinks=True,
                        ignore=shutil.ignore_patterns("*.p"))
        os.mkdir(built + "/tools")
        for library in libraries(suite.adverb):
            root.add_library(library)
        shutil.copy(suite.adverb, built + "/tools")
        run = ["/opt/build/tools/adverb", "run", "--"]
        r = root.inside(*run, shell, "-c", "echo $LD_LIBRARY_PATH")
        ours = re.findall("/opt/build/lib/vendor/([a-z0-9]+)", r.output)
        wanted = set(os.listdir(built + "/lib/vendor")) - own
        expect(r.status == 0 and sorted(ours) == sorted(wanted),
               "adverb run does not add exactly these: %s" % wanted, r)
        r = root.inside(*run, "/usr/bin/ib_write_bw", "--version")
        expect("Version" in r.output, "ib_write_bw does not start", r)


def expects_of_doctor(root, what):
    r = root.inside("/usr/local/bin/adverb", "doctor")
    expect("other programs: all find /%s " % LIB in r.output and
           what in r.output, "doctor does not say: " + what, r)


def the_shim_is_in_every_program():
    namespaces()
    root = Root("ibv_devinfo", "ls", "env", vendors=True)
    # adverb makes its sysfs tree only in a folder that others cannot write or that
    # is sticky.
    for folder in root.path, root.at("tmp"):
        os.chmod(folder, 0o1777)
    before = root.files()
    root.adverb("install", "--shim")
    look = ["/usr/bin/env", "-i", "ADVERB_RUNTIME=/tmp",
            "/usr/bin/ls", "/sys/class/infiniband"]
    r = root.inside("/usr/bin/ibv_devinfo", ADVERB_RUNTIME="/tmp")
    expect(r.status == 0, "ibv_devinfo finds no device", r)
    r = root.inside(*look)
    expect(r.status == 0 and r.output == "adv0\n", "ls does not see adv0", r)
    expects_of_doctor(root, "see /sys/class/infiniband without adverb run")
    root.adverb("install")
    expects_of_doctor(root, "use `adverb install --shim`")
    expect(not os.path.exists(root.at("etc/ld.so.preload")),
           "an installation without --shim leaves ld.so.preload")
    root.adverb("install", "--shim")
    root.adverb("uninstall")
    left = {path for path in root.files() if not path.startswith("tmp/")}
    expect(left == before, "files differ: %s" % (left ^ before))


def others_preloads_stay():
    """adverb does not change an ld.so.preload that it has not made.  adverb is
    not removed while that file names the shim, since the loader would then
    complain in each program that the shim is missing."""
    root = Root()
    path = root.at("etc/ld.so.preload")
    root.text("etc/ld.so.preload", "/lib/others.so\n")
    said = root.adverb("install", "--shim", status=1)
    expect("somebody else's" in said and "by hand" in said and
           not os.path.exists(root.at(LIB)), said)
    root.adverb("install")
    line = re.search(r"--shim: (/\S+)", said)[1]
    with open(path, "a", encoding="utf-8") as f:
        f.write(line + "\n")
    said = root.adverb("uninstall", status=1)
    expect("take that line out first" in said and
           os.path.exists(root.at(LIB + "/installed")), said)
    root.text("etc/ld.so.preload", "/lib/others.so\n")
    root.adverb("uninstall")
    expect(os.path.exists(path), "adverb has removed another's ld.so.preload")


def a_shim_that_is_named_by_hand_stays():
    """A build without a compiler for 32 bits has no shims for each $PLATFORM.  It does
    not remove those of another build while an ld.so.preload that was written by hand
    names them."""
    built = suite.path("without-platforms")
    shutil.copytree(suite.build + "/lib", built + "/lib", symlinks=True,
                    ignore=shutil.ignore_patterns("*.p", "preload"))
    os.mkdir(built + "/tools")
    shutil.copy(suite.adverb, built + "/tools")
    for name in "tools/adverb-ipoib", "sim", "bench":
        os.symlink(os.path.join(suite.build, name), os.path.join(built, name))

    def install(status):
        r = suite.run([built + "/tools/adverb", "install", root.path])
        expect(r.status == status, "status %d" % r.status, r)
        return r.output

    root = Root()
    root.adverb("install")
    shims = {path for path in root.files() if LIB + "/preload/" in path}
    if not shims:
        raise Skip("this build has no shim for a platform")
    root.text("etc/ld.so.preload",
              "/%s/preload/$PLATFORM/libadverb-shim.so\n" % LIB)
    before = root.files()
    said = install(1)
    expect("lacks a shim" in said and "take that line out first" in said and
           root.files() == before, said)
    root.text("etc/ld.so.preload", "/%s/libadverb-shim.so\n" % LIB)
    install(0)
    expect(root.files() == before - shims, "shims stay that nothing names")


def it_leaves_as_it_came():
    root = Root()
    before = root.files()
    root.adverb("install")
    root.adverb("install")
    expect(LIB + "/installed" in root.files(), "no list of files is installed")
    root.adverb("uninstall")
    expect(root.files() == before, "files differ: %s" % (root.files() ^ before))
    expect(not os.path.exists(root.at(LIB)), "adverb's folder is still there")
    expect("has no adverb" in root.adverb("uninstall", status=1),
           "a second uninstall does not say that there is no adverb")


def a_failure_of_ldconfig_is_told():
    """ldconfig cannot make its new cache: a folder has the name."""
    root = Root()
    blocker = root.at("/etc/ld.so.cache~")
    os.mkdir(blocker)
    said = root.adverb("install", status=1)
    expect("ldconfig -r %s has failed" % root.path in said and
           "programs do not find adverb yet" in said, said)
    os.rmdir(blocker)
    root.adverb("install")
    os.mkdir(blocker)
    said = root.adverb("uninstall", status=1)
    expect("ldconfig -r %s has failed" % root.path in said and
           "the loader's cache still names adverb's files" in said, said)


def a_lack_of_processes_is_told():
    """The user has no further process in which ldconfig could run."""
    root = Root()
    r = suite.run(["prlimit", "--nproc=1", suite.adverb, "install", root.path])
    expect(r.status == 1, "status %d" % r.status, r)
    expect("/usr/sbin/ldconfig cannot be run (Resource temporarily unavailable), "
           "so programs do not find adverb yet; free memory, or raise ulimit -u" in
           r.output, "no sentence names the limit", r)


def the_systems_broker():
    """The system's broker is installed only if --service asks for it, and
    stays when adverb is installed again."""
    namespaces()
    root = Root()
    before = root.files()
    unit = "etc/systemd/system/adverbd.service"
    door = "etc/systemd/system/adverbd.socket"
    account = "etc/sysusers.d/adverb.conf"
    root.adverb("install")
    expect(not {unit, door, account} & root.files(),
           "the system's broker is installed without --service")
    said = root.adverb("install", "--service")
    expect({unit, door, account} <= root.files() and
           "systemctl enable --now adverbd.socket adverbd.service" in said,
           said)
    program = settings(root.at(unit))["Service"]["ExecStart"].split()[0]
    r = root.inside(program, "--version")
    expect(r.status == 0 and r.output.startswith("adverbd "),
           "the unit's program is no adverbd", r)
    with open(root.at(door), encoding="utf-8") as f:
        address = re.search("^ListenSequentialPacket=@adverbd-(.*)$", f.read(),
                            re.M)[1]
    expect("(protocol %s)" % address in r.output,
           "the socket has another address: " + address)
    root.adverb("install")
    expect({unit, door, account} <= root.files(),
           "a new installation has removed the system's broker")
    root.adverb("uninstall", "--service", status=2)
    root.adverb("uninstall")
    expect(root.files() == before, "files differ: %s" % (root.files() ^ before))


def an_edited_unit_keeps_its_socket():
    """A new installation leaves a unit that the administrator has changed, and
    does not remove the other files of the system's broker."""
    root = Root()
    unit = "etc/systemd/system/adverbd.service"
    door = "etc/systemd/system/adverbd.socket"
    account = "etc/sysusers.d/adverb.conf"
    root.adverb("install", "--service")
    root.text(unit, "[Service]\n")
    for _ in range(2):
        root.adverb("install")
        expect({unit, door, account} <= root.files(),
               "a file of the system's broker is gone")
        with open(root.at(unit), encoding="utf-8") as f:
            expect(f.read() == "[Service]\n", "the unit was overwritten")
    expect("somebody else's" in root.adverb("install", "--service", status=1),
           "--service overwrites the unit")
    root.adverb("uninstall")
    expect(not {door, account} & root.files() and unit in root.files(),
           "uninstall leaves other files than the changed one")


def settings(path):
    """Returns the settings of a unit file: {section: {key: value}}."""
    with open(path, encoding="utf-8") as f:
        parts = re.split(r"^\[(\w+)\]$", f.read(), flags=re.M)
    return {name: dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
            for name, text in zip(parts[1::2], parts[2::2])}


# A program with the arguments PROTOCOL COMMAND...  The program runs COMMAND as systemd
# runs the unit, with a listening socket as standard input, and then tries to bind the
# port, as another program would.
AS_THE_UNIT = """
import socket, subprocess, sys

def is_free(family):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        try:
            s.bind(("", 4791))
        except OSError:
            return False
    return True

families = socket.AF_INET, socket.AF_INET6
assert all(is_free(f) for f in families), "the port was taken before"
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.bind(b"\\0adverbd-%s" % sys.argv[1].encode())
door.listen(1)
broker = subprocess.Popen(sys.argv[2:], stdin=door)
caller = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
# The broker closes the connection of a client whose message is not of the
# protocol.  By then the broker has the port.
caller.connect(b"\\0adverbd-%s" % sys.argv[1].encode())
caller.send(b"?")
caller.recv(1)
taken = [not is_free(f) for f in families]
broker.kill()
broker.wait()
print("taken: %s; free again: %s" % (taken, [is_free(f) for f in families]))
"""


def its_unit_holds_the_port():
    """The unit starts the broker at boot, and again whenever the broker has
    ended.  The broker holds the port although no program uses the broker.
    ci/test-recipes tests the unit under systemd itself."""
    suite.need("ip")
    namespaces()
    root = Root()
    root.adverb("install", "--service")
    unit = settings(root.at("etc/systemd/system/adverbd.service"))
    door = settings(root.at("etc/systemd/system/adverbd.socket"))
    wanted = {
        "Unit": {"Requires": "adverbd.socket", "After": "adverbd.socket",
                 "StartLimitIntervalSec": "0"},
        "Service": {"Restart": "always", "RestartSec": "100ms", "User": "adverb",
                    "StandardInput": "socket", "RuntimeDirectory": "adverb",
                    "RuntimeDirectoryPreserve": "yes"},
        "Install": {"WantedBy": "multi-user.target"}}
    for section, lines in wanted.items():
        has = unit.get(section, {})
        for key, value in lines.items():
            expect(has.get(key) == value, "[%s] %s is %s, not %s" % (
                section, key, has.get(key), value))
    expect(door["Install"]["WantedBy"] == "sockets.target",
           "the socket is not started at boot")
    program, *words = unit["Service"]["ExecStart"].split()
    expect("--foreground" in words and "--hold-port" in words, str(words))
    address = door["Socket"]["ListenSequentialPacket"].partition("-")[2]
    r = suite.run(["unshare", "-Urn", "sh", "-c",
                   'ip link set lo up; exec "$@"', "sh", "python3", "-c",
                   AS_THE_UNIT, address, root.at(program), *words])
    expect(r.status == 0 and "taken: [True, True]" in r.output and
           "free again: [True, True]" in r.output,
           "the broker does not hold the port, or does not free it", r)


def its_units_are_those_of_packaging():
    """adverb install writes the same unit and socket files that packaging/
    has."""
    root = Root()
    root.adverb("install", "--service")
    for name in "adverbd.service", "adverbd.socket":
        with open(os.path.join(ROOT, "packaging", name),
                  encoding="utf-8") as f:
            wanted = f.read()
        with open(root.at("etc/systemd/system/" + name),
                  encoding="utf-8") as f:
            put = f.read()
        if put != wanted:
            raise Fail("adverb install writes another file than packaging/%s"
                       % name,
                       "".join(difflib.unified_diff(
                           wanted.splitlines(True), put.splitlines(True),
                           "packaging/" + name, "adverb install --service")))


def systemd_accepts_its_units():
    suite.need("systemd-analyze")
    root = Root()
    root.adverb("install", "--service")
    r = suite.run(["systemd-analyze", "verify", "--root=" + root.path,
                   "--recursive-errors=no", "--man=no",
                   root.at("etc/systemd/system/adverbd.service"),
                   root.at("etc/systemd/system/adverbd.socket")])
    expect(r.status == 0 and "adverbd" not in r.output,
           "systemd-analyze finds a fault in the unit or the socket", r)


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
                   "files differ: %s" % (root.files() ^ before))


def cut(root, command, call, after):
    """Runs adverb under strace, which kills adverb at its @after-th system call
    of the name @call."""
    r = suite.run(["strace", "-qqf", "-o", "/dev/null", "-e",
                   "inject=%s:signal=KILL:when=%d" % (call, after),
                   suite.adverb, command, root.path])
    if "ptrace" in r.output:
        raise Skip("strace may not trace a process here")
    expect("adverb is in" not in r.output,
           "adverb was not killed before its end", r)


def list_of_other_version(root):
    """Changes an installed file, and its line in the list of files, as if
    another version of adverb were installed."""
    name = LIB + "/vendor/efa/libefa.so.1"
    with open(root.at(LIB + "/vendor/mana/libmana.so.1"), "rb") as f:
        other = f.read()
    with open(root.at(LIB + "/installed"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    os.remove(root.at(name))
    with open(root.at(name), "wb") as f:
        f.write(other)
    mana = [line for line in lines if line.endswith("libmana.so.1")][0]
    lines = [mana.replace("mana", "efa") if line.endswith(name) else line
             for line in lines]
    os.remove(root.at(LIB + "/installed"))
    root.text(LIB + "/installed", "\n".join(lines) + "\n")


def two_at_once_both_succeed():
    for _ in range(8):
        root = Root()
        before = root.files()
        both = [suite.start([suite.adverb, "install", root.path])
                for _ in range(2)]
        for r in [suite.finish(p, HANG) for p in both]:
            expect(r.status == 0, "status %d" % r.status, r)
        root.adverb("uninstall")
        expect(root.files() == before, "files differ: %s" % (root.files() ^ before))


def a_run_that_waits_says_so():
    """adverb waits for the lock of the root folder.  Each user who may read the
    folder may take that lock."""
    root = Root()
    fd = os.open(root.path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    process = suite.start([suite.adverb, "install", root.path])
    try:
        await_output(process, 1)
    finally:
        os.close(fd)
    r = suite.finish(process, HANG)
    expect(r.status == 0 and r.output.startswith(
        "adverb: another process has locked the root folder %s, and adverb waits"
        % root.path), "status %d" % r.status, r)


def a_fifo_does_not_stop_it():
    """A FIFO in place of a file is refused.  An open of the FIFO would wait for a
    writer."""
    for path, why in ((LIB + "/libibverbs.so.1", "is somebody else's"),
                      ("etc/ld.so.conf", "does not include")):
        root = Root()
        os.makedirs(os.path.dirname(root.at(path)), exist_ok=True)
        if os.path.exists(root.at(path)):
            os.remove(root.at(path))
        os.mkfifo(root.at(path))
        os.chmod(root.at(path), 0o666)
        r = suite.run([suite.adverb, "install", root.path])
        expect(r.status == 1 and why in r.output,
               "%s: status %d" % (path, r.status), r)


def a_second_one_leaves_the_loaders_file():
    root = Root()
    os.remove(root.at("etc/ld.so.conf"))
    root.adverb("install")
    root.adverb("install")
    expect(os.path.exists(root.at("etc/ld.so.conf")), "ld.so.conf is gone")
    root.adverb("uninstall")
    expect(not os.path.exists(root.at("etc/ld.so.conf")),
           "uninstall leaves the ld.so.conf that install made")


def all_users_can_read_it():
    root = Root()
    before = root.files()
    r = suite.run(["sh", "-c", 'umask 077; exec "$0" install "$1"',
                   suite.adverb, root.path])
    expect(r.status == 0, "status %d" % r.status, r)
    for folder in ("usr/local/bin", LIB, "usr/local/libexec/adverb/bench"):
        while folder != "usr":
            mode = os.stat(root.at(folder)).st_mode & 0o777
            expect(mode & 0o055 == 0o055,
                   "%s has the mode %o" % (folder, mode))
            folder = os.path.dirname(folder)
    # Only the files that adverb has installed are checked: Root has copied the
    # others, with their modes.
    for path in root.files() - before:
        mode = os.stat(root.at(path)).st_mode & 0o777
        wanted = 0o055 if mode & 0o100 else 0o044
        expect(mode & wanted == wanted, "%s has the mode %o" % (path, mode))
    mode = os.stat(root.at("usr/local/bin/adverb")).st_mode & 0o777
    expect(mode & 0o055 == 0o055, "adverb has the mode %o" % mode)


def an_installed_bench_has_all_of_its_files():
    """An installation has the files of the build's folder bench, except for those
    that need MPI and for the archive that the programs were linked with."""
    root = Root()
    root.adverb("install")
    built = os.path.join(suite.build, "bench")
    wanted = {name for name in os.listdir(built)
              if os.path.isfile(os.path.join(built, name))
              and not name.startswith("mpi_") and not name.endswith(".a")}
    found = set(os.listdir(root.at("usr/local/libexec/adverb/bench")))
    expect(wanted == found, "files differ: %s" % sorted(wanted ^ found))
    expect({"__main__.py", "udp_stream"} <= found, "files lack: %s" % found)


def a_dry_run_writes_nothing():
    root = Root()
    before = root.files()
    said = root.adverb("install", "--dry-run")
    expect(root.files() == before and "/libibverbs.so.1" in said, said)


def a_dry_run_names_only_files_that_exist():
    root = Root()
    root.adverb("install")
    gone = "usr/local/lib/adverb/libibverbs.so.1"
    os.remove(root.at(gone))
    said = root.adverb("uninstall", "--dry-run")
    expect("would remove" in said and gone not in said, said)


def a_list_that_is_too_long_changes_nothing():
    root = Root()
    root.adverb("install")
    with open(root.at("usr/local/lib/adverb/installed"), "a",
              encoding="utf-8") as f:
        for i in range(100):
            f.write("00000000 1 usr/local/lib/adverb/more%d\n" % i)
    before = root.files()
    said = root.adverb("uninstall", status=1)
    expect("names more than 64 files" in said, said)
    expect(root.files() == before, "uninstall has removed a file")


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
    expect(os.listdir(outside) == [], "install has written outside the root")
    expect(os.path.exists(root.at(outside + "/adverb/libibverbs.so.1")),
           "the libraries are not where the link leads inside the root")


def strange_roots_are_refused():
    root = Root()
    root.text("lib/ld-musl-x86_64.so.1", "")
    root.adverb("install")
    for folder, _, names in os.walk(root.path):
        if "libc.so.6" in names:
            os.remove(os.path.join(folder, "libc.so.6"))
    expect("musl" in root.adverb("install", status=1),
           "no message names musl")
    r = suite.run([suite.adverb, "install", suite.tmp])
    expect(r.status == 1 and "no loader" in r.output,
           "a folder without a loader is not refused", r)
    r = suite.run([suite.adverb, "install"])
    expect(r.status == 2 and "usage" in r.output,
           "a command without a root is not refused", r)


suite.case("the loader's cache has adverb's libibverbs first", ours_come_first)
suite.case("the loader's cache has adverb's libibverbs.so first",
           ours_come_first_without_a_version)
suite.case("a program in the image sees adv0", a_program_inside_sees_the_device,
           "install", "ibv_devices")
for where, is_named in (("/usr/lib/x86_64-linux-gnu", True),
                        ("/usr/lib", False)):
    for after in False, True:
        suite.case("the loader prefers a vendor's own library in %s that was "
                   "installed %s adverb" %
                   (where, "after" if after else "before"),
                   lambda where=where, is_named=is_named, after=after:
                   vendors_libraries(where, is_named, after))
suite.case("adverb run supplies the libraries that the system lacks",
           only_what_the_system_lacks)
suite.case("--shim shows adverb's sysfs tree to every program",
           the_shim_is_in_every_program)
suite.case("libraries that others preload stay", others_preloads_stay)
suite.case("a shim that is preloaded by hand stays",
           a_shim_that_is_named_by_hand_stays)
suite.case("uninstall leaves the system as it was before", it_leaves_as_it_came)
suite.case("a failure of ldconfig is told", a_failure_of_ldconfig_is_told)
suite.case("a lack of processes for ldconfig is told", a_lack_of_processes_is_told)
suite.case("files of others are not overwritten", others_files_stay)
suite.case("changed files are not removed", changed_files_stay)
suite.case("an installation that was killed can be repeated, and undone",
           one_that_was_ended_is_repeated_or_undone)
suite.case("--service installs the system's broker, its account and its units",
           the_systems_broker)
suite.case("a unit that was changed keeps its socket",
           an_edited_unit_keeps_its_socket)
suite.case("the system's broker has the port from boot on",
           its_unit_holds_the_port)
suite.case("the unit and the socket are those of packaging",
           its_units_are_those_of_packaging)
suite.case("systemd-analyze accepts the unit and the socket",
           systemd_accepts_its_units)
suite.case("two installations at once both succeed", two_at_once_both_succeed)
suite.case("a run that waits for the root's lock says so", a_run_that_waits_says_so)
suite.case("a FIFO in place of a file is refused", a_fifo_does_not_stop_it)
suite.case("a second installation leaves the ld.so.conf of the first",
           a_second_one_leaves_the_loaders_file)
suite.case("all users can read the installed folders and files", all_users_can_read_it)
suite.case("an installed bench has all of its files",
           an_installed_bench_has_all_of_its_files)
suite.case("a dry run writes nothing", a_dry_run_writes_nothing)
suite.case("a dry run names only files that exist",
           a_dry_run_names_only_files_that_exist)
suite.case("uninstall removes nothing if its list of files is too long",
           a_list_that_is_too_long_changes_nothing)
suite.case("absolute links stay inside the root", links_do_not_lead_out)
suite.case("roots without glibc are refused", strange_roots_are_refused)
suite.end()
