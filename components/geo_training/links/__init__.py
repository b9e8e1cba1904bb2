"""Both ends of a connection between nodes: who joined, what travels on it, and what keeps it up."""
