"""Parsing documents of known formats into steps: in this process (`document`), or in one of its own (`parser`), which
`serving` runs and which talks to this one in `frames`; `memory` keeps both small.

Parsing takes as much of the processor as appending what was parsed. Both are Python, so only two processes do them at
the same time.
"""
