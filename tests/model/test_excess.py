import json

import pytest

from perfvec.errors import FormatError
from perfvec.model import excess
from perfvec.resources import ARCHETYPES


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resources_version": 1}, "pairs of resources version 1, this release has"),
        ({"pairs": ["nvidia-h200 > nowhere"]}, "cannot read the pairs .*nowhere.*; install perfvec again"),
        ({"pairs": 3}, "cannot read the pairs"),
        ({"scale": {}}, "cannot read the pairs"),
    ],
)
def test_a_file_of_another_release_is_refused(tmp_path, monkeypatch, change, message):
    shipped = json.loads((excess.content_folder("archs") / "excess.json").read_text())
    (tmp_path / "excess.json").write_text(json.dumps(shipped | change))
    monkeypatch.setattr(excess, "content_folder", lambda _: tmp_path)
    excess._shipped.cache_clear()
    with pytest.raises(FormatError, match=message):
        excess.excess_pairs(1)
    monkeypatch.undo()
    excess._shipped.cache_clear()
    assert excess.excess_pairs(1).scale.shape == (len(ARCHETYPES),)
