"""Seeds of random draws, so that each is a function of what it is for, and of nothing that was before it."""

import hashlib
import random
import sys

import numpy as np
import torch


def draw_seed(*what: int) -> int:
    """Returns a seed below 2^31 for the draws that `what` names, such as (seed, worker, epoch)."""
    digest = hashlib.blake2b(repr(what).encode("ascii"), digest_size=4).digest()
    return int.from_bytes(digest, "little") & 0x7FFFFFFF


def seed_everything(seed: int) -> None:
    """Seeds the global generators of torch, numpy, Python and DGL; a user's own model may draw from any.

    Those that train on rows of tables have loaded no DGL: it is seeded where it is.
    """
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    if "dgl" in sys.modules:
        sys.modules["dgl"].seed(seed)
