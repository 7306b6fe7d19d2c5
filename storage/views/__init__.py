"""Views: what models, people and auditors see of a log. Pure functions of events; nothing here does I/O."""
