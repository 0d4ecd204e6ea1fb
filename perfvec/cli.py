"""The command line: a table of typed functions over `perfvec.apply`.

Each command is a record of options and a function. What is wrong with the input ends in one message on stderr and exit
code 2; results go to stdout, everything else to stderr. Heavy modules are imported where a command needs them.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union, final

import tyro

from perfvec.errors import ConfigError, LaunchError, PerfVecError
from perfvec.report.output import Output, stdout_kept_clean

if TYPE_CHECKING:
    from perfvec.arch.opencl import LiveDevice
    from perfvec.launch import Launch
    from perfvec.report.progress import OnProgress
    from perfvec.report.tables import Table
    from perfvec.trace_data import Trace

EXIT_OK = 0
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

DESCRIPTION = """Predicts the time of OpenCL kernels on devices that nobody needs to have at hand.
  perfvec predict gemm.cl --kernel gemm --global 1024,1024 --local 16,16 \\
      --arg buffer:float32:1048576 --arg buffer:float32:1048576 \\
      --arg buffer:float32:1048576 --arg int32:1024

perfvec COMMAND --help explains a command, perfvec --version prints the release."""

Texts: TypeAlias = tuple[str, ...]
Repeated = tyro.conf.UseAppendAction
Several: TypeAlias = tuple[Texts, ...]


def _option(name: str = "", metavar: str | None = None, *, short: str = "", hint: str | None = "") -> Any:
    """How an option is written; `hint` is what help says of its default, None for tyro's own words."""
    return tyro.conf.arg(
        name=name or None, metavar=metavar, aliases=(short,) if short else None, help_behavior_hint=hint
    )


