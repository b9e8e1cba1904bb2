"""GeoMX's names for what is chosen here: its variables, stores and gradient compressions.

    TreeJob(..., **choices(variables(*VARIABLES), "dist_sync", {"type": "bsc", "threshold": 0.01}))

Pure: who calls it reads the environment (`_launch`). README.md lists the variables that need no place here.
"""

from collections.abc import Mapping
from typing import Any

from ..._files import InputError
from ..compression import compression
from ..compression.techniques import BiSparseOptions, TwoBitOptions
from ..scheduling import transmission
from ..scheduling.dgt import MOST_BLOCK_BYTES

USE_HFA, K1, K2 = "MXNET_KVSTORE_USE_HFA", "MXNET_KVSTORE_HFA_K1", "MXNET_KVSTORE_HFA_K2"
LOWER_BOUND = "MXNET_KVSTORE_SIZE_LOWER_BOUND"
P3, GLOBAL_SERVERS = "ENABLE_P3", "DMLC_NUM_GLOBAL_SERVER"
INTER_TS, GREED = "ENABLE_INTER_TS", "MAX_GREED_RATE_TS"
INTRA_TS = "ENABLE_INTRA_TS"
"""Its name for the same where its pages and its code name the two the other way round."""
DGT, ADAPTIVE = "ENABLE_DGT", "ADAPTIVE_K_FLAG"
BLOCK_SIZE = "DGT_BLOCK_SIZE"
_OF_DGT: Mapping[str, tuple[str, str]] = {
    "DMLC_K": ("fraction", "0.5"),
    "DMLC_UDP_CHANNEL_NUM": ("channels", "3"),
    "DGT_CONTRIBUTION_ALPHA": ("alpha", "0.3"),
    "DMLC_K_MIN": ("min_fraction", "0.2"),
}
"""Option of `dgt` and GeoMX's own value, by variable."""
VARIABLES = (
    *(USE_HFA, K1, K2, LOWER_BOUND),
    *(P3, GLOBAL_SERVERS),
    *(DGT, *_OF_DGT, BLOCK_SIZE, ADAPTIVE),
    *(INTER_TS, INTRA_TS, GREED),
)
"""All that `choices` takes."""

_STORES: Mapping[str, str] = {
    "dist_sync": "fsa",
    "dist_device_sync": "fsa",
    "dist_async": "mixed",
    "dist_device_async": "mixed",
}
_TYPES: Mapping[str, str] = {"bsc": "bi_sparse(ratio={threshold})", "2bit": "two_bit(threshold={threshold})"}
_THRESHOLD = 0.5
"""GeoMX's own, where none is given."""
_GREED = "0.9"
"""GeoMX's own, where none is set."""
_SWITCHES: Mapping[str, bool] = {"": False, "0": False, "false": False, "1": True, "true": True}


