"""A tree whose nodes and workers are pods, of one cluster or of several. Knows nothing of models."""
