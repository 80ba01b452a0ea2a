-- Tells the planner how much there is to join.
analyze news
