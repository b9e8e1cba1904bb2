"""Ingest and partitioning at each site, in its own store, so that rows and features stay there."""
