"""What the model sees of launches, kept on disk by content: traced once, on all cores.

A file is named by the launch's digest, its folder by the versions, the code and the archetypes that the contents depend
on. It holds either the features or why the launch could not be traced (format `perfvec-features`; docs/format.md). A
cache may keep the launch's times on the devices of a design space beside them: the trace is at hand only once.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, final

import numpy as np

from perfvec.apply.encoding import MOST_WINDOWS, feature_schema, launch_input
from perfvec.apply.tracing import trace
from perfvec.errors import ConfigError, FormatError, PerfVecError
from perfvec.files import is_readable_h5, read_h5, whole_file
from perfvec.model.launch_input import FeatureSchema, LaunchInput
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from perfvec.apply.simulated import SimulatedDevices
    from perfvec.launch import Launch

logger = logging.getLogger(__name__)

FORMAT = "perfvec-features"
FORMAT_VERSION = 2
PACKAGE = Path(__file__).resolve().parent.parent
_CODE = (
    "program/**/*.py",
    "arguments.py",
    "trace_data.py",
    "resources.py",
    "arch/archetypes.py",
    "arch/timing/**/*.py",
    "model/window_sampling.py",
    "apply/encoding.py",
)
_SIMULATED = "simulated_s"
_UNITS = {
    "row_features": "see FEATURE_NAMES",
    "row_units": "see TOKEN_UNITS",
    "token_row": "row",
    "window_start": "token",
    "window_weight": "execution",
    "context": "see CONTEXT_NAMES",
    "resources": "see RESOURCES",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCache:
    """A folder of features.

    Attributes:
        folder: Where they are, the versions included.
        schema: Columns of the features.
        simulated: Devices whose times by the timing model it keeps, too.
        some_simulated: So many of those for training are timed for each launch that is made from now on, and no others;
            0 for all devices.
    """

    folder: Path
    schema: FeatureSchema
    simulated: SimulatedDevices | None = None
    some_simulated: int = 0

    @classmethod
    def open(cls, root: str | Path | None = None, *, simulated: SimulatedDevices | None = None) -> FeatureCache:
        """The cache of this release's features; its folder need not exist yet.

        Args:
            root: Folder of caches; the user's cache folder where it is None.
            simulated: Devices to keep times of, too; such a cache is another one.
        """
        import platformdirs

        from perfvec.arch.archetypes import archetype_configs
        from perfvec.program.frontend import PIPELINE_VERSION

        schema = feature_schema()
        base = Path(platformdirs.user_cache_dir("perfvec")) if root is None else Path(root)
        versions = f"p{PIPELINE_VERSION}-f{schema.features_version}-r{schema.resources_version}-w{MOST_WINDOWS}"
        code = code_hash(PACKAGE, _CODE, also=repr(archetype_configs()))
        kept = f"-{simulated.space.replace('/', '-')}-{simulated.digest}" if simulated else ""
        return cls(folder=base / "features" / f"{versions}-{code}{kept}", schema=schema, simulated=simulated)

    def path(self, digest: str) -> Path:
        """The file of a launch."""
        return self.folder / digest[:2] / f"{digest}.h5"

    def holds(self, digest: str) -> bool:
        """Whether there is a readable file of the launch."""
        return is_readable_h5(self.path(digest), kind=FORMAT, versions=(FORMAT_VERSION,))

    def make(self, launch: Launch, *, name: str = "") -> None:
        """Trace a launch and keep what the model sees of it, or why that failed."""
        from perfvec.arch.archetypes import times_on
        from perfvec.arch.timing import read_workload

        times = None
        try:
            workload = read_workload(trace(launch))
            found: LaunchInput | str = launch_input(workload, name=name)
            if self.simulated is not None:
                configs = self.simulated.configs
                chosen = self.simulated.chosen_for(launch.digest, self.some_simulated)
                times = np.full(len(configs), np.nan)
                times[chosen] = times_on(workload, [configs[number] for number in chosen])
        except PerfVecError as error:
            found = f"{type(error).__name__}: {error}"
        self.write(launch.digest, found, times)

    def write(self, digest: str, found: LaunchInput | str, times: NDArray[np.float64] | None = None) -> None:
        """Keep features and times on simulated devices, or the reason why there are none."""
        import h5py

        path = self.path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
            file.attrs["format"] = FORMAT
            file.attrs["format_version"] = FORMAT_VERSION
            if isinstance(found, str):
                file.attrs["failure"] = found[:4000]  # attributes end at 64 KiB, compilers' messages do not
                return
            for name, units in _UNITS.items():
                values = getattr(found, name)
                dataset = file.create_dataset(name, data=values, compression="gzip", compression_opts=1, shuffle=True)
                dataset.attrs["units"] = units
            if times is not None:
                file.create_dataset(_SIMULATED, data=times.astype(np.float32)).attrs["units"] = "s"

    def read(self, digest: str, *, name: str) -> LaunchInput | str:
        """Features of a launch, or the reason why there are none.

        Args:
            digest: `Launch.digest`.
            name: What to call the launch in messages.

        Raises:
            FormatError: The file is missing or damaged.
            ModelError: Its arrays do not fit the schema.
        """
        with read_h5(self.path(digest), kind=FORMAT, versions=(FORMAT_VERSION,)) as file:
            if "failure" in file.attrs:
                return str(file.attrs["failure"])
            arrays = {key: np.asarray(file[key]) for key in _UNITS}
        return LaunchInput(schema=self.schema, name=name, **arrays)

    def read_times(self, digest: str) -> NDArray[np.float64]:
        """Times of a launch on the simulated devices, `(M,)`; NaN where it does not fit on one, or was not timed.

        Raises:
            FormatError: The file is missing or damaged, or has none.
        """
        with read_h5(self.path(digest), kind=FORMAT, versions=(FORMAT_VERSION,)) as file:
            if _SIMULATED not in file:
                raise FormatError(
                    f"{self.path(digest)} has no times on simulated devices; open the cache with those devices, "
                    "FeatureCache.open(simulated=...), or delete the file"
                )
            return np.asarray(file[_SIMULATED], dtype=np.float64)


def code_hash(package: Path, patterns: Sequence[str], *, also: str = "") -> str:
    """8 hex digits of the code that features follow from: half a data set of another tracer would spoil a training.

    Args:
        package: Folder of the code.
        patterns: Files in it.
        also: What else they follow from.
    """
    state = hashlib.sha256(also.encode())
    for path in sorted({path for pattern in patterns for path in package.glob(pattern)}):
        state.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return state.hexdigest()[:8]


# ---- on all cores -----------------------------------------------------------------------------------------------


class LaunchCache(Protocol):
    """What `fill` fills: a folder with something of each launch. Goes to other processes by pickle."""

    def holds(self, digest: str) -> bool:
        """Whether there is a readable file of the launch."""
        ...

    def make(self, launch: Launch, *, name: str = "") -> None:
        """Trace a launch and keep what is wanted of it."""
        ...


# Launches of one program that are handed to a process together, at most.
_MOST_TOGETHER = 16
# Fewer files than that are read faster than processes start.
_FEW_FILES = 2000


def read_all(
    cache: FeatureCache, launches: Sequence[tuple[str, str]], *, num_processes: int | None = None
) -> Iterator[LaunchInput | str]:
    """Features of many launches, in their order, or the reasons why there are none.

    Args:
        cache: Where they are.
        launches: Names and digests.
        num_processes: Processes that read; 0 to read in this one; None for one a core where there is much to read.

    Raises:
        FormatError: A file is missing or damaged.
        ModelError: Its arrays do not fit the schema.
    """
    if num_processes is None:
        num_processes = 0 if len(launches) < _FEW_FILES else num_cores()
    if num_processes == 0:
        for name, digest in launches:
            yield cache.read(digest, name=name)
        return
    with process_pool(num_processes) as pool:
        yield from pool.map(_read, itertools.repeat(cache), launches, chunksize=32)


def _read(cache: FeatureCache, launch: tuple[str, str]) -> LaunchInput | str:
    name, digest = launch
    return cache.read(digest, name=name)


def fill(
    cache: LaunchCache,
    launches: Sequence[tuple[str, Launch]],
    *,
    num_processes: int | None = None,
    seconds: float = math.inf,
    on_progress: OnProgress = silent,
) -> dict[str, str]:
    """Trace the launches that the cache lacks, or holds damaged.

    Args:
        cache: Where to keep them.
        launches: Names and launches.
        num_processes: Processes that trace; 0 to trace in this one; None for one a core.
        seconds: Wall time after which no more are handed to processes.
        on_progress: Hears how many are done.

    Returns:
        By digest, why launches are still not in the cache: they ended their process, or met a fault in the tracer.
        Nothing of that is kept, for another machine or release may do better.

    Raises:
        ConfigError: Processes cannot be started.
    """
    lacking = [(name, launch) for name, launch in launches if not cache.holds(launch.digest)]
    if math.isinf(seconds):  # else their order says what matters most
        lacking = [launch for some in _by_program(lacking) for launch in some]
    filling = _Filling(cache=cache, on_progress=on_progress, num_all=len(lacking), ends_at=time.monotonic() + seconds)
    if num_processes == 0:
        for name, launch in lacking:
            filling.take(launch, name, *_make(cache, [(name, launch)]))
        return filling.failures
    queue = deque(lacking)
    while queue:
        # If a process dies, the work of the others is lost too. Whoever is at fault shows when each is alone.
        for name, launch in filling.run(queue, num_processes or num_cores()):
            alone, ended = deque([(name, launch)]), []
            while alone and not ended:  # it is still there where the process died before it was handed over
                ended = filling.run(alone, 1)
            if ended:
                reason = "MemoryError: the process that traced it ended: out of memory, or a fault"
                filling.take(launch, name, reason)
    return filling.failures


@final
@dataclass(slots=True, kw_only=True)
class _Filling:
    """The work that `fill` hands out."""

    cache: LaunchCache
    on_progress: OnProgress
    num_all: int
    ends_at: float
    num_done: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    def take(self, launch: Launch, name: str, reason: str) -> None:
        """A launch is done, or why it could not be."""
        if reason:
            self.failures[launch.digest] = reason
            logger.warning("cannot trace %s: %s", name, reason)
        self.num_done += 1
        self.on_progress("tracing", self.num_done, self.num_all)

    def run(self, queue: deque[tuple[str, Launch]], num_processes: int) -> list[tuple[str, Launch]]:
        """Trace what is in the queue; the launches that were being traced when a process died, or none."""
        begun: dict[Future[list[str]], list[tuple[str, Launch]]] = {}
        with process_pool(min(num_processes, len(queue))) as pool:
            try:
                while queue or begun:
                    if time.monotonic() > self.ends_at:
                        queue.clear()
                    # Few at a time, for what is handed out when a process dies is traced again.
                    while queue and len(begun) < 2 * num_processes:
                        some = _by_program(itertools.islice(queue, _MOST_TOGETHER))[0]
                        begun[pool.submit(_make, self.cache, some)] = some
                        for _ in some:  # only now: a process that has died takes nothing
                            queue.popleft()
                    for future in wait(begun, return_when=FIRST_COMPLETED).done:
                        reasons = future.result()
                        for (name, launch), reason in zip(begun.pop(future), reasons, strict=True):
                            self.take(launch, name, reason)
            except BrokenProcessPool:
                return [launch for some in begun.values() for launch in some]
        return []


def _by_program(launches: Iterable[tuple[str, Launch]]) -> list[list[tuple[str, Launch]]]:
    """Launches of one program side by side: the process that traces them compiles it once."""
    found: dict[tuple[object, ...], list[tuple[str, Launch]]] = {}
    for name, launch in launches:
        found.setdefault((launch.source, launch.build_options, launch.kernel_name), []).append((name, launch))
    return list(found.values())


def _make(cache: LaunchCache, launches: Sequence[tuple[str, Launch]]) -> list[str]:
    """Trace launches into a cache; what went wrong with each, or "": the others are still wanted."""
    reasons = []
    for name, launch in launches:
        try:
            cache.make(launch, name=name)
            reasons.append("")
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {error}")
    return reasons


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def process_pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that trace or time launches.

    Args:
        count: How many; over 0.

    Raises:
        ConfigError: They cannot be started.
    """
    # Spawned: a fork of a process that has loaded torch or an OpenCL driver may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_ignore_interrupts)
    try:
        try:
            pool.submit(_ignore_interrupts).result()
        except BrokenProcessPool as error:
            raise ConfigError(
                "the processes that trace launches cannot start. Guard the calling program by "
                "if __name__ == '__main__', or trace in its own process (num_processes=0)."
            ) from error
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C is for the parent, which then stops the children in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
