"""What a root has answered, for sites that come back."""

import numpy as np
import pytest
from geokfp.components.geo_training.checkpoints.answers import Answers
from geokfp.components.geo_training.compression.dense import Dense
from geokfp.components.geo_training.errors import KeepingError, ProtocolError
from geokfp.components.geo_training.wire.messages import NOTHING, Answer, Join, Pull, Push
from geokfp.components.geo_training.wire.units import TREE, RoundId, Unit

SITES = ("oslo", "paris")
WEIGHTS, GRADIENT, CHECKPOINT = (
    Unit("weights w", 0, 3),
    Unit("gradient w", 0, 3),
    Unit("checkpoint number", 0, 1),
)


class Root:
    """A root's answers, and what it has sent."""

    def __init__(self, folder, **most):
        self.sent = []
        self.answers = Answers(
            folder / "answers", lambda *sent: self.sent.append(sent), frozenset(SITES), **most
        )
        for site in SITES:
            self.join(site, 1)

    def join(self, site, incarnation, *, has_begun=False):
        self.answers.admit(Join(site, "run", incarnation, has_begun))

    def settle(self, unit, number, receivers=SITES, scope=TREE):
        values = np.full(unit.count, number + 0.5, np.float32)
        answer = Answer(RoundId(scope, unit, number), 7.0, Dense().encode(unit, values), 2)
        self.answers.note(answer, receivers)
        return answer

    def take(self, site, unit, number, kind="push", scope=TREE):
        round_id = RoundId(scope, unit, number)
        push = Push(site, round_id, "mean", 1.0, 9.0, (f"{site}/trainer-0",), NOTHING, 0)
        return self.answers.take(site, push if kind == "push" else Pull(round_id))

    def values(self):
        return [
            (site, answer.round.unit.role, answer.round.number, answer.payload.buffers[0].tolist())
            for site, answer in self.sent
        ]


def test_who_comes_back_is_answered_what_all_were_and_nobody_else_is(tmp_path):
    root = Root(tmp_path)
    root.settle(WEIGHTS, 0)
    first = root.settle(GRADIENT, 0)
    assert not root.take("oslo", GRADIENT, 0)
    root.join("oslo", 1, has_begun=True)  # a connection that was lost
    assert not root.take("oslo", GRADIENT, 0)
    root.join("oslo", 2, has_begun=True)
    assert root.take("oslo", WEIGHTS, 0)
    assert root.take("oslo", GRADIENT, 0, kind="pull")
    assert not root.take("paris", GRADIENT, 0)
    assert root.values() == [("oslo", "weights", 0, [0.5] * 3), ("oslo", "gradient", 0, [0.5] * 3)]
    (_, sent) = root.sent[1]
    assert (sent.weight, sent.priority, sent.payload.codec) == (7.0, 2, first.payload.codec)


def test_who_has_caught_up_counts_again(tmp_path):
    root = Root(tmp_path)
    root.settle(GRADIENT, 0)
    root.join("oslo", 2, has_begun=True)
    root.settle(GRADIENT, 1, ["paris"])  # under a quorum, while it comes
    assert root.take("oslo", GRADIENT, 1)
    assert not root.take("oslo", GRADIENT, 2)
    root.settle(GRADIENT, 2, ["paris"])
    assert not root.take("oslo", GRADIENT, 2)  # late, as anybody may be
    assert root.take("oslo", GRADIENT, 0)  # counted before it died


def test_who_has_come_back_is_behind_until_it_comes_to_what_is_not_finished(tmp_path):
    root = Root(tmp_path)
    root.settle(GRADIENT, 0)
    assert root.answers.behind() == frozenset()
    root.join("oslo", 2, has_begun=True)
    assert root.take("oslo", GRADIENT, 0)
    assert root.answers.behind() == {"oslo"}
    assert not root.take("oslo", GRADIENT, 1, kind="pull")
    assert root.answers.behind() == {"oslo"}
    assert not root.take("oslo", GRADIENT, 1)
    assert root.answers.behind() == frozenset()


def test_the_checkpoint_that_a_child_goes_on_from_can_be_asked_for_again(tmp_path):
    root = Root(tmp_path)
    root.settle(GRADIENT, 0)
    for number in range(3):
        root.settle(CHECKPOINT, number, scope="tree/1")  # of the other root, which is asked first
        root.settle(CHECKPOINT, number)
    root.join("oslo", 2, has_begun=True)
    assert [root.take("oslo", CHECKPOINT, number) for number in range(3)] == [False, True, True]
    assert root.take("oslo", CHECKPOINT, 2, scope="tree/1")
    assert not root.take("oslo", GRADIENT, 0)


def test_what_lies_before_the_last_two_common_checkpoints_goes_but_for_the_start(tmp_path):
    root = Root(tmp_path)
    root.settle(WEIGHTS, 0)
    for epoch in range(4):
        root.settle(GRADIENT, epoch)
        root.settle(CHECKPOINT, epoch, SITES if epoch < 3 else ["paris"])
    root.join("oslo", 2, has_begun=True)
    assert [root.take("oslo", GRADIENT, epoch) for epoch in range(4)] == [False, False, True, True]
    root.join("oslo", 3, has_begun=True)
    assert root.take("oslo", CHECKPOINT, 3)
    assert root.take("oslo", WEIGHTS, 0)
    assert sorted(path.name for path in (tmp_path / "answers").iterdir()) == ["0", "3", "4"]


def test_more_than_there_is_room_for_is_not_kept(tmp_path, capsys):
    root = Root(tmp_path, most_bytes=200)
    root.settle(WEIGHTS, 0)
    for number in range(4):
        root.settle(GRADIENT, number)
    why = "its answers since the last checkpoints cannot be kept: they are more than 0 MiB"
    assert capsys.readouterr().out.count(f"who is killed cannot come back any more: {why}\n") == 1
    assert list((tmp_path / "answers").iterdir()) == []
    root.join("oslo", 1, has_begun=True)
    with pytest.raises(ProtocolError, match=f"oslo cannot come back: {why}"):
        root.join("oslo", 2, has_begun=True)
    root.answers.forget()


def test_nothing_is_left_of_it(tmp_path):
    root = Root(tmp_path)
    root.settle(GRADIENT, 0)
    root.answers.forget()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(KeepingError, match=r"taken/answers: answers cannot be kept: Not a directory"):
        Answers(tmp_path / "taken/answers", lambda *_: None, frozenset())
