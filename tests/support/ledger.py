"""Reads a root's journal as the ledger of whose contributions it has counted."""

from collections import Counter, defaultdict


def counted(records):
    """Returns how often each (scope, unit, number, worker) counts, of `Record`s."""
    counts = Counter()
    for record in records:
        place = (record.round.scope, record.round.unit, record.round.number)
        counts.update((*place, worker) for worker in set(record.covers))
    return counts


def assert_counted_once(records, roles):
    """Asserts that nothing counts twice, and no round was merged twice; returns the rounds by worker."""
    records = [record for record in records if record.round.unit.role in roles]
    merged = Counter(record.round for record in records if not record.is_late)
    assert not [str(round_id) for round_id, times in merged.items() if times > 1]
    twice = [place for place, times in counted(records).items() if times > 1]
    assert not twice
    rounds_of = defaultdict(set)
    for _, _, number, worker in counted(records):
        rounds_of[worker].add(number)
    return dict(rounds_of)
