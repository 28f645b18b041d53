"""Schemas of bodies are JSON Schema of the few kinds that readers of the description have to know."""

from __future__ import annotations

from typing import Any

from burrowmq.management.description.bodies import BODIES

KINDS = {"object", "array", "string", "integer", "number", "boolean"}


def check(schema: dict[str, Any]) -> None:
    for each in schema.get("anyOf", ()):
        check(each)
    if "type" in schema:
        assert schema["type"] in KINDS
        assert schema["type"] != "array" or "items" in schema
    properties = schema.get("properties", {})
    assert set(schema.get("required", ())) <= properties.keys()
    for each in properties.values():
        check(each)


def test_they_are_well_formed() -> None:
    for schema in BODIES.values():
        assert schema["type"] == "object"
        check(schema)
