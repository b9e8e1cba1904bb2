"""A graph divided into the tables of several sites, in a folder a site."""

from pathlib import Path

import numpy as np
import pandas as pd
import pymetis
import scipy.sparse
from geokfp.components.ingest.graph import Graph

SPLITS = np.array(["none", "train", "validation", "test"])


def site_tables(graph: Graph, folder: Path, sites: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Writes each site's own nodes, the edges between them and their features; returns `tables`.

    Edges between sites are in nobody's table.

    Args:
        graph: it is cut where few edges are.
        folder: a folder of each site's name is made in it.
        sites: names of the sites.
    """
    source, destination = graph.edges
    order = np.argsort(source, kind="stable")
    starts = np.searchsorted(source[order], np.arange(graph.num_nodes + 1))
    _, found = pymetis.part_graph(len(sites), pymetis.CSRAdjacency(starts, destination[order]))
    site_of, tables = np.array(found), {}
    for number, name in enumerate(sites):
        (folder / name).mkdir(parents=True)
        own = np.flatnonzero(site_of == number)
        labels = np.array([*graph.label_names, ""])[graph.labels[own]]
        pd.DataFrame({"id": graph.node_ids[own], "label": labels, "split": SPLITS[graph.split[own]]}).to_csv(
            folder / name / "nodes.csv", index=False
        )
        inside = (site_of[source] == number) & (site_of[destination] == number)
        ends = {"src": graph.node_ids[source[inside]], "dst": graph.node_ids[destination[inside]]}
        pd.DataFrame(ends).to_csv(folder / name / "edges.csv", index=False)
        scipy.sparse.save_npz(folder / name / "features.npz", scipy.sparse.csr_matrix(graph.features)[own])
        files = {"nodes": "nodes.csv", "edges": "edges.csv", "features": "features.npz"}
        tables[name] = {option: str(folder / name / file) for option, file in files.items()}
    return tables
