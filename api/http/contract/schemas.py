"""The schemas of the contract: msgspec's of our types, with what foreign generators need besides.

Every struct, union of structs and envelope has a name of its own. Fields that an answer always has are required there.
A struct may say more of itself (`InContract`). A field that is another by a second name is a property too, marked with
`x-service-same-as`; where any of several names must be sent, `x-service-needs` says which field that is.
A default stands in the description: generators take a field with a `default` for one that is always there.
"""

import inspect
import re
import typing
from collections.abc import Iterable, Iterator
from types import UnionType
from typing import Annotated, Any, TypeAliasType

import msgspec
from msgspec import UnsetType

from api.areas.signing.questions import MessageBody, QuestionBody
from custody.kit.described import InContract
from custody.policies.kinds import PolicyRule

REF = "#/components/schemas/{name}"
ERROR: dict[str, Any] = {
    "type": "object",
    "description": "A refusal. `error` is for people, `data.code` for programs.",
    "required": ["ok", "error", "data"],
    "properties": {
        "ok": {"type": "boolean", "description": "Always false: the request failed."},
        "error": {"type": "string", "description": "The problem and its cure, for people."},
        "data": {
            "type": "object",
            "description": "The same for programs, with details that depend on the code.",
            "required": ["code"],
            "properties": {
                "code": {
                    "anyOf": [{"$ref": REF.format(name="ErrorCode")}, {"type": "string"}],
                    "description": "Code of the problem; a code is never renamed.",
                    "examples": ["agent_absent"],
                },
                "fields": {
                    "type": "array",
                    "description": "The fields or parameters that are wrong.",
                    "items": {"type": "string"},
                },
                "requestId": {"type": "string", "description": "Id of the request in the operator's logs, on 500."},
            },
        },
    },
}
# Of routes that refuse a bad request as RFC 6749 5.2 says.
OAUTH_ERROR: dict[str, Any] = {
    "type": "object",
    "description": "A refusal as RFC 6749 5.2 has it, with our code beside it.",
    "required": ["ok", "error", "error_description", "data"],
    "properties": ERROR["properties"]
    | {
        "error": {"type": "string", "description": "Code of the problem, for programs.", "examples": ["slow_down"]},
        "error_description": {"type": "string", "description": "The problem and its cure, for people."},
        "interval": {"type": "integer", "description": "Seconds to wait between two polls, where that is asked."},
    },
}
# As `Uuid` in custody/kit/shapes.py has it.
UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
# Unions of structs that a tag tells apart, by the name they have in the contract.
UNIONS: dict[str, Any] = {"PolicyRule": PolicyRule, "Question": QuestionBody, "MessageOrder": MessageBody}


