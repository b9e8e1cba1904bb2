"""Training nodes without edges, for the loop without DGL's servers, and a model that fits them."""

import dgl
import torch
from geokfp.components.training import models
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.loop import Batch


class Nodes:
    """Nodes without edges, so that a batch is its features."""

    def __init__(self, features, labels, batch_size, validation=(0, 0)):
        self.features, self.labels, self.batch_size = features, labels, batch_size
        self.num_train, self.validation = len(labels), slice(*validation)
        self.epochs = 0

    def train_batches(self, epoch):
        self.epochs += 1
        for chosen in torch.arange(self.num_train).split(self.batch_size):
            yield self.batch(chosen)

    def validation_batches(self):
        chosen = torch.arange(self.num_train)[self.validation]
        if len(chosen):
            yield self.batch(chosen)

    def batch(self, chosen):
        block = dgl.create_block(([], []), num_src_nodes=len(chosen), num_dst_nodes=len(chosen))
        block.srcdata["in_degree"] = torch.zeros(len(chosen), dtype=torch.int64)
        return Batch([block], self.features[chosen], self.labels[chosen])


def data(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 6, generator=generator)
    return features, (features[:, 0] > 0).long()


def config(**changes):
    given = {"num_layers": 1, "dropout": 0.0, "epochs": 5, "weight_decay": 0.0, "learning_rate": 0.05}
    return TrainingConfig(**{**given, **changes})


def model(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    return models.build("gcn", 6, 2, num_layers=1, input_dropout=dropout)


def flat(module):
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()]).clone()
