"""Views: what models, people and auditors see of a log. Pure functions of events, without I/O."""
