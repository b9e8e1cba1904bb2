"""One site: `ingest_graph >> partition_graph >> train_gnn >> export_model`."""
