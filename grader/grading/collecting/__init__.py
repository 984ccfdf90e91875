"""`grader collect`: from what a learning platform lets one download to a folder a learner, with nothing lost and nothing overwritten."""
