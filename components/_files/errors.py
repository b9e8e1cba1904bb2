"""What is wrong with an input; the tree is drawn in the package's docstring."""


class InputError(ValueError):
    """Something that the user gave is wrong.

    The message is one line: the file and line, or the option and its value, and what is allowed.
    """


class ArtifactError(InputError):
    """An artifact is missing a file, was altered after it was written, or has another kind or version."""
