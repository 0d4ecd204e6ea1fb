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
from dataclasses import asdict, dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, final

import tyro

from perfvec.apply.options import (
    CalibrateOptions,
    CalibrationSetOptions,
    CorpusBalanceOptions,
    CorpusBuildOptions,
    CorpusDescribeOptions,
    CorpusInferOptions,
    CorpusMeasureOptions,
    DevicesOptions,
    EvaluateOptions,
    MeasureOptions,
    PredictOptions,
    Several,
    SimulateOptions,
    Texts,
    TraceOptions,
    TrainOptions,
)
from perfvec.errors import ConfigError, PerfVecError
from perfvec.report.output import Output, stdout_kept_clean

if TYPE_CHECKING:
    from perfvec.arch.device import Device
    from perfvec.arch.opencl import LiveDevice
    from perfvec.corpus.inference import InferredLaunch
    from perfvec.launch import Launch
    from perfvec.report.progress import OnProgress
    from perfvec.report.tables import Table

EXIT_OK = 0
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

DESCRIPTION = """Predicts the time of OpenCL kernels on devices that nobody needs to have at hand.
  perfvec predict gemm.cl --kernel gemm --global 1024,1024 --local 16,16 \\
      --arg buffer:float32:1048576 --arg buffer:float32:1048576 \\
      --arg buffer:float32:1048576 --arg int32:1024

perfvec COMMAND --help explains a command, perfvec --version prints the release."""


# ---- commands ---------------------------------------------------------------------------------------------------


def predict(options: PredictOptions, output: Output) -> None:
    """Print predicted times."""
    from perfvec.apply.predicting import predict as predict_source
    from perfvec.apply.tables import prediction_table
    from perfvec.apply.tracing import launch_of

    source = options.launch.read()
    launch = launch_of(source)
    with _progress(output) as on_progress:
        predictions = predict_source(
            source,
            _flat(options.devices),
            model=options.model,
            budget=options.budget,
            confidence=options.confidence,
            known_times=options.read_known_times(),
            on_progress=on_progress,
        )
    if options.json:
        output.json({**_launch_record(launch), "predictions": [asdict(item) for item in predictions]})
    else:
        _show(prediction_table(predictions), output)


def simulate(options: SimulateOptions, output: Output) -> None:
    """Print times of the timing model."""
    from perfvec.apply.simulating import read_setting, simulate_devices, simulate_space
    from perfvec.apply.simulation_tables import line_table, simulation_record, simulation_table, space_table, write_csv

    names = _flat(options.archs)
    if bool(names) == bool(options.space):
        raise ConfigError("give --arch NAME, or --space NAME and --samples N; perfvec devices lists the names")
    if options.by_line and options.space:
        raise ConfigError("--by-line is for single devices; give --arch instead of --space")
    if options.csv is not None:
        _check_folder(options.csv)
    settings = dict(map(read_setting, options.settings))
    source = options.launch.read()
    with _progress(output) as on_progress:
        common = {
            "settings": settings,
            "without": _flat(options.without),
            "budget": options.budget,
            "on_progress": on_progress,
        }
        if options.space:
            found = simulate_space(source, options.space, num_devices=options.samples, seed=options.seed, **common)
        else:
            found = simulate_devices(source, names, **common)
    if options.csv is not None:
        write_csv(found, options.csv)
    if options.json:
        output.json({**_launch_record(found.launch), **simulation_record(found, by_line=options.by_line)})
        return
    _show(space_table(found) if options.space else simulation_table(found), output)
    if found.left_out:
        output.message(f"{len(found.left_out)} of the drawn devices are left out: a work-group does not fit on them")
    if options.by_line:
        _show(line_table(found), output)


def trace(options: TraceOptions, output: Output) -> None:
    """Write a trace."""
    from perfvec.apply.tables import trace_table
    from perfvec.apply.tracing import launch_of, trace_to_file

    launch = launch_of(options.launch.read())
    _check_folder(options.output)
    texts: list[str] = []
    try:
        with _progress(output) as on_progress:
            on_progress("tracing", 0, 0)
            traced = trace_to_file(
                launch, options.output, work_groups=options.work_groups, budget=options.budget, on_printf=texts.append
            )
    finally:  # what a kernel printed before it failed says most about the failure
        for text in texts:
            output.message(text.removesuffix("\n"))
    _show(trace_table(traced, options.output), output)


