"""Parsing documents of known formats into steps.

`document` reads a document as batches of steps. A `source` gives them to an import: parsed in the calling process, or
by a `parser`, which has a process of its own that runs `serving` and exchanges `frames` with this one; `memory` keeps
both small. Parsing takes as much processor time as appending the result, and both are Python, so only two processes can
do them at the same time.
"""
