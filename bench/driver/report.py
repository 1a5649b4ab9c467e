# SPDX-License-Identifier: BSD-2-Clause
"""The figures of a run as text, as Markdown and as plots."""

import os
import re

import against
import goals
from plot import number, size_name, svg

# The series of a plot, in the order of the legend.
BW = ["adverb write", "adverb read", "adverb send", "udp shaped",
      "tcp write", "process_vm", "qperf tcp_bw", "iperf3 tcp",
      "ucx tcp tag_bw"]
LAT = ["adverb send_lat", "adverb write_lat", "adverb read_lat",
       "udp polled", "tcp polled", "qperf tcp_lat", "ucx tcp tag_lat",
       "libfabric tcp", "libfabric udp"]
HOST_BW = ["direct write", "direct read", "direct send", "mapped write",
           "mapped read", "adverb write", "process_vm", "process_vm read",
           "ucx cma tag_bw", "ucx posix put_bw", "openmpi vader bw"]
HOST_LAT = ["direct send_lat", "direct write_lat", "direct read_lat",
            "mapped write_lat", "adverb send_lat", "adverb write_lat", "process_vm and poll",
            "shared line", "eventfd", "ucx cma tag_lat", "ucx posix put_lat",
            "libfabric shm",
            "openmpi vader lat"]
# File, title, field, unit, series.
PLOTS = [
    ("bandwidth", "Bandwidth on 127.0.0.1", "GBps", "GB/s", BW),
    ("latency", "Latency on 127.0.0.1", "us", "half a round trip, µs", LAT),
    ("rate", "Message rate on 127.0.0.1", "Mps", "million messages/s", BW),
    ("cpu", "CPU time per byte, client and server", "cpu",
     "CPU seconds per 10^9 bytes", BW),
    ("host-bandwidth", "Bandwidth within a host, with packets and without",
     "GBps", "GB/s", HOST_BW),
    ("host-latency", "Latency within a host, with packets and without", "us",
     "half a round trip, µs", HOST_LAT),
    ("host-rate", "Message rate within a host, with packets and without",
     "Mps", "million messages/s", HOST_BW),
]
UNITS = {"GBps": "GB/s", "us": "µs", "Mps": "M/s", "cpu": "s/GB",
         "s": "s", "MiB": "MiB", "ratio": "times"}


def spread(rounds, field):
    """Returns (least, median, most) of one figure, or None if no round has
    it.  The median is that of goals.median."""
    values = sorted(f[field] for f in rounds.values() if f.get(field))
    if not values:
        return None
    return values[0], goals.median(values), values[-1]


def curves(figures, series, field):
    """Returns {name: {size: spread}} of the series that were measured."""
    found = {name: {} for name in series}
    for key, rounds in figures.items():
        name, size = key.rsplit("/", 1)
        three = spread(rounds, field)
        if name in found and three:
            found[name][int(size)] = three
    return {name: c for name, c in found.items() if c}


def grid(figures, series, field):
    """Yields a table of medians: a row for each size, a column for each
    series."""
    c = curves(figures, series, field)
    sizes = sorted({size for one in c.values() for size in one})
    yield ["size", *c]
    for size in sizes:
        yield [size_name(size)] + [number(one[size][1]) if size in one
                                   else "" for one in c.values()]


def others(figures):
    """Yields a head, and then a row with the median, least and most of each
    figure, CPU times excepted.  Leaves out the series of the plots, except
    "shared line" and "eventfd", which were measured at one size only.  Leaves
    out the series that thread_rows shows and those that match MECHANISM, too."""
    yield ["what", "bytes", "median", "least", "most", "unit"]
    shown = set(BW) | set(LAT) | set(HOST_BW) | \
        set(HOST_LAT) - {"shared line", "eventfd"}
    for key, rounds in figures.items():
        name, size = key.rsplit("/", 1)
        if name in shown or MECHANISM.match(name) or \
                thread_series({key: rounds}):
            continue
        for field, unit in UNITS.items():
            three = spread(rounds, field)
            if three and field != "cpu":
                least, mid, most = map(number, three)
                yield [name, size, mid, least, most, unit]


THREADS = re.compile(r"^(\S+) (\S+) (\d+) (threads|processes)$")


