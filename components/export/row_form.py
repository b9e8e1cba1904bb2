"""A torch model over rows as a module that takes the rows as they lie. Knows nothing of files and formats."""

import torch
from torch import Tensor, nn

from ..table_training.rows import BRIGHTEST


class OverRows(nn.Module):
    """Lets rows enter a model as training did, and gives one row of outputs each.

    Args:
        model: the trained model, in evaluation mode.
        of_bytes: whether rows are bytes, which are divided by 255.
        num_outputs: numbers that the model gives a row.
    """

    def __init__(self, model: nn.Module, *, of_bytes: bool, num_outputs: int) -> None:
        super().__init__()
        self.model = model
        self.of_bytes = of_bytes
        self.num_outputs = num_outputs

    def forward(self, x: Tensor) -> Tensor:
        """Returns the outputs, float32 [n, num_outputs].

        Args:
            x: uint8 or float32 [n, ...].
        """
        if self.of_bytes:
            x = x.to(torch.float32) / float(BRIGHTEST)
        outputs: Tensor = self.model(x)
        return outputs.reshape(-1, self.num_outputs)
