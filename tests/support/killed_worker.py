"""Models of which a worker kills a process of its tree, or itself, in steps that a test chooses."""

KILL = """
import os
import signal
from pathlib import Path

import psutil


def is_named(pid, name):
    return Path(f"/proc/{pid}/comm").read_text().strip() == name[-15:]


def kill(mark, killer, killed):
    left = int(Path(mark).read_text()) if is_named(os.getpid(), killer) else 0
    if left:
        Path(mark).write_text(str(left - 1))
        for process in psutil.Process(os.getppid()).children():
            if is_named(process.pid, killed[-left]):
                process.send_signal(signal.SIGKILL)
"""

TORCH = f"""
{KILL}
import torch
from torch import nn


def build(feature_shape, num_classes, mark, killer, killed, at):
    model = nn.Sequential(
        nn.Linear(feature_shape[0], 32), nn.BatchNorm1d(32), nn.Dropout(0.2), nn.Linear(32, num_classes)
    )
    steps = []

    def count(module, _inputs):
        steps.extend([1] if module.training else [])
        if module.training and len(steps) in at:
            kill(mark, killer, killed)

    model.register_forward_pre_hook(count)
    return model, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=0.01)
"""

GLUON = f"""
{KILL}
import mxnet as mx
from mxnet import gluon


def build(feature_shape, num_classes, mark, killer, killed, at):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(32), gluon.nn.BatchNorm(), gluon.nn.Dense(num_classes))
    net.initialize(mx.init.Xavier())
    steps = []

    def count(_block, _inputs):
        steps.extend([1] if mx.autograd.is_training() else [])
        if mx.autograd.is_training() and len(steps) in at:
            kill(mark, killer, killed)

    net.register_forward_pre_hook(count)
    return net, gluon.loss.SoftmaxCrossEntropyLoss(), mx.optimizer.Adam(learning_rate=0.01)
"""
