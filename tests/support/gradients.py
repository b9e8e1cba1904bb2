"""Gradients of many shapes and kinds, for the laws of compression."""

import numpy as np
from hypothesis import strategies as st

SIZES = (0, 1, 2, 7, 64, 65, 1000, 4095, 4096, 4097, 9001)


def normal(generator: np.random.Generator, count: int) -> np.ndarray:
    return generator.standard_normal(count, dtype=np.float32)


def mostly_zero(generator: np.random.Generator, count: int) -> np.ndarray:
    return normal(generator, count) * (generator.random(count) < 0.01)


def tied(generator: np.random.Generator, count: int) -> np.ndarray:
    return generator.integers(-2, 3, count).astype(np.float32)


def of_all_scales(generator: np.random.Generator, count: int) -> np.ndarray:
    return normal(generator, count) * np.float32(10) ** generator.integers(-30, 30, count)


KINDS = (normal, mostly_zero, tied, of_all_scales)


def gradient(kind, count: int, seed: int) -> np.ndarray:
    return kind(np.random.default_rng(seed), count).astype(np.float32)


gradients = st.builds(gradient, st.sampled_from(KINDS), st.sampled_from(SIZES), st.integers(0, 1 << 30))
"""One gradient."""

tame_gradients = st.builds(
    gradient, st.sampled_from(KINDS[:-1]), st.sampled_from(SIZES), st.integers(0, 1 << 30)
)
"""One gradient whose values are within some powers of ten of each other."""


def rounds_of(num_rounds: int) -> st.SearchStrategy[list[np.ndarray]]:
    """Gradients of the same unit, one a round."""

    def build(kind, count: int, seed: int) -> list[np.ndarray]:
        return [gradient(kind, count, seed + number) for number in range(num_rounds)]

    return st.builds(build, st.sampled_from(KINDS[:-1]), st.sampled_from(SIZES), st.integers(0, 1 << 30))
