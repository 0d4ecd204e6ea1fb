"""Inferred arguments: known answers for small kernels, repairs by check runs, and what cannot be inferred."""

from __future__ import annotations

import pytest

from perfvec.corpus.inference import infer_launches
from tests.corpus.inferred_kernels import KNOWN, Known
from tests.program.launching import execute, quick_machine_code

pytestmark = pytest.mark.usefixtures("front_end")


@pytest.mark.parametrize("name", KNOWN)
def test_arguments_of_small_kernels(name: str):
    known = KNOWN[name]
    with quick_machine_code():
        (inferred,) = infer_launches(known.source, "k", global_size=known.global_size, local_size=known.local_size)
    assert [str(argument.argument).split("~")[0] for argument in inferred.arguments] == list(known.args)
    assert tuple(argument.role for argument in inferred.arguments) == known.roles
    assert inferred.launch.args == tuple(argument.argument for argument in inferred.arguments)
    assert inferred.launch.global_offset == known.global_offset
    assert inferred.launch.local_size == (known.local_size or known.chosen)
    assert len(inferred.demands) == len(known.demands)
    assert all(part in demand for part, demand in zip(known.demands, inferred.demands, strict=True))
    assert inferred.repairs == ()  # the analysis alone was right


@pytest.mark.parametrize("name", ["guarded", "halo without guard", "sparse rows", "counter", "images"])
def test_all_work_groups_stay_within_the_buffers(name: str):
    known: Known = KNOWN[name]
    (inferred,) = infer_launches(known.source, "k", global_size=known.global_size, local_size=known.local_size)
    with quick_machine_code():
        assert execute(inferred.launch).keys() == {
            i for i, a in enumerate(inferred.launch.args) if str(a).startswith(("buffer", "image"))
        }
