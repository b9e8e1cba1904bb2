"""What objects keep from round to round: given and taken through a file, they go on bit for bit."""

import numpy as np
import pytest
from geokfp.components._files import ArtifactError, InputError
from geokfp.components.geo_training.checkpoints.carried import Value, carried_state, load_carried
from geokfp.components.geo_training.checkpoints.state import State, load_into, state_of
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.nodes.reductions import REDUCTIONS
from geokfp.components.geo_training.nodes.rounds import Contribution, Finished, Rounds
from geokfp.components.geo_training.nodes.rules import Quorum
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.wire.units import OWN, TREE, RoundId, Unit

COUNT, HALF = 9000, 4
GRADIENT, DELTA, COUNTS = (Unit(f"{role} layer/0.weight", 0, COUNT) for role in ("gradient", "delta", "n"))
TENSOR = Unit("weights w", 0, 40)
COMPRESSIONS = [
    "none",
    "fp16(feedback=0.5)",
    "quantized(bits=2)",
    "top_k(ratio=0.05, bits=4) + zstd",
    "bi_sparse(ratio=0.05, down=lossy)",
    "bi_sparse(ratio=0.05, threshold=sampled, down=lossy)",
    "mpq(bound=100)",
    "two_bit(down=lossy)",
    "demo(ratio=0.1)",
]


def through_a_file(state, folder):
    state.write(folder / "state.safetensors")
    return State.read(folder / "state.safetensors")


def payload_bytes(payload):
    return payload.codec, [buffer.tobytes() for buffer in payload.buffers]


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("text", COMPRESSIONS)
def test_a_links_compressors_go_on(tmp_path, text, way):
    generator = np.random.default_rng(0)
    rounds = [
        [(unit, generator.normal(size=COUNT).astype(np.float32)) for unit in (GRADIENT, DELTA, COUNTS)]
        for _ in range(2 * HALF)
    ]
    straight, resumed = (getattr(compression(text), way)() for _ in range(2))
    for units in rounds[:HALF]:
        for unit, values in units:
            straight.encode(unit, values)
    resumed.load_state(through_a_file(straight.state(), tmp_path))
    for units in rounds[HALF:]:
        for unit, values in units:
            sent, again = straight.encode(unit, values.copy()), resumed.encode(unit, values.copy())
            assert payload_bytes(sent) == payload_bytes(again)


