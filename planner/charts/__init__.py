"""Charts: a function from a tidy table to an altair specification. Nothing is computed here but where things stand.

Axes label themselves from the name of a column and its unit in ``DataFrame.attrs["units"]``. Colours come with a `Look`, so that one
chart can follow the colours of a page or be drawn for paper. What bounds an operation is told by shape, never by colour alone.
"""

from planner.charts.crossing import crossing_charts, crossing_picture
from planner.charts.draw import library, png, svg, versions
from planner.charts.look import DRAWN_FONT, PAGE, PAGE_FONT, PAPER, Look, Palette, Selection
from planner.charts.roofline import roofline_chart
from planner.charts.specification import Spec
from planner.charts.times import times_chart

__all__ = [
    "DRAWN_FONT",
    "PAGE",
    "PAGE_FONT",
    "PAPER",
    "Look",
    "Palette",
    "Selection",
    "Spec",
    "crossing_charts",
    "crossing_picture",
    "library",
    "png",
    "roofline_chart",
    "svg",
    "times_chart",
    "versions",
]
