# SPDX-License-Identifier: BSD-2-Clause
"""Two builds of adverb in one run: a ratio for each step.

A ratio above 1 means that the adverb of this command is the faster build.  A
step counts as slower, or as faster, if the median of its ratios differs from 1
by more than 3 %, and in at least four of five rounds the ratio is on the
median's side of 1.  A machine whose speed changes between rounds spreads the
figures of both builds, but not their ratios."""

import goals
from plot import number

OTHER = " against"  # added to the key of each step of the other build
SLOWER, FASTER, SAME = "slower", "faster", "within the spread"
# (figure, whether less is better): a step is compared by the first of these
# figures that the step has.
FIELDS = [("us", True), ("s", True), ("GBps", False), ("Mps", False)]


def verdict(ratios):
    """Returns SLOWER, FASTER or SAME for the ratios of all rounds."""
    middle = goals.median(ratios)
    agreed = sum((ratio < 1) == (middle < 1) for ratio in ratios)
    if abs(middle - 1) <= 0.03 or agreed < 0.8 * len(ratios):
        return SAME
    return FASTER if middle > 1 else SLOWER


def compared(new, old):
    """Returns (this build's figures, the other build's figures, ratios) of the
    rounds that both builds have, or None if the builds have no figure in
    common."""
    turns = sorted(set(new) & set(old))
    for field, less_is_better in FIELDS:
        mine, others = ([side[turn][field] for turn in turns
                         if side[turn].get(field)] for side in (new, old))
        if mine and len(mine) == len(others):
            ratios = [b / a if less_is_better else a / b
                      for a, b in zip(mine, others)]
            return mine, others, ratios
    return None


def rows(figures):
    """Yields the table: a head, a row for each step of which compared() finds
    figures of both builds, and the median of the ratios in these rows."""
    yield ["step", "this build", "least", "most", "other build", "least",
           "most", "ratio", ""]
    ratios_of_all = []
    for key, new in figures.items():
        found = compared(new, figures.get(key + OTHER, {}))
        if not found:
            continue
        mine, others, ratios = found
        ratios_of_all.append(goals.median(ratios))
        yield [key, *(number(f(side)) for side in (mine, others)
                      for f in (goals.median, min, max)),
               "%.3f" % ratios_of_all[-1],
               verdict(ratios)]
    if ratios_of_all:
        yield ["median of all ratios", "", "", "", "", "", "",
               "%.3f" % goals.median(ratios_of_all), ""]
