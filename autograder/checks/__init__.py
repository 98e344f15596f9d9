"""What a right answer is, chapter by chapter: one behaviour per check, each with its weight."""
