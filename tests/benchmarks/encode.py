"""What compressing one large tensor takes on one core, beside `torch.topk` on that tensor in the same run.

The tensor has as many values as AlexNet has parameters. Each compression encodes it as one unit, as a site
does towards the root; error feedback and momentum are in the time. The error is that of one round, before
anything was fed back: the norm of what was lost over the norm of the values.

    python tests/benchmarks/encode.py --output encode.json
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from geokfp.components.geo_training.compression import compression, decode
from geokfp.components.geo_training.wire.units import Unit
from threadpoolctl import threadpool_limits

NUM_VALUES = 57_000_000
RATIO = 0.015
REFERENCE = f"top_k(ratio={RATIO}, bits=2)"
"""What is held against `torch.topk` of the same share: at most twice its time."""
COMPRESSIONS = (
    "none",
    "fp16",
    "quantized(bits=8)",
    "quantized(bits=4)",
    "quantized(bits=2)",
    f"top_k(ratio={RATIO})",
    REFERENCE,
    f"top_k(ratio={RATIO}, bits=2, feedback=0)",
    "bi_sparse(ratio=0.01)",
    "bi_sparse(ratio=0.01, threshold=sampled)",
    "mpq(ratio=0.01)",
    "two_bit(threshold=0.5)",
    "demo(ratio=0.03)",
    f"top_k(ratio={RATIO}, bits=2) + zstd",
)


@dataclass(frozen=True)
class Measured:
    """One compression."""

    compression: str
    num_bytes: int
    share: float
    """Bytes over those of FP32."""
    error: float
    encode_s: float
    decode_s: float
    ratio: float
    """Seconds of encoding over those of `torch.topk`."""


def main() -> None:
    """Measures each compression, prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--values", type=int, default=NUM_VALUES)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the shortest counts")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)
    values = np.random.default_rng(0).standard_normal(options.values, dtype=np.float32)
    kept = int(RATIO * options.values)
    top_k_s = seconds(lambda: torch.topk(torch.from_numpy(values), kept), options.repeats)
    rows = [measure(each, values, top_k_s, options.repeats) for each in COMPRESSIONS]
    result = {
        "values": options.values,
        "top_k_s": top_k_s,
        "machine": {
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "ratio": next(row.ratio for row in rows if row.compression == REFERENCE),
        "rows": [asdict(row) for row in rows],
    }
    print(table(result))
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def measure(name: str, values: np.ndarray, top_k_s: float, repeats: int) -> Measured:
    """Encodes and decodes with a fresh compressor; later repeats have its state."""
    unit = Unit("gradient", 0, values.size)
    encoder = compression(name).up()
    payload = encoder.encode(unit, values)
    decoded = decode(unit, payload)
    error = float(np.linalg.norm(decoded - values) / np.linalg.norm(values))
    encode_s = seconds(lambda: encoder.encode(unit, values), repeats)
    decode_s = seconds(lambda: decode(unit, payload), repeats)
    return Measured(
        compression=name,
        num_bytes=payload.num_bytes,
        share=payload.num_bytes / values.nbytes,
        error=error,
        encode_s=encode_s,
        decode_s=decode_s,
        ratio=encode_s / top_k_s,
    )


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Returns those of the shortest of some runs: what else the machine does only adds."""
    runs = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        runs.append(time.perf_counter() - began)
    return min(runs)


def table(result: dict[str, Any]) -> str:
    """Returns the compressions as lines of text."""
    names = f"{'bytes':>12} {'share':>8} {'error':>7} {'encode s':>9} {'decode s':>9} {'ratio':>6}"
    lines = [f"{'compression':45} {names}"]
    for row in result["rows"]:
        lines.append(
            f"{row['compression']:45} {row['num_bytes']:12,} {row['share']:8.4f} {row['error']:7.4f} "
            f"{row['encode_s']:9.3f} {row['decode_s']:9.3f} {row['ratio']:6.2f}"
        )
    lines.append(
        f"torch.topk of {RATIO:.1%} of {result['values']:,} values: {result['top_k_s']:.3f} s, one thread"
    )
    lines.append(f"{REFERENCE} / torch.topk: {result['ratio']:.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
