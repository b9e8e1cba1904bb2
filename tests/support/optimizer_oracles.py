"""Each optimizer's rule for a whole key, in FP64 and a few lines, written from its source.

A rule takes weights, gradient, a state whose entries start at zero, the options, and the weights that the
gradient was computed at; it returns the new weights.
"""

from collections import defaultdict

import numpy as np


def decayed(w, g, o):
    return np.clip(g, -o.clip, o.clip) + o.weight_decay * w


def sgd(w, g, s, o, _backup):
    return w - o.rate * decayed(w, g, o)


def momentum(w, g, s, o, _backup):
    s["v"] = o.momentum * s["v"] + decayed(w, g, o)
    return w - o.rate * s["v"]


def nag(w, g, s, o, _backup):
    g = decayed(w, g, o)
    s["v"] = o.momentum * s["v"] + g
    return w - o.rate * (g + o.momentum * s["v"])


def adam(w, g, s, o, _backup):
    g, s["t"] = decayed(w, g, o), s["t"] + 1
    s["m"] = o.beta1 * s["m"] + (1 - o.beta1) * g
    s["v"] = o.beta2 * s["v"] + (1 - o.beta2) * g**2
    m, v = s["m"] / (1 - o.beta1 ** s["t"]), s["v"] / (1 - o.beta2 ** s["t"])
    return w - o.rate * m / (np.sqrt(v) + o.epsilon)


def adamax(w, g, s, o, _backup):
    g, s["t"] = decayed(w, g, o), s["t"] + 1
    s["m"] = o.beta1 * s["m"] + (1 - o.beta1) * g
    s["u"] = np.maximum(o.beta2 * s["u"], np.abs(g) + o.epsilon)
    return w - o.rate / (1 - o.beta1 ** s["t"]) * s["m"] / s["u"]


def nadam(w, g, s, o, _backup):
    g, s["t"] = decayed(w, g, o), s["t"] + 1
    t = int(s["t"])
    mu = [o.beta1 * (1 - 0.96 ** (i * o.momentum_decay) / 2) for i in range(1, t + 2)]
    s["m"] = o.beta1 * s["m"] + (1 - o.beta1) * g
    s["v"] = o.beta2 * s["v"] + (1 - o.beta2) * g**2
    ahead = mu[t] * s["m"] / (1 - np.prod(mu)) + (1 - mu[t - 1]) * g / (1 - np.prod(mu[:t]))
    return w - o.rate * ahead / (np.sqrt(s["v"] / (1 - o.beta2**t)) + o.epsilon)


def adagrad(w, g, s, o, _backup):
    g = decayed(w, g, o)
    s["h"] = s["h"] + g**2
    return w - o.rate * g / (np.sqrt(s["h"]) + o.epsilon)


def rmsprop(w, g, s, o, _backup):
    g = decayed(w, g, o)
    s["s"] = o.decay * s["s"] + (1 - o.decay) * g**2
    s["m"] = (o.decay * s["m"] + (1 - o.decay) * g) if o.centered else 0.0
    s["v"] = o.momentum * s["v"] + g / (np.sqrt(s["s"] - s["m"] ** 2) + o.epsilon)
    return w - o.rate * s["v"]


def adadelta(w, g, s, o, _backup):
    g = decayed(w, g, o)
    s["g"] = o.decay * s["g"] + (1 - o.decay) * g**2
    step = np.sqrt(s["d"] + o.epsilon) / np.sqrt(s["g"] + o.epsilon) * g
    s["d"] = o.decay * s["d"] + (1 - o.decay) * step**2
    return w - o.rate * step


def ftrl(w, g, s, o, _backup):
    g = np.clip(g, -o.clip, o.clip)
    s["z"] = s["z"] + g - (np.sqrt(s["n"] + g**2) - np.sqrt(s["n"])) / o.rate * w
    s["n"] = s["n"] + g**2
    leader = (np.sign(s["z"]) * o.l1 - s["z"]) / ((o.beta + np.sqrt(s["n"])) / o.rate + o.weight_decay)
    return np.where(np.abs(s["z"]) <= o.l1, 0.0, leader)


