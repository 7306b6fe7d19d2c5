"""What runs operations: documents, limits, cost, roles and execution."""
