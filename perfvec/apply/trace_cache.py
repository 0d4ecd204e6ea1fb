"""Traces of the suites' launches, kept on disk by content, for what needs more of them than features.

A file is named by the launch's digest, its folder by the pipeline's version and the code that traces follow from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from perfvec.apply.feature_cache import PACKAGE, code_hash
from perfvec.apply.tracing import trace_to_file
from perfvec.errors import FormatError
from perfvec.files import is_readable_h5
from perfvec.trace_data import FORMAT, FORMAT_VERSION, Trace

if TYPE_CHECKING:
    from perfvec.launch import Launch

_CODE = ("program/**/*.py", "arguments.py", "initialisers.py", "trace_data.py")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCache:
    """A folder of traces.

    Attributes:
        folder: Where they are, the versions included.
    """

    folder: Path

    @classmethod
    def open(cls, root: str | Path | None = None) -> TraceCache:
        """The cache of this release's traces; its folder need not exist yet.

        Args:
            root: Folder of caches; the user's cache folder where it is None.
        """
        import platformdirs

        from perfvec.program.frontend import PIPELINE_VERSION

        base = Path(platformdirs.user_cache_dir("perfvec")) if root is None else Path(root)
        return cls(folder=base / "traces" / f"p{PIPELINE_VERSION}-{code_hash(PACKAGE, _CODE)}")

    def path(self, digest: str) -> Path:
        """The file of a launch."""
        return self.folder / digest[:2] / f"{digest}.h5"

    def holds(self, digest: str) -> bool:
        """Whether there is a readable file of the launch."""
        return is_readable_h5(self.path(digest), kind=FORMAT, versions=(FORMAT_VERSION,))

    def make(self, launch: Launch, *, name: str = "") -> None:  # noqa: ARG002  (as `feature_cache.LaunchCache` has it)
        """Trace a launch by the tracer's defaults and keep the trace.

        Raises:
            PerfVecError: The launch cannot be traced.
        """
        path = self.path(launch.digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        trace_to_file(launch, path)

    def get(self, launch: Launch) -> Trace:
        """The trace of a launch by the tracer's defaults, made where the cache lacks it.

        Raises:
            PerfVecError: The launch cannot be traced.
        """
        try:
            return Trace.load(self.path(launch.digest))
        except FormatError:  # missing or damaged
            self.make(launch)
        return Trace.load(self.path(launch.digest))
