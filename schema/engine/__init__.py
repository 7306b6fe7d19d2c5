"""The execution engine: documents, limits, cost, roles and execution."""
