"""Names of the container images that the components run in."""

from importlib.metadata import version


def image(name: str) -> str:
    """Returns the bare name of an image of this package's version.

    The name carries no registry; `geokfp compile --image-prefix` puts one before it.

    Args:
        name: the folder under `images/`, such as `training`.

    Returns:
        A reference such as `geokfp-training:0.1.0`.
    """
    return f"geokfp-{name}:{version('geokfp')}"
