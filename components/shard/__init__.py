"""Table or images -> shards: who holds which rows, and a folder a site with nothing of another's.

Knows nothing of graphs, models and training.
"""
