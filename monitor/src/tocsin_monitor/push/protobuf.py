"""Protobuf messages from tables, for formats whose messages no library brings."""

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "double": _Field.TYPE_DOUBLE, "float": _Field.TYPE_FLOAT, "int64": _Field.TYPE_INT64, "uint64": _Field.TYPE_UINT64,
    "uint32": _Field.TYPE_UINT32, "bool": _Field.TYPE_BOOL, "string": _Field.TYPE_STRING, "bytes": _Field.TYPE_BYTES,
}  # fmt: skip


def messages(package: str, tables: Mapping[str, Sequence[str]], syntax: str = "proto3") -> dict[str, Any]:
    """Message classes by name. Each field is written as in a .proto file: "repeated Label labels = 1"."""
    file = descriptor_pb2.FileDescriptorProto(name=f"tocsin/{package}.proto", package=package, syntax=syntax)
    for name, fields in tables.items():
        message = file.message_type.add(name=name)
        for line in fields:
            *repeated, kind, field, _, number = line.split()
            label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            one = message.field.add(name=field, number=int(number), label=label)
            if kind in _TYPES:
                one.type = _TYPES[kind]
            else:
                one.type, one.type_name = _Field.TYPE_MESSAGE, f".{package}.{kind}"
    # A pool of our own: another library may have registered the same names.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in tables}
