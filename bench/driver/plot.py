# SPDX-License-Identifier: BSD-2-Clause
"""Curves as SVG, most of them over the message size.  Both axes are
logarithmic.  At each size of a curve, a vertical line goes from the lowest to
the highest figure of the rounds.  Text is readable on a light and on a dark
background."""

import math
from html import escape

WIDTH, HEIGHT = 860, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 236, 44, 52
# Width and dashes of a curve.  They are attributes, because not every viewer
# reads a style sheet; the style sheet is for a dark background only.
ADVERB, RAW, OTHER = ('stroke-width="3"', 'stroke-width="2" '
                   'stroke-dasharray="6 4"', 'stroke-width="1.5"')
# The colours have a middle brightness, and stand out from white and from black.
COLOURS = ["#2f81f7", "#14998c", "#8957e5", "#d29922", "#e5534b", "#6e7781",
           "#3fa34d", "#c45fb8", "#a0693d", "#5c6bc0", "#7a7a29"]
STYLE = """
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .grid { stroke: #e6edf3; }
}
"""


def size_name(size):
    for unit, name in ((1 << 20, " MiB"), (1 << 10, " KiB")):
        if size >= unit:
            return "%d%s" % (size // unit, name)
    return "%d B" % size


def number(value):
    return "%g" % float("%.3g" % value)


class Axes:
    def __init__(self, sizes, values):
        self.x0, self.x1 = math.log2(min(sizes)), math.log2(max(sizes))
        self.y0 = math.floor(math.log10(min(values)))
        self.y1 = math.log10(max(values) * 1.15)

    def x(self, size):
        span = max(self.x1 - self.x0, 1)
        return LEFT + (math.log2(size) - self.x0) / span * \
            (WIDTH - LEFT - RIGHT)

    def y(self, value):
        span = max(self.y1 - self.y0, 0.5)
        return HEIGHT - BOTTOM - (math.log10(value) - self.y0) / span * \
            (HEIGHT - TOP - BOTTOM)

    def ticks(self):
        """Yields the powers of ten up to the end of the axis.  If the axis spans
        less than a factor of 10000, also yields each power times 2 and times 5."""
        steps = (1, 2, 5) if self.y1 - self.y0 < 4 else (1,)
        for decade in range(self.y0, math.ceil(self.y1) + 1):
            for step in steps:
                value = step * 10.0 ** decade
                if math.log10(value) <= self.y1 + 1e-9:
                    yield value


def line(x1, y1, x2, y2, look):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>' % (
        x1, y1, x2, y2, look)


def grid(x1, y1, x2, y2, opacity=0.18):
    return line(x1, y1, x2, y2, 'class="grid" stroke="#24292f" '
                'stroke-opacity="%g"' % opacity)


def text(x, y, words, anchor="start", size=12):
    return '<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" ' \
        'font-family="system-ui, sans-serif" fill="#24292f">%s</text>' % (
            x, y, anchor, size, escape(words))


def polyline(look, colour, corners):
    return '<polyline fill="none" stroke-linejoin="round" stroke="%s" %s ' \
        'points="%s"/>' % (colour, look, corners)


def frame(axes, sizes, title, unit, axis, label):
    yield text(LEFT, 20, title, size=15)
    for value in axes.ticks():
        y = axes.y(value)
        yield grid(LEFT, y, WIDTH - RIGHT, y)
        yield text(LEFT - 8, y + 4, number(value), "end")
    for size in sizes:
        x = axes.x(size)
        yield grid(x, TOP, x, HEIGHT - BOTTOM)
        yield text(x, HEIGHT - BOTTOM + 18, label(size), "middle")
    yield grid(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, 0.6)
    yield grid(LEFT, TOP, LEFT, HEIGHT - BOTTOM, 0.6)
    yield text(LEFT, HEIGHT - 10, axis)
    yield text(LEFT, TOP - 6, unit)


def curve(axes, index, name, points):
    colour = COLOURS[index % len(COLOURS)]
    look = ADVERB if name.startswith(("adverb", "direct", "mapped")) else \
        RAW if name.startswith(("udp", "tcp", "process_vm",
                                     "shared", "eventfd")) else OTHER
    corners = " ".join("%.1f,%.1f" % (axes.x(size), axes.y(mid))
                       for size, (_, mid, _) in points)
    yield polyline(look, colour, corners)
    for size, (least, _, most) in points:
        x = axes.x(size)
        yield line(x, axes.y(least), x, axes.y(most),
                   'stroke="%s" stroke-opacity="0.6"' % colour)
    y = TOP + 10 + index * 22
    x = WIDTH - RIGHT + 18
    yield polyline(look, colour, "%d,%d %d,%d" % (x, y, x + 30, y))
    yield text(x + 38, y + 4, name)


def svg(title, unit, curves, axis="message size", label=size_name):
    """Returns the SVG document, or None if no value is above 0.  @curves: {name:
    {size: (least, median, most)}}.  @axis is the x axis's title, and @label
    returns the text of a size."""
    curves = {name: c for name, c in curves.items() if c}
    sizes = sorted({size for c in curves.values() for size in c})
    values = [v for c in curves.values() for three in c.values()
              for v in three if v > 0]
    if not values:
        return None
    axes = Axes(sizes, values)
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
             'width="%d" height="%d" role="img">' %
             (WIDTH, HEIGHT, WIDTH, HEIGHT),
             "<title>%s</title>" % escape(title),
             "<style>%s</style>" % STYLE,
             *frame(axes, sizes, title, unit, axis, label)]
    for index, (name, points) in enumerate(curves.items()):
        parts += curve(axes, index, name, sorted(points.items()))
    return "\n".join(parts + ["</svg>", ""])