def thread_series(figures):
    """Returns {(path, operation, size, kind): {count: spread of the rate}}."""
    found = {}
    for key, rounds in figures.items():
        name, size = key.rsplit("/", 1)
        words = THREADS.match(name)
        if words and spread(rounds, "Mps"):
            path, operation, count, kind = words.groups()
            found.setdefault((path, operation, int(size), kind), {})[
                int(count)] = spread(rounds, "Mps")
    return found


def thread_rows(figures):
    """Yields a head, and then a row for each path, operation and size: the rate
    of 1, 2 ... threads, and for each number of threads above 1 the ratio to as
    many processes (the median of the rounds' ratios)."""
    found = thread_series(figures)
    counts = sorted({count for rates in found.values() for count in rates})
    yield ["path", "operation", "size", *["%d threads" % c for c in counts],
           *["to %d processes" % c for c in counts if c > 1]]
    for (path, operation, size, kind), rates in found.items():
        if kind != "threads":
            continue
        key = "%s %s %%d %%s/%d" % (path, operation, size)
        ratios = [goals.median(goals.ratios(
            figures, key % (count, "threads"), "Mps",
            key % (count, "processes"))) for count in counts if count > 1]
        yield [path, operation, size_name(size),
               *[number(rates[c][1]) if c in rates else "" for c in counts],
               *["%.2f" % ratio if ratio else "" for ratio in ratios]]


MECHANISM = re.compile(r"^(with|without) (\S+) (.+)$")
PAYS = 1.05  # a mechanism whose ratios are all smaller is not worth its code


def mechanism_rows(figures):
    """Yields a head, and then a row for each figure that was measured with a
    mechanism and without it: the medians, and by how much the mechanism is
    faster (the median, the least and the most of the rounds' ratios)."""
    yield ["mechanism", "figure", "size", "with", "without", "unit", "brings",
           "least", "most", ""]
    for key, rounds in figures.items():
        name, size = key.rsplit("/", 1)
        words = MECHANISM.match(name)
        other = figures.get("without" + key[len("with"):])
        if not words or words[1] != "with" or not other:
            continue
        fields = ["us", "Mps" if int(size) < 4096 else "GBps"]
        for field in fields:
            found = against.compared(*({turn: {field: f.get(field)}
                                        for turn, f in side.items()}
                                       for side in (rounds, other)))
            if not found:
                continue
            mine, others, ratios = found
            middle = goals.median(ratios)
            yield [words[2], words[3], size_name(int(size)),
                   number(goals.median(mine)), number(goals.median(others)),
                   UNITS[field],
                   *("%+.0f %%" % (100 * (f(ratios) - 1))
                     for f in (goals.median, min, max)),
                   "pays" if middle >= PAYS else "under 5 %"]


def verdict(v):
    return {True: "met", False: "missed", None: "not measured"}[v["met"]]


def goal_rows(data):
    yield ["goal", "adverb", "compared with", "ratio", "wanted", ""]
    for v in data["goals"]:
        ours, other = (spread(data["figures"].get(v[which], {}), v["field"])
                       for which in ("ours", "other"))
        yield [v["what"], number(ours[1]) if ours else "",
               number(other[1]) if other else "",
               "%.2f" % v["ratio"] if v["ratio"] is not None else "",
               ("≥ %g" if v["sense"] == ">" else "≤ %g") % v["factor"],
               verdict(v)]


def tables(data):
    """Yields (heading, rows) of each table of the report."""
    figures = data["figures"]
    for _, title, field, unit, series in PLOTS:
        rows = list(grid(figures, series, field))
        if len(rows) > 1:
            yield "%s (%s)" % (title, unit), rows
    rows = list(thread_rows(figures))
    if len(rows) > 1:
        yield "Threads on %d cores (M/s)" % data["cores"], rows
    rows = list(others(figures))
    if len(rows) > 1:
        yield "Single figures", rows
    rows = list(mechanism_rows(figures))
    if len(rows) > 1:
        yield "What each mechanism brings", rows
    rows = list(goal_rows(data))
    if len(rows) > 1:
        yield "Goals", rows


def plain(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(w) if i == 0 else cell.rjust(w)
                 for i, (cell, w) in enumerate(zip(row, widths))]
        yield "  ".join(cells).rstrip()


def markdown(rows):
    yield "| " + " | ".join(rows[0]) + " |"
    yield "|" + "---|" * len(rows[0])
    for row in rows[1:]:
        yield "| " + " | ".join(row) + " |"


