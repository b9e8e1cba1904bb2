"""A forward pass waits for what it uses, and for nothing else."""

from geokfp.components.geo_training.frameworks.forward_needs import ForwardNeeds

OWN = {
    "": frozenset(),
    "first": frozenset({1}),
    "attention": frozenset({2}),
    "attention.out": frozenset({3}),
    "unused": frozenset({4}),
    "last": frozenset({5, 0}),
}


def needs_after(*called: str) -> tuple[ForwardNeeds, list[int]]:
    taken: list[int] = []
    needs = ForwardNeeds(OWN, taken.append)
    for name in called:
        needs.before_forward(name)
    return needs, taken


def test_each_module_waits_for_its_own_and_for_those_that_it_does_not_call():
    needs, taken = needs_after("", "first", "attention", "last")
    needs.after_step()
    assert taken == []
    for name, expected in (("", [4]), ("first", [1]), ("attention", [2, 3]), ("last", [0, 5])):
        taken.clear()
        needs.before_forward(name)
        assert taken == expected


def test_what_no_forward_pass_is_seen_to_need_is_awaited_in_the_step():
    needs, taken = needs_after("first")  # the model itself was not called, but this part of it
    needs.after_step()
    assert taken == [0, 2, 3, 4, 5]


def test_a_module_that_is_called_later_for_the_first_time_waits_for_its_own():
    needs, taken = needs_after("", "first", "attention", "last")
    needs.after_step()
    needs.before_forward("unused")
    assert taken == [4]


def test_what_runs_its_parts_without_calling_them_waits_for_all_of_them():
    needs, taken = needs_after("", "first", "attention", "attention.out", "last")
    needs.after_step()
    needs.before_forward("attention", is_whole=True)
    assert taken == [2, 3]
    taken.clear()
    needs.before_forward("", is_whole=True)
    assert taken == [0, 1, 2, 3, 4, 5]
