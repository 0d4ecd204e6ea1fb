"""The calibration set: launches whose program vectors are known, and what the model does not know.

It stands beside the model's file and carries the digest of that file, for program vectors of one model mean nothing to
another. `perfvec calibration-set` makes it from the measured launches of the suites (docs/format.md,
perfvec-calibration).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.apply.models import model_path
from perfvec.arch.measured import SINGLE_RUN_SPREAD
from perfvec.corpus.suite import SuiteLaunch, load_suites
from perfvec.errors import FormatError, ModelError
from perfvec.files import read_h5, whole_file
from perfvec.model.familiarity import Familiarity
from perfvec.model.posterior import Measurements, Misfit
from perfvec.model.uncertainty import Footing, PriorSpread, TypeMisfit, Uncertainty

if TYPE_CHECKING:
    import h5py
    from numpy.typing import NDArray

FORMAT = "perfvec-calibration"
FORMAT_VERSION = 1
# Interquartile range of a normal distribution of deviation 1.
_IQR_OF_NORMAL = 1.349


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSet:
    """Launches to calibrate a device with.

    Attributes:
        names: `SuiteLaunch.name` of each; length n.
        digests: `Launch.digest` of each.
        programs: Program vectors; `(n, D)`.
        is_candidate: Whether it may be measured; the others stand for the corpus as targets. `(n,)`
        uncertainty: What the model does not know.
        familiarity: What the model's training launches look like.
        model_digest: `file_digest` of the model's file.
        kernels: `suite/kernel` of each launch; from the names.
    """

    names: tuple[str, ...]
    digests: tuple[str, ...]
    programs: NDArray[np.float64]
    is_candidate: NDArray[np.bool_]
    uncertainty: Uncertainty
    familiarity: Familiarity
    model_digest: str
    kernels: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _row: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple("/".join(name.split("/")[:2]) for name in self.names))
        object.__setattr__(self, "_row", {digest: row for row, digest in enumerate(self.digests)})

    def row(self, digest: str) -> int | None:
        """Where a launch is; None where the set does not have it."""
        return self._row.get(digest)

    def launches(self, suites: Sequence[SuiteLaunch] | None = None) -> dict[str, SuiteLaunch]:
        """The candidates by digest, as this release's suites have them.

        Args:
            suites: Where to look; the shipped suites where it is None.
        """
        wanted = {digest for digest, is_open in zip(self.digests, self.is_candidate, strict=True) if is_open}
        entries = load_suites() if suites is None else suites
        return {digest: entry for entry in entries if (digest := entry.launch.digest) in wanted}

    def measurements(self, rows: Sequence[int], times_s: Sequence[float], spread: Sequence[float]) -> Measurements:
        """Measured launches of the set, as a device's posterior takes them.

        Args:
            rows: Which launches.
            times_s: Seconds.
            spread: Interquartile range ÷ median of each; NaN for a single run.
        """
        return measurements(self.programs[list(rows)], times_s, spread, [self.kernels[row] for row in rows])


def measurements(
    programs: NDArray[np.float64],
    times_s: Sequence[float] | NDArray[np.float64],
    spread: Sequence[float] | NDArray[np.float64],
    kernels: Sequence[str],
) -> Measurements:
    """Measured launches as a posterior takes them.

    Args:
        programs: Program vectors, `(k, D)`.
        times_s: Seconds.
        spread: Interquartile range ÷ median of each; NaN for a single run.
        kernels: Of each.
    """
    deviation = np.nan_to_num(np.asarray(spread, dtype=np.float64), nan=SINGLE_RUN_SPREAD) / _IQR_OF_NORMAL
    return Measurements(
        programs=programs, times=np.asarray(times_s, dtype=np.float64), deviation=deviation, kernels=tuple(kernels)
    )


def file_digest(path: str | Path) -> str:
    """16 hex digits of a file's contents."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def set_path(model: str | Path | None = None) -> Path:
    """Where the calibration set of a model's file stands: beside it.

    Raises:
        ModelError: The model's file does not exist.
    """
    path = model_path(model)
    return path.with_name(f"{path.stem}.calibration.h5")


def load_set(model: str | Path | None = None) -> CalibrationSet:
    """Read a model's calibration set, once for each file.

    Args:
        model: File of the model; the shipped one where it is None.

    Raises:
        ModelError: There is none, or it belongs to another model.
        FormatError: It is damaged.
    """
    found, weights = find_set(model), model_path(model)
    if found is None:
        raise ModelError(
            f"the model {weights} ({file_digest(weights)}) has no calibration set of its own at {set_path(model)}; "
            f"make it with perfvec calibration-set --model {weights}, which takes minutes"
        )
    return found


