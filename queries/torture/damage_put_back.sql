-- Puts back what table $1 held before it was damaged.
select pg_temp.put_back($1::text)
