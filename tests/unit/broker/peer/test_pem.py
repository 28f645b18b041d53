"""burrowmq.broker.peer.pem: what is found in files of certificates, and in files that hold none."""

from __future__ import annotations

from burrowmq.broker.peer import pem
from tests.support.certificates import Authority, distinguished


def test_every_certificate_of_a_file_is_read(tmp_path):
    leaf = Authority(tmp_path).issue("leaf", distinguished(common_name="leaf"))
    other = Authority(tmp_path, "Other CA")
    both = tmp_path / "both.pem"
    both.write_text(leaf.certificate.read_text() + "a remark\n" + other.file.read_text())
    assert [each.subject for each in pem.read(str(both))] == ["CN=leaf", "CN=Other CA"]


def test_files_that_hold_no_certificate(tmp_path):
    assert pem.read(str(tmp_path / "missing")) == []
    assert pem.blocks(str(tmp_path / "missing")) == ""
    bad = tmp_path / "bad.pem"
    bad.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert pem.read(str(bad)) == []


def test_a_key_in_the_same_file_is_not_shown(tmp_path):
    leaf = Authority(tmp_path).issue("leaf", distinguished(common_name="leaf"))
    certificate, key = leaf.certificate.read_text(), leaf.key.read_text()
    both = tmp_path / "both.pem"
    both.write_text(key + certificate)
    assert "PRIVATE KEY" in key
    assert pem.blocks(str(both)) == certificate.strip()
