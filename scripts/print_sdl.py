"""Prints the schema as built, for schema/schema.graphql."""

from schema.build import build_schema

print(build_schema().as_str())
