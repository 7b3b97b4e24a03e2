"""The part of JSON Schema (draft 2020-12) that our schemas use."""

from __future__ import annotations

from typing import Any

TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
    "integer": int, "number": (int, float),
}  # fmt: skip
KEYWORDS = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "minimum", "maximum",
            "required", "properties", "additionalProperties", "items", "minItems", "maxItems"}  # fmt: skip


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "$") -> list[str]:
    """The places at which a value is not as the schema says; empty if there
    are none."""
    assert not schema.keys() - KEYWORDS, f"this reader does not know {schema.keys() - KEYWORDS}"
    if "$ref" in schema:
        schema = {**root["$defs"][schema["$ref"].removeprefix("#/$defs/")], **schema}
    found = []
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(isinstance(value, TYPES[one]) and not (isinstance(value, bool) and one != "boolean") for one in types):
            return [f"{path}: is no {types}"]
    if "const" in schema and value != schema["const"] or value not in schema.get("enum", [value]):
        found.append(f"{path}: is {value}")
    if isinstance(value, (int, float)):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            found.append(f"{path}: is {value}")
    if isinstance(value, dict):
        found += [f"{path}: has no {key}" for key in schema.get("required", []) if key not in value]
        for key, one in value.items():
            rule = schema.get("properties", {}).get(key, schema.get("additionalProperties", True))
            if rule is False:
                found.append(f"{path}: has {key}")
            elif isinstance(rule, dict):
                found += problems(one, rule, root, f"{path}.{key}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{path}: has {len(value)} items")
        for number, one in enumerate(value):
            found += problems(one, schema.get("items", {}), root, f"{path}[{number}]")
    return found
