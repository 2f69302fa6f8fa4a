#!/usr/bin/env python3
"""Reads a Perfetto trace from standard input with Perfetto's own schema (the Python package `perfetto`), prints it as text
without the interned numbers' packets repeated, and fails if there is a field that the schema does not know."""
import sys

from google.protobuf import text_format
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace


def unknown(message, path):
    """The fields of a message, and of those in it, that the schema does not know."""
    found = [f"{path}.{field.field_number}" for field in UnknownFieldSet(message)]
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                found += unknown(part, f"{path}.{field.name}")
    return found


trace = Trace.FromString(sys.stdin.buffer.read())
strange = unknown(trace, "trace")
if strange:
    print("fields that the schema does not know:", *strange)
    sys.exit(1)
for packet in trace.packet:
    packet.ClearField("trusted_packet_sequence_id")
    print(text_format.MessageToString(packet, as_one_line=True))
