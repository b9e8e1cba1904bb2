"""Window after window: train from the last champion on, compare, and promote who wins by the margin."""
