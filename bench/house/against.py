# SPDX-License-Identifier: BSD-2-Clause
"""Two builds of adverb in one run: a ratio for each step.

A ratio above 1 means that the adverb of this command is the faster one.  A
step counts as slower, or as faster, if the median of one build lies outside of
all figures of the other, and the other way round."""

import goals
from plot import number

OTHER = " against"  # follows the key of a step of the other build
SLOWER, FASTER, SAME = "slower", "faster", "within the spread"
# The figures that a step is compared by, the first that the step has; and
# whether less of the figure is better.
FIELDS = [("us", True), ("s", True), ("GBps", False), ("Mps", False)]


def verdict(new, old, less_is_better):
    """@new, @old: the figures of all rounds."""
    middle_new, middle_old = goals.median(new), goals.median(old)
    if min(old) <= middle_new <= max(old) or \
            min(new) <= middle_old <= max(new):
        return SAME
    return FASTER if (middle_new < middle_old) == less_is_better else SLOWER


def compared(new, old):
    """(field, figures of this build, of the other, ratios) of the rounds that
    both have, or None."""
    turns = sorted(set(new) & set(old))
    for field, less_is_better in FIELDS:
        mine, others = ([side[turn][field] for turn in turns
                         if side[turn].get(field)] for side in (new, old))
        if mine and len(mine) == len(others):
            ratios = [b / a if less_is_better else a / b
                      for a, b in zip(mine, others)]
            return less_is_better, mine, others, ratios
    return None


def rows(figures):
    """The table: a row for each step that both builds have run."""
    yield ["step", "this", "least", "most", "other", "least", "most", "ratio",
           ""]
    ratios_of_all = []
    for key, new in figures.items():
        found = compared(new, figures.get(key + OTHER, {}))
        if not found:
            continue
        less_is_better, mine, others, ratios = found
        ratios_of_all.append(goals.median(ratios))
        yield [key, *(number(f(side)) for side in (mine, others)
                      for f in (goals.median, min, max)),
               "%.3f" % ratios_of_all[-1],
               verdict(mine, others, less_is_better)]
    if ratios_of_all:
        yield ["median of all ratios", "", "", "", "", "", "",
               "%.3f" % goals.median(ratios_of_all), ""]
