"""Where torch and MXNet take part: models and optimizers as flat vectors, scripts, GeoMX's names."""
