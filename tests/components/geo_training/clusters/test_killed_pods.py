"""geo_train_gnn in pods, which are processes here, of which one is killed, or a process in one is."""

import pytest
import torch
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.run import Outputs, run
from geokfp.components.training.trained_gnn import read_trained_gnn
from support.killed_site import Killer
from support.real_graphs import communities, partitioned

# DGL leaves files open while it writes parts.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning"),
    pytest.mark.long,
    pytest.mark.timeout(400),
]


def trained(folder, partitions, killer):
    outputs = Outputs(
        model=folder / "model", predictions=folder / "predictions", report=folder / "report.html"
    )
    config = GeoTrainingConfig(
        epochs=4,
        batch_size=16,
        compare_alone=False,
        launcher="jobset",
        hand_over=str(folder / "hand-over"),
        checkpoint_folder=str(folder / "kept"),
        run_id="run",
        namespace="geo",
        plain_text=True,
        **killer.options,
    )
    surroundings = Surroundings(run=run_as_processes, job_resource=folder / "job-resource")
    run(config, partitions, None, outputs, surroundings)
    assert list((folder / "hand-over").iterdir()) == []
    return read_trained_gnn(outputs.model)


@pytest.mark.parametrize(
    ("killed", "whole_pod", "said"),
    [
        ("root/aggregator", False, "root/0/root/aggregator: killed by SIGKILL: starts again, 1"),
        ("root/aggregator", True, "root/0: killed by SIGKILL: starts again, 1"),
        ("site-1/trainer-0", True, "site-1/0: killed by SIGKILL: starts again, 1"),
        ("site-1/trainer-1", False, "site-1/trainer-1: killed by SIGKILL: starts site-1 again, 1"),
        ("site-1/server-0", False, "site-1/server-0: killed by SIGKILL: starts site-1 again, 1"),
        ("site-1/aggregator", False, "site-1/aggregator: killed by SIGKILL: starts site-1 again, 1"),
    ],
)
def test_with_one_killed_the_pods_give_what_they_give_without(tmp_path, capfd, killed, whole_pod, said):
    partitions = partitioned(communities(240, num_train=96), tmp_path / "parts", num_sites=2, num_parts=2)
    killer = Killer(tmp_path, killed, (5,), whole_pod=whole_pod)
    straight = trained(tmp_path / "straight", partitions, killer)
    capfd.readouterr()
    killer.arm()
    again = trained(tmp_path / "killed", partitions, killer)
    assert killer.is_done
    assert f"{said} of at most 2 times" in capfd.readouterr().out
    for tensor, other in zip(
        straight.build().state_dict().values(), again.build().state_dict().values(), strict=True
    ):
        assert torch.equal(tensor, other)
