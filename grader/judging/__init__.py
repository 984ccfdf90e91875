"""Makes the verdict on a candidate: cases tried, numbers compared, mistakes named, sentences worded."""
