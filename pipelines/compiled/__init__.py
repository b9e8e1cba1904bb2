"""The built-in pipelines as compiled packages; a test holds them against the code."""
