"""Rows at several sites: `shard_table >> geo_train >> export_model`."""
