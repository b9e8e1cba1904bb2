"""Checkpoints of several processes, of one moment."""

from geokfp.components._files.checkpoints import forget_after, last_common, new_checkpoint

MEMBERS = ("node-0", "worker-0", "worker-1")


def keep(folder, number, members):
    for member in members:
        with new_checkpoint(folder, number, member):
            pass


def test_who_goes_on_from_an_earlier_checkpoint_has_no_later_one(tmp_path):
    keep(tmp_path, 4, (*MEMBERS, "worker-2"))
    keep(tmp_path, 5, ("worker-1", "worker-2"))
    assert last_common(tmp_path, MEMBERS) == 4
    assert last_common(tmp_path, ["worker-1"]) == 5
    forget_after(tmp_path, 4, MEMBERS)
    assert last_common(tmp_path, ["worker-1"]) == last_common(tmp_path, MEMBERS) == 4
    assert last_common(tmp_path, ["worker-2"]) == 5
    forget_after(tmp_path, 4)
    assert last_common(tmp_path, ["worker-2"]) == 4
