from __future__ import annotations

import gzip
import sys
import tomllib
from pathlib import Path

import pytest

from experiments.devices import curves, make, rates, split
from experiments.devices.curves import plateau, plateaus
from perfvec.arch.device import read_device
from perfvec.content import content_folder

COLUMNS = (
    "device,vendor,type,architecture,chip,year,compute_units,simd_width,fp32_lanes_per_cu,base_mhz,boost_mhz,fp32_gflops,"
    "fp64_gflops,fp64_ratio,fp32_matrix_gflops,dram_gb,dram_gb_s,l2_kib,llc_kib,l1_kib_per_cu,shared_kib_per_cu,"
    "max_threads_per_cu,registers_per_cu,max_work_group,unsure,note,datasets"
)
# A made-up GPU: 10 units of 128 lanes at 1 GHz.
GPU = (
    "nvidia-gtx-1000,nvidia,gpu,Maxwell GM20x,X,2015,10,32,128,900,1000,2560,80,0.03,,2,100,1024,,48,96,2048,65536,"
    "1024,{},,"
)
CPU = "intel-i7-1,intel,cpu,Skylake,,2015,8,8,8,4000,4200,512,256,0.5,,,34.1,1024,8192,32,,,,,{},,"
LATENCIES = (
    "architecture,fp32_latency,fp64_latency,shared_load_latency,l1_hit_latency,l2_hit_latency,dram_latency,source,"
    "confidence\n"
    "Maxwell GM20x,6,,23,82,207,,A paper,recalled\n"
)
CURVE = "device,test,data_kib,footprint_kib,work_items,value,unit,clock_mhz\n"


def chase(size_kib: float, cycles: float) -> str:
    return f"nvidia-gtx-1000,load_latency,{size_kib},,,{cycles},core cycles,1000\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "gpu_benches").mkdir(parents=True)
    (folder / "devices.csv").write_text("\n".join([COLUMNS, GPU.format(""), CPU.format("")]) + "\n", encoding="utf-8")
    (folder / "arch_latency.csv").write_text(LATENCIES, encoding="utf-8")
    rows = [chase(size, 80) for size in (1, 8, 24)] + [chase(size, 210) for size in (150, 200, 250)]
    rows += [chase(size, 400) for size in (5000, 6000, 7000)]
    with gzip.open(folder / "gpu_benches" / "memory.csv.gz", "wt", encoding="utf-8") as file:
        file.write(CURVE + "".join(rows))
    return folder


def run(monkeypatch: pytest.MonkeyPatch, module, *args: object) -> int:
    monkeypatch.setattr(sys, "argv", ["x", *map(str, args)])
    return module.main()


def test_a_plateau_is_a_median_of_three_or_more():
    curve = [(1.0, 10.0), (2.0, 30.0), (3.0, 20.0), (99.0, 500.0)]
    assert plateau(curve, 0, 50) == 20
    assert plateau(curve, 2, 50) is None


def test_levels_are_told_apart_by_footprint(data: Path):
    found = curves.read_plateaus(data)
    assert [item.device for item in found] == ["nvidia-gtx-1000"]
    assert found[0].values == {
        "memory.l1.latency_cycles": 80,
        "memory.l2.latency_cycles": 210,
        "memory.dram.latency_cycles": 400,
    }


def test_bandwidth_of_dram_comes_of_streams_where_nothing_else_was_measured():
    facts = {"l1_kib_per_cu": "48", "l2_kib": "1024", "llc_kib": "", "compute_units": "10"}
    rows = [
        {"test": "stream_read", "data_kib": "", "footprint_kib": "", "value": value} for value in ("90", "95", "80")
    ]
    assert plateaus(rows, facts) == {"memory.dram.bandwidth_bytes_per_s": 95e9}


