"""Whom certificates name, which are refused before anything starts, and that changed files are read again."""

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from geokfp.components._files import InputError
from geokfp.components.geo_training.transport.certificates import Certificates
from geokfp.components.geo_training.transport.node_names import (
    folder_name,
    named_nodes,
    node_uri,
    speaks_for,
)
from geokfp.pipelines._command_line.authority import Authority
from hypothesis import given
from hypothesis import strategies as st
from support.certificates import issue, issue_each

NAMES = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=40)
AUTHORITY = Authority(days=2)


@given(st.sets(NAMES, max_size=4))
def test_a_certificate_names_the_nodes_whose_uris_it_holds_and_no_host(names):
    uris = [("URI", node_uri(name)) for name in names]
    others = [("DNS", "root"), ("URI", "https://root"), ("IP Address", "127.0.0.1")]
    assert named_nodes({"subjectAltName": (*uris, *others)}) == names
    assert all(uri.isascii() for _, uri in uris)


@given(st.lists(NAMES, unique=True, min_size=2, max_size=2))
def test_a_nodes_folder_is_its_own_and_lies_inside(names):
    one, other = map(folder_name, names)
    assert one != other
    assert Path(one).name == one
    assert not one.startswith(".")


def test_a_site_speaks_for_its_workers_only():
    assert speaks_for(frozenset({"oslo"}), "oslo/trainer-3")
    assert speaks_for(frozenset({"oslo"}), "oslo")
    assert not speaks_for(frozenset({"oslo"}), "paris/trainer-3")
    assert not speaks_for(frozenset(), "oslo")
    assert speaks_for(None, "oslo")


def test_good_certificates_pass_from_one_folder_or_from_each_nodes_own(tmp_path):
    names = ["root", "oslo", "..", "a b/%2F"[:3]]
    together = issue(tmp_path / "one", names, AUTHORITY)
    apart = issue_each(tmp_path / "each", names, AUTHORITY)
    for name in names:
        Certificates(together, name).check()
        Certificates(apart, name).check()


def of_other_key(folder: Path) -> None:
    other = issue(folder.with_name("other"), ["root"], AUTHORITY)
    (folder / "tls.key").write_bytes((other / "tls.key").read_bytes())


def of_other_authority(folder: Path) -> None:
    issue(folder, ["root"], Authority(days=2), trusts=AUTHORITY)


def expired(folder: Path) -> None:
    issue(folder, ["root"], Authority(days=2, now=datetime.now(UTC) - timedelta(days=9)))


def not_yet_valid(folder: Path) -> None:
    issue(folder, ["root"], Authority(days=2, now=datetime.now(UTC) + timedelta(days=9)))


def of_another_node(folder: Path) -> None:
    issue(folder, ["oslo", "Root"], AUTHORITY)


def with_passphrase(folder: Path) -> None:
    key = serialization.load_pem_private_key((folder / "tls.key").read_bytes(), None)
    sealed = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (folder / "tls.key").write_bytes(sealed)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (of_other_key, "not usable by 'root': tls.key is not the key of the certificate in tls.crt"),
        (of_other_authority, "not usable by 'root': tls.crt is not of an authority in ca.crt"),
        (expired, "not usable by 'root': certificate has expired"),
        (not_yet_valid, "not usable by 'root': certificate is not yet valid"),
        (of_another_node, r"tls.crt is of \['Root', 'oslo'\], needed: geokfp://root as a URI name"),
        (
            lambda folder: (folder / "tls.key").unlink(),
            "tls.key of node 'root' is missing, needed: tls.crt, tls.key and ca.crt",
        ),
        (lambda folder: (folder / "ca.crt").write_text("hello"), "ca.crt holds no certificate in PEM"),
        (lambda folder: (folder / "tls.crt").write_text(""), "tls.crt holds no certificate in PEM"),
        (lambda folder: (folder / "tls.key").write_text("hello"), "tls.key holds no key in PEM"),
        (with_passphrase, "tls.key has a passphrase, allowed: a key without one"),
        (lambda folder: shutil.rmtree(folder), "is no folder, needed: tls.crt, tls.key and ca.crt in one"),
    ],
)
def test_what_peers_would_refuse_is_refused_in_one_line(tmp_path, spoil, reason):
    folder = issue(tmp_path / "certificates", ["root"], AUTHORITY)
    spoil(folder)
    with pytest.raises(InputError, match=reason) as refused:
        Certificates(folder, "root").check()
    assert str(refused.value).startswith(f"certificates {str(folder)!r}: ")
    assert len(str(refused.value).splitlines()) == 1
    assert "_ssl" not in str(refused.value)


def test_files_are_read_again_once_they_changed_as_mounted_secrets_change(tmp_path):
    issue(tmp_path / "first", ["root"], AUTHORITY)
    issue(tmp_path / "second", ["root"], AUTHORITY)
    mounted = tmp_path / "mounted"
    mounted.symlink_to("first")
    certificates = Certificates(mounted, "root")
    before = certificates.context(server_side=True)
    assert certificates.context(server_side=True) is before
    renamed = tmp_path / "next"
    renamed.symlink_to("second")
    os.replace(renamed, mounted)
    assert certificates.context(server_side=True) is not before
