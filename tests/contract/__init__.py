"""The contract of a store. Every test runs on every store."""