def test_files_are_made_once_and_read_back(data: Path, tmp_path: Path, monkeypatch, capsys):
    folder = tmp_path / "archs"
    folder.mkdir()
    assert run(monkeypatch, make, data, "-o", folder) == 0
    assert capsys.readouterr().out == f"2 files written to {folder}\n"
    device = read_device(folder / "nvidia-gtx-1000.toml")
    assert device.compute.fp32_lanes == pytest.approx(128)
    assert device.compute.max_sub_groups_per_compute_unit == 64
    assert device.memory.l2.bandwidth_bytes_per_s == pytest.approx(10e9 * 24)
    assert device.achieved["memory.dram.latency_cycles"] == 400
    assert device.source_of("memory.l1.latency_cycles") == "A paper; confidence: recalled"
    assert device.is_assumed("memory.dram.latency_cycles")
    assert not device.is_assumed("compute.clock_hz")
    cpu = read_device(folder / "intel-i7-1.toml")
    assert cpu.compute.fp32_lanes == pytest.approx(8)
    assert cpu.memory.l2.capacity_bytes == 8 << 20
    assert run(monkeypatch, make, data, "-o", folder) == 0
    assert "nvidia-gtx-1000: has a file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (GPU.format("l2_kib;dram_gb_s"), "unsure or missing: dram_gb_s, l2_kib"),
        (GPU.format("all"), "unsure or missing: all"),
        (GPU.replace("Maxwell GM20x", "Unheard").format(""), "no family 'Unheard'"),
        (CPU.replace("34.1", "").format(""), "unsure or missing: dram_gb_s"),
        (GPU.replace("gpu,Max", "accelerator,Max").format(""), "type accelerator"),
    ],
)
def test_rows_without_sure_facts_make_no_file(data: Path, tmp_path: Path, monkeypatch, capsys, row: str, reason: str):
    (data / "devices.csv").write_text(f"{COLUMNS}\n{row}\n{GPU.format('').replace('gtx-1000', 'gtx-1')}\n")
    with gzip.open(data / "gpu_benches" / "memory.csv.gz", "wt", encoding="utf-8") as file:
        file.write(CURVE)
    assert run(monkeypatch, make, data, "-o", tmp_path) == 0
    assert reason in capsys.readouterr().out
    assert [path.name for path in tmp_path.glob("*.toml")] == ["nvidia-gtx-1.toml"]


def test_a_folder_without_tables_is_refused(tmp_path: Path, monkeypatch, capsys):
    for module, args in ((make, (tmp_path, "-o", tmp_path)), (curves, (tmp_path,))):
        with pytest.raises(SystemExit) as raised:
            run(monkeypatch, module, *args)
        assert raised.value.code == 2
    assert "give the folder that holds" in capsys.readouterr().err


def test_the_shipped_split_is_what_the_script_makes(tmp_path: Path, monkeypatch, capsys):
    path = tmp_path / "split.toml"
    assert run(monkeypatch, split, "gpu-2010-today", "-o", path) == 0
    assert "192 for training, 64 held out" in capsys.readouterr().out
    shipped = content_folder("archs") / "spaces" / "splits" / "gpu-2010-today.toml"
    assert tomllib.loads(path.read_text()) == tomllib.loads(shipped.read_text())
    assert run(monkeypatch, split, "none", "-o", path) == 2
    assert "no design space 'none'" in capsys.readouterr().err


def test_rates_are_compared_with_peaks(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "clpeak").mkdir()
    rows = ["device,platform,device_index,test,variant,value,unit,compute_units,clock_mhz,source"]
    rows.append("nvidia-h200-sxm-141gb,x,0,fp32_compute,float,33454.0,GFLOP/s,132,1980,x")
    rows.append("nvidia-h200-sxm-141gb,x,0,fp32_compute,float,60217.2,GFLOP/s,132,1980,x")  # 90 % of 66,908
    rows.append("unheard-of,x,0,fp32_compute,float,5,GFLOP/s,132,1980,x")
    rows.append("nvidia-h200-sxm-141gb,x,0,global_memory_bandwidth,float,2400,GB/s,132,1980,x")
    rows.append("nvidia-h200-sxm-141gb,x,0,fp64_compute,double,33454,GFLOP/s,132,1980,x")
    with gzip.open(tmp_path / "clpeak" / "results.csv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(rows) + "\n")
    assert run(monkeypatch, rates, tmp_path) == 0
    out = capsys.readouterr().out
    assert "fp32_compute: 1 GPUs, median 0.900; far off: none" in out
    assert "global_memory_bandwidth: 1 GPUs, median 0.500; far off: nvidia-h200 0.50" in out
