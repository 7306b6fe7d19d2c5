"""The composition root: settings, the web application and the commands."""
