"""Several sites whose tables stay there: `partition_at_sites >> geo_train_gnn >> export_model`."""
