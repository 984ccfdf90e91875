"""Makes every verdict: cases tried, numbers compared, mistakes named, sentences worded."""
