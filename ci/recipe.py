#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ci/recipe.py KIND FILE [NAME [OF]]: prints a recipe as a shell script.

    block FILE NAME   the block after <!-- recipe: NAME --> in a document
    names FILE        the names of a document's blocks
    held FILE NAME OF prints nothing; fails unless the file OF has all lines
                      of the block in the block's order
    image FILE        commands that do to / what COPY, ADD and RUN of a
                      Containerfile do to the root of the image; sources are
                      files of the current folder
    github FILE       the `run:` of a GitHub workflow's jobs
    gitlab FILE       the `script:` of a GitLab pipeline's jobs
    pod FILE          all containers of a pod at once, each as the pod's user,
                      without rights, in PID, mount and UTS namespaces of its
                      own, all with one /dev/shm of 64 MiB
    unit FILE         ExecStart of a systemd unit with the unit's user,
                      variables and limits; if the unit has a socket, ExecStart
                      runs when the first client connects

The scripts of pod and unit run as root in a bare root file system (ci/bare).
recipe.py fails at a key of FILE that it neither applies nor has in a list of keys to
leave out.  It does not look inside a key that it leaves out, nor inside a step that
uses actions/checkout, and of a unit it reads only [Service] and, in the .socket file,
[Socket].
"""

import re
import shlex
import sys

# The keys that recipe.py accepts; YAML reads the key `on` as True.
GITHUB = {"name", "on", "jobs", True}
GITHUB_JOB = {"runs-on", "container", "steps"}
POD = {"restartPolicy", "securityContext", "containers"}
# The securityContext that a pod must have beside its user, and that of each container.
POD_LIMITS = {"runAsNonRoot": True, "seccompProfile": {
    "type": "RuntimeDefault"}}
RESTRICTED = {"allowPrivilegeEscalation": False,
              "readOnlyRootFilesystem": True,
              "capabilities": {"drop": ["ALL"]}}
# The settings of a unit that recipe.py leaves out.
UNIT = re.compile(r"Type|Restart(Sec)?|RuntimeDirectoryPreserve|"
                  r"(Private|Protect|Restrict)\w+|"
                  r"LockPersonality|MemoryDenyWriteExecute|SystemCall\w+|"
                  r"Standard(Output|Error)")
# A unit must have these settings of its rights, which DAEMON applies.
RIGHTS = {"CapabilityBoundingSet": "", "NoNewPrivileges": "yes"}
# ulimit's options.
LETTERS = {"LimitNOFILE": "n", "LimitMEMLOCK": "l"}
LIMIT = "ulimit -%s %s || ulimit -%s hard # this machine's hard limit is lower"
# systemd's own search path.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DAEMON = """
install -d -o %(user)s -g %(user)s -m %(mode)s /run/%(folder)s
(umask %(UMask)s && cd /
%(limits)s
exec %(listen)ssetpriv --reuid=%(user)s --regid=%(user)s --clear-groups \\
	--inh-caps=-all --bounding-set=-all --no-new-privs \\
	env -i PATH=%(path)s %(variables)s %(ExecStart)s) &
"""
# --inetd gives the program the socket as standard input, as StandardInput=socket
# does.
LISTEN = "systemd-socket-activate --inetd --seqpacket --listen=%s "
CONTAINER = """
unshare --pid --mount --uts --fork --kill-child sh -ec '
	mount -t proc proc /proc
	mount -o remount,bind,ro /
	exec "$@"' sh setpriv --reuid=%d --regid=%d --clear-groups \\
	--inh-caps=-all --bounding-set=-all --no-new-privs env HOME=/ %s &
all="$all $!"
"""


def end(why):
    sys.exit("ci/recipe.py: " + why)


def load(path):
    import yaml  # here, because block, names and held do not need yaml
    with open(path, encoding="utf-8") as f:
        return yaml.safe_load(f)


def only(what, given, known):
    strange = set(given) - set(known)
    if strange:
        end("%s has keys that this script does not run: %s" % (
            what, ", ".join(sorted(map(str, strange)))))


def blocks(path):
    """Returns {name: text} of a document's blocks."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    found = re.findall(r"^<!-- recipe: (\S+) -->\n+```\w*\n(.*?)^```$", text,
                       re.M | re.S)
    if len(found) != text.count("<!-- recipe:"):
        end("%s: a recipe comment has no block behind it" % path)
    if len(dict(found)) != len(found):
        end("%s: two recipes of one name" % path)
    return dict(found)


def held(path, name, whole):
    with open(whole, encoding="utf-8") as f:
        lines = iter(f.read().splitlines())
    for line in blocks(path)[name].splitlines():
        if line not in lines:
            end("recipe %s: %s lacks a line, or has it in another place: %s" %
                (name, whole, line))


