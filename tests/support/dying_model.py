"""A model of the user's own whose process kills itself once, in its third epoch."""

DIES_IN_EPOCH_3 = """
import os
import signal
from pathlib import Path

from geokfp.components.training.models import build as built_in


def build(num_features, num_classes, mark):
    model, steps = built_in("sage", num_features, num_classes, num_layers=2), []

    def count(module, _inputs):
        steps.extend([1] if module.training else [])
        if len(steps) == 8 and Path(mark).exists():  # of 3 steps an epoch
            Path(mark).unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)

    model.register_forward_pre_hook(count)
    return model
"""
