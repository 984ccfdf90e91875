"""From a path to what runs: finds a learner's notebooks, reads them, lays them over the pristine lesson."""
