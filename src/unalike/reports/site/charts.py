"""Vega-Lite charts of the report page, and the JavaScript library that draws them."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from unalike.errors import require
from unalike.files import write_cache
from unalike.reports.site.documents import Document
from unalike.system import cache_dir

if TYPE_CHECKING:
    import altair as alt


FAMILIES = (
    "row-wise",
    "message passing",
    "after training",
    "closed form",
    "not implemented",
)
"""Families of methods; the style sheet has a colour for each, in this order."""
ACCENT, INK, MUTED, LINE, PAGE = (
    f"var(--{name})" for name in ("accent", "ink", "muted", "line", "page")
)
"""Colours of the style sheet, so that charts follow the light and the dark theme."""
FONT = 'system-ui, "Segoe UI", "Helvetica Neue", "Noto Sans", sans-serif'
CONFIG: Document = {
    "aria": False,
    "background": "transparent",
    "font": FONT,
    "padding": 2,
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "grid": False,
        "gridColor": LINE,
        "labelColor": MUTED,
        "labelFontSize": 12,
        "labelPadding": 5,
        "tickColor": LINE,
        "tickSize": 5,
        "titleColor": MUTED,
        "titleFontSize": 12,
        "titleFontWeight": 400,
        "titlePadding": 8,
    },
    "text": {"font": FONT, "fontSize": 12},
}
"""What all charts share."""
MAX_LABELLED_CLASSES = 20
MAX_WRITTEN_CLASSES = 7
"""Heat maps of more classes have no numbers in their cells."""
PIXELS_PER_DECADE = 75
"""A logarithmic axis has labels at 2 and 5 where a decade is longer."""
NOTICE = (
    "/* Vega, Vega-Lite and Vega-Embed: https://vega.github.io, BSD-3-Clause license, "
    "bundled by vl-convert. */\n"
)
MISSING = "The report needs Altair and vl-convert"


@cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that defines `vegaEmbed`."""
    # The names of the bundle stay inside a function, apart from those of the page.
    return f"{NOTICE}(() => {{\n{_bundle()}\n}})();\n"


def _bundle() -> str:
    """The bundle that vl-convert makes in seconds, from the cache where it is there."""
    vl_convert, lite = require("vl_convert", "report", MISSING), vega_lite_version()
    name = f"vl-convert-{version('vl-convert-python')}-vega-lite-{lite}.js"
    path = cache_dir() / "report" / name
    if path.is_file():
        return path.read_text("utf-8")
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", lite)
    write_cache(path, bundle)
    return bundle


def load_altair() -> Any:
    """Altair, which is an optional dependency."""
    return require("altair", "report", MISSING)


def vega_lite_version() -> str:
    """The version of Vega-Lite that Altair writes, as vl-convert names it."""
    return ".".join(load_altair().SCHEMA_VERSION.lstrip("v").split(".")[:2])


@cache
def charts_document() -> Document:
    """The specifications of all charts; the page adds the data and the parameters."""
    alt = load_altair()
    charts = {
        "curves": curves(alt),
        "confusion": confusion(alt),
        "reliability": reliability(alt),
        "sensitivity": sensitivity(alt),
        "compatibility": compatibility(alt),
        "degrees": degrees(alt),
        "cost_time": cost(alt, "seconds", "time of a run, seconds"),
        "cost_memory": cost(alt, "memory_mb", "peak memory, MB"),
    }
    specs = {name: _spec(chart) for name, chart in charts.items()}
    return {"config": CONFIG, "specs": specs}


def _spec(chart: Any) -> Document:
    sized = chart.properties(
        width="container",
        height="container",
        autosize={"type": "fit", "contains": "padding"},
    )
    spec: Document = sized.to_dict()
    return {key: value for key, value in spec.items() if key != "config"}


def curves(alt: Any) -> alt.LayerChart:
    """A value by epoch, a line for each split."""
    nearest = _nearest(alt, encodings=["x"], empty=False)
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X(
            "epoch:Q",
            title="epoch",
            scale=alt.Scale(nice=False),
            axis=alt.Axis(tickMinStep=1),
        )
    )
    lines = base.mark_line(strokeWidth=1.25, strokeOpacity=0.8).encode(
        y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=_grid(alt)),
        color=alt.Color(
            "split:N", sort=None, legend=None, scale=alt.Scale(scheme="observable10")
        ),
    )
    epochs = (
        base.transform_pivot("split", value="value", groupby=["epoch"])
        .mark_rule(color=MUTED, tooltip=alt.TooltipContent("data"))
        .encode(opacity=alt.when(nearest).then(alt.value(0.5)).otherwise(alt.value(0)))
        .add_params(nearest)
    )
    return lines + epochs


