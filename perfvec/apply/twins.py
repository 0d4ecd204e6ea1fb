"""Simulated twins of GPUs that the model has no row of: vectors fitted here to times that the timing model gives.

A formula makes prices of any datasheet, but a vector that is fitted to the timing model's times is much nearer to
them. So launches of the calibration set, whose program vectors are in the set, are traced once a machine (`TraceCache`)
and timed for the device. A twin is a file NAME.MODEL.h5 in the user's data folder (docs/format.md, perfvec-twin): it
belongs to one model and to one content of the device's file, and is used for no other.

Legend: N launch, M device, D vector.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import platformdirs

from perfvec.apply.calibration_set import file_digest, load_set
from perfvec.apply.feature_cache import fill, num_cores, process_pool
from perfvec.apply.models import load_model, model_path
from perfvec.apply.trace_cache import TraceCache
from perfvec.arch.archetypes import times_on
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.device import load_devices
from perfvec.arch.timing.of_device import timing_config
from perfvec.errors import DeviceError, FormatError, ModelError, PerfVecError
from perfvec.files import read_h5, whole_file
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.arch.device import Device
    from perfvec.arch.timing import TimingConfig
    from perfvec.corpus.suite import SuiteLaunch
    from perfvec.launch import Launch
    from perfvec.model.weights import TrainedModel

logger = logging.getLogger(__name__)

FORMAT = "perfvec-twin"
FORMAT_VERSION = 1
# The more the nearer, as devices of training and kernels of training families show, both taken for new
# (python -m experiments.devices.twins): the whole of the set.
NUM_LAUNCHES = 800
_CHUNK = 4
# With fewer, the datasheet's formula may be nearer.
_FEWEST = 50


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A device's vector, fitted to times of the timing model.

    Attributes:
        device: Name of the device.
        datasheet: `datasheet_digest` of the device that was timed.
        model: `file_digest` of the model's file.
        vector: Seconds per unit of each coordinate; `(D,)`, positive.
        num_launches: Launches that it was fitted to.
    """

    device: str
    datasheet: str
    model: str
    vector: NDArray[np.float64]
    num_launches: int


def datasheet_digest(device: Device) -> str:
    """16 hex digits of all facts of a device that prices or times follow from."""
    facts = (device.compute, device.memory, device.launch, timing_config(device))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def twin_path(name: str, model_digest: str) -> Path:
    """The file of a device's twin for a model; neither it nor its folder need exist."""
    return Path(platformdirs.user_data_dir("perfvec")) / "twins" / f"{name}.{model_digest}.h5"


def find_twins(model: str | Path | None = None) -> dict[str, Twin]:
    """The twins that were made for a model and for devices as their files are now, by name of the device.

    Args:
        model: File of the model; the shipped one where it is None.

    Raises:
        ModelError: The model's file does not exist.
        DeviceError: A device file is wrong.
    """
    digest = file_digest(model_path(model))
    if not any(twin_path("", digest).parent.glob(f"*.{digest}.h5")):
        return {}
    found: dict[str, Twin] = {}
    for device in load_devices().values():
        path = twin_path(device.name, digest)
        if not path.is_file():
            continue
        try:
            twin = read_twin(path)
        except FormatError as error:
            logger.warning("%s; perfvec devices twin %s makes it again", error, device.name)
            continue
        if (twin.model, twin.datasheet) == (digest, datasheet_digest(device)):
            found[device.name] = twin
    return found


def model_with_twins(model: str | Path | None = None) -> TrainedModel:
    """A model that knows the twins made on this machine, too.

    Args:
        model: File of the model; the shipped one where it is None.

    Raises:
        ModelError: The file does not exist.
        FormatError: It is damaged, of another kind or version.
        DeviceError: A device file is wrong.
    """
    from perfvec.model.devices import DeviceTable

    trained, twins = load_model(model), find_twins(model)
    if not twins:
        return trained
    devices = load_devices()
    table = DeviceTable(
        names=tuple(twins),
        kinds=("simulated",) * len(twins),
        vectors=np.stack([twin.vector for twin in twins.values()]),
        seconds_per_unit=np.stack([seconds_per_unit(devices[name]) for name in twins]),
    )
    return replace(trained, further_twins=table)


