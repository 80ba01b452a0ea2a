-- What a comparison may use of memory: a million results fit, so that they are joined in one pass.
select set_config('work_mem', '128MB', true)