def devices(options: DevicesOptions, output: Output) -> None:
    """List devices, add a device file, or fit vectors to the timing model."""
    from perfvec.apply.devices import devices as list_devices
    from perfvec.apply.devices import find_devices
    from perfvec.apply.tables import device_table

    if options.spaces:
        _list_spaces(options, output)
        return
    if product := options.product():
        from perfvec.apply.adding import add_known_gpu

        device, path, like = add_known_gpu(product, as_name=options.output)
        output.result(f"{device.name}: {path}")
        output.message(
            f"what its specification does not say is as on {like.name}; correct the file where you know better, and "
            f"then: perfvec devices twin {device.name}"
        )
        _make_twins([device], options, output)
        return
    if names := options.twins():
        _make_twins(find_devices(names), options, output)
        return
    entries = list_devices(model=options.model)
    if options.json:
        rows = [asdict(entry) for entry in entries]
        output.json({"devices": [{k: None if v != v else v for k, v in row.items()} for row in rows]})
    else:
        _show(device_table(entries), output)


def _make_twins(chosen: Sequence[Device], options: DevicesOptions, output: Output) -> None:
    from perfvec.apply.twins import make_twins, twin_path

    with _progress(output) as on_progress:
        made = make_twins(chosen, model=options.model, on_progress=on_progress)
    for twin in made:
        path = twin_path(twin.device, twin.model)
        output.result(f"{twin.device}: vector fitted to the timing model on {twin.num_launches} launches, {path}")


def _list_spaces(options: DevicesOptions, output: Output) -> None:
    from perfvec.apply.simulation_tables import parameter_table, space_record
    from perfvec.arch.space_files import load_spaces

    spaces = load_spaces().values()
    if options.json:
        output.json({"spaces": [space_record(space) for space in spaces]})
    for space in () if options.json else spaces:
        _show(parameter_table(space), output)


def calibrate(options: CalibrateOptions, output: Output) -> None:
    """Calibrate a device."""
    from perfvec.apply.calibrating import calibrate as calibrate_live
    from perfvec.apply.calibration_set import load_set
    from perfvec.apply.given_times import calibrate_from_csv
    from perfvec.apply.tables import calibration_table
    from perfvec.arch.opencl import choose_device

    if options.list:
        for name, digest in zip(load_set(options.model).names, load_set(options.model).digests, strict=True):
            suite, kernel, rest = name.split("/", 2)
            output.result(f'{suite}/{kernel},"{rest}",{digest}')
        return
    options.check()
    if options.times is not None:
        with _progress(output) as on_progress:
            result = calibrate_from_csv(
                options.times,
                name=options.output,
                model=options.model,
                unit=options.unit,
                is_replacing=options.replace,
                on_progress=on_progress,
            )
    else:
        live: LiveDevice = choose_device(options.opencl_device)
        with _progress(output) as on_progress:
            result = calibrate_live(
                live,
                name=options.output,
                model=options.model,
                budget_s=options.budget_s(),
                num_launches=options.launches,
                targets=options.read_targets(),
                is_replacing=options.replace,
                on_progress=on_progress,
            )
    if options.json:
        record = asdict(result)
        record["path"] = str(result.path)
        output.json(record)
    else:
        _show(calibration_table(result), output)


def calibration_set(options: CalibrationSetOptions, output: Output) -> None:
    """Make a calibration set."""
    from perfvec.apply.calibration_making import make_set
    from perfvec.apply.calibration_set import file_digest, save_set, set_path
    from perfvec.apply.dataset import make_dataset
    from perfvec.apply.models import load_model, model_path
    from perfvec.apply.splits import load_holdout
    from perfvec.arch.measured import load_measured
    from perfvec.corpus.suite import load_suites

    weights, path = model_path(options.model), set_path(options.model)
    with _progress(output) as on_progress:
        dataset = make_dataset(load_suites(), load_measured(), num_processes=options.processes, on_progress=on_progress)
        on_progress("fitting", 0, 0)
        made = make_set(load_model(weights), dataset, load_holdout(options.holdout), model_digest=file_digest(weights))
    save_set(made, path)
    output.result(f"{len(made.names)} launches, {int(made.is_candidate.sum())} of them to measure: {path}")


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
    from perfvec.apply.accuracy import evaluate_all, evaluate_split
    from perfvec.apply.tables import accuracy_tables, evaluation_table
    from perfvec.report.tables import markdown

    options.check()
    common = {
        "model_path": options.model,
        "holdout_path": options.holdout,
        "suites": options.suites,
        "measured": options.measured,
        "device_names": _flat(options.devices),
        "num_processes": options.processes,
    }
    with _progress(output) as on_progress:
        if options.all:
            found = evaluate_all(**common, is_full=options.full, on_progress=on_progress)
            record, tables, notes = asdict(found) | {"notes": found.notes}, accuracy_tables(found), found.notes
        else:
            timed = options.predictor == "timing-model"
            rows = evaluate_split(options.split, **common, has_timing_model=timed, on_progress=on_progress)
            record = {"rows": [asdict(row) for row in rows]}
            tables, notes = [evaluation_table(rows, title="" if options.markdown else options.split)], ()
    if options.json:
        output.json(record)
        return
    for table in tables:
        output.result(markdown(table) + "\n") if options.markdown else _show(table, output)
    for note in notes:
        output.result(note)


