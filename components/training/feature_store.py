"""Features of a site's nodes as a trainer fetches them: sparse rows are kept, so that each travels once.

Knows nothing of sampling and models.
"""

from typing import Any

import torch
from torch import Tensor

from .sparse_rows import SparseRows, join

SPARSE_BELOW = 0.1
"""Share of values that are not zero below which rows are kept and handed on sparse."""
PROBE_ROWS = 1000
"""Own rows that the share is taken from."""
KEPT_BYTES = 256 << 20
"""Most bytes of sparse rows that a trainer keeps."""
FETCH_BYTES = 64 << 20
"""Dense bytes fetched at a time when rows are made sparse."""


class FeatureStore:
    """Fetches features by DGL's ids, local ones through shared memory and others from their servers.

    Args:
        source: dense features of all nodes of the site, indexed by ids: a DGL `DistTensor`.
        own: ids of the part that lies beside this trainer, to probe.
        allow_sparse: whether the model takes `SparseRows`; else features are always dense and nothing is
            kept.
    """

    def __init__(self, source: Any, own: Tensor, *, allow_sparse: bool):
        self._source = source
        num_nodes, self._width = (int(size) for size in source.shape)
        probe = torch.as_tensor(source[own[:PROBE_ROWS]]) if allow_sparse else torch.ones(1)
        self.sparse = bool((probe != 0).float().mean() < SPARSE_BELOW)
        self._chunk = max(1, FETCH_BYTES // (4 * self._width))
        if self.sparse:
            self._place = torch.full((num_nodes,), -1, dtype=torch.int32)
            self._kept = SparseRows.from_dense(torch.zeros(0, self._width))

    def fetch(self, nodes: Tensor) -> Tensor | SparseRows:
        """Returns the features of distinct nodes, one row each.

        Args:
            nodes: ids, int64 [n].

        Returns:
            Float32 [n, width], or the same as `SparseRows`.
        """
        if not self.sparse:
            return torch.as_tensor(self._source[nodes])
        missing = nodes[self._place[nodes] < 0]
        if len(missing):
            fetched = join([self._from_source(some) for some in torch.split(missing, self._chunk)])
            if self._kept.nbytes + fetched.nbytes <= KEPT_BYTES:
                self._place[missing] = torch.arange(len(missing), dtype=torch.int32) + len(self._kept)
                self._kept = join([self._kept, fetched])
            else:
                return self._mixed(nodes, missing, fetched)
        return self._kept.take(self._place[nodes].long())

    def _from_source(self, nodes: Tensor) -> SparseRows:
        return SparseRows.from_dense(torch.as_tensor(self._source[nodes]))

    def _mixed(self, nodes: Tensor, missing: Tensor, fetched: SparseRows) -> SparseRows:
        place = self._place[nodes].long()
        absent = place < 0
        place[absent] = torch.arange(len(missing)) + len(self._kept)
        return join([self._kept, fetched]).take(place)