@pytest.mark.parametrize(
    ("text", "role", "scopes"),
    [
        ("fsa(optimizer=adam(rate=0.1))", "gradient", [TREE]),
        ("fsa(optimizer=momentum(rate=0.1, momentum=0.9))", "gradient", [TREE]),
        (
            "mixed(optimizer=dcasgd(rate=0.1, momentum=0.5, adaptive=true))",
            "gradient",
            [f"{OWN}a", f"{OWN}b"],
        ),
        ("mixed(optimizer=nadam(rate=0.1))", "gradient", [f"{OWN}a", f"{OWN}b"]),
        ("hfa(k1=2) + outer(momentum=0.9)", "delta", [TREE]),
        ("hfa", "delta", [TREE]),
    ],
)
def test_the_roots_policy_goes_on(tmp_path, text, role, scopes):
    first, unit = np.linspace(-1, 1, 40).astype(np.float32), Unit(f"{role} w", 0, 40)

    def settle(root, number):
        mean = np.cos(np.arange(40) + number).astype(np.float32)
        scope = scopes[(number // 2) % len(scopes)]
        return root.settle(RoundId(scope, unit, number), REDUCTIONS["mean"], mean * 3, 3.0)

    straight, resumed = (synchronization(text).root(follows=True) for _ in range(2))
    straight.settle(RoundId(TREE, TENSOR, 0), REDUCTIONS["sum"], first, 0.0)
    for number in range(5):
        settle(straight, number)
    resumed.load_state(through_a_file(straight.state(), tmp_path))
    given = resumed.settle(RoundId(TREE, TENSOR, 0), REDUCTIONS["sum"], np.zeros(40, np.float32), 0.0)
    assert not np.array_equal(given, first)  # the root's weights, not what a worker brings
    for number in range(5, 12):
        np.testing.assert_array_equal(settle(straight, number), settle(resumed, number))
    # The first weights are the root's once: later rounds of the same role are about another model.
    other = resumed.settle(RoundId(TREE, TENSOR, 1), REDUCTIONS["sum"], first, 0.0)
    np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("text", ["fsa(optimizer=adam)", "hfa"])
def test_the_checkpoint_of_another_model_is_refused(text):
    kept, root = (synchronization(text).root(follows=True) for _ in range(2))
    values = np.ones(40, np.float32)
    kept.settle(RoundId(TREE, TENSOR, 0), REDUCTIONS["sum"], values, 0.0)
    root.load_state(kept.state())
    with pytest.raises(ProtocolError, match=r"no weights of other\[0\]: it is of another model"):
        root.settle(RoundId(TREE, Unit("weights other", 0, 40), 0), REDUCTIONS["sum"], values, 0.0)


def test_the_checkpoint_of_another_optimizer_is_refused():
    kept, root = (synchronization(f"fsa(optimizer={name})").root() for name in ("adam", "adagrad"))
    kept.settle(RoundId(TREE, TENSOR, 0), REDUCTIONS["sum"], np.ones(40, np.float32), 0.0)
    unit = Unit("gradient w", 0, 40)
    kept.settle(RoundId(TREE, unit, 0), REDUCTIONS["mean"], np.ones(40, np.float32), 1.0)
    with pytest.raises(InputError, match="optimizer state holds"):
        root.load_state(kept.state())


def test_what_came_too_late_for_a_round_counts_in_the_next_after_a_restart(tmp_path):
    workers, unit = frozenset("ab"), Unit("gradient", 0, 2)

    def contribution(sender, value):
        values = np.full(2, value, np.float32)
        return Contribution(sender, frozenset(sender), 2.0, 9.0, Value("mean", values))

    before, after = (Rounds(lambda _round: Quorum(1)) for _ in range(2))
    assert isinstance(before.offer(RoundId(TREE, unit, 0), contribution("a", 1), workers, 0.0), Finished)
    before.settle(RoundId(TREE, unit, 0), "result")
    before.offer(RoundId(TREE, unit, 0), contribution("b", 5), workers, 1.0)
    load_carried(after, through_a_file(carried_state(before), tmp_path))
    finished = after.offer(RoundId(TREE, unit, 0), contribution("a", 2), workers, 2.0)
    assert [(each.sender, each.weight) for each in finished.contributions] == [("a", 2.0), ("b", 2.0)]
    assert [each.value.values.tolist() for each in finished.contributions] == [[2, 2], [5, 5]]


@pytest.mark.parametrize("spoil", [lambda data: data[:-3], lambda data: b"", lambda data: b"\xff" * 64])
def test_a_spoiled_file_is_refused(tmp_path, spoil):
    path = tmp_path / "state.safetensors"
    State({"a": np.arange(9.0)}, {"step": 3}).write(path)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ArtifactError, match="not the state of a training"):
        State.read(path)


def test_parts_come_apart_as_they_were_put_together(tmp_path):
    parts = {"a": State({"x": np.arange(3), "y/z": np.zeros((2, 2))}, {"n": 1}), "b": State(), "c": State()}
    whole = through_a_file(State.of({"inner": State.of(parts)}), tmp_path).part("inner")
    assert whole.part("a").facts == {"n": 1}
    np.testing.assert_array_equal(whole.part("a").arrays["x"], np.arange(3))
    assert whole.part("a").arrays["y/z"].shape == (2, 2)
    assert (whole.part("b").arrays, whole.part("b").facts) == ({}, {})


def test_what_keeps_nothing_takes_nothing():
    assert state_of("text") == State()
    load_into("text", State())
    with pytest.raises(ArtifactError, match=r"holds \['step'\] of str, which keeps nothing"):
        load_into("text", State(facts={"step": 1}))
