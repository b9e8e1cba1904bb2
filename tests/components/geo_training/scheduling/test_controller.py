"""The controller's laws: within its bounds, never more for a slower link, back again, and at rest."""

from dataclasses import replace

import pytest
from geokfp.components.geo_training.scheduling.controller import (
    EXPIRES,
    FIRST_STEPS,
    FREE_SHARE,
    GRADIENT_S,
    GRADIENT_SHARE,
    GROWTH,
    RELAXED,
    SHARE,
    Controller,
    Measured,
)
from geokfp.components.geo_training.scheduling.ladder import (
    FREE_STEPS,
    adaptive_ladder,
    check_ladder,
    steps_ladder,
)
from hypothesis import assume, given
from hypothesis import strategies as st

LADDERS = {
    "adaptive": adaptive_ladder(64),
    "one step": adaptive_ladder(1),
    "few steps": adaptive_ladder(5),
    "steps only": steps_ladder(64, 0.25),
}
ladders = st.sampled_from(sorted(LADDERS)).map(LADDERS.get)
seconds_a_byte = st.floats(1e-12, 1e-2)
seconds_a_step = st.floats(1e-4, 10)
sizes = st.integers(1, 10**9)


def measured(a_byte=1e-6, a_step=0.02, size=10**5, latency_s=0.0):
    return Measured(seconds_a_step=a_step, seconds_a_byte=a_byte, latency_s=latency_s, num_values=size)


def transfer_s(rung, given):
    return given.num_values * rung.bytes_a_value * given.seconds_a_byte


def at_rest(controller, given, plans=20, own_s=0.0):
    """Returns the plan that the same measurement leads to in the end, with rounds that take `own_s` more."""
    rung = controller.plan(given)
    for _ in range(plans - 1):
        took_s = own_s + given.latency_s + transfer_s(rung, given) if own_s else 0.0
        rung = controller.plan(replace(given, seconds_a_round=took_s))
    return rung


def share(rung, given, own_s=0.0):
    round_s = own_s + given.latency_s + transfer_s(rung, given)
    return round_s / (rung.steps * given.seconds_a_step)


@given(ladders, st.lists(st.tuples(seconds_a_byte, seconds_a_step), min_size=1, max_size=12), sizes)
def test_no_plan_is_outside_the_bounds_and_steps_grow_slowly(ladder, rates, size):
    controller, before = Controller(ladder), 0
    for a_byte, a_step in rates:
        rung = controller.plan(measured(a_byte, a_step, size))
        assert 1 <= rung.steps <= ladder[-1].steps
        assert rung.bits in (32, 16, 8, 4, 2)
        assert 0 < rung.ratio <= 1
        assert rung.steps <= (GROWTH * before if before else FIRST_STEPS)
        before = rung.steps


@given(ladders, seconds_a_byte, st.floats(1, 1000), seconds_a_step, sizes, st.floats(0, 5))
def test_a_slower_link_is_given_no_more(ladder, a_byte, slower, a_step, size, latency_s):
    quick = at_rest(Controller(ladder), measured(a_byte, a_step, size, latency_s))
    slow = at_rest(Controller(ladder), measured(a_byte * slower, a_step, size, latency_s))
    assert slow.steps >= quick.steps
    assert slow.bits <= quick.bits
    assert slow.ratio <= quick.ratio


@given(ladders, seconds_a_byte, seconds_a_step, sizes, st.floats(0, 5), st.floats(0, 5))
def test_at_rest_a_round_fits_unless_nothing_less_is_left(ladder, a_byte, a_step, size, latency_s, own_s):
    given_now = measured(a_byte, a_step, size, latency_s)
    rung = at_rest(Controller(ladder), given_now, own_s=own_s)
    assert at_rest(Controller(ladder), given_now, plans=21, own_s=own_s) == rung
    assert share(rung, given_now, own_s) <= SHARE * (1 + 1e-6) or rung == ladder[-1]


@given(ladders, seconds_a_byte, seconds_a_step, sizes, st.floats(0, 5), st.floats(0, 5))
def test_what_is_free_is_given_up_before_a_round_takes_much(ladder, a_byte, a_step, size, latency_s, own_s):
    given_now = measured(a_byte, a_step, size, latency_s)
    rung = at_rest(Controller(ladder), given_now, own_s=own_s)
    assume(share(rung, given_now, own_s) > FREE_SHARE * (1 + 1e-6))
    last_free = [rung for rung in ladder if rung.is_free][-1]
    assert rung.bytes_a_value <= last_free.bytes_a_value
    assert rung.steps >= last_free.steps


@given(ladders, seconds_a_byte, seconds_a_step, sizes)
def test_a_link_that_recovers_is_given_all_again(ladder, a_byte, a_step, size):
    controller = Controller(ladder)
    at_rest(controller, measured(1.0, a_step, size))
    recovered = at_rest(controller, measured(a_byte, a_step, size), plans=60)
    fresh = at_rest(Controller(ladder), measured(a_byte / RELAXED * (1 + 1e-9), a_step, size))
    assert recovered.steps <= fresh.steps
    assert recovered.bits >= fresh.bits
    assert recovered.ratio >= fresh.ratio


