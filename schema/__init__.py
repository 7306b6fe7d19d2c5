"""The GraphQL face of the store: Strawberry types, queries, mutations and subscriptions."""
