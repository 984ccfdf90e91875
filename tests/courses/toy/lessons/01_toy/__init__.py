from grader.course.declare import collected

lesson = collected(__name__, ("double", "row_sums", "the_answer"), title="A toy", question="?")