def confusion(alt: Any) -> alt.LayerChart:
    """Test nodes by class and prediction, shaded by the fraction of the class."""
    rotated = "longest_label * length(classes) * 7 > width"
    params = [
        alt.param(name="classes", value=[]),
        alt.param(name="longest_label", value=1),
    ]
    labels = {
        "labelExpr": f"length(classes) > {MAX_LABELLED_CLASSES} ? '' : datum.label",
        "labelLimit": 90,
        "ticks": False,
    }
    angle = {
        "labelAngle": alt.expr(f"{rotated} ? -45 : 0"),
        "labelAlign": alt.expr(f"{rotated} ? 'right' : 'center'"),
        "labelBaseline": alt.expr(f"{rotated} ? 'middle' : 'top'"),
    }
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=_band(alt, alt.X, "predicted", "predicted class", **labels, **angle),
        y=_band(alt, alt.Y, "true", "class", **labels),
    )
    tooltip = [
        alt.Tooltip("true:N", title="class"),
        alt.Tooltip("predicted:N", title="predicted"),
        alt.Tooltip("count:Q", title="test nodes", format=","),
        alt.Tooltip("fraction:Q", title="fraction of the class", format=".1%"),
    ]
    correct = base.transform_filter("datum.true === datum.predicted").mark_rect(
        filled=False, stroke=MUTED, strokeWidth=1
    )
    written = base.transform_filter(f"length(classes) <= {MAX_WRITTEN_CLASSES}")
    text = (
        written.transform_calculate(
            text="datum.count ? [format(100 * datum.fraction, '.0f') + ' %', "
            "format(datum.count, datum.count < 10000 ? ',' : '.3~s')] : '0'"
        )
        .mark_text(fontSize=11.5, lineHeight=15, dy=alt.expr("datum.count ? -7 : 0"))
        .encode(text="text:N", color=_ink(alt, 0.5), tooltip=tooltip)
    )
    return (_cells(alt, base, tooltip) + correct + text).add_params(*params)


def compatibility(alt: Any) -> alt.LayerChart:
    """The fraction of the edges of each class that end in each class."""
    labels = {"labelExpr": "length(classes) > 12 ? '' : datum.label", "ticks": False}
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=_band(alt, alt.X, "to", "to class", labelAngle=0, **labels),
        y=_band(alt, alt.Y, "from", "from class", **labels),
    )
    tooltip = [
        alt.Tooltip("from:O", title="from class"),
        alt.Tooltip("to:O", title="to class"),
        alt.Tooltip("fraction:Q", title="fraction of its edges", format=".3f"),
    ]
    text = (
        base.transform_filter(f"length(classes) <= {MAX_WRITTEN_CLASSES}")
        .transform_calculate(
            text="isValid(datum.fraction) ? "
            "replace(format(datum.fraction, '.2f'), /^0/, '') : '–'"
        )
        .mark_text()
        .encode(text="text:N", color=_ink(alt, 0.55), tooltip=tooltip)
    )
    classes = alt.param(name="classes", value=[])
    return (_cells(alt, base, tooltip) + text).add_params(classes)


def reliability(alt: Any) -> alt.LayerChart:
    """Accuracy by confidence, a dot for each bin of predictions."""
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=_fraction(alt, alt.X, "confidence"), y=_fraction(alt, alt.Y, "accuracy")
    )
    ends = alt.Data(values=[{"at": 0}, {"at": 1}])
    diagonal = (
        alt.Chart(ends)
        .mark_line(color=MUTED, strokeDash=[4, 3], strokeWidth=1.5)
        .encode(x="at:Q", y="at:Q")
    )
    gaps = base.mark_rule(color="var(--family-1)", strokeWidth=2).encode(
        y2="confidence:Q"
    )
    line = base.mark_line(color=ACCENT, strokeOpacity=0.4)
    sizes = alt.Scale(domainMin=0, zero=True, range=[8, 260])
    tooltip = [
        alt.Tooltip("bin:N", title="confidence"),
        alt.Tooltip("nodes:Q", title="test nodes", format=","),
        alt.Tooltip("confidence:Q", title="mean confidence", format=".1%"),
        alt.Tooltip("accuracy:Q", title="accuracy", format=".1%"),
    ]
    dots = base.mark_circle(color=ACCENT, opacity=1).encode(
        size=alt.Size("nodes:Q", legend=None, scale=sizes), tooltip=tooltip
    )
    return gaps + diagonal + line + dots.add_params(_nearest(alt))


def degrees(alt: Any) -> alt.LayerChart:
    """The number of nodes by degree, with the mean over ranges of degrees."""
    x = _logarithmic(alt, alt.X, "degree", "degree")
    y = _logarithmic(alt, alt.Y, "nodes", "nodes", grid=True)
    tooltip = [alt.Tooltip(f"{name}:Q", format=",") for name in ("degree", "nodes")]
    rows, means = (alt.Chart(alt.NamedData(name)) for name in ("rows", "means"))
    dots = rows.mark_circle(color=MUTED, size=9, opacity=0.9)
    line = means.mark_line(color=ACCENT, strokeWidth=2, tooltip=None)
    return dots.encode(x=x, y=y, tooltip=tooltip) + line.encode(x=x, y=y)


