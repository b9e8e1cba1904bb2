"""Rows of features of which most are zero, and the projection that takes such rows or plain tensors.

A bag of words of 4,714 columns has some 14 that are not zero: as a dense batch nearly all its time and
memory go into zeros. Knows nothing of graphs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._jit_internal import is_scripting


@dataclass(frozen=True)
class SparseRows:
    """A float32 matrix [n, width] stored by row (CSR)."""

    offsets: Tensor
    """Row i holds the entries `offsets[i]` up to `offsets[i + 1]`; int64 [n + 1], from 0."""
    columns: Tensor
    """Column of each entry, int64 [entries]."""
    values: Tensor
    """Value of each entry, float32 [entries]."""
    width: int
    """Number of columns."""

    @classmethod
    def from_dense(cls, dense: Tensor) -> "SparseRows":
        """Returns the entries of a dense matrix that are not zero."""
        row, column = torch.nonzero(dense, as_tuple=True)
        counts = torch.bincount(row, minlength=len(dense))
        return cls(_offsets(counts), column, dense[row, column], dense.shape[1])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the three tensors."""
        return self.offsets.nbytes + self.columns.nbytes + self.values.nbytes

    def head(self, num_rows: int) -> "SparseRows":
        """Returns the first rows, sharing memory."""
        stop = int(self.offsets[num_rows])
        return SparseRows(self.offsets[: num_rows + 1], self.columns[:stop], self.values[:stop], self.width)

    def take(self, rows: Tensor) -> "SparseRows":
        """Returns the rows of these numbers, int64 [m], in that order."""
        first = self.offsets[rows]
        counts = self.offsets[rows + 1] - first
        offsets = _offsets(counts)
        entries = torch.arange(int(offsets[-1])) + torch.repeat_interleave(first - offsets[:-1], counts)
        return SparseRows(offsets, self.columns[entries], self.values[entries], self.width)

    def to_dense(self) -> Tensor:
        """Returns float32 [n, width]."""
        dense = torch.zeros(len(self), self.width)
        rows = torch.repeat_interleave(torch.arange(len(self)), self.offsets.diff())
        dense[rows, self.columns] = self.values
        return dense

    def dropout(self, share: float, training: bool) -> "SparseRows":
        """Returns the same rows after dropout, which leaves zeros as they are."""
        values = nn.functional.dropout(self.values, share, training)
        return SparseRows(self.offsets, self.columns, values, self.width)

    def project(self, weight: Tensor) -> Tensor:
        """Returns `rows @ weight.T`, float32 [n, out], from weight, float32 [out, width]."""
        return nn.functional.embedding_bag(
            self.columns,
            weight.t().contiguous(),
            self.offsets,
            mode="sum",
            per_sample_weights=self.values,
            include_last_offset=True,
        )


def join(pieces: list[SparseRows]) -> SparseRows:
    """Returns the rows of all pieces, one after the other; at least one piece."""
    return SparseRows(
        _offsets(torch.cat([piece.offsets.diff() for piece in pieces])),
        torch.cat([piece.columns for piece in pieces]),
        torch.cat([piece.values for piece in pieces]),
        pieces[0].width,
    )


def project(x: Tensor, weight: Tensor) -> Tensor:
    """Returns `x @ weight.T`, float32 [n, out].

    Args:
        x: float32 [n, width]; or `SparseRows` when not scripted.
        weight: float32 [out, width].
    """
    # TorchScript skips the inner test only when it is nested.
    if not is_scripting():  # noqa: SIM102
        if isinstance(x, SparseRows):
            return x.project(weight)
    return nn.functional.linear(x, weight)


def head(x: Tensor, num_rows: int) -> Tensor:
    """Returns the first rows of a tensor, or of `SparseRows` when not scripted."""
    if not is_scripting():  # noqa: SIM102
        if isinstance(x, SparseRows):
            return x.head(num_rows)
    return x[:num_rows]


def _offsets(counts: Tensor) -> Tensor:
    return nn.functional.pad(counts.cumsum(0), (1, 0))
