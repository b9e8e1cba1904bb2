"""Options of `shard_table`."""

from dataclasses import dataclass, field

from .._files import InputError, suffix
from ..ingest.config import MAX_SEED, check_fractions

METHODS = ("iid", "by_class", "by_column", "dirichlet")
TASKS = ("classification", "regression")
ARRAYS_SUFFIX = ".npz"
LEAST_ALPHA, MOST_ALPHA = 1e-3, 1e6
"""Beyond these a draw is one site, or an even share, to within a row of any table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardConfig:
    """Where the rows are, what they mean, and which site gets which."""

    table: str = ""
    """URI of the rows: `.csv`, `.csv.gz` or `.parquet` with a column a feature, or `.npz` with arrays `x`
    [n, ...] and `y` [n]. With neither table nor images given, the built-in example is taken."""
    images: str = ""
    """URI of images in IDX format (MNIST's), packed by gzip or not; needs labels."""
    labels: str = ""
    """URI of the images' labels in IDX format, packed by gzip or not."""
    task: str = "classification"
    """`classification` (labels are whole numbers or strings) or `regression` (labels are numbers)."""
    label_column: str = "label"
    """Column of the table with the labels; an `.npz` has them in `y`."""
    feature_columns: list[str] = field(default_factory=list)
    """Columns of the table to take as features; empty takes all that no option names but those of text,
    which a warning names."""
    split_column: str = "split"
    """Column of the table (array of an `.npz`) that says train, validation (val, valid), test or none; where
    there is no such column the rows of each site are divided by fractions."""
    site_column: str = ""
    """Column of the table (array of an `.npz`) with the name of the row's site, for `by_column`; never a
    feature."""
    num_sites: int = 2
    """Number of sites; with `by_column`, as many as the data has, or 0 to take those."""
    method: str = "iid"
    """`iid` (a shuffle), `by_class` (each class at one site), `by_column` (the sites of site_column) or
    `dirichlet` (classes in uneven shares, by alpha)."""
    alpha: float = 0.5
    """Concentration of `dirichlet`: the smaller, the less the sites' classes are alike."""
    site_names: list[str] = field(default_factory=list)
    """Name of each site; empty for site-0, site-1, ..., or the names in site_column."""
    train_fraction: float = 0.6
    """Share of each site's rows to train on, alike in every class, where no column says."""
    validation_fraction: float = 0.2
    """Share of each site's rows to validate on; the rest is for test."""
    scale_images: bool = False
    """Whether images become float32 between 0 and 1; otherwise their bytes are kept as they lie."""
    seed: int = 0
    """Seed of who gets which rows and of the division by fractions."""

    def __post_init__(self) -> None:
        for option, allowed in (("task", TASKS), ("method", METHODS)):
            if getattr(self, option) not in allowed:
                raise InputError(f"{option} is {getattr(self, option)!r}; allowed: {', '.join(allowed)}")
        if self.task == "regression" and self.method in ("by_class", "dirichlet"):
            raise InputError(f"method is {self.method!r}; allowed with task 'regression': iid, by_column")
        if not LEAST_ALPHA <= self.alpha <= MOST_ALPHA:
            raise InputError(f"alpha is {self.alpha}; allowed: {LEAST_ALPHA:g} to {MOST_ALPHA:g}")
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"seed is {self.seed}; allowed: 0 to {MAX_SEED}")
        self._check_sources()
        self._check_sites()
        check_fractions(self.train_fraction, self.validation_fraction)
        self._check_columns()

    def _check_sources(self) -> None:
        if bool(self.images) != bool(self.labels):
            given, missing = ("images", "labels") if self.images else ("labels", "images")
            raise InputError(f"{missing} is empty but {given} is given; allowed: both, or neither")
        if self.table and self.images:
            raise InputError(f"table is {self.table!r}; allowed: '', since images are given")
        if not self.table and self.method == "by_column":
            raise InputError("method is 'by_column' without a table; allowed: iid, by_class, dirichlet")
        arrays = suffix(self.table) == ARRAYS_SUFFIX
        if self.feature_columns and (arrays or not self.table):
            raise InputError(f"feature_columns is {self.feature_columns}; allowed without columns: []")
        if self.scale_images and not (self.images or arrays):
            raise InputError("scale_images is True; allowed without images or an .npz: False")

    def _check_sites(self) -> None:
        by_column = self.method == "by_column"
        if by_column and not self.site_column:
            raise InputError("site_column is ''; allowed with method 'by_column': a column of the table")
        least = 0 if by_column else 1
        if self.num_sites < least:
            raise InputError(f"num_sites is {self.num_sites}; allowed: {least} or more")
        if not self.site_names:
            return
        if by_column:
            raise InputError(f"site_names is {self.site_names}; allowed with method 'by_column': []")
        if not _are_names(self.site_names) or len(self.site_names) != self.num_sites:
            raise InputError(
                f"site_names is {self.site_names}; allowed: {self.num_sites} different names (num_sites is "
                f"{self.num_sites}), each as text, or []"
            )

    def _check_columns(self) -> None:
        if self.feature_columns and not _are_names(self.feature_columns):
            raise InputError(
                f"feature_columns is {self.feature_columns}; allowed: different names, each as text"
            )
        if not self.label_column:
            raise InputError("label_column is ''; allowed: a column of the table")
        taken = dict.fromkeys(self.feature_columns, "feature_columns")
        for option in ("label_column", "split_column", "site_column"):
            name = getattr(self, option)
            if name and name in taken:
                raise InputError(f"{option} is {name!r}; allowed: a column that {taken[name]} does not name")
            taken[name] = option


def _are_names(names: list[str]) -> bool:
    return all(isinstance(name, str) and name.strip() and name.isprintable() for name in names) and (
        len(set(names)) == len(names)
    )
