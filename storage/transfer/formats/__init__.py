"""The log formats that Sapwood reads: one module or folder each, listed in `registry`.

`shared/` holds what several formats use.
"""
