"""What was found, for people: tables, summaries, pictures and pages of results."""
