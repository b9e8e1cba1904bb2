"""Several sites, fresh weights: `ingest_graph >> partition_graph >> geo_train_gnn >> export_model`."""
