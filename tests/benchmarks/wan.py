"""Time to an accuracy of trainings whose sites are joined by slow links, on one machine.

Builds a network of namespaces: a root and some sites, each pair of them joined at its own rate, with packet
loss and delay where asked for. Then trains the same model on the same images with each system in turn, and
says how long it took to the target, what crossed the links, and how accurate the model became. Needs root;
says so else.

    python tests/benchmarks/wan.py --data DIR
    python tests/benchmarks/wan.py --data DIR --systems mxnet,mxnet_2bit,mxnet_p3,mxnet_lan --rate 10mbit
    python tests/benchmarks/wan.py --data DIR --sites 4 --workers 1 --split by_class --links links.txt
    python tests/benchmarks/wan.py --data DIR --loss 0.5 --delay-ms 25 --json F.json --plot F.svg
    python tests/benchmarks/wan.py --data DIR --systems hfa,esync --rate none --slow-site site-1:3

`DIR` holds the 10,000 test images of MNIST in IDX format. `--rate` holds for every pair of endpoints and each
direction alike; `--links` gives a matrix of rates that may change in time (its form is in wan_rig/links.py);
`--root-rate` limits all that the root sends and all that it receives, as one access line would. `--slow-site`
has the workers of a site sleep after the computing of each step, that many times as long as it took.

The clock runs from the barrier after the initial weights are with all workers (what that took is told apart)
to the first snapshot with the target accuracy at every site. Every 5 steps the first worker of each site
saves its weights, while its clock stands still; they are evaluated in bursts, the first after 5 s, by a
process that gets only the processor time which no other process wants. So no system waits for an evaluation,
and none gains by one. What sets a framework up is outside the clock too: one batch of empty images.

Bytes are the payload that the interfaces counted, all directions together; a system's own count must agree
within 2 %. The exit status is 1 when it does not, or when a training failed, and 2 when an option is wrong.

What begins with `torch_` trains the same model with torch, from the same weights on the same images; the
others with MXNet. Speed-ups are told over the baseline of the same framework, `mxnet` or `torch_ddp`, torch's
DistributedDataParallel over gloo. `joined` and `torch_joined` are one process on the batches of all workers,
joined in one: how accurate the others could become.

Each system is told with the best of `--learning-rates`. The control trains each site alone: where it reaches
the target too, the links were not needed, and no speed-up is told; the one exception, marked as such, is 0.95
with sites that do not differ, which others publish.
"""

import sys

from wan_rig.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], __doc__))
