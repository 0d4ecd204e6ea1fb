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
