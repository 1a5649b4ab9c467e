# SPDX-License-Identifier: BSD-2-Clause
"""Measures adverb, this machine's raw limits and other software in turns.

Every round measures each step, so that a machine that is slow for a while
slows all steps alike.  Figures are medians over the rounds.  Most goals limit
the ratio of two figures; the others limit one figure."""

import argparse
import contextlib
import datetime
import fnmatch
import json
import os
import platform
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import against
import proc
import readme
import report
import steps
import users
import veth


def count(least):
    """Returns a type for argparse: an integer of at least @least."""
    def convert(text):
        try:
            n = int(text)
        except ValueError:
            n = least - 1
        if n < least:
            raise argparse.ArgumentTypeError(
                "'%s' is not an integer of at least %d" % (text, least))
        return n
    return convert


def options():
    p = argparse.ArgumentParser(
        prog="adverb bench", description=__doc__.split("\n\n")[0],
        epilog="More: man adverb-bench")
    p.add_argument("--quick", action="store_true",
                   help="one round, few sizes: under a minute")
    p.add_argument("--rounds", type=count(1), metavar="K",
                   help="measure in K rounds (default 5; with --quick 1)")
    p.add_argument("--retries", type=count(0), metavar="N", default=2,
                   help="repeat a step up to N times while other programs "
                   "keep the cores busy (default 2; never with --quick)")
    p.add_argument("--only", action="append", metavar="PATTERN",
                   help="only steps that match, such as 'adverb write*', "
                   "'*/65536', 'goals', 'mechanisms' or 'iwarp'; may be "
                   "given several times")
    p.add_argument("--list", action="store_true", help="name the steps")
    p.add_argument("--json", metavar="FILE", help="write all figures to FILE")
    p.add_argument("--plots", metavar="DIR", help="write SVG plots to DIR")
    p.add_argument("--docs", metavar="DIR",
                   help="rewrite the figures of DIR/PERFORMANCE.md and "
                   "DIR/../README.md")
    p.add_argument("--from", dest="source", metavar="FILE",
                   help="measure nothing: take the figures of a --json FILE")
    p.add_argument("--check", action="store_true",
                   help="exit 1 if a goal that was measured is missed, if a "
                   "step of adverb failed in any round, or with --against if "
                   "a step is slower")
    p.add_argument("--against", metavar="COMMAND",
                   help="measure adverb's steps in turns with the adverb of "
                   "another build, such as ../old/adverb, and print ratios")
    p.add_argument("--adverb", default=os.environ.get("ADVERB_COMMAND",
                                                      "adverb"),
                   help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.against and (o.plots or o.docs):
        p.error("--plots and --docs show the figures of one build; leave out "
                "--against")
    return o


def wanted(step, patterns):
    if not patterns:
        return True
    for pattern in patterns:
        if pattern == "goals":
            if any(step.key in goal for goal in report.goals.GOALS):
                return True
        elif pattern in ("mechanisms", "iwarp"):
            if report.part_of(step.key) == pattern:
                return True
        elif fnmatch.fnmatch(step.key, pattern) or step.series == pattern:
            return True
    return False


def members(plan):
    """Yields the steps of a plan, whose members Run.order describes."""
    for member in plan:
        yield from [member] if isinstance(member, steps.Step) else member


class NoStep(Exception):
    """A pattern of --only matches no step; the text is the message to the user."""


def no_step(o, pattern, left_out):
    """Returns the message about a @pattern of --only that matches no step."""
    why = ["%s: left out: %s" % item for item in left_out.items()]
    if o.quick:
        why.append("--quick has few steps")
    if o.against:
        why.append("--against compares only the steps of adverb's RoCE devices "
                   "on lo")
    return ("adverb bench: --only '%s' matches neither the key nor the series "
            "of a step%s; the option --list, without --only, names the steps" %
            (pattern, " (%s)" % "; ".join(why) if why else ""))


def select(plan, o, left_out=()):
    """Returns the members of @plan of which a step is wanted.  Raises NoStep if
    a pattern matches no step of the plan; @left_out says which steps the plan
    lacks, and why."""
    for pattern in o.only or ():
        if not any(wanted(step, [pattern]) for step in members(plan)):
            raise NoStep(no_step(o, pattern, dict(left_out)))
    return [member for member in plan
            if any(wanted(step, o.only) for step in members([member]))]


FAILURES = proc.Failed, OSError, ValueError, KeyError, IndexError
ALONE_CORES = 0.15  # other programs that use fewer cores are ignored


class Run:
    def __init__(self, plan, rounds, retries):
        self.retries = retries
        self.plan = plan
        self.rounds = rounds
        self.figures = {}     # key -> {round: figures}
        self.left_out = {}    # series, key, or name of a Where -> why
        self.failed = {}      # key -> {round: why}
        self.began = time.monotonic()
        self.done = 0

    def say(self, step, words):
        total = self.rounds * len(list(self.order(0)))
        self.done += 1
        spent = time.monotonic() - self.began
        left = spent / self.done * (total - self.done)
        print("[%*d/%d, %d:%02d left] %-32s %s" %
              (len(str(total)), self.done, total, left // 60, left % 60,
               step.key, words), file=sys.stderr, flush=True)

    def step(self, step, turn):
        if step.series in self.left_out or step.key in self.left_out:
            return self.say(step, "left out")
        missing = step.missing()
        if missing:
            self.left_out[step.series] = missing + " is not installed"
            return self.say(step, self.left_out[step.series])
        try:
            figures = self.quietest(step, turn)
        except FAILURES as why:
            if isinstance(why, OSError) or turn == 0:
                self.left_out[step.key] = str(why)
            return self.say(step, "no figure: %s" % why)
        self.figures.setdefault(step.key, {})[turn] = figures
        return self.say(step, "  ".join(
            "%s %s" % (report.number(v), report.UNITS[k])
            for k, v in figures.items() if k in report.UNITS) +
            ("  (others: %.1f cores)" % figures["others"]
             if figures["others"] >= ALONE_CORES else ""))

    def quietest(self, step, turn):
        """Runs the step up to 1 + retries times, until a run was nearly alone on
        the machine, or fails.  Returns the figures of the run with the least load
        of other programs.  Raises one of FAILURES if the first run fails.  Adds
        each failure to `failed`."""
        best = None
        for _ in range(1 + self.retries):
            company = proc.Company()
            try:
                figures = step.run()
            except FAILURES as why:
                self.failed.setdefault(step.key, {})[turn] = str(why)
                if best:
                    break
                raise
            figures["others"] = company.cores()
            if not best or figures["others"] < best["others"]:
                best = figures
            if best["others"] < ALONE_CORES:
                break
        return best

    def all(self):
        for turn in range(self.rounds):
            for step in self.order(turn):
                self.step(step, turn)

    def result(self):
        """Returns what the run has found, for a report."""
        return {"rounds": self.rounds, "figures": self.figures,
                "left_out": self.left_out, "failed": self.failed}

    def order(self, turn):
        """Yields the steps of one round.  A member of the plan is a step, or a
        pair of steps, whose order changes from round to round."""
        for member in self.plan:
            if isinstance(member, steps.Step):
                yield member
            else:
                yield from member if turn % 2 == 0 else member[::-1]


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    return " ".join(line.split(":")[1].split())
    except OSError:
        pass
    return platform.machine()


def on_lo(maker, quick):
    return [*steps.points(maker), *steps.curves(maker, quick),
            *steps.same_host(maker, quick),
            *([] if quick else steps.threads(maker))]


def between_users(o, maker, two, left_out):
    """Returns the steps between two users, for which it opens @two.  Returns no
    steps with --quick, or if none is wanted, or if two.open() fails.  In the
    last case @left_out has the reason."""
    if o.quick or not any(wanted(step, o.only) for step in
                          steps.between_users(maker, steps.Where("users"))):
        return []
    where, why = two.open()
    if not where:
        left_out["users"] = why
        return []
    return steps.between_users(maker, where)


def measure(o):
    maker = steps.StepMaker(o.adverb)
    pairs = [] if o.quick else [veth.Veth(1500), veth.Veth(9000)]
    plan = on_lo(maker, o.quick) + (
        [] if o.quick else [*steps.iwarp(maker), *steps.crcs(maker),
                            *steps.sweeps(maker), *steps.subnets(maker),
                            *steps.mechanisms(maker)])
    left_out = {}
    two = users.Users(o.adverb)
    try:
        plan += between_users(o, maker, two, left_out)
        for pair in pairs:
            try:
                where = pair.open()
                plan += [*steps.over(maker, where, pair.mtu),
                         *steps.iwarp_over(maker, where)]
            except veth.Refused as why:
                left_out["veth%d" % pair.mtu] = str(why)
        plan = select(plan, o, left_out)
        if o.list:
            print("\n".join(step.key for step in members(plan)))
            return None
        run = Run(plan, o.rounds or (1 if o.quick else 5),
                  0 if o.quick else o.retries)
        run.left_out.update(left_out)
        run.all()
    finally:
        two.close()
        for pair in pairs:
            pair.close()
    return {**described(), **run.result()}


def described():
    """Returns the day and the machine, for the head of a report."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"date": now.strftime("%Y-%m-%d"), "kernel": platform.release(),
            "cpu": cpu_name(), "cores": len(os.sched_getaffinity(0))}


def measure_both(o):
    """Measures the wanted steps of adverb on loopback with two builds.  Each
    build has a network namespace, and so a broker, of its own."""
    spaces = [veth.Loopback(), veth.Loopback()]
    try:
        new, old = (
            select([step for step in on_lo(
                steps.StepMaker(adverb, space.open()), o.quick)
                    if steps.is_of_adverb(step.key)], o)
            for adverb, space in zip((o.adverb, o.against), spaces))
        if o.list:
            print("\n".join(step.key for step in new))
            return None
        for step in old:
            step.key += against.OTHER
        run = Run(list(zip(new, old)), o.rounds or (1 if o.quick else 5),
                  0 if o.quick else o.retries)
        run.all()
    finally:
        for space in spaces:
            space.close()
    return {**described(), **run.result()}


def adverb_failed(data):
    """Did a step of this build of adverb fail in any round?"""
    return any(steps.is_of_adverb(key) and not key.endswith(against.OTHER)
               for key in data["failed"])


def compare(o):
    """Prints the comparison of two builds; returns the exit status."""
    data = load(o.source) if o.source else measure_both(o)
    if data is None:
        return 0
    rows = list(against.rows(data["figures"]))
    print("\n".join([report.machine(data), "", *report.plain(rows),
                     *report.missing(data)]))
    write_json(data, o.json)
    if len(rows) == 1:
        sys.exit("adverb bench: --against has compared no step: " + (
            "%s has no step with figures of two builds; make the file with "
            "--against and --json" % o.source if o.source else
            "no step has figures of both builds; the lines above say why"))
    return 1 if o.check and (adverb_failed(data) or any(
        row[-1] == against.SLOWER for row in rows[1:])) else 0


class BadFile(Exception):
    """A file cannot be read or written; the text is the message to the user."""


@contextlib.contextmanager
def written(path):
    """Turns an error in writing files at @path into BadFile."""
    try:
        yield
    except OSError as why:
        raise BadFile("adverb bench: cannot write %s: %s" % (
            why.filename or path, why.strerror or why)) from why


def write_json(data, path):
    if path:
        with written(path), open(path, "w", encoding="utf-8") as out:
            json.dump(data, out, indent=1)


def load(path):
    try:
        with open(path, encoding="utf-8") as source:
            data = json.load(source)
        for part in (*described(), "rounds", "left_out"):
            if part not in data:
                raise ValueError("it has no '%s'" % part)
        for part in "figures", "failed":
            data[part] = {key: {int(turn): one for turn, one in rounds.items()}
                          for key, rounds in data.get(part, {}).items()}
    except OSError as why:
        raise BadFile("adverb bench: cannot read %s: %s" % (
            path, why.strerror or why)) from why
    except (ValueError, AttributeError, TypeError) as why:
        raise BadFile("adverb bench: %s is not a file that --json has written: "
                      "%s" % (path, why)) from why
    return data


def main():
    o = options()
    if o.against:
        return compare(o)
    data = load(o.source) if o.source else measure(o)
    if data is None:
        return 0
    report.judge(data)
    print("\n".join(report.show(data)))
    write_json(data, o.json)
    if not data["figures"]:
        sys.exit("adverb bench: no step has a figure; the lines \"left out\" "
                 "say why")
    if o.plots:
        with written(o.plots):
            report.write_plots(data, o.plots)
    if o.docs:
        with written(o.docs):
            report.write_docs(data, o.docs)
            readme.write(data, os.path.join(o.docs, os.pardir, "README.md"))
    missed = [g for g in data["goals"] if g["met"] is False]
    return 1 if o.check and (missed or adverb_failed(data)) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except veth.Refused as why:
        sys.exit("adverb bench: --against needs network namespaces: %s" % why)
    except BadFile as why:
        sys.exit(str(why))
    except NoStep as why:
        print(why, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
