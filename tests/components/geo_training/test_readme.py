"""What README.md says of synchronisation: the table is whole, and the scripts run."""

import re
from dataclasses import fields
from pathlib import Path

import geokfp.components.geo_training
import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.optimizers import OPTIMIZERS
from geokfp.components.geo_training.synchronization import RULES, TECHNIQUES, synchronization
from geokfp.components.geo_training.tree_job import TreeJob
from support.geo_scripts import run_script

README = Path(geokfp.components.geo_training.__file__).with_name("README.md").read_text(encoding="utf-8")

TORCH = """
import os

import numpy as np
import torch

torch.manual_seed(int(os.environ["INDEX"]))
torch.set_num_threads(1)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(x, (x[:, 0] > 0).long()) for x in torch.randn(5, 8, 4)]
{example}
geo.finish()
np.savez(os.environ["RESULT"], last=np.concatenate([p.detach().numpy().ravel() for p in model.parameters()]))
"""

GLUON = """
import os

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

np.random.seed(int(os.environ["INDEX"]))
net = gluon.nn.Dense(2, in_units=4)
net.initialize()
{example}
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
for _ in range(5):
    x = np.random.normal(size=(8, 4)).astype("float32")
    with autograd.record():
        loss = loss_of(net(mx.nd.array(x)), mx.nd.array(x[:, 0] > 0))
    loss.backward()
    trainer.step(16)
trainer._kvstore.close()
last = [p.data().asnumpy().ravel() for p in net.collect_params().values()]
np.savez(os.environ["RESULT"], last=np.concatenate(last))
"""


PAIRS = {f"{name} + {rule}" for name in TECHNIQUES for rule in RULES}


def example(word: str) -> str:
    (found,) = [code for code in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL) if word in code]
    return found


@pytest.mark.parametrize(
    "choice", ["fsa", pytest.param("mixed(optimizer=adam(rate=0.05))", marks=pytest.mark.long)]
)
@pytest.mark.parametrize(("script", "word"), [(TORCH, "join("), (GLUON, "gluon.Trainer(")])
def test_the_scripts_run_as_they_are_written(tmp_path, script, word, choice):
    results = run_script(script.format(example=example(word)), tmp_path, synchronization=choice)
    first, second = (one["last"] for one in results.values())
    assert np.isfinite(first).all()
    assert np.abs(first).max() > 0
    np.testing.assert_array_equal(first, second)


def test_the_job_is_written_as_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(example("TreeJob("), {})
    job = TreeJob.read(tmp_path / "tree.json")
    assert job.topology.workers == ("oslo/trainer-0", "oslo/trainer-1", "paris/trainer-0")
    assert (job.run_id, str(job.address("root"))) == ("digits-1", "127.0.0.1:7000")


def test_every_technique_and_rule_is_listed_with_its_options_and_defaults():
    section = README.partition("## Synchronisation of the sites")[2].partition("\n## ")[0]
    listed = dict(re.findall(r"^\| `(\w+)(?:\(([^)`]*)\))?` \| .* \| .* \|$", section, flags=re.MULTILINE))
    names = {kind: name for name, kind in OPTIMIZERS.items()}
    for name, kind in {**TECHNIQUES, **RULES}.items():
        made = kind()
        values = {each.name: getattr(made, each.name) for each in fields(kind)}
        shown = [
            f"{key}={names.get(type(value), value)}" for key, value in values.items() if value is not None
        ]
        assert listed[name] == ", ".join(shown), name


def test_what_it_gives_as_examples_can_be_chosen():
    section = README.partition("## Synchronisation of the sites")[2].partition("\n## ")[0]
    texts = re.findall(r"`((?:fsa|hfa|mixed)\([^`]*)`", section)
    assert len(texts) > 4
    for text in texts:
        synchronization(text)
    for name in OPTIMIZERS.keys() - {"outer"}:
        assert f"`{name}`" in section


def refused() -> set[str]:
    """Returns what README.md says is refused of techniques and rules wherever they are chosen."""
    table = README.partition("| refused | why |")[2].partition("\n\n")[0]
    always = [row for row in table.splitlines() if re.fullmatch(r"\| (?:`[^`]*`(?:, )?)+ \| .* \|", row)]
    return {text for row in always for text in re.findall(r"`([^`]*)`", row.split(" | ")[0])}


def test_the_table_of_what_is_refused_is_what_is_refused_of_all_pairs():
    for text in PAIRS | refused():
        if text in refused():
            with pytest.raises(InputError, match=r"^synchronization .*: .*, allowed"):
                synchronization(text)
        else:
            synchronization(text)


def test_all_rules_at_once_go_with_a_technique_that_takes_each():
    free = [
        name for name in TECHNIQUES if not any(text.startswith(f"{name} +") for text in refused() & PAIRS)
    ]
    assert free == ["hfa", "nbsync"]
    for name in free:
        chosen = synchronization(f"{name} + " + " + ".join(RULES))
        assert None not in (chosen.outer, chosen.streamed, chosen.quorum)


def test_what_is_refused_where_it_is_known_is_in_the_table_too():
    for text in ("`hfa + quorum(workers=5)` of 4 workers", "`esync` in `geo_train_gnn`", "`none + zstd` as"):
        assert f"| {text}" in README
    with pytest.raises(InputError, match="at most the 4 of all sites"):
        synchronization("hfa + quorum(workers=5)").check_workers(4)
    with pytest.raises(InputError, match="the epochs of a GNN are equal ones"):
        GeoTrainingConfig(synchronization="esync")
