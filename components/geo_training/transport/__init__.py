"""How frames travel. The engine knows only the protocols of `base`."""
