"""Plans that could not be carried out are refused."""

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import Job, Replica, Role


def role(*names: str, finishes: bool = True) -> Role:
    replicas = tuple(Replica(name=name) for name in names)
    return Role(name="role", target="package.module:function", replicas=replicas, finishes=finishes)


def test_a_job_that_would_never_end_is_refused() -> None:
    with pytest.raises(InputError, match="no role finishes"):
        Job(name="job", roles=(role("server", finishes=False), role()), deadline_s=1)


@pytest.mark.parametrize("names", [("a", "a"), ("site-0/trainer-0", "site-0.trainer-0"), ("fork-host", "b")])
def test_replicas_that_would_share_a_log_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="would share the log"):
        Job(name="job", roles=(role(*names),), deadline_s=1)


@pytest.mark.parametrize("deadline_s", [0, -1, float("nan")])
def test_a_deadline_that_is_over_is_refused(deadline_s: float) -> None:
    with pytest.raises(InputError, match="deadline_s"):
        Job(name="job", roles=(role("a"),), deadline_s=deadline_s)


@pytest.mark.parametrize("prefix", ["", "../other"])
def test_a_prefix_that_would_remove_others_memory_is_refused(prefix: str) -> None:
    with pytest.raises(InputError, match="shared-memory prefix"):
        Job(name="job", roles=(role("a"),), deadline_s=1, shared_memory_prefixes=(prefix,))


@pytest.mark.parametrize("name", ["", "/etc/passwd", "..", "a b", "a\nb"])
def test_a_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="replica name"):
        Replica(name=name)


@pytest.mark.parametrize("target", ["module", "module.function", "a:b:c", ":function", "module:", "a b:c"])
def test_a_target_that_is_no_function_is_refused(target: str) -> None:
    with pytest.raises(InputError, match="target"):
        Role(name="role", target=target, replicas=())
