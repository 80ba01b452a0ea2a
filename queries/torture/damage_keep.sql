-- Copies table $1, to be put back after a damage that no start could repair.
select pg_temp.keep($1::text)
