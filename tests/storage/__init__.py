"""What is built over a store: import, export, check; on both stores."""