@given(ladders, seconds_a_byte, st.lists(st.floats(0.8, 1.0), min_size=2, max_size=30), sizes)
def test_a_rate_that_wavers_a_little_moves_nothing_back_and_forth(ladder, a_byte, wavering, size):
    controller = Controller(ladder)
    at_rest(controller, measured(a_byte, size=size))
    seen = [controller.plan(measured(a_byte * by, size=size)) for by in wavering]
    needs = [rung.bytes_a_value / rung.steps for rung in seen]
    assert needs == sorted(needs, reverse=True)


def test_nothing_is_given_up_while_nothing_is_known():
    for given_now in (measured(0, 0), measured(0, 0.1), measured(1.0, 0)):
        rung = Controller(adaptive_ladder(64)).plan(given_now)
        assert (rung.steps, rung.bits, rung.ratio) == (1, 32, 1.0)


def test_bits_go_first_then_steps_then_values():
    seen = []
    for decade in range(60):
        controller = Controller(adaptive_ladder(64))
        rung = at_rest(controller, measured(1e-9 * 1.4**decade))
        seen.append((rung.bits, rung.steps, rung.ratio))
    assert seen[0] == (32, 1, 1.0)
    assert seen[-1] == (2, 64, 0.015)
    assert [bits for bits in dict.fromkeys(one[0] for one in seen)] == [32, 16, 8, 4, 2]
    assert all(steps == 1 for bits, steps, _ in seen if bits > 2)
    assert all(ratio == 1.0 for _, steps, ratio in seen if steps < 64)


def test_what_no_bits_shorten_is_spread_over_steps():
    assert at_rest(Controller(adaptive_ladder(64)), measured(1e-12, 0.02)).steps == 1
    for given_now, own_s in ((measured(1e-12, 0.02, latency_s=0.016), 0.0), (measured(1e-12, 0.02), 0.016)):
        rung = at_rest(Controller(adaptive_ladder(64)), given_now, own_s=own_s)
        assert (rung.steps, rung.bits) == (16, 32)


def test_beyond_the_free_steps_a_round_may_take_more():
    rung = at_rest(Controller(adaptive_ladder(64)), measured(1e-12, 0.02), own_s=0.1)
    assert (rung.steps, rung.bits) == (FREE_STEPS, 2)
    assert at_rest(Controller(adaptive_ladder(64)), measured(1e-12, 0.02), own_s=0.3).steps == 30


@given(seconds_a_step, st.floats(0, 2), st.floats(0, 1), ladders)
def test_gradients_are_exchanged_while_they_take_little(a_step, share_of_step, in_all_s, ladder):
    took = {"seconds_a_round": share_of_step * a_step, "seconds_of_gradients": in_all_s}
    given_now = replace(measured(1e-9, a_step), **took)
    rung = Controller(ladder).plan(replace(given_now, exchanges_gradients=True))
    little = took["seconds_a_round"] <= GRADIENT_SHARE * a_step
    assert rung.exchanges_gradients == (little or in_all_s <= GRADIENT_S)
    assert (rung.steps, rung.bits) == (1, 32) or not rung.exchanges_gradients
    assert not Controller(ladder).plan(given_now).exchanges_gradients


def test_a_measurement_expires():
    controller = Controller(adaptive_ladder(64))
    before = at_rest(controller, measured(1e-5))
    for _ in range(EXPIRES - 1):
        controller.plan(measured(0.0, 0.02))
    assert controller.plan(measured(0.0, 10.0)) == before  # it expired; long steps would let it relax
    at_rest(controller, measured(1e-5))
    assert controller.plan(measured(0.0, 10.0)) != before


@given(st.lists(st.tuples(st.floats(0, 1e-3), seconds_a_step), max_size=12), st.integers(0, 12))
def test_who_goes_on_from_a_state_plans_alike(rates, cut):
    whole, first = Controller(adaptive_ladder(64)), Controller(adaptive_ladder(64))
    expected = [whole.plan(measured(*rate)) for rate in rates]
    seen = [first.plan(measured(*rate)) for rate in rates[:cut]]
    second = Controller(adaptive_ladder(64))
    second.load_state(first.state())
    assert seen + [second.plan(measured(*rate)) for rate in rates[cut:]] == expected


@pytest.mark.parametrize("max_steps", [1, 2, FREE_STEPS - 1, FREE_STEPS, FREE_STEPS + 1, 64, 1000])
def test_every_rung_needs_less_than_the_one_before(max_steps):
    ladder = adaptive_ladder(max_steps)
    check_ladder(ladder)
    assert max(rung.steps for rung in ladder) == max_steps
    check_ladder(steps_ladder(max_steps, 4.0))


def test_a_ladder_that_leads_nowhere_is_refused():
    first, *_ = adaptive_ladder(4)
    for ladder in ([], [first, first]):
        with pytest.raises(ValueError, match="fewer bytes"):
            Controller(ladder)
