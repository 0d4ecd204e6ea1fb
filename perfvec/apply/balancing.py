"""Balance corpora: propose launches for times that are rare, and show the histogram before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arch.device import find_device
from perfvec.corpus.balancing import Balance, MeasuredRecipe, balance, evenness
from perfvec.corpus.generated import Corpus
from perfvec.corpus.times import CorpusTimes, times_path
from perfvec.errors import ConfigError
from perfvec.report.plots import Panel, plot_histograms

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """What balancing came to.

    Attributes:
        device: The device's name in tables.
        before_s: Times of the first corpus, outliers included.
        measured_s: Times of all given corpora.
        balance: The proposal.
        is_repeated: Whether more than one corpus was given: those that earlier proposals were measured in.
    """

    device: str
    before_s: NDArray[np.float64]
    measured_s: NDArray[np.float64]
    balance: Balance
    is_repeated: bool

    def record(self) -> dict[str, object]:
        """The figures."""
        found = self.balance
        return {
            "device": self.device,
            "times": len(self.measured_s),
            "outliers": found.num_outliers,
            "low_s": found.low_s,
            "high_s": found.high_s,
            "regression_median_error": found.median_error,
            "regression_rank_correlation": found.rank_correlation,
            "proposed": len(found.corpus),
            "bins": [
                {"from_s": float(low), "to_s": float(high), "before": int(before), "wanted": int(wanted),
                 "expected": int(after)}
                for low, high, before, wanted, after in zip(
                    found.edges_s[:-1], found.edges_s[1:], found.before, found.wanted, found.after, strict=True
                )
            ],
            "evenness_of_first": evenness(np.histogram(self.before_s, found.edges_s)[0]),
            "evenness_before": evenness(found.before),
            "evenness_expected": evenness(found.after),
        }  # fmt: skip

    def panels(self) -> list[Panel]:
        """Histograms before and after."""
        times = {"before": self.before_s.tolist()}
        if self.is_repeated:
            times["with earlier proposals, measured"] = self.measured_s.tolist()
        times["with this proposal, expected"] = [*self.measured_s.tolist(), *self.balance.predicted_s.tolist()]
        return [Panel(title=f"kernel time on {self.device}, seconds", values=times, is_logarithmic=True)]


def balance_corpora(paths: Sequence[Path], device_name: str, *, num_launches: int, seed: int = 0) -> Balanced:
    """Propose launches for what the corpora lack.

    Args:
        paths: The corpus, then those that earlier proposals were stored in; each with its times beside it.
        device_name: The device, as `perfvec devices` names it.
        num_launches: How many to propose.
        seed: The same seed gives the same launches.

    Raises:
        DeviceError: There is no such device.
        ConfigError: No corpus is given, or there are too few times.
        FormatError: A file is missing or damaged.
    """
    if not paths:
        raise ConfigError("give a corpus that was measured, such as traces/corpus/nvidia-h200.h5")
    device = find_device(device_name)
    found = [_measured(path, device.name) for path in paths]
    everything = [item for items in found for item in items]
    return Balanced(
        device=device.name,
        before_s=np.array([item.time_s for item in found[0]]),
        measured_s=np.array([item.time_s for item in everything]),
        balance=balance(everything, device, num_launches=num_launches, seed=seed),
        is_repeated=len(paths) > 1,
    )


def _measured(path: Path, device: str) -> list[MeasuredRecipe]:
    corpus = Corpus.load(path)
    times = CorpusTimes.load(times_path(path), corpus_digest=corpus.stored_digest)
    return [
        MeasuredRecipe(
            kernel_seed=corpus.kernel_seeds[corpus.recipes[row].kernel],
            recipe=corpus.recipes[row],
            time_s=time.kernel_time_s,
        )
        for (name, row), time in sorted(times.times.items(), key=lambda item: item[0])
        if name == device
    ]


def plot_balance(balanced: Balanced, path: Path) -> None:
    """Plot the histograms.

    Raises:
        ConfigError: matplotlib is not installed, or does not know the format.
        FormatError: The folder does not exist.
    """
    plot_histograms(path, balanced.panels())
