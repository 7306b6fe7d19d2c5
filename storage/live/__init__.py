"""Live feeds: what changes in a session, a space, its slots or its forest, as it happens."""
