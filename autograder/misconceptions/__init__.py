"""Wrong answers that people really give, chapter by chapter, each with the sentence that helps."""
