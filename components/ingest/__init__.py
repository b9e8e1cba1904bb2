"""Raw tables -> graph: reads nodes, edges and features, checks them, and writes the graph artifact.

Knows nothing of parts and models.
"""