def choices(
    variables: Mapping[str, str],
    store: str = "dist_sync",
    compression_params: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Returns `synchronization`, `compression` and `transmission`, as a `TreeJob` takes them.

    Args:
        variables: values by name; "" or none at all for one that is not set.
        store: what `kv.create` was called with.
        compression_params: what `kv.set_gradient_compression` was called with; None where it was not.

    Raises:
        InputError: a name or value that means nothing here.
    """
    return {
        "synchronization": _synchronization(variables, store),
        "compression": _compression(variables, compression_params),
        "transmission": _transmission(variables),
    }


def check_compression(compression_params: Mapping[str, Any], chosen: str) -> None:
    """Holds what a script asks for against the compression that its tree has.

    Args:
        compression_params: as `kv.set_gradient_compression` takes it.
        chosen: the tree's `compression`; it may add to what is asked for, such as bits or a bound.

    Raises:
        InputError: they do not agree; names both.
    """
    wanted = _technique(compression_params)
    asked, here = compression(wanted).spec.technique, compression(chosen).spec.technique
    match asked, here:
        case BiSparseOptions(), BiSparseOptions():
            agree = asked.ratio == here.ratio
        case TwoBitOptions(), TwoBitOptions():
            agree = asked.threshold == here.threshold
        case _:
            agree = False
    if not agree:
        raise InputError(
            f"compression_params {dict(compression_params)!r}: the tree's compression is {chosen!r}, "
            f"allowed: {wanted!r} there, or no compression_params"
        )


def _synchronization(variables: Mapping[str, str], store: str) -> str:
    if store not in _STORES:
        raise InputError(f"kv.create {store!r}: allowed is one of {', '.join(_STORES)}")
    switch = variables.get(USE_HFA, "")
    if not _is_on(USE_HFA, variables):
        return _STORES[store]
    if _STORES[store] != "fsa":
        raise InputError(f"{USE_HFA} is {switch!r} with kv.create {store!r}, allowed: 0, or dist_sync")
    k1, k2 = (_whole(name, variables.get(name) or "1", at_least=1) for name in (K1, K2))
    return f"hfa(k1={k1}, k2={k2})"


def _is_on(name: str, variables: Mapping[str, str]) -> bool:
    switch = variables.get(name, "")
    if switch.lower() not in _SWITCHES:
        raise InputError(f"{name} is {switch!r}, allowed: 0, 1, false or true")
    return _SWITCHES[switch.lower()]


def _compression(variables: Mapping[str, str], compression_params: Mapping[str, Any] | None) -> str:
    technique = "none" if compression_params is None else _technique(compression_params)
    bound = variables.get(LOWER_BOUND, "")
    if not bound or compression_params is None:
        return technique
    return f"{technique} + by_size(bound={_whole(LOWER_BOUND, bound, at_least=0)})"


def _transmission(variables: Mapping[str, str]) -> str:
    servers = _whole(GLOBAL_SERVERS, variables.get(GLOBAL_SERVERS) or "1", at_least=1)
    terms = ["p3" if _is_on(P3, variables) else "fifo"]
    if servers > 1:
        terms.append(f"multigps(shards={servers}, at=root)")
    if (switch := variables.get(DGT, "")) not in ("", "0"):
        if switch != "1":
            raise InputError(f"{DGT} is {switch!r}, allowed: 0, or 1 (datagrams)")
        terms.append(_dgt(variables))
    if _is_on(INTER_TS, variables) | _is_on(INTRA_TS, variables):
        terms.append(_tsengine(variables))
    text = " + ".join(terms)
    transmission(text)
    return text


def _dgt(variables: Mapping[str, str]) -> str:
    block_bytes = _whole(BLOCK_SIZE, variables.get(BLOCK_SIZE) or "4096", at_least=1)
    options = {option: variables.get(name) or own for name, (option, own) in _OF_DGT.items()}
    options["block_bytes"] = str(min(block_bytes, MOST_BLOCK_BYTES))
    options["adaptive"] = str(_is_on(ADAPTIVE, variables)).lower()
    return f"dgt({', '.join(f'{option}={value}' for option, value in options.items())})"


def _tsengine(variables: Mapping[str, str]) -> str:
    text = variables.get(GREED) or _GREED
    try:
        explore = 1 - float(text)
    except ValueError as error:
        raise InputError(f"{GREED} is {text!r}, allowed: a number") from error
    if not 0 < explore <= 1:
        raise InputError(f"{GREED} is {text}, allowed: a number at least 0 and below 1")
    return f"tsengine(explore={explore:g})"


def _technique(compression_params: Mapping[str, Any]) -> str:
    params = {"threshold": _THRESHOLD, **compression_params}
    known = params.keys() == {"type", "threshold"} and params["type"] in tuple(_TYPES)
    if not known or not isinstance(params["threshold"], int | float):
        raise InputError(
            f"compression_params {dict(compression_params)!r}, allowed: type {' or '.join(_TYPES)}, "
            "and a number as threshold"
        )
    text = _TYPES[params["type"]].format(threshold=params["threshold"])
    compression(text)
    return text


def _whole(name: str, text: str, *, at_least: int) -> int:
    try:
        number = int(text)
    except ValueError as error:
        raise InputError(f"{name} is {text!r}, allowed: a whole number") from error
    if number < at_least:
        raise InputError(f"{name} is {number}, allowed: a whole number at least {at_least}")
    return number
