#!/usr/bin/env python3
"""Draws the panels of dptrace.json as a picture, from what a running Prometheus answers: docs/monitoring.md.

Usage: packaging/grafana/draw.py PROMETHEUS PICTURE.png [MINUTES]        (PROMETHEUS such as http://127.0.0.1:9090)

It asks exactly the expressions of the panels. Grafana draws them with its own look. It needs Python's matplotlib and Pillow.
"""

import io
import json
import pathlib
import sys
import time
import urllib.parse
import urllib.request
from datetime import datetime, timezone

import matplotlib

matplotlib.use("Agg")
import matplotlib.dates as dates
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter
from PIL import Image

COLUMNS = 24
# Seconds between two values of a line.
STEP = 5
MAX_LEGEND = 8


def short_time(seconds, _=None):
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if abs(seconds) * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns" if seconds else "0"


FORMATS = {
    "s": short_time,
    "percentunit": lambda value, _=None: f"{value * 100:.3g}%",
    "reqps": lambda value, _=None: f"{value:.4g} req/s",
    "cps": lambda value, _=None: f"{value:.4g} c/s",
}


def ask(prometheus, expression, minutes):
    end = time.time()
    values = {"query": expression, "start": end - minutes * 60, "end": end, "step": STEP}
    url = f"{prometheus}/api/v1/query_range?{urllib.parse.urlencode(values)}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def numbers(series):
    return [float(value) for _, value in series["values"]]


def points(series):
    """Returns the times and values of a line, with a break where it has no value."""
    times, values, last = [], [], None
    for at, value in series["values"]:
        if last is not None and at - last > 1.5 * STEP:
            times.append(datetime.fromtimestamp(last + STEP, timezone.utc))
            values.append(float("nan"))
        times.append(datetime.fromtimestamp(at, timezone.utc))
        values.append(float(value))
        last = at
    return times, values


def legend(target, labels):
    text = target["legendFormat"]
    for name in ("instance", "process", "thread", "where", "by", "stage", "subnqn", "hostnqn", "transport", "what", "le"):
        text = text.replace("{{" + name + "}}", labels.get(name, ""))
    text = " ".join(text.split()) or "value"
    return text if len(text) <= 84 else text[:40] + "…" + text[-43:]


def draw_lines(axes, panel, prometheus, minutes):
    unit = FORMATS.get(panel["fieldConfig"]["defaults"].get("unit"), lambda value, _=None: f"{value:.4g}")
    for target in panel["targets"]:
        found = ask(prometheus, filled(target["expr"]), minutes)
        found.sort(key=lambda series: -max(numbers(series)))
        for i, series in enumerate(found):
            text = f"{legend(target, series['metric'])}   last {unit(numbers(series)[-1])}, max {unit(max(numbers(series)))}"
            axes.plot(*points(series), linewidth=1, label=text if i < MAX_LEGEND else None)
        if len(found) > MAX_LEGEND:
            axes.plot([], [], alpha=0, label=f"and {len(found) - MAX_LEGEND} more")
    axes.yaxis.set_major_formatter(FuncFormatter(unit))
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), fontsize=6.5, frameon=False, labelspacing=0.25)


def draw_heatmap(axes, panel, prometheus, minutes):
    (target,) = panel["targets"]
    found = ask(prometheus, filled(target["expr"]), minutes)
    found.sort(key=lambda series: float(series["metric"]["le"]))
    times = sorted({at for series in found for at, _ in series["values"]})
    rows, below = [], dict.fromkeys(times, 0.0)
    for series in found:
        counts = {at: float(value) for at, value in series["values"]}
        rows.append([max(counts.get(at, 0) - below[at], 0) for at in times])
        below = {at: counts.get(at, 0) for at in times}
    where = [datetime.fromtimestamp(at, timezone.utc) for at in times]
    mesh = axes.pcolormesh(where, range(len(rows)), rows, cmap="Oranges", shading="nearest")
    plt.colorbar(mesh, ax=axes, label="requests", pad=0.01)
    names = [float(series["metric"]["le"]) for series in found]
    axes.set_yticks(range(len(rows)), ["longer" if bound == float("inf") else "≤ " + short_time(bound) for bound in names])


def filled(expression):
    return expression.replace("$__rate_interval", "30s").replace("$instance", ".*")


def main():
    prometheus, picture = sys.argv[1:3]
    minutes = float(sys.argv[3]) if len(sys.argv) > 3 else 10
    dashboard = json.loads((pathlib.Path(__file__).parent / "dptrace.json").read_text())
    panels = dashboard["panels"]
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25})
    figure = plt.figure(figsize=(15, height * 0.5))
    for panel in panels:
        place = panel["gridPos"]
        left = place["x"] / COLUMNS + 0.055
        bottom = 1 - (place["y"] + place["h"] * 0.62) / height
        axes = figure.add_axes((left, bottom, place["w"] / COLUMNS - 0.075, place["h"] * 0.52 / height))
        axes.set_title(panel["title"], loc="left", fontsize=10, fontweight="bold")
        draw = draw_heatmap if panel["type"] == "heatmap" else draw_lines
        draw(axes, panel, prometheus, minutes)
        axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100)
    Image.open(drawn).convert("RGB").quantize(128).save(picture, optimize=True)


main()
