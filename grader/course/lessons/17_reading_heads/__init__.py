"""Lesson 17: what heads do, read in a small model and in a real one."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("previous_token_score", "induction_score", "head_contributions", "loss_without_head", "attention_rollout"),
    title="Reading heads",
    question="What does a head do in a trained model, and how do we find out?",
    needs="smollm2",
    outcome="say what single heads of a trained model do, and measure what the model loses without them",
)
