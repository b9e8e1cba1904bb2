"""Tables of every format for other stages than `ingest`: their columns, their damage, their features."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from geokfp.components._files import InputError
from geokfp.components.ingest.columns import choose_features
from geokfp.components.ingest.tables import Table, load_npz


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_npz_is_named(tmp_path: Path, save) -> None:
    path = tmp_path / "edges.npz"
    save(path, src=np.arange(500) % 4, dst=np.arange(500) % 3)
    whole = path.read_bytes()
    for damaged in (whole[:200], whole[:-30], whole[:180] + b"\xff" * 20 + whole[200:]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"edges\.npz: not a numpy file"):
            load_npz(str(path))


def test_an_index_of_a_parquet_file_is_a_column_when_it_has_a_name(tmp_path: Path) -> None:
    rows = pd.DataFrame({"id": ["a", "b"], "x": [1, 2]})
    rows.set_index("id").to_parquet(tmp_path / "named.parquet")
    rows.set_index(rows.index + 7).to_parquet(tmp_path / "unnamed.parquet")
    for name in ("named", "unnamed"):
        table = Table(str(tmp_path / f"{name}.parquet"))
        assert sorted(table.columns()) == ["id", "x"]
        (chunk,) = table.chunks(["x", "id"])
        pd.testing.assert_frame_equal(chunk.rows[["id", "x"]], rows)


def test_features_are_chosen(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("y,x,town\n1,2,Rome\n")
    table = Table(str(tmp_path / "rows.csv"))
    assert choose_features(table, ["y"], ["town", "x"], hint="") == (["town", "x"], ())
    left = ("Columns of text were not taken as features: town.",)
    assert choose_features(table, ["y"], [], hint="") == (["x"], left)
    with pytest.raises(
        InputError, match=r"no column is left for features beside x, y \(town: text\); add one"
    ):
        choose_features(table, ["x", "y"], [], hint="add one")
