"""Models whose training kills the root of its tree in a step that the test chooses, while a mark is there."""

KILL_ROOT = """
import os
import signal
from pathlib import Path

import psutil


def kill_root(mark):
    if Path(mark).exists():
        Path(mark).unlink(missing_ok=True)
        for process in psutil.Process(os.getppid()).children():
            if Path(f"/proc/{process.pid}/comm").read_text().strip() == "root/aggregator":
                process.send_signal(signal.SIGKILL)
"""

TORCH = f"""
{KILL_ROOT}
import torch
from torch import nn


def build(feature_shape, num_classes, mark, at, **hyperparameters):
    model = nn.Sequential(
        nn.Linear(feature_shape[0], 32), nn.BatchNorm1d(32), nn.Dropout(0.2), nn.Linear(32, num_classes)
    )
    steps = []

    def count(module, _inputs):
        steps.extend([1] if module.training else [])
        if len(steps) == at:
            kill_root(mark)

    model.register_forward_pre_hook(count)
    return model, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=0.01)
"""

GLUON = f"""
{KILL_ROOT}
import mxnet as mx
from mxnet import gluon


def build(feature_shape, num_classes, mark, at):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(32), gluon.nn.BatchNorm(), gluon.nn.Dense(num_classes))
    net.initialize(mx.init.Xavier())
    steps = []

    def count(_block, _inputs):
        steps.extend([1] if mx.autograd.is_training() else [])
        if len(steps) == at:
            kill_root(mark)

    net.register_forward_pre_hook(count)
    return net, gluon.loss.SoftmaxCrossEntropyLoss(), mx.optimizer.Adam(learning_rate=0.01)
"""
