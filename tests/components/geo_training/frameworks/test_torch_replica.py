"""A torch model as a worker's replica: gradients where not all parameters have one."""

import torch
from geokfp.components.geo_training.frameworks.torch_replica import TorchReplica
from torch import nn


def test_gradients_are_divided_where_there_are_any():
    model = nn.Linear(2, 1)
    model.weight.grad = torch.tensor([[6.0, 9.0]])
    TorchReplica(model).divide_gradient(3)
    assert model.weight.grad.tolist() == [[2.0, 3.0]]
    assert model.bias.grad is None


def test_a_model_without_any_gradient_is_left_as_it_is():
    model = nn.Linear(2, 1)
    TorchReplica(model).divide_gradient(3)
    assert model.weight.grad is None
