-- Tells the planner how much there is to take.
analyze stage