def ftml(w, g, s, o, _backup):
    g, s["t"] = decayed(w, g, o), s["t"] + 1
    s["v"] = o.beta2 * s["v"] + (1 - o.beta2) * g**2
    d = (1 - o.beta1 ** s["t"]) / o.rate * (np.sqrt(s["v"] / (1 - o.beta2 ** s["t"])) + o.epsilon)
    s["z"] = o.beta1 * s["z"] + (1 - o.beta1) * g - (d - o.beta1 * s["d"]) * w
    s["d"] = d
    return -s["z"] / d


def signum(w, g, s, o, _backup):
    s["m"] = o.momentum * s["m"] + (1 - o.momentum) * decayed(w, g, o)
    return w - o.rate * np.sign(s["m"])


def dcasgd(w, g, s, o, backup):
    g = np.clip(g, -o.clip, o.clip)
    s["s"] = o.decay * s["s"] + (1 - o.decay) * g**2
    strength = o.lambda_ / np.sqrt(s["s"] + o.epsilon) if o.adaptive else o.lambda_
    corrected = g + strength * g**2 * (w - backup) + o.weight_decay * w
    s["v"] = o.momentum * s["v"] + corrected
    return w - o.rate * s["v"]


ORACLES = {
    "sgd": sgd,
    "momentum": momentum,
    "nag": nag,
    "outer": nag,
    "adam": adam,
    "adamax": adamax,
    "nadam": nadam,
    "adagrad": adagrad,
    "rmsprop": rmsprop,
    "adadelta": adadelta,
    "ftrl": ftrl,
    "ftml": ftml,
    "signum": signum,
    "dcasgd": dcasgd,
}


def new_state():
    return defaultdict(float)


EVERY_OPTION = (
    "sgd(rate=0.1)",
    "sgd(rate=0.1, weight_decay=0.01, clip=0.5)",
    "momentum(rate=0.1, momentum=0.9)",
    "momentum(rate=0.1, momentum=0, weight_decay=0.01)",
    "momentum(rate=0.05, momentum=0.8, weight_decay=0.01, clip=0.5)",
    "nag(rate=0.05, momentum=0.9)",
    "nag(rate=0.05, momentum=0.8, weight_decay=0.01, clip=0.5)",
    "nag(rate=0.05, momentum=0)",
    "outer",
    "outer(rate=0.3, momentum=0.6)",
    "adam(rate=0.01)",
    "adam(rate=0.01, beta1=0.8, beta2=0.9, epsilon=1e-3, weight_decay=0.01, clip=0.5)",
    "adamax(rate=0.01)",
    "adamax(rate=0.01, beta1=0.8, beta2=0.9, epsilon=1e-3, weight_decay=0.01, clip=0.5)",
    "nadam(rate=0.01)",
    "nadam(rate=0.01, beta1=0.8, beta2=0.9, epsilon=1e-3, momentum_decay=0.1, weight_decay=0.01, clip=0.5)",
    "adagrad(rate=0.1)",
    "adagrad(rate=0.1, epsilon=1e-3, weight_decay=0.01, clip=0.5)",
    "rmsprop(rate=0.01)",
    "rmsprop(rate=0.01, decay=0.8, epsilon=1e-3, momentum=0.5, weight_decay=0.01, clip=0.5)",
    "rmsprop(rate=0.01, epsilon=1e-2, momentum=0.5, centered=true)",
    "adadelta",
    "adadelta(rate=0.5, decay=0.8, epsilon=1e-3, weight_decay=0.01, clip=0.5)",
    "ftrl(rate=0.1)",
    "ftrl(rate=0.5, l1=1, beta=0.5, weight_decay=0.01, clip=0.5)",
    "ftml(rate=0.01)",
    "ftml(rate=0.01, beta1=0.8, beta2=0.9, epsilon=1e-3, weight_decay=0.01, clip=0.5)",
    "signum(rate=0.01)",
    "signum(rate=0.01, momentum=0, weight_decay=0.01)",
    "signum(rate=0.01, momentum=0.5, weight_decay=0.01, clip=0.5)",
    "dcasgd(rate=0.1, lambda=0.5)",
    "dcasgd(rate=0.1, momentum=0.9, lambda=0.5, weight_decay=0.01, clip=0.5)",
    "dcasgd(rate=0.1, momentum=0.5, lambda=2, adaptive=true, decay=0.8, epsilon=1e-3)",
)
"""Choices that use every optimizer and every option."""
