"""The stage that trains a GNN at one site: partitions -> trained GNN, by dgl.distributed."""
