"""What the formats share: records of documents, steps, warnings, and the log under construction."""
