"""What a node of the tree does with contributions: who is there, which finish a round, where it goes next."""
