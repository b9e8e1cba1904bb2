"""Graph -> partitions: who holds which nodes, and the folders that DGL reads them from.

Knows nothing of models and training.
"""
