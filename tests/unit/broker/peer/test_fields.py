"""burrowmq.broker.peer.fields: certificates with odd names and damaged ones, and what reading them costs."""

from __future__ import annotations

import ipaddress
import ssl
import subprocess
import sys

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.peer import fields
from tests.support.certificates import Authority, distinguished

OTHER = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")
ALTERNATIVES = [
    x509.DNSName("alice.example"),
    x509.RFC822Name("alice@example.org"),
    x509.UniformResourceIdentifier("urn:alice"),
    x509.IPAddress(ipaddress.ip_address("192.0.2.1")),
    x509.IPAddress(ipaddress.ip_address("2001:db8::1")),
    x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
    x509.DirectoryName(distinguished(common_name="elsewhere")),
    x509.OtherName(OTHER, b"\x0c\x05alice"),  # a UTF8String
    x509.OtherName(OTHER, b"\x1e\x04\x00\xe4\x03\xbb"),  # a BMPString
]
SAN = b"\x55\x1d\x11"


def name(
    kind: _ASN1Type, value: str, oid: x509.ObjectIdentifier = NameOID.COMMON_NAME
) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, value, kind, _validate=False)])


@pytest.fixture(scope="module")
def der_of(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("ca"))

    def make(subject: x509.Name, alternatives: list[x509.GeneralName] = ()) -> bytes:
        leaf = authority.issue("leaf", subject, alternatives)
        return ssl.PEM_cert_to_DER_cert(leaf.certificate.read_text())

    return make


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (_ASN1Type.UTF8String, "käse😀", r"CN=k\C3\A4se\F0\9F\98\80"),
        (_ASN1Type.BMPString, "käseλ", r"CN=k\C3\A4se\CE\BB"),
        (_ASN1Type.UniversalString, "käse😀", r"CN=k\C3\A4se\F0\9F\98\80"),
        (_ASN1Type.T61String, "kaese", "CN=kaese"),
        (_ASN1Type.PrintableString, "kaese", "CN=kaese"),
        (_ASN1Type.IA5String, "k@ese", "CN=k@ese"),
    ],
)
def test_strings_of_all_kinds(der_of, kind, value, shown):
    found = fields.read(der_of(name(kind, value)))
    assert found.subject == shown
    assert found.common_names == (value,)


def test_a_teletex_string_is_latin_1(der_of):
    plain = der_of(
        x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, "kaese", _ASN1Type.T61String),
                x509.NameAttribute(x509.ObjectIdentifier("2.999.1"), "λ"),
            ]
        )
    )
    found = fields.read(plain.replace(b"\x14\x05kaese", b"\x14\x05k\xe4\xdfes"))
    assert found.subject == r"2.999.1=\CE\BB,CN=k\C3\A4\C3\9Fes"
    assert found.issuer == "CN=Test CA"
    assert found.common_names == ("käßes",)


def test_octets_that_are_no_utf_8_in_a_string_that_says_so(der_of):
    damaged = der_of(name(_ASN1Type.UTF8String, "kaese")).replace(b"kaese", b"k\xe4\xdfes")
    assert fields.read(damaged).common_names == (
        "k\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}es",
    )


def test_a_relative_name_of_several_attributes(der_of):
    several = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.USER_ID, "u"), x509.NameAttribute(NameOID.COMMON_NAME, "c")]
    )
    found = fields.read(der_of(x509.Name([several])))
    assert found.subject == "CN=c+UID=u"


def test_a_certificate_for_nobody(der_of):
    found = fields.read(der_of(x509.Name([])))
    assert (found.subject, found.common_names) == ("", ())


def test_alternative_names_in_their_order(der_of):
    found = fields.read(der_of(distinguished(common_name="a"), ALTERNATIVES))
    assert found.alternative_names == (
        ("dns", "alice.example"),
        ("email", "alice@example.org"),
        ("uri", "urn:alice"),
        ("ip", "192.0.2.1"),
        ("ip", "2001:db8::1"),
        ("other_name", "alice"),
        ("other_name", "äλ"),
    )


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b"\x82\x0dalice.example", b"\x82\x0d\xfflice.example"),  # no host's name
        (b"\x82\x0dalice.example", b"\xa3\x0dalice.example"),  # an X.400 address
        (b"\x87\x04\xc0\x00\x02\x01", b"\x86\x04\xc0\x00\x02\x01"),  # no URI
        (b"\x0c\x05alice", b"\x0c\x06alice"),  # longer than what holds it
    ],
)
def test_alternative_names_that_cannot_be_read_leave_the_subject(der_of, good, bad):
    der = der_of(distinguished(common_name="a"), ALTERNATIVES)
    assert good in der[der.index(SAN) :]
    found = fields.read(der.replace(good, bad))
    assert (found.subject, found.alternative_names) == ("CN=a", ())


@given(st.binary(max_size=200))
def test_octets_that_are_no_certificate(octets):
    with pytest.raises(ValueError):
        fields.read(octets)


@pytest.fixture(scope="module")
def der(der_of) -> bytes:
    return der_of(distinguished(common_name="a"), ALTERNATIVES)


# A later version of the library will refuse some of them and says so.
@pytest.mark.filterwarnings("ignore")
@given(data=st.data())
def test_a_damaged_certificate_is_read_or_refused_never_worse(der, data):
    at = data.draw(st.integers(0, len(der) - 1))
    damaged = bytearray(der)
    damaged[at] = data.draw(st.integers(0, 255))
    try:
        fields.read(bytes(damaged[: data.draw(st.integers(at, len(der)))])).subject
    except ValueError:
        pass


@pytest.mark.slow
def test_a_server_that_has_seen_no_certificate_has_not_loaded_the_library():
    loaded = "import sys, burrowmq.broker.__main__, burrowmq.management.server; print(*sys.modules)"
    command = [sys.executable, "-c", loaded]
    modules = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert "burrowmq.broker.peer.tls" in modules
    assert not {"cryptography", "burrowmq.broker.peer.fields"} & set(modules)


def test_an_extension_that_is_there_twice_costs_the_alternative_names_only(der_of):
    der = der_of(distinguished(common_name="a"), ALTERNATIVES)
    assert b"\x55\x1d\x23" in der
    found = fields.read(
        der.replace(b"\x55\x1d\x23", b"\x55\x1d\x0e")
    )  # two subject key identifiers
    assert (found.subject, found.alternative_names) == ("CN=a", ())
