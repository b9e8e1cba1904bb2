"""Options of `ingest_graph`."""

from dataclasses import dataclass, field

from .._files import InputError, suffix

SELF_LOOPS = ("remove", "keep")
DGL_SUFFIXES = (".bin", ".dgl")
"""Endings of graphs that DGL saved."""
MAX_SEED = 2_000_000_000
"""Largest seed of every stage: METIS and DGL take 32 bits, and some stages count on from it."""
NODES_NEEDED = "nodes is empty; give a URI of the nodes, which holds their labels"
EDGES_NEEDED = "edges is empty; give a URI of the edges, or of one file that holds the whole graph"


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestConfig:
    """Where the tables are and how they are read."""

    nodes: str = ""
    """URI of the nodes: `.csv`, `.csv.gz`, `.parquet` or `.npz`, or a file that holds the whole graph (`.bin`
    or `.dgl` of DGL, `.npz` with `edge_index`). With neither nodes, edges nor features
    given, the built-in example is taken."""
    edges: str = ""
    """URI of the edges: the same formats, or a DGL graph file (`.bin`, `.dgl`), which may hold the nodes."""
    features: str = ""
    """URI of the features, one row a node in the order of the nodes: scipy sparse `.npz` or `.npy`; empty
    takes columns of the nodes."""
    id_column: str = "id"
    """Column of the nodes with their ids, whole numbers or strings."""
    label_column: str = "label"
    """Column of the nodes with their labels, whole numbers or strings; an empty label is none."""
    split_column: str = "split"
    """Column of the nodes that says train, validation (val, valid), test or none (or is empty);
    where there is no such column the nodes are divided by fractions."""
    site_column: str = ""
    """Column of the nodes with the name of their site; empty for none."""
    source_column: str = "src"
    """Column of the edges with the id of their source."""
    destination_column: str = "dst"
    """Column of the edges with the id of their destination."""
    feature_columns: list[str] = field(default_factory=list)
    """Columns of the nodes to take as features; empty takes all that are not named above but those of text,
    which a warning names."""
    train_fraction: float = 0.6
    """Share of each class's nodes to train on, where no column says."""
    validation_fraction: float = 0.2
    """Share of each class's nodes to validate on; the rest is for test."""
    undirected: bool = True
    """Whether each edge is stored in both directions."""
    self_loops: str = "remove"
    """`remove` or `keep` edges from a node to itself."""
    seed: int = 0
    """Seed of the division by fractions."""

    def __post_init__(self) -> None:
        if self.self_loops not in SELF_LOOPS:
            raise InputError(f"self_loops is {self.self_loops!r}; allowed: {', '.join(SELF_LOOPS)}")
        check_fractions(self.train_fraction, self.validation_fraction)
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"seed is {self.seed}; allowed: 0 to {MAX_SEED}")
        self._check_uris()
        self._check_columns()

    def _check_uris(self) -> None:
        if not self.edges and self.features and not self.nodes:
            raise InputError(
                "features is given without edges; give URIs of nodes and edges, or leave all empty"
            )
        if suffix(self.nodes) in DGL_SUFFIXES and self.edges and suffix(self.edges) not in DGL_SUFFIXES:
            raise InputError(f"edges is {self.edges!r}; allowed: '', since {self.nodes} holds edges too")
        whole = (*DGL_SUFFIXES, ".npz")
        if self.edges and not self.nodes and suffix(self.edges) not in whole:
            raise InputError(NODES_NEEDED)
        if self.nodes and not self.edges and suffix(self.nodes) not in whole:
            raise InputError(EDGES_NEEDED)

    def _check_columns(self) -> None:
        for name in self.feature_columns:
            if not isinstance(name, str) or not name:
                raise InputError(
                    f"feature_columns is {self.feature_columns}; allowed: a list of names, each as text"
                )
        taken: dict[str, str] = {}
        for option in ("id_column", "label_column", "split_column", "site_column"):
            self._take(taken, option, getattr(self, option))
        for name in self.feature_columns:
            self._take(taken, "feature_columns", name)
        if self.source_column == self.destination_column:
            raise InputError(
                f"destination_column is {self.destination_column!r}; allowed: another than source_column"
            )

    @staticmethod
    def _take(taken: dict[str, str], option: str, name: str) -> None:
        if name and name in taken:
            raise InputError(f"{option} is {name!r}; allowed: a column that {taken[name]} does not name")
        taken[name] = option


def check_fractions(train: float, validation: float) -> None:
    """Checks the shares of a division into train, validation and test.

    Raises:
        InputError: a share that is not allowed; names the option, the value and what is.
    """
    if not 0 < train <= 1:
        raise InputError(f"train_fraction is {train}; allowed: more than 0, at most 1")
    left = 1 - train
    if not 0 <= validation <= left + 1e-9:
        raise InputError(
            f"validation_fraction is {validation}; allowed: 0 to {left:.4g} (train_fraction is {train})"
        )
