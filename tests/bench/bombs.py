"""How long expensive documents hold the event loop when each is first sent."""

import contextlib
import gc
import time

from graphql import GraphQLError, get_introspection_query

from schema.build import build_schema
from tests.schema.engine.bombs import INVALID, TOO_COMPLEX

ROUNDS = 5


def main() -> None:
    """Prints the CPU milliseconds of each document, the best of some rounds, most expensive first."""
    documents = {name: text for name, (text, _) in TOO_COMPLEX.items()} | INVALID
    documents["introspection, as tools send it"] = get_introspection_query()
    duration = {name: min(_seconds(text) for _ in range(ROUNDS)) * 1_000 for name, text in documents.items()}
    for name, milliseconds in sorted(duration.items(), key=lambda item: -item[1]):
        print(f"{milliseconds:7.1f} ms  {name} ({len(documents[name]):,} characters)")


def _seconds(text: str) -> float:
    """CPU seconds from the text to its rejection, or to a valid document."""
    documents = build_schema().documents
    gc.collect()
    gc.freeze()
    began = time.process_time()
    with contextlib.suppress(GraphQLError):
        documents.faults(documents.of(text))
    return time.process_time() - began


if __name__ == "__main__":
    main()
