"""burrowmq.broker.peer.certificate: names as RabbitMQ writes them, and the user that a certificate stands for."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from burrowmq.broker.peer.certificate import Certificate, login_name
from burrowmq.broker.peer.pem import read
from tests.support.certificates import Authority, distinguished

ALICE = b"\x0c\x05alice"  # a UTF8String
ALTERNATIVES = [
    x509.DNSName("alice.example"),
    x509.DNSName("second.example"),
    x509.RFC822Name("alice@example.org"),
    x509.UniformResourceIdentifier("urn:alice"),
    x509.IPAddress(ipaddress.ip_address("2001:db8::1")),
    x509.OtherName(x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3"), ALICE),
]


def made(directory: Path, subject: x509.Name, alternatives: list[x509.GeneralName]) -> Certificate:
    leaf = Authority(directory).issue("leaf", subject, alternatives)
    (found,) = read(str(leaf.certificate))
    return found


def test_a_distinguished_name_is_written_as_rabbitmq_writes_it(tmp_path):
    # RabbitMQ 3.10.8 showed exactly this text for a certificate of these names.
    plain = [
        (NameOID.COUNTRY_NAME, "DE"),
        (NameOID.STATE_OR_PROVINCE_NAME, "Berlin #1"),
        (NameOID.ORGANIZATION_NAME, "Käse, Inc. <x>~"),
    ]
    pair = [
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "a"),
        x509.NameAttribute(NameOID.USER_ID, "u1"),
    ]
    more = [
        (NameOID.EMAIL_ADDRESS, "a@b.c"),
        (NameOID.BUSINESS_CATEGORY, "Biz"),
        (NameOID.DOMAIN_COMPONENT, "org"),
        (NameOID.STREET_ADDRESS, "Way 1"),
        (NameOID.SURNAME, "Doe"),
        (NameOID.GIVEN_NAME, "Ann"),
        (NameOID.SERIAL_NUMBER, "7"),
        (NameOID.TITLE, "Dr"),
        (NameOID.COMMON_NAME, " alice "),
    ]
    parts = [x509.RelativeDistinguishedName([x509.NameAttribute(*each)]) for each in plain]
    parts.append(x509.RelativeDistinguishedName(pair))
    parts += [x509.RelativeDistinguishedName([x509.NameAttribute(*each)]) for each in more]
    found = made(tmp_path, x509.Name(parts), [])
    assert found.subject == (
        r"CN=\ alice\ ,TITLE=Dr,SERIALNUMBER=7,GIVENNAME=Ann,SN=Doe,2.5.4.9=Way 1,DC=org,2.5.4.15=Biz,"
        r"EMAILADDRESS=a@b.c,OU=a+UID=u1,O=K\C3\A4se\, Inc. \<x\>\7E,ST=Berlin #1,C=DE"
    )
    assert found.issuer == "CN=Test CA"
    begins, _, ends = found.validity.partition(" - ")
    assert begins.endswith("Z")
    assert begins < ends


@pytest.mark.parametrize(
    ("name", "shown"),
    [("#1", r"CN=\#1"), ("a b", "CN=a b"), (" ", r"CN=\ "), ("a\\", "CN=a\\\\"), ("\n", r"CN=\0A")],
)
def test_escapes(tmp_path, name, shown):
    assert made(tmp_path, distinguished(common_name=name), []).subject == shown


@pytest.mark.parametrize(
    ("source", "kind", "index", "name"),
    [
        ("distinguished_name", "dns", 0, "CN=alice,O=client"),
        ("common_name", "dns", 0, "alice"),
        ("subject_alternative_name", "dns", 0, "alice.example"),
        ("subject_alt_name", "dns", 1, "second.example"),
        ("subject_alternative_name", "dns", 2, None),
        ("subject_alternative_name", "email", 0, "alice@example.org"),
        ("subject_alternative_name", "uri", 0, "urn:alice"),
        ("subject_alternative_name", "ip", 0, "2001:db8::1"),
        ("subject_alternative_name", "other_name", 0, "alice"),
    ],
)
def test_the_user_that_a_certificate_names(tmp_path, source, kind, index, name):
    found = made(
        tmp_path, distinguished(organization_name="client", common_name="alice"), ALTERNATIVES
    )
    assert login_name(found, source, kind, index) == name


def test_a_certificate_without_the_wanted_name(tmp_path):
    found = made(tmp_path, distinguished(organization_name="client"), [])
    assert login_name(found, "common_name", "dns", 0) is None
    assert login_name(found, "subject_alternative_name", "dns", 0) is None
