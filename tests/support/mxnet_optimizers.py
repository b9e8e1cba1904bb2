"""Steps weights by MXNet's own optimizers; a program, for importing MXNet 1.9.1 warns.

Arguments: a JSON list of [class name, options], an `.npz` with `weights` [n] and `gradients` [steps, n], and
the `.npz` to write: the weights after each step, [steps, n], by position in the list.
"""

import json
import sys

import mxnet as mx
import numpy as np


def main(choices: str, given: str, written: str) -> None:
    arrays, after = np.load(given), {}
    for position, (name, options) in enumerate(json.loads(choices)):
        optimizer = getattr(mx.optimizer, name)(**options)
        weights = mx.nd.array(arrays["weights"], dtype="float32")
        state, trace = optimizer.create_state(0, weights), []
        for gradient in arrays["gradients"]:
            optimizer.update(0, weights, mx.nd.array(gradient, dtype="float32"), state)
            trace.append(weights.asnumpy())
        after[str(position)] = np.stack(trace)
    np.savez(written, **after)


if __name__ == "__main__":
    main(*sys.argv[1:])
