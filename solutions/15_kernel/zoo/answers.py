RIGHT: dict = {}
WRONG: dict = {}
