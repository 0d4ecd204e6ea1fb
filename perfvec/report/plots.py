"""Plots, where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from perfvec.errors import ConfigError
from perfvec.files import whole_file

_COLUMNS = 3
_BINS = 24
_PANEL_INCHES = (4.2, 2.6)


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
    try:
        from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ConfigError("plots need matplotlib; install it with: pip install 'perfvec[plots]'") from error
    suffix = path.suffix.removeprefix(".")
    rows = -(-len(panels) // _COLUMNS)
    figure = Figure(figsize=(_PANEL_INCHES[0] * _COLUMNS, _PANEL_INCHES[1] * rows), layout="constrained")
    if suffix not in figure.canvas.get_supported_filetypes():
        raise ConfigError(f"cannot plot to {path}; name it .png, .svg or .pdf")
    for place, panel in enumerate(panels):
        axes: Any = figure.add_subplot(rows, _COLUMNS, place + 1)
        _draw(axes, panel)
        if place == 0:
            axes.legend(fontsize=8)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=suffix, dpi=110)


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
