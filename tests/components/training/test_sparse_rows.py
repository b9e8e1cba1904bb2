"""Laws: sparse rows are the dense matrix, however they are cut, taken, joined or multiplied."""

import torch
from geokfp.components.training.feature_store import FeatureStore
from geokfp.components.training.sparse_rows import SparseRows, join, project
from hypothesis import given, settings
from hypothesis import strategies as st

torch.set_num_threads(1)


@st.composite
def matrices(draw):
    rows, columns = draw(st.integers(0, 12)), draw(st.integers(1, 9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    dense = torch.randn(rows, columns, generator=generator)
    return torch.where(torch.rand(rows, columns, generator=generator) < 0.3, dense, 0.0)


@given(matrices())
def test_dense_and_back(dense):
    assert torch.equal(SparseRows.from_dense(dense).to_dense(), dense)


@given(matrices(), st.data())
def test_head_and_take(dense, data):
    rows = SparseRows.from_dense(dense)
    stop = data.draw(st.integers(0, len(dense)))
    assert torch.equal(rows.head(stop).to_dense(), dense[:stop])
    if len(dense):
        chosen = torch.tensor(data.draw(st.lists(st.integers(0, len(dense) - 1))), dtype=torch.int64)
        assert torch.equal(rows.take(chosen).to_dense(), dense[chosen])


@given(matrices(), st.data())
def test_join_undoes_a_cut(dense, data):
    cut = data.draw(st.integers(0, len(dense)))
    rows = SparseRows.from_dense(dense)
    joined = join([rows.take(torch.arange(cut)), rows.take(torch.arange(cut, len(dense)))])
    assert torch.equal(joined.to_dense(), dense)


@given(matrices(), st.integers(1, 5))
def test_projection_and_its_gradient(dense, width):
    weight = torch.randn(width, dense.shape[1], requires_grad=True)
    by_rows, by_dense = project(SparseRows.from_dense(dense), weight), project(dense, weight)
    assert torch.allclose(by_rows, by_dense, atol=1e-5)
    gradients = [torch.autograd.grad(out.square().sum(), weight)[0] for out in (by_rows, by_dense)]
    assert torch.allclose(*gradients, atol=1e-4, rtol=1e-4)


@given(matrices())
def test_dropout_keeps_zeros_and_scales_the_rest(dense):
    dropped = SparseRows.from_dense(dense).dropout(0.5, training=True).to_dense()
    assert torch.all((dropped == 0) | torch.isclose(dropped, dense * 2))
    assert torch.equal(SparseRows.from_dense(dense).dropout(0.5, training=False).to_dense(), dense)


@given(st.lists(st.lists(st.integers(0, 29), unique=True, min_size=1), max_size=6), st.integers(0, 1500))
@settings(deadline=None)
def test_store_gives_the_source_whatever_was_fetched_before(fetches, kept_bytes):
    from geokfp.components.training import feature_store

    source = torch.zeros(30, 40)
    source[torch.arange(30), torch.arange(30)] = torch.arange(30.0) + 1
    store = FeatureStore(source, torch.arange(10), allow_sparse=True)
    assert store.sparse
    limit = feature_store.KEPT_BYTES
    feature_store.KEPT_BYTES = kept_bytes
    try:
        for nodes in fetches:
            chosen = torch.tensor(nodes)
            assert torch.equal(store.fetch(chosen).to_dense(), source[chosen])
    finally:
        feature_store.KEPT_BYTES = limit


def test_store_fetches_each_row_once():
    fetched = []

    class Source:
        shape = (20, 50)

        def __getitem__(self, nodes):
            fetched.extend(nodes.tolist())
            rows = torch.zeros(len(nodes), 50)
            rows[:, 0] = nodes.float()
            return rows

    store = FeatureStore(Source(), torch.arange(4), allow_sparse=True)
    fetched.clear()
    for _ in range(3):
        store.fetch(torch.tensor([3, 9, 11]))
    assert fetched == [3, 9, 11]


def test_dense_features_and_foreign_models_get_plain_tensors():
    dense = torch.rand(6, 4) + 1
    assert torch.equal(
        FeatureStore(dense, torch.arange(6), allow_sparse=True).fetch(torch.tensor([1])), dense[[1]]
    )
    sparse = torch.eye(30)
    assert torch.equal(
        FeatureStore(sparse, torch.arange(6), allow_sparse=False).fetch(torch.tensor([2])), sparse[[2]]
    )
