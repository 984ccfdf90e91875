"""From a path to code that can run: finds a learner's notebooks, reads them, puts them into the pristine lesson."""
