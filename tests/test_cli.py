from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import h5py
import pytest

from perfvec import cli
from perfvec.apply import predicting
from perfvec.apply.splits import Holdout, save_holdout
from perfvec.arch.measured import MeasuredTable
from perfvec.launch import Launch
from perfvec.trace_data import Trace
from tests.apply.test_training import CONFIG
from tests.apply.tiny import KERNELS, measured_table, measured_time, suites, tiny_model
from tests.arch.test_session import live_pocl

COMMAND = [sys.executable, "-m", "perfvec.cli"]
SCALE = ["--kernel", "scale", "--global", "4096", "--local", "64", "--arg", "buffer:float32:4096", "--arg", "float32:2"]
BUFFER = ["--global", "4096", "--local", "64", "--arg", "buffer:float32:4096"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with kernels and a model."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "tiny.cl").write_text(KERNELS)
    (folder / "broken.cl").write_text("__kernel void scale( {")
    tiny_model().save(folder / "tiny.safetensors")
    return folder


@pytest.fixture(autouse=True)
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Run a command in this process: exit code, stdout, stderr."""
    code = cli.main(args)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def predict(*args: str) -> tuple[str, ...]:
    return ("predict", *args, "--model", "tiny.safetensors")


def launch() -> Launch:
    return Launch.from_file(
        "tiny.cl", kernel_name="scale", args=["buffer:float32:4096", "float32:2"], global_size=4096, local_size=64
    )


# ---- the command line itself ------------------------------------------------------------------------------------


def test_help_and_argument_errors_come_at_once():
    # Under 1.5 s of this process's own time on an idle machine; a busy one must not fail the test, so CPU time counts.
    for args, code in ((["--help"], 0), (["predict", "--kernell", "x"], 2)):
        before = os.times()
        ran = subprocess.run([*COMMAND, *args], capture_output=True, text=True, check=False)
        after = os.times()
        assert ran.returncode == code
        assert after.children_user + after.children_system - before.children_user - before.children_system < 1.5


def test_nothing_heavy_is_loaded_to_parse_arguments():
    heavy = ["torch", "numba", "llvmlite", "pyopencl", "h5py", "numpy", "sklearn", "scipy"]
    script = f"import sys, perfvec.cli; print([name for name in {heavy!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_no_argument_shows_help_with_every_command(capsys: pytest.CaptureFixture[str]):
    code, out, err = run(capsys)
    assert code == 0
    assert err == ""
    for name in cli.COMMANDS:
        assert name.split()[0] in out
    assert "perfvec predict gemm.cl --kernel gemm" in out


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_each_command_explains_its_options(capsys: pytest.CaptureFixture[str], name: str):
    code, out, _ = run(capsys, *name.split(), "--help")
    assert code == 0
    assert f"usage: perfvec {name}" in out
    assert "default: None" not in out


def test_options_are_called_as_documented(capsys: pytest.CaptureFixture[str]):
    _, out, _ = run(capsys, "predict", "--help")
    for option in ("--kernel", "--global", "--local", "--arg", "--define", "--device", "--json", "--model"):
        assert f" {option} " in out
    assert "-o PATH, --output PATH" in run(capsys, "trace", "--help")[1]
    assert "--opencl-device" in run(capsys, "measure", "--help")[1]
    assert "--config" in run(capsys, "train", "--help")[1]
    assert "{unseen-kernel,unseen-launch" in run(capsys, "evaluate", "--help")[1]


def test_version(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "--version")
    assert code == 0
    assert out.startswith("perfvec ")


@pytest.mark.parametrize("args", [["guess"], ["predict"], ["predict", "tiny.cl", "--globl", "3"], ["trace", "tiny.cl"]])
def test_mistakes_on_the_command_line_end_with_2(capsys: pytest.CaptureFixture[str], args: list[str]):
    code, out, err = run(capsys, *args)
    assert code == 2
    assert out == ""
    assert "--help" in err


def test_interruption_is_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def interrupt(*args: object, **settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(predicting, "trace", interrupt)
    assert run(capsys, *predict("tiny.cl", *SCALE)) == (130, "", "")


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(predicting, "find_devices", lambda names: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(predict("tiny.cl", *SCALE))


def test_a_reader_that_goes_away_is_no_error(place: Path):
    ran = subprocess.run(
        f"{' '.join(COMMAND)} devices | true; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.strip() in ("141", "0")  # 0 where all was written before the reader went
    assert ran.stderr == ""


# ---- predict ----------------------------------------------------------------------------------------------------


def test_predict_as_json_through_the_shell(place: Path):
    ran = subprocess.run(
        [*COMMAND, *predict("tiny.cl", *SCALE, "--device", "nvidia-h200", "amd-mi210", "--json")],
        capture_output=True, text=True, check=True, cwd=place,
    )  # fmt: skip
    assert ran.stdout.count("\n") == 1
    record = json.loads(ran.stdout)
    assert list(record) == ["kernel", "launch", "predictions"]
    assert record["kernel"] == "scale"
    assert record["launch"] == {**launch().recipe(), "digest": launch().digest}
    kept = ["device", "kernel_time_s", "low_s", "high_s", "confidence", "measured_s", "kind", "is_familiar"]
    assert [list(item) for item in record["predictions"]] == [kept] * 2
    assert [item["device"] for item in record["predictions"]] == ["nvidia-h200", "amd-instinct-mi210"]
    assert all(0 < item["kernel_time_s"] < 1 for item in record["predictions"])
    assert [item["measured_s"] for item in record["predictions"]] == [None, None]


def test_predict_shows_the_measured_time_where_there_is_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    entry = replace(suites(tmp_path)[0], launch=launch())
    table = MeasuredTable(times=(measured_time(entry, "nvidia-h200", 12.5e-6),))
    monkeypatch.setattr(predicting, "load_measured", lambda: table)
    _, out, _ = run(capsys, *predict("tiny.cl", *SCALE, "--device", "h200", "--device", "mi250x-none", "--json"))
    assert out == ""  # an unknown device
    _, out, _ = run(capsys, *predict("tiny.cl", *SCALE, "--device", "h200", "--device", "amd-mi210", "--json"))
    assert [item["measured_s"] for item in json.loads(out)["predictions"]] == [12.5e-6, None]
    _, out, _ = run(capsys, *predict("tiny.cl", *SCALE, "--device", "h200", "--device", "amd-mi210"))
    head, first, second = out.splitlines()
    assert head.split()[:5] == ["device", "predicted", "80", "%", "interval"]
    assert head.split()[5:] == ["measured", "error", "device", "known", "by"]
    assert "12.5 µs" in first
    assert second.split()[-4:-2] == ["-", "-"]
    assert first.endswith("measured launches")


def test_predict_all_devices_by_default(capsys: pytest.CaptureFixture[str]):
    code, out, err = run(capsys, *predict("tiny.cl", *SCALE))
    assert code == 0
    assert err == ""
    names = [line.split()[0] for line in out.splitlines()[1:]]
    assert names == sorted(names)
    assert "nvidia-h200" in names


def test_sizes_macros_and_default_local_size(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    (tmp_path / "macro.cl").write_text("__kernel void fill(__global TYPE *a) { a[get_global_id(1)] = VALUE; }")
    args = ["--kernel", "fill", "--global", "64,4", "--arg", "buffer:int32:64"]
    defines = ["--define", "TYPE=int", "--define", "VALUE=3"]
    code, out, _ = run(capsys, *predict(str(tmp_path / "macro.cl"), *args, *defines, "--device", "h200", "--json"))
    assert code == 0
    record = json.loads(out)["launch"]
    assert record["build_options"] == ["-DTYPE=int", "-DVALUE=3"]
    assert record["global_size"] == [64, 4]
    assert record["local_size"] == [64, 1]


# ---- trace, devices, measure ------------------------------------------------------------------------------------


def test_a_trace_may_be_predicted_later(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "out.h5"
    code, out, err = run(capsys, "trace", "tiny.cl", *SCALE, "-o", str(path))
    assert (code, err) == (0, "")
    assert "48 of 64 traced" in out
    assert Trace.load(path).launch == launch()
    from_trace = run(capsys, *predict(str(path), "--device", "h200", "--json"))
    assert from_trace == run(capsys, *predict("tiny.cl", *SCALE, "--device", "h200", "--json"))
    code, _, err = run(capsys, *predict(str(path), "--kernel", "scale"))
    assert code == 2
    assert "holds a whole launch; leave out kernel" in err


def test_what_a_kernel_prints_goes_to_stderr(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    (tmp_path / "prints.cl").write_text(
        'kernel void k(global int *o, int bad) { printf("item %d\\n", (int)get_global_id(0)); o[bad] = 1; }'
    )
    command = ("trace", str(tmp_path / "prints.cl"), "--kernel", "k", "--global", "2", "--local", "2")
    output = ("-o", str(tmp_path / "out.h5"))
    code, out, err = run(capsys, *command, "--arg", "buffer:int32:4", "--arg", "int32:0", *output)
    assert (code, err) == (0, "item 0\nitem 1\n")
    assert "item" not in out
    code, out, err = run(capsys, *command, "--arg", "buffer:int32:4", "--arg", "int32:4", *output)
    assert (code, out) == (2, "")
    assert err.startswith("item 0\nitem 1\nperfvec: kernel 'k', work-group (0,), work-item 0 of the group, line 1")


def test_inferred_launches_may_be_traced(capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path):
    (place / "guess.cl").write_text(
        "kernel void one(global float* a, int n) { int i = get_global_id(0); if (i < n) a[i] += 1.0f; }\n"
        "kernel void two(global float* a, global float* b) { int i = get_global_id(0); b[i] = a[i - 1]; }\n"
    )
    code, out, err = run(capsys, "corpus", "infer", "guess.cl", "--global", "512", "-o", str(tmp_path / "launches"))
    assert code == 0
    assert "int32:512" in out
    assert "--kernel one --global 512 --local 256 --arg 'buffer:float32:512:uniform(0,1)~0' --arg int32:512" in out
    assert "global offset 1" in out
    assert "written to" in err
    for name in ("one", "two"):
        stored = str(tmp_path / "launches" / f"{name}.h5")
        assert run(capsys, "trace", stored, "-o", str(tmp_path / "t.h5"))[0] == 0
    _, out, _ = run(capsys, "corpus", "infer", "guess.cl", "--kernel", "one", "--set", "n=100", "--json")
    (record,) = json.loads(out)["launches"]
    assert [a["role"] for a in record["arguments"]] == ["input and output", "given"]
    assert record["launch"]["args"][1] == "int32:100"


def test_devices(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "devices", "--json")
    assert code == 0
    entry = next(item for item in json.loads(out)["devices"] if item["name"] == "nvidia-h200")
    assert list(entry)[:5] == ["name", "kind", "vendor", "type", "architecture"]
    assert entry["year"] == 2024
    assert entry["num_measured_launches"] >= 0
    assert "nvidia-h200" in run(capsys, "devices")[1]


def test_simulate(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    code, out, _ = run(capsys, "simulate", "tiny.cl", *SCALE, "--arch", "h200", "--arch", "nvidia-gtx-480", "--by-line")
    assert code == 0
    assert re.search(r"kernel time +\S+ .s +\S+ .s", out)
    assert re.search(r"launch +\S+ % +\S+ %", out)
    assert "(launch, dispatch)" in out
    args = (
        "--space",
        "around-h200",
        "--samples",
        "5",
        "--csv",
        str(tmp_path / "x.csv"),
        "--json",
        "--set",
        "l2_ways=8",
    )
    code, out, _ = run(capsys, "simulate", "tiny.cl", *SCALE, *args)
    record = json.loads(out)
    assert [item["device"] for item in record["devices"]] == [f"around-h200/{number}" for number in range(5)]
    assert all(item["config"]["l2_ways"] == 8 for item in record["devices"])
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 6
    code, out, _ = run(capsys, "simulate", "tiny.cl", *SCALE, "--space", "around-h200", "--samples", "5")
    assert out.startswith("5 devices, ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "give --arch NAME, or --space NAME and --samples N"),
        (("--arch", "h200", "--space", "around-h200"), "give --arch NAME, or --space NAME"),
        (("--space", "around-h200", "--by-line"), "--by-line is for single devices"),
        (("--space", "around"), "no design space 'around'; allowed: around-h200"),
        (("--arch", "h2000"), "no device 'h2000'; did you mean"),
        (("--arch", "h200", "--set", "l2_bytes=1"), "l2_bytes=1; allowed are whole numbers from"),
        (("--arch", "h200", "--without", "gravity"), "no mechanism gravity to switch off; there are issue"),
        (("--arch", "h200", "--csv", "none/x.csv"), "the folder none does not exist"),
    ],
)
def test_simulate_refuses_bad_input(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], message: str):
    code, _, err = run(capsys, "simulate", "tiny.cl", *SCALE, *args)
    assert code == 2
    assert message in err


def test_design_spaces_are_listed(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "devices", "--spaces")
    assert code == 0
    assert re.search(r"compute.compute_units +log-uniform +1 to 304", out)
    code, out, _ = run(capsys, "devices", "--spaces", "--json")
    assert {space["name"] for space in json.loads(out)["spaces"]} >= {"around-h200", "gpu-2010-today"}


def test_measure(capsys: pytest.CaptureFixture[str]):
    number = str(live_pocl().number)
    code, out, _ = run(capsys, "measure", "tiny.cl", *SCALE, "--opencl-device", number, "--json")
    assert code == 0
    record = json.loads(out)
    assert list(record) == [
        "kernel", "launch", "device", "kernel_time_s", "spread", "num_repeats", "launch_overhead_s",
    ]  # fmt: skip
    assert record["launch"]["digest"] == launch().digest
    assert record["kernel_time_s"] > 0
    assert record["num_repeats"] >= 1


def test_measuring_suites_goes_on_where_it_stopped(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    suites(tmp_path / "suites", sizes=(256,))
    args = ["corpus", "measure", str(tmp_path / "suites"), "--out", str(tmp_path / "t.h5"), "--workers", "1", "--json"]
    args += ["--opencl-device", str(live_pocl().number)]
    code, out, _ = run(capsys, *args, "--launches", "3")
    assert code == 0
    assert json.loads(out)["num_measured"] == 3
    _, out, _ = run(capsys, *args)
    assert (json.loads(out)["num_measured"], json.loads(out)["num_known"]) == (1, 3)
    assert len(MeasuredTable.load(tmp_path / "t.h5").digests) == 4


# ---- train, evaluate --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experiment")
    entries = suites(folder / "suites", sizes=(256, 1024, 4096))
    (folder / "measured").mkdir()
    measured_table(entries).save(folder / "measured" / "tiny.h5")
    save_holdout(Holdout(name="tiny", families=(("one", ("scale",)),)), folder / "holdout.toml")
    (folder / "config.yaml").write_text(CONFIG.format(folder=folder))
    return folder


def test_train_and_evaluate(capsys: pytest.CaptureFixture[str], experiment: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(experiment / "cache"))
    code, out, _ = run(capsys, "train", "--config", str(experiment / "config.yaml"), "--processes", "0")
    assert code == 0
    assert str(experiment / "out" / "model.safetensors") in out
    assert "unseen-kernel" in out
    options = ["--model", str(experiment / "out" / "model.safetensors"), "--processes", "0"]
    options += [f"--{name}={experiment / name}" for name in ("measured", "suites")]
    options += ["--holdout", str(experiment / "holdout.toml")]
    code, out, err = run(capsys, "evaluate", *options, "--json")
    assert (code, err) == (0, "")
    rows = json.loads(out)["rows"]
    named = (
        "predictor split device mape median_ape p90_ape worst_ape worst_kernel num_launches subset rank_correlation "
        "share_within_25"
    )
    assert all(set(named.split()) <= set(row) for row in rows)
    assert {row["predictor"] for row in rows} == {
        "perfvec", "constant", "row + column effect", "datasheet roofline", "random forest",
    }  # fmt: skip
    assert {row["split"] for row in rows} == {"unseen-kernel"}
    assert {row["worst_kernel"] for row in rows} == {"one/scale"}
    code, out, _ = run(capsys, "evaluate", *options, "--json", "--predictor", "timing-model")
    assert {row["predictor"] for row in json.loads(out)["rows"]} - {row["predictor"] for row in rows} == {
        "timing model"
    }
    code, out, _ = run(capsys, "evaluate", *options, "--markdown")
    assert out.startswith("| device | subset | predictor |")
    code, _, err = run(capsys, "evaluate", *options, "--json", "--markdown")
    assert code == 2
    assert "exclude each other" in err
    code, _, err = run(capsys, "evaluate", *options, "--split", "unseen-launch")
    assert code == 2
    assert "no measured launch is held out for unseen-launch" in err


def test_evaluate_all_splits_at_once(capsys: pytest.CaptureFixture[str], experiment: Path, tmp_path: Path):
    tiny_model().save(tmp_path / "tiny.safetensors")
    options = ["evaluate", "--all", "--model", str(tmp_path / "tiny.safetensors"), "--processes", "0"]
    options += [f"--{name}={experiment / name}" for name in ("measured", "suites")]
    options += ["--holdout", str(experiment / "holdout.toml")]
    code, out, _ = run(capsys, *options, "--full", "--json")
    assert code == 0
    (line,) = out.splitlines()
    record = json.loads(line)
    assert set(record) == {"rows", "is_full", "num_launches", "num_training_launches", "left_out", "notes"}
    assert (record["is_full"], record["num_launches"], record["num_training_launches"]) == (True, 12, 9)
    assert {(row["split"], row["num_measured"]) for row in record["rows"]} == {
        ("unseen-kernel", 0), *(("both-unseen", count) for count in (0, 1, 5, 10, 20)),
    }  # fmt: skip
    assert {row["predictor"] for row in record["rows"]} == {
        "perfvec", "constant", "row + column effect", "datasheet roofline", "random forest", "timing model",
    }  # fmt: skip
    code, out, _ = run(capsys, *options, "--full", "--markdown")
    assert code == 0 and "**both-unseen**" in out and record["notes"][0] in out
    for extra, message in (
        ([], "none of the 12 launches is in the fixed sample"),
        (["--full", "--split", "unseen-launch"], "--all has every split and predictor"),
        (["--json", "--markdown"], "exclude each other"),
    ):
        code, out, err = run(capsys, *options, *extra)
        assert (code, out) == (2, "") and message in err
    code, _, err = run(capsys, "evaluate", "--full")
    assert code == 2 and "--full goes with --all" in err


def test_a_model_that_has_seen_the_test_is_refused(
    capsys: pytest.CaptureFixture[str], experiment: Path, tmp_path: Path
):
    tiny_model(("scale",)).save(tmp_path / "cheat.safetensors")
    options = ["--model", str(tmp_path / "cheat.safetensors"), "--holdout", str(experiment / "holdout.toml")]
    code, out, err = run(capsys, "evaluate", *options, "--suites", str(experiment / "suites"), "--json")
    assert (code, out) == (2, "")
    assert "the model was trained on scale" in err


# ---- bad input: one message, exit code 2, nothing half-written --------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["broken.cl", *SCALE], "broken.cl does not compile:\nbroken.cl:1:"),
        (["absent.cl", *SCALE], "cannot read kernel source absent.cl"),
        (["tiny.cl", "--kernel", "scal", *BUFFER], "no kernel 'scal' in the program; its kernels are: scale, add"),
        (["tiny.cl", "--kernel", "scale", *BUFFER], "kernel 'scale' takes 2 arguments, 1 were given"),
        (["tiny.cl", "--kernel", "scale", *BUFFER, "--arg", "int32:1"], "argument 1 (f) of kernel 'scale'"),
        (
            ["tiny.cl", "--kernel", "scale", *BUFFER, "--arg", "float32:x"],
            "'x' in argument 'float32:x' is not a number",
        ),
        (["tiny.cl", "--kernel", "scale", *BUFFER, "--arg", "float:1"], "unknown type 'float'"),
        (["tiny.cl", "--kernel", "beyond", *BUFFER], "of buffer 'a', which has 16384 bytes"),
        (["tiny.cl", "--kernel", "torn", *BUFFER], "3 of 64 work-items reached the barrier at line"),
        (["tiny.cl", "--kernel", "endless", *BUFFER, "--budget", "10000"], "ran past the budget of 10,000"),
        (["tiny.cl", "--kernel", "pictured", *BUFFER, "--arg", "buffer:float32x4:4096"], "kernel 'pictured'"),
        (
            ["tiny.cl", "--global", "64"],
            "tiny.cl has 8 kernels: scale, add, power, gather, beyond, torn, endless, pictured; say which",
        ),
        (["tiny.cl", "--kernel", "scale"], "tiny.cl needs --global"),
        (["tiny.cl", "--kernel", "scale", "--global", "a,b"], "--global 'a,b' is not one to three whole numbers"),
        (["tiny.cl", "--kernel", "scale", "--global", "1,1,1,1"], "4 dimensions; OpenCL allows 1 to 3"),
        (["tiny.cl", "--kernel", "scale", "--global", "100", "--local", "64"], "is not a multiple of local size"),
        (["tiny.cl", *SCALE, "--define", "A B=3"], "--define 'A B=3' is not NAME=VALUE"),
        (["tiny.cl", *SCALE, "--build-options", "-I 'a"], "cannot be split into words"),
        (["absent.h5"], "absent.h5 does not exist"),
    ],
)
def test_bad_input_gives_one_message(capfd: pytest.CaptureFixture[str], tmp_path: Path, args: list[str], message: str):
    for command in (predict(*args, "--json"), ("trace", *args, "-o", str(tmp_path / "out.h5"))):
        code, out, err = run(capfd, *command)
        assert (code, out) == (2, "")
        assert message in err
        # clang counts its errors in a line of its own
        assert [line for line in err.splitlines() if line.startswith("perfvec: ")] == [
            line for line in err.splitlines() if "perfvec: " in line
        ]
        assert err.count("perfvec: ") == 1
        assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (predict("tiny.cl", *SCALE, "--device", "nvidia-h20"), "no device 'nvidia-h20'; did you mean nvidia-h200"),
        (("predict", "tiny.cl", *SCALE, "--model", "absent"), "there is no model file at absent"),
        (("predict", "tiny.cl", *SCALE, "--model", "tiny.cl"), "tiny.cl is not a readable safetensors file"),
        (predict("damaged.h5"), "damaged.h5 is not a readable HDF5 file"),
        (predict("future.h5"), "future.h5 has perfvec-trace format version 99; this release reads 2. Upgrade perfvec"),
        (("trace", "tiny.cl", *SCALE, "-o", "absent/out.h5"), "the folder absent does not exist; create it first"),
        (("measure", "tiny.cl", *SCALE, "--opencl-device", "99"), "there is no OpenCL device 99; found:"),
        (("corpus", "measure", "--suites", "-o", "absent/t.h5"), "the folder absent does not exist"),
        (("train", "--config", "absent.yaml"), "cannot read configuration absent.yaml"),
        (("evaluate", "--model", "absent"), "there is no model file at absent"),
        (("corpus", "infer", "absent.cl"), "cannot read kernel source absent.cl"),
        (("corpus", "infer", "broken.cl"), "broken.cl does not compile"),
        (("corpus", "infer", "tiny.cl", "--kernel", "scal"), "no kernel 'scal' in the program"),
        (("corpus", "infer", "tiny.cl", "--kernel", "scale", "--set", "n"), "--set 'n' is not NAME=NUMBER"),
        (("corpus", "infer", "tiny.cl", "--kernel", "scale", "--set", "q=1"), "no argument 'q'; its arguments are:"),
        (("corpus", "infer", "tiny.cl", "-o", "absent/out"), "the folder absent does not exist"),
        (("evaluate", "--model", "tiny.safetensors", "--holdout", "x.toml"), "cannot read holdout file x.toml"),
        (
            ("evaluate", "--model", "tiny.safetensors", "--measured", "absent"),
            "folder of measured times absent does not",
        ),
    ],
)
def test_other_bad_input_too(capsys: pytest.CaptureFixture[str], place: Path, args: tuple[str, ...], message: str):
    (place / "damaged.h5").write_bytes(b"\x89HDF\r\n\x1a\n and then nothing")
    with h5py.File(place / "future.h5", "w") as file:
        file.attrs["format"] = "perfvec-trace"
        file.attrs["format_version"] = 99
    before = sorted(place.iterdir())
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert sorted(place.iterdir()) == before


def test_without_any_opencl_device_measuring_says_what_to_install(place: Path):
    ran = subprocess.run(
        [*COMMAND, "measure", "tiny.cl", *SCALE], capture_output=True, text=True, check=False, cwd=place,
        env={**os.environ, "OCL_ICD_VENDORS": str(place)},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (2, "")
    # pyopencl finds the simulator's wheel by itself; it does not count.
    assert re.match(r"perfvec: no OpenCL device to run kernels on; found: (none|0: Oclgrind.*)\. Install", ran.stderr)
    assert ran.stderr.count("\n") == 1


def test_what_a_killed_trace_leaves_goes_with_the_next(place: Path, tmp_path: Path):
    args = ["trace", "tiny.cl", "--kernel", "endless", *BUFFER, "-o", str(tmp_path / "out.h5")]
    process = subprocess.Popen([*COMMAND, *args], cwd=place, stderr=subprocess.DEVNULL)
    time.sleep(1.0)
    process.kill()
    process.wait()
    assert not (tmp_path / "out.h5").exists()
    subprocess.run([*COMMAND, "trace", "tiny.cl", *SCALE, "-o", str(tmp_path / "out.h5")], cwd=place, check=True)
    assert list(tmp_path.iterdir()) == [tmp_path / "out.h5"]


def test_output_is_readable_in_any_encoding(place: Path):
    ran = subprocess.run(
        [*COMMAND, *predict("tiny.cl", *SCALE, "--device", "h200")],
        capture_output=True, check=True, cwd=place, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert b" us " in ran.stdout
    ran = subprocess.run(
        [*COMMAND, "predict"], capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert ran.returncode == 2


# ---- corpora ----------------------------------------------------------------------------------------------------


def test_groups_of_commands_show_theirs(capsys: pytest.CaptureFixture[str]):
    for group in cli.GROUPS:
        code, out, _ = run(capsys, group, "--help")
        assert code == 0
        theirs = {name.split()[-1] for name in cli.COMMANDS if name.startswith(f"{group} ")}
        for name in cli.COMMANDS:
            assert (name.split()[-1] in theirs) == (f"• {name.split()[-1]} " in out)
    assert run(capsys, "corpus")[0] == 2
    assert run(capsys, "corpus", "biuld")[0] == 2


def test_corpus_build_and_describe(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "corpus.h5"
    build = ("corpus", "build", "--generated", "30", "--launches", "4", "--seed", "3", "-o", str(path))
    code, out, _ = run(capsys, *build, "--device", "h200", "--device", "nvidia-tesla-t4")
    assert code == 0
    assert re.search(r"built +\d+ launches a second on one core", out)
    code, out, _ = run(capsys, "corpus", "describe", str(path), "--json", "--check")
    assert code == 0
    found = json.loads(out)
    assert found["kernels"] == 30
    assert list(found["devices"]) == ["nvidia-h200", "nvidia-tesla-t4"]
    assert found["launches"] == sum(item["launches"] for item in found["devices"].values())
    assert 225 <= found["launches"] <= 240
    assert 15 <= found["families"] <= 30
    assert sum(found["family_kernels"].values()) == 30
    assert 0.3 < found["share_tied_to_global_size"] < 0.7
    for name in ("type_shares", "width_shares", "dim_shares", "fill_shares"):
        assert sum(found[name].values()) == pytest.approx(1.0)
    assert found["fill_shares"] == pytest.approx({"underused": 0.6, "idle": 0.25, "full": 0.15}, abs=0.04)
    code, out, _ = run(capsys, "corpus", "describe", str(path))
    assert code == 0
    assert re.search(r"nvidia-tesla-t4 +\d+ launches meant for it", out)


def test_corpus_measure_and_balance(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path, more = tmp_path / "corpus.h5", tmp_path / "more.h5"
    number = str(live_pocl().number)
    build = ("corpus", "build", "--generated", "4", "--launches", "2", "--seed", "3", "-o", str(path))
    assert run(capsys, *build, "--device", "amd-epyc-2core-pocl")[0] == 0
    measure = ("corpus", "measure", str(path), "--opencl-device", number, "--workers", "1")
    code, out, _ = run(capsys, *measure, "--kernels", "1", "--json", "--budget", "2m")
    assert code == 0
    found = json.loads(out)
    assert found["num_measured"] + found["num_failed"] == found["num_launches"] - found["num_left"] > 0
    assert found["table"] == str(tmp_path / "corpus.times.h5")
    code, out, _ = run(capsys, *measure, "--budget", "0.001")
    assert code == 0
    assert re.search(rf"known before +{found['num_launches'] - found['num_left']}", out)
    balance = ("corpus", "balance", str(path), "--device", found["device"], "-o", str(more))
    code, out, err = run(capsys, *balance)
    assert (code, out) == (2, "") and "measure more of the corpus first" in err and not more.exists()


def test_corpus_commands_refuse_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = str(tmp_path / "corpus.h5")
    build = ("corpus", "build", "--generated", "2", "-o", path)
    for words, message in (
        (build, "a corpus is built for devices; give --device NAME"),
        ((*build, "--device", "h2000"), "did you mean h200"),
        ((*build, "--device", "h200", "--device", "nvidia-h200"), "each may be given once"),
        (("corpus", "build", "--generated", "0", "-o", path, "--device", "h200"), "0 kernels; allowed are 1 to"),
        (("corpus", "build", "--generated", "1", "-o", "no/x.h5", "--device", "h200"), "the folder no does not exist"),
        (("corpus", "describe", path), "does not exist"),
        (("corpus", "describe", "--check"), "--sample and --check need a FILE"),
        (("corpus", "measure"), "give either a corpus file or --suites"),
        (("corpus", "measure", "--suites"), "suites need --out FILE"),
        (("corpus", "measure", path), "does not exist"),
        (("corpus", "measure", path, "--budget", "soon"), "--budget 'soon' is no time over 0; write for example 540"),
        (("corpus", "balance", path, "--device", "h200", "-o", "no/x.h5"), "the folder no does not exist"),
        (("corpus", "balance", path, "--device", "h200", "-o", path), "does not exist"),
        (("corpus", "describe", path, "--plot", "x.png"), "give --sample 200"),
    ):
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, "")
        assert message in err
        assert not Path(path).exists()