def image(path):
    with open(path, encoding="utf-8") as f:
        text = f.read().replace("\\\n", " ")
    lines = [line for line in text.splitlines()
             if line.strip() and not line.startswith("#")]
    if not lines[0].startswith("FROM "):
        end("%s does not begin with FROM" % path)
    for line in lines[1:]:
        word, rest = line.split(None, 1)
        if word == "RUN":
            yield "(cd / && %s)" % rest
            continue
        source, to = rest.rsplit(None, 1)
        yield "mkdir -p %s" % to
        if word == "COPY":
            yield "cp %s %s" % (source, to)
        elif word == "ADD":
            yield 'for f in %s; do tar -C %s -xf "$f"; done' % (source, to)
        else:
            end("%s: this script does not run %s" % (path, word))


def github(path):
    flow = load(path)
    only(path, flow, GITHUB)
    for name, job in flow["jobs"].items():
        only(name, job, GITHUB_JOB)
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                continue
            only("a step of " + name, step, {"run"})
            yield step["run"]


def gitlab(path):
    for name, job in load(path).items():
        only(name, job, {"image", "script"})
        yield from job["script"]


def pod(path):
    top = load(path)
    only(path, top, {"apiVersion", "kind", "metadata", "spec"})
    spec = top["spec"]
    only("spec", spec, POD)
    limits = dict(spec["securityContext"])
    user, group = limits.pop("runAsUser"), limits.pop("runAsGroup")
    if limits != POD_LIMITS or user == 0:
        end("%s: the pod's securityContext differs from the one that this "
            "script applies" % path)
    yield "mount -t tmpfs -o mode=1777,size=64m shm /dev/shm\nall="
    for container in spec["containers"]:
        only("a container", container,
             {"name", "image", "args", "securityContext"})
        if container["securityContext"] != RESTRICTED:
            end("%s: container %s's securityContext differs from the one that "
                "this script applies" % (path, container["name"]))
        yield CONTAINER % (user, group, shlex.join(container["args"]))
    yield 'status=0\nfor one in $all; do wait "$one" || status=1; done'
    yield "exit $status"


def settings(path, section):
    """Returns {key: value} of a section of a unit."""
    with open(path, encoding="utf-8") as f:
        text = f.read().split("[%s]\n" % section)[1]
    return dict(re.findall(r"^(\w+)=(.*)$", re.split(r"^\[", text, 1, re.M)[0],
                           re.M))


def listener(path, given):
    """Returns the command that listens at the address of the unit's socket,
    or "" if the unit has no socket."""
    if given.pop("StandardInput", None) != "socket":
        return ""
    socket = settings(re.sub(r"\.service$", ".socket", path), "Socket")
    address = socket.pop("ListenSequentialPacket")
    only("the socket of " + path, socket, {"Backlog"})
    return LISTEN % address


def owner(path, given):
    """Returns the unit's user: an account, or a number of the range from
    which systemd takes dynamic users."""
    if "DynamicUser" in given:
        return "61184"
    if "User" not in given:
        end("%s has neither User= nor DynamicUser=" % path)
    return given["User"]


def unit(path):
    name = re.sub(r".*/|\.service$", "", path)
    given = settings(path, "Service")
    limits = [LIMIT % (LETTERS[key], given.pop(key).replace(
        "infinity", "unlimited"), LETTERS[key]) for key in list(given)
              if key.startswith("Limit")]
    listen = listener(path, given)
    given = {key: value.replace("%t", "/run").replace("%p", name)
             for key, value in given.items() if not UNIT.fullmatch(key)}
    only(path, given, {"ExecStart", "UMask", "Environment", "DynamicUser",
                       "User", "RuntimeDirectory", "RuntimeDirectoryMode",
                       *RIGHTS})
    if any(given.get(key) != value for key, value in RIGHTS.items()):
        end("%s: %s must be as this script applies them" % (
            path, " and ".join(RIGHTS)))
    yield DAEMON % {"limits": "\n".join(limits), **given, "listen": listen,
                    "user": owner(path, given), "path": PATH,
                    "folder": given["RuntimeDirectory"],
                    "mode": given.get("RuntimeDirectoryMode", "0755"),
                    "variables": given.get("Environment", "")}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    kind, path = sys.argv[1:3]
    if kind == "names":
        print("\n".join(blocks(path)))
    elif kind == "block":
        found = blocks(path)
        if sys.argv[3] not in found:
            end("%s has no recipe %s" % (path, sys.argv[3]))
        print(found[sys.argv[3]], end="")
    elif kind == "held":
        held(path, *sys.argv[3:])
    elif kind in ("image", "github", "gitlab", "pod", "unit"):
        print("\n".join(globals()[kind](path)))
    else:
        sys.exit(__doc__)


main()