def make_twins(
    devices: Sequence[Device],
    *,
    model: str | Path | None = None,
    suites: Sequence[SuiteLaunch] | None = None,
    num_processes: int | None = None,
    on_progress: OnProgress = silent,
) -> list[Twin]:
    """Time launches on GPUs by the timing model, fit a vector to each, and keep it in the user's data folder.

    The first call on a machine traces the launches, later ones read the traces from the user's cache folder.

    Args:
        devices: The GPUs.
        model: File of the model; the shipped one where it is None.
        suites: Where the calibration set's launches are; the shipped suites where it is None.
        num_processes: Processes that trace; 0 to trace in this one; None for one a core.
        on_progress: Hears how far it is.

    Returns:
        A twin of each, in the order given.

    Raises:
        DeviceError: A device is no GPU.
        ModelError: The model has no calibration set, or too few of its launches can be traced or fit on a device.
        ConfigError: Processes cannot be started.
        FormatError: The user's data folder cannot be written to.
    """
    from perfvec.model.device_rows import fitted_vectors

    others = [device for device in devices if device.type != "gpu"]
    if others:
        raise DeviceError(
            f"{others[0].name} is a {others[0].type}, and the timing model is of GPUs; measure it instead: "
            f"perfvec calibrate -o {others[0].name}"
        )
    calibration = load_set(model)
    entries = calibration.launches(suites)
    rows = spread_over_kernels(
        [digest if digest in entries else "" for digest in calibration.digests], calibration.kernels
    )
    launches = [(calibration.names[row], entries[calibration.digests[row]].launch) for row in rows]
    traces = TraceCache.open()
    failures = fill(traces, launches, num_processes=num_processes, on_progress=on_progress)
    configs = tuple(timing_config(device) for device in devices)
    timed = [row for row, (_, launch) in enumerate(launches) if launch.digest not in failures]
    times_NM = np.full((len(rows), len(devices)), np.nan)
    times_NM[timed] = _times(
        traces, [launches[row][1] for row in timed], configs, num_processes=num_processes, on_progress=on_progress
    )
    counts_M = (~np.isnan(times_NM)).sum(axis=0)
    for device, count in zip(devices, counts_M.tolist(), strict=True):
        if count < _FEWEST:
            raise ModelError(
                f"only {count} of {len(launches)} launches have a time by the timing model on {device.name}, of which "
                f"{_FEWEST} are needed: {next(iter(failures.values()), 'the others do not fit on it')}. Correct its "
                "device file, or measure the device with perfvec calibrate"
            )
    on_progress("fitting", 0, 0)
    prices_MK = np.stack([seconds_per_unit(device) for device in devices])
    vectors_MD = fitted_vectors(load_model(model), prices_MK, calibration.programs[rows], times_NM)
    made = [
        Twin(
            device=device.name,
            datasheet=datasheet_digest(device),
            model=calibration.model_digest,
            vector=vector_D,
            num_launches=count,
        )
        for device, vector_D, count in zip(devices, vectors_MD, counts_M.tolist(), strict=True)
    ]
    for twin in made:
        save_twin(twin)
    return made


def _times(
    traces: TraceCache,
    launches: Sequence[Launch],
    configs: tuple[TimingConfig, ...],
    *,
    num_processes: int | None,
    on_progress: OnProgress,
) -> NDArray[np.float64]:
    """Seconds `(N, M)` by the timing model; NaN where a launch does not fit."""
    times_NM = np.full((len(launches), len(configs)), np.nan)
    time_one = functools.partial(_time_one, traces, configs)
    with ExitStack() as stack:
        if num_processes == 0 or not launches:
            found = map(time_one, launches)
        else:
            pool = stack.enter_context(process_pool(num_processes or num_cores()))
            found = pool.map(time_one, launches, chunksize=_CHUNK)
        for place, times_M in enumerate(found):
            times_NM[place] = times_M
            on_progress("timing", place + 1, len(launches))
    return times_NM


def _time_one(traces: TraceCache, configs: tuple[TimingConfig, ...], launch: Launch) -> NDArray[np.float64]:
    return times_on(traces.get(launch), configs)


def make_where_lacking(
    device: Device, *, model: str | Path | None = None, on_progress: OnProgress = silent
) -> TrainedModel:
    """The model with a twin of the device, made now where it has none; a formula has to do where that fails.

    Args:
        device: The device; what is no GPU has no twin.
        model: File of the model; the shipped one where it is None.
        on_progress: Hears how far it is.

    Raises:
        ModelError: The model's file does not exist.
        FormatError: It is damaged.
    """
    trained = model_with_twins(model)
    if not lacks_twin(trained, device):
        return trained
    try:
        make_twins([device], model=model, on_progress=on_progress)
    except PerfVecError as error:
        logger.warning("%s starts from the formula of its data sheet: %s", device.name, error)
        return trained
    return model_with_twins(model)


def lacks_twin(trained: TrainedModel, device: Device) -> bool:
    """Whether a GPU starts from the formula of its datasheet alone."""
    return device.type == "gpu" and trained.simulated_twin(seconds_per_unit(device)) is None


def spread_over_kernels(digests: Sequence[str], kernels: Sequence[str], count: int = NUM_LAUNCHES) -> list[int]:
    """Choose launches: one of each kernel, then a second of each, and so on; in an order that hashes decide.

    Args:
        digests: Of the launches; "" for one that is not to be taken.
        kernels: Of each.
        count: Most that are taken.

    Returns:
        Their rows.
    """
    hashes = [hashlib.sha256(f"twin/{digest}".encode()).hexdigest() for digest in digests]
    num_taken: Counter[str] = Counter()
    turns: list[tuple[int, str, int]] = []
    for row in sorted((row for row, digest in enumerate(digests) if digest), key=hashes.__getitem__):
        turns.append((num_taken[kernels[row]], hashes[row], row))
        num_taken[kernels[row]] += 1
    return [row for _, _, row in sorted(turns)[:count]]


# ---- the file ---------------------------------------------------------------------------------------------------


def save_twin(twin: Twin) -> Path:
    """Write a twin, whole or not at all; returns its file.

    Raises:
        FormatError: The folder cannot be written to.
    """
    import h5py

    path = twin_path(twin.device, twin.model)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
        file.attrs["format"] = FORMAT
        file.attrs["format_version"] = FORMAT_VERSION
        for name in ("device", "datasheet", "model", "num_launches"):
            file.attrs[name] = getattr(twin, name)
        file.create_dataset("vector", data=twin.vector).attrs["units"] = "s per unit of the coordinate"
    return path


def read_twin(path: Path) -> Twin:
    """Read a twin.

    Raises:
        FormatError: The file is missing, damaged, of another kind or version.
    """
    with read_h5(path, kind=FORMAT, versions=(FORMAT_VERSION,)) as file:
        vector = np.asarray(file["vector"], dtype=np.float64)
        if not (np.isfinite(vector).all() and (vector > 0).all()):
            raise FormatError(f"{path} is damaged: its vector has a value that is not finite and positive")
        return Twin(
            **{name: str(file.attrs[name]) for name in ("device", "datasheet", "model")},
            vector=vector,
            num_launches=int(file.attrs["num_launches"]),  # type: ignore[arg-type]
        )
