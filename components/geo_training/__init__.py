"""The stage that trains one model over several sites: a tree of aggregators joins the sites' workers.

`run.py` is the stage; the engine beneath it (units, messages, rounds, aggregator, client) imports no
framework.
"""
