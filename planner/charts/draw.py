"""Charts as pictures without a browser, and the library that draws them in one."""

from __future__ import annotations

import re

from planner.charts.specification import Spec

_CLIP = re.compile(r'(id="|url\(#)(clip\d+)')


def library() -> str:
    """Return vega, vega-lite and vega-embed as one script without dependencies, of the version that altair writes for."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_version()))


def _version() -> str:
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def svg(spec: Spec, prefix: str = "") -> str:
    """Return a chart as SVG, drawn without a browser.

    Parameters
    ----------
    spec : dict
        The chart.
    prefix : str
        What the names of its parts begin with, where several charts stand in one page.
    """
    import vl_convert

    text = str(vl_convert.vegalite_to_svg(spec, vl_version=_version()))
    # The library counts clipping paths through all charts that it draws; counted anew, a chart is the same each time.
    names: dict[str, str] = {}
    return _CLIP.sub(lambda m: m[1] + names.setdefault(m[2], f"{prefix}clip{len(names) + 1}"), text)


def png(spec: Spec, scale: float = 2.0) -> bytes:
    """Return a chart as PNG, drawn without a browser at `scale` times its size."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg(spec), scale=scale))


def versions() -> str:
    """Return the libraries that charts come from, with their versions: with others they may look a little different."""
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in ("altair", "vl-convert-python"))
