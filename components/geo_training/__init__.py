"""The stage that trains one model over several sites: a tree of aggregators joins the sites' workers.

`run.py` is the stage; the engine beneath it imports no framework but in `frameworks`:

- `wire`: what nodes say to each other, and its bytes; `transport`: how bytes travel;
- `links`: both ends of one connection; `nodes`: what a node does with what comes over them;
- `relaying`: sites that stand for each other on the way to the root;
- `workers`: a worker's place and rounds; `frameworks`: torch and MXNet on top of those;
- `synchronization`, `compression`, `scheduling`, `optimizers`: what a user chooses between;
- `checkpoints`: what outlives a process; `metrics`: what is measured, and shown.

`server.py` is the process of a node, `tree_job.py` the file that tells every process who takes part and how.
"""
