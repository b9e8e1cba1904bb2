"""A worker's part in the tree, of every framework alike: its place, and its rounds over one flat vector."""