def corpus_build(options: CorpusBuildOptions, output: Output) -> None:
    """Build a corpus."""
    from perfvec.apply.corpora import build
    from perfvec.apply.corpus_tables import built_table

    _check_folder(options.output)
    with _progress(output) as on_progress:
        built = build(
            options.output,
            num_kernels=options.generated,
            launches_per_kernel=options.launches,
            programs_per_kernel=options.programs,
            seed=options.seed,
            device_names=_flat(options.devices),
            on_progress=on_progress,
        )
    _show(built_table(built, options.output), output)


def corpus_describe(options: CorpusDescribeOptions, output: Output) -> None:
    """Describe a corpus."""
    from perfvec.apply.corpora import distributions
    from perfvec.apply.corpus_description import describe, describe_shipped
    from perfvec.apply.corpus_tables import corpus_table, distribution_panels, distribution_table
    from perfvec.corpus.generated import Corpus
    from perfvec.corpus.times import CorpusTimes, times_path

    if options.file is None and (options.sample or options.check):
        raise ConfigError("--sample and --check need a FILE, such as traces/corpus/nvidia-h200.h5")
    if options.plot is not None:
        if options.sample < 1:
            raise ConfigError("--plot needs launches to trace; give --sample 200, for example")
        _check_folder(options.plot)
    found = None
    if options.file is None:
        description = describe_shipped()
    else:
        corpus = Corpus.load(options.file, is_checked=options.check)
        table = times_path(options.file)
        times = CorpusTimes.load(table, corpus_digest=corpus.stored_digest) if table.exists() else None
        description = describe(corpus, times)
        if options.sample:
            with _progress(output) as on_progress:
                found = distributions(corpus, sample=options.sample, on_progress=on_progress)
    if found is not None and options.plot is not None:
        from perfvec.report.plots import plot_histograms

        plot_histograms(options.plot, distribution_panels(found))
    if options.json:
        record = asdict(description)
        if found is not None:
            record["features"] = found.record()
            record["left_out"] = [{"launch": name, "reason": reason} for name, reason in found.left_out]
        output.json(record)
        return
    _show(corpus_table(description), output)
    if found is not None:
        _show(distribution_table(found), output)


def corpus_measure(options: CorpusMeasureOptions, output: Output) -> None:
    """Time a corpus."""
    from perfvec.apply.corpus_measuring import Order, check_times, measure, target_of
    from perfvec.apply.corpus_tables import check_table, measured_table
    from perfvec.arch.opencl import choose_device

    budget_s = options.budget_s()
    target = target_of(options.file, options.output, is_suites=options.suites)
    _check_folder(target.path)
    order = Order(
        num_kernels=options.kernels, num_launches=options.launches, num_workers=options.workers, seed=options.seed
    )
    device = choose_device(options.opencl_device)
    with _progress(output) as on_progress:
        if options.check:
            checked = check_times(target, device, options.check, order, budget_s, on_progress)
            record, table = checked.record(), check_table(checked)
        else:
            summary = measure(target, device, order, budget_s, on_progress)
            record, table = asdict(summary), measured_table(summary)
    if options.json:
        output.json(record)
    else:
        _show(table, output)


def corpus_balance(options: CorpusBalanceOptions, output: Output) -> None:
    """Balance a corpus."""
    from perfvec.apply.balancing import balance_corpora, plot_balance
    from perfvec.apply.corpus_tables import balance_table

    for path in filter(None, (options.output, options.plot)):
        _check_folder(path)
    with _progress(output) as on_progress:
        on_progress("balancing", 0, 0)
        balanced = balance_corpora(options.files, options.device, num_launches=options.launches, seed=options.seed)
    balanced.balance.corpus.save(options.output)
    if options.plot is not None:
        plot_balance(balanced, options.plot)
    if options.json:
        output.json(balanced.record())
    else:
        _show(balance_table(balanced, options.output), output)


