"""Model after model over windows of data: what a window reads, which model wins, and who is champion.

Knows nothing of how models are trained.
"""
