"""The domain of Sapwood and its persistence: logs, forest, slots and feeds, without any web framework."""
