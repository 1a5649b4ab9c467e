#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that programs and libraries of Debian that are linked with rdma-core
start on adverb's libraries.

Each ELF file of the packages below that needs one of adverb's libraries, itself
or through another library, is loaded with all symbols bound at once: a program by
its option for help, a library by dlopen.  A file that links a library of an
adapter's vendor is loaded once with adverb's inert library, and once with Debian's
own over adverb's libibverbs.  A package that is neither installed nor unpacked
under --root (as ROOT/PACKAGE/usr/...) is skipped by name."""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from report import LIBRARIES, Report, exported, folders, place

PACKAGES = """
ibverbs-utils perftest rdmacm-utils librdmacm1 infiniband-diags libibmad5
libibnetdisc5 python3-pyverbs qperf ibacm srptools libfabric1 libfabric-bin
libucx0 ucx-utils libopenmpi3 libmpich12 libdapl2 dapl2-utils fio tgt
libiscsi7 librados2 libgloo0 librpma0 opensm libosmvendor5 ibsim-utils
libumad2sim0 mstflint libopamgt0 libopasadb1 opa-address-resolution
opa-fastfabric
""".split()

FACES = LIBRARIES[:3]

# The names of LIBRARIES without `lib` and `.so.N`: `ibverbs` to `hns`.
WORDS = [re.match(r"lib(\w+)\.so", library)[1] for library in LIBRARIES]

# Libraries that ours replace, and providers that only a stock library opens.
NOT_OURS = re.compile(rf"/(lib({'|'.join(WORDS)})\.so|libibverbs/)")

LOADER = "/lib64/ld-linux-x86-64.so.2"
NODE = rf"({'|'.join(WORDS).upper()})_[\w.]+"
REFUSED = re.compile(
    rf"version .?{NODE}.? not found.*|undefined symbol: .*version {NODE}.*|"
    rf"symbol .* version {NODE} not defined in file.*")
# A plugin uses symbols of the program that opens it.
PLUGIN = re.compile(r"undefined symbol: (\w+)")
ABSENT = re.compile(r"(lib\S+): cannot open shared object file|"
                    r"(\S+) => not found")


def is_elf(path):
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def files_of(package, root):
    """Returns the ELF files of a package, or None if the package is neither
    unpacked nor installed."""
    if root and (root / package).is_dir():
        files = (root / package).rglob("*")
    else:
        listing = subprocess.run(["dpkg", "-L", package], text=True,
                                 capture_output=True)
        if listing.returncode:
            return None
        files = map(pathlib.Path, listing.stdout.splitlines())
    return sorted({path for path in files
                   if is_elf(path) and not NOT_OURS.search(str(path))})


def library_folders(root):
    """Returns the folders of the unpacked packages' libraries, which other
    packages need."""
    if not root:
        return []
    return sorted({str(path.parent) for path in root.rglob("*.so*")})


def start(command, env):
    """Returns the exit status and the error output.  A program that still runs
    after ten seconds has started, and counts as status 0."""
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen(
            command, env=env, cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True, text=True, errors="replace")
        try:
            error = child.communicate(timeout=10)[1]
            return child.returncode, error
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return 0, child.communicate()[1]


def trace(path, env):
    """Returns {library: its path, or "not found"} as the loader finds them, and
    the loader's output.

    The loader binds every symbol and runs no code of the program."""
    env = dict(env, LD_TRACE_LOADED_OBJECTS="1", LD_WARN="1")
    run = subprocess.run([LOADER, path], env=env, text=True,
                         capture_output=True)
    text = run.stdout + run.stderr
    return dict(re.findall(r"(\S+) => (\S+|not found)", text)), text


def dlopen_command(path, lib, names):
    """Returns the command of a process that loads a library, and that fails if
    the loader took a stock library instead of one of ours."""
    script = ("import ctypes,os,sys\n"
              "ctypes.CDLL(sys.argv[1])\n"
              "ours = [os.path.realpath(path) for path in sys.argv[2:]]\n"
              "names = [os.path.basename(path) for path in sys.argv[2:]]\n"
              "for line in open('/proc/self/maps'):\n"
              "    path = line.split()[-1]\n"
              "    if os.path.basename(path).startswith(tuple(names)) and "
              "path not in ours:\n"
              "        sys.exit('loaded ' + path)\n")
    return [sys.executable, "-c", script, str(path),
            *(str(place(lib, name)) for name in names)]


def verdict(status, error, is_library):
    """Returns why the file did not start, or ""."""
    if refused := REFUSED.search(error):
        return refused[0].strip()
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    if is_library and status and not PLUGIN.search(error):
        return error.strip().splitlines()[-1]
    return ""


def judge_patterns(report, lib):
    """Checks that NODE matches each version node of our libraries, and that
    NOT_OURS matches each library's file name.  If NODE lacked a node, a program
    that the loader refuses for this node would pass.  If NOT_OURS lacked a
    library, the stock library would be tested as a program that links ours.
    Only our own libraries use the node ADVERB_1."""
    for library in LIBRARIES:
        nodes = {symbol.split("@")[1]
                 for symbol in exported(place(lib, library))}
        strange = sorted(node for node in nodes
                         if not re.fullmatch(NODE + "|ADVERB_1", node))
        if not NOT_OURS.search("/usr/lib/x86_64-linux-gnu/" + library):
            strange.append(library)
        why = "the patterns lack " + " ".join(strange) if strange else ""
        report.judge("patterns know " + library, why)


def judge(report, name, path, lib, env, names):
    """Checks that a file starts, and that the loader takes from @lib those
    libraries of @names that the file needs.  Reports nothing of a file that
    needs none of them."""
    libraries, text = trace(path, env)
    mine = {key: value for key, value in libraries.items() if key in names}
    if not mine:
        return
    foreign = [value for value in mine.values()
               if not value.startswith(str(lib))]
    is_library = ".so" in path.name
    if foreign:
        report.fail(name, "takes " + " ".join(foreign))
    elif refused := REFUSED.search(text):
        report.fail(name, refused[0].strip())
    elif absent := ABSENT.search(text):
        report.skip(name, f"needs {absent[1] or absent[2]}, not installed")
    else:
        command = dlopen_command(path, lib, names) if is_library else [
            str(path), "--help"]
        report.judge(name, verdict(*start(command, env), is_library))


def judge_own(report, name, path, lib, env):
    """Checks a file with Debian's own vendor libraries over our libibverbs, if
    the file links a vendor library."""
    libraries, _ = trace(path, env)
    if set(libraries) & set(LIBRARIES[len(FACES):]):
        judge(report, name + ", vendors' own libraries", path, lib, env, FACES)


def main():
    arg = argparse.ArgumentParser(description=__doc__)
    arg.add_argument("--lib", type=pathlib.Path,
                     help="folder of our libraries")
    arg.add_argument("--packages", action="store_true",
                     help="name the packages, start nothing")
    arg.add_argument("--root", type=pathlib.Path,
                     help="folder of unpacked packages")
    options = arg.parse_args()
    if options.packages:
        print("\n".join(PACKAGES))
        return
    if not options.lib:
        arg.error("--lib is missing")
    lib = options.lib.resolve()
    env = dict(os.environ, LD_BIND_NOW="1", ADVERB_EXPLAIN="0")
    ours, own = (dict(env, LD_LIBRARY_PATH=":".join(
        first + library_folders(options.root)))
        for first in (folders(lib), [str(lib)]))
    report = Report()
    judge_patterns(report, lib)
    for package in PACKAGES:
        files = files_of(package, options.root)
        if files is None:
            report.skip(package, "not installed")
            continue
        for path in files:
            name = f"{package} {path.name}"
            judge(report, name, path, lib, ours, LIBRARIES)
            judge_own(report, name, path, lib, own)
    report.finish()


if __name__ == "__main__":
    main()
