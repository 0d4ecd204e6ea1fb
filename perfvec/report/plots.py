"""Plots, where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.errors import ConfigError
from perfvec.files import whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COLUMNS = 3
_BINS = 24
_PANEL_INCHES = (4.2, 2.6)
_SQUARE_INCHES = 4.2
_COLORS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
    "#000000", "#98df8a", "#ffbb78", "#9edae5", "#f7b6d2", "#aec7e8",
)  # fmt: skip
_MANY_POINTS = 500
_POINT_SIZE = {False: 24, True: 6}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Histograms of one quantity, over one another.

    Attributes:
        title: What is counted.
        values: By source.
        is_logarithmic: Whether the axis is; values of 0 stand at its left end.
    """

    title: str
    values: Mapping[str, Sequence[float]]
    is_logarithmic: bool = False


def plot_histograms(path: Path, panels: Sequence[Panel]) -> None:
    """Write histograms to a file, whose suffix says which format.

    Raises:
        ConfigError: matplotlib is not installed, or does not know the format.
        FormatError: The folder does not exist.
    """
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure, suffix = _figure(path, (_PANEL_INCHES[0] * columns, _PANEL_INCHES[1] * rows))
    for place, panel in enumerate(panels):
        axes: Any = figure.add_subplot(rows, columns, place + 1)
        _draw(axes, panel)
        if place == 0:
            axes.legend(fontsize=8)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=suffix, dpi=110)


def _figure(path: Path, inches: tuple[float, float]) -> tuple[Any, str]:
    """An empty figure, and the format that the file's suffix says."""
    try:
        from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ConfigError("plots need matplotlib; install it with: pip install 'perfvec[plots]'") from error
    suffix = path.suffix.removeprefix(".")
    figure = Figure(figsize=inches, layout="constrained")
    if suffix not in figure.canvas.get_supported_filetypes():
        raise ConfigError(f"cannot plot to {path}; name it .png, .svg or .pdf")
    return figure, suffix


def _draw(axes: Any, panel: Panel) -> None:
    arrays = {name: np.asarray(values, float) for name, values in panel.values.items()}
    everything = np.concatenate(list(arrays.values()))
    if panel.is_logarithmic:
        positive = everything[everything > 0]
        low, high = (positive.min(), positive.max()) if positive.size else (1.0, 10.0)
        edges = np.geomspace(low, max(high, low * 1.01), _BINS)
        axes.set_xscale("log")
    else:
        edges = np.linspace(everything.min(), max(everything.max(), everything.min() + 1e-9), _BINS)
    for name, values in arrays.items():
        shown = np.clip(values, edges[0], edges[-1])
        axes.hist(shown, edges, weights=np.full(len(shown), 1 / max(len(shown), 1)), label=name, histtype="step")
    axes.set_title(panel.title, fontsize=9)
    axes.tick_params(labelsize=7)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """Points in a plane, coloured by group.

    Attributes:
        title: Above it.
        axes: What the two axes are.
        groups: Points `(n, 2)` by the group's name, in the order of the legend.
        names: Places of points that are called by their names.
        background: The group that the others are seen before, small and grey; "" for none.
    """

    title: str
    axes: tuple[str, str]
    groups: Mapping[str, NDArray[np.float64]]
    names: Mapping[str, tuple[float, float]]
    background: str = ""


def plot_maps(path: Path, maps: Sequence[Map], *, inches: tuple[float, float] = (5.6, 4.6)) -> None:
    """Write maps side by side to a file, whose suffix says which format. Each has at most 16 groups in colour.

    Args:
        path: Where to.
        maps: One or more.
        inches: Width and height of each.

    Raises:
        ConfigError: matplotlib is not installed, or does not know the format.
        FormatError: The folder does not exist.
    """
    figure, suffix = _figure(path, (inches[0] * len(maps), inches[1]))
    for place, drawn in enumerate(maps, start=1):
        axes: Any = figure.add_subplot(1, len(maps), place)
        large = _POINT_SIZE[sum(map(len, drawn.groups.values())) > _MANY_POINTS]
        colors = iter(_COLORS)
        for name, points in drawn.groups.items():
            is_behind = name == drawn.background
            color, size = ("#c0c0c0", 5) if is_behind else (next(colors), large)
            axes.scatter(points[:, 0], points[:, 1], s=size, color=color, linewidths=0, label=f"{name} ({len(points)})")
        for name, (x, y) in drawn.names.items():
            axes.annotate(name, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=6)
        axes.set_title(drawn.title, fontsize=9)
        axes.set_xlabel(drawn.axes[0], fontsize=8)
        axes.set_ylabel(drawn.axes[1], fontsize=8)
        axes.tick_params(labelsize=7)
        axes.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=suffix, dpi=100)


def plot_scatter(
    path: Path, measured_s: NDArray[np.float64], predicted_s: Mapping[str, NDArray[np.float64]], *, title: str
) -> None:
    """Write predicted over measured times to a file, a panel for each predictor.

    Args:
        path: Where to; the suffix says which format.
        measured_s: Times, `(N,)`.
        predicted_s: Times `(N,)` by the predictor's name.
        title: Above the panels.

    Raises:
        ConfigError: matplotlib is not installed, or does not know the format.
        FormatError: The folder does not exist.
    """
    figure, suffix = _figure(path, (_SQUARE_INCHES * len(predicted_s), _SQUARE_INCHES))
    for place, (name, values) in enumerate(predicted_s.items(), start=1):
        axes: Any = figure.add_subplot(1, len(predicted_s), place)
        ends = np.array([min(measured_s.min(), values.min()), max(measured_s.max(), values.max())]) * 1e6
        axes.loglog(measured_s * 1e6, values * 1e6, ".", markersize=2, alpha=0.5)
        axes.loglog(ends, ends, "-", linewidth=1, color="black")
        axes.set_xlabel("measured, µs")
        axes.set_ylabel("predicted, µs")
        axes.set_title(name, fontsize=9)
    figure.suptitle(title, fontsize=10)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=suffix, dpi=110)