def machine(data):
    others = goals.median([f.get("others", 0) for rounds in
                           data["figures"].values() for f in rounds.values()])
    return "%s, Linux %s, %s, %d cores, %d rounds; other programs used %.2f " \
        "cores meanwhile (median)" % (
            data["date"], data["kernel"], data["cpu"], data["cores"],
            data["rounds"], others or 0)


def show(data):
    """Yields the lines for stdout."""
    yield machine(data)
    for heading, rows in tables(data):
        yield ""
        yield heading
        yield from plain(rows)
    yield from missing(data)


def failures(data):
    """Yields (key, text) for each round in which a step failed that has figures of
    other rounds, or of another run in that round."""
    for key, rounds in data["failed"].items():
        if key in data["figures"]:
            for turn, why in rounds.items():
                yield key, "round %d: %s" % (turn + 1, why)


def missing(data):
    """Yields the lines that say which figures are missing, and why."""
    for what, why in data["left_out"].items():
        yield "left out: %s: %s" % (what, why)
    for item in failures(data):
        yield "failed: %s: %s" % item


def write_plots(data, folder):
    os.makedirs(folder, exist_ok=True)
    names = []
    for name, title, field, unit, series in PLOTS:
        drawing = svg(title, unit, curves(data["figures"], series, field))
        if drawing:
            with open(os.path.join(folder, name + ".svg"), "w",
                      encoding="utf-8") as out:
                out.write(drawing)
            names.append((name, title))
    drawing = svg("Threads", "M/s", {
        "%s %s %s, %s" % (path, operation, size_name(size), kind): rates
        for (path, operation, size, kind), rates in
        thread_series(data["figures"]).items()
        if path == "direct" and operation != "read"},
        axis="threads or processes", label=str)
    if drawing:
        with open(os.path.join(folder, "threads.svg"), "w",
                  encoding="utf-8") as out:
            out.write(drawing)
        names.append(("threads", "Threads"))
    return names


def part_of(key):
    """Returns the part of PERFORMANCE.md that shows the step of @key."""
    if key.startswith("crc32"):
        return "crc"
    if key.startswith(("iwarp ", "stream ")):
        return "iwarp"
    return "mechanisms" if MECHANISM.match(key) else "figures"


def part(data, mark):
    """Returns @data with the figures, the steps left out, the failures and the
    goals of one part of PERFORMANCE.md alone."""
    return {**data,
            "figures": {key: rounds for key, rounds in data["figures"].items()
                        if part_of(key) == mark},
            "left_out": {key: why for key, why in data["left_out"].items()
                         if part_of(key) == mark},
            "failed": {key: rounds for key, rounds in data["failed"].items()
                       if part_of(key) == mark},
            "goals": [goal for goal in data["goals"]
                      if part_of(goal["ours"]) == mark]}


def page_part(data, names):
    """Returns the text between the two marks of a part of PERFORMANCE.md."""
    text = ["Measured " + machine(data) + ".", ""]
    order = list(tables(data))
    for heading, rows in order[-1:] + order[:-1]:
        text += ["### " + heading, ""]
        text += ["![%s](perf/%s.svg)\n" % (title, name)
                 for name, title in names if heading.startswith(title)]
        text += list(markdown(rows)) + [""]
    for word, items in (("Left out", data["left_out"].items()),
                        ("Failed", list(failures(data)))):
        if items:
            text += ["%s: %s." % (word, "; ".join(
                "%s (%s)" % item for item in items)), ""]
    return "\n".join(text)


def write_docs(data, folder):
    """Writes the plots, and each part of PERFORMANCE.md for which a figure was
    measured.  A part is the text between two marks."""
    names = write_plots(data, os.path.join(folder, "perf"))
    path = os.path.join(folder, "PERFORMANCE.md")
    with open(path, encoding="utf-8") as page:
        text = page.read()
    for mark in "figures", "crc", "mechanisms", "iwarp":
        one = part(data, mark)
        if one["figures"]:
            text = re.sub(
                r"(<!-- %s: begin -->\n).*(<!-- %s: end -->)" % (mark, mark),
                lambda m, one=one: m[1] + page_part(one, names) + m[2], text,
                flags=re.S)
    with open(path, "w", encoding="utf-8") as page:
        page.write(text)


def judge(data):
    data["goals"] = goals.judge(data["figures"])
