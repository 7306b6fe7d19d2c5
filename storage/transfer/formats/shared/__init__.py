"""Code that the log formats share.

`records` splits a document into records; `foreign` has what a reader yields and the warnings; `log_builder` builds the
events of a session.
"""
