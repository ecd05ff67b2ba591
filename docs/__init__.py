"""Pages of the documentation, and what makes their tables and pictures."""
