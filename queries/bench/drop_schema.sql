-- Drops a schema that the benchmark made.
drop schema :"schema" cascade
