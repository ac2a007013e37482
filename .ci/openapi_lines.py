"""Writes the bodies of lines of JSON that `.ci/openapi` sends: schemathesis knows no such content type."""

import json

import schemathesis


@schemathesis.serializer("application/jsonl")
def lines(context, value):
    if isinstance(value, bytes):
        return value
    return (json.dumps(value) + "\n").encode()
