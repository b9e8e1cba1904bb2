"""What goes wrong with a rig; the tree is drawn in the package's docstring."""


class RigError(RuntimeError):
    """The network could not be built, or a process of the rig could not be started."""


class TrialFailed(RigError):
    """A process of a training ended badly, or nothing came from it in time."""
