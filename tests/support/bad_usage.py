"""What `geokfp run` must refuse before anything starts, and how: a table of `test_bad_input.py`."""

from .bad_input import Case


def usage(given: str, says: str, pipeline: str = "single_site") -> Case:
    """One parameter that no step would take."""
    return Case(pipeline=pipeline, given=(given,), status=2, says=(says,))


def params(text: str, says: str) -> Case:
    """A file of parameters."""
    return Case(files={"p.yaml": f"{text}\n"}, given=("p.yaml",), status=2, says=(says,))


BAD_USAGE: dict[str, Case] = {
    # Options that are wrong whatever the data is: nothing starts.
    "fraction above 1": usage("train_fraction=1.5", "train_fraction is 1.5; allowed: more than 0, at most 1"),
    "fractions above 1 together": usage(
        "validation_fraction=0.5", "validation_fraction is 0.5; allowed: 0 to 0.4"
    ),
    "no part": usage("num_parts=0", "num_parts is 0; allowed: 1 or more"),
    "no worker": usage("workers_per_site=0", "workers_per_site is 0; allowed: 1 or more", "cross_site"),
    "unknown architecture": usage("architecture=mlp", "architecture 'mlp': must be one of sage, gcn, gat"),
    "unknown method": usage(
        "partition_method=best", "partition_method is 'best'; allowed: metis, random, att"
    ),
    "unknown format of export": usage(
        "export_formats=[tf]", "export_formats ['tf']: must be a list of torch"
    ),
    "format of export twice": usage(
        "export_formats=[onnx, onnx]",
        "export_formats ['onnx', 'onnx']: must be a list of torchscript and onnx, each at most once",
    ),
    "option of another architecture": usage(
        "model_options={num_heads: 2}", "model_options has 'num_heads'; all"
    ),
    "heads that do not fit": Case(
        given=("architecture=gat", "hidden_size=12"),
        status=2,
        says=("hidden_size is 12; allowed with gat: a multiple of num_heads (8)",),
    ),
    "unknown key of the topology": usage(
        "topology={rot: 'a:1'}", "topology has ['rot'], allowed: ", "cross_site"
    ),
    "address of two sites": usage(
        "topology={sites: {a: {listens: 'h:1'}, b: {listens: 'h:1'}}}",
        "topology['sites']['b']['listens'] is 'h:1', allowed: another address than topology['sites']['a']",
        "cross_site",
    ),
    "address of the root and of a site": usage(
        "topology={root: 'h:1', sites: {a: {listens: 'h:01'}}}",
        "topology['sites']['a']['listens'] is 'h:01', allowed: another address than topology['root']",
        "cross_site",
    ),
    "a seed beyond 32 bits": usage("seed=2147483647", "seed is 2147483647; allowed: 0 to 2000000000"),
    "nodes without edges": usage("nodes=nodes.csv", "edges is empty; give a URI of the edges"),
    "URI of another host": Case(
        given=("nodes=file://data/n.csv", "edges=edges.csv"),
        status=2,
        says=("file://data/n.csv: names the host 'data'; allowed: file:///absolute/path",),
    ),
    "entry point of another form": usage("entry_point=build", "entry_point 'build': must be module:function"),
    # What is typed.
    "value of a wrong type": usage("epochs=ten", "--param epochs=ten: a whole number such as 10 is needed"),
    "unknown option": usage(
        "num_part=3", "--param num_part: single-site has no such parameter; did you mean 'nu"
    ),
    "YAML value of a wrong type": params(
        "epochs: '3'", "p.yaml: epochs='3': a whole number such as 10 is needed"
    ),
    "YAML list of a wrong type": params(
        "fan_outs: ten", "p.yaml: fan_outs='ten': a list such as [10, 5] is n"
    ),
    "parameter twice": Case(
        given=("epochs=3", "seed=1", "epochs=4"),
        status=2,
        says=("--param epochs=4: given before, as epochs=3; allowed: once",),
    ),
    "key twice in a file": params(
        "epochs: 3\nseed: 1\nepochs: 4", "--params-file p.yaml:3: 'epochs' is there twice (also on line 1)"
    ),
    "key twice in a mapping": params(
        "model_options:\n  num_heads: 2\n  num_heads: 4",
        "p.yaml:3: 'num_heads' is there twice (also on line 2)",
    ),
    "key twice in a typed mapping": usage(
        "topology={root: 'a:1', root: 'b:1'}",
        "--param topology={root: 'a:1', root: 'b:1'}: 'root' is there twice (on one line)",
        "cross_site",
    ),
    "unknown option in a file": params(
        "epoch: 3", "p.yaml: epoch: single-site has no such parameter; did you"
    ),
    "file that is not YAML": params("epochs: [", "--params-file p.yaml: not YAML"),
    "file of another form": params("[1, 2]", "--params-file p.yaml: holds a list, a mapping is needed"),
    "unknown pipeline": Case(
        pipeline="single-sight",
        given=(),
        status=2,
        says=("no pipeline 'single-sight': did you mean 'single_site'?",),
    ),
}