class Schemas:
    """The named schemas, and those of single types, which refer to them."""

    def __init__(self, sent: Iterable[Any], returned: Iterable[Any], respelled: Iterable[Any] = ()) -> None:
        sent, returned, free = list(sent), list(returned), set(respelled)
        sent += [part for struct in structs_in(sent) for part in said_of(struct).one_of]
        types = [*sent, *returned]
        found, components = msgspec.json.schema_components(types, ref_template=REF)
        self._found = dict(zip(map(repr, types), found, strict=True))
        taken = {struct.__name__ for struct in structs_in(sent)}
        self.components: dict[str, Any] = {"Error": ERROR}
        for struct in structs_in(types):
            name = struct.__name__
            if name not in components or name in self.components:
                raise TypeError(f"two schemas would be called {name}: {struct.__module__} has one of them")
            if parts := said_of(struct).one_of:
                said = {"description": components[name]["description"]}
                self.components[name] = said | {"oneOf": [{"$ref": REF.format(name=part.__name__)} for part in parts]}
                continue
            made = _schema(struct, components[name], answers=name not in taken, respelled=struct in free)
            self.components[name] = _tidy(made)
        for name, union in UNIONS.items():
            if typing.get_args(union)[0].__name__ not in self.components:
                continue
            mapping = {tag_of(part): REF.format(name=part.__name__) for part in typing.get_args(union)}
            self.components[name] = {
                "description": f"One of these, told apart by `{_tag_field(union)}`.",
                "oneOf": [{"$ref": ref} for ref in mapping.values()],
                "discriminator": {"propertyName": _tag_field(union), "mapping": mapping},
            }

    def of(self, kind: Any) -> Any:
        """The schema of one type that was named to begin with."""
        return _tidy(self._found[repr(kind)])

    def fields(self, struct: type[msgspec.Struct]) -> dict[str, Any]:
        """The schemas of a struct's fields, by their names on the wire."""
        properties: dict[str, Any] = _tidy(msgspec.json.schema(struct)["$defs"][struct.__name__]["properties"])
        return properties

    def reference(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """A reference to a schema under a name, which no other schema may have."""
        if self.components.setdefault(name, schema) != schema:
            raise TypeError(f"two schemas would be called {name}")
        return {"$ref": REF.format(name=name)}


def structs_in(types: Iterable[Any]) -> list[type[msgspec.Struct]]:
    """Every struct that these types are made of, each once."""
    found: dict[type[msgspec.Struct], None] = {}

    def walk(kind: Any) -> None:
        if isinstance(kind, TypeAliasType):
            return walk(kind.__value__)
        for part in typing.get_args(kind):
            walk(part)
        if inspect.isclass(kind) and issubclass(kind, msgspec.Struct) and kind not in found:
            found[kind] = None
            for hint in typing.get_type_hints(kind, include_extras=True).values():
                walk(hint)
        return None

    for kind in types:
        walk(kind)
    return list(found)


def said_of(struct: type[msgspec.Struct]) -> InContract:
    """The declaration of a struct for the contract."""
    said = getattr(struct, "contract", None)
    return said if isinstance(said, InContract) else InContract()


def tag_of(struct: type[msgspec.Struct]) -> str:
    """The tag by which a struct is told from others of its union."""
    return str(struct.__struct_config__.tag)


def _tag_field(union: Any) -> str:
    return str(typing.get_args(union)[0].__struct_config__.tag_field)


def _schema(struct: type[msgspec.Struct], schema: dict[str, Any], *, answers: bool, respelled: bool) -> dict[str, Any]:
    """The schema of a struct. In an answer every field is required that is always there, and none has a default.

    `respelled`: its route takes each field in camelCase too.
    """
    config = struct.__struct_config__
    properties: dict[str, dict[str, Any]] = dict(schema["properties"])
    if config.tag_field is not None:
        properties[config.tag_field] = {"description": "Name of the variant."} | properties[config.tag_field]
    said = said_of(struct)
    required = [*schema.get("required", ()), *said.needed]
    for field in msgspec.structs.fields(struct):
        shown = dict(properties[field.encode_name])
        default = shown.pop("default", None)
        for option in shown.get("anyOf", ()):
            if "description" in option:
                shown.setdefault("description", option["description"])
        if answers:
            if field.encode_name not in required and not config.omit_defaults and not _may_be_unset(field.type):
                required.append(field.encode_name)
        elif default not in (None, "", [], {}) and not isinstance(default, dict):
            written = msgspec.json.encode(default).decode()
            shown["description"] = f"{shown.get('description', '')} Default: `{written}`.".strip()
        properties[field.encode_name] = shown
    same = {camel(name): name for name in properties if camel(name) != name} if respelled else same_as(properties)
    same = {name: taught for name, taught in same.items() if name not in said.same.values()} | said.same
    for name, taught in same.items():
        properties[name] = same_again(properties.setdefault(name, properties[taught]), taught, properties[taught])
    # Of a body any of the names will do, and an answer has all of them.
    free = set() if answers else {name for pair in same.items() for name in pair}
    needs = [name for name in properties if name in required and name in free and name not in same]
    for name in set(said.needed) - free:
        properties[name] = present(properties[name])
    return {key: value for key, value in schema.items() if key not in ("title", "required")} | {
        "properties": properties,
        **({"required": must} if (must := [name for name in properties if name in set(required) - free]) else {}),
        **({"x-service-needs": needs} if needs else {}),
    }


def camel(name: str) -> str:
    """A name in camelCase."""
    return re.sub("(?<!^)_(.)", lambda found: found[1].upper(), name)


def same_as(names: Iterable[str]) -> dict[str, str]:
    """Those names in snake_case that stand beside the same ones in camelCase, with these."""
    given = list(names)
    return {name: camel(name) for name in given if camel(name) != name and camel(name) in given}


def same_again(shown: dict[str, Any], taught: str, like: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field or parameter that is another by a second name."""
    alike = all(shown.get(key) == like.get(key) for key in {*shown, *like} - {"description", "examples", "name"})
    said = {"description": f"The same as `{taught}`."} if alike else {}
    return shown | said | {"x-service-same-as": taught}


def present(shown: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field that must be sent, and so is never null."""
    options = [option for option in shown.get("anyOf", ()) if option != {"type": "null"}]
    return options[0] | {name: value for name, value in shown.items() if name != "anyOf"} if options else shown


def _may_be_unset(kind: Any) -> bool:
    origin = typing.get_origin(kind)
    if origin in (Annotated, typing.Union, UnionType):
        return any(_may_be_unset(part) for part in typing.get_args(kind))
    return kind is UnsetType


def _tidy(node: Any) -> Any:
    """The same in the spelling that other readers expect."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    if (union := _union(node)) is not None:
        return {**({"description": node["description"]} if "description" in node else {}), "$ref": union}
    tidy = {name: _tidy(value) for name, value in node.items()}
    # Python's end of text is spelled otherwise in the regular expressions that JSON Schema means (ECMA-262).
    if isinstance(pattern := tidy.get("pattern"), str):
        tidy["pattern"] = pattern.replace(r"\Z", "$")
        if tidy["pattern"] == UUID:
            tidy["format"] = "uuid"
    if isinstance(values := tidy.get("enum"), list) and isinstance(values[0], bool):
        # Generators make texts of a constant that is no text. What is always so is told in the description.
        tidy = {name: value for name, value in tidy.items() if name != "enum"} | {"type": "boolean"}
    elif isinstance(values, list):
        if len(values) == 1:
            del tidy["enum"]
            tidy["const"] = values[0]
        tidy.setdefault("type", {str: "string", int: "integer"}[type(values[0])])
    if tidy.get("type") == "array":
        tidy.setdefault("items", {})
    if tidy.get("type") == "object" and "properties" not in tidy:
        tidy.setdefault("additionalProperties", True)
    return tidy


def _union(node: dict[str, Any]) -> str | None:
    """The reference to a named union, if this is one written out."""
    mapping = node.get("discriminator", {}).get("mapping")
    for name, union in UNIONS.items():
        if mapping and set(mapping) == {tag_of(part) for part in typing.get_args(union)}:
            return REF.format(name=name)
    return None


def named_in(node: Any) -> Iterator[str]:
    """The names that a part of the contract refers to."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value.rpartition("/")[2]
            else:
                yield from named_in(value)
    elif isinstance(node, list):
        for item in node:
            yield from named_in(item)
