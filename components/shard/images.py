"""Images as rows: IDX files, and the numbers that their bytes become when asked for."""

import numpy as np

from .._files import InputError
from ..ingest.graph import Array
from .config import ShardConfig
from .idx import IMAGES, LABELS, read_idx
from .rows import Rows, number_labels

_BRIGHTEST = 255


def read_images(config: ShardConfig) -> Rows:
    """Reads images and labels in IDX format.

    Raises:
        InputError: a file is damaged, holds something else, or the two do not fit each other.
    """
    values = read_idx(config.labels, LABELS)
    images = read_idx(config.images, IMAGES, num_rows=len(values))
    labels, names = number_labels(values.astype(np.int64), config.task)
    return Rows(
        source=config.labels,
        features=scaled(images, config.images) if config.scale_images else images,
        labels=labels,
        label_names=names,
    )


def scaled(features: Array, source: str) -> Array:
    """Returns float32, bytes divided by 255.

    Raises:
        InputError: the features are no bytes; `source` begins the message.
    """
    if features.dtype != np.uint8:
        raise InputError(f"{source}: scale_images is True; allowed with {features.dtype} features: False")
    numbers = features.astype(np.float32)
    numbers /= _BRIGHTEST
    return numbers