def corpus_infer(options: CorpusInferOptions, output: Output) -> None:
    """Infer arguments."""
    from perfvec.apply.inferring import infer_file, launch_options, write_launches
    from perfvec.apply.tables import inference_table

    if options.output is not None:
        _check_folder(options.output)
    global_size, local_size = options.read_sizes()
    with _progress(output) as on_progress:
        found = infer_file(
            options.file,
            kernel_name=options.kernel,
            global_size=global_size,
            local_size=local_size,
            scalars=options.read_scalars(),
            build_options=options.compiler_options(),
            max_bytes=options.max_bytes,
            on_kernel=on_progress,
        )
    paths = write_launches(found, options.output) if options.output is not None else []
    if options.json:
        output.json({"launches": [_inferred_record(item) for item in found], "files": list(map(str, paths))})
        return
    for item in found:
        _show(inference_table(item), output)
        if words := launch_options(item):
            output.result(f"perfvec predict {options.file} {words}")
    for path in paths:
        output.message(f"written to {path}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: its record of options and the function that takes it."""

    options: type
    function: Callable[[Any, Output], None]


COMMANDS: dict[str, Command] = {
    "predict": Command(options=PredictOptions, function=predict),
    "simulate": Command(options=SimulateOptions, function=simulate),
    "trace": Command(options=TraceOptions, function=trace),
    "devices": Command(options=DevicesOptions, function=devices),
    "calibrate": Command(options=CalibrateOptions, function=calibrate),
    "calibration-set": Command(options=CalibrationSetOptions, function=calibration_set),
    "measure": Command(options=MeasureOptions, function=measure),
    "train": Command(options=TrainOptions, function=train),
    "evaluate": Command(options=EvaluateOptions, function=evaluate),
    # Two words: a command of a group.
    "corpus build": Command(options=CorpusBuildOptions, function=corpus_build),
    "corpus describe": Command(options=CorpusDescribeOptions, function=corpus_describe),
    "corpus measure": Command(options=CorpusMeasureOptions, function=corpus_measure),
    "corpus balance": Command(options=CorpusBalanceOptions, function=corpus_balance),
    "corpus infer": Command(options=CorpusInferOptions, function=corpus_infer),
}
GROUPS = {
    "corpus": "Launches to learn from: build them for your devices, time them, see what they are like, "
    "infer those of others."
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
            from perfvec.version import __version__

            Output().result(f"perfvec {__version__}")
            return EXIT_OK
        return _run(_parse(_with_dashes(words) or ["--help"]))
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


def _with_dashes(words: Sequence[str]) -> list[str]:
    """Let the value of --build-options begin with a dash, as compilers' options do."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--build-options":
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _parse(words: Sequence[str]) -> object:
    found = tyro.cli(
        tyro.conf.OmitArgPrefixes[_union("")],
        prog="perfvec",
        description=DESCRIPTION,
        args=words,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    return getattr(found, _IN_GROUP, found)


_IN_GROUP = "of_group"


def _union(group: str) -> Any:
    """The commands of a group as a type; "" for the command line itself, whose groups are among its commands."""
    words = {name.rpartition(" ")[::2]: command.options for name, command in COMMANDS.items()}
    options: dict[str, Any] = {name: kind for (prefix, name), kind in words.items() if prefix == group}
    for name in GROUPS if not group else ():
        record = make_dataclass(name.capitalize(), [(_IN_GROUP, _union(name))], frozen=True, kw_only=True)
        record.__doc__ = GROUPS[name]
        options[name] = record
    return Union[  # noqa: UP007  (made from a table)
        tuple(Annotated[kind, tyro.conf.subcommand(name, prefix_name=False)] for name, kind in options.items())
    ]


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


def _inferred_record(inferred: InferredLaunch) -> dict[str, object]:
    arguments = [
        {"name": a.name, "argument": str(a.argument), "role": a.role, "reason": a.reason} for a in inferred.arguments
    ]
    kept = {"arguments": arguments, "demands": inferred.demands, "repairs": inferred.repairs}
    return {**_launch_record(inferred.launch), **kept}


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