def sensitivity(alt: Any) -> alt.LayerChart:
    """Validation scores by the value of a hyperparameter, and the best of each."""
    x = alt.X(
        "value:N",
        title=None,
        axis=alt.Axis(labelAngle=0, labelLimit=90, labelOverlap=True),
        scale=alt.Scale(type="point", padding=0.4, domain=alt.expr("values")),
    )
    y = _score(alt, "valid", "validation score")
    configs = (
        alt.Chart(alt.NamedData("configs"))
        .mark_circle(color=MUTED, size=20, opacity=0.5)
        .encode(x=x, y=y)
    )
    best = alt.Chart(alt.NamedData("rows")).encode(x=x, y=y)
    line = best.mark_line(color=ACCENT, strokeWidth=2)
    tooltip = [
        alt.Tooltip("value:N", title="value"),
        alt.Tooltip("valid:Q", title="validation", format=".2f"),
        alt.Tooltip("test:Q", title="test", format=".2f"),
        alt.Tooltip("configs:Q", title="configurations", format=","),
    ]
    dots = best.mark_circle(color=ACCENT, size=55, opacity=1).encode(tooltip=tooltip)
    values = alt.param(name="values", value=[])
    return (configs + line + dots.add_params(_nearest(alt))).add_params(values)


def cost(alt: Any, field: str, title: str) -> Any:
    """Test scores by a cost of a run."""
    colours = [f"var(--family-{index})" for index in range(len(FAMILIES))]
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=_logarithmic(alt, alt.X, field, title),
        y=_score(alt, "mean", "test score", tickCount=6),
        color=alt.Color(
            "family:N",
            legend=None,
            scale=alt.Scale(domain=list(FAMILIES), range=colours),
        ),
    )
    errors = base.mark_rule(opacity=0.35).encode(y="low:Q", y2="high:Q")
    text = base.mark_text(align="left", dx=9).encode(
        text="method:N", color=alt.value(INK)
    )
    dots = base.mark_circle(size=80, opacity=1).encode(tooltip="lines:N")
    return errors + text + dots.add_params(_nearest(alt))


def _nearest(alt: Any, **options: Any) -> Any:
    return alt.selection_point(
        name="nearest", nearest=True, on="pointermove", clear="pointerout", **options
    )


def _grid(alt: Any, **options: Any) -> Any:
    return alt.Axis(grid=True, ticks=False, **{"tickCount": 5, **options})


def _score(alt: Any, field: str, title: str, **axis: Any) -> Any:
    scale = alt.Scale(zero=False, nice=True)
    return alt.Y(f"{field}:Q", title=title, scale=scale, axis=_grid(alt, **axis))


def _fraction(alt: Any, channel: Any, field: str) -> Any:
    return channel(
        f"{field}:Q",
        title=field,
        scale=alt.Scale(domain=[0, 1]),
        axis=_grid(alt, format="%"),
    )


def _band(alt: Any, channel: Any, field: str, title: str, **axis: Any) -> Any:
    return channel(
        f"{field}:O",
        title=title,
        scale=alt.Scale(
            domain=alt.expr("classes"), paddingInner=0.03, paddingOuter=0.015
        ),
        axis=alt.Axis(**axis),
    )


def _cells(alt: Any, base: Any, tooltip: list[Any]) -> Any:
    shade = alt.Opacity(
        "fraction:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=[0.04, 1])
    )
    return base.mark_rect(color=ACCENT).encode(opacity=shade, tooltip=tooltip)


def _ink(alt: Any, dark: float) -> Any:
    """A text colour that can be read on a cell of any shade."""
    return (
        alt.when(f"datum.fraction > {dark}")
        .then(alt.value(PAGE))
        .when("datum.fraction > 0")
        .then(alt.value(INK))
        .otherwise(alt.value(MUTED))
    )


def _logarithmic(
    alt: Any, channel: Any, field: str, title: str, *, grid: bool = False
) -> Any:
    """A logarithmic axis with labels at powers of ten, and between where they fit."""
    scale = "x" if channel is alt.X else "y"
    decades = f"(log(domain('{scale}')[1] / domain('{scale}')[0]) / LN10)"
    pixels = f"abs(range('{scale}')[1] - range('{scale}')[0])"
    mantissas = f"({pixels} > {PIXELS_PER_DECADE} * {decades} ? [1, 2, 5] : [1])"
    mantissa = "datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9))"
    labelled = f"indexof({mantissas}, round({mantissa})) >= 0"
    number = "format(datum.value, datum.value >= 1000 ? '~s' : '~r')"
    opacity = {"condition": {"test": labelled, "value": 1}, "value": 0}
    return channel(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(
            grid=grid,
            gridOpacity=opacity,
            labelExpr=f"{labelled} ? {number} : ''",
            labelOverlap="greedy",
            labelSeparation=6,
            tickCount=6,
            tickOpacity=opacity,
        ),
    )
