"""The root's journal: what was written whole comes back as it was, whatever became of the file's end."""

import numpy as np
import pytest
from geokfp.components.geo_training.checkpoints.journal import Journal, Record
from geokfp.components.geo_training.errors import KeepingError
from geokfp.components.geo_training.wire.units import RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

names = st.lists(st.text(min_size=1, max_size=9).filter(lambda name: name != "/"), max_size=3).map(tuple)
records = st.builds(
    Record,
    round=st.builds(RoundId, st.just("tree"), st.just(Unit("delta w", 0, 4)), st.integers(0, 99)),
    reduction=st.sampled_from(["sum", "mean"]),
    weight=st.floats(0, 1e9),
    senders=names,
    covers=names,
    values=st.none() | hnp.arrays(np.float32, st.integers(0, 9)),
    is_late=st.booleans(),
)


def same(one, other):
    facts = [(r.round, r.reduction, r.weight, r.senders, r.covers) for r in (one, other)]
    if one.values is None or other.values is None:
        return facts[0] == facts[1] and one.values is other.values
    late = one.is_late == other.is_late
    return facts[0] == facts[1] and late and np.array_equal(one.values, other.values, equal_nan=True)


def written(folder, several):
    journal = Journal(folder)
    journal.begin(0)
    for record in several:
        journal.append(record)
    journal.close()
    return folder / "journal-0.gkj"


@given(st.lists(records, max_size=5), st.data())
def test_what_was_written_whole_comes_back_and_a_torn_end_is_as_if_it_had_not_been(
    tmp_path_factory, several, data
):
    folder = tmp_path_factory.mktemp("journal")
    path = written(folder, several)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    back = list(Journal(folder).records(0))
    assert all(same(one, other) for one, other in zip(back, several, strict=False))
    size = path.stat().st_size
    journal = Journal(folder)
    journal.begin(0)
    for record in several[len(back) :]:
        journal.append(record)
    journal.close()
    again = list(Journal(folder).records(0))
    assert len(again) == len(several)
    assert path.read_bytes()[:size] == whole[:size]


def test_a_spoiled_record_ends_what_is_read(tmp_path):
    one = Record(
        round=RoundId("tree", Unit("delta w", 0, 2), 3),
        reduction="mean",
        weight=2.0,
        senders=("site-0",),
        covers=("site-0/trainer-0",),
        values=np.ones(2, np.float32),
    )
    path = written(tmp_path, [one, one])
    spoiled = bytearray(path.read_bytes())
    spoiled[-1] ^= 1
    path.write_bytes(spoiled)
    assert len(list(Journal(tmp_path).records(0))) == 1
    assert len(list(Journal(tmp_path).records(0))) == 1


def test_the_records_before_the_last_checkpoint_are_kept_and_older_ones_go(tmp_path):
    journal = Journal(tmp_path)
    for checkpoint in (0, 4, 8):
        journal.begin(checkpoint)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal-4.gkj", "journal-8.gkj"]
    assert journal.exists(8)
    journal.forget()
    assert not tmp_path.exists()


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(KeepingError, match=r"file.*journal cannot be written"):
        Journal(tmp_path / "file").begin(0)