# ---- options ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """The launch; a stored FILE brings all of it along."""

    file: Annotated[tyro.conf.Positional[Path], _option(metavar="FILE", hint="(required)")]
    """OpenCL C source, or a launch or trace stored as .h5."""

    kernel: Annotated[str, _option(metavar="NAME")] = ""
    """The kernel function; needed with OpenCL C."""

    global_size: Annotated[str, _option("global", "X[,Y[,Z]]")] = ""
    """Work-items in each dimension; needed with OpenCL C."""

    local_size: Annotated[str, _option("local", "X[,Y[,Z]]")] = ""
    """Work-items of a work-group; up to 256 in the first dimension unless given."""

    args: Annotated[Texts, _option("arg", "ARG", hint="(repeatable)"), Repeated] = ()
    """One kernel argument, in order: buffer:DTYPE:COUNT[:INITIALISER][~SEED], DTYPE:VALUE or local:DTYPE:COUNT, such as
    'buffer:float32:1048576:uniform(-1,1)' or int32:1024."""

    defines: Annotated[Texts, _option("define", "K=V", hint="(repeatable)"), Repeated] = ()
    """A macro for the compiler, as -DK=V."""

    def read(self) -> Launch | Trace:
        """The launch, or the trace that FILE holds."""
        from perfvec.apply.tracing import STORED_SUFFIXES, read_stored
        from perfvec.launch import Launch

        if self.file.suffix in STORED_SUFFIXES:
            given = [item.name for item in fields(self) if item.name != "file" and getattr(self, item.name)]
            if given:
                raise LaunchError(f"{self.file} holds a whole launch; leave out {', '.join(given)}")
            return read_stored(self.file)
        for name, value in (("kernel", self.kernel), ("global", self.global_size)):
            if not value:
                raise LaunchError(f"{self.file} needs --{name}; for example --kernel gemm --global 1024,1024")
        return Launch.from_file(
            self.file,
            kernel_name=self.kernel,
            args=self.args,
            global_size=_sizes(self.global_size, "--global"),
            local_size=_sizes(self.local_size, "--local") if self.local_size else None,
            build_options=tuple(_define(text) for text in self.defines),
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

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """Trace a launch into a file: what its sub-groups execute. No GPU is needed."""

    launch: LaunchOptions

    output: Annotated[Path, _option(metavar="PATH", short="-o", hint="(required)")]
    """The HDF5 file to write."""

    work_groups: Annotated[int | None, _option(metavar="N")] = None
    """About how many work-groups to execute; a few dozen unless given."""

    budget: Annotated[int | None, _option(metavar="N")] = None
    """Most sub-group instructions to execute before giving up."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesOptions:
    """List the devices that times are predicted for."""

    json: Annotated[bool, _option()] = False
    """Print one line of JSON."""


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
class MeasureSuitesOptions:
    """Time the launches of the suites on an OpenCL device of this machine, into a table that may grow in many runs."""

    output: Annotated[Path, _option(metavar="PATH", short="-o", hint="(required)")]
    """Table of measured times, such as traces/measured/NAME.h5. Launches that it has are not timed again."""

    seconds: Annotated[float, _option(metavar="S", hint=None)] = 540.0
    """Wall time after which no further launch is begun."""

    opencl_device: Annotated[int | None, _option(metavar="N")] = None
    """Number of the OpenCL device; the first GPU, else accelerator or CPU, unless given."""

    limit: Annotated[int | None, _option(metavar="N")] = None
    """Most launches to time."""

    suites: Annotated[Path | None, _option(metavar="FOLDER")] = None
    """Folder of suites instead of the shipped ones."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Train a model on the measured launches, as a configuration file says."""

    config: Annotated[Path, _option(metavar="PATH", hint="(required)")]
    """The configuration, such as experiments/first/config.yaml."""

    out_dir: Annotated[Path | None, _option(metavar="FOLDER")] = None
    """Where to write the model and the account of it, instead of the configuration's out_dir."""

    processes: Annotated[int | None, _option(metavar="N")] = None
    """Processes that trace launches; one a core unless given."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """Compare predictions with measured times, beside four simpler predictors."""

    split: Literal["unseen-kernel", "unseen-launch", "unseen-suite"] = "unseen-kernel"
    """Launches of kernel families, or single launches, or whole suites, that were held out of training."""

    devices: Annotated[Several, _option("device", "NAME", hint="(repeatable)"), Repeated] = ()
    """Devices to compare on; all that have measured times unless given."""

    model: Annotated[Path | None, _option(metavar="PATH")] = None
    """A trained model instead of the shipped one."""

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


def _sizes(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError as error:
        raise LaunchError(
            f"{option} {text!r} is not one to three whole numbers; write for example 1024,1024"
        ) from error


def _define(text: str) -> str:
    name, _, value = text.partition("=")
    if not name.isidentifier() or value != "".join(value.split()):
        raise LaunchError(f"--define {text!r} is not NAME=VALUE; write for example TILE=16, without spaces")
    return f"-D{text}"


# ---- commands ---------------------------------------------------------------------------------------------------


def predict(options: PredictOptions, output: Output) -> None:
    """Print predicted times."""
    from perfvec.apply.predicting import predict as predict_source
    from perfvec.apply.tables import prediction_table
    from perfvec.apply.tracing import launch_of

    source = options.launch.read()
    launch = launch_of(source)
    names = _flat(options.devices)
    with _progress(output) as on_progress:
        predictions = predict_source(source, names, model=options.model, budget=options.budget, on_progress=on_progress)
    if options.json:
        kept = ("device", "kernel_time_s", "measured_s")
        rows = [{name: getattr(item, name) for name in kept} for item in predictions]
        output.json({**_launch_record(launch), "predictions": rows})
    else:
        _show(prediction_table(predictions), output)


def trace(options: TraceOptions, output: Output) -> None:
    """Write a trace."""
    from perfvec.apply.tables import trace_table
    from perfvec.apply.tracing import launch_of
    from perfvec.apply.tracing import trace as trace_launch

    launch = launch_of(options.launch.read())
    _check_folder(options.output)
    with _progress(output) as on_progress:
        on_progress("tracing", 0, 0)
        traced = trace_launch(launch, work_groups=options.work_groups, budget=options.budget)
    traced.save(options.output)
    _show(trace_table(traced, options.output), output)


def devices(options: DevicesOptions, output: Output) -> None:
    """List devices."""
    from perfvec.apply.devices import devices as list_devices
    from perfvec.apply.tables import device_table

    entries = list_devices()
    if options.json:
        output.json({"devices": [asdict(entry) for entry in entries]})
    else:
        _show(device_table(entries), output)


def measure(options: MeasureOptions, output: Output) -> None:
    """Time a launch."""
    from perfvec.apply.measuring import measure_launch
    from perfvec.apply.tables import measured_table
    from perfvec.apply.tracing import launch_of

    launch = launch_of(options.launch.read())
    with _progress(output) as on_progress:
        on_progress("measuring", 0, 0)
        time = measure_launch(launch, opencl_device=options.opencl_device)
    if options.json:
        kept = ("device", "kernel_time_s", "spread", "num_repeats", "launch_overhead_s")
        output.json({**_launch_record(launch), **{name: getattr(time, name) for name in kept}})
    else:
        _show(measured_table(time), output)


def measure_suites(options: MeasureSuitesOptions, output: Output) -> None:
    """Time suites."""
    from perfvec.apply.measuring import measure_suites as run_campaign
    from perfvec.apply.tables import campaign_table
    from perfvec.arch.opencl import choose_device
    from perfvec.corpus.suite import load_suites

    _check_folder(options.output)
    device: LiveDevice = choose_device(options.opencl_device)
    with _progress(output) as on_progress:
        summary = run_campaign(
            options.output,
            device,
            total_budget_s=options.seconds,
            limit=options.limit,
            launches=load_suites(options.suites),
            on_progress=on_progress,
        )
    _show(campaign_table(summary, options.output), output)


def train(options: TrainOptions, output: Output) -> None:
    """Train a model."""
    from perfvec.apply.tables import evaluation_table, training_table
    from perfvec.apply.training import load_experiment, run_training

    config = load_experiment(options.config, out_dir=options.out_dir)
    with _progress(output) as on_progress:
        result = run_training(config, num_processes=options.processes, on_progress=on_progress)
    _show(training_table(result), output)
    for split in dict.fromkeys(row.split for row in result.rows):
        _show(evaluation_table([row for row in result.rows if row.split == split], title=split), output)


def evaluate(options: EvaluateOptions, output: Output) -> None:
    """Print accuracy."""
    from perfvec.apply.dataset import make_dataset
    from perfvec.apply.evaluating import check_unseen
    from perfvec.apply.evaluating import evaluate as evaluate_model
    from perfvec.apply.predicting import load_model
    from perfvec.apply.splits import load_holdout
    from perfvec.apply.tables import evaluation_table
    from perfvec.arch.measured import load_measured
    from perfvec.corpus.suite import load_suites
    from perfvec.report.tables import markdown

    if options.json and options.markdown:
        raise ConfigError("--json and --markdown exclude each other; give one of them")
    model = load_model(options.model)
    holdout = load_holdout(options.holdout)
    launches = load_suites(options.suites)
    check_unseen(model, launches, holdout)  # before hours of tracing
    with _progress(output) as on_progress:
        dataset = make_dataset(
            launches,
            load_measured(options.measured),
            device_names=_flat(options.devices),
            num_processes=options.processes,
            on_progress=on_progress,
        )
        on_progress("evaluating", 0, 0)
        rows = evaluate_model(model, dataset, holdout, options.split)
    if options.json:
        output.json({"rows": [asdict(row) for row in rows]})
    elif options.markdown:
        output.result(markdown(evaluation_table(rows)))
    else:
        _show(evaluation_table(rows, title=options.split), output)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: its record of options and the function that takes it."""

    options: type
    function: Callable[[Any, Output], None]


COMMANDS: dict[str, Command] = {
    "predict": Command(options=PredictOptions, function=predict),
    "trace": Command(options=TraceOptions, function=trace),
    "devices": Command(options=DevicesOptions, function=devices),
    "measure": Command(options=MeasureOptions, function=measure),
    "measure-suites": Command(options=MeasureSuitesOptions, function=measure_suites),
    "train": Command(options=TrainOptions, function=train),
    "evaluate": Command(options=EvaluateOptions, function=evaluate),
}


# ---- running ----------------------------------------------------------------------------------------------------


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: Without the program's name; the process's own where it is None.

    Returns:
        Exit code: 0, 2 for bad input, 130 where the user interrupted, 141 where nobody reads the output any more.
    """
    words = list(sys.argv[1:] if args is None else args)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    try:
        if words == ["--version"]:
            from perfvec import __version__

            Output().result(f"perfvec {__version__}")
            return EXIT_OK
        return _run(_parse(words or ["--help"]))
    except SystemExit as end:  # tyro's way to say that it has printed help or found a mistake
        return int(end.code or EXIT_OK)
    except PerfVecError as error:
        Output().message(f"perfvec: {error}")
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE


def _parse(words: Sequence[str]) -> object:
    union: Any = Union[  # noqa: UP007  (made from a table)
        tuple(
            Annotated[command.options, tyro.conf.subcommand(name, prefix_name=False)]
            for name, command in COMMANDS.items()
        )
    ]
    return tyro.cli(
        tyro.conf.OmitArgPrefixes[union],
        prog="perfvec",
        description=DESCRIPTION,
        args=words,
        config=(tyro.conf.FlagCreatePairsOff,),
    )


def _run(options: object) -> int:
    function = next(command.function for command in COMMANDS.values() if command.options is type(options))
    if getattr(options, "json", False):
        with stdout_kept_clean() as output:
            function(options, output)
    else:
        function(options, Output())
    return EXIT_OK


def _flat(groups: Several) -> Texts:
    return tuple(name for group in groups for name in group)


def _launch_record(launch: Launch) -> dict[str, object]:
    return {"kernel": launch.kernel_name, "launch": {**launch.recipe(), "digest": launch.digest}}


def _show(table: Table, output: Output) -> None:
    from perfvec.report.tables import render

    output.result(render(table, is_terminal=output.is_terminal))


@contextmanager
def _progress(output: Output) -> Iterator[OnProgress]:
    from perfvec.report.progress import progress_bar

    with progress_bar(output.stderr) as on_progress:
        yield on_progress


def _check_folder(path: Path) -> None:
    """Refuse an output file that cannot be written before the work that it is for."""
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write {path}: the folder {path.parent} does not exist; create it first")


if __name__ == "__main__":
    sys.exit(main())
