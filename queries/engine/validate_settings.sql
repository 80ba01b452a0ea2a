-- How a comparison is to be planned: as one hash join in memory that a million results fit into. The
-- planner has no statistics for what is compared, and would sort instead; and compiling the
-- statements would take longer than running them.
select set_config('work_mem', '128MB', true), set_config('hash_mem_multiplier', '2', true),
    set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)