def find_set(model: str | Path | None = None) -> CalibrationSet | None:
    """A model's calibration set; None where there is none, or it was made for another model.

    Args:
        model: File of the model; the shipped one where it is None.

    Raises:
        ModelError: The model's file does not exist.
        FormatError: The set is damaged.
    """
    path = set_path(model)
    if not path.is_file():
        return None
    found = _load(path.resolve(), path.stat().st_mtime_ns)
    return found if found.model_digest == file_digest(model_path(model)) else None


@lru_cache(maxsize=4)
def _load(path: Path, changed_ns: int) -> CalibrationSet:  # noqa: ARG001  (a changed file is another set)
    return read_set(path)


# ---- the file ---------------------------------------------------------------------------------------------------

_FAMILIARITY = ("mean", "deviation", "components", "references")


def save_set(made: CalibrationSet, path: str | Path) -> None:
    """Write a calibration set, whole or not at all.

    Raises:
        FormatError: The folder does not exist.
    """
    import h5py

    unknown = made.uncertainty
    with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
        file.attrs["format"] = FORMAT
        file.attrs["format_version"] = FORMAT_VERSION
        file.attrs["model_digest"] = made.model_digest
        file.attrs["threshold"] = made.familiarity.threshold
        misfit = {kind: asdict(item) for kind, item in unknown.misfit.items()}
        hyper = {"spread": asdict(unknown.spread), "misfit": misfit}
        file.attrs["uncertainty"] = json.dumps(hyper)
        _write(file, "name", np.frombuffer("\n".join(made.names).encode(), np.uint8), "UTF-8, one line a launch")
        _write(file, "digest", np.array([int(text, 16) for text in made.digests], np.uint64), "launch digest")
        _write(file, "programs", _rounded(made.programs), "units of the vector's coordinates")
        _write(file, "is_candidate", made.is_candidate, "1")
        for name in _FAMILIARITY:
            _write(file, f"familiarity/{name}", getattr(made.familiarity, name).astype(np.float32), "see the code")
        for footing, scores in unknown.scores.items():
            _write(
                file,
                f"scores/{footing.group}/{footing.type}",
                scores.astype(np.float32),
                "standard deviation of the log time",
            )


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """To 9 significant bits: a thousandth of a coordinate is nothing to a sum of hundreds, and the file is smaller."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x4000)) & np.uint32(0xFFFF8000)).view(np.float32)


def _write(file: h5py.File, name: str, values: NDArray[Any], units: str) -> None:
    file.create_dataset(name, data=values, compression="gzip", shuffle=True).attrs["units"] = units


def read_set(path: str | Path) -> CalibrationSet:
    """Read a calibration set.

    Raises:
        FormatError: The file is missing, damaged, of another kind or version.
    """
    with read_h5(path, kind=FORMAT, versions=(FORMAT_VERSION,)) as file:
        try:
            hyper = json.loads(str(file.attrs["uncertainty"]))
            found = CalibrationSet(
                names=tuple(bytes(np.asarray(file["name"])).decode().split("\n")),
                digests=tuple(f"{digest:016x}" for digest in np.asarray(file["digest"]).tolist()),
                programs=np.asarray(file["programs"], dtype=np.float64),
                is_candidate=np.asarray(file["is_candidate"], dtype=bool),
                uncertainty=Uncertainty(
                    spread=PriorSpread(**hyper["spread"]),
                    misfit={
                        kind: TypeMisfit(known=Misfit(**item["known"]), new=Misfit(**item["new"]))
                        for kind, item in hyper["misfit"].items()
                    },
                    scores={
                        Footing(group=group, type=kind): np.asarray(scores, dtype=np.float64)
                        for group, kinds in file["scores"].items()  # type: ignore[union-attr]
                        for kind, scores in kinds.items()
                    },
                ),
                familiarity=Familiarity(
                    **{name: np.asarray(file[f"familiarity/{name}"], dtype=np.float64) for name in _FAMILIARITY},
                    threshold=float(file.attrs["threshold"]),  # type: ignore[arg-type]
                ),
                model_digest=str(file.attrs["model_digest"]),
            )
        except (ValueError, TypeError, ModelError, AttributeError) as error:
            raise FormatError(f"{path} is damaged: {error}; make it again with perfvec calibration-set") from error
    if not len(found.names) == len(found.digests) == len(found.programs) == len(found.is_candidate):
        raise FormatError(f"{path} is damaged: its lists differ in length; make it again with perfvec calibration-set")
    return found
