"""One site, then all: `ingest_graph >> partition_graph >> train_gnn >> geo_train_gnn >> export_model`."""
